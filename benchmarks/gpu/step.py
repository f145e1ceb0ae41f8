"""A training step by MicroCoder and by plain TRL with vLLM, on one GPU and the same problems: seconds, parts, memory.

    python -m benchmarks.gpu step --model FOLDER --data train.jsonl.gz --json step.json
    python -m benchmarks.gpu step --model FOLDER --arms packed trl "asleep=trl vllm_enable_sleep_mode=true"
    python -m benchmarks.gpu step --model nano --problems 2 --samples 2 --limit 16 --no-vllm         # on a CPU

An arm is a name in ARMS, or NAME=KIND and words: those of `ours` are settings of `microcoder train`, those of `trl`
arguments of TRL's GRPOConfig, and `dtype`. Every arm has a process of its own, one after the other, and `--budget`
seconds; one that fails is reported with the end of its log. All arms: AdamW on all weights in float32, bfloat16 in the
passes, clip 0.2, token mean, no KL, T 1, two updates a step, judged by the same judge with as many workers.

The first step is left out, the others are averaged. `step` is the time from the end of a step to the end of the next;
its parts are the arm's own (for MicroCoder those of metrics.jsonl, for TRL see plain.py) and `other` is the rest.
MicroCoder judges while it samples and updates, so its `judging` is only what it waits. `GPU GiB` is the most that was
in use on the whole GPU, `torch GiB` what torch had allocated of it. `start` is the time to the first step.

Where the sides differ by their own choice: MicroCoder computes the logits in float32 (train.float32_head), TRL in
bfloat16; MicroCoder trains on no group without signal, TRL on all; TRL weighs its updates by vLLM's probabilities.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.gpu.apart import Line, apart, mean, setting, table, write_json
from microcoder.config import ConfigError, load

ARMS = {
    "packed": "ours train.update=packed",
    "padded": "ours train.update=padded train.micro_batch_size=16 model.gradient_checkpointing=true",
    "trl": "trl per_device_train_batch_size=16 gradient_checkpointing=true",
    "trl-kept": "trl per_device_train_batch_size=8 gradient_checkpointing=false",  # activations are kept
}
MODULES = {"ours": "benchmarks.gpu.ours", "trl": "benchmarks.gpu.plain"}  # what runs an arm, by its kind
TRL = {"per_device_train_batch_size": 8}  # of an arm that does not say
COMMON = [
    "data.test=none",
    "data.max_prompt_tokens=1024",
    "grpo.preset=grpo",
    "grpo.kl=0",
    "grpo.temperature=1",
    "train.lr=3e-6",
    "train.save_every=1000000",
    "judge.time_limit_s=1",
]
PARTS = ("generation_s", "sync_s", "judging_s", "scoring_s", "update_s")
COLUMNS = [
    ("arm", "arm", ""),
    ("steps", "steps", "d"),
    ("step s", "step_s", ".2f"),
    ("ratio", "ratio", ".2f"),
    ("generation", "generation_s", ".2f"),
    ("sync", "sync_s", ".2f"),
    ("judging", "judging_s", ".2f"),
    ("scoring", "scoring_s", ".2f"),
    ("update", "update_s", ".2f"),
    ("other", "other_s", ".2f"),
    ("tokens", "tokens", ",.0f"),
    ("length", "length_mean", ".0f"),
    ("accuracy", "accuracy", ".1%"),
    ("no signal", "no_signal_share", ".0%"),
    ("GPU GiB", "gpu_gib", ".1f"),
    ("torch GiB", "allocated_gib", ".1f"),
    ("start s", "start_s", ".0f"),
]


def main() -> int:
    args = arguments()
    try:
        arms = dict(arm(words) for words in args.arms)
        for kind, words in arms.values():
            load(None, settings(args) + (words if kind == "ours" else []))
    except (ValueError, ConfigError) as error:
        print(f"{error}")
        return 2
    found: dict[str, Any] = {"setting": {**setting(), "words": settings(args)}, "arms": {}}
    with tempfile.TemporaryDirectory() as temporary:
        out = (args.out or Path(temporary)).resolve()
        for name, (kind, words) in arms.items():
            print(f"{name}: {kind} {' '.join(words)}", flush=True)

            def tell(lines: list[Line], name: str = name) -> None:
                found["arms"][name] = summary({"lines": lines, "started": 0.0})
                write_json(args.json, found)
                print(f"{name}: step {lines[-1]['step']}, {lines[-1].get('step_s', 0):.1f} s", flush=True)

            told = spec(args, kind, words)
            result = apart(MODULES[kind], told, out / name, args.steps, args.budget, tell)
            found["arms"][name] = {"words": words, **summary(result)}
            write_json(args.json, found)
            if "failed" in result:
                print(f"{name}: {result['failed']}", flush=True)
    print(shown(found["arms"]))
    return 1 if any("failed" in row for row in found["arms"].values()) else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--model", default="nano", metavar="FOLDER", help="as transformers has it, with a chat template")
    add("--data", default="starter", metavar="FILE", help="problems of MicroCoder (default: starter)")
    add("--arms", nargs="+", default=list(ARMS), metavar="ARM", help=f"{', '.join(ARMS)}, or NAME='KIND word ...'")
    add("--steps", type=int, default=5, help="of each arm; the first is left out")
    add("--problems", type=int, default=64, help="of a step, half of them in an update")
    add("--samples", type=int, default=8)
    add("--limit", type=int, default=1024, help="tokens of a response")
    add("--judge-workers", type=int, default=0, help="0: one for each core")
    add("--budget", type=float, default=400.0, metavar="SECONDS", help="of each arm")
    add("--no-vllm", action="store_true", help="TRL samples with transformers")
    add("--set", nargs="*", action="extend", default=[], metavar="section.key=value", help="for all arms")
    add("--out", type=Path, metavar="DIR", help="keep logs and runs there")
    add("--json", type=Path, metavar="FILE", help="written anew after each step")
    args = parser.parse_args()
    if args.steps < 2:
        parser.error(f"--steps {args.steps}: the first step is left out, so there must be 2 at least")
    if args.problems % 2:
        parser.error(f"--problems {args.problems}: a step has two updates; take {args.problems + 1}")
    return args


def arm(text: str) -> tuple[str, tuple[str, list[str]]]:
    """The name of an arm, its kind and its words."""
    name, named, rest = text.partition("=")
    kind, *words = (rest if named else ARMS.get(text, "")).split() or [""]
    if kind not in MODULES:
        kinds = " or ".join(MODULES)
        raise ValueError(f"--arms {text!r}: there are {', '.join(ARMS)}; or NAME='KIND word ...', KIND being {kinds}")
    if bad := [word for word in words if "=" not in word]:
        raise ValueError(f"--arms {text!r}: {bad[0]!r} is no name=value")
    return name, (kind, words)


def settings(args: argparse.Namespace) -> list[str]:
    """The settings of all arms."""
    workers = [f"judge.workers={args.judge_workers}"] if args.judge_workers else []
    return [
        f"model.name={args.model}",
        f"data.train={args.data}",
        f"data.train_size={args.problems * args.steps}",
        *COMMON,
        f"grpo.samples={args.samples}",
        f"train.steps={args.steps}",
        f"train.train_batch_size={args.problems}",
        f"train.ppo_mini_batch_size={args.problems // 2}",
        f"train.max_response_tokens={args.limit}",
        *workers,
        *args.set,
    ]


def spec(args: argparse.Namespace, kind: str, words: list[str]) -> dict[str, Any]:
    """What the process of an arm is told."""
    if kind == "ours":
        return {"words": settings(args) + words}
    return {"words": settings(args), "vllm": not args.no_vllm, "trl": TRL | dict(map(value, words))}


def value(word: str) -> tuple[str, Any]:
    """name=value, the value as JSON where it is such."""
    name, _, text = word.partition("=")
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text


def summary(result: dict[str, Any]) -> dict[str, Any]:
    """The steps of an arm, and the mean of all but the first."""
    lines = result["lines"]
    steps = []
    for before, line in pairwise(lines):
        step = {**line, "step_s": line["at"] - before["at"]}
        step["other_s"] = step["step_s"] - sum(step.get(part, 0.0) for part in PARTS)
        steps.append(step)
    found: dict[str, Any] = {"steps": steps}
    found |= {name: result[name] for name in ("failed", "gpu_gib", "seconds") if name in result}
    if lines and result["started"]:
        found["start_s"] = lines[0]["at"] - result["started"]
    if len(steps) > 1:
        found["mean"] = mean(steps[1:])
        if "allocated_gib" in steps[-1]:
            found["allocated_gib"] = steps[-1]["allocated_gib"]  # the most so far
    return found


def shown(arms: dict[str, Any]) -> str:
    """The table; ratio: how many times the first arm's step."""
    rows: list[Line] = []
    for name, found in arms.items():
        row = {**found.get("mean", {}), **found, "arm": name, "steps": max(0, len(found["steps"]) - 1)}
        first = rows[0].get("step_s") if rows else row.get("step_s")
        row["ratio"] = row["step_s"] / first if first and row.get("step_s") else None
        rows.append(row)
    return table(rows, COLUMNS)
