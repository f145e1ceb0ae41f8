"""`microcoder export`: the model of a run, for use elsewhere."""

from __future__ import annotations

import click

from . import Refused
from .shown import echo


@click.command("export")
@click.argument("run", type=click.Path())
@click.argument("folder", type=click.Path())
@click.option("--checkpoint", default="last", show_default=True, metavar="last|best|STEP", help="Which one to take.")
@click.option("--push", metavar="OWNER/NAME", help="Send it to the Hugging Face hub too; a new repository is private.")
def command(run: str, folder: str, checkpoint: str, push: str | None) -> None:
    """Write the model of the run directory RUN into FOLDER.

    Whole weights in bfloat16, an adapter merged, the tokenizer, and a model card with the run's figures.
    """
    from ..models import ModelError
    from ..runs import RunError
    from ..training.card import check_name, export, send

    try:
        if push:
            check_name(push)
        made_of = export(run, folder, checkpoint)
        echo(f"{folder}: from {made_of}; to use it: model.name={folder}, or microcoder eval {folder}")
        if push:
            echo(f"sent to {send(folder, push)}")
    except (RunError, ModelError) as error:
        raise Refused(str(error)) from None
