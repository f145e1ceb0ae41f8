"""The report's pictures, as SVG text: how records flow through the steps, and histograms."""

from __future__ import annotations

import html
from collections.abc import Sequence

KEPT, DROPPED, INK = "#2f6f9f", "#c9744f", "#1b1f24"
WIDTH, HEIGHT, BAR = 150, 260, 26  # of a step, of all records, of a bar


def flow(steps: Sequence[tuple[str, int, dict[str, int]]], first: int) -> str:
    """(name, kept, dropped by reason) of each step, from `first` records on: what goes on, and what leaves where."""
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
        f'<svg viewBox="0 0 {width} {lowest + 5}" width="{width}" role="img" '
        f'aria-label="records kept and dropped by step">{"".join(parts)}</svg>'
    )


def histogram(title: str, values: Sequence[float], bins: int = 24) -> str:
    """How often which values occur; the largest hundredth shares the last bar, so that one outlier hides nothing."""
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
