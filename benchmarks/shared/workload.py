"""The benchmark's workload: 200 candidate programs over problems of our own, each with its true verdict, from a seed.

The truth is by construction, and `judge/floor.py` confirms all of it by running each program plainly before anything
is timed. All problems have a limit of 2 seconds, because the peers take one whole number for all.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass
from typing import Any

from benchmarks.shared import specs_function, specs_stdin, styles
from benchmarks.shared.spec import Spec
from microcoder.schema import Problem, Solution, Test

TIME_LIMIT_S = 2
MIX = {  # shares of the candidates; the rest is right
    "wrong early": 0.20,
    "wrong late": 0.15,
    "syntax": 0.05,
    "exception": 0.10,
    "loop": 0.03,
    "swallowing loop": 0.02,  # with the line above: 5% endless loops
    "heavy right": 0.04,
    "heavy wrong late": 0.01,
}
LOOPS = ("loop", "swallowing loop")
PRELUDE = "from typing import *\nimport collections, heapq, math, itertools, functools, bisect\n"


@dataclass(frozen=True)
class Candidate:
    id: str
    problem: Problem
    code: str
    group: str  # a key of MIX, or "right"
    truth: str  # the true verdict

    @property
    def solution(self) -> Solution:
        return Solution(problem_id=self.problem.id, code=self.code, id=self.id)


def problems(rng: random.Random) -> dict[str, tuple[Spec, Problem]]:
    """Every benchmark problem with its tests; the outputs come from its first right program."""
    made = {}
    for spec in [*specs_stdin.SPECS, *specs_function.SPECS]:
        inputs = spec.inputs(rng, rng.randint(10, 30))
        tests = [Test(text, output(spec, text)) for text in inputs]
        problem = Problem(
            id=spec.id,
            kind="stdin" if spec.kind == "stdin" else "function",
            statement=spec.statement,
            entry_point=spec.entry_point,
            tests=tests,
            time_limit_s=TIME_LIMIT_S,
        )
        made[spec.id] = (spec, problem)
    return made


def output(spec: Spec, text: str) -> str:
    """The right answer, by running our own program here."""
    scope: dict[str, Any] = {}
    usual = sys.getrecursionlimit()
    try:
        exec(PRELUDE + spec.right[0], scope)
        if spec.kind == "stdin":
            return "\n".join(scope["solve"](text.split("\n"))) + "\n"
        return json.dumps(entry(scope, spec.entry_point)(*json.loads(text)))
    finally:
        sys.setrecursionlimit(usual)  # a program that raised it must not help the ones that forget to


def entry(scope: dict[str, Any], entry_point: str) -> Any:
    first, _, method = entry_point.partition(".")
    return getattr(scope[first](), method) if method else scope[first]


def candidates(count: int = 200, seed: int = 0, loops: bool = True) -> list[Candidate]:
    """The workload. `loops=False` leaves the endless loops out and keeps the others as they are."""
    rng = random.Random(seed)
    known = problems(rng)
    groups = [group for group, share in MIX.items() for _ in range(round(share * count))]
    groups += ["right"] * (count - len(groups))
    rng.shuffle(groups)
    light = [pair for pair in known.values() if not pair[0].heavy]
    heavy = [pair for pair in known.values() if pair[0].heavy]
    made = []
    for number, group in enumerate(groups):
        spec, problem = rng.choice(heavy if group.startswith("heavy") else light)
        code, truth = program(rng, spec, group)
        made.append(Candidate(f"c{number:03d}", problem, f"# candidate {seed}-{number}\n{code}", group, truth))
    return [c for c in made if loops or c.group not in LOOPS]


def program(rng: random.Random, spec: Spec, group: str) -> tuple[str, str]:
    """A program of the group for the problem, and its true verdict."""
    group = group.removeprefix("heavy ")
    if group == "syntax":
        code, _ = program(rng, spec, "right")
        return broken(rng, code), "compile_error"
    if group in ("exception", *LOOPS):
        block = rng.choice({"exception": styles.CRASH, "loop": styles.LOOP, "swallowing loop": styles.SWALLOW}[group])
        truth = "runtime_error" if group == "exception" else "time_limit"
        if spec.kind == "function":
            return styles.function_program(spec.entry_point, block), truth
        body = styles.stdin_body(block)
    else:
        text = {"wrong early": spec.early, "wrong late": spec.late, "right": spec.right * 2 + spec.also_right}[group]
        truth = {"wrong early": "wrong_answer", "wrong late": spec.late_kind, "right": "accepted"}[group]
        body = rng.choice(text)
        if spec.kind == "function":
            return body.lstrip("\n"), truth
    shape = pick(rng, styles.SHAPE)
    if truth == "runtime_error" and shape == "thread":
        shape = "main"  # an exception in a thread prints a traceback and exits with 0: a wrong answer, not an error
    return styles.stdin_program(body, pick(rng, styles.READ), pick(rng, styles.WRITE), shape), truth


def pick(rng: random.Random, table: dict[str, tuple[int, str]]) -> str:
    return rng.choices(list(table), [weight for weight, _ in table.values()])[0]


def broken(rng: random.Random, code: str) -> str:
    """The program with one of the slips that models make: a lost colon or a closing bracket too many."""
    if rng.random() < 0.5:
        return code.replace(":\n", "\n", 1)
    return code.rstrip() + ")\n"


def peer_sample(problem: Problem) -> dict[str, Any]:
    """The problem as the peers want it: inputs, outputs and, for functions, fn_name with a JSON argument a line."""
    inputs = [t.input for t in problem.tests]
    sample: dict[str, Any] = {"inputs": inputs, "outputs": [t.output for t in problem.tests]}
    if problem.kind == "function":
        sample["inputs"] = ["\n".join(json.dumps(a) for a in json.loads(text)) for text in inputs]
        sample["fn_name"] = problem.entry_point.rpartition(".")[2]
    return sample
