"""The arms and what they share: each arm is `microcoder train` with these settings, and only its own changed."""

from __future__ import annotations

import json
import shlex
import sys
from argparse import Namespace
from pathlib import Path

from microcoder.config import load, to_toml
from microcoder.study.launch import Command, side_by_side, tail

COMMON = [
    "model.name=smollm2-135m",
    "data.train_size=1000",  # all of them
    "data.max_prompt_tokens=1024",
    "grpo.samples=8",
    "train.steps=100",
    "train.train_batch_size=64",
    "train.ppo_mini_batch_size=32",  # two updates a step: with one the ratio is always 1, and no clip does anything
    "train.micro_batch_size=64",
    "train.max_response_tokens=192",
    "train.eval_tries=4",
    "train.eval_temperature=0.2",
    "train.save_every=20",
    "train.keep_checkpoints=1",
    "rollout.memory=0.1",  # room for 512 responses beside the longest prompt; eight runs that share a GPU take less
    "judge.time_limit_s=1",
    "judge.workers=2",
]
MICROCODER = ["grpo.preset=microcoder"]
ARMS = {
    "grpo": ["grpo.preset=grpo"],
    "grpo_plus": ["grpo.preset=grpo_plus"],
    "dapo": ["grpo.preset=dapo"],
    "microcoder": MICROCODER,
    "microcoder-no-mask": [*MICROCODER, "grpo.mask=none"],
    "microcoder-no-td": MICROCODER,  # at the baselines' temperature
    "microcoder-no-clip-higher": [*MICROCODER, "grpo.eps_high=0.2"],
    "microcoder-kl": [*MICROCODER, "grpo.kl=0.001"],
}
BASELINES = ("grpo", "grpo_plus", "dapo")
SLOW = ("dapo", "grpo", "microcoder-kl")  # begun first in each round, so that none of them is left alone at the end
BY_DIVERSITY = [arm for arm in ARMS if arm.startswith("microcoder") and arm != "microcoder-no-td"]


def train(args: Namespace) -> int:
    """Every arm with every seed, in rounds of one seed; what is finished stays, what was begun goes on."""
    arms = _different(args)
    jobs, done = [], 0
    for seed in args.seeds:
        for arm in sorted(arms, key=lambda arm: arm not in SLOW):
            name = f"{arm}-{seed}"
            folder = args.out / "runs" / name
            settings = [*settings_of(arm, args), f"train.seed={seed}"]
            if _finished(folder, load(None, settings).train.steps):
                done += 1
                continue
            resume = ["--resume"] if (folder / "config.toml").exists() else []
            place = [f"train.folder={folder.parent}", f"train.name={name}"]
            command = [sys.executable, "-m", "microcoder.cli", "train", *settings, *place, *resume]
            jobs.append(Command(name, command, args.out / "logs" / f"{name}.log"))
    print(f"{len(jobs)} runs to make, {done} finished before", flush=True)
    failed = []

    def ended(job: Command, status: int, seconds: float) -> None:
        folder = args.out / "runs" / job.name
        if status or not (folder / "summary.json").exists():
            failed.append(job)
            print(f"{job.name}: FAILED with exit status {status}; the end of {job.log}:\n{tail(job.log)}", flush=True)
        else:
            _slim(folder)
            print(f"{job.name}: {_words(folder)}, in {seconds:.0f} s", flush=True)

    left = side_by_side(jobs, args.together, args.stop_after, ended)
    for job in left:
        print(f"{job.name}: not finished; the same command goes on with it", flush=True)
    return 1 if failed else 0


def settings_of(arm: str, args: Namespace) -> list[str]:
    """The settings of an arm; the last word is the user's."""
    temperature = args.microcoder_temperature if arm in BY_DIVERSITY else args.baseline_temperature
    given = [
        f"data.train={args.data / 'train.jsonl'}",
        f"data.test={args.data / 'validation.jsonl'}",
        f"train.lr={args.lr}",
        f"train.eval_every={args.eval_every}",
    ]
    return [*COMMON, *given, *ARMS[arm], f"grpo.temperature={temperature}", *args.set]


def _different(args: Namespace) -> list[str]:
    """The arms, less those whose settings another one has already."""
    if args.microcoder_temperature is None and set(args.arms) & set(BY_DIVERSITY):
        chosen = Namespace(**{**vars(args), "microcoder_temperature": args.baseline_temperature})
        words = shlex.join(["microcoder", "calibrate", *settings_of("microcoder", chosen), "--json"])
        sys.exit(f"--microcoder-temperature is missing; it is the one that T(D) chooses, which this says:\n{words}")
    seen: dict[str, str] = {}
    for arm in args.arms:
        text = to_toml(load(None, settings_of(arm, args)))
        if text in seen:
            print(f"{arm}: left out, its settings are those of {seen[text]}")
        seen.setdefault(text, arm)
    return list(seen.values())


def _finished(folder: Path, steps: int) -> bool:
    """Whether the run is complete; one with another number of steps would not be an equal of the others."""
    try:
        summary = json.loads((folder / "summary.json").read_text())
    except (OSError, ValueError):
        return False
    if summary["status"] == "finished" and summary["steps"] != steps:
        sys.exit(f"{folder} is finished after {summary['steps']} steps, not {steps}; name another folder with --out")
    if summary["status"] == "finished":
        _slim(folder)
    return summary["status"] == "finished"


def _slim(folder: Path) -> None:
    """The optimizer's state is two thirds of a checkpoint, and a finished run needs it no more."""
    for file in folder.glob("checkpoints/*/optimizer.pt"):
        file.unlink()


def _words(folder: Path) -> str:
    summary = json.loads((folder / "summary.json").read_text())
    before, after = summary["before"], summary["after"]
    gain = f"validation {before['accuracy']:.3f} -> {after['accuracy']:.3f}" if before and after else "not evaluated"
    return f"{gain}, {summary['steps']} steps of {summary['train_seconds'] / max(summary['steps'], 1):.1f} s"
