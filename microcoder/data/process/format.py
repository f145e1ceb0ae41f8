"""Settle a problem's format (function, stdin or assert) from its tests, starter code and references.

Faults are repaired if possible: a kind that the tests contradict, an entry point written `Solution().add` or found in
the starter code, starter code taken from a reference's header. The prompt states the format (microcoder/prompts.py), so
these fields must be filled and right.

Drops: wrong_format.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ...schema import KINDS, Problem
from ..record import Dropped, Record, references

_PRINTS = re.compile(r"\bprint|\bwrite|\bstdout\b|\bcout\b|\bputs\b")  # a solution labelled Python may be C++
_WORD = re.compile(r"\w+")
_CHECK = re.compile(r"^def check\(", re.M)


def settle(record: Record) -> Record:
    """Settle kind, entry point and starter code, or drop the problem."""
    problem = record.problem
    kind, entry = _kind(problem), problem.entry_point.replace("()", "").strip()
    if kind == "stdin":
        _check_program(problem, entry)
        entry = ""
    else:
        entry = entry or _entry(problem)
    if (kind, entry) != (problem.kind, problem.entry_point):
        problem.kind, problem.entry_point = kind, entry  # type: ignore[assignment]
        record.did(f"process: kind {kind}, entry point {entry or 'none'}")
    if kind == "stdin":
        return record
    _check_names(problem)
    headers = () if problem.starter_code.strip() else (starter(code, entry) for code in references(problem))
    if header := next(filter(None, headers), ""):
        problem.starter_code = header
        record.did("process: starter code from a reference")
    if kind == "function":
        _check_calls(problem)
    else:
        _check_asserts(problem)
    return record


def arguments(text: str) -> list[Any] | dict[str, Any] | None:
    """Read a test's input as arguments: a list or an object, else None. Numbers stay text: they may be huge."""
    try:
        value = json.loads(text, parse_int="\0{}".format, parse_float="\0{}".format)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (list, dict)) else None


def parsed(code: str) -> ast.Module | None:
    """Parse code into a syntax tree; None if it is no Python."""
    try:
        with warnings.catch_warnings():  # about "\d" in a string, which is not our code
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _kind(problem: Problem) -> str:
    if problem.asserts and (problem.kind == "assert" or not problem.tests):
        return "assert"
    if not problem.tests:
        return problem.kind if problem.kind in KINDS else "stdin"  # nothing to decide by; completeness will drop it
    if problem.kind != "function" and problem.entry_point:
        code = [problem.starter_code, *references(problem)]
        named = any(_names(text, problem.entry_point.replace("()", "")) for text in code)
        if named and all(arguments(test.input) is not None for test in problem.tests):
            return "function"
    return "function" if problem.kind == "function" else "stdin"


def _entry(problem: Problem) -> str:
    """Return the function that the starter code, or a reference, defines; of several, the one that the asserts call."""
    asked = "\n".join(problem.asserts)
    for code in filter(None, (problem.starter_code, *references(problem))):
        names = defined(code)
        called = [name for name in names if _names(asked, name)]
        if called or len(names) == 1:
            return (called or names)[0]
    if problem.asserts and not _CHECK.search(asked):
        return ""  # the prompt shows an assert instead
    raise Dropped("wrong_format", "tests of a function, but neither the problem nor its code says which")


def _names(code: str, entry: str) -> bool:
    name = entry.rpartition(".")[2]
    return name in code and name in _WORD.findall(code)


def _check_program(problem: Problem, entry: str) -> None:
    programs = references(problem)
    if re.search(r"^class Solution\b", problem.starter_code, re.M):
        raise Dropped("wrong_format", "tests of standard input, but starter code of a class")
    if programs and not any(map(_PRINTS.search, programs)):
        raise Dropped("wrong_format", "tests of standard input and output, but no reference prints anything")
    if entry and not programs:
        raise Dropped("wrong_format", f"tests of standard input, but an entry point {entry}")


def _check_names(problem: Problem) -> None:
    entry, programs = problem.entry_point, references(problem)
    if not entry:
        return
    if not all(map(str.isidentifier, entry.split("."))):
        raise Dropped("wrong_format", f"{entry!r:.80} is no name of a function")
    others = ", ".join(defined(problem.starter_code)[:3])
    if others and not _names(problem.starter_code, entry):
        raise Dropped("wrong_format", f"the entry point is {entry}, but the starter code defines {others}")
    if programs and not any(_names(code, entry) for code in programs):
        raise Dropped("wrong_format", f"the entry point is {entry}, but no reference defines it")


def _check_calls(problem: Problem) -> None:
    signature = find(problem.starter_code, problem.entry_point)
    for n, test in enumerate(problem.tests):
        given = arguments(test.input)
        if given is None:
            if isinstance(_literal(test.input), list | dict):  # as EvalPlus has them, for tuples and sets
                continue
            raise Dropped("wrong_format", f"the input of test {n} is no JSON list of arguments: {test.input!r:.60}")
        if signature and not signature.takes(given):
            raise Dropped("wrong_format", f"{signature.header:.80} cannot be called as in test {n}: {test.input:.60}")
        if test.output.strip() and arguments(f"[{test.output}]") is None and _literal(f"[{test.output}]") is None:
            raise Dropped("wrong_format", f"the output of test {n} is no JSON value: {test.output!r:.60}")


def _literal(text: str) -> Any:
    """The value of a Python literal, None if it is none."""
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _check_asserts(problem: Problem) -> None:
    for n, text in enumerate(problem.asserts):
        if parsed(text) is None:
            raise Dropped("wrong_format", f"assert {n} is no Python: {text!r:.80}")
    asked = "\n".join(problem.asserts)
    if "assert" not in asked or _CHECK.search(asked):
        return  # nothing is asserted: completeness will drop it
    if problem.entry_point and not _names(asked, problem.entry_point):
        raise Dropped("wrong_format", f"the entry point is {problem.entry_point}, but no assert calls it")


# --- signatures of functions in Python that may be a starter without a body, or no valid Python at all

_HEADER = re.compile(r"^([ \t]*)(?:async )?def (\w{1,100}) ?\(", re.M)
_CLASS = re.compile(r"^class (\w{1,100})\b", re.M)
_LONGEST = 3_000


@dataclass(frozen=True)
class Signature:
    header: str  # def add(a: int, b: int = 0) -> int:
    names: tuple[str, ...]  # without self
    least: int  # number of required arguments
    most: int | None  # None: any number
    keywords: bool  # whether it has **kwargs

    def takes(self, arguments: object) -> bool:
        """Whether the function can be called with a list of arguments or a dict of keyword arguments."""
        if isinstance(arguments, dict):
            return len(arguments) >= self.least and (self.keywords or set(arguments) <= set(self.names))
        return isinstance(arguments, list) and self.least <= len(arguments) <= (self.most or len(arguments))


def defined(code: str) -> list[str]:
    """Return the public functions and methods of the code: `add`, `Solution.twoSum`; none inside functions."""
    classes = [(match.start(), match[1]) for match in _CLASS.finditer(code)]
    found = []
    for match in _HEADER.finditer(code):
        indent, name = len(match[1].expandtabs(4)), match[2]
        owners = [owner for start, owner in classes if start < match.start()] if indent else [""]
        if owners and indent <= 4 and not name.startswith("_"):
            found.append(f"{owners[-1]}.{name}".lstrip("."))
    return found


@lru_cache(maxsize=64)  # several calls for one problem
def find(code: str, entry: str) -> Signature | None:
    """Return the signature of `add` or `Solution.add`; None if the code has none that can be read."""
    owner, _, name = entry.rpartition(".")
    for match in _HEADER.finditer(code):
        if match[2] == name and bool(match[1]) == bool(owner):
            node = _parsed(code[match.start() : match.start() + _LONGEST].lstrip())
            if node is not None:
                return _signature(node, bool(owner))
    return None


def starter(code: str, entry: str) -> str:
    """Return starter code for the entry point, from a program that defines it; "" if it does not."""
    found = find(code, entry)
    owner = entry.rpartition(".")[0]
    if found is None:
        return ""
    return f"class {owner}:\n    {found.header}" if owner else found.header


def _parsed(text: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Parse the function header at the beginning of a text, up to the first colon that makes it valid Python."""
    for colon in (match.end() for match in re.finditer(r":(?=\s|$)", text)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                node = ast.parse(f"{text[:colon]} pass").body[0]
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            continue
        return node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
    return None


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef, method: bool) -> Signature:
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    if method and positional and positional[0].arg in ("self", "cls"):
        positional = positional[1:]
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return Signature(
        header=f"{word} {node.name}({ast.unparse(args)}){returns}:",
        names=tuple(arg.arg for arg in [*positional, *args.kwonlyargs]),
        least=max(0, len(positional) - len(args.defaults)),
        most=None if args.vararg else len(positional),
        keywords=args.kwarg is not None,
    )
