"""The settings of the arm that is best on validation: how a learning rate, a temperature or a limit is chosen.

    python -m benchmarks.gpu arms run --arms "a=grpo_plus train.lr=1e-6" "b=grpo_plus train.lr=3e-6" --out DIR/lr ...
    python -m benchmarks.gpu arms run --set $(python -m benchmarks.gpu arms choose --out DIR/lr) ...

An arm's figure is the mean of its evaluations from half of its steps on, over its seeds: a single one scatters, and a
run that rises and falls again is no better than its second half.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.gpu.report import OWN, Comparison, TrainedRun
from microcoder.config import toml_value


def choose(out: Path) -> list[str]:
    """Settings in which arms differ, as the best one has them; a table of all arms goes to stderr."""
    found, means = Comparison(out), dict[str, float]()
    for arm in found.arms:
        values = [value for run in found.trained(arm) if run.finished for value in _late(run)]
        if values:
            means[arm] = sum(values) / len(values)
    if not means:
        raise SystemExit(f"{out} has no finished run with an evaluation; `arms run` makes them")
    ranked = sorted(means, key=lambda arm: -means[arm])
    for arm in ranked:
        print(f"{arm:20} {means[arm]:.1%} on validation, {len(found.arms[arm])} seeds", file=sys.stderr)
    settings = [found.trained(arm)[0].settings for arm in ranked]
    differ = [key for key in settings[0] if any(each.get(key) != settings[0][key] for each in settings)]
    return [f"{key}={toml_value(settings[0][key])}" for key in differ if key not in OWN]


def _late(run: TrainedRun) -> list[float]:
    last = max(line["step"] for line in run.metrics)
    return [line["test_accuracy"] for line in run.metrics if "test_accuracy" in line and 2 * line["step"] >= last]
