"""More tests for a problem: its inputs varied by chance, with the reference's own answers to them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

from microcoder.data.verify.agreement import AnswerRecorder
from microcoder.judge import Judge
from microcoder.schema import Problem, Test

TRIED, LEAST, MOST = 20, 8, 10


def enriched(problem: Problem, draw: Random) -> bool:
    """At least eight tests with more than two answers; False if the reference does not take that many."""
    given = [json.loads(test.input) for test in problem.tests[:3]]
    if not all(isinstance(arguments, list) for arguments in given):
        return False
    tests = {json.dumps(arguments): test.output for arguments, test in zip(given, problem.tests, strict=False)}
    new = dict.fromkeys(json.dumps(varied(draw.choice(given), draw)) for _ in range(TRIED))
    tests |= dict(list(answered(problem, [text for text in new if text not in tests]))[: MOST - len(tests)])
    problem.tests = [Test(text, output) for text, output in tests.items()]
    return len(tests) >= LEAST and len(set(tests.values())) > 2


def answered(problem: Problem, inputs: list[str]) -> Iterator[tuple[str, str]]:
    """(input, output) of those that the reference takes. All are asked at once; if one fails, each half for itself."""
    tests = [Test(text, "0") for text in inputs]
    asked = Problem(problem.id, "function", entry_point=problem.entry_point, tests=tests, time_limit_s=1)
    answers = recorder().answers(asked, problem.solutions[0]["code"]) if inputs else []
    if answers is not None:
        pairs = zip(inputs, answers, strict=True)
        yield from ((text, json.dumps(answer)) for text, answer in pairs if _is_json(answer))
    elif len(inputs) > 1:
        half = len(inputs) // 2
        yield from answered(problem, inputs[:half])
        yield from answered(problem, inputs[half:])


def varied(value: Any, draw: Random) -> Any:
    """A value of the same form: numbers near by, lists and texts shorter, longer or in another order."""
    if isinstance(value, bool):
        return draw.random() < 0.5
    if isinstance(value, int):
        return max(int(value > 0), value + draw.choice([-3, -2, -1, 0, 0, 1, 2, 3, 7, value]))
    if isinstance(value, float):
        return round(value * draw.choice([0.5, 0.9, 1, 1.5, 3]), 3)
    if isinstance(value, str):
        letters = list(value)
        return "".join(_reordered(letters, draw)) if letters else value
    if isinstance(value, list):
        inner = [varied(item, draw) for item in value]
        return _reordered(inner, draw) if inner and not isinstance(inner[0], list) else inner
    return value


def _reordered(items: list[Any], draw: Random) -> list[Any]:
    items = items * draw.choice([1, 1, 1, 2])
    if draw.random() < 0.4:
        draw.shuffle(items)
    keep = draw.randint(max(1, len(items) - 3), len(items))
    return items[:keep]


@cache
def recorder() -> AnswerRecorder:
    """The judge's sandbox, taking down what a program answers; one for the whole benchmark."""
    with Judge(workers=1) as judge:
        return AnswerRecorder(judge.sandbox)


def _is_json(value: Any) -> bool:
    try:
        return json.loads(json.dumps(value, allow_nan=False)) == value
    except (TypeError, ValueError):
        return False
