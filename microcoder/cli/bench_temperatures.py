"""`microcoder bench temperatures`: checkpoints over a grid of temperatures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from . import Refused
from .bench_asking import (
    Told,
    asked,
    config_of,
    is_setting,
    judge_options,
    local_model,
    numbers_of,
    suite_of,
    suite_options,
)
from .shown import echo


@click.command("temperatures")
@click.argument("words", nargs=-1, required=True, metavar="MODEL... [section.key=value ...]")
@suite_options
@click.option("--grid", default="0.2,0.6,1.0,1.4,1.8", show_default=True, help="Temperatures.")
@click.option("-n", "--tries", type=click.IntRange(min=2), default=4, show_default=True, help="Tries at each problem.")
@click.option("--limit", "limits", metavar="N", help="Tokens in a response.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("-o", "--output", type=click.Path(), required=True, help="A folder: a bench for each, and the figure.")
def temperatures(words: tuple[str, ...], suite: str, grid: str, output: str, **options: Any) -> int:
    """Accuracy and diversity of checkpoints over a grid of temperatures, as a table and a figure."""
    from ..evaluation.records import BenchError
    from ..evaluation.temperatures import sweep
    from ..judge import JudgeError
    from ..runs import RunError

    models = [word for word in words if not is_setting(word)]
    settings = [word for word in words if is_setting(word)]
    if not models:
        raise click.UsageError("name at least one model, or a checkpoint such as runs/a")
    try:
        config = config_of(settings)
        loaded = suite_of(suite, options)
        judge = judge_options(config, loaded)
        common = asked(loaded, config, judge, options)
        common["limits"] = common["limits"][-1:]
        load, watch = partial(local_model, config=config), partial(Told, len(loaded.problems) * options["tries"])
        table = sweep(models, numbers_of(grid), Path(output), loaded, common, load, judge, watch)
    except (BenchError, JudgeError, RunError, OSError) as error:
        raise Refused(str(error)) from None
    except KeyboardInterrupt:
        echo("\nstopped; what was written is kept, and the same command goes on from there", err=True)
        return 130
    echo(table)
    echo(f"the figure: {Path(output) / 'temperatures.png'}")
    return 0
