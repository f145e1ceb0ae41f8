"""The results as tables: the sets, the curves, the differences at the end, accuracy by depth, what was learned from."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.selection.results import Arm, read
from benchmarks.shared.means import Scores, bootstrap, gain

PAIRS = (("hard", "all"), ("easier", "all"), ("hard", "easier"))
Row = dict[str, Any]


def report(args: Namespace) -> None:
    arms, seeds = read(args.out, args.arms)
    named = {arm.name: arm for arm in arms}
    depths = arms[0].scores[0][0]["depths"]
    levels = np.array([depths[name] for name in sorted(depths)])  # (problems,) in the order of `Arm.accuracy`
    found = {
        "Training sets": [training_set(arm) for arm in arms],
        "Accuracy on the held-out problems": [curve(arm) for arm in arms],
        "Differences after the last step": [difference(named[a], named[b]) for a, b in PAIRS if {a, b} <= set(named)],
        "Accuracy by depth after the last step": [
            by_depth("untrained", levels, arms[0].accuracy(0)),
            *(by_depth(arm.name, levels, arm.accuracy(-1)) for arm in arms),
        ],
        "During training, first and last quarter of the steps": [training(arm) for arm in arms],
    }
    print(f"{len(levels)} held-out problems, seeds {', '.join(map(str, seeds))}\n")
    for title, rows in found.items():
        print(f"{title}\n\n{table(rows)}\n")
    if args.json:
        args.json.write_text(json.dumps({"seeds": seeds, **found}, indent=1) + "\n")
    if args.plot:
        from benchmarks.selection.plot import plot

        plot(arms, args.plot)


def training_set(arm: Arm) -> Row:
    """How it was chosen, and what nano makes of it before any training; groups with signal: of step 1."""
    return {
        "arm": arm.name,
        "settings": arm.known["settings"],
        "problems": arm.known["problems"],
        "of depth": ", ".join(f"{depth}: {count}" for depth, count in arm.known["depths"].items()),
        "success expected": arm.known["success expected"],
        "measured": arm.known["success measured"],
        "groups with signal": 1 - float(arm.measured("no_signal_share")[:, 0].mean()),
    }


def curve(arm: Arm) -> Row:
    means, last = arm.scored("accuracy").mean(0), arm.accuracy(-1)
    return {
        "arm": arm.name,
        **{f"step {step}": float(mean) for step, mean in zip(arm.steps, means, strict=True)},
        "95%": bootstrap(last),
        "each seed": last.mean(1).tolist(),
    }


def difference(arm: Arm, base: Arm) -> Row:
    compared = gain(arm.accuracy(-1), base.accuracy(-1))
    points = (arm.accuracy(-1) - base.accuracy(-1)).mean(1) * 100  # (seeds,)
    return {
        "compared": f"{arm.name} - {base.name}",
        "points": compared["points"],
        "95%": compared["points_interval"],
        "each seed": points.tolist(),
    }


def by_depth(name: str, levels: np.ndarray, scores: Scores) -> Row:
    means = scores.mean(0)  # (problems,)
    return {"arm": name, **{f"depth {level}": float(means[levels == level].mean()) for level in np.unique(levels)}}


def training(arm: Arm) -> Row:
    columns = {
        "groups with signal": 1 - arm.measured("no_signal_share"),
        "accepted": arm.measured("accuracy"),
        "D": arm.measured("diversity"),
        "tokens": arm.measured("length_mean"),
        "truncated": arm.measured("truncated_share"),
    }  # each (seeds, steps)
    quarter = max(1, len(arm.metrics[0]) // 4)
    means = {name: [float(v[:, :quarter].mean()), float(v[:, -quarter:].mean())] for name, v in columns.items()}
    return {"arm": arm.name, **means, "tokens, held out": arm.scored("length")[:, [0, -1]].mean(0).tolist()}


def table(rows: Sequence[Row]) -> str:
    """As Markdown."""
    return "\n".join([_line(rows[0]), _line("---" for _ in rows[0]), *(_line(map(cell, r.values())) for r in rows)])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def cell(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return (" to " if isinstance(value, tuple) else ", ").join(map(cell, value))
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) <= 1 else f"{value:.1f}"
    return str(value)
