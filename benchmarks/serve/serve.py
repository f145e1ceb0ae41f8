"""The service under load, over the loopback, beside the library on the same candidates in the same run.

    python -m benchmarks.serve [--seconds 600] [--clients 4] [--mix tiny|programs] [--json FILE]

The library is measured before and after the service, by the same loop: a process that keeps so many candidates under
way and knows each one's true verdict (right, wrong, crashing, not compiling, endless). The clients are processes of
their own. Memory is that of the service and all below it, by the minute. `tiny` is the harder mix for a service: its
programs cost little, so what HTTP costs weighs most. Exits with 1 when a verdict is lost or wrong, or memory grows.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import queue
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped,unused-ignore]

from benchmarks.shared import tiny, workload
from microcoder.judge.remote import open_judge
from microcoder.schema import Verdict

ROOM = (0.05, 8.0)  # that memory may grow, from its second sample on: a part of it, and megabytes


def candidates(mix: str, seed: int) -> Iterator[workload.Candidate]:
    """Without end, no two alike."""
    for part in itertools.count():
        if mix == "tiny":
            yield from tiny.stream(1000, seed, 1000 * part)
        else:
            yield from workload.candidates(200, seed + 1000 * part)


def load(on: str, workers: int, depth: int, mix: str, seed: int, seconds: float, out: Any) -> None:
    """Keep `depth` candidates under way for so long; what came back, and when."""
    done: queue.SimpleQueue[tuple[float, Future[Verdict]]] = queue.SimpleQueue()
    under_way: dict[Future[Verdict], tuple[workload.Candidate, float]] = {}
    latencies, wrong, inside = [], [], 0
    with open_judge({"on": on, "workers": workers, "queue": depth}) as judge:
        stream = candidates(mix, seed)
        judge.check((warm := next(stream)).problem, warm.solution)
        start = time.monotonic()
        while time.monotonic() < start + seconds or under_way:
            while len(under_way) < depth and time.monotonic() < start + seconds:
                candidate = next(stream)
                asked = time.monotonic()
                future = judge.submit(candidate.problem, candidate.solution)
                under_way[future] = candidate, asked
                future.add_done_callback(lambda f: done.put((time.monotonic(), f)))
            try:
                at, future = done.get(timeout=300)
            except queue.Empty:
                break  # what is still under way is lost
            candidate, asked = under_way.pop(future)
            latencies.append(at - asked)
            inside += at <= start + seconds
            verdict = future.result()
            if verdict.verdict != candidate.truth or verdict.id != candidate.id:
                wrong.append([candidate.id, candidate.truth, verdict.verdict, verdict.message[:200]])
    out.put({"verdicts": inside, "latencies": latencies, "wrong": wrong, "lost": len(under_way)})


def measured(
    on: str, clients: int, args: argparse.Namespace, seconds: float, watch: int | None = None
) -> dict[str, Any]:
    """`load` in so many processes; meanwhile, the memory of process `watch` and all below it."""
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    depth = max(1, 8 * args.workers // clients)
    given = [(on, args.workers, depth, args.mix, args.seed + n, seconds, out) for n in range(clients)]
    processes = [context.Process(target=load, args=one) for one in given]
    memory, parts = [], []
    for process in processes:
        process.start()
    began = time.monotonic()
    while len(parts) < clients:
        try:
            parts.append(out.get(timeout=5))
        except queue.Empty:
            if all(not process.is_alive() for process in processes):
                break
        if watch is not None and time.monotonic() - began > 60 * len(memory):
            memory.append(megabytes(watch))
    for process in processes:
        process.join()
    latencies = sorted(itertools.chain.from_iterable(part["latencies"] for part in parts))
    return {
        "rate": sum(part["verdicts"] for part in parts) / seconds,
        "verdicts": len(latencies),
        "p50_s": statistics.quantiles(latencies, n=100)[49],
        "p99_s": statistics.quantiles(latencies, n=100)[98],
        "lost": sum(part["lost"] for part in parts) + (clients - len(parts)),
        "wrong": [one for part in parts for one in part["wrong"]],
        "memory_mb": memory,
    }


def megabytes(pid: int) -> float:
    """Of the process and its descendants; one that ends while it is looked at counts as nothing."""
    total = 0.0
    for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
        try:
            total += process.memory_info().rss / 1e6
        except psutil.Error:
            continue
    return round(total, 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--library-seconds", type=float, help="before and after; a tenth of --seconds, at least 10")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--mix", choices=("tiny", "programs"), default="tiny")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    short = args.library_seconds or max(10.0, args.seconds / 10)
    command = [sys.executable, "-m", "microcoder.cli", "serve", "--port", "0", "--workers", str(args.workers)]
    before = measured("here", 1, args, short)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        said = re.search(r"http://\S+", service.stdout.readline())
        assert said is not None
        loaded = measured(said[0], args.clients, args, args.seconds, service.pid)
        service.terminate()
        ended = service.wait(60)
    after = measured("here", 1, args, short)
    ratio = 2 * loaded["rate"] / (before["rate"] + after["rate"])
    found = {"before": before, "service": loaded, "after": after, "ratio": ratio, "exit_status": ended, "mix": args.mix}
    print(f"{args.mix}: {args.clients} clients, {args.workers} workers, {args.seconds:g} s\n")
    print(f"{'':16}{'verdicts/s':>11}{'verdicts':>10}{'p50 ms':>8}{'p99 ms':>8}{'lost':>6}{'wrong':>6}")
    for name, row in (("library, before", before), ("service", loaded), ("library, after", after)):
        print(
            f"{name:16}{row['rate']:11.1f}{row['verdicts']:10}{1e3 * row['p50_s']:8.1f}{1e3 * row['p99_s']:8.1f}"
            f"{row['lost']:6}{len(row['wrong']):6}"
        )
    print(f"\nservice / library: {ratio:.3f}; memory by the minute, MB: {loaded['memory_mb']}; SIGTERM: exit {ended}")
    for one in loaded["wrong"][:10]:
        print("wrong:", *one)
    if args.json:
        args.json.write_text(json.dumps(found, indent=2))
    steady = [*loaded["memory_mb"][1:]] or [0.0]
    grew = steady[-1] > steady[0] * (1 + ROOM[0]) + ROOM[1]
    return 1 if grew or ended or loaded["lost"] or loaded["wrong"] else 0
