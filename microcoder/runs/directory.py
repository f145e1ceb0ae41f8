"""Run, the writer of a run directory, and the readers of its state, metrics and checkpoints.

run.json is written before config.toml, and a folder is a run when it holds both. So `create` can be called again if it
was killed between the two, and it never overwrites a config.toml that a user put into a folder.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from ..files import json_line
from . import rollouts
from .disk import (
    RunError,
    append_line,
    full_disk,
    is_full,
    plain,
    read_lines,
    release_lock,
    take_lock,
    write_whole,
    writing,
)  # fmt: skip

CONFIG, INFO, METRICS = "config.toml", "run.json", "metrics.jsonl"
ELSEWHERE = "choose another name with train.name=..."


class Run:
    """A run directory, open for writing. As a context manager it records how the run ended and releases the lock.

    `info` is the contents of run.json: status (running, finished, stopped or failed), steps_done, started, updated,
    ended, reason, and the fields given to `create` and `update`. A killed run has the status running and no lock.
    """

    def __init__(self, path: Path, held: IO[bytes], info: dict[str, Any]) -> None:
        self.path, self.info, self._held = path, info, held
        self._last_step: int | None = None  # of metrics.jsonl

    @classmethod
    def create(cls, path: str | Path, config_toml: str, info: dict[str, Any]) -> Run:
        """Make the folder and begin a run. Raise RunError if the folder holds a run or other files."""
        path = Path(path)
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
        _refuse_strange(path)  # before a lock file is made in it
        begun = {"status": "running", "steps_done": 0, "started": _now(), "ended": None, "reason": None}
        run = cls(path, take_lock(path), {**begun, **info})
        try:
            _refuse_run(path)
            run.update()
            write_whole(path / CONFIG, config_toml.encode())
        except BaseException:
            run.close()
            raise
        return run

    @classmethod
    def resume(cls, path: str | Path) -> Run:
        """Open a run to continue it. Call `rewind` with the checkpoint's step before logging anything."""
        path = Path(path)
        read_info(path)  # before a lock file is made in a folder that is no run
        run = cls(path, take_lock(path), {})
        try:
            run.info = read_info(path)
            run._last_step = max((line["step"] for line in run.metrics), default=None)
            run.update(status="running", ended=None, reason=None)
        except BaseException:
            run.close()
            raise
        return run

    @classmethod
    def closed(cls, path: str | Path) -> Run:
        """A run that another process has made, to be read."""
        return cls(Path(path), io.BytesIO(), read_info(path))

    def update(self, **fields: Any) -> None:
        """Set fields of run.json."""
        info = {**self.info, **fields, "updated": _now()}
        write_whole(self.path / INFO, json.dumps(plain(info), indent=2).encode() + b"\n")
        self.info = info

    def log(self, step: int, metrics: dict[str, Any]) -> None:
        """Append the line of one step; it is on the disk when this returns."""
        if self._last_step is not None and step <= self._last_step:
            raise RunError(
                f"step {step} cannot be logged in {self.path}: step {self._last_step} is there already; "
                f"to make steps again, call rewind({step - 1}) first"
            )
        append_line(self.path / METRICS, {"step": step} | {k: v for k, v in metrics.items() if k != "step"})
        self._last_step = step
        self.update(steps_done=step)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl so far, one for each step."""
        return read_metrics(self.path)

    def rollouts(self, step: int) -> list[dict[str, Any]]:
        """Read the rollouts of a step."""
        return rollouts.read_rollouts(self.path, step)

    @property
    def summary(self) -> dict[str, Any]:
        """The contents of summary.json: accuracy before and after training; empty until the run has ended."""
        path = self.path / "summary.json"
        return dict(json.loads(path.read_bytes())) if path.is_file() else {}

    @property
    def checkpoint(self) -> Path | None:
        """The folder of the newest complete checkpoint."""
        return latest_checkpoint(self.path)

    def rewind(self, step: int) -> None:
        """Remove the metrics and rollouts of later steps, which will be made again.

        Each file changes atomically, and a second call changes nothing: after a kill, call rewind again.
        """
        kept = [line for line in self.metrics if line["step"] <= step]
        write_whole(self.path / METRICS, b"".join(map(json_line, kept)))
        rollouts.drop_after(self.path, step)
        self._last_step = kept[-1]["step"] if kept else None
        self.update(steps_done=self._last_step or 0)

    def close(self) -> None:
        release_lock(self._held)

    def __repr__(self) -> str:
        done = self.info.get("steps_done", 0)
        return f"<Run {self.path}: {self.info.get('status', 'unknown')}, {done} step{'' if done == 1 else 's'}>"

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ending: dict[str, Any] = {"ended": _now()}
        if isinstance(error, KeyboardInterrupt):
            ending |= {"status": "stopped", "reason": str(error) or "interrupted"}
        elif error is not None:
            ending |= {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
        elif self.info["status"] == "running":  # else the status was set already
            ending |= {"status": "finished"}
        try:
            self.update(**ending)
        except RunError:
            if error is None:  # else the first error is the one to report, and run.json keeps the status running
                raise
        finally:
            self.close()
        if is_full(error):  # from a file of the engine, such as a checkpoint
            raise full_disk(Path(getattr(error, "filename", None) or self.path)) from error


def _refuse_strange(path: Path) -> None:
    names = {entry.name for entry in path.iterdir()}
    others = sorted(names - {INFO, ".lock", f".{INFO}.part", f".{CONFIG}.part"})  # what a killed `create` may leave
    if others and not {INFO, CONFIG} <= names:
        raise RunError(f"{path} is a folder with other things in it ({', '.join(others[:3])}); {ELSEWHERE}")


def _refuse_run(path: Path) -> None:
    if (path / CONFIG).exists():
        info = read_info(path)
        status = "interrupted" if info["status"] == "running" else info["status"]  # we hold its lock, so it was killed
        raise RunError(
            f"{path} already holds a run ({status}, {info['steps_done']} steps done); "
            f"go on with it by --resume, or {ELSEWHERE}"
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_info(path: str | Path) -> dict[str, Any]:
    """Read run.json. Raise RunError if the folder is no run."""
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
    """Read metrics.jsonl so far, in the order of steps, without an incomplete last line."""
    return read_lines(Path(path) / METRICS)


def checkpoints(path: str | Path) -> list[int]:
    """Return the steps of complete checkpoints: those with trainer_state.json, which the engine writes last."""
    steps = []
    for state in Path(path).glob("checkpoints/checkpoint-*/trainer_state.json"):
        step = re.fullmatch(r"checkpoint-(\d+)", state.parent.name)
        with contextlib.suppress(OSError, ValueError):  # incomplete
            json.loads(state.read_bytes())
            steps += [int(step[1])] if step else []
    return sorted(steps)


def best_step(metrics: Iterable[Mapping[str, Any]], steps: Collection[int]) -> int | None:
    """Of these steps the one with the best test accuracy, the first of equals; None: none of them was evaluated."""
    lines = [line for line in metrics if line["step"] in steps and line.get("test_accuracy") is not None]
    return max(lines, key=lambda line: (line["test_accuracy"], -line["step"]))["step"] if lines else None


def latest_checkpoint(path: str | Path) -> Path | None:
    """Return the folder of the newest complete checkpoint."""
    steps = checkpoints(path)
    return Path(path) / "checkpoints" / f"checkpoint-{steps[-1]}" if steps else None
