"""A run in a line: status, preset, model, step, the last values, the time left.

Only the end of metrics.jsonl is read, so a hundred long runs are listed as quickly as a hundred short ones. A run whose
run.json says running is asked after: where the process named in its lock is gone, it was interrupted.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
import tomllib
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

from .library import Folder, Missing, stamps

FILES = ("run.json", "config.toml", "metrics.jsonl")
TAIL = 1 << 16  # bytes of metrics.jsonl: some fifty steps
SILENT_S = 600.0  # without news for so long, or for twenty steps: a run of another machine is taken for silent
VALUES = ("reward", "accuracy", "diversity", "length_mean", "step_s", "test_accuracy")
HOLDER = re.compile(r"process (\d+) on (\S+)")


def state(folder: Folder) -> dict[str, Any]:
    """What the table of runs shows of a run. What cannot be read is named under `faults`."""
    try:
        record = dict(_read(folder.path, stamps([folder.file(name) for name in FILES])))
    except Missing as error:  # a link that leads out
        record = _record({}, {}, [], 0.0, [str(error)])
    seconds = [line["step_s"] for line in record.pop("tail") if _number(line.get("step_s"))][-20:]
    pace = fmean(seconds) if seconds else None
    if record["status"] == "running":
        record["status"] = _alive(folder, record["changed"], pace)
    left = record["steps"] - record["step"] if record["steps"] else None
    running = record["status"] == "running"
    record["left_s"] = left * pace if running and pace is not None and left is not None else None
    return {"name": folder.name, **record}


def read_json(path: Path) -> dict[str, Any]:
    """An object, or ValueError; none at all where there is no file."""
    try:
        record = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if not isinstance(record, dict):
        raise ValueError("it is not an object")
    return record


def read_config(path: Path) -> dict[str, Any]:
    """The settings as they stand there, known to this version or not; ValueError, or none where there is no file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ValueError(str(error)) from None


@lru_cache(maxsize=4096)
def _read(path: Path, stamped: tuple[tuple[int, int, int], ...]) -> dict[str, Any]:
    info: dict[str, Any] = {}
    config: dict[str, Any] = {}
    faults = []
    try:
        info = read_json(path / "run.json")
    except ValueError as error:
        faults.append(f"run.json cannot be read: {error}")
    try:
        config = read_config(path / "config.toml")
    except ValueError as error:
        faults.append(f"config.toml cannot be read: {error}")
    return _record(info, config, _tail(path / "metrics.jsonl"), max(ns for _, _, ns in stamped) / 1e9, faults)


def _record(
    info: dict[str, Any], config: dict[str, Any], tail: list[dict[str, Any]], changed: float, faults: list[str]
) -> dict[str, Any]:
    steps = _get(config, "train", "steps")
    return {
        "status": str(info.get("status") or "unknown"),
        "reason": info.get("reason"),
        "preset": _get(config, "grpo", "preset"),
        "model": info.get("model") or _get(config, "model", "name"),
        "seed": info.get("seed"),
        "step": int(_last(tail, "step") or info.get("steps_done") or 0),
        "steps": steps if isinstance(steps, int) else None,
        "started": info.get("started"),
        "ended": info.get("ended"),
        "changed": changed,
        "faults": faults,
        **{name: _last(tail, name) for name in VALUES},
        "tail": tail,
    }


def _tail(path: Path) -> list[dict[str, Any]]:
    """The last whole lines; a torn or broken one is passed over."""
    try:
        with open(path, "rb") as file:
            start = max(0, file.seek(0, os.SEEK_END) - TAIL)
            file.seek(start)
            lines = file.read().split(b"\n")[:-1][1 if start else 0 :]
    except OSError:
        return []
    records = []
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        records += [record] if isinstance(record, dict) and _number(record.get("step")) else []
    return records


def _alive(folder: Folder, changed: float, pace: float | None) -> str:
    """Whether a run that says running does run, as far as can be told without touching its lock."""
    try:
        holder = HOLDER.fullmatch(folder.file(".lock").read_text(encoding="utf-8", errors="replace").strip())
    except OSError:
        holder = None
    if holder and holder[2] == socket.gethostname():
        return "running" if Path(f"/proc/{holder[1]}").exists() else "interrupted"
    return "running" if time.time() - changed < max(SILENT_S, 20 * (pace or 0)) else "silent"


def _last(lines: list[dict[str, Any]], name: str) -> float | None:
    return next((line[name] for line in reversed(lines) if _number(line.get(name))), None)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value and abs(value) < 1e300


def _get(record: dict[str, Any], *keys: str) -> Any:
    for key in keys:
        record = record.get(key, {}) if isinstance(record, dict) else {}
    return record or None
