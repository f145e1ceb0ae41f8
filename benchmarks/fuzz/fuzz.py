"""A fuzzer for the two places where the judge meets what others wrote: the result channel and HTTP.

    python -m benchmarks.fuzz channel --seconds 3600 --seed 1 [--workers 2] [--corpus DIR] [--json FILE]
    python -m benchmarks.fuzz http --seconds 3600 --seed 1

channel: what a program under test leaves behind. Forged results and hostile text go through the functions that judge
them, and programs made of hostile acts through the real sandbox, in every layer and way of running tests.
http: a `microcoder serve` of its own, hostile connections, and one honest client that measures how it fares.

A finding is a stall, an exception, an `internal_error`, a wrong verdict or growth. Each is looked for again, made as
small as it can be, and written to the corpus folder as a case that tests/judge/test_fuzz.py replays. Exits with 1
if there is one. It ends by itself, and on Ctrl-C, and leaves no process behind.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

from benchmarks.fuzz import boxes, channel, http
from benchmarks.fuzz.recipes import Case, Malformed, shrunk

SETTLE_S = 2.0  # until what earlier cases began has come to its end
SIMPLER = ("acts", "steps", "got", "expected", "compare", "input")  # the fields of a case that are made simpler
# how much more each may be from one quarter of the run to the next: a part of it, and so many
ROOM = {
    "MB": (0.03, 4.0),
    "below MB": (0.03, 8.0),
    "processes": (0.0, 1.0),
    "descriptors": (0.0, 2.0),
    "files": (0.0, 1.0),
}


class Runner(Protocol):
    """Draws cases and runs them, one after the other."""

    def draw(self, source: random.Random) -> Case: ...

    def run(self, case: Case) -> dict[str, Any]: ...

    def finding(self, case: Case, result: dict[str, Any]) -> tuple[str, str]: ...

    def held(self) -> dict[str, float] | None: ...

    def close(self) -> None: ...


@dataclass
class Tally:
    """What has been seen so far; threads share it."""

    cases: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, tuple[float, str]] = field(default_factory=dict)
    found: dict[str, dict[str, Any]] = field(default_factory=dict)  # by signature
    again: Counter[str] = field(default_factory=Counter)  # further cases of the same signature
    unsteady: list[str] = field(default_factory=list)  # seen once and not again
    held: list[dict[str, float]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    alone: threading.Lock = field(default_factory=threading.Lock)  # held by the thread that looks at a finding again
    under_way: int = 0  # cases

    def began(self) -> None:
        with self.alone, self.lock:
            self.under_way += 1

    def ended(self) -> None:
        with self.lock:
            self.under_way -= 1

    def note(self, case: Case, seconds: float) -> None:
        target = case["target"]
        with self.lock:
            self.cases[target] += 1
            if seconds > self.slowest.get(target, (-1.0, ""))[0]:
                self.slowest[target] = seconds, described(case)


class Channel:
    """A cell for what is compared in process and judges for whole programs, by turns of equal time."""

    def __init__(self) -> None:
        self.cell, self.boxes = channel.Cell(), boxes.Boxes()
        self.spent = {"cell": 0.0, "boxes": 0.0}

    def draw(self, source: random.Random) -> Case:
        turn = min(self.spent, key=lambda name: self.spent[name])
        return (channel if turn == "cell" else boxes).cases(source)

    def run(self, case: Case) -> dict[str, Any]:
        start, box = time.monotonic(), case["target"] == "box"
        try:
            found = self.boxes.run(case) if box else self.cell.run(case)
        finally:
            self.spent["boxes" if box else "cell"] += time.monotonic() - start
        if "malformed" in found:
            raise Malformed(found["malformed"])
        return found

    def finding(self, case: Case, result: dict[str, Any]) -> tuple[str, str]:
        return (boxes if case["target"] == "box" else channel).finding(case, result)

    def held(self) -> dict[str, float] | None:
        return self.boxes.held()

    def close(self) -> None:
        self.cell.close()
        self.boxes.close()


def described(case: Case) -> str:
    if case["target"] == "box":
        what = "; ".join(case["acts"]) or case["source"]
        return f"{case['layer']}{' reuse' if case['reuse'] else ''} {case['kind']} {what}"[:120]
    return f"{case['name']} {case.get('policy', '')} {case.get('assert', '')}".strip()


def signature(case: Case, kind: str, words: str) -> str:
    """Findings of one signature are taken for the same one."""
    if kind == "exception":
        about = words.partition(":")[0] + words.rpartition("(")[2]
    elif case["target"] == "http":
        about = case["name"].partition(",")[0] if kind == "stall" else words.strip().rpartition("\n")[2][:60]
    elif case["target"] == "box":
        about = words[:40] if kind != "stall" else case["acts"][-1][:20] if case["acts"] else case["source"]
    else:
        about = case["name"]
    return f"{case['target']} {kind} {about}"


def attempt(runner: Runner, case: Case) -> tuple[str, str]:
    """What is wrong with a case, if anything; a malformed one is right."""
    try:
        return runner.finding(case, runner.run(case))
    except Malformed:
        return "", ""


def work(
    make: Callable[[], Runner], seed: int, end: float, tally: Tally, corpus: Path | None, leave: threading.Event
) -> None:
    """One thread: case after case until the time is over."""
    runner, source = make(), random.Random(seed)
    sampled = time.monotonic()
    try:
        while time.monotonic() < end and not leave.is_set():
            case = runner.draw(source)
            tally.began()
            start = time.monotonic()
            try:
                result = runner.run(case)
                kind, words = runner.finding(case, result)
            except Malformed:
                continue
            finally:
                tally.ended()
            tally.note(case, result.get("cpu_s", time.monotonic() - start))
            if kind:
                report(runner, case, kind, words, tally, corpus)
            if time.monotonic() - sampled > 2.0 and (held := runner.held()) is not None:
                sampled = time.monotonic()
                with tally.lock:
                    tally.held.append(held)
    except Exception as error:  # a fuzzer that stops looking has found nothing for the wrong reason
        tally.found["the fuzzer"] = {"kind": "fuzzer", "words": f"{type(error).__name__}: {error}", "case": {}}
        raise
    finally:
        runner.close()


def report(runner: Runner, case: Case, kind: str, words: str, tally: Tally, corpus: Path | None) -> None:
    """Confirm a finding, make it small and write it down; one of a signature is enough."""
    name = signature(case, kind, words)
    with tally.alone:
        tally.again[name] += 1
        if tally.again[name] > 1:
            return
        while tally.under_way:  # what others do, and did just now, must not be taken for this case's doing
            time.sleep(0.01)
        time.sleep(SETTLE_S)
        if not all(
            attempt(runner, case)[0] == kind for _ in range(2)
        ):  # a busy machine is late at times, a hole always
            tally.unsteady.append(f"{name}: {words}")
            return
        small = shrunk(case, SIMPLER, lambda one: attempt(runner, one)[0] == kind)
        words = attempt(runner, small)[1] or words
        tally.found[name] = {"kind": kind, "words": words, "case": small}
    print(f"FOUND {name}: {words}\n      {json.dumps(small)[:600]}", flush=True)
    if corpus is not None:
        corpus.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(json.dumps(small, sort_keys=True).encode()).hexdigest()[:8]
        file = corpus / f"{small['target']}_{kind.replace(' ', '_')}_{digest}.json"
        file.write_text(json.dumps({"found": f"{kind}: {words}", **small}, indent=1) + "\n")


def growth(rows: list[dict[str, float]]) -> dict[str, tuple[list[float], bool]]:
    """The least of each figure in the last three quarters, and whether it grew from each to the next.

    The least, since that is what is held at rest; from each to the next, since one step is no leak.
    """
    quarter = len(rows) // 4
    if quarter < 2:
        return {}
    parts = [rows[n * quarter : (n + 1) * quarter] for n in (1, 2, 3)]
    found = {}
    for name, (part, more) in ROOM.items():
        if name in rows[0]:
            least = [min(row[name] for row in rows) for rows in parts]
            found[name] = least, all(b > a * (1 + part) + more for a, b in pairwise(least))
    return found


def table(tally: Tally, elapsed: float) -> str:
    lines = [f"{'target':8}{'cases':>9}{'cases/s':>9}{'slowest s':>11}  the slowest case"]
    for target in sorted(tally.cases):
        slowest, words = tally.slowest[target]
        lines.append(f"{target:8}{tally.cases[target]:9}{tally.cases[target] / elapsed:9.1f}{slowest:11.2f}  {words}")
    lines.append(
        f"\nfindings: {len(tally.found)}; by kind: {dict(Counter(one['kind'] for one in tally.found.values()))}"
    )
    lines += [f"  {name} (seen {tally.again[name]} times): {one['words'][:160]}" for name, one in tally.found.items()]
    lines += [f"  seen once, not again: {one[:200]}" for one in tally.unsteady]
    lines += tally.notes
    for name, (least, grew) in growth(tally.held).items():
        lines.append(f"{name:12}{' '.join(f'{one:8.1f}' for one in least)}{'  GREW' if grew else ''}")
    return "\n".join(lines)


def fuzzed(target: str, seconds: float, seed: int, workers: int = 1, corpus: Path | None = None) -> Tally:
    """Run a target for so long."""
    tally, leave = Tally(), threading.Event()
    service = http.Service() if target == "http" else None
    end = time.monotonic() + seconds
    try:
        make: Callable[[], Runner] = Channel if service is None else lambda: http.Caller(service)
        threads = [
            threading.Thread(target=work, args=(make, seed * 1000 + n, end, tally, corpus, leave))
            for n in range(workers)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            leave.set()
            for thread in threads:
                thread.join()
    finally:
        if service is not None:
            tally.notes.append(service.fared())
            for kind, words in service.close():
                tally.found[f"http {kind}"] = {"kind": kind, "words": words, "case": {"target": "http"}}
    for name, (least, grew) in growth(tally.held).items():
        if grew:
            tally.found[f"growth of {name}"] = {"kind": "growth", "words": f"of {name}: {least}", "case": {}}
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=("channel", "http"))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="where findings are written, one file each")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    start = time.monotonic()
    tally = fuzzed(args.target, args.seconds, args.seed, args.workers, args.corpus)
    elapsed = time.monotonic() - start
    print(f"\n{args.target}, seed {args.seed}, {args.workers} workers, {elapsed:.0f} s\n{table(tally, elapsed)}")
    if args.json:
        record = {
            "target": args.target, "seed": args.seed, "seconds": elapsed, "cases": tally.cases, "notes": tally.notes,
            "slowest": tally.slowest, "findings": list(tally.found.values()), "unsteady": tally.unsteady,
            "growth": growth(tally.held),
        }  # fmt: skip
        args.json.write_text(json.dumps(record, indent=1) + "\n")
    return 1 if tally.found else 0
