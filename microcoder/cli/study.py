"""`microcoder study`: the paper's claims as controlled studies. What there is, the runs, the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import Refused
from .completion import complete_study
from .shown import echo
from .study_ls import ls
from .study_report import report

if TYPE_CHECKING:
    from ..study.plan import Study


@click.group("study")
def command() -> None:
    """Run the paper's claims as controlled studies, and decide them."""


@command.command("run")
@click.argument("words", nargs=-1, metavar="NAME... [section.key=value ...]", shell_complete=complete_study)
@click.option("--scale", "scale_name", default="nano", show_default=True, help="The size of the runs: nano, smollm2.")
@click.option("--seeds", type=click.IntRange(min=1), help="Seeds of each arm; else as the scale says.")
@click.option("--first-seed", type=click.IntRange(min=0), default=0, help="Number of the first seed.")
@click.option("--out", default="studies-out", show_default=True, type=click.Path(), help="Output folder.")
@click.option("--together", type=click.IntRange(min=1), help="Runs side by side; else as the scale says.")
@click.option("--stop-after", type=click.FloatRange(min=0), default=float("inf"), help="Stop after so many seconds.")
@click.option("--dry-run", is_flag=True, help="List the runs without making them.")
def run(
    words: tuple[str, ...],
    scale_name: str,
    seeds: int | None,
    first_seed: int,
    out: str,
    together: int | None,
    stop_after: float,
    dry_run: bool,
) -> int:
    """Make the runs of some studies.

    NAME is one of `microcoder study ls`, all, or a file of your own. Each arm is run once with each seed, side by side
    with others. What is finished stays: after a stop or a kill the same command goes on. Settings are those of
    `microcoder train`; those that a study sets itself win.
    """
    from ..config import SETTING, usable_cores
    from ..judge import JudgeError
    from ..runs import RunError
    from ..study.launch import run_studies
    from ..study.plan import StudyError, choose_studies

    try:
        settings = [word for word in words if SETTING.fullmatch(word)]
        scale, studies = choose_studies([word for word in words if word not in settings], scale_name, settings)
        folder, numbers = Path(out) / scale.name, range(first_seed, first_seed + (seeds or scale.seeds))
        if dry_run:
            return _dry_run(studies, numbers, folder)
        together = together or scale.together or usable_cores()
        made = run_studies(studies, numbers, folder, together, stop_after, echo)
    except (StudyError, RunError, JudgeError, OSError) as error:
        raise Refused(str(error)) from None
    except KeyboardInterrupt:
        echo("\nstopped; what is finished stays, and the same command goes on from there", err=True)
        return 130
    for what, names in (("failed", made.failed), ("not finished", made.left)):
        if names:
            echo(f"{len(names)} {what}: {', '.join(names)}; the same command tries again")
    echo(f"{len(made.finished)} runs finished in {folder}; what they say: microcoder study report {out}")
    return 1 if made.failed else 0


def _dry_run(studies: list[Study], seeds: range, folder: Path) -> int:
    from ..study.launch import finished, planned, shared

    runs, where = planned(studies, seeds, folder)
    states = {}
    for each in runs:
        path = folder / "runs" / each.name
        states[each.name] = "finished" if finished(path) else "begun" if path.exists() else "to be made"
        echo(f"  {each.name:<40} {states[each.name]}")
    for line in shared(where):
        echo(line)
    counts = {state: list(states.values()).count(state) for state in dict.fromkeys(states.values())}
    echo(f"{len(runs)} runs in {folder}: {', '.join(f'{count} {state}' for state, count in counts.items())}")
    return 0


command.add_command(ls)
command.add_command(report)
