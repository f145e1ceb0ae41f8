"""The inputs that a function or assert problem allows: from its signature, its constraints and its existing tests.

    space = function_space(problem, references)      # or NoSpace, with the reason
    space.draw(rng, 0.2).input                       # '[[1, 1, 2], 3]': a JSON list of arguments
    space.call(input)                                # "twoSum([1, 1, 2], 3)": for asserts, with tuples, sets and trees

1. What the tests show is the least that is true: types at every depth, equal lengths. Constraints that the tests break
   were misread: they are dropped and told in `unread`.
2. What no constraint bounds stays within the hull of the tests, and `bounded_by` says so.
3. Where a guarantee cannot be read, the arguments that it names stay as they are in the existing tests (all of them if
   it names none), and the others are only changed a little at a time. NoSpace if that leaves nothing to change.
"""

from __future__ import annotations

import ast
import json
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ....schema import Problem
from ...process.formulas import restored_limits
from ..examples import is_json, plain_value
from ..reading.constraints import Constraints, harmless, read, total
from ..reading.relations import Checker, Relation, normal
from ..space import Candidate, NoSpace
from .beyond import beyond
from .bounds import Bounds
from .changes import changed
from .counts import symmetric
from .drawer import Drawer
from .places import Property, leaves
from .properties import tied
from .quantities import bring, with_powers
from .shapes import SEQUENCES, NotPlain, Shape, literal, observed, plain_of, written
from .visible import alike, by_the_way, enumerated, lengths_shown, structured, visible

TRIES = 12
LARGEST = 4_000_000  # characters of an input


def function_space(problem: Problem, references: Sequence[str] = ()) -> FunctionSpace:
    """The space of a function or assert problem. NoSpace where there are no plain arguments to learn from."""
    names = parameters(problem, references)
    calls = existing(problem, names)
    if not calls:
        raise NoSpace("no test whose arguments are plain values")
    counts = {len(call) for call in calls}
    if len(counts) != 1 or not counts - {0}:
        raise NoSpace("the tests call the function with different numbers of arguments, or with none")
    if len(names) != len(calls[0]):
        names = [(f"argument{n}", "") for n in range(len(calls[0]))]
    space = FunctionSpace(problem, names, calls, *_literals(references))
    if space.frozen == set(space.names):
        raise NoSpace(f"a guarantee about its inputs is not understood: {space.open[0]}")
    return space


class FunctionSpace:
    """A `Space` (see space.py) of lists of arguments."""

    def __init__(
        self,
        problem: Problem,
        names: list[tuple[str, str]],
        calls: list[list[Any]],
        constants: Sequence[int] = (),
        words: Sequence[str] = (),
    ):
        self.words = words
        self.names = [name for name, _ in names]
        self.entry_point = problem.entry_point
        self.shapes = {
            name: observed([call[n] for call in calls], annotation) for n, (name, annotation) in enumerate(names)
        }
        self.examples = [dict(zip(self.names, map(plain_of, call), strict=True)) for call in calls]
        statement = problem.statement
        if problem.platform == "leetcode" or problem.entry_point.startswith("Solution."):
            statement = restored_limits(statement)
        found = read(statement)
        self.unread = list(found.unread)
        columns = _columns(found, self.shapes)
        self.quantities = bring(found.relations, self.shapes, columns, statement, _flat(found, self.shapes))
        self.unread += self.quantities.unread
        for name in dict.fromkeys(parameter for parameter, _ in columns.values()):
            width, text = len(found.columns[name]), f"{name}[i] = [{', '.join(found.columns[name])}]"
            self.quantities.add(Relation(f"len({name}[{name}__0])", "==", str(width), text), set(self.shapes))
        self.properties = self._true(found, columns) + self._symmetric()
        self._drop_misread()
        if not found.section:
            for relation in lengths_shown(self.shapes, self.examples):
                self.quantities.add(relation, set(self.shapes))
            self.properties += alike(self.shapes, self.examples)
            self.properties += by_the_way(statement, self.shapes, self.examples)
            self.properties += enumerated(self.shapes, words)
        self.bounds = Bounds(
            self.shapes, self.quantities, self.properties, found.relations, self.examples, found.section
        )
        self.drawer = Drawer(self.bounds, constants)
        self.properties = self.bounds.properties
        self.bounded_by = "hull" if self.bounds.hulled else "constraints"
        self.open = self._not_understood(found)
        self.frozen = {name for text in self.open for name in _named(text, self.names, columns)}
        if self.guarded:
            self.properties += visible(self.shapes, self.examples)
        self.unread = list(dict.fromkeys(self.unread))

    @property
    def tried(self) -> list[str]:
        """The inputs of the existing tests."""
        return [json.dumps(self._listed(values)) for values in self.examples]

    @property
    def guarded(self) -> bool:
        """Whether there is a guarantee that is not understood."""
        return bool(self.open)

    def _true(self, found: Constraints, columns: dict[str, tuple[str, int]]) -> list[Property]:
        """The properties that all existing tests have."""
        out: list[Property] = []
        lengths = {
            name: f"{term[4:-1]}.length" for name, term in self.quantities.symbols.items() if term.startswith("len(")
        }
        for fact in found.facts:
            fact = replace(fact, subjects=tuple(lengths.get(one, one) for one in fact.subjects))
            out += [one for one in tied(fact, self.shapes, columns) if _safely(one.holds, self.examples)]
        understood = {one.text for one in out}
        self.unread += [fact.text for fact in found.facts if fact.told and fact.text not in understood]
        return out

    def _symmetric(self) -> list[Property]:
        """Tables that relations make symmetric: g[i][j] == g[j][i], g[i][i] == 1."""
        out = []
        for checker in self.quantities.checkers:
            one = checker.relation
            if one.op == "==" and (match := re.fullmatch(r"(\w+)\[(\w+)\]\[(\w+)\]", one.left)):
                name, i, j = match.groups()
                if i != j and one.right == f"{name}[{j}][{i}]" and _safely(checker.holds, self.examples):
                    ends = [r.right for r in self.quantities.about.get(f"{name}[{name}__0][{name}__0]", [])]
                    diagonal = next((int(end) for end in ends if re.fullmatch(r"-?\d+", end)), None)
                    out.append(symmetric(name, diagonal, one.text))
        return out

    def _not_understood(self, found: Constraints) -> list[str]:
        """Sentences of guarantee that are not understood, and texts that look like more than characters."""
        understood = {one.text for one in self.properties}
        told = {fact.text for fact in found.facts if fact.told}
        read = {normal(text).strip() for text in told} & {one.text for one in found.relations}
        out = list(found.unread)
        out += [text for text in sorted(told - understood) if normal(text).strip() not in read]
        section = {one.text for one in found.relations}
        for text in self.unread:
            if text in section and not harmless(text):
                most = total(text)
                if most is None:
                    out.append(text)
                else:
                    self.properties.append(Property("total", text, partial(_small, most)))
        for name, shape in self.shapes.items():
            texts = [one for example in self.examples for one in leaves(example[name]) if isinstance(one, str)]
            read_as = {spot.parameter for one in self.properties if one.name in ("date", "time") for spot in one.places}
            if name not in read_as and structured(shape, texts) and f"the characters of {name}" in self.bounds.hulled:
                out.append(f"how the texts of {name} are made")
        self.unread += out
        return list(dict.fromkeys(out))

    def _drop_misread(self) -> None:
        """Drop relations that the tests break; one that has lost an exponent (27 for 2^7) gets it back."""
        for checker in list(self.quantities.checkers):
            if _safely(checker.holds, self.examples):
                continue
            self.quantities.drop(checker)
            again = with_powers(checker.relation)
            if again is None or not _safely(Checker(again, set(self.shapes)).holds, self.examples):
                self.unread.append(checker.relation.text)
            else:
                self.quantities.add(again, set(self.shapes))

    # --- Space

    def draw(self, rng: random.Random, size: float) -> Candidate | None:
        """A new input; where a guarantee is not understood, an existing one that was changed a few times."""
        if self.guarded:
            given = json.dumps(self._listed(rng.choice(self.examples)))
            by = "example"
            for _ in range(rng.randint(1, 3 + int(5 * size))):
                new = self.near(given, rng)
                if new is not None:
                    given, by = new.input, new.by
            return Candidate(given, by) if by != "example" else None
        for _ in range(TRIES if size < 0.6 else 3):  # a large input takes its time
            values = self.drawer.draw(rng, size)
            if values is None:
                continue
            if not self._fault(values):
                by = "small" if size < 0.3 else "limit" if size > 0.85 else "random"
                return Candidate(json.dumps(self._listed(values)), by)
        return None

    def near(self, input: str, rng: random.Random) -> Candidate | None:
        """A valid input with a small change."""
        before = self._given(input)
        for _ in range(2 * TRIES if before else 0):
            values = dict(zip(self.names, self._given(input), strict=True))
            how = changed(rng, values, self.shapes, self.drawer, self.frozen)
            if any(values[name] != old for name, old in zip(self.names, before, strict=True) if name in self.frozen):
                continue
            if how and self._listed(values) != before and not self._fault(values):
                return Candidate(json.dumps(self._listed(values)), f"mutated: {how}")
        return None

    def fault(self, input: str) -> str:
        """The constraint that an input breaks; "" if it breaks none."""
        if len(input) > LARGEST:
            return f"the input has {len(input)} characters, over {LARGEST}"
        given = self._given(input)
        return self._fault(dict(zip(self.names, given, strict=True))) if given else "the arguments are other ones"

    def beyond(self, input: str, rng: random.Random) -> str:
        """An input that may lie beyond what the tests show, so that no test can be made of it: see beyond.py."""
        values = [beyond(rng, one, self.drawer.constants, self.words) for one in self._given(input)]
        return json.dumps(values)

    def size_of(self, input: str) -> float:
        """How large an input is, from 0 to 1."""
        given = self._given(input)
        return self.bounds.size_of(dict(zip(self.names, given, strict=True))) if given else 0.0

    def call(self, input: str) -> str:
        """The call of the function with these arguments as Python source, as the asserts of the problem have it."""
        head, _, method = self.entry_point.rpartition(".")
        name = f"{head}().{method}" if head else method
        given = json.loads(input)
        return f"{name}({', '.join(written(one, self.shapes[p]) for p, one in zip(self.names, given, strict=True))})"

    def _given(self, input: str) -> list[Any]:
        """The arguments of an input in their order; [] where an existing test has other ones."""
        given = arguments_of(input, self.names)
        return given if given is not None and len(given) == len(self.names) else []

    def _listed(self, values: dict[str, Any]) -> list[Any]:
        return [values[name] for name in self.names]

    def _fault(self, values: dict[str, Any]) -> str:
        for name, shape in self.shapes.items():
            if wrong := shape.fault(values[name], name):
                return wrong
        if wrong := self.bounds.node_fault(values):
            return wrong
        for checker in self.quantities.checkers:
            try:
                if not checker.holds(values):
                    return f"not {checker.relation.text}"
            except Exception as error:
                return f"{checker.relation.text}: {error}"
        for one in self.properties:
            if not _safely(one.holds, [values]):
                return f"not so: {one.text}"
        return ""


def _named(sentence: str, names: Sequence[str], columns: dict[str, tuple[str, int]]) -> set[str]:
    """The parameters that a sentence speaks of ("the i-th query" of queries); all, if it names none."""
    words = {_stem(word) for word in re.findall(r"[A-Za-z]\w*", sentence)}
    said = {name for name in names if _stem(name) in words}
    said |= {parameter for part, (parameter, _) in columns.items() if _stem(part) in words}
    return said or set(names)


def _stem(word: str) -> str:
    word = word.lower()
    return word[:-3] + "y" if word.endswith("ies") else word.rstrip("s")


def _small(most: float, values: dict[str, Any]) -> bool:
    """Whether all is so small that no sum of numbers, of products of two, or of lengths is above a number."""
    held = list(leaves(list(values.values())))
    numbers = sum(abs(one) for one in held if isinstance(one, (int, float)))
    return numbers**2 <= most and sum(len(one) for one in held if isinstance(one, str)) <= most


def _safely(holds: Any, all_values: Sequence[dict[str, Any]]) -> bool:
    """Whether it holds for all values; of many tests one in ten may be one that breaks the constraints itself."""
    wrong = 0
    for values in all_values:
        try:
            wrong += not holds(values)
        except Exception:
            wrong += 1
    return wrong <= len(all_values) // 10


def _columns(found: Constraints, shapes: dict[str, Shape]) -> dict[str, tuple[str, int]]:
    """Names of columns: {"ai": ("edges", 0)}."""
    out: dict[str, tuple[str, int]] = {}
    for name, parts in found.columns.items():
        shape = shapes.get(name)
        if shape is not None and shape.item is not None and (shape.item.item or shape.item.items):
            if shape.item.longest >= len(parts) > 0:
                for n, part in enumerate(parts):
                    out.setdefault(part, (name, n))
                    out.setdefault(part.replace("_", ""), (name, n))
    return out


def _flat(found: Constraints, shapes: dict[str, Shape]) -> dict[str, str]:
    """Names of the places of a list of numbers: {"row": "start[0]"}."""
    return {
        part: f"{name}[{n}]"
        for name, parts in found.flat.items()
        if (shape := shapes.get(name)) is not None and shape.kind in SEQUENCES and shape.item is not None
        and shape.item.kind == "int" and shape.shortest == shape.longest == len(parts)
        for n, part in enumerate(parts)
    }  # fmt: skip


# --- what a problem shows


def _literals(references: Sequence[str]) -> tuple[list[int], list[str]]:
    """Whole numbers and texts in the references, as a test would have to hit them."""
    numbers, words = set[int](), set[str]()
    for code in references:
        try:
            found = [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        numbers |= {one for one in found if type(one) is int and abs(one) > 1}
        words |= {one for one in found if isinstance(one, str) and 0 < len(one) <= 40}
    return sorted(numbers), sorted(words)


def parameters(problem: Problem, references: Sequence[str] = ()) -> list[tuple[str, str]]:
    """(name, annotation) of each parameter, from the starter code or else from a reference."""
    name = problem.entry_point.rpartition(".")[2]
    for code in (problem.starter_code.rstrip() + " pass", problem.starter_code, *references):
        try:
            tree = ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        found = [
            node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and (not name or node.name == name)
        ]
        if found:
            arguments = [*found[-1].args.posonlyargs, *found[-1].args.args]
            return [
                (one.arg, ast.unparse(one.annotation) if one.annotation else "")
                for one in arguments
                if one.arg not in ("self", "cls")
            ]
    return []


def existing(problem: Problem, names: list[tuple[str, str]]) -> list[list[Any]]:
    """The arguments of every existing test as values of Python; tests with other arguments are left out."""
    if problem.kind == "function":
        calls = [arguments_of(test.input, [name for name, _ in names]) for test in problem.tests]
        return [call for call in calls if call is not None]
    found: list[list[Any]] = []
    entry = problem.entry_point.rpartition(".")[2]
    for program in problem.asserts:
        try:
            tree = ast.parse(program)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _called(node.func) in (entry, "candidate"):
                try:
                    found.append(_arguments(node, [name for name, _ in names]))
                except NotPlain:
                    continue
    return [call for call in found if len(call) == len(found[0])] if found else []


def arguments_of(text: str, names: Sequence[str]) -> list[Any] | None:
    """The arguments of a function's test in their order; None where they are other ones, or JSON cannot carry them."""
    try:
        given = plain_value(text)
    except ValueError:
        return None
    if isinstance(given, dict):
        given = [given[name] for name in names] if set(given) == set(names) else None
    return given if isinstance(given, list) and is_json(given) else None


def _called(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _arguments(node: ast.Call, names: list[str]) -> list[Any]:
    given = [literal(one) for one in node.args]
    named = {str(word.arg): literal(word.value) for word in node.keywords}
    rest = names[len(given) : len(given) + len(named)]
    if set(rest) != set(named):
        raise NotPlain("arguments with other names than the parameters")
    return given + [named[name] for name in rest]
