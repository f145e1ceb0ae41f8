"""A whole run of the pipeline: what is not done yet, then the data set and its report."""

from __future__ import annotations

from pathlib import Path

from ..config import usable_cores
from .collecting import collect_all
from .on_ray import ClusterCores
from .output import write_dataset
from .parts import forget
from .pipeline import STAGES, Observer, Step, chained, run
from .report import page, steps_of
from .settings import Pipeline
from .steps import steps_for


def make(
    settings: Pipeline, observer: Observer, only: str = STAGES[-1], text: str = "", ray: str = ""
) -> dict[str, int] | None:
    """Everything that is not done yet, no further than the stage `only`; all but collect on the cluster `ray`, if any.

    Returns the kept problems by source; None where it ends before verify.
    """
    out = Path(settings.output.folder)
    workers = settings.output.workers or usable_cores()
    steps = steps_for(settings, out)
    parts, digest = collect_all(out, settings.collect.sources, settings.collect.limit, workers, observer)
    wanted = [step for step in steps if STAGES.index(step.stage) <= STAGES.index(only)]
    parts = run(out, wanted, parts, digest, ClusterCores(ray, out) if ray else workers, observer)
    forget_others(out, steps, digest)  # only now: settings that do not work lose nothing
    if len(wanted) < len(steps):
        return None
    kept = write_dataset(out / "dataset", parts, steps_of(out), text)
    (out / "report.html").write_text(page(out), encoding="utf-8")
    return kept


def forget_others(out: Path, steps: list[Step], digest: str) -> None:
    """Remove what other settings have left: it would be shown beside what is true now."""
    digests = {}
    for step in steps:
        digest = digests[out / step.folder] = chained(digest, step)
    for stage in STAGES[1:]:
        for folder in (out / stage).glob("*/"):
            forget(folder, digests.get(folder))
