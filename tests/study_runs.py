"""Made-up runs of studies, as a report gathers them."""

from __future__ import annotations

import random

from microcoder.study.results import ArmRuns, FinishedRun


def lines(gain, seed, arm, steps=4):
    """A run: accuracy rises by `gain`, its reward is the same for all arms, D is noise."""
    noise = random.Random(f"{seed} {arm}")
    found = [{"step": 0, "test_accuracy": 0.1}]
    for step in range(1, steps + 1):
        parts = {"generation_s": 1.0, "judging_s": 0.25, "update_s": 0.5, "other_s": 0.25, "step_s": 2.0}
        line = {"step": step, "reward": 0.3 + noise.gauss(0, 0.01), "length_mean": 50.0 + step, **parts}
        found.append({**line, "diversity": noise.gauss(0.5, 0.1), "truncated_share": 0.25, "masked_share": 0.125})
        if step % 2 == 0:
            found[-1]["test_accuracy"] = 0.1 + gain * step / steps + noise.gauss(0, 0.005)
    return found


def finished(metrics, **parts):
    return FinishedRun("r", metrics, {}, parts.get("info", {}), parts.get("config", {}), parts.get("judged", {}))


def arm_of(name, runs):
    return ArmRuns(name, name, dict(enumerate(runs)))
