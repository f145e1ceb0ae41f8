"""What a run leaves behind for its reader: the plot, and summary.json with before and after."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..config import Config
from ..models import NANO
from ..runs import read_info, read_metrics
from ..runs.plot import plot_dynamics
from ..starter.drafts import LABELS


def summarise(path: str | Path, config: Config) -> dict[str, Any]:
    """Summarise a run in one record; before and after are its first and last evaluation."""
    path = Path(path)
    metrics = read_metrics(path)
    tests = [line for line in metrics if line.get("test_accuracy") is not None]
    spent = ("step_s", "checkpoint_s", "evaluation_s")
    before, after = (tests[0], tests[-1]) if len(tests) > 1 else (None, None)
    return {
        "run": str(path),
        "status": read_info(path)["status"],
        "model": config.model.name,
        "preset": config.grpo.preset,
        "steps": metrics[-1]["step"] if metrics else 0,
        "train_seconds": round(sum(line.get(name) or 0 for line in metrics for name in spent), 1),
        "before": _tested(before, config) if before else None,
        "after": _tested(after, config) if after else None,
        "gain_points": 100 * (after["test_accuracy"] - before["test_accuracy"]) if before and after else None,
    }


def finish(path: str | Path, config: Config) -> dict[str, Any]:
    """Write summary.json and dynamics.png."""
    path = Path(path)
    summary = summarise(path, config)
    (path / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    metrics = read_metrics(path)
    if metrics:
        plot_dynamics(metrics, path / "dynamics.png", f"{path.name}: {config.model.name}, {config.grpo.preset}")
    return summary


def _tested(line: dict[str, Any], config: Config) -> dict[str, Any]:
    found = {name.removeprefix("test_"): value for name, value in line.items() if name.startswith("test_")}
    unseen = _unseen(line, config)
    return {"step": line["step"], **found, **({"unseen_accuracy": unseen} if unseen is not None else {})}


def _unseen_bands(config: Config) -> set[str]:
    """Bands of the starter problems that nano's own training never saw."""
    if config.model.name != "nano" or config.data.test != "starter":
        return set()
    seen = set(json.loads((NANO / "training.json").read_text(encoding="utf-8"))["depths"])
    bands = {LABELS[depth] for depth in LABELS if depth not in seen} - {LABELS[depth] for depth in seen}
    return bands | {str(depth) for depth in LABELS if depth not in seen}  # older runs counted by depth


def _unseen(line: dict[str, Any], config: Config) -> float | None:
    bands = _unseen_bands(config)
    parts = [part for band, part in (line.get("test_by_difficulty") or {}).items() if band in bands]
    problems = sum(part["problems"] for part in parts)
    return sum(part["accuracy"] * part["problems"] for part in parts) / problems if problems else None
