"""The report of a pipeline run as one page: problems kept and dropped, by step and reason, and drops to check by eye.

It is one HTML file without scripts or other files, so that it can be sent by mail. Its pictures are SVG.
"""

from __future__ import annotations

import html
import json
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..files import writable
from .collection import by_number
from .difficulty.select import BY_SCORE, band_of, lot
from .parts import OUTSIDE, Counts, dropped_parts, kept_parts, name_of, read_losses, read_records
from .pipeline import STAGES
from .record import Record

EXAMPLES = 4  # of each reason
MARKS = ("unverified", "many_answers")  # tags of problems that training may refuse
STATEMENT = 1_500  # characters of a statement that are shown
KEPT, DROPPED, INK = "#2f6f9f", "#c9744f", "#1b1f24"
WIDTH, HEIGHT, BAR = 150, 260, 26  # of a step, of all records, of a bar
Origin = tuple[str, str]  # (number of the source in the settings, name of a problem's source)
Example = tuple[int, str, str, str]  # (rank in the draw, id, detail, statement)


@dataclass
class Done:
    """A finished step."""

    name: str  # filter/2-duplicates
    folder: Path
    counts: Counts
    seconds: float


@dataclass
class Distributions:
    """Distributions over the problems that are left at the end."""

    sources: Counter[Origin] = field(default_factory=Counter)
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


FORGED = {  # of extra["forge"]: title
    "tests": "tests",
    "mutants": "mutants",
    "alive": "mutants that live",
    "adversaries": "adversaries",
    "adversaries_alive": "adversaries that live",
}


def steps_of(out: Path) -> list[Done]:
    """Return the finished steps of a run, in order."""
    found = []
    for stage in STAGES:
        for marker in sorted((out / stage).glob("*/done.json")):
            data = json.loads(marker.read_text(encoding="utf-8"))
            name = f"{stage}/{marker.parent.name}"
            found.append(Done(name, marker.parent, Counts.of(data["kept"], data["dropped"]), data["seconds"]))
    return found


def kept_of(folder: Path) -> Distributions:
    """Count the problems that a step has kept."""
    found = Distributions()
    for part in kept_parts(folder):
        for record in read_records(part):
            problem = record.problem
            found.sources[number_of(part), problem.source] += 1
            found.kinds[problem.kind] += 1
            found.labels[problem.difficulty or "no label"] += 1
            found.tags.update(tag for tag in problem.tags if tag in MARKS)
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
    """The problems that a step has dropped."""

    examples: dict[str, list[Example]] = field(default_factory=dict)  # a sample of each reason
    sources: Counter[tuple[Origin, str]] = field(default_factory=Counter)  # by (origin, reason)


def lost_by(step: Done) -> Lost:
    """Count the drops of a step, and draw a few of each reason by a hash of the id, so always the same ones."""
    found = Lost()
    for part in dropped_parts(step.folder):
        for record, loss in read_losses(part):
            if loss.reason == OUTSIDE:  # excluded by the settings, so not a drop
                continue
            problem = record.problem
            found.sources[(number_of(part), problem.source), loss.reason] += 1
            drawn = found.examples.setdefault(loss.reason, [])
            place = lot(0, problem.id)
            if len(drawn) < EXAMPLES or place < drawn[-1][0]:
                insort(drawn, (place, problem.id, loss.detail[:300], problem.statement[:STATEMENT]))
                del drawn[EXAMPLES:]
    return found


def number_of(part: Path) -> str:
    """Return the number of a part's source: `02` for `02-00003`."""
    return name_of(part).rpartition("-")[0]


def origins(out: Path, found: Iterable[Origin]) -> dict[Origin, str]:
    """Name each origin after its source, with the file if two files would have the same name.

    An unreadable row has no source: it counts for the source of its file, if that has only one.
    """
    sources = by_number(out)
    names: dict[str, set[str]] = {}
    for number, name in found:
        names.setdefault(number, set()).update([name] if name else [])
    shown = {}
    for number, name in found:
        label = name or (min(names[number]) if len(names[number]) == 1 else "")
        source = sources.get(number, {"name": "", "file": ""})
        shared = any(label in others for of, others in names.items() if of != number)
        if shared and source["file"] and not source["name"]:  # sources with the same given name belong together
            label = f"{label} ({source['file']})"
        shown[number, name] = label or source["file"] or "unknown"
    return shown


def page(out: Path) -> str:
    """Return the report of the run in the folder `out` as HTML."""
    steps = steps_of(out)
    if not steps:
        raise FileNotFoundError(f"{out} holds no finished step; make some: microcoder data run data.toml")
    kept = kept_of(steps[-1].folder)
    losses = [lost_by(step) for step in steps]
    first, last, outside = steps[0].counts.seen, steps[-1].counts.kept, steps[0].counts.outside
    named = {"kind": kept.kinds, "difficulty label": kept.labels, "year": kept.years}
    named |= {"mark": kept.tags} if kept.tags else {}
    more = f" Another {outside:,} are outside of `ids` and were left aside." if outside else ""
    body = [
        "<h1>Dataset report</h1>",
        f"<p><b>{last:,}</b> of {first:,} problems are kept ({last / max(first, 1):.0%}).{more}</p>",
        flow([(step.name, step.counts.kept, dict(step.counts.dropped.most_common())) for step in steps], first),
        "<h2>By step and reason</h2>",
        _table(("step", "seen", "kept", "dropped", "reason", "seconds"), _rows(steps)),
        "<h2>By source</h2>",
        _table(("source", "seen", "kept", "share", "dropped"), _by_source(out, kept, losses)),
        *[_selection(step) for step in steps if step.name.endswith("-select")],
        *[_forged(step) for step in steps if step.name.startswith("forge/")],
        "<h2>What is kept</h2>",
        *[
            _table((title, "problems"), [(name, f"{count:,}") for name, count in counter.most_common(20)])
            for title, counter in named.items()
        ],
        "<div>",
        *[histogram(MEASURED.get(name, name), values) for name, values in kept.values.items()],
        "</div>",
        "<h2>Drops to check by eye</h2>",
        f"<p>At most {EXAMPLES} of each reason, drawn by a hash of their ids.</p>",
        *[_examples(step, lost) for step, lost in zip(steps, losses, strict=True)],
    ]
    return str(writable(HEAD + "\n".join(body) + "\n</body></html>\n"))


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


def _by_source(out: Path, kept: Distributions, losses: Sequence[Lost]) -> list[tuple[str, ...]]:
    lost: Counter[tuple[Origin, str]] = sum((each.sources for each in losses), Counter())
    named = origins(out, {*kept.sources, *(origin for origin, _ in lost)})
    rows: list[tuple[str, ...]] = []
    for source in sorted(set(named.values())):
        reasons: Counter[str] = Counter()
        for (origin, reason), count in lost.items():
            reasons[reason] += count * (named[origin] == source)
        reasons = +reasons
        stays = sum(count for origin, count in kept.sources.items() if named[origin] == source)
        seen = stays + reasons.total()
        told = ", ".join(f"{reason} {count:,}" for reason, count in reasons.most_common())
        rows.append((source, f"{seen:,}", f"{stays:,}", f"{stays / seen:.0%}", told))
    return rows


def _selection(step: Done) -> str:
    """Return the table of the selection by difficulty: problems of each band before and after."""
    bands: Counter[tuple[str, str]] = Counter()  # (band, "after" or the reason of a drop)
    for part in kept_parts(step.folder):
        bands.update((band_of(record), "after") for record in read_records(part))
    for part in dropped_parts(step.folder):
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


def _forged(step: Done) -> str:
    """Tests and their strength before and after the forge, why problems stay as they were, and examples of tests."""
    totals: Counter[tuple[str, str]] = Counter()
    reasons: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    drawn: list[Example] = []
    for part in kept_parts(step.folder):
        for record in read_records(part):
            about = record.problem.extra.get("forge") or {"reason": "not seen"}
            if "reason" in about:
                reasons[about["reason"]] += 1
                continue
            reasons["forged"] += 1
            left_out.update(about["left_out"])
            for when in ("before", "after"):
                totals.update({(when, name): n for name, n in about[when].items() if isinstance(n, int)})
            insort(drawn, (lot(0, record.problem.id), record.problem.id, *_new_tests(record)))
            del drawn[EXAMPLES:]
    rows = [
        (title, *(f"{totals[when, name]:,}" for when in ("before", "after")))
        for name, title in FORGED.items()
        if totals["before", "adversaries"] or not name.startswith("adversaries")
    ]
    shown = "".join(
        f"<details><summary><code>{html.escape(ident)}</code> {html.escape(said)}</summary>"
        f"<pre>{html.escape(tests)}</pre></details>"
        for _, ident, said, tests in drawn
    )
    tables = [
        _table(("of the forged problems", "before", "after"), rows),
        _table(("fate", "problems"), [(name, f"{count:,}") for name, count in reasons.most_common()]),
        _table(("inputs left out because", "inputs"), [(name, f"{n:,}") for name, n in left_out.most_common() if n]),
    ]
    return f"<h2>The test forge</h2>{''.join(tables)}<h3>Forged tests to check by eye</h3>{shown}"


def _new_tests(record: Record) -> tuple[str, str]:
    """What the forge did to a problem, and its first new tests, each with where it comes from and what it killed."""
    problem, about = record.problem, record.problem.extra["forge"]
    said = f"{len(about['tests'])} tests by {about['bounded_by']}; mutants alive {about['before']['alive']} -> "
    lines = []
    for made in about["tests"][:10]:
        n = made["test"]
        if problem.kind == "assert":
            test = problem.asserts[n][:200]
        else:
            test = f"{problem.tests[n].input[:150]} -> {problem.tests[n].output[:50]}"
        lines.append(f"{test}    ({made['by']}; killed {len(made['killed'])})")
    return f"{said}{about['after']['alive']} of {about['before']['mutants']}", "\n".join(lines)


def _examples(step: Done, lost: Lost) -> str:
    parts = []
    for reason, items in sorted(lost.examples.items()):
        shown = "".join(
            f"<details><summary><code>{html.escape(ident)}</code> {html.escape(detail)}</summary>"
            f"<pre>{html.escape(statement or '(no statement)')}</pre></details>"
            for _, ident, detail, statement in items
        )
        parts.append(f"<h3>{step.name}: {html.escape(reason)} ({step.counts.dropped[reason]:,})</h3>{shown}")
    return "".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    lines = ["<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return f"<table><tr>{top}</tr>{''.join(lines)}</table>"


HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Dataset report</title><style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; color: #1b1f24 }
table { border-collapse: collapse; margin: 1em 2em 1em 0; display: inline-block; vertical-align: top }
table { max-width: calc(100% - 2em); overflow-x: auto }
td, th { padding: .2em .8em; border-bottom: 1px solid #d8dee4; text-align: left }
pre { white-space: pre-wrap; background: #f6f8fa; padding: .8em; max-height: 20em; overflow: auto }
summary { cursor: pointer }
summary, code { overflow-wrap: anywhere }
svg { max-width: 100%; height: auto }
.flow { overflow-x: auto }
.flow svg { min-width: 44em }
figure { display: inline-block; margin: 1em 1em 1em 0 }
</style></head><body>
"""


# --- pictures


def flow(steps: Sequence[tuple[str, int, dict[str, int]]], first: int) -> str:
    """Draw the flow of records through steps (name, kept, dropped by reason), starting with `first` records."""
    scale = HEIGHT / max(first, 1)
    top, parts = 40, []
    lowest = top + HEIGHT
    before = first
    for n, (name, kept, dropped) in enumerate(steps):
        x = 10 + n * WIDTH
        tall, left = before * scale, kept * scale
        parts.append(f'<rect x="{x}" y="{top}" width="{BAR}" height="{max(left, 1):.1f}" fill="{KEPT}"/>')
        if tall > left:
            parts.append(
                f'<rect x="{x}" y="{top + left:.1f}" width="{BAR}" height="{tall - left:.1f}" fill="{DROPPED}"/>'
            )
        if n + 1 < len(steps):
            end = x + WIDTH
            parts.append(
                f'<path d="M{x + BAR},{top} H{end} V{top + left:.1f} H{x + BAR} Z" fill="{KEPT}" opacity=".18"/>'
            )
        stage, _, rest = name.partition("/")
        parts.append(_text(x, 14, stage, bold=True) + _text(x, 30, rest))
        parts.append(_text(x + BAR + 6, top + 14, f"{kept:,}", KEPT))
        y = top + HEIGHT + 20
        for reason, count in dropped.items():
            parts.append(_text(x, y, f"{count:,} {reason}", DROPPED))
            y += 15
        lowest = max(lowest, y)
        before = kept
    width = 20 + len(steps) * WIDTH
    return (
        f'<div class="flow" tabindex="0"><svg viewBox="0 0 {width} {lowest + 5}" width="{width}" role="img" '
        f'aria-label="records kept and dropped by step">{"".join(parts)}</svg></div>'
    )


def histogram(title: str, values: Sequence[float], bins: int = 24) -> str:
    """Draw a histogram; the largest hundredth of the values shares the last bar, so that outliers do not squeeze it."""
    if not values:
        return ""
    ordered = sorted(values)
    low, high = ordered[0], ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    span = (high - low) or 1.0
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, max(0, int((value - low) / span * bins)))] += 1
    most, wide, tall = max(counts), 12, 90
    bars = "".join(
        f'<rect x="{n * wide}" y="{20 + tall * (1 - count / most):.1f}" width="{wide - 1}" '
        f'height="{tall * count / most:.1f}" fill="{KEPT}"/>'
        for n, count in enumerate(counts)
    )
    ends = _text(0, 126, _number(low)) + _text(bins * wide, 126, _number(high), anchor="end")
    middle = f"median {_number(ordered[len(ordered) // 2])}, {len(values):,} problems"
    size = f'viewBox="0 0 {bins * wide} 132" width="{bins * wide}"'
    return (
        f'<figure><svg {size} role="img" aria-label="{html.escape(title)}">'
        f"{_text(0, 12, title)}{bars}{ends}</svg><figcaption>{middle}</figcaption></figure>"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _text(x: float, y: float, text: str, fill: str = INK, bold: bool = False, anchor: str = "start") -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="11.5" font-family="sans-serif" fill="{fill}" '
        f'text-anchor="{anchor}"{weight}>{html.escape(text)}</text>'
    )
