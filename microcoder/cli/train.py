"""`microcoder train`: a configuration in, a run directory out, and a display of how it goes."""

from __future__ import annotations

import shutil
import sys
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import Refused
from .completion import complete_config
from .configuration import settings_of
from .settings import WithSettings
from .shown import echo

if TYPE_CHECKING:
    from ..config import Config
    from ..runs import Run

CHANGEABLE = {  # settings that may be other ones when a run goes on, for they change nothing that was done
    "train.steps",
    "train.eval_every",
    "train.save_every",
    "train.keep_checkpoints",
    "train.trackers",
    "train.folder",
    "train.name",
    "judge.on",
    "judge.workers",
    "judge.queue",
    "rollout.batch",
    "cluster.address",
}


class TrainCommand(WithSettings):
    section = "train"


@click.command("train", cls=TrainCommand)
@click.argument("words", nargs=-1, metavar="[CONFIG] [section.key=value ...]", shell_complete=complete_config)
@click.option("--resume", is_flag=True, help="Go on with a run from its last checkpoint, exactly.")
@click.option("--dry-run", is_flag=True, help="Print what would be done, and what is missing.")
def command(words: tuple[str, ...], resume: bool, dry_run: bool) -> int:
    """Train a model with reinforcement learning on problems that the judge decides.

    CONFIG is a TOML file, a configuration that came with the package (`microcoder ls`), or a run such as runs/a, whose
    settings are taken. All settings: microcoder config. On several GPUs: accelerate launch -m microcoder.cli train ...
    On a Ray cluster: run.engine=verl cluster.nodes=4 cluster.address=auto
    """
    config, folder = settings_of(words)
    try:
        if dry_run:
            return _dry_run(config, folder, resume)
        return _train(config, folder, resume)
    except KeyboardInterrupt:
        if (folder / "run.json").exists():
            echo(f"\nstopped; to go on from the last checkpoint: microcoder train {folder} --resume", err=True)
        return 130


def _dry_run(config: Config, folder: Path, resume: bool) -> int:
    from rich.table import Table

    from ..training.planning import describe
    from ..training.training import quiet
    from .terminal import Terminal

    quiet()
    try:
        if resume:
            _same_settings(config, folder)
        plan = describe(config, folder)
    except ValueError as error:
        raise Refused(str(error)) from None
    if not resume and (folder / "config.toml").exists():
        plan.missing.append(f"a free name: {folder} holds a run; go on with it by --resume, or set train.name=...")
    table = Table.grid(padding=(0, 2))
    for what, said in plan.lines:
        table.add_row(what, said)
    Terminal().print(table)
    for lack in plan.missing:
        echo(f"missing: {lack}")
    echo("nothing is missing; leave out --dry-run to start" if not plan.missing else "it cannot start like this")
    return 1 if plan.missing else 0


def _train(config: Config, folder: Path, resume: bool) -> int:
    from ..files import FileError
    from ..judge import JudgeError
    from ..models import ModelError
    from ..runs import RunError
    from ..training.batches import PlanError
    from ..training.ending import finish
    from ..training.problems import DataError
    from ..training.ranks import first, open_run

    run = open_run(lambda: _open(config, folder, resume), folder)
    try:
        with run:
            _follow(config, run)
        if not first():
            return 0
        summary = finish(folder, config)  # when the run has said how it ended
    except Exception as error:
        begun = bool(run.metrics())
        if not begun and not resume and first():
            shutil.rmtree(folder, ignore_errors=True)  # made above, and nothing has happened in it: free the name
        named = isinstance(error, PlanError | DataError | ModelError | RunError | FileError | JudgeError)
        # while models are being loaded, others' errors are about settings too; later they are faults, to be traced
        if named or (not begun and isinstance(error, ValueError | OSError)):
            raise Refused(str(error)) from None
        raise
    return _ending(summary, folder)


def _open(config: Config, folder: Path, resume: bool) -> Run:
    """The run, new or to be gone on with, once all that can be known beforehand is in order."""
    from ..config import to_toml
    from ..runs import Run
    from ..runs.disk import write_whole
    from ..training.batches import batches
    from ..training.planning import lacking, stages_of

    try:
        batches(config)
        stages_of(config)
        if lacks := lacking(config):
            raise Refused("\n".join(f"missing: {lack}" for lack in lacks))
        if not resume:
            return Run.create(folder, to_toml(config), {"engine": config.run.engine, "model": config.model.name})
        _same_settings(config, folder)
        run = Run.resume(folder)
        write_whole(folder / "config.toml", to_toml(config).encode())  # more steps, say, for the next --resume
    except ValueError as error:
        raise Refused(str(error)) from None
    return run


def _same_settings(config: Config, folder: Path) -> None:
    """A run goes on with its own settings: others would make it another run."""
    from ..config import load, settings, toml_value

    if not (folder / "config.toml").exists():
        raise Refused(f"{folder} holds no run to go on with; leave out --resume to begin one")
    before = load(folder / "config.toml")
    changed = [
        f"{name} was {toml_value(was)}, now {toml_value(now)}"
        for name, _ in settings()
        for was, now in [(attrgetter(name)(before), attrgetter(name)(config))]
        if now != was and name not in CHANGEABLE
    ]
    if changed:
        raise Refused(
            f"{folder} was begun with other settings: {'; '.join(changed)}; "
            f"to go on with its own: microcoder train {folder} --resume"
        )


def _follow(config: Config, run: Run) -> None:
    from ..training.ranks import Silent, first
    from .live import Live
    from .terminal import Terminal

    title = f"{run.path}: {config.model.name}, {config.grpo.preset}"
    console = Terminal(file=sys.stdout)  # wherever an engine sends what it prints itself
    with Live(config.train.steps, title, console) if first() else Silent() as live:
        live.phase("loading")
        if config.run.engine == "verl":
            from ..training.verl import session

            return session.train(config, run, live)
        from ..training.calibrating import choose
        from ..training.training import train

        train(config, run, live, choose=lambda settings: choose(settings, run, live))


def _ending(summary: dict[str, Any], folder: Path) -> int:
    from .ending import render
    from .terminal import Terminal

    console = Terminal(highlight=False)
    console.print(render(summary))
    for line in (
        f"{summary['steps']} steps in {summary['train_seconds']:.0f} s, evaluations included; where to look next:",
        f"  the plot      {folder / 'dynamics.png'}",
        f"  the rollouts  microcoder rollouts {folder} --worst 5",
        f"  go on         microcoder train {folder} --resume train.steps={2 * summary['steps']}",
    ):
        console.print(line, soft_wrap=True)
    return 0
