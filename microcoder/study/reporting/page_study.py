"""The section of a study: what it is about, its figure and its arms at each scale, its claims test by test."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from ..deciding import CONTRADICTED, LEVEL, SUPPORTED, Decision
from ..effects import Effect
from ..words import comparison, effect_words, expected_words, p_words, share_words
from .gathering import StudyRuns, in_order
from .markdown import for_markdown, picture, table
from .results import Decided, Key, arm_row

Figures = Mapping[tuple[str, str], Sequence[str]]  # (scale, study) -> paths without suffix; study "": the forest plot
ARM_HEAD = ("arm", "seeds", "accuracy before", "after (95%)", "tokens", "D", "truncated", "masked", "reward", "s/step")


def study_sections(scales: Sequence[Decided], figures: Figures) -> Iterator[str]:
    for name in in_order({name for each in scales for name, study in each.runs.studies.items() if study.was_run}):
        there = [each for each in scales if name in each.runs.studies and each.runs.studies[name].was_run]
        study = there[0].runs.studies[name]
        yield f"## {for_markdown(study.title)}"
        figure = f" The paper's figure {study.figure}." if study.figure else ""
        yield (for_markdown(study.about) + figure).strip()
        for each in there:
            yield f"### {for_markdown(study.title)} at {each.name}"
            yield from (picture(f"{study.title} at {each.name}", file) for file in figures.get((each.name, name), ()))
            yield arms_table(each.runs.studies[name])
        for claim in study.claims:
            yield f"**{claim.number}. {for_markdown(claim.text)}**"
            yield from claim_parts(there, (name, claim.number))


def arms_table(study: StudyRuns) -> str:
    rows = []
    for arm in study.arms.values():
        row = arm_row(arm)
        rows.append(
            (
                f"`{arm.name}` {for_markdown(arm.label) if arm.label != arm.name else ''}".rstrip(),
                str(len(arm.runs)),
                share_words(row["accuracy_before"].estimate),
                accuracy_words(row["accuracy_after"]),
                number(row["length"], 0),
                number(row["diversity"], 3),
                share_words(row["truncated_share"].estimate),
                share_words(row["masked_share"].estimate),
                number(row["reward"], 3),
                f"{min(row['step_s'].values):.2f}" if row["step_s"].values else "",
            )
        )
    return table(ARM_HEAD, rows)


def accuracy_words(effect: Effect) -> str:
    words = share_words(effect.estimate)
    if effect.low is None or effect.high is None:
        return words
    return f"{words} ({100 * effect.low:.1f} to {100 * effect.high:.1f})"


def number(effect: Effect, digits: int) -> str:
    return "" if math.isnan(effect.estimate) else f"{effect.estimate:.{digits}f}"


def claim_parts(scales: Sequence[Decided], key: Key) -> Iterator[str]:
    """The tests of a claim at each scale in a table, then a sentence for each scale."""
    rows, sentences = [], []
    for each in (each for each in scales if key in each.decisions):
        decision = each.decisions[key]
        for test, effect in decision.tests:
            seeds = f"{len(effect.values)}" + f" ({effect.left_out} left out)" * bool(effect.left_out)
            rows.append((each.name, comparison(test), expected_words(test), effect_words(test, effect), seeds))
        sentences.append(f"- {each.name}: {sentence(decision, each.adjusted.get(key))}")
    yield table(("scale", "test", "expected", "found (95%)", "seeds"), rows, 4)
    yield "\n".join(sentences)


def sentence(decision: Decision, adjusted: tuple[float, float] | None) -> str:
    if adjusted is None:
        return f"**not run**: {decision.words}."
    holds, fails = (p_words(p) for p in adjusted)
    if decision.verdict == CONTRADICTED:
        return f"**contradicted**; adjusted p against it {fails}."
    if decision.verdict == SUPPORTED:
        return f"**supported**: every test reaches its size; adjusted p for it {holds}."
    ps = f"adjusted p for it {holds}, against it {fails}"
    if adjusted[0] > LEVEL:
        return f"**undecided**: it is shown neither to hold nor to fail; {ps}."
    return f"**undecided**: not every test reaches its size, and that one falls short of it is not shown either; {ps}."
