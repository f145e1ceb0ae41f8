"""D(T) and accuracy(T), with D* and the chosen temperature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .disk import writing
from .plot import BLUE, GREY, ORANGE, STYLE, _finish, _matplotlib


def plot_calibration(record: dict[str, Any], path: str | Path, title: str) -> None:
    """Draw what `microcoder calibrate` measured into `path`, a .png or an .svg."""
    matplotlib, path = _matplotlib(), Path(path)
    probes, target, chosen = record["probes"], record["diversity_target"], record["temperature"]
    grid = [probe["temperature"] for probe in probes]
    with matplotlib.rc_context(STYLE):
        figure = matplotlib.figure.Figure(figsize=(7.6, 3.0), layout="constrained")
        left, right = figure.subplots(1, 2)
        for axis, name in ((left, "diversity"), (right, "accuracy")):
            values = [probe[name] for probe in probes]
            axis.plot(grid, values, color=BLUE, linewidth=1.8, marker="o", clip_on=False, label="untrained")
            axis.set_xlabel("temperature T")
        ends = [(probe["temperature"], probe["pilot"][-1]) for probe in probes if probe["pilot"]]
        if ends:
            left.plot(*zip(*ends, strict=True), color=ORANGE, marker="s", linestyle="none", label="after a pilot")
        left.axhline(target, color=GREY, linewidth=1, linestyle="--", label=f"D* = {target:.3f}")
        for axis, name in ((left, "Diversity D"), (right, "Accuracy")):
            axis.set_ylim(0, max(0.1, axis.get_ylim()[1]))
            axis.axvline(chosen, color="black", linewidth=0.8, zorder=1, label=f"chosen: {chosen:g}")
            _finish(axis, name)
        figure.suptitle(title, fontsize=10, x=0.01, ha="left", parse_math=False)
        with writing(path):
            figure.savefig(path, dpi=200)
