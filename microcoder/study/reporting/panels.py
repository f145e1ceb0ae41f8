"""One panel of a study's figure: a metric of all arms over the steps, or where the time of their steps goes.

Arms differ in colour, dashes and marker, so that black and white print tells them apart too. The colours are Okabe and
Ito's but for the yellow, which white paper swallows: wine and grey stand in.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...runs.plot import BLUE, GREEN, ORANGE, PHASES, RED, _finish
from ...runs.series import Series
from .curves import ArmCurves, boundaries, curve, evaluations, step_time

TITLES = {
    "test_accuracy": "Accuracy (held out)",
    "length_mean": "Response length (tokens)",
    "diversity": "Response diversity D",
    "reward": "Critic reward",
    "time": "Time per step (s)",
}
LOOKS: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "marker": "o", "dashes": ()},
    {"color": RED, "marker": "s", "dashes": (5, 1.5)},
    {"color": GREEN, "marker": "^", "dashes": (1.2, 1.2)},
    {"color": ORANGE, "marker": "D", "dashes": (6, 1.5, 1.2, 1.5)},
    {"color": "#CC79A7", "marker": "v", "dashes": (2.8, 1.4)},
    {"color": "#56B4E9", "marker": "P", "dashes": (9, 2)},
    {"color": "black", "marker": "X", "dashes": (4, 1.2, 1.2, 1.2, 1.2, 1.2)},
    {"color": "#882255", "marker": "<", "dashes": (1.2, 3)},
    {"color": "#6E6E6E", "marker": "*", "dashes": (9, 1.5, 3, 1.5)},
)
HATCHES = ("", "/" * 5, "\\" * 5, "")  # of the phases, for print without colours


def draw_metric(axis: Any, name: str, arms: Sequence[ArmCurves]) -> None:
    """One metric over the steps; every metric over the same ones, so that panels can be read against each other."""
    steps = [line["step"] for arm in arms for run in arm.runs for line in run] or [0]
    first, last = min(steps), max(steps)
    margin = max(0.5, 0.03 * (last - first))
    for n, (arm, look) in enumerate(zip(arms, LOOKS, strict=False)):
        look = {**look, "markersize": 4, "zorder": 3, "gid": f"{name} of {arm.name}"}
        shift = (n + 0.5) / len(arms)
        if name.startswith("test_"):
            _evaluations(axis, *evaluations(arm, name), margin * (shift - 0.5), look)
        else:
            _curves(axis, *curve(arm, name), shift, look)
    if axis.has_data():
        axis.set_title(TITLES.get(name, name))
        for arm, look in zip(arms, LOOKS, strict=False):
            for step in boundaries(arm):
                axis.axvline(step, color=look["color"], dashes=look["dashes"], linewidth=0.7, zorder=1)
    else:
        _finish(axis, TITLES.get(name, name))  # says that nothing was recorded
    axis.set_xlim(first - margin, last + margin)
    axis.xaxis.get_major_locator().set_params(integer=True)


def _evaluations(axis: Any, steps: Series, mean: Series, ends: Series, shift: float, look: dict[str, Any]) -> None:
    """`shift`, in steps, lets the whiskers of the arms stand side by side."""
    if steps.size:
        axis.vlines(steps + shift, *ends, color=look["color"], linewidth=0.9, alpha=0.6)
        axis.plot(steps + shift, mean, linewidth=1.3, **look)


def _curves(axis: Any, steps: Series, values: Series, mean: Series, shift: float, look: dict[str, Any]) -> None:
    """`shift`, between 0 and 1, keeps the markers of the arms apart."""
    if steps.size:
        axis.plot(steps, values.T, color=look["color"], linewidth=0.5, alpha=0.2)
        every = max(1, len(steps) // 5)
        known = np.pad(np.isfinite(mean), 1)  # (n + 2,)
        marked = known[1:-1] & ~known[:-2] & ~known[2:]  # a point between gaps has no line to be seen by
        marked[int(shift * every) :: every] = True
        axis.plot(steps, mean, linewidth=1.6, markevery=marked, **look)


def draw_time(axis: Any, arms: Sequence[ArmCurves]) -> None:
    """A bar for each arm, its phases one after the other."""
    parts = np.stack([step_time(arm) for arm in arms])  # (arms, phases)
    if not parts.any():
        return _finish(axis, TITLES["time"])
    ends, places = np.cumsum(parts, axis=1), np.arange(len(arms))
    for n, (phase, color) in enumerate(PHASES.items()):
        look = {"color": color, "edgecolor": "white", "linewidth": 0.5, "hatch": HATCHES[n], "label": phase}
        axis.barh(places, parts[:, n], left=ends[:, n] - parts[:, n], height=0.7, **look)
    for place, total in zip(places, ends[:, -1], strict=True):
        words = f"{total:.{2 if total < 100 else 0}f}" if total else "not recorded"
        axis.annotate(words, (total, place), xytext=(3, 0), textcoords="offset points", va="center")
    axis.set_title(TITLES["time"])
    axis.set_yticks(places, [textwrap.shorten(arm.label, 40, placeholder=" …") for arm in arms], parse_math=False)
    axis.tick_params(axis="y", length=0)
    axis.grid(visible=False, axis="y")
    axis.grid(visible=True, axis="x")
    axis.invert_yaxis()
    axis.margins(x=0.08)
    axis.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=len(PHASES), borderpad=0.0, columnspacing=1.0)
