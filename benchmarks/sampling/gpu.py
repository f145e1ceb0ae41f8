"""Rollouts on a GPU, measured: how fast, how full the slots, how exact, and what a whole training step takes.

    python -m benchmarks.sampling gpu --model smollm2-135m --problems mbpp.jsonl --json rollout.json
    python -m benchmarks.sampling gpu --parts speed slots --random     # random weights: speed does not depend on them
    python -m benchmarks.sampling gpu --model nano --device cpu --problems-per-step 4 --samples 2 --limit 8 --draws 2000

Parts, each described at the top of its own file:

    speed   tokens a second beside transformers' `generate`; share of the memory roofline    speed.py
    slots   responses of mixed lengths: how many slots stand empty while others wait         slots.py
    exact   log-probabilities, distributions and greedy tokens against plain forward passes  exact.py
    step    a whole step beside plain TRL, with endless loops among the programs and without step.py

Whatever fails is printed and the next goes on; the exit status is then 1. With --json the file is written anew after
each figure. On a CPU the graph sampler takes its steps one by one, so there this only shows that everything runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import torch

from benchmarks.sampling import exact, slots, speed, step
from benchmarks.sampling.bench import Bench, Broken

PARTS = {
    "speed": speed.run,
    "slots": slots.run,
    "exact": exact.run,
    "step": step.run,
}


def main() -> int:
    args = arguments()
    sys.stdout.reconfigure(line_buffering=True)  # whoever kills it has what was found so far
    with Bench.open(args) as bench:
        print(", ".join(f"{name} {value}" for name, value in bench.figures["setting"].items()))
        for n, part in enumerate(args.parts):
            try:
                with bench.attempt(part):
                    print(f"\n## {part}")
                    PARTS[part](bench)
            except Broken as error:
                print(error, file=sys.stderr)
                return max(1, anew(args.parts[n + 1 :]))
    if bench.failures:
        print(f"failed: {', '.join(bench.failures)}", file=sys.stderr)
    return 1 if bench.failures else 0


def anew(parts: list[str]) -> int:
    """The other parts in a new process: after a fault of the GPU, nothing works in this one."""
    if not parts:
        return 0
    words = ["-m", "benchmarks.sampling", "gpu", *sys.argv[1:], "--add", "--parts", *parts]
    return subprocess.run([sys.executable, *words], env=os.environ).returncode


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--model", default="smollm2-135m", help="as in microcoder: a name, a folder, a run, a hub id")
    add("--random", action="store_true", help="the model's configuration with random weights")
    add("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    add("--problems", metavar="FILE", default="starter", help="problems to make prompts of (default: starter)")
    add("--json", type=Path, metavar="FILE")
    add("--add", action="store_true", help="keep what the file of --json already holds")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    add("--problems-per-step", type=int, default=64, help="prompts in speed and exact, problems in a step")
    add("--samples", type=int, default=8, help="responses to each")
    add("--limit", type=int, default=192, help="tokens in a response")
    add("--batches", type=int, nargs="*", default=[64, 512, 2048], help="speed: sequences of the graph sampler")
    add("--profile", action="store_true", help="speed: where the graph sampler's time goes")
    add("--slots", type=int, default=256)
    add("--sequences", type=int, default=2048, help="slots: responses in all")
    add("--draws", type=int, default=200_000, help="exact: tokens drawn for each chi-square test")
    add("--micro", type=int, default=64, help="step: responses in one forward and backward pass")
    add("--trl-steps", type=int, default=3, help="step: of plain TRL; the first is not counted")
    add("--our-steps", type=int, default=6, help="step: of ours; the first is not counted")
    add("--loops", type=int, default=4, help="step: responses that never return, in whole problems; 0: none")
    add("--time-limit", type=float, default=2.0, help="step: CPU seconds of a program")
    return parser.parse_args()
