"""`microcoder train`: a configuration in, a run directory out, and a display of how it goes."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import Refused
from .completion import complete_config
from .settings import WithSettings
from .shown import echo

if TYPE_CHECKING:
    from rich.table import Table

    from ..config import Config

ROWS = (
    ("solved at least once", "pass_at_k", "{:.1%}"),
    ("tokens in a response", "length", "{:.0f}"),
    ("truncated", "truncated_share", "{:.1%}"),
    ("diversity D", "diversity", "{:.2f}"),
)


class TrainCommand(WithSettings):
    section = "train"


@click.command("train", cls=TrainCommand)
@click.argument("words", nargs=-1, metavar="[CONFIG] [section.key=value ...]", shell_complete=complete_config)
@click.option("--resume", is_flag=True, help="Go on with a run from its last checkpoint, exactly.")
@click.option("--dry-run", is_flag=True, help="Print what would be done, and what is missing.")
@click.option(
    "--gpu-memory",
    type=click.FloatRange(min=0, min_open=True),
    metavar="GIB",
    help="With --dry-run: plan for a GPU of this size (an H200 has 139.8), or for run.processes of them, elsewhere.",
)
def command(words: tuple[str, ...], resume: bool, dry_run: bool, gpu_memory: float | None) -> int:
    """Train a model with reinforcement learning on problems that the judge decides.

    CONFIG is a TOML file, a configuration that came with the package (`microcoder ls`), or a run such as runs/a, whose
    settings are taken. All settings: microcoder config. All visible GPUs are used (run.processes, run.layout).
    On a Ray cluster: run.engine=verl cluster.nodes=4 cluster.address=auto
    """
    from ..config import ConfigError, configuration

    if not words:
        raise click.UsageError("name what to train: demo, another of `microcoder ls`, or a TOML file of your own")
    if gpu_memory is not None and not dry_run:
        raise Refused("--gpu-memory plans for a GPU that may not be here; add --dry-run")
    try:
        config, folder = configuration(words)
    except ConfigError as error:
        raise Refused(str(error)) from None
    try:
        if dry_run:
            return _dry_run(config, folder, resume, gpu_memory)
        return _train(config, folder, resume)
    except KeyboardInterrupt as error:
        from ..training.ranks import TERMINATED, Terminated, first

        if (folder / "run.json").exists() and first() and not _is_rank():
            echo(f"\nstopped; to go on from the last checkpoint: microcoder train {folder} --resume", err=True)
        return TERMINATED if isinstance(error, Terminated) else 130


def _dry_run(config: Config, folder: Path, resume: bool, gpu_memory: float | None) -> int:
    from rich.table import Table

    from ..training.dry_run import describe
    from ..training.launch import same_settings
    from ..training.memory import GIB, Device
    from .terminal import Terminal

    try:
        if resume:
            same_settings(config, folder)
        device = Device(int(gpu_memory * GIB), gpu=True) if gpu_memory is not None else None
        plan = describe(config, folder, resume, device, note=partial(echo, err=True))
    except ValueError as error:
        raise Refused(str(error)) from None
    table = Table.grid(padding=(0, 2))
    for what, said in plan.lines:
        table.add_row(what, said)
    Terminal().print(table)
    for lack in plan.missing:
        echo(f"missing: {lack}")
    echo("nothing is missing; leave out --dry-run to start" if not plan.missing else "it cannot start like this")
    return 1 if plan.missing else 0


def _train(config: Config, folder: Path, resume: bool) -> int:
    from ..training.launch import REFUSALS, launch
    from ..training.ranks import RankError, first
    from .live import Live
    from .terminal import Terminal

    title = f"{folder}: {config.model.name}, {config.grpo.preset}"
    console = Terminal(file=sys.stdout)  # wherever an engine sends what it prints itself
    try:
        run = launch(config, folder, resume=resume, observer=Live(config.train.steps, title, console))
    except REFUSALS as error:
        if _is_rank() or not first():  # whose parent says it, or the first of torchrun's
            return Refused.exit_code
        raise Refused(str(error)) from None
    except RankError as error:
        raise click.ClickException(str(error)) from None
    return _ending(run.summary, folder) if first() and not _is_rank() else 0


def _is_rank() -> bool:
    from ..training.ranks import started

    return started()


def _ending(summary: dict[str, Any], folder: Path) -> int:
    from .terminal import Terminal

    console = Terminal(highlight=False)
    console.print(before_and_after(summary))
    for line in (
        f"{summary['steps']} steps in {summary['train_seconds']:.0f} s, evaluations included; where to look next:",
        f"  the plot      {folder / 'dynamics.png'}",
        f"  the rollouts  microcoder rollouts {folder} --worst 5",
        f"  go on         microcoder train {folder} --resume train.steps={2 * summary['steps']}",
    ):
        console.print(line, soft_wrap=True)
    return 0


def before_and_after(summary: dict[str, Any]) -> Table | str:
    """Return the summary of a run as a table: before and after."""
    from rich.table import Table

    before, after = summary["before"], summary["after"]
    if before is None or after is None:
        return "no evaluation before and after: the settings have no test problems"
    table = Table(title=f"{summary['model']} on {after['problems']} test problems, mean of {after['tries']} tries")
    table.add_column("", no_wrap=True)
    for name in ("before", "after", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    was, now = before["accuracy"], after["accuracy"]
    table.add_row("accuracy", _share(was), _share(now), _change(was, now))
    table.add_row("  its 95% interval", _interval(before), _interval(after), "")
    for level, part in after["by_difficulty"].items():
        was = before["by_difficulty"].get(level, {}).get("accuracy")
        table.add_row(f"  difficulty {level}", _share(was), _share(part["accuracy"]), _change(was, part["accuracy"]))
    if "unseen_accuracy" in after:
        was, now = before["unseen_accuracy"], after["unseen_accuracy"]
        table.add_row("  unseen depths", _share(was), _share(now), _change(was, now))
    for label, name, form in ROWS:
        if before.get(name) is not None and after.get(name) is not None:
            table.add_row(label, form.format(before[name]), form.format(after[name]), "")
    return table


def _interval(side: dict[str, Any]) -> str:
    low, high = side["accuracy_low"], side["accuracy_high"]
    # where all problems scored the same, resampling them says nothing
    return f"{low:.1%} to {high:.1%}" if low is not None and low < high else ""


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _change(before: float | None, after: float | None) -> str:
    return "" if before is None or after is None else f"{100 * (after - before):+.1f} points"
