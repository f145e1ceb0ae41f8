"""`microcoder train`: a configuration in, a run directory out, and a display of how it goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import Refused
from .settings import WithSettings, complete_setting

if TYPE_CHECKING:
    from ..config import Config

CHANGEABLE = {  # settings that may be other ones when a run goes on, for they change nothing that was done
    "train.steps",
    "train.eval_every",
    "train.save_every",
    "train.keep_checkpoints",
    "train.trackers",
    "train.folder",
    "train.name",
    "judge.workers",
    "judge.queue",
    "rollout.batch",
}


class TrainCommand(WithSettings):
    section = "train"


@click.command("train", cls=TrainCommand)
@click.argument("words", nargs=-1, metavar="[CONFIG] [section.key=value ...]", shell_complete=complete_setting)
@click.option("--resume", is_flag=True, help="Go on with a run from its last checkpoint, exactly.")
@click.option("--dry-run", is_flag=True, help="Print what would be done, and what is missing.")
def command(words: tuple[str, ...], resume: bool, dry_run: bool) -> int:
    """Train a model with reinforcement learning on problems that the judge decides.

    CONFIG is a TOML file, a configuration that came with the package (`microcoder ls`), or a run such as runs/a, whose
    settings are taken. All settings: microcoder config. On several GPUs: accelerate launch -m microcoder.cli train ...
    """
    config, folder = settings_of(words)
    try:
        if dry_run:
            return _dry_run(config, folder)
        return _train(config, folder, resume)
    except KeyboardInterrupt:
        if (folder / "run.json").exists():
            click.echo(f"\nstopped; to go on from the last checkpoint: microcoder train {folder} --resume", err=True)
        return 130


def settings_of(words: tuple[str, ...]) -> tuple[Config, Path]:
    """The configuration, and the folder of its run."""
    from ..config import SETTING, ConfigError, load
    from ..configs import shipped
    from ..schema import nearest

    named = bool(words) and SETTING.fullmatch(words[0]) is None
    path = Path(words[0]) if named else None
    stem = "run"
    if path is not None:
        stem = path.stem
        if path.is_dir() and (path / "config.toml").exists():
            stem, path = path.name, path / "config.toml"
        elif not path.exists():
            if words[0] not in shipped():
                if path.suffix == ".toml" or "/" in words[0]:
                    raise Refused(f"there is no file {words[0]}; to begin one: microcoder cp demo {words[0]}")
                hint = nearest(words[0], shipped()) or f"; there are {', '.join(shipped())}"
                raise Refused(f"{words[0]!r} is neither a file nor a configuration of the package{hint}")
            path = shipped()[words[0]]
    try:
        config = load(path, words[1:] if named else words)
    except ConfigError as error:
        raise Refused(str(error)) from None
    return config, Path(config.train.folder) / (config.train.name or stem)


def _dry_run(config: Config, folder: Path) -> int:
    from rich.console import Console
    from rich.table import Table

    from ..engines.batches import PlanError
    from ..engines.planning import describe
    from ..engines.training import quiet

    quiet()
    try:
        plan = describe(config, folder)
    except (PlanError, ValueError) as error:
        raise Refused(str(error)) from None
    table = Table.grid(padding=(0, 2))
    for what, said in plan.lines:
        table.add_row(what, said)
    Console().print(table)
    for lack in plan.missing:
        click.echo(f"missing: {lack}")
    click.echo("nothing is missing; leave out --dry-run to start" if not plan.missing else "it cannot start like this")
    return 1 if plan.missing else 0


def _train(config: Config, folder: Path, resume: bool) -> int:
    from ..config import to_toml
    from ..engines.batches import PlanError, batches
    from ..engines.problems import DataError
    from ..files import FileError
    from ..grpo import plan
    from ..judge import JudgeError
    from ..models import ModelError
    from ..run import Run, RunError

    try:
        batches(config)
        plan(1.0, config.train.max_response_tokens, [s.model_dump(exclude_none=True) for s in config.train.stages])
        if resume:
            _same_settings(config, folder)
            run = Run.resume(folder)
        else:
            run = Run.create(folder, to_toml(config), {"engine": "trl", "model": config.model.name})
        with run:
            summary = _follow(config, run)
    except (PlanError, DataError, ModelError, RunError, FileError, JudgeError, ValueError) as error:
        raise Refused(str(error)) from None
    return _ending(summary, folder)


def _same_settings(config: Config, folder: Path) -> None:
    """A run goes on with its own settings: others would make it another run."""
    from ..config import load
    from ..config.toml import toml_value

    if not (folder / "config.toml").exists():
        raise Refused(f"{folder} holds no run to go on with; leave out --resume to begin one")
    before = load(folder / "config.toml").model_dump()
    now = config.model_dump()
    changed = [
        f"{section}.{key} was {toml_value(value)}, now {toml_value(now[section][key])}"
        for section, values in before.items()
        for key, value in values.items()
        if now[section][key] != value and f"{section}.{key}" not in CHANGEABLE
    ]
    if changed:
        raise Refused(
            f"{folder} was begun with other settings: {'; '.join(changed)}; "
            f"to go on with its own: microcoder train {folder} --resume"
        )


def _follow(config: Config, run: Any) -> dict[str, Any]:
    from .live import Live

    with Live(config.train.steps, f"{run.path}: {config.model.name}, {config.grpo.preset}") as live:
        live.phase("loading")
        from ..engines.calibrating import choose
        from ..engines.ending import finish
        from ..engines.training import train

        train(config, run, live, choose=lambda settings: choose(settings, run, live))
    return finish(run.path, config)


def _ending(summary: dict[str, Any], folder: Path) -> int:
    from rich.console import Console

    from .ending import render

    console = Console()
    console.print(render(summary))
    for line in (
        f"{summary['steps']} steps in {summary['train_seconds']:.0f} s, evaluations included; where to look next:",
        f"  the plot      {folder / 'dynamics.png'}",
        f"  the rollouts  microcoder rollouts {folder} --worst 5",
        f"  go on         microcoder train {folder} --resume train.steps={2 * summary['steps']}",
    ):
        console.print(line, soft_wrap=True, highlight=False)
    return 0
