"""Faults that show only when programs run: of references, of expected outputs, of time limits."""

from __future__ import annotations

import ast
import re

from benchmarks.faults.run import Draw, Kind
from benchmarks.faults.tests import asserted, contradicted, function, other_output
from benchmarks.faults.twins import renamed_code
from microcoder.schema import Problem

RUBY = "def solve(a)\n  a.each do |x|\n    puts x\n  end\nend\n"


def referenced(problem: Problem) -> bool:
    """With a reference in which the function under test can be found."""
    return (function(problem) or asserted(problem)) and _entry(problem) is not None


def small(problem: Problem, draw: Draw) -> bool:
    """The control: no more tests than process keeps."""
    problem.tests, problem.asserts = problem.tests[:12], problem.asserts[:12]
    return True


def wrong_output(problem: Problem, draw: Draw) -> bool:
    if not problem.tests:
        return contradicted(problem, draw, replace=True)
    test = draw.choice(problem.tests)
    test.output = other_output(test.output, problem.kind, draw)
    return True


def no_python(problem: Problem, draw: Draw) -> bool:
    """A reference that does not compile: another language, something lost, an indentation gone."""
    solution = problem.solutions[0]
    code = solution["code"].strip()
    colons = [match.start() for match in re.finditer(r":[ \t]*\n", code)]
    cut = draw.choice(colons) if colons else len(code) - 1
    solution["code"] = draw.choice([
        RUBY.replace("solve", problem.entry_point.rpartition(".")[2]),
        code[:cut] + code[cut + 1 :],
        code.replace("\n    ", "\n", 1),
        code[: cut + 1],
        f"{code}\n  print 'done'",
        f"{code}\n    )",
    ])  # fmt: skip
    try:
        ast.parse(solution["code"])
    except SyntaxError:
        return True
    return False


def raising(problem: Problem, draw: Draw) -> bool:
    return begins_with(problem, draw.choice([
        "raise ValueError('not implemented')", "assert False", "undefined_helper()", "[][1]", "import numpyy",
        "raise SystemExit(1)",
    ]))  # fmt: skip


def endless(problem: Problem, draw: Draw) -> bool:
    """Busy for ever, asleep for ever (these take a time limit to find out, and are fewer), or ever larger."""
    return begins_with(problem, draw.choice([
        "while True: pass", "import time\ntime.sleep(10**6)", "much = [0]\nwhile True: much += much",
        "text = 'x'\nwhile True: text += text", "while True: print('x' * 10**5)",
        "import itertools\nfor _ in itertools.count(): print('x' * 10**5)",
        "def again(): return again() + 1\nagain()", "again = lambda n: again(n + 1) + again(n)\nagain(0)",
    ]))  # fmt: skip


def flaky(problem: Problem, draw: Draw) -> bool:
    """Wrong in half or a quarter of its runs."""
    return begins_with(problem, draw.choice([
        "import random\nif random.random() < 0.5: return 'by chance'",
        "import random\nif random.randint(1, 4) == 1: raise RuntimeError('bad luck')",
        "import os\nif os.urandom(1)[0] % 2: return None and 1",
        "import time\nif time.time_ns() // 1000 % 2: return 'by the clock'",
        "import uuid\nif uuid.uuid4().int % 2: return 'by chance'",
        "import secrets\nif secrets.randbelow(2): return 'by chance'",
    ]))  # fmt: skip


def wrong_accepted(problem: Problem, draw: Draw) -> bool:
    """A right program that is said to be wrong: tests that accept it cannot be trusted, or the label cannot."""
    code = renamed_code(problem.solutions[0]["code"], problem.entry_point)
    verdict = draw.choice(["wrong_answer", "WRONG_ANSWER", "time_limit", "runtime_error"])
    problem.solutions.append({"code": code, "language": "python", "verdict": verdict})
    return True


def slow(problem: Problem, draw: Draw) -> bool:
    """The control: a reference that takes some hundredths of a second, and a limit with room for it."""
    problem.tests, problem.asserts, problem.time_limit_s = problem.tests[:3], problem.asserts[:3], 4.0
    return begins_with(problem, "sum(range(10**6))")


def stale_limit(problem: Problem, draw: Draw) -> bool:
    problem.time_limit_s = draw.choice([0.001, 0.005, 0.01])
    return True


def limit_enough(problem: Problem) -> bool:
    return (problem.time_limit_s or 0) > 0.01


def _entry(problem: Problem) -> ast.FunctionDef | None:
    tree, name = ast.parse(problem.solutions[0]["code"]), problem.entry_point.rpartition(".")[2]
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name]
    return found[0] if len(found) == 1 else None


def begins_with(problem: Problem, statements: str, n: int = 0) -> bool:
    """The reference's function does this before anything else."""
    solution, name = problem.solutions[n], problem.entry_point.rpartition(".")[2]
    tree = ast.parse(solution["code"])
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            node.body[:0] = ast.parse(statements).body
    solution["code"] = ast.unparse(tree)
    return True


NO_MUTANTS = {"verify": {"mutants": 0}}  # they cost most of the time, and find none of these
_RUN = {"upto": "verify", "among": referenced, "control": small, "settings": NO_MUTANTS}
_FAILS = {"right": ("reference_fails",), **_RUN}
KINDS = [
    Kind("wrong expected output", wrong_output, **_FAILS),
    Kind("reference no Python", no_python, ("reference_fails", "wrong_format"), **_RUN),
    Kind("reference raises", raising, **_FAILS),
    Kind("reference endless", endless, most=40, **_FAILS),
    Kind("reference flaky", flaky, ("flaky", "reference_fails"), **_RUN),
    Kind("accepts what is wrong", wrong_accepted, ("accepts_wrong",), **_RUN),
    Kind("time limit too short", stale_limit, (), limit_enough, "time limit raised", slow, referenced, "verify",
         settings=NO_MUTANTS),
]  # fmt: skip
