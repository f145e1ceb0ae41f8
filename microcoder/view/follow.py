"""metrics.jsonl while it is written: its columns, curves thinned from them, the panels, the advisor's remarks.

1. A file of lines is read on from where it was read to. Its last line may wait for its end. After a rewind it is
   another file, or shorter, or no longer holds what was read: then it is read from its beginning again.
2. Ten thousand points are thinned to a thousand with every peak kept: the least and the greatest of each bucket. For a
   smoothed curve the buckets' means are given too: the mean of a bucket's two extremes would be no mean of it.
3. Remarks stand at the step that they concern, as the live display would have made them. Of a run of more than FIRST +
   LAST steps the advisor is shown the first and the last ones only, and after EVERY steps it is asked ever more seldom:
   a long run costs hardly more than a short one, and a fault that lasted for a few steps only may be missed.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from abc import ABC, abstractmethod
from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..advise import EVERY, QUIET, advise
from ..runs.disk import opened
from ..schema import Problem, bands, in_order

POINTS = 1500  # of a curve: more than a screen has columns
LINE = 1 << 22  # bytes
BUDGET_S = 3.0
KEPT = 16  # files that are followed at once; the one asked for longest ago is let go of
NAMES, NAME = 1000, 100  # columns beside those of panels, characters of a name: nonsense must not fill the memory
BANDS = 12  # of difficulty in a panel
FIRST, LAST = 32, 128  # lines that the advisor sees
MOST = 500  # remarks: a run that is told more needs no more
Array = NDArray[np.float64]
PARTS = ["generation_s", "judging_s", "update_s", "checkpoint_s", "other_s"]
VERDICTS = [
    "accepted", "wrong_answer", "runtime_error", "compile_error", "no_code",
    "time_limit", "memory_limit", "output_limit", "internal_error",
]  # fmt: skip
BY_DIFFICULTY = "test_by_difficulty."
LEVEL = re.compile(re.escape(BY_DIFFICULTY) + r"(.+)\.(accuracy|problems)", re.DOTALL)
BAND = ["test_accuracy_low", "test_accuracy_high"]


def _panel(title: str, about: str, metrics: list[str], **more: Any) -> dict[str, Any]:
    return {"id": title.lower().replace(" ", "-"), "title": title, "about": about, "metrics": metrics, **more}


PANELS = [
    _panel("Reward", "mean over the responses of a step", ["reward"]),
    _panel(
        "Accuracy",
        "share of accepted programs: of the training step, and of held-out problems with their 95% interval",
        ["accuracy", "test_accuracy"],
        band=BAND,
        share=True,
    ),
    _panel(
        "Repair",
        "with several turns: share of first tries that are accepted, and of those that failed, the share repaired",
        ["accuracy_first", "repaired_share"],
        share=True,
    ),
    _panel(
        "Accuracy by difficulty",
        "share of accepted programs of held-out problems, by their label or by bands of their score",
        [],
        prefix=BY_DIFFICULTY,
        share=True,
        alone=True,
    ),
    _panel(
        "Response length",
        "tokens: mean of all responses, mean of those that ended, and the limit",
        ["length_mean", "length_finished", "max_response_tokens"],
    ),
    _panel("Diversity D", "0: a group's samples are all alike; 1: they share nothing", ["diversity", "test_diversity"]),
    _panel("Entropy", "nats a token, of what was sampled", ["entropy"]),
    _panel("Clip fractions", "share of tokens whose ratio was clipped, below and above", ["clip_low", "clip_high"]),
    _panel(
        "Truncated and masked",
        "share of responses cut off at the limit, masked by the truncation mask, ending in repetition",
        ["masked_share", "truncated_share", "repeated_share"],
        share=True,
    ),
    _panel("Groups without signal", "share of groups whose rewards are all equal", ["no_signal_share"], share=True),
    _panel("Time per step", "seconds, split into parts", PARTS, stacked=True, overlay="step_s"),
    _panel(
        "Verdicts",
        "what the judge said of a step's responses",
        [f"verdicts.{verdict}" for verdict in VERDICTS],
        stacked=True,
        alone=True,
    ),
    _panel("Temperature", "of sampling; it changes at the stages only", ["temperature"]),
    _panel("Loss", "mean of the step's updates", ["loss"]),
    _panel("Gradient norm", "before it is clipped", ["grad_norm"]),
    _panel("KL", "to the starting model, nats a token", ["kl"]),
    _panel("Learning rate", "of the step's last update", ["learning_rate"]),
    _panel("Generation speed", "tokens a second", ["tokens_per_s"]),
]
METRICS = list(dict.fromkeys(name for panel in PANELS for name in (*panel["metrics"], *panel.get("band", []))))
METRICS += ["step_s"]


def thin(x: Array, y: Array, points: int = POINTS) -> dict[str, Any]:
    """Thin a curve to about `points`: {"x", "y"}, and {"mean_x", "mean_y"} of the buckets where it was thinned."""
    known = np.isfinite(y)
    x, y = x[known], y[known]  # (n,)
    if len(y) <= points:
        return {"x": _short(x), "y": _short(y)}
    buckets = points // 2
    edges = np.linspace(0, len(y), buckets + 1).astype(int)  # (buckets + 1,) never empty, as n > 2 * buckets
    counts = np.diff(edges)
    width = int(counts.max())
    at = np.minimum(edges[:-1, None] + np.arange(width), edges[1:, None] - 1)  # (buckets, width); a last one repeats
    rows = y[at]
    places = np.sort(np.stack([edges[:-1] + rows.argmin(1), edges[:-1] + rows.argmax(1)], 1), axis=1)  # (buckets, 2)
    keep = np.unique(np.concatenate([[0], np.minimum(places, len(y) - 1).ravel(), [len(y) - 1]]))
    return {
        "x": _short(x[keep]),
        "y": _short(y[keep]),
        "mean_x": _short(np.add.reduceat(x, edges[:-1]) / counts),
        "mean_y": _short(np.add.reduceat(y, edges[:-1]) / counts),
    }


def _short(values: Array) -> list[float]:
    """Round to six digits, more than a chart can show; whole numbers become int."""
    return [int(v) if v == int(v) and abs(v) < 1e15 else float(f"{v:.6g}") for v in values.tolist()]


class Follower(ABC):
    """A reader of a growing file of lines. `begin` starts over, `line` takes one line in."""

    def __init__(self, path: Path) -> None:
        self.path, self.lock = path, threading.Lock()
        self.behind = False
        self.offset, self._inode, self._end = 0, 0, b""  # the last bytes that were read
        self._long = False  # in the middle of a line that is too long
        self.begin()

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def line(self, line: bytes) -> None: ...

    def update(self) -> None:
        """Read what is new; set `behind` where the budget ends before the file: the next call goes on."""
        with self.lock:
            try:
                file = opened(self.path)
            except OSError:
                self._afresh(0)
                return
            with file:
                if not self._continues(file):
                    self._afresh(os.fstat(file.fileno()).st_ino)
                file.seek(self.offset)
                self._go_on(file, time.monotonic() + BUDGET_S)

    def _afresh(self, inode: int) -> None:
        self.offset, self._inode, self._end, self._long, self.behind = 0, inode, b"", False, False
        self.begin()

    def _go_on(self, file: IO[bytes], ends: float) -> None:
        self.behind = False
        while piece := file.readline(LINE):
            whole = piece.endswith(b"\n")
            if not whole and len(piece) < LINE:
                return  # it waits for its end
            if whole and not self._long:
                self.line(piece[:-1])
            elif not self._long:
                self.line(b"")  # a line that is too long counts as a broken one, and is not kept
            self._long = not whole
            self.offset += len(piece)
            self._end = piece[-64:]
            if time.monotonic() > ends:
                self.behind = True
                return

    def _continues(self, file: IO[bytes]) -> bool:
        state = os.fstat(file.fileno())
        if state.st_ino != self._inode or state.st_size < self.offset:
            return False
        file.seek(self.offset - len(self._end))
        return file.read(len(self._end)) == self._end


Kind = TypeVar("Kind", bound=Follower)


class Followers(Generic[Kind]):
    """A cache of followers, of the files that were asked for last."""

    def __init__(self, make: Callable[[Path], Kind]) -> None:
        self._make, self._lock = make, threading.Lock()
        self._followers: OrderedDict[Path, Kind] = OrderedDict()

    def behind(self, path: Path) -> int:
        """The offset up to which a file was read, while it is not read to its end; else 0."""
        follower = self._followers.get(Path(os.path.realpath(path)))
        return follower.offset if follower is not None and follower.behind else 0

    def get(self, path: Path) -> Kind:
        """The follower of a file, up to date."""
        with self._lock:
            if path not in self._followers:
                self._followers[path] = self._make(path)
            follower = self._followers[path]
            self._followers.move_to_end(path)
            if len(self._followers) > KEPT:
                self._followers.popitem(last=False)
        follower.update()
        return follower


class Columns(Follower):
    """The numbers of every line so far; `series` gives a column."""

    def begin(self) -> None:
        self.steps = array("d")
        self.columns: dict[str, array[float]] = {}
        self.broken = 0

    def series(self, name: str) -> tuple[Array, Array]:
        """Return (steps, values) of a metric, NaN where it was not recorded."""
        with self.lock:
            return np.array(self.steps), self._values(name)

    def by_difficulty(self) -> dict[str, tuple[Array, Array]]:
        """The series of held-out accuracy of each band of difficulty, from easy to hard.

        A run may have recorded each score apart: those of a band are joined, weighted by their numbers of problems.
        """
        found: dict[str, tuple[Array, Array]] = {}
        with self.lock:
            levels = list(dict.fromkeys(match[1] for name in self.columns if (match := LEVEL.fullmatch(name))))
            banded = dict(zip(levels, bands(map(_level, levels)), strict=True))
            steps = np.array(self.steps)
            for band in in_order(banded.values())[:BANDS]:
                within = [BY_DIFFICULTY + level for level in levels if banded[level] == band]
                shares = np.stack([self._values(f"{name}.accuracy") for name in within])  # (levels, steps)
                problems = np.nan_to_num(np.stack([self._values(f"{name}.problems") for name in within]), nan=1.0)
                weights = np.where(np.isfinite(shares), np.maximum(problems, 0.0), 0.0)
                total = weights.sum(0)
                right = (weights * np.nan_to_num(shares)).sum(0)
                found[BY_DIFFICULTY + band] = steps, np.where(total > 0, right / np.maximum(total, 1e-9), np.nan)
        return found

    def _values(self, name: str) -> Array:
        values = np.full(len(self.steps), np.nan)
        column = self.columns.get(name)
        if column is not None:
            values[: len(column)] = column
        return values

    def line(self, line: bytes) -> None:
        try:
            record = json.loads(line)
            step = float(record.pop("step"))
            if not np.isfinite(step):
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            self.broken += 1
            return
        n = len(self.steps)
        self.steps.append(step)
        for name, value in _flat(record):
            column = self.columns.get(name)
            if column is None:
                if (len(self.columns) >= NAMES and name not in METRICS) or len(name) > NAME:
                    continue
                column = self.columns[name] = array("d")
            if len(column) < n:
                column.extend([float("nan")] * (n - len(column)))
            if len(column) == n:  # else the line names it twice
                column.append(value)


def _level(name: str) -> Problem:
    """A problem of that difficulty: a score, or a label."""
    try:
        score = float(name)
    except ValueError:
        return Problem("", difficulty=name)
    return Problem("", difficulty_score=score) if np.isfinite(score) else Problem("", difficulty=name)


def _flat(record: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Flatten a record: {"verdicts": {"accepted": 3}} becomes ("verdicts.accepted", 3.0)."""
    for name, value in record.items():
        if isinstance(value, dict) and prefix.count(".") < 2:
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and abs(value) < 1e300:
            yield f"{prefix}{name}", float(value)


class Remarks(Follower):
    """The advisor's remarks by step, each made once while its reason lasts."""

    def __init__(self, path: Path, settings: Callable[[], Mapping[str, Any]]) -> None:
        self._settings = settings
        super().__init__(path)

    def begin(self) -> None:
        self.config = self._settings()  # `--resume` may change them, and begins the file anew
        self.found: list[dict[str, Any]] = []
        self._head: list[dict[str, Any]] = []
        self._tail: deque[dict[str, Any]] = deque(maxlen=LAST)
        self._said: dict[str, int] = {}  # code -> the number of the line where it was last found
        self._lines = 0

    def line(self, line: bytes) -> None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(record, dict) or not isinstance(record.get("step"), int):
            return
        (self._head if len(self._head) < FIRST else self._tail).append(record)
        number, self._lines = self._lines, self._lines + 1
        stride = number // EVERY + 1
        if number % stride or len(self.found) >= MOST:
            return
        try:
            now = advise([*self._head, *self._tail], self.config)
        except Exception:  # the rules expect what a run writes; of what somebody else wrote, there is nothing to say
            return
        lately = number - QUIET - stride
        self.found += [asdict(one) for one in now if self._said.get(one.code, lately) <= lately]
        self._said |= {one.code: number for top in now for one in (top, *top.symptoms)}
