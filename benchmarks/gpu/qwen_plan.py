"""What is trained, in order of worth, and what all runs share. Each run is `microcoder train` with these settings."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, replace
from pathlib import Path

BASE = "base"  # the name of the untrained model among the runs

COMMON = [
    "data.train_size=100000",  # all of them
    "data.test_size=100000",
    "data.max_prompt_tokens=1024",
    "train.eval_temperature=0.2",
    "train.eval_tries=4",
    "train.max_response_tokens=1024",
    "train.save_every=1000000",  # at the end alone: a checkpoint with its optimizer has 12 bytes a weight
    "train.keep_checkpoints=1",
    "rollout.memory=0.09",  # of 141 GB: room for 512 responses of 1,024 tokens, each counted with a prompt of its own
    "judge.time_limit_s=1",  # the examples are small, and an endless loop costs a worker this long
]
SIZES = {  # --size
    "full": ["train.train_batch_size=64", "train.ppo_mini_batch_size=32", "grpo.samples=8"],
    "toy": ["train.train_batch_size=2", "train.ppo_mini_batch_size=1", "grpo.samples=2", "train.max_response_tokens=24",
            "train.eval_tries=1", "data.train_size=4", "data.test_size=2"],
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One run: an algorithm with a learning rate and a temperature."""

    preset: str
    lr: float
    temperature: float
    seed: int = 0
    longer: int = 1  # times the steps of the others

    @property
    def name(self) -> str:
        longer = f"-x{self.longer}" if self.longer > 1 else ""
        return f"{self.preset}-lr{self.lr:g}-T{self.temperature:g}-s{self.seed}{longer}"

    @property
    def cost(self) -> float:
        """Beside a run without KL: with one, responses without advantage cannot be left out of the update."""
        return self.longer * (2.0 if self.preset == "grpo" else 1.0)


def grid() -> list[Entry]:
    """Learning rates and temperatures, chosen from when all are finished. The middle of each comes first."""
    return [
        Entry("grpo_plus", lr, temperature)
        for lr, temperature in ((3e-6, 1.0), (1e-5, 1.0), (1e-6, 1.0), (3e-6, 0.6), (1e-5, 0.6), (3e-6, 1.2))
    ]


def corners() -> list[Entry]:
    """The rest of the grid. The first is made while the last of the others is still under way."""
    return [Entry("grpo_plus", lr, temperature) for lr, temperature in ((1e-5, 1.2), (1e-6, 0.6), (1e-6, 1.2))]


def after(best: Entry) -> list[Entry]:
    """What is asked once learning rate and temperature are chosen: other algorithms, more steps, another seed."""
    return [
        replace(best, preset="microcoder"),
        replace(best, preset="grpo"),
        replace(best, longer=3),
        *corners()[1:],
        replace(best, seed=1),
        replace(best, preset="microcoder", seed=1),
    ]


def settings(entry: Entry, args: Namespace, micro: int) -> list[str]:
    """Of `microcoder train`; the last word is the user's."""
    return [
        f"model.name={args.model}",
        f"data.train={args.data / 'train.jsonl.gz'}",
        f"data.test={args.data / 'validation.jsonl.gz'}",
        *COMMON,
        *SIZES[args.size],
        f"train.steps={args.steps * entry.longer}",
        f"train.eval_every={max(1, args.steps // 2)}",
        f"train.micro_batch_size={micro}",
        f"judge.workers={workers(args)}",
        f"grpo.preset={entry.preset}",
        f"grpo.temperature={entry.temperature:g}",
        f"train.lr={entry.lr:g}",
        f"train.seed={entry.seed}",
        f"train.folder={args.out / 'runs'}",
        f"train.name={entry.name}",
        *args.set,
    ]


@dataclass(frozen=True)
class Scoring:
    """A model on a suite: `microcoder bench` with these options."""

    model: str  # a run's name, or BASE
    suite: str  # a key of SUITES
    tries: int
    temperature: float = 0.2

    @property
    def name(self) -> str:
        return f"{self.model}.{self.suite}-T{self.temperature:g}-n{self.tries}"


SUITES = {"test": "test.jsonl.gz", "humaneval": "humaneval.jsonl.gz"}
TIME_LIMIT_S = 2  # CPU seconds a test where models are scored


def scorings(model: str) -> list[Scoring]:
    """What every run is scored on, the first of them first; the untrained model a little more."""
    found = [Scoring(model, "test", 4), Scoring(model, "humaneval", 4)]
    if model == BASE:  # wrong programs that a model wrote are what tests can be tried on
        found += [Scoring(model, "test", 16, 0.8)]
    return found


def bench(scoring: Scoring, args: Namespace) -> list[str]:
    """Of `microcoder bench`."""
    model = args.model if scoring.model == BASE else args.out / "runs" / scoring.model
    file = args.data / SUITES[scoring.suite]
    suite = ["--suite", "humaneval", "--data", str(file)] if scoring.suite == "humaneval" else ["--suite", str(file)]
    toy = ["--first", "3", "--limit", "24"] if args.size == "toy" else ["--limit", "1024"]
    tries = 1 if args.size == "toy" else scoring.tries
    return [
        str(model),
        *suite,
        *toy,
        "-n",
        str(tries),
        "--temperature",
        f"{scoring.temperature:g}",
        "-o",
        str(bench_folder(scoring, args.out)),
        f"judge.time_limit_s={TIME_LIMIT_S}",
        f"judge.workers={workers(args)}",
        "rollout.memory=0.1",
    ]


def bench_folder(scoring: Scoring, out: Path) -> Path:
    return out / "bench" / scoring.name


def workers(args: Namespace) -> int:
    """Judge workers of each process: the trainings and one that scores share them."""
    return max(1, args.judge_workers // (args.together + 1))
