"""Read a folder of studies: the metrics of finished runs by arm and seed, decided claims, and a row for each arm.

    OUT/SCALE/plan.json           study/arm/seed -> the name of its run
    OUT/SCALE/studies/NAME.toml   the study as it was run: title, figure, about, arms, claims
    OUT/SCALE/runs/NAME/          run directories of `microcoder train`
    OUT/SCALE/judged/NAME.json    further measurements of a run, added to the last line of its metrics
    OUT/SCALE/styles/NAME.json    shares of the styles of answers at each step, added to the lines of its metrics

Only finished runs count: the last steps of a run that was stopped half-way are not the last steps of its arm. The other
runs are named. If one of the package's studies was run, the others are listed too, without runs and with open claims.

The false discovery rate of a scale is controlled over all of its claims. A claim with several tests is shown by the
test that decided it: the weakest evidence for it or, if it is contradicted, the strongest against it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..runs import read_info, read_metrics
from .decisions import CONTRADICTED, CheckedGate, ClaimDecision, check, decide, p_values
from .effects import Effect, paired
from .measures import measure
from .plan import (
    ORDER,
    Claim,
    ClaimTest,
    Gate,
    StudyError,
    find_study,
    read_claims,
    read_gates,
    read_toml,
    tables,
    text,
)

COLUMNS = {  # columns of an arm's row
    "accuracy_before": "first(test_accuracy)",
    "accuracy_after": "last(test_accuracy)",
    "length": "last(length_mean)",
    "diversity": "last(diversity)",
    "truncated_share": "last(truncated_share)",
    "masked_share": "mean(masked_share)",
    "reward": "last(reward)",
    "step_s": "mean(step_s)",
}
Key = tuple[str, int]  # study and number of a claim


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A finished run: the parts of its directory that a report needs."""

    name: str
    metrics: list[dict[str, Any]]  # with `judged` in the last line
    summary: dict[str, Any]
    info: dict[str, Any]  # run.json
    config: dict[str, Any]
    judged: dict[str, float]


@dataclass(frozen=True, slots=True)
class ArmRuns:
    name: str
    label: str
    runs: dict[int, FinishedRun]  # by seed

    def values(self, statistic: str) -> dict[int, float]:
        return {seed: measure(statistic, run.metrics) for seed, run in self.runs.items()}


@dataclass(frozen=True, slots=True)
class StudyRuns:
    name: str
    title: str
    figure: int  # of the paper; 0: none
    about: str
    arms: dict[str, ArmRuns]
    claims: tuple[Claim, ...]
    gates: tuple[Gate, ...] = ()

    @property
    def was_run(self) -> bool:
        return any(arm.runs for arm in self.arms.values())


@dataclass(frozen=True, slots=True)
class ScaleRuns:
    name: str
    studies: dict[str, StudyRuns]
    planned: int  # number of runs; several arms may share one
    unfinished: list[str]

    @property
    def runs(self) -> dict[str, FinishedRun]:
        arms = [arm for study in self.studies.values() for arm in study.arms.values()]
        return {run.name: run for arm in arms for run in arm.runs.values()}

    def values(self, study: str, arm: str, statistic: str) -> dict[int, float]:
        """Compute a statistic for each seed of an arm; empty if it was not run."""
        found = self.studies[study].arms.get(arm) if study in self.studies else None
        return found.values(statistic) if found else {}


def gather(out: str | Path) -> list[ScaleRuns]:
    """Read every scale in the folder, by name. Raise StudyError if no run is finished."""
    out = Path(out)
    if not out.is_dir():
        raise StudyError(f"there is no folder {out}; name the one that `microcoder study run --out` wrote into")
    if (out / "plan.json").exists():
        raise StudyError(f"{out} is one scale; a report is about all of them: name the folder above, {out.parent}")
    folders = sorted(path.parent for path in out.glob("*/plan.json"))
    if not folders:
        raise StudyError(f"{out} holds no studies (a scale has a plan.json); make some: microcoder study run all")
    scales = [gather_scale(folder) for folder in folders]
    if not any(scale.runs for scale in scales):
        planned = sum(scale.planned for scale in scales)
        raise StudyError(f"none of the {planned} runs in {out} is finished; type the `study run` that began them again")
    return scales


def gather_scale(folder: Path) -> ScaleRuns:
    plan: dict[str, dict[str, dict[int, str]]] = {}  # study -> arm -> seed -> run
    for key, run in _json(folder / "plan.json").items():
        study, arm, seed = key.split("/")  # as launch.py wrote it
        plan.setdefault(study, {}).setdefault(arm, {})[int(seed)] = run
    names = sorted({run for arms in plan.values() for seeds in arms.values() for run in seeds.values()})
    finished = {name: run for name in names if (run := _finished(folder, name))}
    files = {name: folder / "studies" / f"{name}.toml" for name in plan}
    if set(ORDER) & set(plan):
        files = {name: find_study(name) for name in ORDER} | files
    studies = {name: _study(files[name], folder.name, plan.get(name, {}), finished) for name in in_order(files)}
    return ScaleRuns(folder.name, studies, len(names), [name for name in names if name not in finished])


def in_order(studies: Iterable[str]) -> list[str]:
    """Sort studies: the paper's in its order, then others by name."""
    return sorted(studies, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


def _study(
    path: Path, scale: str, plan: Mapping[str, Mapping[int, str]], finished: Mapping[str, FinishedRun]
) -> StudyRuns:
    data = read_toml(path)
    arms = {}
    for record in tables(data, "arms", str(path)):
        text(record, ("name",), str(path))
        label = {**record, **record.get("at", {}).get(scale, {})}.get("label", record["name"])
        seeds = sorted(plan.get(record["name"], {}).items())
        arms[record["name"]] = ArmRuns(record["name"], label, {n: finished[run] for n, run in seeds if run in finished})
    claims = read_claims(data, path.stem, arms, str(path))
    gates = read_gates(data, scale, arms, claims, str(path))
    title, about = data.get("title", path.stem), data.get("about", "")
    return StudyRuns(path.stem, title, data.get("figure", 0), about, arms, claims, gates)


def _finished(folder: Path, name: str) -> FinishedRun | None:
    path = folder / "runs" / name
    summary = _json(path / "summary.json") if (path / "summary.json").exists() else {}
    metrics = read_metrics(path)
    if summary.get("status") != "finished" or not metrics:
        return None
    extra = folder / "judged" / f"{name}.json"
    judged = _json(extra) if extra.exists() else {}
    metrics[-1] |= judged
    shares = folder / "styles" / f"{name}.json"
    by_step = _json(shares) if shares.exists() else {}
    metrics = [line | by_step.get(str(line["step"]), {}) for line in metrics]
    return FinishedRun(name, metrics, summary, read_info(path), read_toml(path / "config.toml"), judged)


def _json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise StudyError(f"cannot read {path}: {error}; remove it, and type `microcoder study run` again") from None


@dataclass(frozen=True)
class Decided:
    """A scale with its decisions; the p values of each claim are adjusted for the number of claims."""

    runs: ScaleRuns
    decisions: dict[Key, ClaimDecision]
    adjusted: dict[Key, tuple[float, float]]  # for and against; claims that were not run or not testable have none
    weight: float  # weight of other arms in the spread of an effect

    @property
    def name(self) -> str:
        return self.runs.name

    def gates(self, study: str) -> list[CheckedGate]:
        return check(self.runs.studies[study].gates, study, self.runs.values)


def decide_scale(scale: ScaleRuns) -> Decided:
    claims = [claim for study in scale.studies.values() for claim in study.claims]
    keys = [(claim.study, claim.number) for claim in claims]
    arms = {name: list(study.arms) for name, study in scale.studies.items()}
    gates = {name: study.gates for name, study in scale.studies.items()}
    found, weight = decide(claims, scale.values, arms, gates=gates)
    decisions = dict(zip(keys, found, strict=True))
    run = {key: decision for key, decision in decisions.items() if decision.tested}
    holds = adjust([decision.p_for or 0.0 for decision in run.values()])
    fails = adjust([decision.p_against or 0.0 for decision in run.values()])
    adjusted = dict(zip(run, zip(holds, fails, strict=True), strict=True))
    return Decided(scale, decisions, adjusted, weight)


def adjust(ps: Sequence[float]) -> list[float]:
    """Return Benjamini and Hochberg's adjusted p values: a p survives at a level if it is at most that level."""
    found, lowest = [1.0] * len(ps), 1.0
    for rank, place in zip(range(len(ps), 0, -1), sorted(range(len(ps)), key=lambda n: -ps[n]), strict=True):
        lowest = found[place] = min(lowest, ps[place] * len(ps) / rank)
    return found


def deciding_test(decision: ClaimDecision) -> tuple[ClaimTest, Effect]:
    """Return the test that decided a claim, with its effect. The claim must have been run."""
    if decision.verdict == CONTRADICTED:
        return min(decision.tests, key=lambda each: p_values(*each)[1])
    return max(decision.tests, key=lambda each: p_values(*each)[0])


def arm_row(arm: ArmRuns) -> dict[str, Effect]:
    return {name: paired(arm.values(statistic)) for name, statistic in COLUMNS.items()}


def forest_rows(decided: Decided) -> list[dict[str, Any]]:
    """List the effect behind each verdict, in standard deviations between seeds; positive means as claimed.

    Studies without any run are left out.
    """
    rows = []
    for decision in decided.decisions.values():
        claim = decision.claim
        study = decided.runs.studies[claim.study]
        if not study.was_run:
            continue
        row: dict[str, Any] = {"aspect": study.title, "label": f"{claim.number}. {claim.text}"}
        row |= {"verdict": decision.verdict, "estimate": None, "low": None, "high": None}
        if decision.tested:
            test, effect = deciding_test(decision)
            row["label"] += " (claimed: no difference)" * (test.expect == "same")
            turn = (-1 if test.expect == "less" else 1) / _spread(decided.runs, claim, test, effect)
            numbers = [turn * x for x in (effect.estimate, effect.low, effect.high) if x is not None]
            row |= {"estimate": numbers[0], "low": min(numbers), "high": max(numbers)}
        rows.append(row)
    return rows


def _spread(scale: ScaleRuns, claim: Claim, test: ClaimTest, effect: Effect) -> float:
    """Return the standard deviation of the statistic between seeds, pooled over the test's arms."""
    arms = [scale.values(claim.study, arm, test.statistic) for arm in test.arms]
    spread = math.sqrt(np.mean([np.var([arm[seed] for seed in effect.seeds], ddof=1) for arm in arms]))
    size = abs(effect.estimate)
    return spread if spread > 1e-9 * size else size or 1.0  # if all seeds agree, there is no spread
