"""What there is so far, as a table: every run with its settings, its training and its scores; and all of it packed."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

from benchmarks.gpu import qwen_plan as plan
from benchmarks.gpu.qwen_plan import BASE, Scoring
from microcoder.config import load
from microcoder.evaluation.folder import compare_scores, read_scores
from microcoder.runs import read_metrics, steps

ENDS = 3  # steps at the beginning and at the end of a run, whose mean is told
HEADS = (
    "run", "steps", "reward", "validation", "test", "against base", "HumanEval", "D", "entropy", "tokens", "truncated",
    "no signal", "s/step", "sampling", "waiting", "update",
)  # fmt: skip
VOLUME = 15_000_000  # bytes


def report(out: Path) -> str:
    """A Markdown table; a run that is not finished has the steps that there are."""
    runs = sorted(path.parent for path in (out / "runs").glob("*/metrics.jsonl"))
    rows = [_base(out), *(_row(run, out) for run in runs)]
    lines = [HEADS, tuple("---" for _ in HEADS), *rows]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    note = (
        f"`a -> b`: mean of the first and of the last {ENDS} steps; validation (new problems, few tests each, as in "
        f"training): before -> half-way -> after, T 0.2, 4 tries. test (about 100 tests each) and HumanEval: T 0.2, "
        f"4 tries, up to 1,024 tokens, {plan.TIME_LIMIT_S} s a test, robust policy, 95% bootstrap over problems."
    )
    return f"{table}\n\n{note}\n"


def _row(run: Path, out: Path) -> tuple[str, ...]:
    lines = read_metrics(run)
    trained = [line for line in lines if line["step"]]
    tested = [line["test_accuracy"] for line in lines if line.get("test_accuracy") is not None]
    wanted = load(run / "config.toml").train.steps
    mean = {name: _mean(trained, name) for name in ("step_s", "generation_s", "judging_s", "update_s")}
    return (
        run.name,
        f"{len(trained)} of {wanted}",
        _course(trained, "reward", "{:.3f}"),
        " -> ".join(f"{value:.1%}" for value in tested),
        _score(out, run.name, "test"),
        _against(out, run.name, "test"),
        _score(out, run.name, "humaneval"),
        _course(trained, "diversity", "{:.3f}"),
        _course(trained, "entropy", "{:.3f}"),
        _course(trained, "length_mean", "{:.0f}"),
        _course(trained, "truncated_share", "{:.1%}"),
        _course(trained, "no_signal_share", "{:.0%}"),
        *("" if value is None else f"{value:.1f}" for value in mean.values()),
    )


def _base(out: Path) -> tuple[str, ...]:
    found = {"test": _score(out, BASE, "test"), "HumanEval": _score(out, BASE, "humaneval")}
    return tuple(BASE if head == "run" else found.get(head, "") for head in HEADS)


def _scoring(model: str, suite: str) -> Scoring:
    return next(scoring for scoring in plan.scorings(model) if scoring.suite == suite)


def _score(out: Path, model: str, suite: str) -> str:
    path = plan.bench_folder(_scoring(model, suite), out) / "scores.json"
    if not path.exists():
        return ""
    (found,) = json.loads(path.read_text())["scores"].values()
    cell = found["robust"]
    interval = "" if cell["low"] is None else f" ({cell['low']:.1%} to {cell['high']:.1%})"
    faults = f", {found['internal_errors']} faults" if found["internal_errors"] else ""
    return f"{cell['accuracy']:.1%}{interval}{faults}"


def _against(out: Path, model: str, suite: str) -> str:
    """The difference from the untrained model, problem by problem."""
    folders = [plan.bench_folder(_scoring(name, suite), out) for name in (BASE, model)]
    if not all((folder / "scores.json").exists() for folder in folders):
        return ""
    found, _ = compare_scores(*map(read_scores, folders))
    interval = "" if found["low"] is None else f" ({100 * found['low']:+.1f} to {100 * found['high']:+.1f})"
    return f"{100 * found['difference']:+.1f}{interval}, p {found['p']:.3f}"


def _course(lines: list[dict[str, Any]], name: str, form: str) -> str:
    ends = [_mean(lines[:ENDS], name), _mean(lines[-ENDS:], name)]
    return " -> ".join("" if value is None else form.format(value) for value in ends)


def _mean(lines: list[dict[str, Any]], name: str) -> float | None:
    values = [line[name] for line in lines if line.get(name) is not None]
    return sum(values) / len(values) if values else None


def pack(out: Path, to: Path, rollouts: int) -> list[Path]:
    """Everything but weights as results.tar.gz.NN, which `cat` joins; rollouts of so many steps of each run."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz", compresslevel=6) as archive:
        for path in _small(out, rollouts):
            archive.add(path, path.relative_to(out.parent), recursive=False)
    data = held.getvalue()
    to.mkdir(parents=True, exist_ok=True)
    written = []
    for number, start in enumerate(range(0, len(data), VOLUME)):
        written.append(to / f"results.tar.gz.{number:02}")
        written[-1].write_bytes(data[start : start + VOLUME])
    return written


def _small(out: Path, rollouts: int) -> list[Path]:
    found = [path for path in sorted(out.glob("*")) if path.is_file()]
    found += sorted(out.glob("logs/*.log"))
    found += [path for path in sorted(out.glob("bench/*/*")) if path.is_file()]
    for run in sorted((out / "runs").glob("*/")):
        found += [path for path in sorted(run.glob("*")) if path.is_file() and path.suffix != ".png"]
        there = steps(run)
        chosen = (
            {there[round(n * (len(there) - 1) / max(rollouts - 1, 1))] for n in range(rollouts)} if there else set()
        )
        found += [run / "rollouts" / f"step_{step:05}.jsonl.gz" for step in sorted(chosen)]
    return found
