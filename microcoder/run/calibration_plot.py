"""D(T) and accuracy(T), with D* and the chosen temperature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .disk import writing
from .plot import BLUE, GREY, ORANGE, STYLE, _matplotlib


def plot_calibration(record: dict[str, Any], path: str | Path, title: str) -> None:
    """Draw what `microcoder calibrate` measured into `path`, a .png or an .svg."""
    matplotlib, path = _matplotlib(), Path(path)
    probes = record["probes"]
    grid = [probe["temperature"] for probe in probes]
    with matplotlib.rc_context({**STYLE, "axes.titlepad": 6}):
        figure = matplotlib.figure.Figure(figsize=(7.6, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.plot(grid, [probe["diversity"] for probe in probes], color=BLUE, marker="o", label="before training")
        ends = [(probe["temperature"], probe["pilot"][-1]) for probe in probes if probe["pilot"]]
        if ends:
            left.plot(*zip(*ends, strict=True), color=ORANGE, marker="s", linestyle="none", label="end of its pilot")
        target = record["diversity_target"]
        left.axhline(target, color=GREY, linewidth=1, linestyle="--", label=f"D* = {target:.3f}")
        left.set_title("diversity D")
        right.plot(grid, [probe["accuracy"] for probe in probes], color=BLUE, marker="o", label="before training")
        right.set_title("accuracy")
        right.set_ylim(bottom=0)
        chosen = record["temperature"]
        for axis in (left, right):
            axis.axvline(chosen, color="black", linewidth=0.8, label=f"chosen: {chosen:g}")
            axis.set_xlabel("temperature T")
            axis.legend()
        figure.suptitle(title, fontsize=10, x=0.01, ha="left", parse_math=False)
        with writing(path):
            figure.savefig(path, dpi=200)
