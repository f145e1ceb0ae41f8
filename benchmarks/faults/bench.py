"""One kind of fault measured: planted, sent through the pipeline beside its controls, and counted."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from random import Random
from typing import Any

from benchmarks.faults.draw import drawn, look_alikes
from benchmarks.faults.run import Draw, Kind, Outcome, Runs
from microcoder.data.record import Record
from microcoder.schema import Problem

SPARE = {"verify": 1.1}  # so many more are planted than asked for, to replace what is set aside; else 1.25
Pair = tuple[Problem, Problem, Problem]  # the original, the control, the faulty one
Result = tuple[Pair, Outcome, Outcome, Outcome]  # what became of the faulty one, of its control, of its original


class Bench:
    def __init__(self, pools: dict[str, list[Problem]], runs: Runs, n: int, seed: int, half: str) -> None:
        self.pools, self.runs, self.n, self.seed, self.half = pools, runs, n, seed, half
        self.controls: dict[str, dict[str, Outcome]] = {}  # verifying costs time: kinds share what they compare with

    def measure(self, kind: Kind) -> dict[str, Any]:
        started = time.monotonic()
        wanted = min(self.n, kind.most)
        pairs = list(itertools.islice(self.pairs(kind), int(wanted * SPARE.get(kind.upto, 1.25))))
        if kind.line is not None:
            results = self.collected(kind, pairs)
        elif kind.meets:
            results = self.met(kind, pairs)
        else:
            results = self.apart(kind, pairs)
        counted, aside = [], 0
        for (original, control, _), planted, clean, own in results:
            right = kind.found(planted, clean, original.id)
            if not right and planted.reason and planted.reason == own.reason:
                aside += 1
            elif len(counted) < wanted:
                became = _became(kind, planted, clean.problem)
                counted.append((right, f"{original.id}: {became}", kind.alarm(clean, control), clean, control))
        return {
            "kind": kind.name, "n": len(counted), "aside": aside, "s": round(time.monotonic() - started, 1),
            "found": sum(right for right, *_ in counted), "false": sum(alarm for _, _, alarm, *_ in counted),
            "missed": [became for right, became, *_ in counted if not right],
            "alarms": [f"{before.id}: {_became(kind, clean, before)}" for *_, alarm, clean, before in counted if alarm],
            "right": kind.says(),
        }  # fmt: skip

    def pairs(self, kind: Kind) -> Iterator[Pair]:
        """Made of problems in the order of the draw, as far as they can have this fault."""
        key = f"{self.seed} {kind.name if kind.upto != 'verify' else kind.control.__name__}"
        for problem in drawn(self.pools, key, kind.among):
            control = Record(problem).copy().problem
            if kind.control(control, Draw(f"{key} {problem.id}")):
                faulty, draw = Record(control).copy().problem, Draw(f"{key} {kind.name} {problem.id}")
                draw.half = self.half
                if kind.plant(faulty, draw):
                    yield problem, control, faulty

    def apart(self, kind: Kind, pairs: list[Pair]) -> Iterator[Result]:
        """The faulty ones in one run, the controls in another."""
        known: dict[str, Outcome] = {}
        if kind.upto == "verify":
            known = self.controls.setdefault(f"{kind.control.__name__} {kind.settings}", known)
        known |= self.runs.outcomes(kind, [control for _, control, _ in pairs if control.id not in known])
        planted = self.runs.outcomes(kind, [faulty for *_, faulty in pairs])
        for pair in pairs:
            clean = known[pair[0].id]
            yield pair, planted[pair[0].id], clean, clean

    def met(self, kind: Kind, pairs: list[Pair]) -> Iterator[Result]:
        """The originals, and then their twins among as many controls: of all other problems, those most like them."""
        originals = [control for _, control, _ in pairs]
        controls = look_alikes(originals, self.pools)
        own = self.runs.outcomes(kind, originals)
        for _, _, faulty in pairs:
            faulty.id += "/twin"
        company = [faulty for *_, faulty in pairs] + controls
        Random(self.seed).shuffle(company)
        if kind.meets == "evaluation":
            found = self.runs.outcomes(kind, company, evaluation=originals)
        else:
            found = self.runs.outcomes(kind, originals + company)
        for (original, _, faulty), control in zip(pairs, controls, strict=True):
            yield (original, control, faulty), found[faulty.id], found[control.id], own[original.id]

    def collected(self, kind: Kind, pairs: list[Pair]) -> Iterator[Result]:
        assert kind.line is not None
        planted = self.runs.collected(kind, [kind.line(faulty, True) for *_, faulty in pairs])
        known = self.runs.collected(kind, [kind.line(control, False) for _, control, _ in pairs])
        for n, pair in enumerate(pairs, 1):
            yield pair, planted[str(n)], known[str(n)], known[str(n)]


def _became(kind: Kind, outcome: Outcome, other: Problem) -> str:
    """What to look at: the reason, or else the text, or where a repaired one begins to differ from the other."""
    text = outcome.problem.statement
    if outcome.reason:
        return f"{outcome.reason}: {outcome.detail}"[:160]
    if kind.repaired is None:
        return f"kept: {text[:60]!r} ... {text[-60:]!r}"
    ours, theirs = (str(kind.repaired(problem)) for problem in (outcome.problem, other))
    pairs = zip(f"{ours}\0", f"{theirs}\1", strict=False)
    same = max(0, next(n for n, (a, b) in enumerate(pairs) if a != b) - 20)
    return f"kept with {ours[same : same + 60]!r}, not {theirs[same : same + 60]!r}"
