"""How good is nano before any training? Accuracy and pass@8 on the starter test split, by temperature and depth.

    python -m benchmarks.training nano
    python -m benchmarks.training nano --model runs/demo     # the same of a run's newest checkpoint

pass@k is the chance that at least one of k tries is accepted, estimated without bias from `--tries`.
"""

from __future__ import annotations

import argparse
import json
import statistics
from functools import partial
from math import comb
from pathlib import Path

from microcoder.collect import Responding
from microcoder.config import load
from microcoder.judge.remote import open_judge
from microcoder.models import resolve
from microcoder.models.weights import end_tokens, load_tokenizer
from microcoder.sampling import Sampler, Sampling
from microcoder.training.problems import load_problems, with_prompts
from microcoder.training.step import load_model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="nano")
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--tries", type=int, default=16)
    parser.add_argument("--limit", type=int, default=160, help="tokens in a response")
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.0, 0.6, 1.0, 1.4])
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    config = load(None, [f"data.test_size={args.problems}"])
    source = resolve(args.model)
    tokenizer, model = load_tokenizer(source), load_model(config, source).eval()
    sampler = Sampler(model, end_tokens(model, tokenizer))
    loaded, prompts = with_prompts(load_problems(config.data, "test"), tokenizer, config)
    rows = []
    with open_judge({**config.judge.options(), "queue": 1 << 16}) as judge:
        for temperature in args.temperatures:
            tries = args.tries if temperature else 1
            sampling = Sampling(temperature, args.limit, tries)
            responses, _ = Responding(
                list(range(len(prompts))),
                loaded.problems,
                prompts,
                partial(sampler, sampling=sampling),
                lambda ids: tokenizer.decode(ids, skip_special_tokens=True),
                judge,
            ).all()
            rows.append(measure(responses, temperature, tries))
    depths = [f"depth {d}" for d in range(2, 7)]
    names = ["temperature", "accuracy", "pass@8", "truncated", *depths, "tokens at 2", "at 6"]
    print(" | ".join(names))
    for row in rows:
        print(" | ".join("" if row[name] is None else f"{row[name]:.3g}" for name in names))
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2) + "\n")


def measure(responses: list, temperature: float, tries: int) -> dict:
    groups = [responses[n : n + tries] for n in range(0, len(responses), tries)]
    right = [sum(row.accepted for row in group) for group in groups]
    depth = [int(group[0].problem.difficulty_score) for group in groups]

    def at(level: int) -> float:
        return statistics.fmean(n / tries for n, d in zip(right, depth, strict=True) if d == level)

    def tokens(level: int) -> float:
        return statistics.fmean(
            len(row.ids) for group, d in zip(groups, depth, strict=True) if d == level for row in group
        )

    return {
        "temperature": temperature,
        "accuracy": sum(right) / len(responses),
        "pass@8": statistics.fmean(pass_at(8, tries, n) for n in right) if tries >= 8 else None,
        "truncated": statistics.fmean(row.truncated for row in responses),
        **{f"depth {level}": at(level) for level in range(2, 7)},
        "tokens at 2": tokens(2),
        "at 6": tokens(6),
    }


def pass_at(k: int, tries: int, right: int) -> float:
    return 1 - comb(tries - right, k) / comb(tries, k)
