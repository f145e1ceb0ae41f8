"""`microcoder study`: the paper's claims as controlled studies. What there is, the runs, the report."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import Refused
from .completion import complete_study
from .shown import echo

if TYPE_CHECKING:
    from ..study.plan import Claim, Scale, Study
    from ..study.results import Decided

SCALES = "Size of the runs: nano, testbed-small, testbed, smollm2, qwen."
Verdicts = dict[tuple[str, int], str]  # of a study's claim


@click.group("study")
def command() -> None:
    """Run the paper's claims as controlled studies, and decide them."""


@command.command("run")
@click.argument("words", nargs=-1, metavar="NAME... [section.key=value ...]", shell_complete=complete_study)
@click.option("--scale", "scale_name", default="nano", show_default=True, help=SCALES)
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
    from ..study.launch import missing, run_studies
    from ..study.plan import OUT, StudyError, choose_studies

    try:
        settings = [word for word in words if SETTING.fullmatch(word)]
        scale, studies = choose_studies([word for word in words if word not in settings], scale_name, settings)
        folder, numbers = Path(out) / scale.name, range(first_seed, first_seed + (seeds or scale.seeds))
        if dry_run:
            return _dry_run(studies, numbers, folder)
        if lacking := missing(studies, folder):
            command = scale.make.replace(OUT, str(folder))
            raise StudyError(f"{lacking[0]} is missing; to make it, from a clone of the project: {command}")
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


@command.command("ls")
@click.option("--scale", "scale_name", default="nano", show_default=True, help=SCALES)
@click.option("--out", type=click.Path(), help="Folder of reported studies: show their verdicts too.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def ls(scale_name: str, out: str | None, as_json: bool) -> None:
    """List the studies and the 34 claims.

    Each claim stands with what decides it: a statistic of runs, the arms that are compared, and what is expected.
    """
    from ..study.launch import plan
    from ..study.plan import ORDER, StudyError, find_scale, find_study, load_study
    from ..study.report import read_verdicts

    try:
        scale = find_scale(scale_name)
        studies = [load_study(find_study(name), scale) for name in ORDER]
        verdicts = read_verdicts(out, scale.name) if out else {}
    except StudyError as error:
        raise Refused(str(error)) from None
    runs = len(plan(studies, range(scale.seeds))[0])
    if as_json:
        echo(json.dumps(_record(scale, studies, runs, verdicts), indent=1))
        return
    echo(_table(scale, studies, runs))
    for study in studies:
        if study.claims:
            echo(f"\n{study.name}: {study.title} (figure {study.figure})")
        for claim in study.claims:
            echo(_claim(claim, verdicts))
    echo("\nrun one: microcoder study run truncation; list its runs first: --dry-run")


def _table(scale: Scale, studies: list[Study], runs: int) -> str:
    from ..layout import Table, aligned

    rows: list[tuple[str, ...]] = [
        (study.name, study.title, str(len(study.arms)), str(len(study.arms) * scale.seeds), _numbers(study))
        for study in studies
    ]
    totals = (sum(len(study.arms) for study in studies), runs, sum(len(study.claims) for study in studies))
    rows.append(("all", "arms with the same settings share their runs", *map(str, totals)))
    title = f"{scale.name}: {scale.about}; {scale.seeds} seeds"
    return aligned(Table(title, ("study", "", "arms", "runs", "claims"), rows, words=2))


def _numbers(study: Study) -> str:
    numbers = [claim.number for claim in study.claims]
    return f"{min(numbers)}-{max(numbers)}" if numbers else ""


def _claim(claim: Claim, verdicts: Verdicts) -> str:
    from ..study.phrases import comparison, expected_words

    verdict = verdicts.get((claim.study, claim.number), "")
    head = f"{claim.text} [{verdict}]" if verdict else claim.text
    tests = [f"{comparison(test)}: {expected_words(test)}".replace("`", "") for test in claim.tests]
    wrapped = [textwrap.fill(test, 112, initial_indent=" " * 6, subsequent_indent=" " * 8) for test in tests]
    return "\n".join([f"{claim.number:4}  {head}", *wrapped])


def _record(scale: Scale, studies: list[Study], runs: int, verdicts: Verdicts) -> dict[str, Any]:
    def claim(each: Claim) -> dict[str, Any]:
        verdict = verdicts.get((each.study, each.number))
        return dataclasses.asdict(each) | ({"verdict": verdict} if verdict else {})

    found = {
        study.name: {
            "title": study.title,
            "figure": study.figure,
            "about": study.about,
            "arms": {arm.name: arm.label for arm in study.arms},
            "runs": len(study.arms) * scale.seeds,
            "claims": [claim(each) for each in study.claims],
        }
        for study in studies
    }
    return {"scale": scale.name, "about": scale.about, "seeds": scale.seeds, "runs": runs, "studies": found}


@command.command("report")
@click.argument("out", type=click.Path())
@click.option("-o", "--output", type=click.Path(), help="Output page, a .md file; else OUT/report.md.")
@click.option("--no-figures", is_flag=True, help="Draw no figures; else they are beside the page, as PNG and SVG.")
@click.option("--json", "as_json", is_flag=True, help="Print OUT/report.json instead of the table.")
def report(out: str, output: str | None, no_figures: bool, as_json: bool) -> int:
    """Decide the claims by the runs in OUT: a page with verdicts, effects, intervals and figures.

    Runs that are not finished are left out, and named. OUT is what `study run --out` names.
    """
    from ..runs import RunError
    from ..study.plan import StudyError
    from ..study.report import write_report

    try:
        scales, page = write_report(out, output, not no_figures)
    except (StudyError, RunError) as error:
        raise Refused(str(error)) from None
    numbers = Path(out) / "report.json"
    if as_json:
        echo(numbers.read_text(encoding="utf-8"), nl=False)
        return 0
    echo("\n\n".join(map(_verdict_table, scales)))
    for scale in (each.runs for each in scales if each.runs.unfinished):
        echo(f"{scale.name}: {len(scale.unfinished)} of {scale.planned} runs are unfinished, and left out")
    echo(f"the page: {page}; its numbers: {numbers}")
    return 0


def _verdict_table(decided: Decided) -> str:
    """Return a table of verdicts: how many claims of each study have which."""
    from ..layout import Table, aligned
    from ..study.decisions import VERDICTS

    counts = Counter((study, decision.verdict) for (study, _), decision in decided.decisions.items())
    rows = [
        (study, *(str(counts[study, each] or "") for each in VERDICTS)) for study in dict.fromkeys(s for s, _ in counts)
    ]
    totals = [str(sum(counts[study, each] for study, *_ in rows)) for each in VERDICTS]
    return aligned(Table(decided.name, ("claims of", *VERDICTS), [*rows, ("all", *totals)]))
