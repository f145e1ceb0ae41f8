"""report.json: every verdict, effect, interval and p value of each scale, with the numbers of each seed."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from ...runs.disk import plain
from ..deciding import p_values
from .asked import by_diversity, mask_rows, policy_rows
from .results import Decided, Key, arm_row


def scale_record(decided: Decided) -> dict[str, Any]:
    """Everything about a scale, ready for JSON."""
    scale = decided.runs
    return record(
        {
            "runs": {"planned": scale.planned, "finished": len(scale.runs), "unfinished": scale.unfinished},
            "seconds": math.fsum(run.summary.get("train_seconds", 0.0) for run in scale.runs.values()),
            "other_arms_count": decided.weight,  # degrees of freedom, in the spread of each effect; null: all they have
            "claims": [_claim_record(decided, key) for key in decided.decisions],
            "studies": {
                study.name: {
                    "title": study.title,
                    "figure": study.figure,
                    "arms": {
                        arm.name: {"label": arm.label, "seeds": list(arm.runs), **arm_row(arm)}
                        for arm in study.arms.values()
                    },
                }
                for study in scale.studies.values()
            },
            "asked": {
                "mask": mask_rows(decided),
                "temperature": by_diversity(decided),
                "policies": policy_rows(scale),
            },
        }
    )


def _claim_record(decided: Decided, key: Key) -> dict[str, Any]:
    decision = decided.decisions[key]
    claim, adjusted = decision.claim, decided.adjusted.get(key, (None, None))
    tests = []
    for test, effect in decision.tests:
        ps = p_values(test, effect) if len(effect.values) > 1 else (None, None)
        tests.append({**dataclasses.asdict(test), **dataclasses.asdict(effect), "p_for": ps[0], "p_against": ps[1]})
    return {
        **{name: getattr(claim, name) for name in ("number", "study", "text")},
        **{name: getattr(decision, name) for name in ("verdict", "p_for", "p_against", "words")},
        "adjusted_for": adjusted[0],
        "adjusted_against": adjusted[1],
        "tests": tests,
    }


def record(value: Any) -> Any:
    """Dataclasses as tables, keys as text, what is not finite as null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, dict):
        return {str(key): record(item) for key, item in value.items()}
    return [record(item) for item in value] if isinstance(value, list | tuple) else plain(value)
