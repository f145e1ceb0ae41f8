"""The report as Markdown: verdicts, what was run, every claim, every study, and how claims are decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..deciding import CONTRADICTED, LEVEL, NOT_RUN, SUPPORTED, VERDICTS
from ..words import comparison, effect_words, expected_words, p_words
from .gathering import in_order
from .markdown import anchor, for_markdown, picture, table
from .page_asked import asked_sections
from .page_run import commands, what_was_run
from .page_study import Figures, study_sections
from .results import Decided, Key, deciding_test


def page(scales: Sequence[Decided], figures: Figures, out: str) -> str:
    """`out` names the folder in the commands that make it all again."""
    parts = [
        "# Claims and verdicts",
        _counts(scales),
        "## What was run",
        *what_was_run([each.runs for each in scales]),
        *(_claim_sections(scales, figures) if any(each.decisions for each in scales) else ()),
        *study_sections(scales, figures),
        *asked_sections(scales),
        "## How claims are decided",
        HOW,
        commands([each.runs for each in scales], out),
    ]
    return "\n\n".join(parts) + "\n"


def _claim_sections(scales: Sequence[Decided], figures: Figures) -> Iterator[str]:
    yield "## Every claim"
    yield _claims_table(scales)
    yield READING
    yield from (
        picture(f"Effects at {each.name}", file) for each in scales for file in figures.get((each.name, ""), ())
    )
    yield "## Contradicted"
    yield "\n".join(_contradicted(scales)) or "No claim is."
    if len(scales) > 1:
        yield "## Where scales disagree"
        yield "\n".join(_disagreeing(scales)) or "On no claim."


def _counts(scales: Sequence[Decided]) -> str:
    counts = [Counter(decision.verdict for decision in each.decisions.values()) for each in scales]
    columns = [[each.name for each in scales], *([str(count[verdict]) for count in counts] for verdict in VERDICTS)]
    return table(("scale", *VERDICTS), zip(*columns, strict=True))


def _claims_table(scales: Sequence[Decided]) -> str:
    rows = []
    for name in in_order({key[0] for each in scales for key in each.decisions}):
        study = next(each.runs.studies[name] for each in scales if name in each.runs.studies)
        there = any(name in each.runs.studies and each.runs.studies[name].was_run for each in scales)
        title = for_markdown(study.title)
        rows.append(("", f"[**{title}**]({anchor(study.title)})" if there else f"**{title}**", *("" for _ in scales)))
        for claim in study.claims:
            cells = (_cell(each, (name, claim.number)) for each in scales)
            rows.append((str(claim.number), for_markdown(claim.text), *cells))
    return table(("", "claim", *(each.name for each in scales)), rows, 2 + len(scales))


def _cell(decided: Decided, key: Key) -> str:
    decision = decided.decisions.get(key)
    if decision is None or decision.verdict == NOT_RUN:
        return NOT_RUN
    verdict = f"**{decision.verdict}**" if decision.verdict in (SUPPORTED, CONTRADICTED) else decision.verdict
    return f"{verdict}<br>{effect_words(*deciding_test(decision))}"


def _contradicted(scales: Sequence[Decided]) -> Iterator[str]:
    for each in scales:
        for key, decision in each.decisions.items():
            if decision.verdict == CONTRADICTED:
                test, effect = deciding_test(decision)
                yield (
                    f"- Claim {decision.claim.number} at {each.name}: **{for_markdown(decision.claim.text)}** "
                    f"{comparison(test)}: expected {expected_words(test)}, found {effect_words(test, effect)}; "
                    f"adjusted p against the claim {p_words(each.adjusted[key][1])}."
                )


def _disagreeing(scales: Sequence[Decided]) -> Iterator[str]:
    for key in dict.fromkeys(key for each in scales for key in each.decisions):
        found = {each.name: each.decisions[key] for each in scales if key in each.decisions}
        if {SUPPORTED, CONTRADICTED} <= {decision.verdict for decision in found.values()}:
            claim = next(iter(found.values())).claim
            verdicts = ", ".join(f"{decision.verdict} at {name}" for name, decision in found.items())
            yield f"- Claim {claim.number}: **{for_markdown(claim.text)}** {verdicts}."


READING = """\
A claim with several tests is shown by the one that decided it. Points are hundredths, of an accuracy or a share; "per
arm" is the change from one arm to the next. In brackets: the 95% interval over seeds, of this effect by itself. The
verdict is stricter than that, since it allows for the number of claims."""

HOW = f"""\
A claim is a list of tests that stood in the study's file before any run: a statistic of a run's metrics, the arms that
are compared, and what is expected of them. Arms share their seeds, so a difference is taken within each seed, and its
95% interval is Student's over the seeds. How far seeds lie apart is estimated from the study's other arms too, as much
as spreads are alike in this report (moderated t statistics, Smyth 2004). One-sided t tests say what speaks for a test
(the effect is not 0, and has the claimed direction; `same`: it lies within the size) and what speaks against it (it
falls short of the size; `same`: it lies beyond it). All tests of a claim must hold, so the largest p speaks for it; one
that fails is enough, so the smallest speaks against it, times their number. Over all claims of a scale the share of
false verdicts is held at {LEVEL:.0%} (Benjamini and Hochberg), for and against separately. The p values of this report
are adjusted for that, so that those of at most {LEVEL:g} count.

- **supported**: what speaks for it counts, and every estimate reaches the size that was written down (`same`: every
  interval lies within it).
- **contradicted**: what speaks against it counts: the effect is absent here, smaller than that size, or of the other
  sign.
- **undecided**: neither. The interval says how large an effect these runs leave possible; more seeds narrow it.
- **not run**: an arm has no finished run, or fewer than two seeds have numbers in all arms.

A verdict is one about these models, data and sizes. All of it again (settings that were given besides stand in each
run's `config.toml`):"""
