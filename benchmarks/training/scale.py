"""What a run on a cluster should take, on paper: seconds, memory, judge cores and cost of the cluster-* configs.

    python -m benchmarks.training scale
    python -m benchmarks.training scale --gpu h100 --price 2.5 --share 0.3 0.6 --json scale.json

No run on several GPUs was made. What is put in was measured on one GPU, or is an assumption:

1. Generation reads the weights and all keys and values once a token. `--share` is how much of the memory's rate is
   reached: from the slowest to the fastest of SAMPLED, vLLM with the shape of Qwen3-4B on one H200 (docs/results.md).
2. Lengths are spread evenly from 0 to the limit, so the mean is half of it and some response takes all of it.
3. A token costs two operations for each weight, and its attention; five times, since the update computes activations
   twice (4), and log-probabilities come before it (1). `--mfu` is the share of the GPU's rate that is reached: of 989
   TFLOP/s our packed update at 4B reached 375 (docs/results.md). verl's was never measured.
4. A candidate costs the judge what the mix of programs in docs/results.md does. It works while others are generated;
   but a fifth of the responses may reach the limit together, and a step shall not wait more than 5% for those.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microcoder.config import Config, load
from microcoder.config.layers import shipped

GPUS = {"h200": (141, 4.24e12, 989e12), "h100": (80, 3.0e12, 989e12)}  # GB, bytes/s, bfloat16 operations/s
SAMPLED = ((256, 1024, 16_500), (64, 4096, 6_800), (64, 8192, 4_810))  # vLLM, 4B, H200: rows, tokens of each, tokens/s
SAMPLED_PROMPT = 200  # tokens in the mean there
UPDATED = 375e12  # operations/s of our update at 4B, of an H200
JUDGE = {"no program loops": 0.033, "with endless loops": 0.141}  # core seconds a candidate, x86 (docs/results.md)
AT_ONCE, WAIT = 0.2, 0.05  # this share of the responses reaches the limit together; the step may wait so long for them
PROMPT = 600  # tokens
PASSES = 5  # forward passes whose work a token costs: one of log-probabilities, two forward, two backward
OTHER = 0.1  # of a step: weights handed to the sampler, batches, bookkeeping


@dataclass(frozen=True)
class Shape:
    layers: int
    width: int
    heads: int
    kv_heads: int
    head: int
    inner: int
    words: int = 151_936
    tied: bool = True

    @property
    def weights(self) -> float:
        attention = 2 * self.width * self.head * (self.heads + self.kv_heads)
        words = self.words * self.width * (1 if self.tied else 2)
        return words + self.layers * (attention + 3 * self.width * self.inner)

    @property
    def token_bytes(self) -> float:
        """Of the keys and values of one token, in bfloat16."""
        return self.layers * 2 * self.kv_heads * self.head * 2

    def forward(self, tokens: float, squares: float) -> float:
        """Operations of a forward pass: of `tokens`, whose texts' lengths have squares that add up to `squares`."""
        return 2 * self.weights * tokens + 4 * self.layers * self.heads * self.head * squares / 2


SHAPES = {
    "Qwen/Qwen3-4B-Instruct-2507": Shape(36, 2560, 32, 8, 128, 9728),
    "Qwen/Qwen3-32B": Shape(64, 5120, 64, 8, 128, 25_600, tied=False),
}


def shares(rate: float = GPUS["h200"][1]) -> list[float]:
    """The share of the memory's rate that vLLM reached in each of SAMPLED."""
    shape = SHAPES["Qwen/Qwen3-4B-Instruct-2507"]
    read = {case: 2 * shape.weights + case[0] * (SAMPLED_PROMPT + case[1] / 2) * shape.token_bytes for case in SAMPLED}
    return sorted(case[2] / case[0] * bytes_ / rate for case, bytes_ in read.items())


def generation(config: Config, rate: float, share: float) -> float:
    """Seconds until the longest response ends; copies of the model on tensor_parallel GPUs each take their part."""
    shape, limit, parts = SHAPES[config.model.name], config.train.max_response_tokens, config.cluster.tensor_parallel
    copies = config.cluster.processes / parts
    responses = config.train.train_batch_size * config.grpo.samples / copies
    waves = max(1.0, responses / config.rollout.batch)  # more than fit at once follow one another
    at_once = responses / waves
    read = sum(2 * shape.weights + at_once * (1 - t / limit) * (PROMPT + t) * shape.token_bytes for t in range(limit))
    return waves * read / (rate * parts * share)


def estimate(config: Config, gpu: str, share: float, mfu: float, price: float) -> dict[str, Any]:
    size, rate, operations = GPUS[gpu]
    shape, gpus = SHAPES[config.model.name], config.cluster.processes
    limit, parts = config.train.max_response_tokens, config.cluster.tensor_parallel
    responses = config.train.train_batch_size * config.grpo.samples
    made = responses * limit / 2
    sample_s = generation(config, rate, share)
    squares = responses * ((PROMPT + limit) ** 3 - PROMPT**3) / (3 * limit)  # of lengths spread evenly
    update_s = PASSES * shape.forward(made + responses * PROMPT, squares) / (gpus * operations * mfu)
    step_s = (sample_s + update_s) / (1 - OTHER)
    tokens = config.train.micro_batch_size * (PROMPT + limit)  # of one pass, at the longest
    gb = {
        "weights, gradients, optimizer": 16 * shape.weights / gpus / 1e9,
        "activations kept": tokens * shape.layers * shape.width * 2 / 1e9,
        "logits and their gradients": 2 * tokens * shape.words * 4 / 1e9,
        "vLLM: its share": config.rollout.memory * size,
        "of which weights": 2 * shape.weights / parts / 1e9,
    }
    kept = (gb["vLLM: its share"] - gb["of which weights"]) * 1e9 * parts / shape.token_bytes
    hours = config.train.steps * step_s / 3600
    return {
        "gpus": gpus, "weights": shape.weights, "generation_s": sample_s, "update_s": update_s, "step_s": step_s,
        "tokens_per_s": made / sample_s, "tokens_per_s_gpu": made / sample_s / gpus,
        "judge_cores": {name: responses * cost / sample_s for name, cost in JUDGE.items()},
        "judge_cores_at_the_end": {name: AT_ONCE * responses * cost / (WAIT * step_s) for name, cost in JUDGE.items()},
        "gb_per_gpu": gb, "gpu_gb": size, "tokens_kept_per_copy": kept,
        "hours": hours, "gpu_hours": hours * gpus, "cost": hours * gpus * price,
    }  # fmt: skip


def show(name: str, low: dict[str, Any], high: dict[str, Any]) -> None:
    def both(key: str, form: str = "{:,.0f}", first: dict[str, Any] = low, second: dict[str, Any] = high) -> str:
        return " to ".join(form.format(value) for value in sorted((first[key], second[key])))

    print(f"\n{name}: {low['weights'] / 1e9:.1f}B weights on {low['gpus']} GPUs, between the two shares")
    rows = [
        ("generation", both("generation_s") + " s"),
        ("tokens/s", f"{both('tokens_per_s')} ({both('tokens_per_s_gpu')} a GPU)"),
        ("update", f"{low['update_s']:,.0f} s"),
        ("a step", both("step_s") + " s"),
        ("all steps", f"{both('hours', '{:,.1f}')} h, {both('gpu_hours')} GPU hours, cost {both('cost')}"),
    ]
    for kind in JUDGE:
        for when, key in (("while generating", "judge_cores"), ("for the last", "judge_cores_at_the_end")):
            rows.append((f"judge cores, {kind}, {when}", both(kind, "{:.2f}", low[key], high[key])))
    rows += [(f"GB a GPU: {what}", f"{gb:.1f}") for what, gb in low["gb_per_gpu"].items()]
    rows.append(("tokens whose keys fit in a copy's share", f"{low['tokens_kept_per_copy']:,.0f}"))
    for label, value in rows:
        print(f"  {label:<52} {value}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", choices=GPUS, default="h200")
    reached, mfu = shares(), UPDATED / GPUS["h200"][2]
    parser.add_argument("--share", type=float, nargs=2, default=(reached[0], reached[-1]), metavar=("LOW", "HIGH"))
    parser.add_argument("--mfu", type=float, default=mfu, help="share of the GPU's operations that the update reaches")
    parser.add_argument("--price", type=float, default=3.0, help="of a GPU hour")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    low, high = args.share
    print(f"{args.gpu}: {low:.2f} to {high:.2f} of the memory's rate, {args.mfu:.2f} of the operations")
    found = {}
    for name, path in shipped().items():
        if name.startswith("cluster-"):
            config = load(path)
            found[name] = [estimate(config, args.gpu, share, args.mfu, args.price) for share in args.share]
            show(name, *found[name])
    if args.json:
        args.json.write_text(json.dumps({"gpu": args.gpu, "share": args.share, "mfu": args.mfu, **found}, indent=2))
