"""`microcoder calibrate`: signal, D and accuracy over temperatures, and the one to train with."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click

from . import Refused
from .completion import complete_config
from .shown import echo


@click.command("calibrate")
@click.argument("words", nargs=-1, metavar="[CONFIG] [section.key=value ...]", shell_complete=complete_config)
@click.option("--grid", help="Temperatures, such as 0.4,0.8,1.2; else 0.2 to 1.8 in steps of 0.2.")
@click.option(
    "--problems",
    type=click.IntRange(min=1),
    help="Problems to sample at each temperature; else 16 to 64, as a tenth of the run's responses pays for.",
)
@click.option("-o", "--output", type=click.Path(), default="calibration.png", show_default=True, help="Figure file.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def command(words: tuple[str, ...], grid: str | None, problems: int | None, output: str, as_json: bool) -> int:
    """Sample problems over a grid of temperatures and choose one: T(D).

    Nothing is trained. Chosen is the middle of the temperatures at which a response teaches nearly as much as at the
    best one, and responses are diverse enough. Measurements are kept, so a second call is quick. In a configuration,
    grpo.temperature="auto" does all this before training.
    """
    from ..config import ConfigError, configuration
    from .terminal import Terminal

    try:
        config, _ = configuration(words)
    except ConfigError as error:
        raise Refused(str(error)) from None
    temperatures = _grid(grid)
    _refuse_output(Path(output))  # before anything is measured
    from ..judge import JudgeError
    from ..runs.plot import plot_calibration
    from ..training.calibration import calibrate
    from ..training.plan import GRID
    from .live import Live

    try:
        live = Live(1, f"{config.model.name}: T(D)", Terminal(stderr=as_json))
        record = calibrate(config, live, temperatures or GRID, problems or 0).record()
        plot_calibration(record, output, f"{config.model.name} on {config.data.train}")
    except (ValueError, OSError, JudgeError) as error:
        raise Refused(str(error)) from None
    if as_json:
        echo(json.dumps(record, indent=2))
        return 0
    console = Terminal(highlight=False)
    console.print(_table(record))
    use = shlex.join(["microcoder", "train", *words, f"grpo.temperature={record['temperature']:g}"])
    console.print(f"{record['reason']}\n  the plot   {output}\n  to use it  {use}", soft_wrap=True)
    return 0


def _grid(text: str | None) -> list[float]:
    try:
        grid = [float(part) for part in text.split(",")] if text else []
    except ValueError:
        raise Refused(f"--grid {text!r} is no list of numbers; write --grid 0.4,0.8,1.2") from None
    if any(not 0 < value <= 10 for value in grid):
        raise Refused(f"--grid {text!r} has a temperature that is not above 0 and at most 10")
    return grid


def _refuse_output(path: Path) -> None:
    if path.suffix.lower() not in (".png", ".svg"):
        raise Refused(f"a figure cannot be written as {path.name}; name a file that ends in .png or .svg")
    if not path.parent.is_dir():
        raise Refused(f"there is no folder {path.parent} to write {path.name} into; make it, or name another with -o")


def _table(record: dict) -> object:  # type: ignore[type-arg]
    from rich.table import Table

    table = Table(title=f"{len(record['probes'][0]['right'])} problems at each temperature")
    for name in ("temperature", "signal", "D", "accuracy", ""):
        table.add_column(name, justify="right")
    for probe in record["probes"]:
        chosen = "chosen" if probe["temperature"] == record["temperature"] else ""
        numbers = (f"{probe['signal']:.4f}", f"{probe['diversity']:.3f}", f"{probe['accuracy']:.3f}")
        table.add_row(f"{probe['temperature']:g}", *numbers, chosen)
    return table
