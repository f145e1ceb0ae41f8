"""`microcoder export`: the model of a run, for use elsewhere."""

from __future__ import annotations

import click

from . import Refused
from .shown import echo


@click.command("export")
@click.argument("run", type=click.Path())
@click.argument("folder", type=click.Path())
@click.option("--checkpoint", default="last", show_default=True, metavar="last|best|STEP", help="Which one to take.")
def command(run: str, folder: str, checkpoint: str) -> None:
    """Write the model of the run directory RUN into FOLDER.

    Whole weights in bfloat16, an adapter merged, the tokenizer, and a model card with the run's figures.
    """
    from ..models import ModelError
    from ..runs import RunError
    from ..training.card import export

    try:
        made_of = export(run, folder, checkpoint)
    except (RunError, ModelError) as error:
        raise Refused(str(error)) from None
    echo(f"{folder}: from {made_of}; to use it: model.name={folder}, or microcoder eval {folder}")
