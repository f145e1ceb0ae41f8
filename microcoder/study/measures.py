"""Statistics of a run's metrics, written as `last(diversity) - first(diversity)`.

    first(m)       mean over the first tenth of the steps; of a test_ metric, the evaluation before training
    last(m)        mean over the last quarter of the steps; of a test_ metric, the last evaluation of training
    mean(m)        mean over everything recorded
    peak(m)        the largest smoothed value, smoothed as in the figures: not across a stage boundary
    peak_step(m)   the first step of that peak
    fall(m)        peak(m) - last(m)
    slope(m)       least-squares slope per step
    growth(m)      the same over the first half of the steps
    rough(m)       standard deviation of the changes from one recorded value to the next

A share of n steps is rounded down, a half up, and no window is empty. Missing values are left out; a statistic without
any value is NaN. Noise alone gives every run a peak, and so a fall above 0: compare falls between arms.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..runs import read_rollouts, steps
from ..runs.plot import Metrics, Series, series, smooth, stages
from ..schema import POLICIES, nearest

METRICS = (  # the numbers of a run that a claim may be about
    "reward", "accuracy", "length_mean", "length_max", "length_finished", "truncated_share", "repeated_share",
    "masked_share", "masked_signal_share",
    "no_signal_share", "no_code_share", "diversity", "entropy", "clip_low", "clip_high", "kl", "loss",
    "grad_norm", "temperature", "tokens", "tokens_per_s", "generation_s", "judging_s", "update_s", "other_s", "step_s",
    "accuracy_also", "test_accuracy", "test_accuracy_also", "test_pass_at_k", "test_length", "test_truncated_share",
    "test_diversity", "test_accuracy_cut", "test_cut_share", "test_continued_share",
    "direct_share", "trace_share", "loop_share",  # by `styles`
    *(f"{policy}_{what}" for policy in POLICIES for what in ("refused", "accepted", "mistaken")),  # by policies.py
)  # fmt: skip
STYLES = ("direct", "trace", "loop")  # first words of the testbed's answers (benchmarks/testbed)
TERM = re.compile(r"\s*([+-]?)\s*(\w+)\s*\(\s*(\w+)\s*\)\s*")


def styles(run: Path) -> dict[int, dict[str, float]]:
    """Return the share of each style among the completions of each step: {step: {"trace_share": 0.15, ...}}."""
    found = {}
    for step in steps(run):
        words = [row["completion"].split(None, 1)[:1] for row in read_rollouts(run, step)]
        found[step] = {f"{style}_share": words.count([style]) / len(words) for style in STYLES}
    return found


def measure(expression: str, metrics: Metrics) -> float:
    """Evaluate a sum or difference of statistics on the metrics of one run, in the order of steps."""
    trained = [line for line in metrics if line["step"] > 0]  # step 0 is the evaluation before training
    return sum(
        sign * FUNCTIONS[function](metrics if _tested(name) else trained, name)
        for sign, function, name in parse(expression)
    )


def parse(expression: str) -> list[tuple[int, str, str]]:
    """Parse an expression into terms (sign, function, metric). Raise ValueError with the part that cannot be read."""
    terms: list[tuple[int, str, str]] = []
    at = 0
    while at < len(expression) or not terms:
        term = TERM.match(expression, at)
        if term is None or (terms and not term[1]):
            rest = repr(expression[at:]) if expression[at:].strip() else "its end"
            raise ValueError(
                f"the statistic {expression!r} cannot be read at {rest}; "
                "write terms joined by + or -, such as last(diversity) - first(diversity)"
            )
        for kind, word, known in (("function", term[2], FUNCTIONS), ("metric", term[3], METRICS)):
            if word not in known:
                hint = nearest(word, known) or f"; known are {', '.join(known)}"
                raise ValueError(f"the statistic {expression!r} names the unknown {kind} {word!r}{hint}")
        terms.append((-1 if term[1] == "-" else 1, term[2], term[3]))
        at = term.end()
    return terms


def _tested(name: str) -> bool:
    return name.startswith("test_")


def _mean(lines: Metrics, name: str) -> float:
    values = _known(series(lines, name))
    return float(values.mean()) if len(values) else float("nan")


def _first(lines: Metrics, name: str) -> float:
    if _tested(name):
        return _mean([line for line in lines if line["step"] == 0], name)
    return _mean(lines[: max(1, len(lines) // 10)], name)


def _last(lines: Metrics, name: str) -> float:
    if _tested(name):
        return _mean([line for line in lines if line["step"] > 0 and line.get(name) is not None][-1:], name)
    return _mean(lines[-max(1, len(lines) // 4) :], name)


def _smoothed(lines: Metrics, name: str) -> Series:
    parts = [smooth(series(stage, name)) for stage in stages(lines) if stage]
    return np.concatenate([*parts, [np.nan]])  # (lines + 1,): the NaN is for a run without lines


def _peak(lines: Metrics, name: str) -> float:
    return float(max(_known(_smoothed(lines, name)), default=np.nan))


def _peak_step(lines: Metrics, name: str) -> float:
    values = _smoothed(lines, name)
    return float(lines[int(np.nanargmax(values))]["step"]) if len(_known(values)) else float("nan")


def _slope(lines: Metrics, name: str) -> float:
    steps, values = series(lines, "step"), series(lines, name)
    steps, values = steps[np.isfinite(values)], _known(values)  # (recorded,) each
    if len(values) < 2:
        return float("nan")
    steps = steps - steps.mean()
    return float(steps @ values / (steps @ steps))


def _rough(lines: Metrics, name: str) -> float:
    changes = np.diff(_known(series(lines, name)))
    return float(changes.std(ddof=1)) if len(changes) > 1 else float("nan")


def _known(values: Series) -> Series:
    return values[np.isfinite(values)]


FUNCTIONS: dict[str, Callable[[Metrics, str], float]] = {
    "first": _first,
    "last": _last,
    "mean": _mean,
    "peak": _peak,
    "peak_step": _peak_step,
    "fall": lambda lines, name: _peak(lines, name) - _last(lines, name),
    "slope": _slope,
    "growth": lambda lines, name: _slope(lines[: (len(lines) + 1) // 2], name),
    "rough": _rough,
}
