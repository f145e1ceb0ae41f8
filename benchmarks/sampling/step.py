"""Part "step": a whole training step by plain TRL and by `microcoder train`: same model, problems, sizes, GPU, run.

Plain TRL is GRPOTrainer as its users write it: generation by transformers, then a reward function that has all programs
judged, by our judge on all cores. Both: float32 weights, bfloat16 autocast, no KL, no gradient checkpointing (TRL's
default is to have it), lr 1e-6, the same problems in every step. Medians over the steps without the first.

- `judging` is the time after generation in which nothing but judging happens; `floor` is the part of it that no judge
  could avoid, as the slowest program takes its CPU time; `beyond` is the rest, as a share of the step (target: 5%).
- `update` is forward, backward and optimizer; `other` what is left of the step.
- `loops`: in --loops / --samples of the problems (rounded up) every program that defines the function runs into an
  endless loop, which the problem's `setup` has ready; `time_limit` counts the verdicts.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.sampling.bench import Bench, table
from benchmarks.sampling.trl import LR, TEMPERATURE, plain_trl
from microcoder.files import write_problems
from microcoder.schema import Problem

SETUP = "def endless(function):\n    while True:\n        pass\n"
PARTS = ("generation_s", "judging_s", "judging_floor_s", "update_s", "other_s")
TARGET, PATIENCE_S = 0.05, 600


def run(bench: Bench) -> None:
    args = bench.args
    problems = bench.problems[: args.problems_per_step]
    if len(problems) < args.problems_per_step:
        raise ValueError(f"a step has {args.problems_per_step} problems, but there are {len(problems)} in all")
    found: dict[str, dict[str, Any]] = {}
    for loops in dict.fromkeys((0, -(-args.loops // args.samples))):
        chosen = with_loops(problems, loops)
        for name, measure in (("microcoder", ours), ("plain TRL", plain_trl)):
            if loops and name == "plain TRL":  # which would only wait for them longer
                continue
            what = f"{name}, loops" if loops else name
            with bench.attempt(f"step: {what}"), tempfile.TemporaryDirectory() as folder:
                steps = measure(bench, chosen, Path(folder))
                found[what] = summary(steps)
                bench.keep("step", **{what: found[what] | {"steps": steps}})
                bench.keep("step", ratio=ratios(found))
    shown = [{"way": what, **row} for what, row in found.items()]
    table(shown, ("way", "step_s", *PARTS, "beyond", "tokens", "accuracy", "time_limit", "first_step_s"))
    for what, ratio in ratios(found).items():
        print(f"a step of plain TRL / of {what}: {ratio:.2f}")
    for what, row in found.items():
        if not what.startswith("microcoder"):
            continue
        met = "met" if row["beyond"] < TARGET else "missed"
        print(f"{what}: judging beyond the floor is {row['beyond']:.1%} of a step (target below {TARGET:.0%}: {met})")


def with_loops(problems: list[Problem], count: int) -> list[Problem]:
    """The first `count` problems that name a plain function never return from a test of it."""
    fitting = [problem.id for problem in problems if problem.entry_point.isidentifier()]
    if len(fitting) < count:
        raise ValueError(f"{count} problems should loop, but only {len(fitting)} name a function (entry_point)")
    chosen = set(fitting[:count])
    return [endless(problem) if problem.id in chosen else problem for problem in problems]


def endless(problem: Problem) -> Problem:
    return replace(
        problem,
        kind="assert",
        tests=[],
        asserts=[f"assert endless({problem.entry_point}) is None", *problem.asserts],
        setup=f"{problem.setup}\n{SETUP}",
        time_limit_s=None,  # the judge's
    )


def ours(bench: Bench, problems: list[Problem], folder: Path) -> list[dict[str, Any]]:
    """The metrics of each step of `microcoder train`."""
    args = bench.args
    write_problems(folder / "problems.jsonl", problems)
    settings = {
        "model.name": bench.source.path if args.random else args.model,
        "data.train": folder / "problems.jsonl",
        "data.test": "none",
        "grpo.samples": args.samples,
        "grpo.temperature": TEMPERATURE,
        "train.folder": folder,
        "train.name": "run",
        "train.steps": args.our_steps,
        "train.save_every": 100,
        "train.eval_every": 0,
        "train.lr": LR,
        "train.train_batch_size": args.problems_per_step,
        "train.micro_batch_size": args.micro,
        "train.max_response_tokens": args.limit,
        "rollout.engine": "graph" if bench.cuda else "transformers",
        "rollout.batch": bench.sequences,
        "judge.time_limit_s": args.time_limit,
    }
    changes = [f"{name}={value}" for name, value in settings.items()]
    command = [sys.executable, "-m", "microcoder.cli", "train", *changes]
    environment = dict(os.environ) if bench.cuda else {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout[-8000:]}")
    lines = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    names = ("step_s", *PARTS, "tokens", "accuracy")
    return [
        {**{name: line.get(name, 0.0) for name in names}, "time_limit": line["verdicts"].get("time_limit", 0)}
        for line in lines
        if line["step"]
    ]


def summary(steps: list[dict[str, Any]]) -> dict[str, Any]:
    counted = steps[1:]
    middle = {name: statistics.median(step[name] for step in counted) for name in steps[0]}
    beyond = statistics.median((step["judging_s"] - step["judging_floor_s"]) / step["step_s"] for step in counted)
    return middle | {"beyond": beyond, "first_step_s": steps[0]["step_s"]}


def ratios(found: dict[str, dict[str, Any]]) -> dict[str, float]:
    return {
        what: found[other]["step_s"] / row["step_s"]
        for what, row in found.items()
        if (other := what.replace("microcoder", "plain TRL")) != what and other in found
    }
