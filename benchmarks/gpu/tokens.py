"""Tokens a second of the sampler at a model's shape, with random weights and no end tokens.

    python -m benchmarks.gpu tokens --shape 135m --cases 512x192/8 512x192/1 2048x192/8 2048x192/1
    python -m benchmarks.gpu tokens --shape 4b --cases 256x1024/8 256x1024/1 64x4096/8 64x8192/8 --memory 0.5
    python -m benchmarks.gpu tokens --shape 4b --cases 96x64/1 --prompt 0:8192 --memory 0.5 --profile
    python -m benchmarks.gpu tokens --shape tiny --cases 4x8/2                                               # on a CPU

A case is RESPONSESxLIMIT/SAMPLES: 512x192/8 are 64 prompts with 8 responses of 192 tokens each. Prompts have 40 to 360
tokens, or --prompt FROM:TO: with long ones and few tokens to write, steps in the midst of long responses are timed.

The whole call is timed, reading the prompts and bringing the bfloat16 copy up to date included; the best of `--repeat`
calls after one that captures the graphs. `pages` is the share of the pool that was used at once. `--profile` prints the
kernels of one more call that take the most time.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu.packed import SHAPES, profile, random_model
from microcoder.sampling import GraphSampler, Sampling


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="1.5b")
    parser.add_argument("--cases", nargs="+", default=["512x192/8", "512x192/1"], metavar="RESPONSESxLIMIT/SAMPLES")
    parser.add_argument("--prompt", default="40:360", metavar="FROM:TO", help="tokens of a prompt")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--memory", type=float, default=0.4, help="rollout.memory")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    cases, span = [case(words) for words in args.cases], prompt_span(args.prompt)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    changes = {"head_dim": 32} if args.shape == "tiny" else {}  # the narrowest that the sampler takes
    model = random_model(args.shape, device, **changes).eval()
    sampler = GraphSampler(model, [], max(count for count, _, _ in cases), args.memory)
    found: list[dict[str, Any]] = []
    print(f"{'case':>14} {'tokens/s':>10} {'seconds':>9} {'rows':>13} {'preempted':>10} {'pages':>7} {'first s':>8}")
    for words, (count, limit, samples) in zip(args.cases, cases, strict=True):
        asked = prompts(count // samples, model.config.vocab_size, *span)
        seconds = [timed(sampler, asked, Sampling(1.0, limit, samples, seed=n)) for n in range(args.repeat + 1)]
        usage, best = sampler.usage, min(seconds[1:])
        row = {"case": words, "tokens_per_s": count * limit / best, "seconds": best, "rows": usage.most_responses}
        row |= {"preempted": usage.preemptions, "pages": usage.most_pages / max(usage.pages, 1), "first_s": seconds[0]}
        found.append(row)
        print(
            f"{words:>14} {row['tokens_per_s']:10,.0f} {best:9.2f} {row['rows']:13} {row['preempted']:10} "
            f"{row['pages']:7.0%} {seconds[0]:8.2f}",
            flush=True,
        )
        if args.profile:
            profile(
                lambda asked=asked, limit=limit, samples=samples: timed(sampler, asked, Sampling(1.0, limit, samples))
            )
        if args.json:
            args.json.write_text(json.dumps({"shape": args.shape, "cases": found}, indent=1))


def case(words: str) -> tuple[int, int, int]:
    parts = re.fullmatch(r"(\d+)x(\d+)/(\d+)", words)
    if not parts or not all(map(int, parts.groups())) or int(parts[1]) % int(parts[3]):
        raise SystemExit(f"--cases {words}: RESPONSESxLIMIT/SAMPLES, whole prompts of SAMPLES each, as in 512x192/8")
    return int(parts[1]), int(parts[2]), int(parts[3])


def prompt_span(words: str) -> tuple[int, int]:
    parts = re.fullmatch(r"(\d+):(\d+)", words)
    if not parts or int(parts[1]) > int(parts[2]) or not int(parts[2]):
        raise SystemExit(f"--prompt {words}: FROM:TO, as in 40:360")
    return max(1, int(parts[1])), int(parts[2])


def prompts(count: int, words: int, least: int, most: int) -> list[list[int]]:
    rng = torch.Generator().manual_seed(0)
    lengths = torch.randint(least, most + 1, (count,), generator=rng).tolist()
    return [torch.randint(0, words, (length,), generator=rng).tolist() for length in lengths]


def timed(sampler: GraphSampler, asked: list[list[int]], sampling: Sampling) -> float:
    started = time.perf_counter()
    for one in sampler(asked, sampling):
        assert len(one.ids) == sampling.limit
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
