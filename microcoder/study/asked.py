"""Three tables that readers of the paper asked for, each from the runs of one study; none if it was not run.

1. The truncation mask, condition by condition: every arm compared with the paper's choice and with no mask.
2. T(D) compared with every fixed temperature, and the temperatures that it chose.
3. Mistakes of each judging policy: right programs that it refuses, wrong ones that it accepts. Programs of a run
   resemble each other, so these intervals (Wilson's) are narrower than intervals over new runs would be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..schema import POLICIES
from ..stats import wilson
from .effects import Effect, moderated, paired, spread
from .results import ArmRuns, Decided, ScaleRuns, arm_row

AFTER = "last(test_accuracy)"
CHOICE, NOTHING = "mask-20", "none"  # arms of the truncation study that the others are compared with


def mask_rows(decided: Decided) -> list[dict[str, Any]]:
    """List the arms of the truncation study with their numbers and their paired differences of held-out accuracy."""
    arms = _arms(decided.runs, "truncation")
    rows = []
    for arm in arms.values():
        others = [name for name in (CHOICE, NOTHING) if name in arms and name != arm.name]
        against = {name: _gain(arms, arm.name, name, decided.weight) for name in others}
        rows.append({"arm": arm.name, "label": arm.label, **arm_row(arm), "against": against})
    return rows


def by_diversity(decided: Decided) -> dict[str, Any]:
    """Compare T(D) with fixed temperatures: accuracy, gains, and its choices in each seed ([first step, temperature]).

    The others are the arms of the temperature study with one temperature for the whole run, and the same evaluation.
    """
    arms = _arms(decided.runs, "temperature")
    arm = next((arm for arm in arms.values() if _setting(arm, "grpo", "temperature") == "auto"), None)
    if arm is None:
        return {}
    rows = []
    for other in arms.values():
        fixed = other.name != arm.name and not _setting(other, "train", "stages")
        if fixed and _setting(other, "train", "eval_temperature") == _setting(arm, "train", "eval_temperature"):
            named = {"arm": other.name, "label": other.label, "accuracy_after": paired(other.values(AFTER))}
            rows.append({**named, "gain": _gain(arms, arm.name, other.name, decided.weight)})
    chosen = {
        seed: [[stage["first_step"], stage["temperature"]] for stage in run.info.get("stages", [])]
        for seed, run in arm.runs.items()
    }
    return {"arm": arm.name, "accuracy_after": paired(arm.values(AFTER)), "chosen": chosen, "against": rows}


def policy_rows(scale: ScaleRuns) -> list[dict[str, Any]]:
    """Count the mistakes of each policy on the programs of all judged runs, and on those of each arm."""
    groups = {"all arms": [run.judged for run in scale.runs.values() if run.judged.get("programs")]}
    for study in scale.studies.values():
        for arm in study.arms.values():
            groups[arm.label] = [run.judged for run in arm.runs.values() if run.judged.get("programs")]
    return [_mistakes(policy, group, runs) for policy in POLICIES for group, runs in groups.items() if runs]


def _mistakes(policy: str, group: str, runs: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Count each kind of mistake, with the interval of its share."""
    programs, right, refused, accepted = (
        int(sum(run[name] for run in runs))
        for name in ("programs", "right", f"{policy}_right_refused", f"{policy}_wrong_accepted")
    )
    counts = {"right_refused": (refused, right), "wrong_accepted": (accepted, programs - right)}
    found = {name: {"count": count, "of": of, "interval": wilson(count, of)} for name, (count, of) in counts.items()}
    return {"policy": policy, "programs_of": group, **found}


def _gain(arms: Mapping[str, ArmRuns], of: str, against: str, weight: float) -> Effect:
    """Return the difference of held-out accuracy between two arms, with the blended spread of a claim's effect."""
    numbers = {name: arm.values(AFTER) for name, arm in arms.items()}
    effect = paired(numbers[of], numbers[against])
    return moderated(effect, spread(effect, {of: 1.0, against: -1.0}, numbers), weight)


def _arms(scale: ScaleRuns, study: str) -> dict[str, ArmRuns]:
    found = scale.studies[study].arms if study in scale.studies else {}
    return {name: arm for name, arm in found.items() if arm.runs}


def _setting(arm: ArmRuns, section: str, key: str) -> Any:
    """Return the value of a setting in the first run of the arm."""
    return next(iter(arm.runs.values())).config.get(section, {}).get(key)
