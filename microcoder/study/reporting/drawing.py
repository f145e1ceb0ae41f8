"""The figures of a report: the arms of each study that was run, and the effects of all claims, at each scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...runs.disk import writing
from ...runs.series import Metrics, stages
from ..deciding import NOT_RUN
from .curves import ArmCurves
from .figures import draw
from .forest import draw_effects
from .gathering import ArmRuns, StudyRuns
from .panels import LOOKS
from .results import Decided, forest_rows

AXIS = "standard deviations between seeds; to the right: as claimed"


def draw_all(scales: Sequence[Decided], folder: Path) -> dict[tuple[str, str], list[str]]:
    """(scale, study) -> its figures, relative to the page beside the folder, without suffix; study "": the effects."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[tuple[str, str], list[str]] = {}
    for each in scales:
        rows = forest_rows(each)
        if any(row["verdict"] != NOT_RUN for row in rows):
            draw_effects(rows, folder / f"{each.name}-effects", f"Effects, {each.name}", AXIS)
            drawn[each.name, ""] = [f"{folder.name}/{each.name}-effects"]
        for study in (study for study in each.runs.studies.values() if study.was_run):
            pages = in_pages(study)
            for n, arms in enumerate(pages, 1):
                name = f"{each.name}-{study.name}" + f"-{n}" * (len(pages) > 1)
                draw(f"{study.title}, {each.name}", study.figure, [curves_of(arm) for arm in arms], folder / name)
                drawn.setdefault((each.name, study.name), []).append(f"{folder.name}/{name}")
    return drawn


def in_pages(study: StudyRuns) -> list[list[ArmRuns]]:
    """All arms in one figure, if it can tell them apart.

    If not, arms that train as an earlier one does, and are only tested in another way, are left out; what still are too
    many is drawn in several figures of about the same size.
    """
    arms = list(study.arms.values())
    if len(arms) > len(LOOKS):
        trained = [_training(arm) for arm in arms]
        arms = [arm for n, arm in enumerate(arms) if trained[n] is None or trained[n] not in trained[:n]]
    size = math.ceil(len(arms) / math.ceil(len(arms) / len(LOOKS)))
    return [arms[start : start + size] for start in range(0, len(arms), size)]


def _training(arm: ArmRuns) -> dict[str, Any] | None:
    """The settings that its training depends on, in the first of its runs; nothing is known of an arm without any."""
    if not arm.runs:
        return None
    config = next(iter(arm.runs.values())).config
    train = {key: value for key, value in config["train"].items() if key != "name" and not key.startswith("eval_")}
    return {**config, "train": train}


def curves_of(arm: ArmRuns) -> ArmCurves:
    return ArmCurves(arm.name, arm.label, [_without_ramp(run.metrics) for run in arm.runs.values()])


def _without_ramp(metrics: Metrics) -> Metrics:
    """A temperature that changes at each step would cut a curve into stages of one point, each with its line."""
    if len(stages(metrics)) <= 1 + len(metrics) // 2:
        return metrics
    return [{name: value for name, value in line.items() if name != "temperature"} for line in metrics]
