"""A training step at the shape of a model whose weights are not here: random weights, random rewards, true sizes.

    python -m benchmarks.gpu shape --shape 4b --problems 16 --limit 1024 --json shape.json
    python -m benchmarks.gpu shape --shape 4b --set model.gradient_checkpointing=true train.pass_tokens=32768
    python -m benchmarks.gpu shape --shape tiny --problems 2 --samples 2 --limit 16                          # on a CPU

The model is written to a folder (bfloat16, with nano's tokenizer) and trained by `microcoder train`'s own parts, in a
process of its own. Its responses are noise, so nearly all reach the limit and none holds a program. Instead of the
judge, a coin accepts every other one, and `grpo.control=shuffled_rewards` deals the rewards out within a step: so
nearly all groups have signal. Settings are MicroCoder's, with packed passes and without KL. `--out` keeps the model.

    TFLOP/s    work of the updates / update_s, also as a share of 790, what an H200 reaches in bfloat16
    work       3 F, 4 F where activations are recomputed; and F of later updates for their old log-probabilities
    F          2 x weights x tokens + 4 x layers x width x context: a forward pass over what is trained on
    tokens     of the responses with an advantage, and of each prompt once in an update
    width      heads x their size;    context: the sum over tokens of the positions that each attends to

What the loss computes again by itself (logits) is not counted, and the optimizer's time is in update_s.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu.apart import Line, Lines, apart, mean, setting, table, write_json
from benchmarks.gpu.ours import Watch
from benchmarks.gpu.packed import SHAPES, random_model
from microcoder.config import Config, ConfigError, load, to_toml
from microcoder.judge.base import Judging
from microcoder.models import resolve
from microcoder.models.source import holds_model
from microcoder.models.weights import load_shape, load_tokenizer
from microcoder.runs import Run, read_rollouts
from microcoder.schema import Problem, Solution, Verdict
from microcoder.training.launch import begin, problems_of, stages_left, train_stage
from microcoder.training.memory import GIB, peak
from microcoder.training.plan import batches, fitted
from microcoder.training.recorder import TrlSetup

PEAK = 790.0  # TFLOP/s
COMMON = [
    "data.train=starter",
    "data.test=none",
    "grpo.preset=grpo",
    "grpo.kl=0",
    "grpo.temperature=1",
    "grpo.control=shuffled_rewards",
    "train.update=packed",
    "train.lr=3e-6",
    "train.save_every=1000000",
]
COLUMNS = [
    ("step", "step", "d"),
    ("step s", "step_s", ".2f"),
    ("generation", "generation_s", ".2f"),
    ("tokens/s", "tokens_per_s", ",.0f"),
    ("length", "length_mean", ".0f"),
    ("update", "update_s", ".2f"),
    ("trained tokens", "trained_tokens", ",.0f"),
    ("TFLOP/s", "tflops", ".1f"),
    ("of 790", "share", ".1%"),
    ("other", "other_s", ".2f"),
    ("mismatch", "mismatch_mean", ".5f"),
    ("p99", "mismatch_p99", ".5f"),
    ("KL", "mismatch_kl", ".2e"),
    ("ESS", "mismatch_ess", ".4f"),
]


def main() -> int:
    args = arguments()
    found: dict[str, Any] = {"setting": {**setting(), "shape": args.shape, "words": settings(args)}}
    try:
        batches(load(None, settings(args)))
    except (ValueError, ConfigError) as error:
        print(error)
        return 2
    with tempfile.TemporaryDirectory() as temporary:
        out = (args.out or Path(temporary)).resolve()

        def tell(lines: list[Line]) -> None:
            found["begun"], found["steps"] = lines[0], lines[1:]
            write_json(args.json, found)
            print(f"step {lines[-1]['step']}", flush=True)

        told = {"shape": args.shape, "model": str(out / f"model-{args.shape}"), "words": settings(args)}
        result = apart("benchmarks.gpu.shape", told, out / "shape", args.steps, args.budget, tell)
    found |= summary(result)
    write_json(args.json, found)
    print(table([*found["steps"], *([found["mean"]] if "mean" in found else [])], COLUMNS))
    print(memory_words(found))
    if "failed" in found:
        print(found["failed"])
    return 1 if "failed" in found else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--shape", choices=SHAPES, default="4b")
    add("--steps", type=int, default=3, help="the first is left out of the mean")
    add("--problems", type=int, default=16, help="of a step")
    add("--updates", type=int, default=1, help="of a step")
    add("--samples", type=int, default=8)
    add("--limit", type=int, default=1024, help="tokens of a response")
    add("--budget", type=float, default=500.0, metavar="SECONDS")
    add("--set", nargs="*", action="extend", default=[], metavar="section.key=value")
    add(
        "--out", type=Path, metavar="DIR", help="keep the model, the log and the run there; a model there is used again"
    )
    add("--json", type=Path, metavar="FILE", help="written anew after each step")
    args = parser.parse_args()
    if args.problems < 2:
        parser.error(f"--problems {args.problems}: rewards are dealt out among 2 problems at least")
    if args.problems % args.updates:
        whole = -(-args.problems // args.updates) * args.updates
        parser.error(f"--problems {args.problems} cannot be dealt out to {args.updates} updates; take {whole}")
    return args


def settings(args: argparse.Namespace) -> list[str]:
    return [
        *COMMON,
        f"data.train_size={args.problems * args.steps}",
        f"grpo.samples={args.samples}",
        f"train.steps={args.steps}",
        f"train.train_batch_size={args.problems}",
        f"train.ppo_mini_batch_size={args.problems // args.updates}",
        f"train.max_response_tokens={args.limit}",
        *args.set,
    ]


def summary(result: dict[str, Any]) -> dict[str, Any]:
    """The steps, the mean of all but the first, and the most memory."""
    begun, steps = result["lines"][:1], result["lines"][1:]
    found: dict[str, Any] = {"begun": begun[0] if begun else {}, "steps": steps}
    found |= {name: result[name] for name in ("failed", "gpu_gib", "seconds") if name in result}
    if len(steps) > 1:
        found["mean"] = mean(steps[1:])
        del found["mean"]["step"]
    return found


def memory_words(found: dict[str, Any]) -> str:
    """What there was beside what the plan says."""
    last = found["steps"][-1] if found["steps"] else {}
    parts = [("torch allocated", last.get("allocated_gib")), ("reserved", last.get("reserved_gib"))]
    parts += [("in use on the GPU", found.get("gpu_gib")), ("the plan", found["begun"].get("plan_gib"))]
    return "GiB at most: " + ", ".join(f"{name} {value:.1f}" for name, value in parts if value is not None)


# --- in the process of its own


def inside(spec: dict[str, Any]) -> None:
    weights, made_s = write_model(spec["shape"], Path(spec["model"]))
    folder = Path(spec["folder"]) / "run"
    config = load(None, [*spec["words"], f"model.name={spec['model']}"])
    try:
        train(config, folder, Lines(spec["lines"]), {"weights": weights, "made_s": made_s})
    except KeyboardInterrupt:
        print("stopped")


def train(config: Config, folder: Path, lines: Lines, known: dict[str, Any]) -> None:
    """What `microcoder train` does, with a coin for a judge."""
    source = resolve(config.model.name)
    with Run.create(folder, to_toml(config), {"engine": "trl", "model": config.model.name}) as run:
        observer = Worked(run, config, lines, known)
        loaded = problems_of(config, load_tokenizer(source), observer)
        observer.prompts = {one.id: len(ids) for one, ids in zip(*loaded["train"], strict=True)}
        need = fitted(config, source, max(observer.prompts.values()))
        observer.known |= {"plan": need.words(), "plan_gib": peak(need.parts()) / GIB}
        begin(config, run, None)
        observer.config = config = need.config
        counts = batches(config)
        setup = TrlSetup(config, run, source, counts, Coin(), observer, *loaded.values(), need.crowded)
        for stage, last in stages_left(config, run, counts):
            train_stage(setup, stage, last)


class Worked(Watch):
    """Adds to the metrics of a step how much its updates have worked."""

    def __init__(self, run: Run, config: Config, lines: Lines, known: dict[str, Any]) -> None:
        super().__init__(lines, config.train.steps, **known)
        self.run, self.config = run, config
        self.shape = load_shape(resolve(config.model.name)).config
        self.prompts: dict[str, int] = {}  # their lengths, by problem

    def step(self, metrics: dict[str, Any]) -> None:
        rows = read_rollouts(self.run.path, metrics["step"])
        share = batches(self.config).mini * self.config.grpo.samples  # of an update
        parts = [rows[n : n + share] for n in range(0, len(rows), share)]
        first, *later = [forward(self.shape, self.known["weights"], part, self.prompts) for part in parts]
        times = 4 if self.config.model.gradient_checkpointing is True else 3
        work = times * first[0] + sum((times + 1) * flops for flops, _ in later)
        tflops = work / metrics["update_s"] / 1e12
        tokens = first[1] + sum(tokens for _, tokens in later)
        super().step({**metrics, "trained_tokens": tokens, "work": work, "tflops": tflops, "share": tflops / PEAK})


def forward(shape: Any, weights: int, rows: Iterable[dict[str, Any]], prompts: dict[str, int]) -> tuple[float, int]:
    """F of an update's rollouts, and their tokens. A prompt is counted once."""
    tokens = context = 0
    seen = set()
    for row in rows:
        if not row["advantage"]:
            continue
        before, length = prompts[row["problem"]], row["length"]
        if row["problem"] not in seen:
            seen.add(row["problem"])
            tokens += before
            context += before * (before + 1) // 2
        tokens += length
        context += before * length + length * (length + 1) // 2
    head = getattr(shape, "head_dim", None) or shape.hidden_size // shape.num_attention_heads
    width = shape.num_attention_heads * head
    return 2.0 * weights * tokens + 4.0 * shape.num_hidden_layers * width * context, tokens


def write_model(name: str, folder: Path) -> tuple[int, float]:
    """Write random weights of a shape, unless they are there; return how many there are, and the seconds it took."""
    started = time.perf_counter()
    if not holds_model(folder):
        tokenizer = load_tokenizer(resolve("nano"))
        device = "cuda" if torch.cuda.is_available() else "cpu"
        words = max(SHAPES[name]["vocab_size"], len(tokenizer))
        ends = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
        model = random_model(name, device, torch.bfloat16, vocab_size=words, **ends)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        del model
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
    count = sum(weight.numel() for weight in load_shape(resolve(str(folder))).parameters())
    return count, time.perf_counter() - started


class Coin(Judging):
    """Instead of a judge: accepts every other program."""

    workers, sandbox = 1, "none"

    def __init__(self) -> None:
        self.tossed = 0

    def submit(
        self, problem: Problem, completion: str | Solution | None = None, *, code: str | None = None
    ) -> Future[Verdict]:
        found: Future[Verdict] = Future()
        found.set_result(Verdict("wrong_answer" if self.tossed % 2 else "accepted", problem.id))
        self.tossed += 1
        return found

    def drop(self, future: Future[Verdict]) -> None: ...

    def close(self, cancel: bool = False) -> None: ...


if __name__ == "__main__":
    inside(json.loads(Path(sys.argv[1]).read_text()))
