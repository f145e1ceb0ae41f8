"""A run directory: what training writes and everything else only reads. Nothing here knows an engine, or torch.

    disk.py         a whole file at once, or one line at the end; a kill at any moment harms neither
    lock.py         one writer at a time
    directory.py    Run, that writer: run.json, config.toml, metrics.jsonl; rewinding
    reading.py      the state, the metrics and the checkpoints, for everybody else
    rollouts.py     the rollouts of a step, and an index of them
    groups.py       what came of each problem at each step, to find rollouts by
    series.py       metrics as arrays: smoothed, cut into stages
    plot.py         the training dynamics as a figure; it loads numpy and matplotlib, so it is not imported here
"""

from .directory import Run
from .disk import RunError
from .groups import Group, groups_of, read_groups
from .reading import checkpoints, latest_checkpoint, read_info, read_metrics
from .rollouts import index, read_rollouts, read_statements, select, steps, write_rollouts

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
    "read_rollouts",
    "read_statements",
    "select",
    "steps",
    "write_rollouts",
]
