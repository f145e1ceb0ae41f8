"""The memory of an update at a model's shape: what the plan says beside what is allocated, part by part.

    python -m benchmarks.gpu memory --shape 1.5b --tokens 8192,16384 --recompute no,yes --json memory.json
    python -m benchmarks.gpu memory --shape 4b --lora 32 --optimizer adam8bit --dtype bfloat16
    python -m benchmarks.gpu memory --shape tiny --tokens 512                      # on a CPU: it runs, the plan alone

Random weights and tokens. Three packed passes of one update, forward and backward, then a step of the optimizer and a
fourth pass. Of each part the growth of what torch has allocated:

    weights      after the model is built                  gradients   after the first pass
    pass         the peak of the second pass               optimizer   after its step
    all          the peak of the last pass, in which everything is there; and what torch has reserved from the driver
    CUDA         what the driver has given out, without what torch has reserved

The plan is `microcoder/training/memory.py`, whose coefficients stand at its top; nothing is sampled here, so it has no
pages and no copy that samples. `ratio` is measured / plan. Times are of the third pass and of the second step.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu.packed import SHAPES, backward, random_model
from microcoder.config import Config, load
from microcoder.training.memory import GIB, MemoryPlan, here
from microcoder.training.model_shape import ModelShape
from microcoder.training.optimizers import CompactAdamW
from microcoder.training.packed import Packed, inputs, pack, share_prompts
from microcoder.training.plan import batches

PROMPT, ANSWER, SAMPLES = 256, 768, 8  # tokens, tokens, responses to a prompt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="1.5b")
    parser.add_argument("--tokens", default="16384", help="of a pass; several with commas")
    parser.add_argument("--recompute", default="no,yes", help="no, yes, or both with a comma")
    parser.add_argument("--lora", type=int, default=0, metavar="RANK", help="train an adapter; 0: all weights")
    parser.add_argument("--optimizer", choices=("adamw", "adam8bit"), default="adamw")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="of the weights")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    results = []
    for tokens, recompute in product(map(int, args.tokens.split(",")), args.recompute.split(",")):
        config = settings(args, tokens, recompute == "yes")
        title = f"{args.shape}, {tokens:,} tokens, recompute: {recompute}, {args.optimizer}, {args.dtype}"
        print(title + (f", LoRA of rank {args.lora}" if args.lora else ""), flush=True)
        row = {"title": title, "tokens": tokens, "recompute": recompute} | compared(args, config, tokens)
        results.append(row)
        show(row)
        if args.json:
            Path(args.json).write_text(json.dumps(results, indent=1))


def settings(args: argparse.Namespace, tokens: int, recompute: bool) -> Config:
    words = [
        "train.update=packed",
        f"train.pass_tokens={tokens}",
        f"train.max_response_tokens={ANSWER}",
        f"grpo.samples={SAMPLES}",
        f"train.optimizer={args.optimizer}",
        f"model.dtype={args.dtype}",
        f"model.lora_rank={args.lora}",
        f"model.gradient_checkpointing={str(recompute).lower()}",
    ]
    return load(None, words)


def compared(args: argparse.Namespace, config: Config, tokens: int) -> dict[str, Any]:
    """Bytes of each part by the plan, and measured where there is a GPU."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    found: dict[str, float] = {}
    with grown(found, "weights"):
        model, shape = built(args, config, device)
    planned = MemoryPlan(config, batches(config), shape, PROMPT, here())
    plan = {name: planned.parts()[name] for name in ("weights", "gradients", "optimizer")}
    plan["pass"] = planned.a_pass(tokens, config.model.gradient_checkpointing is True)
    plan["all"] = sum(plan.values())
    plan |= {"CUDA": planned.parts()["CUDA"]} if device.type == "cuda" else {}
    try:
        measure(model, config, packed_row(tokens, shape.vocabulary, device), found)
    except torch.OutOfMemoryError:
        found["error"] = True
    del model
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return {"plan": plan, "measured": found}


def measure(model: Any, config: Config, row: Packed, found: dict[str, float]) -> None:
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    eight = config.train.optimizer == "adam8bit"
    half = config.model.dtype == "bfloat16"
    optimizer: Any = (
        CompactAdamW(trained, bits=8 if eight else 32)
        if eight or half
        else torch.optim.AdamW(trained, fused=row.ids.is_cuda)  # Trainer's default
    )
    with grown(found, "gradients"):
        a_pass(model, row)
    with peak(found, "pass"):
        a_pass(model, row)
    with timed(found, "pass_s"):
        a_pass(model, row)
    with grown(found, "optimizer"):
        optimizer.step()
    with timed(found, "step_s"):
        optimizer.step()
    with peak(found, "all", whole=True):
        a_pass(model, row)
    if row.ids.is_cuda:
        free, total = torch.cuda.mem_get_info()
        found["reserved"] = torch.cuda.max_memory_reserved()
        found["CUDA"] = total - free - torch.cuda.memory_reserved()


def a_pass(model: Any, row: Packed) -> None:
    cuda = row.ids.is_cuda
    with torch.autocast("cuda", torch.bfloat16, enabled=cuda):
        logprobs = model(**inputs(row))
    backward(logprobs, torch.linspace(-1, 1, len(logprobs), device=row.ids.device))


def built(args: argparse.Namespace, config: Config, device: Any) -> tuple[Any, ModelShape]:
    """A model with random weights that takes packed rows, and its shape."""
    model = random_model(args.shape, device, getattr(torch, args.dtype))
    model.train()
    shape = ModelShape.of(model)
    if args.lora:
        from peft import get_peft_model

        from microcoder.training.arguments import adapter

        model = get_peft_model(model, adapter(config)).get_base_model()
    share_prompts(model)
    if config.model.gradient_checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model, shape


def packed_row(tokens: int, words: int, device: Any) -> Packed:
    """Groups of SAMPLES responses to a prompt, as many as make so many tokens."""
    rng = torch.Generator().manual_seed(0)

    def text(length: int) -> list[int]:
        return torch.randint(words, (length,), generator=rng).tolist()

    rows: list[tuple[list[int], list[int]]] = []
    left, prompt = tokens, text(min(PROMPT, tokens // 2))
    left -= len(prompt) - 1
    while left > 0:
        if len(rows) and len(rows) % SAMPLES == 0 and left > PROMPT:
            prompt = text(PROMPT)
            left -= len(prompt) - 1
        rows.append((prompt, text(min(ANSWER, left))))
        left -= len(rows[-1][1])
    return pack(rows, device)


# --- measuring; on a CPU nothing but time is measured


@contextmanager
def grown(found: dict[str, float], name: str) -> Iterator[None]:
    before = torch.cuda.memory_allocated() if torch.cuda.is_available() else 0
    yield
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        found[name] = torch.cuda.memory_allocated() - before


@contextmanager
def peak(found: dict[str, float], name: str, whole: bool = False) -> Iterator[None]:
    """The most that is allocated beyond what there is; `whole`: including it."""
    cuda = torch.cuda.is_available()
    before = torch.cuda.memory_allocated() if cuda and not whole else 0
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    yield
    if cuda:
        torch.cuda.synchronize()
        found[name] = torch.cuda.max_memory_allocated() - before


@contextmanager
def timed(found: dict[str, float], name: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    found[name] = time.perf_counter() - started


def show(row: dict[str, Any]) -> None:
    plan, found = row["plan"], row["measured"]
    print(f"  {'':12} {'plan GiB':>9} {'measured':>9} {'ratio':>6}")
    for name, bytes_ in plan.items():
        cells = f"{found[name] / GIB:9.3f} {found[name] / bytes_:6.2f}" if name in found else ""
        print(f"  {name:12} {bytes_ / GIB:9.3f} {cells}".rstrip())
    if "reserved" in found:
        print(f"  {'reserved':12} {'':9} {found['reserved'] / GIB:9.3f} {found['reserved'] / plan['all']:6.2f}")
    if "error" in found:
        print("  out of memory")
    else:
        print(f"  a pass {found['pass_s']:.3f} s, a step of the optimizer {found['step_s']:.3f} s", flush=True)
