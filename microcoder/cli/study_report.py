"""`microcoder study report`: what the runs of studies say of the claims."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import Refused
from .shown import echo

if TYPE_CHECKING:
    from ..study.results import Decided


@click.command("report")
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
    echo("\n\n".join(map(_table, scales)))
    for scale in (each.runs for each in scales if each.runs.unfinished):
        echo(f"{scale.name}: {len(scale.unfinished)} of {scale.planned} runs are unfinished, and left out")
    echo(f"the page: {page}; its numbers: {numbers}")
    return 0


def _table(decided: Decided) -> str:
    """Return a table of verdicts: how many claims of each study have which."""
    from ..layout import Table, aligned
    from ..study.decisions import VERDICTS

    counts = Counter((study, decision.verdict) for (study, _), decision in decided.decisions.items())
    rows = [
        (study, *(str(counts[study, each] or "") for each in VERDICTS)) for study in dict.fromkeys(s for s, _ in counts)
    ]
    totals = [str(sum(counts[study, each] for study, *_ in rows)) for each in VERDICTS]
    return aligned(Table(decided.name, ("claims of", *VERDICTS), [*rows, ("all", *totals)]))
