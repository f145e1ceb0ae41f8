"""`microcoder data`: problems from many places into a training set; what was dropped, to read; a report."""

from __future__ import annotations

import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import Refused
from .shown import echo

if TYPE_CHECKING:
    from ..data.parts import Counts

SHOWN = 5
STAGES = ("collect", "process", "filter", "verify")


@click.group("data")
def command() -> None:
    """Collect, process, filter and verify problems to train on."""


@command.command("run")
@click.argument("config", type=click.Path())
@click.argument("settings", nargs=-1)
@click.option("--only", type=click.Choice(STAGES), help="Go no further than this stage.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many problems of each source, in a folder apart.")
@click.option("--ray", metavar="ADDRESS", default="", help="On a Ray cluster; auto: the one this machine belongs to.")
def run(config: str, settings: tuple[str, ...], only: str | None, limit: int | None, ray: str) -> None:
    """Make a data set as the file CONFIG says. Typed again, it goes on where it was stopped."""
    from ..config import ConfigError, load_as, to_toml
    from ..data.making import make
    from ..data.record import DataError
    from ..data.settings import Pipeline
    from ..judge import JudgeError
    from ..models import ModelError

    try:
        wanted = load_as(Pipeline, config, list(settings))
        if limit:  # to try things: what a whole run has made stays
            folder = f"{wanted.output.folder}-limit-{limit}"
            wanted = load_as(Pipeline, config, [*settings, f"collect.limit={limit}", f"output.folder={folder}"])
        if not wanted.collect.sources:
            raise Refused(f"{config} names no sources; add some:\n[[collect.sources]]\npath = \"mbpp.jsonl\"")
        text = to_toml(wanted, comments=False)
        if ray:  # where it is made is no setting of the data set
            judge = wanted.judge.model_copy(update={"on": f"ray:{ray}"})
            wanted = wanted.model_copy(update={"judge": judge})
        made = make(wanted, Told(), only=only or STAGES[-1], text=text, ray=ray)
    except (ConfigError, DataError, JudgeError, ModelError) as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise Refused(f"{error}; what is finished stays, and the same command goes on from there") from None
    if made is None:
        echo(f"{only} is done; see what was kept: microcoder data show {wanted.output.folder}")
    else:
        _end(Path(wanted.output.folder), sum(made.values()))


def _end(out: Path, kept: int) -> None:
    """Where to look next."""
    from ..data.report import steps_of

    reasons = sum((step.counts.dropped for step in steps_of(out)), Counter[str]())
    reasons.pop("outside_ids", None)  # nobody wonders about those
    echo(f"{kept:,} problems in {out / 'dataset'}; where to look next:" if kept else "No problem is left:")
    echo(f"  the report  {out / 'report.html'}")
    for reason, _ in reasons.most_common(1):
        echo(f"  the drops   microcoder data show {out} --dropped {reason}")
    if not kept:
        raise SystemExit(1)
    echo(f"  to train    microcoder train demo data.train={out / 'dataset' / 'problems.parquet'}")


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
@click.option("--step", metavar="STEP", help="Of this step, such as filter/2-duplicates; else the last that fits.")
@click.option("--id", "ident", metavar="ID", help="One problem, wherever it went.")
@click.option("-n", "count", type=click.IntRange(min=1), default=SHOWN, help=f"At most so many; {SHOWN} if not given.")
def show(out: str, dropped: str | None, step: str | None, ident: str | None, count: int) -> None:
    """Print problems that a run has kept or dropped, and why."""
    from ..data.looking import Nothing, found

    try:
        items = found(Path(out), dropped, step, ident, count)
    except Nothing as error:
        raise Refused(str(error)) from None
    for item in items:
        echo(item)


@command.command("report")
@click.argument("out", type=click.Path(exists=True, file_okay=False))
@click.option("-o", "target", type=click.Path(), help="Where to; OUT/report.html if not given.")
def report(out: str, target: str | None) -> None:
    """Write the report of a run as a page."""
    from ..data.report import page

    try:
        text = page(Path(out))
    except FileNotFoundError as error:
        raise Refused(str(error)) from None
    path = Path(target) if target else Path(out) / "report.html"
    path.write_text(text, encoding="utf-8")
    echo(path)


class Told:
    """A line for each step as it ends, and now and then one on the way."""

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
        echo(f"{name}: {counts.kept:,} of {counts.seen:,} kept ({how}){lost}", err=True)
