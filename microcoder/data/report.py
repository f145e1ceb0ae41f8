"""A page about a finished run of the pipeline: what was kept and dropped, where and why, and drops to check by eye.

One HTML file without scripts or anything to load, so that it can be sent around.
"""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from .charts import flow, histogram
from .difficulty.select import BY_SCORE, band_of
from .parts import Counts, kept_parts, read_losses, read_records
from .pipeline import STAGES, from_json

EXAMPLES = 4  # of each reason


@dataclass
class Done:
    """A step that is finished."""

    name: str  # filter/2-duplicates
    folder: Path
    counts: Counts
    seconds: float


@dataclass
class Kept:
    """Distributions over what is left at the end."""

    sources: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    tags: Counter[str] = field(default_factory=Counter)
    years: Counter[str] = field(default_factory=Counter)
    values: dict[str, list[float]] = field(default_factory=dict)  # by name, for histograms


MEASURED = {  # of notes: title
    "difficulty": "difficulty, 0 easy to 1 hard",
    "strength": "test strength: wrong variants refused",
    "quality": "text quality",
    "reference_cpu_s": "CPU seconds of the reference",
}


def steps_of(out: Path) -> list[Done]:
    """In the order in which they were made."""
    found = []
    for stage in STAGES:
        for marker in sorted((out / stage).glob("*/done.json")):
            data = json.loads(marker.read_text(encoding="utf-8"))
            name = f"{stage}/{marker.parent.name}"
            found.append(Done(name, marker.parent, from_json(data), data["seconds"]))
    return found


def kept_of(folder: Path) -> Kept:
    found = Kept()
    for part in kept_parts(folder):
        for record in read_records(part):
            problem = record.problem
            found.sources[problem.source or "unknown"] += 1
            found.kinds[problem.kind] += 1
            found.labels[problem.difficulty or "no label"] += 1
            found.tags.update(tag for tag in problem.tags if tag == "unverified")
            found.years[problem.date[:4] or "unknown"] += 1
            measured = {name: record.notes[name] for name in MEASURED if record.notes.get(name) is not None}
            sizes = {
                "statement, characters": len(problem.statement),
                "tests of a problem": len(problem.tests) or len(problem.asserts),
            }
            for name, value in {**measured, **sizes}.items():
                found.values.setdefault(name, []).append(float(value))
    return found


@dataclass
class Lost:
    """What a step has dropped."""

    examples: dict[str, list[tuple[Any, Any]]] = field(default_factory=dict)  # a few (problem, loss) of each reason
    sources: Counter[tuple[str, str]] = field(default_factory=Counter)  # by (source, reason)


def lost_by(step: Done) -> Lost:
    found = Lost()
    for part in sorted((step.folder / "dropped").glob("*.jsonl.gz")):
        for record, loss in read_losses(part):
            found.sources[record.problem.source or "unknown", loss.reason] += 1
            some = found.examples.setdefault(loss.reason, [])
            if len(some) < EXAMPLES:
                some.append((record.problem, loss))
    return found


def page(out: Path) -> str:
    """The whole page."""
    steps = steps_of(out)
    if not steps:
        raise FileNotFoundError(f"{out} holds no finished step; make some: microcoder data run data.toml")
    kept = kept_of(steps[-1].folder)
    losses = [lost_by(step) for step in steps]
    first, last = steps[0].counts.seen, steps[-1].counts.kept
    body = [
        "<h1>Dataset report</h1>",
        f"<p><b>{last:,}</b> of {first:,} problems are kept ({last / max(first, 1):.0%}).</p>",
        flow([(step.name, step.counts.kept, dict(step.counts.dropped.most_common())) for step in steps], first),
        "<h2>By step and reason</h2>",
        _table(("step", "seen", "kept", "dropped", "reason", "seconds"), _rows(steps)),
        "<h2>By source</h2>",
        _table(("source", "seen", "kept", "share", "dropped"), _by_source(kept, losses)),
        *[_selection(step) for step in steps if step.name.endswith("-select")],
        "<h2>What is kept</h2>",
        *[_counted(title, counter) for title, counter in _counters(kept)],
        "<div>",
        *[histogram(MEASURED.get(name, name), values) for name, values in kept.values.items()],
        "</div>",
        "<h2>Drops to check by eye</h2>",
        *[_examples(step, lost) for step, lost in zip(steps, losses, strict=True)],
    ]
    return HEAD + "\n".join(body) + "\n</body></html>\n"


def _rows(steps: Sequence[Done]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for step in steps:
        counts = step.counts
        reasons: Sequence[tuple[str, int]] = counts.dropped.most_common() or [("", 0)]
        for n, (reason, count) in enumerate(reasons):
            start = (step.name, f"{counts.seen:,}", f"{counts.kept:,}") if n == 0 else ("", "", "")
            end = f"{step.seconds:.1f}" if n == 0 else ""
            rows.append((*start, f"{count:,}" if reason else "", reason, end))
    return rows


def _by_source(kept: Kept, losses: Sequence[Lost]) -> list[tuple[str, ...]]:
    lost: Counter[tuple[str, str]] = sum((each.sources for each in losses), Counter())
    rows: list[tuple[str, ...]] = []
    for source in sorted({*kept.sources, *(source for source, _ in lost)}):
        reasons = Counter({reason: count for (of, reason), count in lost.items() if of == source})
        stays, seen = kept.sources[source], kept.sources[source] + reasons.total()
        told = ", ".join(f"{reason} {count:,}" for reason, count in reasons.most_common())
        rows.append((source, f"{seen:,}", f"{stays:,}", f"{stays / seen:.0%}", told))
    return rows


def _selection(step: Done) -> str:
    """What the choice by difficulty made of each band."""
    bands: Counter[tuple[str, str]] = Counter()  # (band, "after" or the reason of a drop)
    for part in kept_parts(step.folder):
        bands.update((band_of(record), "after") for record in read_records(part))
    for part in sorted((step.folder / "dropped").glob("*.jsonl.gz")):
        bands.update((band_of(record), loss.reason) for record, loss in read_losses(part))
    before = {band: sum(count for (of, _), count in bands.items() if of == band) for band in BY_SCORE.names}
    after = {band: bands[band, "after"] for band in BY_SCORE.names}
    rows = []
    for band in BY_SCORE.names:
        drops = (f"{bands[band, reason]:,}" for reason in ("too_easy", "over_target"))
        shares = (f"{count[band] / max(1, sum(count.values())):.0%}" for count in (before, after))
        rows.append((band, f"{before[band]:,}", next(shares), *drops, f"{after[band]:,}", next(shares)))
    head = ("band", "before", "share", "too easy", "over target", "after", "share")
    return "<h2>Selection by difficulty</h2>" + _table(head, rows)


def _counters(kept: Kept) -> list[tuple[str, Counter[str]]]:
    named = {"kind": kept.kinds, "difficulty label": kept.labels, "year": kept.years}
    return [*named.items(), *([("mark", kept.tags)] if kept.tags else [])]


def _counted(title: str, counter: Counter[str]) -> str:
    rows = [(name, f"{count:,}") for name, count in islice(counter.most_common(), 20)]
    return _table((title, "problems"), rows)


def _examples(step: Done, lost: Lost) -> str:
    parts = []
    for reason, items in sorted(lost.examples.items()):
        shown = "".join(
            f"<details><summary><code>{html.escape(problem.id)}</code> {html.escape(loss.detail[:300])}</summary>"
            f"<pre>{html.escape(problem.statement[:1500] or '(no statement)')}</pre></details>"
            for problem, loss in items
        )
        parts.append(f"<h3>{step.name}: {html.escape(reason)} ({step.counts.dropped[reason]:,})</h3>{shown}")
    return "".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    lines = ["<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return f"<table><tr>{top}</tr>{''.join(lines)}</table>"


HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Dataset report</title><style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; color: #1b1f24 }
table { border-collapse: collapse; margin: 1em 0; display: inline-table; margin-right: 2em; vertical-align: top }
td, th { padding: .2em .8em; border-bottom: 1px solid #d8dee4; text-align: left }
pre { white-space: pre-wrap; background: #f6f8fa; padding: .8em; max-height: 20em; overflow: auto }
summary { cursor: pointer }
svg { max-width: 100%; height: auto }
figure { display: inline-block; margin: 1em 1em 1em 0 }
</style></head><body>
"""
