"""Part "slots": responses of mixed lengths; a slot that has finished takes the next sequence in waiting.

All sequences in one call of the graph sampler against one call for each batch of as many as there are slots, where a
batch waits for its longest. The model ends its responses itself; with --random, 1 of 80 token ids is an end token.
`idle` is the share of slot-steps that stood empty while sequences were waiting; the target is 10% at most.
"""

from __future__ import annotations

import random
import statistics
from typing import Any

from benchmarks.sampling.bench import Bench, table
from microcoder.sampling import GraphSampler, Sampling

ENDS = 80  # one token id in so many ends a response of a random model
TARGET = 0.10
USAGE = ("steps", "slot_steps", "idle_slot_steps", "waiting_slot_steps")


def run(bench: Bench) -> None:
    args = bench.args
    model = bench.model()
    vocabulary = model.config.vocab_size
    ends = random.Random(0).sample(range(vocabulary), vocabulary // ENDS) if args.random else bench.ends(model)
    sampler = GraphSampler(model, ends, batch=args.slots)
    prompts = bench.take(args.sequences // args.samples)
    width = max(1, args.slots // args.samples)

    def refilled() -> list[int]:
        return lengths(sampler, prompts, args, 0)

    def batchwise() -> list[int]:
        parts = range(0, len(prompts), width)
        return [n for start in parts for n in lengths(sampler, prompts[start : start + width], args, start)]

    rows = []
    for name, call in (("with refill", refilled), ("batch by batch", batchwise)):
        call()  # what is made once is made here
        written: list[int] = []
        call_s = bench.seconds(lambda call=call, written=written: written.extend(call()))
        if len(written) != len(prompts) * args.samples:
            raise RuntimeError(f"{len(written)} responses, not {len(prompts) * args.samples}")
        usage = {field: getattr(sampler.usage, field) for field in USAGE} if name == "with refill" else {}
        waiting = usage.get("waiting_slot_steps")
        row = {
            "way": name,
            "sequences": len(written),
            "call s": call_s,
            "tokens/s": sum(written) / call_s,
            "length": statistics.fmean(written),
            "shortest": min(written),
            "longest": max(written),
            "at the limit": statistics.fmean(n == args.limit for n in written),
            "idle": usage["idle_slot_steps"] / waiting if waiting else None,
        }
        rows.append(row)
        bench.keep("slots", **{name: row | usage})
    rows[0]["x batch by batch"] = rows[0]["tokens/s"] / rows[1]["tokens/s"]
    bench.keep("slots", speedup=rows[0]["x batch by batch"])
    table(rows)
    if rows[0]["idle"] is not None:
        met = "met" if rows[0]["idle"] <= TARGET else "missed"
        print(f"idle slots: {rows[0]['idle']:.1%} of slot-steps while sequences waited (target {TARGET:.0%}: {met})")


def lengths(sampler: Any, prompts: list[list[int]], args: Any, seed: int) -> list[int]:
    sampling = Sampling(1.0, args.limit, args.samples, seed=seed)
    return [len(each.ids) for each in sampler(prompts, sampling)]
