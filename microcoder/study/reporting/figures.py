"""The arms of a study in one figure, like the paper's: held-out accuracy, response length, diversity, reward, time.

Differs from the paper's figures:

1. The mean over seeds stands in front of each seed's raw values, with whiskers at the evaluations; theirs show one run.
2. Any study can show its step times, not only the evaluator's (figure 6).
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...runs.disk import writing
from ...runs.plot import STYLE, _matplotlib
from ..claims import StudyError
from .curves import ArmCurves, boundaries
from .panels import LOOKS, TITLES, draw_metric, draw_time

PANELS = tuple(TITLES)
WIDTH = 7.6  # inches
LINE = 112  # characters of a legend's line
HASHED = re.compile(r'(?<=id=")[a-z][0-9a-f]{10}(?=")|(?<=#)[a-z][0-9a-f]{10}(?=["\)])')  # names in an SVG, and uses
FIGURE_STYLE = {**STYLE, "axes.titlepad": 6, "legend.fontsize": 8, "hatch.linewidth": 0.7}


def draw(
    study_title: str, figure: int, arms: Sequence[ArmCurves], path: str | Path, panels: Sequence[str] = PANELS
) -> None:
    """Draw the arms into `path` + ".png" and `path` + ".svg"; `figure` is the number of the paper's, or 0.

    A panel is "time" or a metric; a metric of evaluations (test_...) gets a marker and whiskers at each.
    """
    if not 1 <= len(arms) <= len(LOOKS):
        raise StudyError(f"{len(arms)} arms cannot be drawn: a figure tells 1 to {len(LOOKS)} apart; choose among them")
    if not panels:
        raise StudyError(f"there is no panel to draw; name some of {', '.join(PANELS)}, or another metric")
    metrics = [name for name in panels if name != "time"]
    columns = {1: 1, 2: 2, 4: 2}.get(len(metrics), 3)
    heights = [2.1 * math.ceil(len(metrics) / columns)] if metrics else []
    if "time" in panels:
        heights.append(0.7 + 0.17 * len(arms))
    matplotlib = _matplotlib()
    with matplotlib.rc_context(FIGURE_STYLE):
        page = matplotlib.figure.Figure(layout="constrained")
        parts = page.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
        if metrics:
            _draw_metrics(parts[0], metrics, columns, arms)
        if "time" in panels:
            draw_time(parts[-1].subplots(), arms)  # in a part of its own: the labels beside the bars narrow no panel
        title = f"{study_title} (the paper's figure {figure})" if figure else study_title
        page.suptitle(title, fontsize=10, x=0.01, ha="left", parse_math=False)
        lines = _legend(matplotlib, page, arms, panels) if metrics else 0
        page.set_size_inches(WIDTH, 0.3 + sum(heights) + 0.17 * lines)
        save(page, path)


def save(page: Any, path: str | Path) -> None:
    """Write a figure as .png, in 256 colours, and as .svg; the same bytes for the same figure."""
    from PIL import Image

    picture, drawing = (Path(f"{path}{end}") for end in (".png", ".svg"))  # not with_suffix: T-0.6 has a dot of its own
    pixels, text = io.BytesIO(), io.StringIO()
    page.savefig(pixels, format="png", dpi=200)
    few = Image.open(pixels).convert("RGB").quantize(256, dither=Image.Dither.NONE)  # a third of the file
    with writing(picture):
        few.save(picture, optimize=True)
    page.savefig(text, format="svg", metadata={"Date": None})
    with writing(drawing):
        drawing.write_text(_in_order(text.getvalue()), encoding="utf-8")


def _in_order(svg: str) -> str:
    """Clips are named by a hash of where they lie, which the layout's solver knows but for a last bit: count them."""
    names: dict[str, str] = {}
    return HASHED.sub(lambda found: names.setdefault(found[0], f"{found[0][0]}{len(names)}"), svg)


def _draw_metrics(part: Any, metrics: Sequence[str], columns: int, arms: Sequence[ArmCurves]) -> None:
    axes = part.subplots(math.ceil(len(metrics) / columns), columns, squeeze=False).ravel()
    for unused in axes[len(metrics) :]:
        unused.remove()
    for place, (axis, name) in enumerate(zip(axes, metrics, strict=False)):
        draw_metric(axis, name, arms)
        if place + columns >= len(metrics):  # the lowest of its column
            axis.set_xlabel("step")


def _legend(matplotlib: Any, page: Any, arms: Sequence[ArmCurves], panels: Sequence[str]) -> int:
    """Under the panels, where it covers nothing; how many lines it takes."""
    evaluated = [name.startswith("test_") for name in panels if name != "time"]
    notes = {
        "thick: mean over seeds, smoothed; thin: each seed": not all(evaluated),
        "whiskers: 95% t interval, or range of fewer than 3 seeds": any(evaluated),
        "vertical: a stage begins": any(map(boundaries, arms)),
        "time: of the fastest seed": "time" in panels,
    }
    title = textwrap.fill("; ".join(note for note, needed in notes.items() if needed), LINE)
    labels = [textwrap.fill(arm.label if any(arm.runs) else f"{arm.label} (not run)", LINE - 12) for arm in arms]
    longest = max(len(line) for label in labels for line in label.split("\n"))
    columns = max(1, min(3, LINE // (longest + 12)))
    lines = [matplotlib.lines.Line2D([], [], linewidth=1.6, markersize=4, **look) for look in LOOKS[: len(arms)]]
    place = {"loc": "outside lower left", "ncols": columns, "alignment": "left"}
    legend = page.legend(lines, labels, title=title, title_fontsize=8, handlelength=4.0, **place)
    for words in legend.get_texts():
        words.set_parse_math(False)
    return sum(words.count("\n") + 1 for words in [title, *labels[::columns]])
