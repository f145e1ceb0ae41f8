"""Examples in a statement: calls or inputs with the answer that is promised, and those that the reference contradicts.

    >>> f(1, 2)                f(1, 2) == 3     f(1, 2) -> 3, => 3, ➞ 3, = 3     f(1, 2) should return 3
    3                          Input: a = 1, b = 2                               For a = 1, b = 2 the output should be 3
                               Output: 3

Only what is surely an example is taken: arguments and answer are Python or JSON literals, and there are as many
arguments as the function has parameters. A formula (`f(n) = f(n - 1) + 1`) is none. An example for stdin is none
either: `process` has put those among the tests.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ...judge.base import Judging
from ...schema import Problem, Test

LONGEST = 20_000  # characters of a call or an answer
MOST = 40  # examples of one statement
_ARROW = re.compile(
    r"`{0,2}\s*(?:# ?)?(?:==+>?|=>|=|-+>|➞|→|⇒|➔"
    r"|(?:(?:should|must|will|would) )?(?:return|be|output|give|yield|equal|evaluate to)s?:?"
    r"|(?:is|equals))\s*",
    re.I,
)
_INPUT = re.compile(
    r"(?:^|\n)[ \t*_]*Input[*_ \t]*:[*_]*[ \t]*\n?(.+?)\n[ \t*_]*Output[*_ \t]*:[*_]*[ \t]*\n?([^\n]+)", re.S
)
_FOR = re.compile(
    r"(?:^|\n)[ \t*-]*(?:For|If|Given|When)? ?([A-Za-z_]\w* ?= ?[^\n]{1,400}?),? "
    r"(?:the )?(?:output|result|answer|function) should (?:be|return) ([^\n]+)",
    re.I,
)
_NAMED = re.compile(r"(?:^|[,;\n])\s*([A-Za-z_]\w*)\s*[=:]\s*")
_LINKED = re.compile(
    r"\b(?:ListNode|TreeNode|Node)\b"
)  # the statement writes lists for what the function gets as nodes
_GOES_ON = re.compile(r"""\w|["']|`*[ \t]*(?:[+*/%<>=&|^(]|-(?!-?[ \t]+[A-Za-z]))""")
_WORDS = {"true": True, "false": False, "null": None, "none": None, "nil": None}


@dataclass(frozen=True, slots=True)
class Example:
    """An example of a statement. `input` and `output` are written as in a test of a function."""

    input: str  # a JSON list of arguments, or a Python literal where JSON has no such value
    output: str
    text: str  # as the statement has it


def examples(problem: Problem) -> list[Example]:
    """The examples of a function's or an assert problem's statement, each input once, in their order."""
    if problem.kind == "stdin" or not problem.entry_point or _LINKED.search(problem.starter_code):
        return []
    name = problem.entry_point.rpartition(".")[2]
    names = parameters(problem)
    found: dict[str, Example] = {}
    for arguments, answer, text in (*_calls(problem.statement, name), *_labelled(problem.statement, names)):
        if names is None or len(arguments) == len(names):
            example = Example(_written(arguments), _written(answer), " ".join(text.split())[:200])
            found.setdefault(example.input, example)
        if len(found) >= MOST:
            break
    return list(found.values())


def contradictions(problem: Problem, judge: Judging, reference: str) -> list[str]:
    """Examples that the reference answers otherwise, each as a sentence. Those that are tests already are not run.

    Answers are compared by the problem's own rules, so `answers.rule` comes first.
    """
    tests = {_bare(test.input): _bare(test.output) for test in problem.tests}
    asked = [one for one in examples(problem) if tests.get(_bare(one.input)) != _bare(one.output)]
    waiting = [(one, judge.submit(as_problem(problem, [one]), code=reference)) for one in asked]
    verdicts = [(one, future.result()) for one, future in waiting]
    # `f(1) = 3` may define a number of a sequence, where the examples are lists: confirmed ones tell what is meant.
    kinds = {_kind(one.output) for one, verdict in verdicts if verdict.accepted}
    said = []
    for example, verdict in verdicts:
        if verdict.verdict == "wrong_answer" and (not kinds or _kind(example.output) in kinds):
            message = verdict.message.partition(": ")[2].partition(" in `assert")[0]
            said.append(f"the statement says {example.text!r}, but the reference: {message[:200]}")
    return said


def as_problem(problem: Problem, chosen: list[Example]) -> Problem:
    """The problem with examples for its tests."""
    bare = replace(problem, statement="", solutions=[], lineage=[], tags=[])
    if problem.kind == "function":
        return replace(bare, tests=[Test(one.input, one.output) for one in chosen])
    return replace(bare, asserts=[f"assert {_call(problem, one)} == {_python(one.output)}" for one in chosen], tests=[])


def parameters(problem: Problem) -> list[str] | None:
    """The names of the function's parameters by its starter code or the first solution; None where none can be read."""
    name = problem.entry_point.rpartition(".")[2]
    for code in (f"{problem.starter_code}\n        pass", problem.starter_code, *_codes(problem)):
        try:
            tree = ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                if node.args.vararg or node.args.kwarg or node.args.defaults:
                    return None
                names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
                return names[1:] if names[:1] == ["self"] else names
    return None


def value(text: str) -> Any:
    """The value that a literal of Python or JSON stands for; ValueError for anything else."""
    text = text.strip()
    if not text or len(text) > LONGEST:
        raise ValueError("no literal")
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    return plain_value(text)


def plain_value(text: str) -> Any:
    """What JSON, or else a literal of Python, stands for; ValueError for anything else."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
    raise ValueError("no literal")


def _codes(problem: Problem) -> Iterator[str]:
    for solution in problem.solutions[:1]:
        if isinstance(solution, dict) and isinstance(solution.get("code"), str):
            yield solution["code"]


# --- f(1, 2) == 3


def _calls(text: str, name: str) -> Iterator[tuple[list[Any], Any, str]]:
    """The calls of the function with what stands after each."""
    for match in re.finditer(rf"(?<![\w.]){re.escape(name)}\s?\(", text):
        end = _closed(text, match.end() - 1)
        if not end:
            continue
        start = text.rfind("\n", 0, match.start()) + 1
        before = text[start : match.start()].strip()
        try:
            arguments = list(ast.literal_eval(f"[{text[match.end() : end - 1]}]"))
            answer, after = _answer(text, end, doctest=before.startswith(">>>"))
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
        yield arguments, answer, text[match.start() : after]


def _answer(text: str, at: int, doctest: bool) -> tuple[Any, int]:
    """The literal after a call, and where it ends. ValueError where there is none."""
    arrow = _ARROW.match(text, at)
    line = text.find("\n", at)
    line = len(text) if line < 0 else line
    if doctest and not text[at:line].strip():  # the answer stands on the lines below
        end = line + 1
        while end < len(text) and text[end : end + 1] not in ("\n", "") and not text[end:].lstrip().startswith(">>>"):
            end = text.find("\n", end) + 1 or len(text) + 1
            try:
                return value(text[line + 1 : end - 1]), end - 1
            except ValueError:
                continue
        raise ValueError("no answer below the call")
    if doctest and not arrow and text[at:line].lstrip()[:1] in ("[", "(", "{"):  # `>>> f([2, 1]) [1, 2]`
        return value(text[at:line]), line
    if not arrow or "\n" in arrow[0].rstrip(" \t")[:-1]:
        raise ValueError("nothing that announces an answer")
    return _first_literal(text, arrow.end())


def _first_literal(text: str, at: int) -> tuple[Any, int]:
    """The literal that begins here: up to the end of its bracket or quotes, or one word. Arithmetic is none."""
    while text[at : at + 1] in ("`", "*"):
        at += 1
    opening = text[at : at + 1]
    if opening in ("[", "(", "{"):
        end = _closed(text, at)
        if not end:
            raise ValueError("a bracket that is not closed")
    elif opening in ("'", '"'):
        end = text.find(opening, at + 1) + 1
        if not end or "\n" in text[at:end]:
            raise ValueError("a quotation that does not end")
    else:
        word = re.compile(r"-?[\w.+]*\w").match(text, at)
        if not word:
            raise ValueError("no literal")
        end = word.end()
    if _GOES_ON.match(text, end) or (opening == "(" and text[at:end].count(",") == 0):
        raise ValueError("a formula, or a word in brackets")
    return value(text[at:end]), end


def _closed(text: str, at: int) -> int:
    """Where the bracket that opens at `at` is closed, one past it; 0 if it is not."""
    depth, quote = 0, ""
    for n in range(at, min(len(text), at + LONGEST)):
        sign = text[n]
        if quote:
            if sign == quote and text[n - 1] != "\\":
                quote = ""
        elif sign in "'\"":
            quote = sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
            if not depth:
                return n + 1
    return 0


# --- Input: a = 1, b = 2


def _labelled(text: str, names: list[str] | None) -> Iterator[tuple[list[Any], Any, str]]:
    for match in (*_INPUT.finditer(text), *_FOR.finditer(text)):
        given, promised = match[1].strip(), match[2].strip().strip("`")
        try:
            answer = value(promised) if match.re is _INPUT else _first_literal(promised, 0)[0]
            yield _arguments(given, names), answer, match[0]
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue


def _arguments(given: str, names: list[str] | None) -> list[Any]:
    """The values of `a = 1, b = [2]`, in the order of the parameters; or of values alone, one a line or by commas."""
    given = given.strip("` \n")
    marks = [match for match in _NAMED.finditer(given) if _outside(given, match.start())]
    if marks:
        found = {}
        for n, mark in enumerate(marks):
            end = marks[n + 1].start() if n + 1 < len(marks) else len(given)
            found[mark[1]] = value(given[mark.end() : end].strip().rstrip(",;").strip("`"))
        if names is None:
            return list(found.values())
        if set(found) == set(names):
            return [found[name] for name in names]
        if len(found) == len(names):
            return list(found.values())
        raise ValueError("other names than the parameters have")
    lines = [line for line in given.split("\n") if line.strip()]
    if names is not None and len(lines) == len(names):
        return [value(line.strip().rstrip(",")) for line in lines]
    return list(ast.literal_eval(f"[{given}]"))


def _outside(text: str, at: int) -> bool:
    """Whether a place is in no bracket and in no quotes."""
    before = text[:at]
    return all(before.count(a) == before.count(b) for a, b in ("()", "[]", "{}")) and before.count('"') % 2 == 0


# --- as tests


def _written(value: Any) -> str:
    return json.dumps(value) if is_json(value) else repr(value)


def is_json(value: Any) -> bool:
    """Whether JSON can carry a value and give it back."""
    if isinstance(value, list):
        return all(map(is_json, value))
    if isinstance(value, dict):
        return all(isinstance(name, str) and is_json(item) for name, item in value.items())
    return value is None or isinstance(value, (bool, int, float, str))


def _kind(text: str) -> str:
    found = value(text)
    return "number" if isinstance(found, (int, float)) else type(found).__name__


def _bare(text: str) -> str:
    return "".join(text.split())


def _python(text: str) -> str:
    return repr(value(text)) if text.strip() else "None"


def _call(problem: Problem, example: Example) -> str:
    owner, _, name = problem.entry_point.rpartition(".")
    arguments = ", ".join(map(repr, value(example.input)))
    return f"{owner}().{name}({arguments})" if owner else f"{name}({arguments})"
