"""Tokens a second of the sampler, and of vLLM, at a model's shape, with random weights and no end tokens.

    python -m benchmarks.gpu tokens --shape 135m --cases 512x192/8 512x192/1 2048x192/8 2048x192/1
    python -m benchmarks.gpu tokens --shape 4b --cases 256x1024/8 256x1024/1 64x4096/8 64x8192/8 --memory 0.5
    python -m benchmarks.gpu tokens --shape 135m --cases 512x192/8 512x192/1 --engine vllm --memory 0.85
    python -m benchmarks.gpu tokens --shape 4b --cases 96x64/1 --prompt 0:8192 --memory 0.5 --profile
    python -m benchmarks.gpu tokens --shape tiny --cases 4x8/2                                               # on a CPU

A case is RESPONSESxLIMIT/SAMPLES: 512x192/8 are 64 prompts with 8 responses of 192 tokens each. Prompts have 40 to 360
tokens, or --prompt FROM:TO: with long ones and few tokens to write, steps in the midst of long responses are timed.

The whole call is timed, reading the prompts and bringing the bfloat16 copy up to date included; the best of `--repeat`
calls after one that captures the graphs. `pages` is the share of the pool that was used at once. `--profile` prints the
kernels of one more call that take the most time. vLLM gets the same prompts as token ids, gives back token ids and the
log-probabilities of the tokens drawn, and keeps the prompts of the call before out of its cache. `ready` are the
seconds from a model's shape to an engine that can be called.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu.packed import SHAPES, profile, random_model
from microcoder.sampling import GraphSampler, Sampling

Case = tuple[int, int, int]  # responses, limit, samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="1.5b")
    parser.add_argument("--cases", nargs="+", default=["512x192/8", "512x192/1"], metavar="RESPONSESxLIMIT/SAMPLES")
    parser.add_argument("--engine", choices=("graph", "vllm"), default="graph")
    parser.add_argument("--prompt", default="40:360", metavar="FROM:TO", help="tokens of a prompt")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--memory", type=float, default=0.4, help="rollout.memory")
    parser.add_argument("--repeat", type=int, default=2, help="0: the first call is timed")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    cases, span = [case(words) for words in args.cases], prompt_span(args.prompt)
    if args.engine == "vllm" and args.profile:
        raise SystemExit("--profile is of our own sampler")
    started = time.perf_counter()
    engine: Graph | Vllm = (Vllm if args.engine == "vllm" else Graph)(args.shape, cases, span[1], args.memory)
    ready = time.perf_counter() - started
    found: list[dict[str, Any]] = []
    print(f"{args.engine}, {args.shape}, ready after {ready:.1f} s")
    print(f"{'case':>14} {'tokens/s':>10} {'seconds':>9} {'first s':>8}  rows, preempted, pages")
    for words, (count, limit, samples) in zip(args.cases, cases, strict=True):
        asked = prompts(count // samples, SHAPES[args.shape]["vocab_size"], *span)
        seconds = [timed(engine, asked, Sampling(1.0, limit, samples, seed=n)) for n in range(args.repeat + 1)]
        best = min(seconds[1:] or seconds)
        row = {"case": words, "tokens_per_s": count * limit / best, "seconds": best, "first_s": seconds[0]}
        found.append({**row, **engine.used()})
        print(
            f"{words:>14} {row['tokens_per_s']:10,.0f} {best:9.2f} {seconds[0]:8.2f}  "
            f"{', '.join(f'{value:.3g}' for value in engine.used().values())}",
            flush=True,
        )
        if args.profile:
            profile(
                lambda asked=asked, limit=limit, samples=samples: timed(engine, asked, Sampling(1.0, limit, samples))
            )
        if args.json:
            kept = {"engine": args.engine, "shape": args.shape, "ready_s": ready, "cases": found}
            args.json.write_text(json.dumps(kept, indent=1))


class Graph:
    """The sampler of `rollout.engine=graph`."""

    def __init__(self, shape: str, cases: list[Case], prompt: int, memory: float) -> None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
        changes = {"head_dim": 32} if shape == "tiny" else {}  # the narrowest that the sampler takes
        self.sampler = GraphSampler(random_model(shape, device, **changes).eval(), [], max(cases)[0], memory)

    def __call__(self, asked: list[list[int]], sampling: Sampling) -> Iterator[int]:
        return (len(one.ids) for one in self.sampler(asked, sampling))

    def used(self) -> dict[str, float]:
        usage = self.sampler.usage
        share = usage.most_pages / max(usage.pages, 1)
        return {"rows": usage.most_responses, "preempted": usage.preemptions, "pages": share}


class Vllm:
    """vLLM in this process, with weights that it makes up itself."""

    def __init__(self, shape: str, cases: list[Case], prompt: int, memory: float) -> None:
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        from vllm import LLM

        rows = max(cases)[0]
        sizes = [size for size in (1, 2, 4, 8, 16, 32, 64, 128, 192, *range(256, 2049, 64)) if size < rows]
        with tempfile.TemporaryDirectory() as folder:
            model = random_model(shape, "meta", torch.bfloat16)
            model.config.architectures = [type(model).__name__]
            model.config.save_pretrained(folder)
            self.model = LLM(
                folder,
                load_format="dummy",
                skip_tokenizer_init=True,
                dtype="bfloat16",
                max_model_len=prompt + max(limit for _, limit, _ in cases),
                max_num_seqs=rows,
                gpu_memory_utilization=memory,
                compilation_config={"cudagraph_capture_sizes": [*sizes, rows], "max_cudagraph_capture_size": rows},
                disable_log_stats=True,
            )

    def __call__(self, asked: list[list[int]], sampling: Sampling) -> Iterator[int]:
        from vllm import SamplingParams

        self.model.reset_prefix_cache()
        wanted = SamplingParams(
            n=sampling.samples,
            temperature=sampling.temperature,
            max_tokens=sampling.limit,
            ignore_eos=True,
            detokenize=False,
            logprobs=0,
            flat_logprobs=True,
        )
        found = self.model.generate([{"prompt_token_ids": ids} for ids in asked], wanted, use_tqdm=False)
        return (len(one.token_ids) for of_prompt in found for one in of_prompt.outputs)

    def used(self) -> dict[str, float]:
        return {}


def case(words: str) -> Case:
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


def timed(engine: Graph | Vllm, asked: list[list[int]], sampling: Sampling) -> float:
    started = time.perf_counter()
    for length in engine(asked, sampling):
        assert length == sampling.limit
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
