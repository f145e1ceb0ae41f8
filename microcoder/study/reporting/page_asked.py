"""What readers of the paper asked for, as Markdown: the mask by condition, T(D) and fixed temperatures, the judges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..deciding import NOT_RUN
from ..plan import ORDER
from ..words import share_words, signed
from .asked import CHOICE, NOTHING, by_diversity, mask_rows, policy_rows
from .markdown import for_markdown, table
from .page_study import accuracy_words, number
from .results import Decided


def asked_sections(scales: Sequence[Decided]) -> Iterator[str]:
    if not any(each.runs.studies.keys() & set(ORDER) for each in scales):
        return
    yield "## What readers of the paper asked for"
    for title, section in (
        ("The mask, condition by condition", _mask),
        ("T(D) beside fixed temperatures", _temperatures),
        ("What each judging policy gets wrong", _policies),
    ):
        yield f"### {title}"
        for each in scales:
            found = section(each)
            yield f"At {each.name}:" if found else f"At {each.name}: {NOT_RUN}."
            yield from found


def _mask(decided: Decided) -> list[str]:
    head = ("arm", "accuracy (95%)", f"points over {CHOICE}", f"points over {NOTHING}", "tokens", "D", "masked")
    rows = []
    for row in mask_rows(decided):
        others = [row["against"].get(name) for name in (CHOICE, NOTHING)]
        differences = ("" if effect is None else signed(effect, 100.0) for effect in others)
        length, diversity = number(row["length"], 0), number(row["diversity"], 3)
        masked = share_words(row["masked_share"].estimate)
        accuracy = accuracy_words(row["accuracy_after"])
        rows.append((for_markdown(row["label"]), accuracy, *differences, length, diversity, masked))
    return [table(head, rows)] if rows else []


def _temperatures(decided: Decided) -> list[str]:
    found = by_diversity(decided)
    if not found:
        return []
    rows = [
        (for_markdown(row["label"]), accuracy_words(row["accuracy_after"]), signed(row["gain"], 100.0))
        for row in found["against"]
    ]
    seeds: dict[str, list[str]] = {}  # what was chosen -> in which
    for seed, stages in found["chosen"].items():
        seeds.setdefault(_stages(stages), []).append(str(seed))
    chosen = "; ".join(f"{words} (seed{'s' * (len(of) > 1)} {', '.join(of)})" for words, of in seeds.items())
    own = f"T(D) itself ends at {accuracy_words(found['accuracy_after'])}. Its temperatures: {chosen}."
    return [table(("fixed", "accuracy (95%)", "points that T(D) has over it"), rows), own]


def _stages(stages: Sequence[tuple[int, float]]) -> str:
    words = [f"{float(temperature)}" + f" from step {step}" * (step > 1) for step, temperature in stages]
    return ", then ".join(words) or "not recorded"


def _policies(decided: Decided) -> list[str]:
    head = ("policy", "programs of", "right ones refused (95%)", "wrong ones accepted (95%)")
    rows = []
    for row in policy_rows(decided.runs):
        counts = (_counted(row[name]) for name in ("right_refused", "wrong_accepted"))
        rows.append((f"`{row['policy']}`", for_markdown(row["programs_of"]), *counts))
    note = (
        "Right and wrong are what the problems' own tests say. The intervals (Wilson's) take programs as independent; "
        "those of one run resemble each other, so new runs would scatter more."
    )
    return [table(head, rows, 2), note] if rows else []


def _counted(mistake: dict[str, Any]) -> str:
    words = f"{mistake['count']:,} of {mistake['of']:,}"
    if mistake["interval"] is None:
        return words
    low, high = mistake["interval"]
    return f"{words} ({100 * low:.1f} to {100 * high:.1f}%)"
