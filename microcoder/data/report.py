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
    "strength": "test strength: share of wrong variants that the tests refuse",
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


def examples(step: Done, count: int = EXAMPLES) -> dict[str, list[tuple[Any, Any]]]:
    """A few drops of each reason."""
    found: dict[str, list[tuple[Any, Any]]] = {}
    for part in sorted((step.folder / "dropped").glob("*.jsonl.gz")):
        for record, loss in read_losses(part):
            if len(found.setdefault(loss.reason, [])) < count:
                found[loss.reason].append((record.problem, loss))
        if all(len(found.get(reason, ())) >= min(count, n) for reason, n in step.counts.dropped.items()):
            break
    return found


def page(out: Path) -> str:
    """The whole page."""
    steps = steps_of(out)
    if not steps:
        raise FileNotFoundError(f"{out} holds no finished step; make some: microcoder data run data.toml")
    kept = kept_of(steps[-1].folder)
    first, last = steps[0].counts.seen, steps[-1].counts.kept
    body = [
        "<h1>Dataset report</h1>",
        f"<p><b>{last:,}</b> of {first:,} problems are kept ({last / max(first, 1):.0%}).</p>",
        flow([(step.name, step.counts.kept, dict(step.counts.dropped.most_common())) for step in steps], first),
        "<h2>By step and reason</h2>",
        _table(("step", "seen", "kept", "dropped", "reason", "seconds"), _rows(steps)),
        "<h2>What is kept</h2>",
        *[_counted(title, counter) for title, counter in _counters(kept)],
        *[histogram(MEASURED.get(name, name), values) for name, values in kept.values.items()],
        "<h2>Drops to check by eye</h2>",
        *[_examples(step) for step in steps],
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


def _counters(kept: Kept) -> list[tuple[str, Counter[str]]]:
    named = {"source": kept.sources, "kind": kept.kinds, "difficulty label": kept.labels, "year": kept.years}
    return [*named.items(), *([("mark", kept.tags)] if kept.tags else [])]


def _counted(title: str, counter: Counter[str]) -> str:
    rows = [(name, f"{count:,}") for name, count in islice(counter.most_common(), 20)]
    return _table((title, "problems"), rows)


def _examples(step: Done) -> str:
    parts = []
    for reason, items in sorted(examples(step).items()):
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
