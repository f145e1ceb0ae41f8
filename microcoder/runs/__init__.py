"""A run directory: what training writes and everything else only reads. Nothing here knows an engine, or torch.

disk.py         a whole file at once, or one line at the end; a kill at any moment harms neither; one writer
directory.py    Run, that writer, and the readers: run.json, config.toml, metrics.jsonl, checkpoints; rewinding
rollouts.py     the rollouts of a step, an index of them, and what came of each problem
plot.py         metrics as arrays: smoothed, cut into stages; figures of a run and of a calibration
"""

from .directory import Run, checkpoints, latest_checkpoint, read_info, read_metrics
from .disk import RunError
from .rollouts import (
    Group,
    groups_of,
    index,
    read_groups,
    read_prompts,
    read_rollouts,
    read_statements,
    select,
    steps,
    write_rollouts,
)

__all__ = [
    "Group",
    "Run",
    "RunError",
    "checkpoints",
    "groups_of",
    "index",
    "latest_checkpoint",
    "read_groups",
    "read_info",
    "read_metrics",
    "read_prompts",
    "read_rollouts",
    "read_statements",
    "select",
    "steps",
    "write_rollouts",
]
