"""Programs that people and models wrote, with their problems, from several sources.

Each also says how plain Python runs it: an empty `plain` means as a script, once for each test; anything else is one
program that holds the tests and ends well if they pass.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.judge.references import humaneval, leetcode, mbpp, rows
from microcoder.data.record import Record
from microcoder.data.sources import icpc, livecodebench
from microcoder.schema import ACCEPTED, Problem, Test

TESTS = Path(__file__).resolve().parents[2] / "tests"
# What LeetCode has at hand without an import.
AT_HAND = """from bisect import *
from collections import *
from functools import *
from heapq import *
from itertools import *
from math import *
from typing import *
from builtins import *
import bisect, collections, datetime, functools, heapq, itertools, math, random, re, string
"""
# Prints the answers of a function as literals, None where an answer is no literal or is not itself again.
ANSWERS = """
import ast as _ast, json as _json
def _literal(value):
    try:
        return repr(value) if _ast.literal_eval(repr(value)) == value else None
    except (ValueError, SyntaxError):
        return None
print(_json.dumps([_literal({name}(*args)) for args in {given!r}]))
"""


@dataclass(frozen=True, slots=True)
class Program:
    problem: Problem
    code: str
    plain: str = ""
    language: str = "python"


def cases(most: int) -> Iterator[Program]:
    """The accepted cases of tests/cases; those with a checker or another policy say nothing about plain Python."""
    sys.path[:0] = [str(TESTS), str(TESTS / "judge")]
    from test_cases import CASES

    for case in CASES:
        if case.verdict != ACCEPTED or case.policy != "robust" or "code" not in case.program:
            continue
        if case.problem.kind == "assert" or case.problem.compare.checker:
            continue
        code = case.program["code"]
        yield Program(case.problem, code, calls(case.problem, code) if case.problem.kind == "function" else "")


def calls(problem: Problem, code: str) -> str:
    """One plain program: the function called with each test's arguments, and its value asserted."""
    owner, _, name = problem.entry_point.rpartition(".")
    call = f"{owner}().{name}" if owner else name
    lines = []
    for test in problem.tests:
        given, expected = value(test.input), value(test.output)
        stars = "**" if isinstance(given, dict) else "*"
        lines.append(f"_got = {call}({stars}{given!r})\nassert _got == {expected!r}, _got")
    return "\n".join([AT_HAND, code, *lines])


def value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return ast.literal_eval(text)


def references(reader: Callable, *names: str) -> Callable[[Path, int], Iterator[Program]]:
    def read(data: Path, most: int) -> Iterator[Program]:
        for name in names:
            for problem, code, plain in reader(str(data / name)):
                yield Program(problem, code, plain)

    return read


def plus(name: str) -> Callable[[Path, int], Iterator[Program]]:
    """EvalPlus: the expected answers are those that plain Python gives, as literals."""

    def read(data: Path, most: int) -> Iterator[Program]:
        for row in rows(str(data / name)):
            code, entry = row["prompt"] + row["canonical_solution"], row["entry_point"]
            given = [args for args in [*row["base_input"], *row["plus_input"]] if isinstance(args, list)][:most]
            source = code + ANSWERS.format(name=entry, given=given)
            ran = subprocess.run([sys.executable, "-I", "-c", source], capture_output=True, text=True, timeout=120)
            answers = json.loads(ran.stdout.splitlines()[-1]) if ran.returncode == 0 else []
            asserts = [
                f"assert {entry}(*{args!r}) == {answer}"
                for args, answer in zip(given, answers, strict=False)
                if answer is not None
            ]
            if asserts:
                problem = Problem(row["task_id"], "assert", asserts=asserts, entry_point=entry)
                yield Program(problem, code, "\n".join([code, *asserts]))

    return read


def graded(data: Path, most: int) -> Iterator[Program]:
    """The programs that LiveCodeBench itself graded as right; here with the problems' public tests only."""
    problems = {}
    for row in rows(str(data / "livecodebench-v5-v6-public.jsonl.gz")):
        problems[row["question_id"]] = livecodebench.build(row).problem
    for number, row in enumerate(rows(str(data / "livecodebench-v5-graded.jsonl.gz"))):
        if row["graded"]:
            problem = replace(problems[row["question_id"]], id=f"{row['question_id']} by {row['model']} ({number})")
            plain = calls(problem, row["code"]) if problem.kind == "function" else ""
            yield Program(problem, row["code"], plain)


def packages(folder: Path, most: int, cpp: bool) -> Iterator[Program]:
    """Accepted submissions of ICPC packages, with the first tests of each; the limits are ours, not the contest's."""
    for place, record in enumerate(icpc.read(folder)):
        if not isinstance(record, Record) or not record.problem.tests:
            continue
        tests = [Test(t.input, t.output) for t in record.problem.tests[:most]]
        for number, found in enumerate(record.problem.solutions):
            language = {"python": "python", "c++": "cpp", "cpp": "cpp"}.get(found["language"], "")
            if found["verdict"] == ACCEPTED and language and (cpp or language == "python"):
                ident = f"{record.problem.id} ({place}.{number}, {language})"
                problem = replace(record.problem, id=ident, tests=tests, time_limit_s=None, memory_mb=None)
                yield Program(problem, found["code"], language=language)


DATA = {
    "MBPP": references(mbpp, "mbpp.jsonl"),
    "HumanEval": references(humaneval, "humaneval.jsonl.gz"),
    "LeetCodeDataset train": references(leetcode, "leetcode-train-v0.2.0.jsonl.gz"),
    "LeetCodeDataset test": references(leetcode, "leetcode-test-v0.3.1.jsonl.gz"),
    "HumanEval+": plus("humanevalplus-v0.1.10.jsonl.gz"),
    "MBPP+": plus("mbppplus.jsonl.gz"),
    "LiveCodeBench v5, graded right (public tests only)": graded,
}
