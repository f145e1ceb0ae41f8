"""The tables: accuracy of every arm, what microcoder gains over each other one, and how training went."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.mbpp.results import TRIES, UNTRAINED, Trained, accuracies, read_score, trained, unequal
from benchmarks.mbpp.train import ARMS, BASELINES
from benchmarks.shared.means import Interval, bootstrap, gain, t_interval

SETS = {"test": "MBPP test", "humaneval": "HumanEval", "validation": "MBPP validation"}
SECONDS = ("step_s", "generation_s", "judging_s", "judging_floor_s", "update_s", "other_s")
LAST = 10  # steps that "at the end" is the mean of
Row = dict[str, Any]


def report(out: Path, to_json: Path | None, to_plot: Path | None) -> None:
    runs = trained(out, list(ARMS))
    found: Row = {
        "settings_that_differ": unequal(runs),
        "training": [_training(arm, _of(runs, arm)) for arm in ARMS if _of(runs, arm)],
        "sets": {which: part for which in SETS if (part := _set(out, which, runs))},
    }
    for words in found["settings_that_differ"]:
        print(f"NOT EQUAL: {words}")
    for which, part in found["sets"].items():
        _print_set(which, part)
    _print_training(found["training"])
    if to_json:
        to_json.write_text(json.dumps(_plain(found), indent=1) + "\n")
    if to_plot:
        from benchmarks.mbpp.plot import plot

        plot(runs, to_plot)


def _set(out: Path, which: str, runs: Sequence[Trained]) -> Row:
    """The rows of one set, the untrained model first; empty where nothing was scored."""
    rows, matrices = [], {}
    for arm in (UNTRAINED, *ARMS):
        names = {0: UNTRAINED} if arm == UNTRAINED else {seed: run.name for seed, run in _of(runs, arm).items()}
        scored = {seed: score for seed, name in names.items() if (score := read_score(out, name, which))}
        if scored:
            matrices[arm] = {seed: accuracies(score["accepted"]) for seed, score in scored.items()}
            rows.append(_row(arm, list(scored.values()), matrices[arm]))
    if not rows:
        return {}
    gains, baselines = [], [row for row in rows if row["arm"] in BASELINES]
    best = max(baselines, key=lambda row: row["accuracy"])["arm"] if baselines else None
    for arm in (arm for arm in ARMS if arm != "microcoder" and arm in matrices and "microcoder" in matrices):
        seeds = sorted(matrices["microcoder"].keys() & matrices[arm].keys())
        if seeds:
            pair = [np.stack([matrices[name][seed] for seed in seeds]) for name in ("microcoder", arm)]
            gains.append({"against": arm, "best_baseline": arm == best, "seeds": len(seeds), **gain(*pair)})
    return {"rows": rows, "gains": gains}


def _row(arm: str, scores: list[Row], by_seed: dict[int, Any]) -> Row:
    matrix = np.stack(list(by_seed.values()))  # (seeds, problems)
    means = [float(mean) for mean in matrix.mean(1)]
    names = ("pass_at_k", "length", "diversity", "truncated_share", "no_code_share")
    return {
        "arm": arm,
        "seeds": list(by_seed),
        "accuracy": float(matrix.mean()),
        "accuracy_by_seed": means,
        "over_seeds": t_interval(means),
        "over_problems_and_seeds": bootstrap(matrix),
        **{name: _mean(score[name] for score in scores) for name in names},
        "judge_faults": sum(score["judge_faults"] for score in scores),
        **{name: scores[0][name] for name in ("tries", "temperature", "limit", "problems")},
    }


def _training(arm: str, runs: dict[int, Trained]) -> Row:
    """Means over the steps, then over the seeds."""
    every = [run.steps for run in runs.values()]

    def over(name: str, last: int = 0) -> float:
        return _mean(_mean(line.get(name) for line in steps[-last:]) for steps in every)

    return {
        "arm": arm,
        "seeds": list(runs),
        "steps": [len(steps) for steps in every],
        "temperature": over("temperature", 1),
        "accuracy_at_the_end": over("accuracy", LAST),
        "validation_accuracy": _mean(run.evaluations[-1]["test_accuracy"] for run in runs.values() if run.evaluations),
        "length_at_the_end": over("length_mean", LAST),
        "diversity_at_the_end": over("diversity", LAST),
        "truncated_share": over("truncated_share"),
        "masked_share": over("masked_share"),
        "clip_low": over("clip_low"),
        "clip_high": over("clip_high"),
        "responses": _mean(sum(line["rows"] for line in steps) for steps in every),
        "tokens": _mean(sum(line["tokens"] for line in steps) for steps in every),
        **{name: over(name) for name in SECONDS},
    }


def _print_set(which: str, part: Row) -> None:
    first = part["rows"][0]
    print(
        f"\n### {SETS[which]}: {first['problems']} problems, mean of {min(TRIES, first['tries'])} tries at temperature "
        f"{first['temperature']:g}, up to {first['limit']} tokens\n"
    )
    columns = ("arm", "seeds", "accuracy %", "95% over seeds (t)", "95% over problems and seeds (bootstrap)")
    _table(
        (*columns, f"pass@{first['tries']} %", "tokens", "D", "truncated %"),
        (
            (
                row["arm"],
                str(len(row["seeds"])) if row["arm"] != UNTRAINED else "",
                _percent(row["accuracy"]),
                _interval(row["over_seeds"], 100),
                _interval(row["over_problems_and_seeds"], 100),
                _percent(row["pass_at_k"]),
                _number(row["length"], 0),
                _number(row["diversity"], 3),
                _percent(row["truncated_share"]),
            )
            for row in part["rows"]
        ),
    )
    if part["gains"]:
        print("\nmicrocoder against each, paired bootstrap over problems and seeds:\n")
        _table(
            ("against", "seeds", "points", "95%", "relative %", "95%"),
            (
                (
                    row["against"] + " (the best baseline)" * row["best_baseline"],
                    str(row["seeds"]),
                    f"{row['points']:+.1f}",
                    _interval(row["points_interval"], 1),
                    f"{100 * row['relative']:+.1f}",
                    _interval(row["relative_interval"], 100),
                )
                for row in part["gains"]
            ),
        )


def _print_training(rows: Sequence[Row]) -> None:
    print(f"\n### Training: means over steps and seeds; length, D and accuracy over the last {LAST} steps\n")
    first = ("arm", "seeds", "steps", "T", "train accuracy %", "tokens", "D", "truncated %", "masked %")
    then = ("clipped above %", "responses", "s / step", "generation", "judging wait", "of it floor", "update", "other")
    _table(
        (*first, *then),
        (
            (
                row["arm"],
                str(len(row["seeds"])),
                "/".join(map(str, sorted(set(row["steps"])))),
                f"{row['temperature']:g}",
                _percent(row["accuracy_at_the_end"]),
                _number(row["length_at_the_end"], 0),
                _number(row["diversity_at_the_end"], 3),
                _percent(row["truncated_share"]),
                _percent(row["masked_share"]),
                _number(100 * row["clip_high"], 3),
                _number(row["responses"], 0),
                *(_number(row[name], 2) for name in SECONDS),
            )
            for row in rows
        ),
    )


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print("| " + " | ".join(columns) + " |")
    print("|---" + "|---:" * (len(columns) - 1) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def _of(runs: Sequence[Trained], arm: str) -> dict[int, Trained]:
    return {run.seed: run for run in runs if run.arm == arm}


def _mean(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None and not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def _percent(value: float) -> str:
    return _number(100 * value, 1)


def _number(value: float, digits: int) -> str:
    return "" if math.isnan(value) else f"{value:.{digits}f}"


def _interval(values: Interval, factor: float) -> str:
    return "" if values is None else f"{factor * values[0]:.1f} to {factor * values[1]:.1f}"


def _plain(value: Any) -> Any:
    """JSON has no NaN."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value
