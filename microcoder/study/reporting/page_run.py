"""What was run, at each scale in a line, and the commands that run it again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..arms import scales as find_scales
from ..plan import ORDER
from ..words import duration
from .gathering import ScaleRuns
from .markdown import for_markdown, table

NAMED = 10  # unfinished runs


def what_was_run(scales: Sequence[ScaleRuns]) -> Iterator[str]:
    head = ("scale", "model", "machine", "studies", "seeds", "steps", "runs", "training, summed")
    yield table(head, map(_run_row, scales), 3)
    for scale in (scale for scale in scales if scale.unfinished):
        names = ", ".join(f"`{name}`" for name in scale.unfinished[:NAMED])
        more = f" and {len(scale.unfinished) - NAMED} more" if len(scale.unfinished) > NAMED else ""
        yield f"Left out at {scale.name}, since unfinished: {names}{more}."
    yield "Seconds a step are those of an arm's fastest seed, the one that other runs on the machine slowed down least."


def _run_row(scale: ScaleRuns) -> tuple[str, ...]:
    runs = scale.runs.values()
    models = {run.summary.get("model", "?") for run in runs}
    steps = sorted({run.summary.get("steps", 0) for run in runs})
    return (
        scale.name,
        for_markdown(", ".join(sorted(model for model in models if Path(model).name not in scale.runs))),
        for_markdown("; ".join(sorted({_machine(run.info.get("hardware", {})) for run in runs}))),
        str(sum(study.was_run for study in scale.studies.values())),
        str(len(_seeds(scale))),
        " to ".join(map(str, dict.fromkeys(steps[:1] + steps[-1:]))),
        f"{len(runs)} of {scale.planned}" if scale.unfinished else str(len(runs)),
        duration(sum(run.summary.get("train_seconds", 0.0) for run in runs)),
    )


def _seeds(scale: ScaleRuns) -> set[int]:
    return {seed for study in scale.studies.values() for arm in study.arms.values() for seed in arm.runs}


def _machine(hardware: Mapping[str, Any]) -> str:
    return ", ".join([f"{hardware.get('cores', '?')} cores {hardware.get('machine', '')}", *hardware.get("gpus", [])])


def commands(scales: Sequence[ScaleRuns], out: str) -> str:
    lines, known = ["microcoder study ls"], find_scales()
    for scale in scales:
        run = [name for name, study in scale.studies.items() if study.was_run]
        names = ["all"] if run == list(ORDER) else [name if name in ORDER else f"{name}.toml" for name in run]
        needs = known[scale.name].needs if scale.name in known else ()
        options = f"--scale {scale.name} --seeds {max(_seeds(scale), default=0) + 1} --out {out}"
        lines.append(" ".join(["microcoder study run", *names, *(f"{need}=FILE" for need in needs), options]))
    return "\n".join(["```", *lines, f"microcoder study report {out}", "```"])
