"""Generators and validators that a language model writes, if there is an endpoint. Never needed.

    generate(rng, size)   makes an input; size 0 is the smallest, 1 is as large as the constraints allow
    valid(input)          whether an input keeps to the constraints

Both run in the judge's sandbox, never here. Their inputs are candidates like others, under two conditions: `valid`
accepts them, and the problem's own space, where there is one, finds no fault in them. A problem without a space of its
own is bounded by the model alone ("llm"), so its validator must accept the inputs of all tests there are, and refuse
inputs that are surely wrong. Answers of an endpoint are kept on disk, so a second run asks nothing twice.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Sequence
from typing import Any

from ...judge.extract import code_block
from ...schema import Problem, Test
from ..endpoint import Asks, EndpointError, NoAnswer
from .run import ProgramRunner, value_of
from .space import Calls, Candidate, Space

DRAWS = 64  # inputs that a model's generator is asked for
SIZES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
LIMIT_S = 1.0  # CPU seconds of a call
SHOWN = 600  # characters of an input that the model is shown
LONGEST = 100_000  # characters of an input that a model's generator may make
FAILURES = 3  # in a row, after which an endpoint is not asked again
QUESTION = """\
Write Python that makes test inputs for the problem below: one fenced block with two functions, for Python's standard
library alone.

generate(rng, size): an input that the problem allows, drawn with rng (a random.Random). size is a float from 0 (the
smallest inputs) to 1 (as large as the constraints allow, but at most {most:,} characters). Vary the structure:
extremes, ties, duplicates, sorted and unsorted values, and whatever a wrong program may stumble over.
valid(input): True if an input keeps to every constraint and guarantee of the problem, else False.

An input is {form}.

{statement}

Inputs of tests that the problem came with:
{shown}
"""
DRAW = """

def microcoder_draw(seed, size):
    import random
    return generate(random.Random(seed), size)


def microcoder_valid(given):
    return valid(given) is True
"""


class NotWritten(Exception):
    """A language model's code cannot be used; the message is one of a few, for counting."""


class Author:
    """A language model that writes generators. Threads may share it."""

    def __init__(self, endpoint: Asks, most: int) -> None:
        self.endpoint, self.most = endpoint, most  # characters of an input
        self.failures, self.lock = 0, threading.Lock()

    def space(self, problem: Problem, own: Space | None, runner: ProgramRunner, seed: int = 0) -> WrittenSpace:
        """The problem's own space with the inputs of the model. Raise NotWritten with the reason why there are none."""
        if own is None and (problem.kind == "assert" or not problem.tests):
            raise NotWritten("there is no test to hold its validator against")
        code = self.ask(problem) + DRAW
        caller = Caller(problem, code, runner, self.most)
        if own is None:
            caller.confirm()
        drawn = caller.inputs([[seed + n, SIZES[n % len(SIZES)]] for n in range(DRAWS)])
        found = [given for given in drawn if own is None or not own.fault(given)]
        if not found:
            raise NotWritten("none of its inputs can be used")
        return WrittenSpace(own, problem, found)

    def ask(self, problem: Problem) -> str:
        """The program that the model writes."""
        if self.failures >= FAILURES:
            raise NotWritten("the endpoint failed before, and is not asked again")
        stdin = problem.kind == "stdin"
        form = "the text of standard input, a str" if stdin else f"the list of the arguments of {problem.entry_point}"
        shown = [test.input if stdin else json.dumps(_arguments(test)) for test in problem.tests[:3]]
        question = QUESTION.format(
            most=self.most, form=form, statement=f"{problem.statement}\n\n{problem.starter_code}".strip(),
            shown="\n".join(text[:SHOWN] for text in shown or problem.asserts[:3]),
        )  # fmt: skip
        try:
            answer = self.endpoint.ask([{"role": "user", "content": question}], key="forge")
        except NoAnswer:
            raise NotWritten("it gives no answer") from None
        except EndpointError:
            with self.lock:
                self.failures += 1
            raise NotWritten("the endpoint fails") from None
        self.failures = 0
        code = code_block(answer, "python")
        if code is None or "def generate" not in code or "def valid" not in code:
            raise NotWritten("its answer holds no generate and valid")
        return code


class Caller:
    """Calls a model's functions in the sandbox."""

    def __init__(self, problem: Problem, code: str, runner: ProgramRunner, most: int) -> None:
        self.problem, self.code, self.runner, self.most = problem, code, runner, most

    def answers(self, name: str, calls: Sequence[list[Any]]) -> list[Any]:
        """What a function returns for each list of arguments; None where it fails, is slow or answers at length."""
        asked = Problem(
            self.problem.id, "function", entry_point=name, starter_code=f"def {name}(*given) -> object: ..."
        )
        rows = self.runner.run(
            asked, [self.code], [json.dumps(call) for call in calls], limit_s=LIMIT_S, every=True, most=2 * self.most
        )
        return [value_of(asked, reply) if reply.status == "ok" else None for reply in rows[0]]

    def inputs(self, draws: Sequence[list[Any]]) -> list[str]:
        """The inputs that the generator makes and the validator accepts, each once, as in Test.input."""
        made = [value for value in self.answers("microcoder_draw", draws) if self.fits(value)]
        accepted = self.answers("microcoder_valid", [[value] for value in made]) if made else []
        written = [
            value if isinstance(value, str) else json.dumps(value)
            for value, good in zip(made, accepted, strict=True)
            if good is True
        ]
        return [text for text in dict.fromkeys(written) if len(text) <= self.most]

    def fits(self, value: Any) -> bool:
        """Whether a value has the form of the problem's inputs."""
        if self.problem.kind == "stdin":
            return isinstance(value, str) and bool(value.strip())
        arguments = {len(_arguments(test)) for test in self.problem.tests}
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            return False
        return isinstance(value, list) and (not arguments or arguments == {len(value)})

    def confirm(self) -> None:
        """Raise NotWritten unless the validator accepts all tests there are and refuses what is surely wrong."""
        stdin = self.problem.kind == "stdin"
        short = [test for test in self.problem.tests if len(test.input) <= self.most]
        known: list[Any] = [test.input if stdin else _arguments(test) for test in short]
        if not known or not all(good is True for good in self.answers("microcoder_valid", [[one] for one in known])):
            raise NotWritten("its validator refuses a test that the problem came with")
        wrong = _wrong_texts(known[0]) if stdin else _wrong_calls(known[0])
        verdicts = self.answers("microcoder_valid", [[one] for one in wrong])
        if not wrong or all(good is True for good in verdicts):
            raise NotWritten("its validator refuses nothing")


def _arguments(test: Test) -> list[Any]:
    """The arguments of a function's test. Raise NotWritten where they are named, or no JSON."""
    try:
        found = json.loads(test.input)
    except ValueError:
        found = None
    if not isinstance(found, list):
        raise NotWritten("the arguments of its tests are no JSON list")
    return found


def _wrong_calls(call: list[Any]) -> list[list[Any]]:
    """Calls that hardly any problem allows: numbers beyond all limits, and nothing where there was something."""
    out = []
    for n, argument in enumerate(call):
        others: list[Any] = [-(10**20), 10**20] if isinstance(argument, (int, float)) else []
        if isinstance(argument, (str, list)):
            others = [argument[:0], "\x00" if isinstance(argument, str) else [-(10**20), 10**20]]
        out += [[*call[:n], other, *call[n + 1 :]] for other in others]
    return out


def _wrong_texts(text: str) -> list[str]:
    words = text.split()
    swapped = [" ".join([*words[:n], str(10**20), *words[n + 1 :]]) + "\n" for n in range(min(8, len(words)))]
    return ["", "-1\n", "\x00\n", *swapped]


class WrittenSpace:
    """A problem's own space, if it has one, and the inputs that a language model's generator made."""

    def __init__(self, own: Space | None, problem: Problem, inputs: Sequence[str]) -> None:
        self.own, self.problem = own, problem
        self.inputs = sorted(inputs, key=len)
        self.fresh = list(enumerate(self.inputs))  # those that were not drawn yet, by their number
        self.bounded_by = "llm" if own is None else own.bounded_by
        self.unread = [] if own is None else own.unread

    def draw(self, rng: random.Random, size: float) -> Candidate | None:
        if self.own is not None and (not self.fresh or rng.random() < 0.6):
            return self.own.draw(rng, size)
        if not self.fresh:
            return None
        n, text = self.fresh.pop(min(len(self.fresh) - 1, int(size * len(self.fresh) + rng.random())))
        return Candidate(text, "llm", n)

    def near(self, input: str, rng: random.Random) -> Candidate | None:
        return None if self.own is None else self.own.near(input, rng)

    def fault(self, input: str) -> str:
        if self.own is not None:
            return self.own.fault(input)
        return "" if input in self.inputs else "the language model did not make it"

    def size_of(self, input: str) -> float:
        longest = len(self.inputs[-1])
        return min(1.0, len(input) / max(1, longest)) if self.own is None else self.own.size_of(input)

    def call(self, input: str) -> str:
        """The call of the problem's function, for asserts: these have a space of their own."""
        return self.own.call(input) if isinstance(self.own, Calls) else input
