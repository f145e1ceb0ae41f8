"""What `data` and `train` have left behind, read again: an arm is its training set, its runs and their scores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.mbpp.results import accuracies
from benchmarks.shared.means import Scores
from microcoder.runs import checkpoints, read_metrics


@dataclass(frozen=True)
class Arm:
    name: str
    steps: list[int]  # that were scored, 0 first
    scores: list[list[dict[str, Any]]]  # by seed and scored step
    metrics: list[list[dict[str, Any]]]  # by seed and step of training
    known: dict[str, Any]  # of its training set

    def accuracy(self, at: int) -> Scores:
        """(seeds, problems) at the scored step of this number, in the order of the problems' names."""
        return np.array([accuracies(scores[at]["accepted"]) for scores in self.scores])

    def scored(self, name: str) -> Scores:
        """(seeds, scored steps)"""
        return np.array([[score[name] for score in scores] for scores in self.scores])

    def measured(self, name: str) -> Scores:
        """(seeds, steps of training)"""
        return np.array([[line[name] for line in lines] for lines in self.metrics])


def read(out: Path, arms: Sequence[str]) -> tuple[list[Arm], list[int]]:
    """The arms, and the seeds that all of them have finished and scored; other seeds are left out."""
    found = [{int(run.name.rpartition("-")[2]) for run in out.glob(f"runs/{arm}-[0-9]*") if _done(run)} for arm in arms]
    seeds = sorted(set.intersection(*found))
    if not seeds:
        raise SystemExit(f"{out} has no seed that {', '.join(arms)} have all finished; train goes on with them")
    return [_arm(out, arm, seeds) for arm in arms], seeds


def score_file(out: Path, name: str, step: int) -> Path:
    return out / "scores" / f"{name}.{step}.json"


def finished(run: Path) -> int:
    """The steps of a finished run, 0 of any other."""
    summary = run / "summary.json"
    found = json.loads(summary.read_text()) if summary.exists() else {}
    return found["steps"] if found.get("status") == "finished" else 0


def _done(run: Path) -> bool:
    scores = (score_file(run.parent.parent, run.name, step) for step in checkpoints(run))
    return bool(finished(run)) and all(score.exists() for score in scores)


def _arm(out: Path, arm: str, seeds: list[int]) -> Arm:
    runs = [out / "runs" / f"{arm}-{seed}" for seed in seeds]
    steps = checkpoints(runs[0])
    files = [[score_file(out, "untrained", 0), *(score_file(out, run.name, step) for step in steps)] for run in runs]
    scores = [[json.loads(file.read_text()) for file in row] for row in files]
    metrics = [[line for line in read_metrics(run) if line["step"]] for run in runs]
    return Arm(arm, [0, *steps], scores, metrics, json.loads((out / f"sets/{arm}.json").read_text()))
