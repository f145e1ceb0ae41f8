"""Calibrate difficulty: fit a model's chance of success by score to its pass rates.

The chance never rises with the score: isotonic regression, by pooling adjacent violators. It is interpolated between
the pooled blocks, so a boundary ("success falls to 0.8 here") is one score. Its interval is a bootstrap over problems.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ...runs.disk import write_whole
from ..record import DataError, Dropped, Record

EASY, HARD = 0.8, 0.4  # easy: at least this chance of success; hard: less than this
Point = tuple[float, int, int]  # (a problem's score, successes, attempts)


class CalibrationError(DataError):
    """A calibration that cannot be made or read; the message says why and what to do."""


@dataclass(frozen=True)
class Boundary:
    """The score at which success falls to a value, with its interval."""

    success: float
    score: float  # where success falls to that value; 0: no problem is that easy, 1: none is that hard
    low: float  # 95%
    high: float


@dataclass(frozen=True)
class SuccessCurve:
    """A model's chance of success by score."""

    model: str
    scores: tuple[float, ...]  # rising
    chances: tuple[float, ...]  # of success at these scores, falling
    boundaries: tuple[Boundary, ...]
    problems: int
    attempts: int

    def success(self, score: float) -> float:
        return float(np.interp(score, self.scores, self.chances))

    def save(self, path: str | Path) -> None:
        write_whole(Path(path), json.dumps(asdict(self), indent=1).encode() + b"\n")

    @classmethod
    def load(cls, path: str | Path) -> SuccessCurve:
        try:
            data = json.loads(Path(path).read_bytes())
            scores, chances = tuple(map(float, data["scores"])), tuple(map(float, data["chances"]))
            if not scores or len(scores) != len(chances) or not (np.diff(scores) > 0).all():
                raise ValueError("its scores do not rise, or are not as many as its chances")
            boundaries = tuple(Boundary(**boundary) for boundary in data["boundaries"])
            return cls(str(data["model"]), scores, chances, boundaries, int(data["problems"]), int(data["attempts"]))
        except OSError as error:
            raise CalibrationError(f"cannot read the calibration {path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise CalibrationError(f"{path} is not a usable calibration ({error}); make it again") from None


def calibrate(
    points: Iterable[Point],
    model: str,
    *,
    successes: Sequence[float] = (EASY, HARD),
    resamples: int = 1000,
    seed: int = 0,
) -> SuccessCurve:
    """Fit the curve. `successes`: the chances to find boundaries for. Problems without an attempt are left out."""
    data = np.array([point for point in points if point[2] > 0], dtype=np.float64).reshape(-1, 3)
    if len(data) < 2:
        raise CalibrationError(f"{len(data)} problems with attempts are too few to calibrate on; take 100 or more")
    if not np.isfinite(data).all() or (data[:, 1] > data[:, 2]).any() or (data[:, 1] < 0).any():
        raise CalibrationError("a point is (score, successes, attempts) with 0 <= successes <= attempts")
    scores, chances = falling(data)
    draw = np.random.default_rng(seed)
    drawn = [falling(data[draw.integers(len(data), size=len(data))]) for _ in range(resamples)]
    boundaries = []
    for success in successes:
        found = [crossing(*curve, success) for curve in drawn]
        low, high = np.quantile(found, [0.025, 0.975]) if found else (0.0, 1.0)
        boundaries.append(Boundary(success, crossing(scores, chances, success), float(low), float(high)))
    numbers = len(data), int(data[:, 2].sum())
    return SuccessCurve(model, tuple(scores.tolist()), tuple(chances.tolist()), tuple(boundaries), *numbers)


def falling(data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the likeliest falling curve: (scores, chances) of its blocks. data (n, 3): score, successes, attempts"""
    scores, which = np.unique(data[:, 0], return_inverse=True)
    passed, tried = (np.bincount(which, weights=data[:, column]) for column in (1, 2))
    blocks: list[list[float]] = []  # attempts, attempts * score, successes
    for block in np.stack([tried, tried * scores, passed], axis=1).tolist():
        while blocks and block[2] * blocks[-1][0] >= blocks[-1][2] * block[0]:  # a higher score, but no lower success
            block = [a + b for a, b in zip(blocks.pop(), block, strict=True)]
        blocks.append(block)
    tried, weighted, passed = np.array(blocks).T
    return weighted / tried, passed / tried


def crossing(scores: np.ndarray, chances: np.ndarray, success: float) -> float:
    """Return the score where success falls to this value; 0 if it is never so high, 1 if it is never so low."""
    return float(np.interp(success, chances[::-1], scores[::-1], left=1.0, right=0.0))


def calibrated(record: Record, *, calibration: SuccessCurve) -> Record:
    """Set the note "success": the model's chance at a problem of this difficulty."""
    score = record.notes.get("difficulty")
    if not isinstance(score, (int, float)):
        raise Dropped("unscored", "it has no difficulty to calibrate; predict comes first")
    record.notes["success"] = round(calibration.success(score), 4)
    return record
