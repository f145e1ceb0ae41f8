"""`microcoder data`: make a training set of problems from many places; show what was dropped; write a report."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import Refused
from .shown import echo

if TYPE_CHECKING:
    from ..data.dataset import Dataset
    from ..data.parts import Counts

SHOWN = 5
STAGES = ("collect", "process", "filter", "forge", "verify")


@click.group("data")
def command() -> None:
    """Collect, process, filter and verify problems to train on."""


@command.command("run")
@click.argument("config", type=click.Path())
@click.argument("settings", nargs=-1)
@click.option("--only", type=click.Choice(STAGES), help="Stop after this stage.")
@click.option("--limit", type=click.IntRange(min=1), help="Most problems of each source, to try; in OUT-limit-N.")
@click.option("--ray", metavar="ADDRESS", default="", help="Use a Ray cluster; auto: the one of this machine.")
def run(config: str, settings: tuple[str, ...], only: str | None, limit: int | None, ray: str) -> None:
    """Make a training set as the file CONFIG says. Run the same command again to continue a stopped one."""
    from ..api import build_dataset
    from ..config import ConfigError
    from ..data.record import DataError
    from ..files import FileError
    from ..judge import JudgeError
    from ..models import ModelError
    from ..runs import RunError

    try:
        last = only or STAGES[-1]
        dataset = build_dataset(config, *settings, only=last, limit=limit or 0, ray=ray, progress=StepLines())
    except (ConfigError, DataError, FileError, JudgeError, ModelError) as error:
        raise Refused(str(error)) from None
    except (OSError, RunError) as error:  # the latter speaks of runs, and has the former as its cause
        said = error.__cause__ or error
        raise Refused(f"{said}; what is finished stays, and the same command goes on from there") from None
    if last != STAGES[-1]:
        echo(f"{last} is done; see what was kept: microcoder data show {dataset.folder}")
    else:
        _end(dataset)


def _end(dataset: Dataset) -> None:
    """Print what was made and where to look next."""
    out, kept = dataset.folder, len(dataset)
    echo(f"{kept:,} problems in {out / 'dataset'}; where to look next:" if kept else "No problem is left:")
    echo(f"  the report  {dataset.paths['report']}")
    for reason, _ in dataset.reasons.most_common(1):
        echo(f"  the drops   microcoder data show {out} --dropped {reason}")
    if not kept:
        raise SystemExit(1)
    echo(f"  to train    microcoder train one-gpu data.train={dataset.paths['problems']}")
    if count := dataset.unverified:
        leave = "'data.refuse=[\"unverified\"]'"
        echo(f"  unverified  {count:,} have no solution to check their tests by; {leave} trains without them")
    if not dataset.scored and any(row["step"] == "filter/4-difficulty" for row in dataset.report):
        echo("  no scores   too few problems have a difficulty label; difficulty.predictor=FILE would score them")


@command.command("config")
@click.argument("words", nargs=-1, metavar="[FILE] [section.key=value ...]")
@click.option("--comments/--no-comments", default=True, help="With or without what each setting means.")
def config(words: tuple[str, ...], comments: bool) -> None:
    """Print every setting of `data run` with its meaning, as TOML."""
    from ..config import load_as
    from ..data.settings import Pipeline
    from .config import show

    show(partial(load_as, Pipeline), words, comments)


@command.command("show")
@click.argument("out", type=click.Path(exists=True, file_okay=False))
@click.option("--dropped", metavar="REASON", help="Problems that were dropped for this reason.")
@click.option("--step", metavar="STEP", help="Step, such as filter/2-duplicates; else the last that fits.")
@click.option("--id", "ident", metavar="ID", help="Show one problem, kept or dropped.")
@click.option("-n", "count", type=click.IntRange(min=1), default=SHOWN, help=f"At most so many; {SHOWN} if not given.")
def show(out: str, dropped: str | None, step: str | None, ident: str | None, count: int) -> None:
    """Print problems that `data run` has kept or dropped, and why."""
    from ..data.dataset import show as records
    from ..data.record import DataError

    try:
        items = records(out, dropped, step, ident, count)
    except DataError as error:
        raise Refused(str(error)) from None
    for item in items:
        echo(item)


@command.command("report")
@click.argument("out", type=click.Path(exists=True, file_okay=False))
@click.option("-o", "target", type=click.Path(), help="Output file; OUT/report.html if not given.")
def report(out: str, target: str | None) -> None:
    """Write the report of a `data run` as a page."""
    from ..data.report import page

    try:
        text = page(Path(out))
    except FileNotFoundError as error:
        raise Refused(str(error)) from None
    path = Path(target) if target else Path(out) / "report.html"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror}") from None
    echo(path)


class StepLines:
    """Print progress: a line for each step as it ends, and some in between."""

    EVERY_S = 10.0

    def step(self, name: str, parts: int) -> None:
        self.name, self.parts, self.seen, self.count = name, parts, 0, 0
        self.printed = time.monotonic()

    def part(self, counts: Counts) -> None:
        self.seen += counts.seen
        self.count += 1
        if time.monotonic() - self.printed > self.EVERY_S:
            self.printed = time.monotonic()
            echo(f"{self.name}: {self.seen:,} problems, part {self.count} of {self.parts}", err=True)

    def done(self, name: str, counts: Counts, seconds: float, again: bool) -> None:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in counts.dropped.most_common())
        lost = f"; dropped: {reasons}" if reasons else ""
        how = "done before" if again else f"{seconds:.1f} s"
        aside = f"; {counts.outside:,} outside of ids" if counts.outside else ""
        echo(f"{name}: {counts.kept:,} of {counts.seen:,} kept ({how}){lost}{aside}", err=True)
