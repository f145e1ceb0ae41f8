"""What `train` and `score` left behind, read again: finished runs, and scores by run and set of problems."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microcoder.config import Config, load
from microcoder.runs import read_metrics

UNTRAINED = "untrained"
TRIES = 4  # accuracy is the mean of so many
TIME_LIMIT_S = 3.0  # of a test, where models are scored: the reference of mbpp/123 needs over a second


@dataclass(frozen=True)
class Trained:
    name: str
    arm: str
    seed: int
    config: Config
    steps: list[dict[str, Any]]  # the metrics of each step
    evaluations: list[dict[str, Any]]  # those with an evaluation, step 0 too


def trained(out: Path, order: Sequence[str]) -> list[Trained]:
    """The finished runs, by arm in this order, then by seed."""
    found = []
    for summary in (out / "runs").glob("*/summary.json"):
        folder = summary.parent
        arm, _, seed = folder.name.rpartition("-")
        if arm in order and json.loads(summary.read_text())["status"] == "finished":
            lines = read_metrics(folder)
            steps = [line for line in lines if line["step"]]
            tests = [line for line in lines if line.get("test_accuracy") is not None]
            found.append(Trained(folder.name, arm, int(seed), load(folder / "config.toml"), steps, tests))
    return sorted(found, key=lambda run: (order.index(run.arm), run.seed))


def unequal(runs: Sequence[Trained]) -> list[str]:
    """Settings outside [grpo] that are not the same in all runs, in words; seed and place may differ."""
    dumps = [run.config.model_dump() for run in runs]
    found = []
    for section, values in dumps[0].items() if dumps else ():
        for key in values:
            seen = {json.dumps(dump[section][key]) for dump in dumps}
            own = section == "grpo" or f"{section}.{key}" in ("train.seed", "train.name", "train.folder")
            if len(seen) > 1 and not own:
                found.append(f"{section}.{key} is {' and '.join(sorted(seen))}")
    return found


def score_file(out: Path, name: str, which: str) -> Path:
    return out / "scores" / f"{name}.{which}.json"


def read_score(out: Path, name: str, which: str) -> dict[str, Any] | None:
    path = score_file(out, name, which)
    return json.loads(path.read_text()) if path.exists() else None


def accuracies(accepted: dict[str, str]) -> NDArray[np.float64]:
    """(problems,) the share of the first tries that was accepted, by problem in order of its name.

    `accepted` holds for each problem a 1, a 0 or (a fault of the judge, which counts as neither) a ? for each try.
    """
    tries = [accepted[name][:TRIES].replace("?", "") for name in sorted(accepted)]
    return np.array([tried.count("1") / max(len(tried), 1) for tried in tries])


def score_words(found: dict[str, Any]) -> str:
    return (
        f"accuracy {found['accuracy']:.3f}, pass@{found['tries']} {found['pass_at_k']:.3f}, "
        f"length {found['length']:.0f}, {found['seconds']:.0f} s"
    )
