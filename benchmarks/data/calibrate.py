"""Predict, calibrate, select from end to end on two CPU cores: nano on the starter problems, no data needed.

    python -m benchmarks.data calibrate

500 problems train a predictor, nano's pass rates on 200 others calibrate it, and 200 more show what the chances of
success are worth.
"""

from __future__ import annotations

import argparse

import numpy as np

from microcoder.data.difficulty.calibrate import calibrate, calibrated
from microcoder.data.difficulty.measure import pass_rates, points
from microcoder.data.difficulty.predictor import labelled, predict, train
from microcoder.data.difficulty.select import BY_SUCCESS, hardness, plan
from microcoder.data.record import Record
from microcoder.judge import Judge
from microcoder.starter import problems

TARGET = {"easy": 0.2, "medium": 0.4, "hard": 0.4}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="nano")
    parser.add_argument("--attempts", type=int, default=4)
    parser.add_argument("--learn", type=int, default=500)
    parser.add_argument("--measure", type=int, default=200, help="problems to calibrate on, and as many to check on")
    args = parser.parse_args()
    records = [Record(problem) for problem in problems("train", args.learn + 2 * args.measure)]
    predictor = train(*zip(*labelled(records[: args.learn]), strict=True))
    rest = [predict(record, predictor=predictor) for record in records[args.learn :]]
    with Judge(queue=1 << 20) as judge:
        rates = list(pass_rates(rest, args.model, args.attempts, judge=judge, limit=256))
    found = list(points(rest, rates))
    calibration = calibrate(found[: args.measure], args.model)
    for edge in calibration.boundaries:
        print(f"success falls to {edge.success} at score {edge.score:.3f} ({edge.low:.3f}-{edge.high:.3f})")
    held = [calibrated(record, calibration=calibration) for record in rest[args.measure :]]
    chances = np.array([record.notes["success"] for record in held])
    passed = np.array([successes / attempts for _, successes, attempts in found[args.measure :]])
    print(f"\n{'chance':>10} {'problems':>8} {'predicted':>9} {'measured':>9}")
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        inside = (low <= chances) & (chances < low + 0.2 + (low == 0.8))
        if inside.any():
            means = f"{chances[inside].mean():9.3f} {passed[inside].mean():9.3f}"
            print(f"{low:.1f} to {low + 0.2:.1f} {inside.sum():8} {means}")
    error, constant = np.mean((chances - passed) ** 2), np.var(passed)
    print(f"squared error {error:.3f}, of the mean alone {constant:.3f}\n")
    print(plan(((r.problem.id, hardness(r)) for r in held), target=TARGET, bands=BY_SUCCESS).table())
