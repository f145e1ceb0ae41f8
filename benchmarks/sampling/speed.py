"""Part "speed": the same sequences by `generate` and by our samplers, in one run on one GPU.

Every sequence goes to the limit (no end tokens), temperature 1, weights in bfloat16: `generate` and the transformers
sampler hold them so; the graph sampler has float32 weights and brings its bfloat16 copy up to date in each call, as in
training. `generate` gets every prompt once for each sample, which is what TRL gives it.

- `tokens/s` counts generated tokens over the whole call, reading the prompts included; see `Bench.clock`.
- `ready s`: making the sampler, and what its first call took longer than later ones. `generate` with a static cache is
  compiled by transformers; it has two first calls.
- The roofline. A decode step has to read all weights once (a tied embedding once, as the head; else only the head), and
  the keys and values of every token before: those of a prompt once for all of its samples, or once for each of them
  (two figures), and each row's own. `share` is the time this takes at the bandwidth that a large copy on this GPU
  reaches (bytes read and written), over the time of a step: what a call takes beyond one with a limit of 1, divided by
  the steps that it has more.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from transformers import GenerationConfig

from benchmarks.sampling.bench import Bench, table
from microcoder.sampling import GraphSampler, Sampler, Sampling

NAMES = ("generate", "generate, static cache", "transformers sampler", "graph sampler")
SHORT = 32  # tokens of the call that is profiled


COLD = """
import sys, time, torch
from microcoder.config import load
from microcoder.training.step import load_model
from microcoder.models import ModelSource
from microcoder.sampling import GraphSampler, Sampling
model = load_model(load(None, []), ModelSource(sys.argv[1], sys.argv[1])).cuda().eval()
torch.cuda.synchronize()
started = time.perf_counter()
sampler = GraphSampler(model, [])
list(sampler([[1, 2, 3]], Sampling(1.0, 1)))
print(time.perf_counter() - started)
"""


def run(bench: Bench) -> None:
    found: dict[str, dict[str, float]] = {}
    if bench.cuda:
        with bench.attempt("speed: ready"):
            seconds = cold(bench.source.path)
            bench.keep("speed", cold_ready_s=seconds)
            print(f"in a new process whose compiler has cached nothing, the graph sampler is ready in {seconds:.2f} s")
    batches(bench, found)
    model = bench.model("bfloat16" if bench.cuda else "float32")  # CPUs without bfloat16 emulate it, very slowly
    measures: dict[str, Callable[[Bench, Any], tuple[float, float]]] = {
        "transformers sampler": by_sampler,
        "generate": by_generate,
        "generate, static cache": by_static_generate,
    }
    for name, measure in measures.items():
        with bench.attempt(f"speed: {name}"):
            call_s, ready_s = measure(bench, model)
            tokens = bench.sequences * bench.args.limit
            found[name] = {"ready s": ready_s, "call s": call_s, "tokens/s": tokens / call_s}
            bench.keep("speed", contenders=found)
    del model
    for row in found.values():
        for other in NAMES[:2]:
            if other in found:
                row[f"x {other}"] = row["tokens/s"] / found[other]["tokens/s"]
    bench.keep("speed", contenders=found)
    table([{"contender": name, **found[name]} for name in NAMES if name in found])


def cold(model: str) -> float:
    """Seconds until a first token, from the model in the GPU's memory."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TRITON_CACHE_DIR": folder}
        command = [sys.executable, "-c", COLD, model]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def by_sampler(bench: Bench, model: Any) -> tuple[float, float]:
    args = bench.args
    sampler = Sampler(model, [], bench.sequences)
    return bench.clock(lambda: whole(bench, sampler, bench.take(args.problems_per_step), args.limit))


def by_generate(bench: Bench, model: Any, cache: str | None = None, warm: int = 1) -> tuple[float, float]:
    args = bench.args
    inputs = bench.tokenizer.pad({"input_ids": bench.take(args.problems_per_step)}, return_tensors="pt")
    inputs = {name: value.repeat_interleave(args.samples, 0).to(bench.device) for name, value in inputs.items()}
    model.generation_config = GenerationConfig(  # of the model: `generate` fills in what is None from there
        max_new_tokens=args.limit,
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        eos_token_id=None,
        pad_token_id=bench.tokenizer.pad_token_id,
        cache_implementation=cache,
    )

    def call() -> None:
        written = model.generate(**inputs).shape[1] - inputs["input_ids"].shape[1]
        if written != args.limit:
            raise RuntimeError(f"generate wrote {written} tokens, not {args.limit}")

    if cache is None:  # nothing is compiled for any number of tokens, so a few make it ready
        model.generate(**inputs, max_new_tokens=8)
        return bench.seconds(call), 0.0
    return bench.clock(call, warm)


def by_static_generate(bench: Bench, model: Any) -> tuple[float, float]:
    try:
        return by_generate(bench, model, "static", warm=2)
    finally:
        torch.compiler.reset()


def whole(bench: Bench, sampler: Any, prompts: list[list[int]], limit: int) -> None:
    """One call whose sequences all have to reach the limit."""
    lengths = [len(each.ids) for each in sampler(prompts, Sampling(1.0, limit, bench.args.samples))]
    if lengths != [limit] * (len(prompts) * bench.args.samples):
        raise RuntimeError(f"{len(lengths)} sequences of {min(lengths)} to {max(lengths)} tokens, not all of {limit}")


def batches(bench: Bench, found: dict[str, dict[str, float]]) -> None:
    """The graph sampler at several sizes; the one of the comparison first."""
    rows: list[dict[str, Any]] = []
    with bench.attempt("speed: graph sampler"):
        model, bandwidth = bench.model(), copy_bandwidth(bench)
        bench.keep("speed", copy_bandwidth=bandwidth)
        for batch in dict.fromkeys([bench.sequences, *bench.args.batches]):
            with bench.attempt(f"speed: graph sampler, batch {batch}"):
                rows.append(at_batch(bench, model, batch, bandwidth))
                bench.keep("speed", batches=rows)
                if batch == bench.sequences:
                    found["graph sampler"] = {name: rows[-1][name] for name in ("ready s", "call s", "tokens/s")}
                    bench.keep("speed", contenders=found)
        print(f"a large copy moves {bandwidth / 1e12:.2f} TB/s")
        table(rows)


def at_batch(bench: Bench, model: Any, batch: int, bandwidth: float) -> dict[str, Any]:
    args = bench.args
    prompts = bench.take(max(1, batch // args.samples))
    started = time.perf_counter()
    sampler = GraphSampler(model, [], batch=batch)
    made_s = time.perf_counter() - started
    call_s, more_s = bench.clock(lambda: whole(bench, sampler, prompts, args.limit))
    steps = sampler.usage.steps
    read_s, _ = bench.clock(lambda: whole(bench, sampler, prompts, 1))
    step_s = (call_s - read_s) / (steps - sampler.usage.steps)
    shared, apart = bytes_of_a_step(model, prompts, args.samples, args.limit)
    if args.profile and batch == bench.sequences:
        with bench.attempt("speed: profile"):
            profile(bench, lambda: whole(bench, sampler, prompts, min(SHORT, args.limit)))
    return {
        "batch": batch,
        "ready s": made_s + more_s,
        "call s": call_s,
        "tokens/s": len(prompts) * args.samples * args.limit / call_s,
        "limit 1 s": read_s,
        "step ms": 1e3 * step_s,
        "MB a step, prompts shared": shared / 1e6,
        "share": shared / bandwidth / step_s,
        "MB a step, prompts apart": apart / 1e6,
        "share apart": apart / bandwidth / step_s,
    }


def bytes_of_a_step(model: Any, prompts: list[list[int]], samples: int, limit: int) -> tuple[float, float]:
    """(with prompts read once for all samples, once for each): the mean over the steps of a call, in bfloat16."""
    config = model.config
    weights = sum(parameter.numel() for parameter in model.parameters())  # a tied one comes once
    if not config.tie_word_embeddings:
        weights -= model.get_input_embeddings().weight.numel()  # of which a step reads a line for each row
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    token = 2 * config.num_hidden_layers * config.num_key_value_heads * width  # keys and values
    before = sum(map(len, prompts))
    own = len(prompts) * samples * limit / 2  # 1 token at the first step, limit - 1 at the last
    return 2.0 * (weights + token * (before + own)), 2.0 * (weights + token * (before * samples + own))


def copy_bandwidth(bench: Bench, size: int = 1 << 31, times: int = 20) -> float:
    """Bytes read and written a second."""
    if not bench.cuda:
        size, times = 1 << 26, 3
    source = torch.zeros(size, dtype=torch.uint8, device=bench.device)
    target = torch.zeros_like(source)

    def copies() -> None:
        for _ in range(times):
            target.copy_(source)

    return 2 * size * times / bench.clock(copies)[0]


def profile(bench: Bench, call: Callable[[], None]) -> None:
    """The kernels that a short call spends its time in."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    with profiler(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        wall_s = bench.seconds(call)
    kernels = [each for each in found.key_averages() if each.device_type == DeviceType.CUDA]
    kernels.sort(key=lambda each: -each.self_device_time_total)
    busy_s = sum(each.self_device_time_total for each in kernels) / 1e6
    print(f"profile: kernels {busy_s:.3f} s of {wall_s:.3f} s (slowed down by the profiler)")
    rows = list(lines(kernels[:15], busy_s))
    table(rows)
    bench.keep("speed", profile={"wall s": wall_s, "kernels s": busy_s, "top": rows})


def lines(kernels: list[Any], busy_s: float) -> Iterator[dict[str, Any]]:
    for each in kernels:
        ms = each.self_device_time_total / 1e3
        yield {"kernel": each.key[:80], "ms": ms, "share": ms / 1e3 / max(busy_s, 1e-9), "calls": each.count}
