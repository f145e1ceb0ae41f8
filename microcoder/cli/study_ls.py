"""`microcoder study ls`: the studies, and the claims with what decides them."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from typing import TYPE_CHECKING, Any

import click

from . import Refused
from .shown import echo

if TYPE_CHECKING:
    from ..study.plan import Claim, Scale, Study

Verdicts = dict[tuple[str, int], str]  # of a study's claim


@click.command("ls")
@click.option("--scale", "scale_name", default="nano", show_default=True, help="The size of the runs: nano, smollm2.")
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
