"""A run in a line: status, preset, model, step, the last values, the time left.

Only the end of metrics.jsonl is read, so a hundred long runs are listed as quickly as a hundred short ones. A run whose
run.json says running is asked after: where the process named in its lock is gone, it was interrupted.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import time
import tomllib
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

from ..runs.disk import opened
from ..schema import quoted
from .library import Entry, Missing, stamps

FILES = ("run.json", "config.toml", "metrics.jsonl")
TAIL, BACK = 1 << 16, 1 << 20  # bytes of metrics.jsonl: some fifty steps; so far back is an evaluation looked for
SILENT_S = 600.0  # without news for so long, or for twenty steps: a run of another machine is taken for silent
TESTED = b'"test_accuracy":'
VALUES = ("reward", "accuracy", "diversity", "length_mean", "step_s", "test_accuracy")
HOLDER = re.compile(r"process (\d{1,10}) on (\S+)")
JSON, TOML, LOCK = 1 << 22, 1 << 17, 1 << 10  # bytes of such a file; with more it is not one of ours
DOTS, TEXT = 200, 500  # in a line of TOML; characters of what a table shows


def state(folder: Entry) -> dict[str, Any]:
    """Summarise a run for the table of runs. What cannot be read is named under `faults`."""
    try:
        return _state(folder)
    except Exception as error:  # whatever stands in its files: the other runs are listed all the same
        faults = [f"it cannot be read: {type(error).__name__}: {error}"[:TEXT]]
        return {"name": folder.name, **_record({}, {}, [], 0.0, faults), "tail": None, "left_s": None}


def _state(folder: Entry) -> dict[str, Any]:
    files, faults = [], []
    for name in FILES:
        try:
            files.append(folder.file(name))
        except Missing as error:  # a link that leads out
            files.append(Path(os.devnull, name))
            faults.append(str(error))
    record = dict(_read(tuple(files), stamps(files)))
    record["faults"] = [*faults, *record["faults"]]
    seconds = [line["step_s"] for line in record.pop("tail") if _number(line.get("step_s"))][-20:]
    pace = fmean(seconds) if seconds else None
    if record["status"] == "running":
        record["status"] = _alive(folder, record["changed"], pace)
    left = record["steps"] - record["step"] if record["steps"] else None
    running = record["status"] == "running"
    record["left_s"] = left * pace if running and pace is not None and left is not None else None
    return {"name": folder.name, **record}


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; ValueError where it is none, {} where there is no file."""
    try:
        record = json.loads(_bytes(path, JSON))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if not isinstance(record, dict):
        raise ValueError("it is not an object")
    return record


def read_config(path: Path) -> dict[str, Any]:
    """Read settings unchecked, as another version may have written them; ValueError, or {} where there is no file."""
    try:
        data = _bytes(path, TOML)
        if any(line.count(b".") > DOTS for line in data.splitlines()):  # a key of so many parts takes tomllib hours
            raise ValueError(f"a line has more than {DOTS} dots")
        return tomllib.loads(data.decode())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _bytes(path: Path, most: int) -> bytes:
    with opened(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it has more than {most >> 10} KiB")
    return data


@lru_cache(maxsize=4096)
def _read(files: tuple[Path, ...], stamped: tuple[tuple[int, int, int], ...]) -> dict[str, Any]:
    info: dict[str, Any] = {}
    config: dict[str, Any] = {}
    faults = []
    try:
        info = read_json(files[0])
    except ValueError as error:
        faults.append(f"run.json cannot be read: {error}"[:TEXT])
    try:
        config = read_config(files[1])
    except ValueError as error:
        faults.append(f"config.toml cannot be read: {error}"[:TEXT])
    return _record(info, config, _tail(files[2]), _news(info) or max(ns for _, _, ns in stamped) / 1e9, faults)


def _record(
    info: dict[str, Any], config: dict[str, Any], tail: list[dict[str, Any]], changed: float, faults: list[str]
) -> dict[str, Any]:
    return {
        "status": words(info.get("status")) or "unknown",
        "reason": words(info.get("reason")),
        "preset": words(_get(config, "grpo", "preset")),
        "model": words(info.get("model") or _get(config, "model", "name")),
        "seed": words(info.get("seed")),
        "step": _whole(_last(tail, "step")) or _whole(info.get("steps_done")) or 0,
        "steps": _whole(_get(config, "train", "steps")),
        "started": words(info.get("started")),
        "ended": words(info.get("ended")),
        "changed": changed,
        "faults": faults,
        **{name: _last(tail, name) for name in VALUES},
        "tail": tail,
    }


def _news(info: dict[str, Any]) -> float | None:
    """When the run itself last wrote, as it says: a copy of its files is younger. None: it does not say."""
    said = []
    for name in ("updated", "ended"):
        with contextlib.suppress(TypeError, ValueError, OverflowError):  # it is not there, or no time
            said.append(datetime.fromisoformat(info[name]).timestamp() if info.get(name) else 0.0)
    return max(said, default=0.0) or None


def _tail(path: Path) -> list[dict[str, Any]]:
    """Read the last whole lines, and the last evaluation before these; without torn or broken ones."""
    try:
        with opened(path) as file:
            start = max(0, file.seek(0, os.SEEK_END) - BACK)
            file.seek(start)
            lines = file.read().split(b"\n")[:-1][1 if start else 0 :]
    except OSError:
        return []
    first, room = len(lines), TAIL
    while first and room > 0:
        first -= 1
        room -= len(lines[first])
    tested = [line for line in lines[:first] if TESTED in line][-1:]
    records = []
    for line in [*tested, *lines[first:]]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        records += [record] if isinstance(record, dict) and _number(record.get("step")) else []
    return records


def _alive(folder: Entry, changed: float, pace: float | None) -> str:
    """Whether a run that says running does run, as far as can be told without touching its lock."""
    try:
        with opened(folder.file(".lock")) as file:
            holder = HOLDER.fullmatch(file.read(LOCK).decode("utf-8", "replace").strip())
    except (OSError, Missing):
        holder = None
    if holder and holder[2] == socket.gethostname():
        return "running" if Path(f"/proc/{holder[1]}").exists() else "interrupted"
    return "running" if time.time() - changed < max(SILENT_S, 20 * (pace or 0)) else "silent"


def _last(lines: list[dict[str, Any]], name: str) -> float | None:
    return next((line[name] for line in reversed(lines) if _number(line.get(name))), None)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value and abs(value) < 1e300


def _whole(value: Any) -> int | None:
    return int(value) if _number(value) and abs(value) < 1e15 else None


def words(value: Any) -> Any:
    """Return text, numbers and None as they are, anything else as a short repr."""
    if value is None or isinstance(value, bool) or _number(value):
        return value
    return (value if isinstance(value, str) else quoted(value))[:TEXT]


def _get(record: dict[str, Any], *keys: str) -> Any:
    for key in keys:
        record = record.get(key, {}) if isinstance(record, dict) else {}
    return record or None
