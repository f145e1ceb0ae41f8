"""What judging on Ray costs: programs a second here and on nodes of one core, and the CPU time that Ray takes of both.

    python -m benchmarks.judge ray [--candidates N] [--instant N] [--repeat N] [--json FILE]

scaling   the same candidates with `Judge` on 1, 2, ... cores, and with `RayJudge` on as many nodes of one, by turns
calls     candidates without code, which cost the judge nothing: what the process that hands out and a node's actor use
on paper  cores of other machines: their rate by the time that a candidate takes of a core, and no more than one process
          can hand out to nodes of 16 cores. Nothing of this table was run.
All nodes are on this machine, so where all of its cores judge, Ray's own processes take their share of them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped,unused-ignore]

from benchmarks.shared import workload
from microcoder import Judge, Solution
from microcoder.judge.base import Judging
from microcoder.judge.pool import usable_cores
from microcoder.judge.remote.ray_judge import RayJudge

BIG = 16  # cores of a node on paper
PAPER = (16, 64, 256)


@contextmanager
def cluster(cores: list[int]) -> Iterator[str]:
    """The address of one with a node for each number."""
    from ray.cluster_utils import Cluster

    small = {"object_store_memory": 100 << 20, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
    try:
        for count in cores:
            made.add_node(num_cpus=count, **small)
        yield made.address
    finally:
        made.shutdown()


def rate(judge: Judging, pairs: list[Any], truths: dict[str, str]) -> float:
    """Candidates a second; every verdict must be the true one."""
    started = time.perf_counter()
    found = {solution.id: verdict.verdict for solution, verdict in judge.map(pairs)}
    took = time.perf_counter() - started
    wrong = {ident: said for ident, said in found.items() if said != truths[ident]}
    if wrong or len(found) != len(pairs):
        raise SystemExit(f"{len(found)} of {len(pairs)} verdicts, and these are wrong: {wrong}")
    return len(pairs) / took


def scaling(candidates: list[workload.Candidate], cores: int, repeat: int) -> list[dict[str, Any]]:
    pairs = [(candidate.problem, candidate.solution) for candidate in candidates]
    truths = {candidate.id: candidate.truth for candidate in candidates}
    rows = []
    for count in range(1, cores + 1):
        here, there = [], []
        with cluster([1] * count) as address, Judge(workers=count) as local, RayJudge(address) as far:
            assert far.workers == count
            for judge in (local, far):
                rate(judge, pairs[:20], truths)  # warm
            for _ in range(repeat):
                here.append(rate(local, pairs, truths))
                there.append(rate(far, pairs, truths))
        both = statistics.median(here), statistics.median(there)
        rows.append({"cores": count, "here_per_s": both[0], "ray_per_s": both[1], "ratio": both[1] / both[0]})
    return rows


def calls(cores: int, instant: int) -> dict[str, Any]:
    """CPU milliseconds for each candidate, here and in the actor of a node with so many workers."""
    problem = workload.candidates(1)[0].problem
    pairs = [(problem, Solution(problem.id, code="", id=str(n))) for n in range(instant)]
    truths = {solution.id: "no_code" for _, solution in pairs}
    with cluster([cores]) as address, RayJudge(address) as judge:
        rate(judge, pairs[:100], truths)
        [actor] = [each for each in psutil.process_iter() if ours(each)]
        before, here = actor.cpu_times(), time.process_time()
        per_s = rate(judge, pairs, truths)
        after, spent = actor.cpu_times(), time.process_time() - here
        used = after.user + after.system - before.user - before.system
    return {
        "node_cores": cores, "per_s": per_s,
        "hand_out_ms": 1000 * spent / instant, "actor_ms": 1000 * used / instant,
    }  # fmt: skip


def ours(process: Any) -> bool:
    """An actor of a cluster that this process has started."""
    try:
        return "NodeJudge" in " ".join(process.cmdline()) and os.getpid() in [each.pid for each in process.parents()]
    except psutil.Error:
        return False


def paper(one: float, big: dict[str, Any]) -> list[dict[str, Any]]:
    """From the rate of one core here, and what a node of many takes of both sides' CPU."""
    of_a_core, most = 1 / one + big["actor_ms"] / 1000, 1000 / big["hand_out_ms"]  # s, 1/s
    table = []
    for cores in PAPER:
        per_s = min(cores / of_a_core, most)
        table.append({"cores": cores, "handed_out_per_s": most, "per_s": per_s, "of_perfect": per_s / (cores * one)})
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=400)
    parser.add_argument("--instant", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        # a folder of its own keeps others' clusters apart; at Ray's own niceness of 15 the rows would not compare
        os.environ |= {"RAY_TMPDIR": folder, "RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0"}
        candidates = workload.candidates(options.candidates, loops=False)
        rows = scaling(candidates, usable_cores(), options.repeat)
        small, big = calls(1, options.instant // 4), calls(BIG, options.instant)
    table = paper(rows[0]["here_per_s"], big)
    print("| cores | here, programs/s | Ray, programs/s | ratio |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row['cores']} | {row['here_per_s']:.1f} | {row['ray_per_s']:.1f} | {row['ratio']:.3f} |")
    print("\n| node of | candidates/s without code | CPU ms to hand out | CPU ms of the actor |\n|---|---|---|---|")
    for row in (small, big):
        name = f"{row['node_cores']} core{'s' * (row['node_cores'] > 1)}"
        print(f"| {name} | {row['per_s']:,.0f} | {row['hand_out_ms']:.3f} | {row['actor_ms']:.3f} |")
    print("\n| cores, on paper | one process can hand out/s | programs/s | of perfect |\n|---|---|---|---|")
    for row in table:
        print(f"| {row['cores']} | {row['handed_out_per_s']:,.0f} | {row['per_s']:,.0f} | {row['of_perfect']:.0%} |")
    if options.json:
        machine = {"cores": usable_cores(), "arch": platform.machine(), "python": platform.python_version()}
        found = {"machine": machine, "scaling": rows, "calls": [small, big], "on_paper": table}
        options.json.write_text(json.dumps(found, indent=1) + "\n")
