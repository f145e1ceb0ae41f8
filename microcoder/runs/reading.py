"""What can be read of a run directory, while it is written or after: its state, its metrics, its checkpoints."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

from .disk import RunError, read_lines

CONFIG, INFO, METRICS = "config.toml", "run.json", "metrics.jsonl"


def read_info(path: str | Path) -> dict[str, Any]:
    """What run.json says; a folder that is no run is refused."""
    path = Path(path)
    if not all((path / name).is_file() for name in (INFO, CONFIG)):
        near = path if path.is_dir() else path.parent
        runs = sorted(str(info.parent) for info in near.glob(f"*/{INFO}"))
        hint = f"; runs are {', '.join(runs[:5])}{', ...' * (len(runs) > 5)}" if runs else ""
        raise RunError(f"{path} is not a run directory (one holds {INFO} and {CONFIG}){hint}")
    try:
        return dict(json.loads((path / INFO).read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise RunError(f"cannot read {path / INFO}: {error}") from None


def read_metrics(path: str | Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl so far, in the order of steps; a line that a kill cut off is left out."""
    return read_lines(Path(path) / METRICS)


def checkpoints(path: str | Path) -> list[int]:
    """The steps of the complete checkpoints: those that hold trainer_state.json, which the engine writes last."""
    steps = []
    for state in Path(path).glob("checkpoints/checkpoint-*/trainer_state.json"):
        step = re.fullmatch(r"checkpoint-(\d+)", state.parent.name)
        with contextlib.suppress(OSError, ValueError):  # cut off in the middle: not complete
            json.loads(state.read_bytes())
            steps += [int(step[1])] if step else []
    return sorted(steps)


def latest_checkpoint(path: str | Path) -> Path | None:
    """The folder of the newest complete checkpoint."""
    steps = checkpoints(path)
    return Path(path) / "checkpoints" / f"checkpoint-{steps[-1]}" if steps else None
