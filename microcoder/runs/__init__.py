"""Run directories: training writes them, everything else only reads them. No engine and no torch is needed here.

disk.py         atomic writes of files and lines, safe against a kill at any moment; the lock
directory.py    Run, the writer, and the readers of run.json, config.toml, metrics.jsonl, checkpoints; rewinding
rollouts.py     the rollouts of a step, an index of them, and the groups of problems
plot.py         metrics as arrays: smoothed, cut into stages; figures of a run and of a calibration
"""

from .directory import Run, best_step, checkpoints, latest_checkpoint, read_info, read_metrics
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
    "best_step",
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
