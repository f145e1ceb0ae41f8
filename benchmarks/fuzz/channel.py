"""The result channel in process: forged results and hostile text through the very functions that judge them.

A case says what a program left behind (`got`), what was expected, and how it is compared. It runs in a process of its
own (a cell), which can be killed where it hangs: what counts is its CPU time, its peak memory, and that it raises
nothing. Where the expected value is a secret that the case cannot know, it must not be accepted either.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import random
import resource
import time
import traceback
from typing import Any

import psutil  # type: ignore[import-untyped,unused-ignore]

from benchmarks.fuzz.recipes import Case, Malformed, Recipe, expand, mutated
from benchmarks.fuzz.shapes import RESULT_SHAPES, TEXT_SHAPES, VALUE_SHAPES, literal, text, value
from microcoder.judge.compare import Match
from microcoder.schema import POLICIES, Compare, Problem

SLOW_S = 2.0  # of CPU for one comparison,
SLOW_S_PER_MB = 1 / 16  # and so much more for what the problem itself expects
HANGS_S = 6.0  # of CPU, after which a cell is killed
MEMORY_MB = 1024.0  # that one comparison may add at its peak
LIMITS = {
    "value": 4 << 20,
    "text": 16 << 20,
    "completion": 4 << 20,
}  # the judge's own: more is output_limit before anything is compared

ASSERTS = (  # {} is the expected value
    "f(1) == {}", "f(1) != {}", "f(1) < {}", "f(1) >= {}", "f(1) in [{}]", "f(1) not in ({},)", "{} in f(1)",
    "{} not in f(1)",
    "f(1) is None", "f(1) is not True", "f(1)", "not f(1)", "f(1) == f(2)", "math.isclose(f(1), {})",
    "abs(f(1) - {}) < 1e-6",
    "len(f(1)) == 3", "sorted(f(1)) == {}", "f(1) == {} or f(1) is None",
)  # fmt: skip
FLAGS = ("", "case_sensitive", "space_change_sensitive", "float_tolerance 1e-6", "float_absolute_tolerance 1e300",
         "case_sensitive space_change_sensitive float_relative_tolerance 0.1")  # fmt: skip
EXPECTED = (
    "null", "true", "0", "1.5", "[]", "[1, 2, 3]", "[0.5, 1.5]", '[[1, 2], [3]]', '{"a": 1}', '{"1": [2.5]}', '"text"',
    '""',
    "[true, false]", '["yes", "NO"]', "{1, 2, 3}", "(1, 'a')", "{(1, 2): {3}}", "[[[[[[0]]]]]]", "1e300", "[null]",
    "-0.0",
)  # fmt: skip


def cases(draw: random.Random) -> Case:
    """The next case."""
    way = draw.random()
    return _value_case(draw) if way < 0.5 else _text_case(draw) if way < 0.95 else _completion_case(draw)


def _rules(draw: random.Random, stdin: bool) -> dict[str, Any]:
    rules: dict[str, Any] = {}
    if draw.random() < 0.3:
        rules["tolerance"] = draw.choice((0, 0.0, 1e-6, 1e-300, 0.5, 1e300))
    if draw.random() < 0.4:
        rules["unordered"] = True
    if stdin and draw.random() < 0.3:
        rules["lines"] = True
    if stdin and draw.random() < 0.2:
        rules["validator_flags"] = draw.choice(FLAGS)
    return rules


def _size(draw: random.Random, most: int) -> int:
    """Mostly small; now and then as large as can be."""
    return draw.choice(
        (50, 1000, 1000, 20_000, most // 8 if draw.random() < 0.3 else 5000, most if draw.random() < 0.1 else 300)
    )


def _value_case(draw: random.Random) -> Case:
    n = _size(draw, LIMITS["value"] - 1000)
    case: Case = {"target": "value", "policy": draw.choice(POLICIES), "compare": _rules(draw, stdin=False)}
    way, shape = draw.randrange(10), draw.choice(list(VALUE_SHAPES))
    secret = str(draw.getrandbits(100))
    expected: Recipe = [draw.choice((secret, f'"{secret}"', f"[{secret}]"))]
    case["accepts"] = False
    if way < 3:
        name = shape
        case["got"] = ['{"r":', *VALUE_SHAPES[shape](n), "}"]
    elif way == 3:
        name = draw.choice(list(RESULT_SHAPES))
        case["got"] = RESULT_SHAPES[name](n)
    elif way == 4:  # two large ones that are nearly alike: so the far ends are reached
        name = f"twin of {shape}"
        expected = _python(VALUE_SHAPES[shape](min(n, 200_000)))
        case |= {"accepts": True, "got": ['{"r":', *mutated(draw, VALUE_SHAPES[shape](min(n, 200_000))), "}"]}
    else:
        name = "grammar"
        one = value(draw)
        if way == 5:
            one = mutated(draw, one)
        case["got"] = mutated(draw, ['{"r":', *one, "}"]) if way == 6 else ['{"r":', *one, "}"]
        if way >= 8:
            expected, case["accepts"] = [draw.choice(EXPECTED)], True
    case["expected"] = expected
    if draw.random() < 0.5:
        op = draw.choice(ASSERTS)
        case["assert"] = op
        case["accepts"] |= op != ASSERTS[0]
        if op == "f(1) == f(2)" or "len" in op or "sorted" in op or " or " in op:  # two answers, as a tuple
            case["got"] = ['{"r":{"t":[', *case["got"][1:-1], ",", *value(draw), "]}}"]
    return case | {"name": name}


def _python(recipe: Recipe) -> Recipe:
    """An expected value cannot be tagged; where the recipe is plain JSON it stands for itself, else as text."""
    return recipe if not any("{" in str(p) for p in recipe) else ['"', str(len(recipe)), '"']


def _text_case(draw: random.Random) -> Case:
    n = _size(draw, LIMITS["text"] - 1000)
    case: Case = {"target": "text", "policy": draw.choice(POLICIES), "compare": _rules(draw, stdin=True), "input": []}
    way = draw.randrange(8)
    secret = f"{draw.getrandbits(100)}\n"
    case |= {"expected": [secret], "accepts": False}
    name = draw.choice(list(TEXT_SHAPES))
    if way < 2:
        case["got"] = TEXT_SHAPES[name](n)
    elif way < 4:  # against a text as large, of the same shape or another one
        other = name if way == 2 else draw.choice(list(TEXT_SHAPES))
        name, case["got"] = f"{name} for {other}", mutated(draw, TEXT_SHAPES[name](n))
        case |= {"expected": TEXT_SHAPES[other](n), "accepts": True}
    elif way == 4:
        name, case["got"] = "literal", [literal(draw)]
        case |= {"expected": [literal(draw)], "accepts": True}
    elif way == 5:
        name, one = "near literal", [literal(draw)]
        case |= {"got": mutated(draw, one), "expected": one, "accepts": True}
    else:
        name, one = "words", text(draw)
        case |= {"got": mutated(draw, one) if way == 6 else text(draw), "expected": one, "accepts": True}
        case["input"] = text(draw)
    return case | {"name": name}


def _completion_case(draw: random.Random) -> Case:
    """What a model wrote: the program in it is looked for by trusted code too."""
    n = _size(draw, LIMITS["completion"] - 1000)
    pieces: Recipe = []
    for _ in range(draw.randint(1, 8)):
        unit = draw.choice(
            (
                "```",
                "~~~",
                "```python",
                "`",
                " ```",
                "\t",
                " ",
                "\n",
                "```\n",
                "```py\n```\n",
                "x\n",
                "``` {.x}",
                "\x0b",
                "\r\n",
            )
        )
        pieces.append([unit, draw.choice((1, 1, n // 20 + 1))])
    return {"target": "completion", "name": "completion", "got": pieces, "accepts": True}


class _Outside:
    """Stands in for the boxes that evaluate a problem's own code. What is handed to them is packed as for a box."""

    def evaluate(self, statements: str, expression: str, **given: Any) -> Any:
        from microcoder.judge.sandbox import values

        if given:
            json.dumps({name: values.encode(one) for name, one in given.items()})
            return False
        return eval(expression, {})  # of these problems, which are ours

    def check(self, given: Any, output: Any, expected: Any) -> Any:
        raise AssertionError("no problem here has a checker")


def _problem(case: Case, most: int) -> Problem:
    expected = expand(case["expected"], most).decode("utf-8", "surrogateescape")
    if case["target"] == "text":
        given = expand(case["input"], most).decode("utf-8", "surrogateescape")
        problem = Problem.from_dict({"id": "p", "tests": [{"input": given, "output": expected}]})
    elif "assert" in case:
        problem = Problem("p", "assert", asserts=[f"assert {case['assert'].format(expected)}"], setup="import math")
    else:
        test = {"input": "[1]", "output": expected}
        problem = Problem.from_dict({"id": "p", "kind": "function", "entry_point": "f", "tests": [test]})
    problem.compare = Compare(**case["compare"])
    return problem


def examined(case: Case) -> dict[str, Any]:
    """What became of a case: CPU seconds, MB added at the peak, the strategy that accepted, and an error if any."""
    from microcoder.judge.checks import checks
    from microcoder.judge.sandbox import values

    most = LIMITS[case["target"]]
    got = expand(case["got"], most)
    helpers: Any = _Outside()
    if case["target"] == "completion":
        from microcoder.judge.extract import code_block

        text = got.decode("utf-8", "surrogateescape")

        def judge(*_: Any) -> Any:
            return Match("", code_block(text) or "")
    else:
        try:
            judge = checks(_problem(case, most), case["policy"], helpers)[0].judge
        except (ValueError, RecursionError) as reason:  # the problem is no problem
            raise Malformed(str(reason)) from None
    wanted = len(expand(case["expected"], most)) / 1e6 if "expected" in case else 0.0
    large = len(got) > 1 << 16
    before = _peak(reset=True) if large else 0.0
    start, error = time.process_time(), ""
    strategy = ""
    try:
        strategy = judge(got, helpers).strategy
    except values.TooMuch:  # what the judge raises for a result that it does not take: output_limit
        pass
    except BaseException as caught:
        error = f"{type(caught).__name__}: {str(caught)[:200]}"
        where = traceback.extract_tb(caught.__traceback__)[-1]
        error += f" ({where.filename.rpartition('/')[2]}:{where.name})"
    cpu = time.process_time() - start
    grown = _peak() - before if large else 0.0
    used = {"cpu_s": cpu, "grown_mb": grown, "bytes": len(got), "expected_mb": wanted}
    return {**used, "strategy": strategy, "error": error}


def _peak(reset: bool = False) -> float:
    """Peak resident MB; `reset`: from now on."""
    if reset:
        with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    with open("/proc/self/status") as status:
        return next((int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM")), 0.0)


def _cpu(pid: int | None) -> float:
    used = psutil.Process(pid).cpu_times()
    return float(used.user + used.system)


def finding(case: Case, result: dict[str, Any]) -> tuple[str, str]:
    """(kind, words) of what is wrong; two empty texts where nothing is."""
    if result["error"]:
        return "exception", result["error"]
    if result["cpu_s"] > SLOW_S + SLOW_S_PER_MB * result.get("expected_mb", 0.0):
        return "slow", f"{result['cpu_s']:.1f} s of CPU for {result['bytes']} bytes"
    if result["grown_mb"] > MEMORY_MB:
        return "memory", f"{result['grown_mb']:.0f} MB for {result['bytes']} bytes"
    if result["strategy"] and not case["accepts"] and not _lenient(case):
        return "accepted", f"by {result['strategy']}, without knowing the answer"
    return "", ""


def _lenient(case: Case) -> bool:
    """Whether a case, made smaller, may well be accepted: a tolerance that covers a guess."""
    words = f"{case['compare'].get('validator_flags', '')} {case['compare'].get('tolerance', 0)}".split()
    return any(word[0].isdigit() and float(word) > 1e-3 for word in words)


def _cell(pipe: Any) -> None:
    import sys

    from microcoder.judge.sandbox import kernel

    kernel.prctl(kernel.PR_SET_PDEATHSIG, 9)
    sys.set_int_max_str_digits(0)  # as a worker does
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while True:
            case = pipe.recv()
            try:
                pipe.send(examined(case))
            except Malformed as error:
                pipe.send({"malformed": str(error)})


class Cell:
    """A process that examines one case after another."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_cell, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def run(self, case: Case) -> dict[str, Any]:
        """What became of it. A hang or a crash ends the cell; the next case has a new one."""
        try:
            self.pipe.send(case)
            before = _cpu(self.process.pid)
            while not self.pipe.poll(1.0):
                if _cpu(self.process.pid) - before > HANGS_S:
                    break
            else:
                found: dict[str, Any] = self.pipe.recv()
                return found
            said = {"cpu_s": HANGS_S, "error": "", "bytes": 0, "grown_mb": 0.0, "strategy": ""}
        except (EOFError, OSError):
            said = {"cpu_s": 0.0, "error": "Crash: the process died", "bytes": 0, "grown_mb": 0.0, "strategy": ""}
        self.close()
        self.__init__()  # type: ignore[misc]
        return said

    def close(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()
