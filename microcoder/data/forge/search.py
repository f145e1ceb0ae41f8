"""The search: inputs are kept for what they kill.

    rivals     wrong programs: mutants of the reference, typical mistakes, adversaries that others wrote
    waves      inputs are drawn in waves, small ones first; the references label them, all rivals that live run on them
    reduction  a small set that kills as much (finds.py)

A rival that differs from the references on an input is killed by it. One that never does may be right: no test can
tell, and none needs to.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

from ...judge.languages import is_cpp
from ...schema import Problem
from ..verify.mutations import mutants
from ..verify.programs import independent
from .answers import ONE, Rule, harmless, reconciled, usable
from .borders import borders
from .examples import plain_value
from .finds import SMALL, Climb, Find
from .label import FAILS, LONG, SLOW, Dissent, in_c, labelled
from .mistakes import mistakes
from .run import Behaviour, ProgramRunner, asks_checker, checks_of, differs, value_of
from .space import Calls, Candidate, Space

SHORTEST_S, LONGEST_S = 0.04, 0.4  # CPU seconds that a rival has, at least and at most
TIMES = 10  # as long as the reference takes; a rival that takes longer is taken for endless
COMPILED = 150  # answers of a wave that a checker in C++ is asked for: a few milliseconds each
WITNESSES = 2  # adversaries that it takes to leave an input out
TRIES = 12  # draws of a large input
SHORT = 200  # characters of an input of size 0.7 that has no long lists
BORDERS = 4  # times that inputs next to a change of the answer are looked for
FEWEST = 9  # mutants, however slow the reference is
LARGE = "the input is large"
TOO_MUCH = (LARGE, SLOW, LONG, FAILS)  # why an input at the limits is left out, and a smaller one tried


@dataclass(slots=True)
class Rival:
    """A program that the tests should refuse."""

    name: str  # "mutant 3", "adversary 1a2b3c"
    code: str
    what: str = ""  # the change, for a mutant
    made: bool = True  # wrong for sure, or made by us; else an adversary, which may be right
    soft: int = 0  # inputs on which an adversary differs from the references in nothing but order or rounding
    alive: bool = True  # no input has killed it so far
    counted: bool = False  # one of the mutants that `verify` measures strength by
    silent: bool = False  # it does not run at all: no rival
    endless: bool = False  # it loops on some input: killed, and too dear to be run again


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is spent on a problem."""

    tests: int = 30  # the most that are added
    mutants: int = 72  # of each reference that are searched with; a third of them typical mistakes
    candidates: int = 240  # inputs that are tried
    wave: int = 48
    seconds: float = 4.0  # CPU seconds of the search
    slowest_s: float = 1.0  # CPU seconds that a reference may take for an input
    test_kb: int = 256  # the largest input that is kept
    answer_kb: int = 32  # the longest answer that is kept
    large: int = 2  # tests at the limits, for time
    seed: int = 0

    def for_slow(self, cpu_s: float) -> Effort:
        """With fewer mutants where a reference takes so many CPU seconds for a test: a mutant may take far more."""
        most = int(4 * self.seconds / max(cpu_s, 0.001))
        return replace(self, mutants=min(self.mutants, max(FEWEST, most)))

    def within(self, limit_s: float) -> Effort:
        """With inputs that take a reference no more than half of the problem's time limit."""
        return replace(self, slowest_s=min(self.slowest_s, limit_s / 2))


def rivals_of(problem: Problem, reference: str, adversaries: Iterable[tuple[str, str]], effort: Effort) -> list[Rival]:
    """Mutants and typical mistakes of the reference, and the adversaries (name, code)."""
    about: dict[str, Any] = {"entry_point": problem.entry_point, "prints": problem.kind == "stdin"}
    third = effort.mutants // 3
    found = mutants(reference, most=effort.mutants - third, **about)
    made = [*found, *mistakes(reference, most=third, **about)]
    seen = {reference}
    out: list[Rival] = []
    for n, mutant in enumerate(made):
        if mutant.code not in seen:
            seen.add(mutant.code)
            out.append(Rival(f"mutant {n}", mutant.code, str(mutant), counted=n < min(24, len(found))))
    for name, code in adversaries:
        if code not in seen:
            seen.add(code)
            out.append(Rival(f"adversary {name}", code, made=name.startswith("solution ")))
    return out


class Search:
    """The search for one problem."""

    def __init__(
        self,
        problem: Problem,
        space: Space,
        references: Sequence[str],
        rivals: list[Rival],
        runner: ProgramRunner,
        effort: Effort,
        by: Rule = ONE,
    ) -> None:
        self.problem, self.space, self.references = problem, space, list(references)
        self.rivals, self.runner, self.effort, self.by = rivals, runner, effort, by
        self.harmless = harmless(problem) if by is ONE else frozenset()
        self.rng = random.Random(f"{effort.seed} {problem.id}")
        self.finds: list[Find] = []
        self.seen: set[str] = set(getattr(space, "tried", ()))
        self.left_out: Counter[str] = Counter()
        self.dissent = Dissent()  # of references
        self.began = runner.spent_s

    def run(self) -> list[Find]:
        """All inputs that were labelled, with what they kill."""
        tried, idle = 0, 0
        while tried < self.effort.candidates and idle < 2 and not (tried and self.spent):
            wave = self.drawn(first=tried == 0)
            if not wave:
                break
            tried += len(wave)
            before = sum(rival.alive for rival in self.rivals)
            self.wave(wave, everyone=tried == len(wave))
            idle = 0 if sum(rival.alive for rival in self.rivals) < before else idle + 1
        if self.problem.kind == "stdin" and any(rival.alive for rival in self.rivals) and not self.spent:
            self.at_borders()
        if any(not find.old for find in self.finds):  # references that answer no small input need no large ones
            self.at_the_limits()
        return self.finds

    def examples(self) -> None:
        """Run all rivals on the tests that the problem came with."""
        old = [Candidate(test.input, "example", n) for n, test in enumerate(self.problem.tests)]
        self.wave(old, old=True)

    @property
    def spent(self) -> bool:
        return self.runner.spent_s - self.began > self.effort.seconds

    # --- inputs

    def drawn(self, first: bool) -> list[Candidate]:
        """The inputs of a wave: very small ones and small changes of known ones in the first, larger ones later."""
        out: list[Candidate] = []
        killers = [find for find in self.finds if find.kills] or self.finds
        known = [find.candidate.input for find in (self.finds if first else killers)]
        known = [given for given in known if len(given) <= SMALL] or [""]
        for n in range(2 * self.effort.wave):
            if len(out) >= self.effort.wave:
                break
            turn = n % 8
            if turn < 3 and known[0]:
                made = self.space.near(self.rng.choice(known), self.rng)
            elif turn < 5:
                made = self.space.draw(self.rng, 0.0 if first else self.rng.uniform(0, 0.1))
            else:
                made = self.space.draw(self.rng, self.rng.uniform(0.05, 0.3 if turn < 7 else self.reach))
            if made is not None and made.input not in self.seen and len(made.input) <= SMALL:
                self.seen.add(made.input)
                out.append(made)
        return out

    def at_borders(self) -> None:
        """Inputs next to a change of the answer, for the rivals that live."""
        for _ in range(BORDERS):
            short = [find for find in self.finds if len(find.candidate.input) <= SHORT]
            known = [(find.candidate.input, find.label.reply.answer) for find in short]
            found = borders(known, self.answers, lambda given: not self.space.fault(given), self.rng)
            new = [Candidate(given, "border", n) for n, given in enumerate(found) if given not in self.seen]
            if not new or self.spent or not any(rival.alive for rival in self.rivals):
                break
            self.wave(new)

    def answers(self, inputs: list[str]) -> list[str | None]:
        """What the first reference answers to inputs."""
        (row,) = self.runner.run(self.problem, self.references[:1], inputs, limit_s=LONGEST_S, every=True)
        return [reply.answer if reply.status == "ok" else None for reply in row]

    @cached_property
    def reach(self) -> float:
        """The largest size of an input that rivals run on: 1 where inputs are short, such as a few numbers."""
        tried = self.space.draw(random.Random(0), 0.7)
        return 1.0 if tried is not None and len(tried.input) <= SHORT else 0.5

    def at_the_limits(self) -> None:
        """A few inputs as large as the constraints, `test_kb` and the references allow; no rival runs on them.

        A size is a power: an input's length and the seconds that a reference takes grow by factors with it. So two
        sizes tell how far to go, and few inputs are drawn that take a reference too long.
        """
        longest_s, wanted, started = self.longest_s, self.effort.large, time.monotonic()
        climb = Climb(self.effort.test_kb << 10, longest_s)
        for _ in range(TRIES if wanted else 0):
            if climb.done(wanted) or time.monotonic() - started > self.effort.seconds:
                break
            began = time.thread_time()
            made = self.space.draw(self.rng, climb.size)
            draw_s = time.thread_time() - began
            if made is None or made.input in self.seen:
                continue
            self.seen.add(made.input)
            before = sum(self.left_out[reason] for reason in TOO_MUCH)
            if len(made.input) > self.effort.test_kb << 10:
                self.left_out[LARGE] += 1
            elif finds := self.label([made], longest_s=longest_s):
                climb.went_well(finds[0], draw_s)
            if sum(self.left_out[reason] for reason in TOO_MUCH) > before:
                climb.went_too_far()
        for find in climb.top:
            find.limit = True

    @property
    def longest_s(self) -> float:
        """CPU seconds that a reference may take at the limits: few where it leaves the work to a package in C, since a
        right program in plain Python takes many times as long."""
        return self.effort.slowest_s / (20 if in_c(self.references) else 1)

    def asked(self, candidate: Candidate) -> str:
        """What a program is asked: the input, or the call of a function as the asserts have it."""
        if self.problem.kind == "assert" and isinstance(self.space, Calls):
            return self.space.call(candidate.input)
        return candidate.input

    # --- waves

    def label(self, wave: list[Candidate], old: bool = False, longest_s: float = 0.0) -> list[Find]:
        """Let the references answer; what they agree on is a find."""
        inputs = [self.asked(candidate) for candidate in wave]
        replies = self.runner.run(
            self.problem, self.references, inputs, limit_s=longest_s or self.effort.slowest_s, base=True, every=True,
            most=max(self.effort.answer_kb, self.effort.test_kb // 2 if longest_s else 0) << 10,
        )  # fmt: skip
        left_out = Counter[str]() if old else self.left_out
        labels = labelled(self.problem, replies, inputs, left_out, self.dissent, self.accepted)
        made = [
            Find(candidate, label, size=self.space.size_of(candidate.input), old=old)
            for candidate, label in zip(wave, labels, strict=True)
            if label is not None and usable(self.by, label.output)
        ]
        open_ = sum(label is not None for label in labels) - len(made)
        if open_ and not old:
            self.left_out["several answers are right"] += open_
        self.finds += made
        return made

    def wave(self, wave: list[Candidate], old: bool = False, everyone: bool = False) -> None:
        """Label the inputs and run rivals on them: those that live, or all of them."""
        self.seen |= {candidate.input for candidate in wave}
        finds = self.label(wave, old) if wave else []
        wanted = [
            n
            for n, rival in enumerate(self.rivals)
            if (rival.alive or everyone) and not rival.silent and not rival.endless
        ]
        finds = self.affordable(finds, len(wanted))
        if not finds or not wanted:
            return
        dearest = max(find.label.cpu_s for find in finds)
        limit = max(SHORTEST_S, 3 * dearest, min(LONGEST_S, TIMES * dearest))
        inputs = [self.asked(find.candidate) for find in finds]
        programs = [self.references[0], *(self.rivals[n].code for n in wanted)]
        replies = self.runner.run(
            self.problem, programs, inputs, limit_s=limit, base=True, most=2 * self.effort.answer_kb << 10,
            program_s=max(limit, 4 * sum(find.label.cpu_s for find in finds)),
        )  # fmt: skip
        killed = self.killed(finds, replies[1:])
        for n, row, kills in zip(wanted, replies[1:], killed, strict=True):
            if row[0].status == "compile":
                self.rivals[n].silent = True
                continue
            self.rivals[n].endless |= any(reply.status in ("late", "crash", "memory") for reply in row)
            soft = set() if old or self.rivals[n].made else self.softly(finds, row, kills)
            self.rivals[n].soft += len(soft)
            self.rivals[n].alive &= kills <= soft
            for m in kills:
                finds[m].kills.add(n)

    def affordable(self, finds: list[Find], rivals: int) -> list[Find]:
        """The inputs that so many rivals can run on in a third of the time that the search has."""
        left = self.effort.seconds / 3 / max(1, rivals)
        out: list[Find] = []
        for find in sorted(finds, key=lambda find: find.label.cpu_s):
            left -= find.label.cpu_s
            if left < 0 and len(out) >= 2:
                break
            out.append(find)
        return out

    def killed(self, finds: list[Find], replies: list[list[Behaviour]]) -> list[set[int]]:
        """For each rival, the inputs that kill it."""
        checks = checks_of(self.problem, [(find.label.input, find.label.output) for find in finds])
        out: list[set[int]] = []
        doubtful: list[tuple[int, int]] = []
        for p, row in enumerate(replies):
            kills = {m for m, reply in enumerate(row) if reply.status not in ("ok", "same", "unknown")}
            for m, reply in enumerate(row):
                if reply.status == "ok" and differs(checks[m], reply):
                    (doubtful.append((p, m)) if asks_checker(self.problem) else kills.add(m))
            out.append(kills)
        for p, m in self.refused(finds, replies, doubtful) if doubtful else ():
            out[p].add(m)
        return out

    def refused(
        self, finds: list[Find], replies: list[list[Behaviour]], doubtful: list[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        """Of these (rival, input) those whose answer the checker refuses. It is asked once for an answer to an input.

        A checker in C++ is asked for a limited number: for the first input of each rival, then for the second.
        """
        turns: Counter[int] = Counter()
        ranked = []
        for p, m in doubtful:
            ranked.append((turns[p], p, m))
            turns[p] += 1
        asked: dict[tuple[int, str], list[int]] = {}
        for _, p, m in sorted(ranked):
            asked.setdefault((m, replies[p][m].answer), []).append(p)
        if is_cpp(self.problem.compare.checker or ""):
            asked = dict(islice(asked.items(), COMPILED))
        cases = [
            self.case(finds[m].candidate.input, replies[rivals[0]][m], finds[m].label.reply)
            for (m, _), rivals in asked.items()
        ]
        said = self.runner.checked(self.problem, cases)
        return [
            (p, m)
            for ((m, _), rivals), accepted in zip(asked.items(), said, strict=True)
            if accepted is False
            for p in rivals
        ]

    def accepted(self, given: str, answers: Sequence[Behaviour], expected: Behaviour) -> list[bool | None]:
        """What the checker says of answers to an input."""
        return self.runner.checked(self.problem, [self.case(given, answer, expected) for answer in answers])

    def case(self, given: str, answer: Behaviour, expected: Behaviour) -> tuple[Any, Any, Any]:
        """What a checker is given, as values."""
        stdin = self.problem.kind == "stdin"
        return given if stdin else plain_value(given), value_of(self.problem, answer), value_of(self.problem, expected)

    # --- adversaries that may be right

    def softly(self, finds: list[Find], row: list[Behaviour], kills: set[int]) -> set[int]:
        """The inputs on which an answer differs from the references' in what the statement leaves open, if any."""
        return {
            m
            for m in kills
            if self.harmless
            and row[m].status == "ok"
            and reconciled([value_of(self.problem, reply) for reply in (finds[m].label.reply, row[m])]) in self.harmless
        }

    def undisputed(self, finds: list[Find], lived: Container[str]) -> list[Find]:
        """The finds without those for which adversaries show another answer that may be right.

        One adversary shows nothing: it may be wrong. But where two that pass the old tests (`lived`) never differ from
        the references in anything but order or rounding, and the statement demands neither, their inputs are left out.
        The comparison stays as it is: no adversary makes a test laxer.
        """
        rivals = [rival for rival in self.rivals if rival.alive and rival.soft and rival.name in lived]
        codes = [one["code"] for one in independent([{"code": rival.code} for rival in rivals])]
        if len(codes) < WITNESSES or not finds:
            return finds
        inputs = [self.asked(find.candidate) for find in finds]
        replies = self.runner.run(
            self.problem, [self.references[0], *codes], inputs, limit_s=TIMES * self.effort.slowest_s, base=True,
            every=True, most=2 * self.effort.answer_kb << 10,
        )[1:]  # fmt: skip
        open_ = {
            m
            for row, kills in zip(replies, self.killed(finds, replies), strict=True)
            for m in self.softly(finds, row, kills)
        }
        self.left_out["programs that may be right differ in order or rounding"] += len(open_)
        return [find for m, find in enumerate(finds) if m not in open_]
