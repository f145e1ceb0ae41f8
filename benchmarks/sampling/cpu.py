"""Sampling from nano on a CPU: tokens a second as it is, by oneDNN's products, and by transformers' `generate`.

    OMP_NUM_THREADS=1 python -m benchmarks.sampling cpu      # as in a study
    python -m benchmarks.sampling cpu                        # all cores

The same problems for all three, which take turns; the median of the rounds. On other CPUs than Arm the first two are
the same thing.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from microcoder.config import load
from microcoder.layout import Table, aligned, counted
from microcoder.models import resolve
from microcoder.models.weights import end_tokens, load_tokenizer
from microcoder.sampling import Sampler, Sampling
from microcoder.sampling import sampler as sampling_module
from microcoder.training.problems import load_problems, with_prompts
from microcoder.training.step import load_model

SHAPES = {"a step, 8 x 8": (8, 8, 1.0, 128), "an evaluation, 60 x 4": (60, 4, 0.6, 160)}  # problems, samples, T, limit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    config = load(None, ["data.test_size=60"])
    source = resolve("nano")
    tokenizer, model = load_tokenizer(source), load_model(config, source).eval()
    _, prompts = with_prompts(load_problems(config.data, "test"), tokenizer, config)
    ends = end_tokens(model, tokenizer)
    found = []
    for shape, (count, samples, temperature, limit) in SHAPES.items():
        sampling = Sampling(temperature, limit, samples)
        ways = {
            "as it is": sampled(model, ends, sampling_module.ARM),
            "oneDNN": sampled(model, ends, False),
            "generate": generated(model, ends, tokenizer.pad_token_id),
        }
        rates: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(args.rounds):
            for name, way in ways.items():
                began = time.perf_counter()
                tokens = way(prompts[:count], sampling)
                rates[name].append(tokens / (time.perf_counter() - began))
        found.append({"shape": shape, **{name: statistics.median(each) for name, each in rates.items()}})
    others = list(ways)[1:]
    machine = f"{platform.machine()}, {counted(torch.get_num_threads(), 'thread')}"
    head = ("responses", *ways, *(f"over {name}" for name in others))
    cells = [
        (
            row["shape"],
            *(f"{row[name]:,.0f}" for name in ways),
            *(f"{row['as it is'] / row[name]:.2f}" for name in others),
        )
        for row in found
    ]
    print(aligned(Table(f"tokens a second, {machine}", head, cells)))
    if args.json:
        args.json.write_text(json.dumps({"machine": machine, "rows": found}, indent=1) + "\n")


def sampled(model: Any, ends: Any, arm: bool) -> Callable[[list[list[int]], Sampling], int]:
    def way(prompts: list[list[int]], sampling: Sampling) -> int:
        before, sampling_module.ARM = sampling_module.ARM, arm
        try:
            return sum(len(each.ids) for each in Sampler(model, ends)(prompts, sampling))
        finally:
            sampling_module.ARM = before

    return way


def generated(model: Any, ends: Any, pad: int) -> Callable[[list[list[int]], Sampling], int]:
    def way(prompts: list[list[int]], sampling: Sampling) -> int:
        ids, mask = sampling_module._left_padded(prompts, "cpu")
        with torch.no_grad():
            output = model.generate(
                input_ids=ids,
                attention_mask=mask,
                do_sample=True,
                temperature=sampling.temperature,
                top_k=0,
                max_new_tokens=sampling.limit,
                num_return_sequences=sampling.samples,
                eos_token_id=list(ends),
                pad_token_id=pad,
            )
        ended = torch.isin(output[:, ids.shape[1] :], torch.tensor(list(ends)))
        return int(((ended.cumsum(1) - ended.long()) == 0).sum())  # up to the first end token, and with it

    return way
