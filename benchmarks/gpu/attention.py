"""The attention of a decode step: microseconds and GB/s for blocks, warps, stages and splits.

    python -m benchmarks.gpu attention --shape 4b --rows 96 --context 4300 --json attention.json
    python -m benchmarks.gpu attention --shape 4b --rows 96 --context 4300 --spread --splits 1 2 4 8
    python -m benchmarks.gpu attention --shape 1.5b --rows 8 --context 1400

Random pages. With `--spread`, rows have from no tokens of their own up to twice as many as on average. GB/s counts the
keys and values that are read, once. `*` marks what the sampler takes for so many rows.
"""

from __future__ import annotations

import argparse
import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu.packed import SHAPES
from microcoder.sampling.plain import PAGE, Pools, Rows

BLOCKS, WARPS, STAGES = (32, 64), (1, 2, 4), (2, 3, 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="4b")
    parser.add_argument("--rows", type=int, default=96)
    parser.add_argument("--context", type=int, default=4300, help="tokens of a row; a tenth of them are its prompt")
    parser.add_argument("--spread", action="store_true", help="rows of all lengths, as when responses come and go")
    parser.add_argument("--sorted", action="store_true", help="of --spread: the longest rows first")
    parser.add_argument("--splits", type=int, nargs="*", default=[], help="powers of 2; else those of the sampler")
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--best", type=int, default=12, help="lines that are shown")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("this is measured on a CUDA GPU, and there is none")
    from microcoder.sampling import kernels

    call, bytes_read = prepared(args, kernels)
    longest = args.context * (2 if args.spread else 1)
    usual = kernels._splits(args.rows * SHAPES[args.shape]["num_key_value_heads"])
    ways = list(itertools.product(args.splits or kernels.SPLITS, itertools.product(BLOCKS, WARPS, STAGES)))
    with ThreadPoolExecutor(12) as threads:  # compilers take most of the time
        list(threads.map(lambda way: tried(call, *way), ways))
    found: list[dict[str, Any]] = []
    for splits, tuning in ways:
        if error := tried(call, splits, tuning):
            print(f"{splits} {tuning}: {error}")
            continue
        seconds = timed(lambda splits=splits, tuning=tuning: call(splits, tuning), args.repeat)
        row = dict(zip(("splits", "block", "warps", "stages"), (splits, *tuning), strict=True))
        mine = splits == usual and tuning == kernels._tuning(splits, longest, torch.device("cuda"))
        found.append({**row, "us": seconds * 1e6, "gb_s": bytes_read / seconds / 1e9, "taken": mine})
        if args.json:
            args.json.write_text(json.dumps({"rows": args.rows, "context": args.context, "found": found}, indent=1))
    words = "about " * args.spread
    print(f"{args.shape}, {args.rows} rows of {words}{args.context} tokens, {bytes_read / 1e6:,.0f} MB")
    print(f"{'splits':>7} {'block':>6} {'warps':>6} {'stages':>7} {'us':>9} {'GB/s':>8}")
    ordered = sorted(found, key=lambda row: row["us"])
    for row in [*ordered[: args.best], *(row for row in ordered[args.best :] if row["taken"])]:
        print(
            f"{row['splits']:7} {row['block']:6} {row['warps']:6} {row['stages']:7} {row['us']:9.1f} {row['gb_s']:8.0f}"
            f"{' *' * row['taken']}"
        )


def prepared(args: argparse.Namespace, kernels: Any) -> tuple[Any, float]:
    """(a call with splits and a tuning, the bytes that it reads)"""
    shape = SHAPES[args.shape]
    heads, kv_heads = shape["num_attention_heads"], shape["num_key_value_heads"]
    width = shape.get("head_dim") or shape["hidden_size"] // heads
    prompt = args.context // 10
    own = torch.full((args.rows,), args.context - prompt)
    if args.spread:
        own = torch.linspace(2 * (args.context - prompt), 0, args.rows).long()
        own = own if args.sorted else own[torch.randperm(args.rows)]
    pages = -(-prompt // PAGE), int(own.max()) // PAGE + 1
    make = {"device": "cuda"}
    count = args.rows * sum(pages)
    table = torch.randperm(count, **make).int().view(args.rows, -1)
    pools = Pools.of(torch.randn(count, 1, 2, kv_heads, PAGE, width, **make).bfloat16(), table)
    rows = Rows(torch.zeros(7, args.rows, dtype=torch.int64, **make))
    rows.prefix_length.fill_(prompt)
    rows.length.copy_(own)
    rows.slot.copy_(torch.arange(args.rows, **make))
    states = torch.randn(args.rows, 1, heads + 2 * kv_heads, width, **make).bfloat16().transpose(1, 2)
    q, k, v = states.split([heads, kv_heads, kv_heads], 1)
    angles = (torch.randn(args.rows, 1, width, **make),) * 2

    def call(splits: int, tuning: tuple[int, int, int]) -> None:
        kernels.attend(q, k, v, angles, pools, 0, rows, 0.1, splits, tuning)

    return call, 2.0 * 2 * (args.rows * prompt + int(own.sum())) * kv_heads * width


def tried(call: Any, splits: int, tuning: tuple[int, int, int]) -> str:
    """Why a way cannot be taken: more shared memory than there is, say."""
    try:
        call(splits, tuning)
    except Exception as error:
        return str(error).splitlines()[0][:80]
    return ""


def timed(call: Any, repeat: int) -> float:
    """Seconds of a call, in a graph, as decode steps are."""
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(10):
            call()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph.replay()
    begin.record()
    for _ in range(repeat):
        graph.replay()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1e4 / repeat


if __name__ == "__main__":
    main()
