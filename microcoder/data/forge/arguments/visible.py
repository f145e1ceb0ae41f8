"""Properties that all existing tests show, for problems with a guarantee that is not understood.

Nothing says that they are needed; but an input that keeps them is likelier to be a valid one. A property is only taken
where the tests could have shown the contrary: lists of one element are always sorted.
"""

from __future__ import annotations

import operator
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ..reading.facts import StatedFact
from ..reading.relations import Relation
from . import domains
from .places import Place, Property, Values, leaves
from .properties import tied
from .shapes import SEQUENCES, Shape


def visible(shapes: Mapping[str, Shape], examples: Sequence[Values]) -> list[Property]:
    """The properties that the tests have in common."""
    return [one for one in _candidates(shapes, examples) if all(map(one.holds, examples))]


def lengths_shown(shapes: Mapping[str, Shape], examples: Sequence[Values]) -> list[Relation]:
    """Lengths that tests have in common where no constraints are told: a number that is the length of a list, or is
    never beyond it; lists that are equally long."""
    out: list[Relation] = []
    held = [name for name, shape in shapes.items() if shape.kind in (*SEQUENCES, "str") and not shape.optional]
    if len(examples) < 2:
        return out
    for n, name in enumerate(held):
        for other in held[n + 1 :]:
            if all(len(one[name]) == len(one[other]) for one in examples):
                out.append(
                    Relation(f"len({name})", "==", f"len({other})", f"{name} and {other} are equally long in the tests")
                )
            more = {len(one[name]) - len(one[other]) for one in examples}
            if more in ({1}, {-1}) and len(examples) > 2 and len({len(one[name]) for one in examples}) > 1:
                long, short = (name, other) if more == {1} else (other, name)
                text = f"{long} is longer than {short} by one in the tests"
                out.append(Relation(f"len({long})", "==", f"len({short}) + 1", text))
        for number in (one for one, shape in shapes.items() if shape.kind == "int" and shape.low >= 0):
            for op in ("==", "<", "<="):
                pairs = [(one[number], len(one[name])) for one in examples]
                if all(_COMPARED[op](a, b) for a, b in pairs):
                    out.append(Relation(number, op, f"len({name})", f"{number} {op} the length of {name} in the tests"))
                    break
    return out


_COMPARED = {"==": operator.eq, "<": operator.lt, "<=": operator.le}


def alike(shapes: Mapping[str, Shape], examples: Sequence[Values]) -> list[Property]:
    """That a list of several types has no other mixture of them than one of the tests."""
    out = []
    for name, shape in shapes.items():
        if any(part.kind == "mixed" for part in shape.walk()):
            mixtures = [_types(one[name]) for one in examples]
            out.append(
                Property("types", f"the types in {name} are those of a test", partial(_typed_so, name, mixtures))
            )
    return out


_POSITIVE = re.compile(
    r"(?<!non)(?<!non[- ])\bpositive\b|(?<![-=<>])>(?: ?0|= ?1)\b|\b(?:greater|more) than (?:0|zero)\b", re.I
)
_LEAST = re.compile(r"\b(non-?empty|at least (?:one|two|three|[123]))\b", re.I)
_NO_DUPLICATES = re.compile(r"\b(?:no|not|n't|without)\b(?: \w+){0,2} duplicate", re.I)
_TASK = re.compile(r"\b(?:check|whether|determine|verify|true if|unbalanced|minimum|fewest)\b", re.I)


def by_the_way(statement: str, shapes: Mapping[str, Shape], examples: Sequence[Values]) -> list[Property]:
    """What a statement without constraints says of its inputs by the way: "a sorted array", "a positive integer", "a
    non-empty list", "no duplicates", "groups of nested parentheses". And that 0 is neither positive nor negative: it is
    left out where the tests have numbers of both signs and no 0."""
    statement, out = " ".join(statement.split()), list[Property]()
    if said := _POSITIVE.search(statement):
        out.append(Property("positive", f"numbers are positive ({said[0]})", _positive))
    for said in _LEAST.finditer(statement):
        least = _NUMBERS.get(said[1].lower().split()[-1], 1)
        held = [name for name, shape in shapes.items() if shape.kind in (*SEQUENCES, "str")]
        out.append(Property("least", f"lengths are at least {least} ({said[0]})", partial(_long, held, least)))
    for name, shape in shapes.items():
        if _NO_DUPLICATES.search(statement) and shape.kind in SEQUENCES and shape.longest > 1:
            text = f"{name} has no duplicates, as in the tests"
            out.append(Property("distinct", text, partial(_distinct, name), places=(Place(name),)))
        if shape.kind == "str" and "(" in shape.chars and re.search(r"\bnested|\bbalanced", statement, re.I):
            if not _TASK.search(statement):
                out += tied(StatedFact("brackets", (name,), "", f"{name} is balanced, as in the tests"), shapes, {})
    if re.search(r"\bsorted (?:\w+ )?(?:array|list|tuple|sequence)", statement, re.I):
        for name, shape in shapes.items():
            if shape.kind in SEQUENCES and shape.longest > 1:
                text, holds = f"{name} is sorted, as in the tests", partial(_sorted, name, "ascending")
                out.append(Property("sorted", text, holds, partial(_sort, name), value="ascending"))
    numbers = [one for example in examples for one in leaves(list(example.values())) if type(one) in (int, float)]
    if numbers and min(numbers) < 0 < max(numbers) and 0 not in numbers:
        out.append(Property("signs", "no number is 0, as in the tests", _without_zero))
    return [one for one in out if all(map(one.holds, examples))]


def enumerated(shapes: Mapping[str, Shape], words: Sequence[str]) -> list[Property]:
    """Texts that the tests take from a list of words, such as months, which the references have as literals."""
    out: list[Property] = []
    for name, shape in shapes.items():
        patterns = {pattern(one) for one in shape.pool} if shape.kind == "str" else set()
        allowed = [one for one in words if pattern(one) in patterns]
        if patterns and set(shape.pool) <= set(allowed) and len(set(shape.pool)) > 1 and len(max(shape.pool)) > 1:
            text, holds = f"{name} is a word of the references, as in the tests", partial(_one_of, name, allowed)
            out.append(Property("choices", text, holds, places=(Place(name),), value=allowed))
    return out


_NUMBERS = {"one": 1, "two": 2, "three": 3, "1": 1, "2": 2, "3": 3}


def _positive(values: Values) -> bool:
    return all(one > 0 for one in leaves(list(values.values())) if type(one) in (int, float))


def _long(names: Sequence[str], least: int, values: Values) -> bool:
    return all(len(values[name]) >= least for name in names if values[name] is not None)


def _one_of(name: str, allowed: Sequence[str], values: Values) -> bool:
    return values[name] in allowed


def _sort(name: str, rng: random.Random, values: Values) -> None:
    values[name] = sorted(values[name])


def _without_zero(values: Values) -> bool:
    return not any(type(one) in (int, float) and one == 0 for one in leaves(list(values.values())))


def _types(value: Any) -> frozenset[str]:
    inner = value if isinstance(value, list) else [value]
    return frozenset(f"{type(one).__name__}{sorted(_types(one)) if isinstance(one, list) else ''}" for one in inner)


def _typed_so(name: str, mixtures: Sequence[frozenset[str]], values: Values) -> bool:
    return any(_types(values[name]) <= one for one in mixtures)


def _candidates(shapes: Mapping[str, Shape], examples: Sequence[Values]) -> Iterator[Property]:
    for name, shape in shapes.items():
        if shape.kind in (*SEQUENCES, "tree", "links", "str"):
            yield from _of_list(name, examples)
        if shape.kind == "tree":
            yield Property(
                "shape",
                f"the children of nodes in {name}, as in the tests",
                partial(_children, name, _kinds(name, examples)),
            )
        yield from _of_texts(name, shape, examples)
    for name, shape in shapes.items():
        for other, its in shapes.items():
            if name == other or its.kind not in (*SEQUENCES, "str", "tree", "links"):
                continue
            if shape.kind == its.kind and name < other:
                yield Property(
                    "permutation",
                    f"{name} and {other} have the same values, as in the tests",
                    partial(_same, name, other),
                )
                yield Property(
                    "length", f"{name} and {other} are equally long, as in the tests", partial(_as_long, name, other)
                )
            if shape.kind not in ("bool", "none", "mixed"):
                yield Property(
                    "member", f"{name} is taken from {other}, as in the tests", partial(_within, name, other)
                )


def _of_list(name: str, examples: Sequence[Values]) -> Iterator[Property]:
    long = [one[name] for one in examples if one[name] is not None and len(one[name]) > 2]
    if long and not isinstance(long[0], str):
        yield Property("distinct", f"the values of {name} are distinct, as in the tests", partial(_distinct, name))
        for order in ("strictly ascending", "ascending", "strictly descending", "descending"):
            yield Property("sorted", f"{name} is {order}, as in the tests", partial(_sorted, name, order))
    if any(isinstance(row, (list, str)) for one in long for row in one):
        yield Property("rows", f"the rows of {name} are equally long, as in the tests", partial(_even_rows, name))
    counts = [Counter(map(repr, _parts(one[name]))) for one in examples]
    once = [value for value in counts[0] if len(examples) > 1 and all(count[value] == 1 for count in counts)]
    if len(once) <= 3:
        for value in once:
            yield Property("once", f"{name} has {value} once, as in the tests", partial(_once, name, value))
    if len(examples) > 2:  # two may agree by chance
        lengths = {len(one[name]) % 2 for one in examples if one[name] is not None}
        if len(lengths) == 1:
            yield Property(
                "even", f"the length of {name} is even or odd as in the tests", partial(_parity, name, lengths.pop())
            )
        ends = {repr(one[name][0]) for one in examples if one[name]}
        if len(ends) == 1:
            yield Property("first", f"{name} begins as in the tests", partial(_begins, name, ends.pop()))


def _of_texts(name: str, shape: Shape, examples: Sequence[Values]) -> Iterator[Property]:
    texts = [one for example in examples for one in leaves(example[name]) if isinstance(one, str)]
    if texts and any(re.search(r"[^A-Za-z ]", one) for one in texts):
        patterns = frozenset(pattern(one) for one in texts)
        yield Property("pattern", f"the texts of {name} are made as in the tests", partial(_made_so, name, patterns))


def pattern(text: str) -> str:
    """What a text is made of: `2012-01-05` is 0-0-0, `ab12` is a0."""
    return re.sub(r"[a-z]+", "a", re.sub(r"[A-Z]+", "A", re.sub(r"\d+", "0", text)))


def structured(shape: Shape, texts: Sequence[str]) -> bool:
    """Whether texts look like dates, times or records rather than like any string of some characters."""
    patterns = {pattern(one) for one in texts}
    marks = [set(re.sub(r"[A-Za-z0-9 ]", "", one)) for one in texts]
    return bool(texts) and all(marks) and len(patterns) <= max(1, len(texts) // 2)


def _parts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, str) else list(leaves(value))


def _distinct(name: str, values: Values) -> bool:
    return not domains.repeated([one for one in values[name] if one is not None])


def _sorted(name: str, order: str, values: Values) -> bool:
    return domains.ordered([one for one in values[name] if one is not None], order)


def _even_rows(name: str, values: Values) -> bool:
    return len({len(row) for row in values[name] if isinstance(row, (list, str))}) <= 1


def _once(name: str, value: str, values: Values) -> bool:
    return sum(repr(one) == value for one in _parts(values[name])) == 1


def _parity(name: str, rest: int, values: Values) -> bool:
    return len(values[name]) % 2 == rest


def _begins(name: str, value: str, values: Values) -> bool:
    return bool(values[name]) and repr(values[name][0]) == value


def _made_so(name: str, patterns: frozenset[str], values: Values) -> bool:
    return all(pattern(one) in patterns for one in leaves(values[name]) if isinstance(one, str))


def _same(name: str, other: str, values: Values) -> bool:
    return sorted(map(repr, _parts(values[name]))) == sorted(map(repr, _parts(values[other])))


def _as_long(name: str, other: str, values: Values) -> bool:
    return len(values[name]) == len(values[other])


def _within(name: str, other: str, values: Values) -> bool:
    held = set(map(repr, _parts(values[other])))
    mine = [values[name]] if not isinstance(values[name], (list, str)) else _parts(values[name])
    if isinstance(values[name], str) and isinstance(values[other], list):
        mine = [values[name]]
    return held.issuperset(map(repr, mine))


def _kinds(name: str, examples: Sequence[Values]) -> frozenset[int]:
    return frozenset(kind for one in examples for kind in _child_counts(one[name]))


def _child_counts(tree: Sequence[Any]) -> set[int]:
    """Which numbers of children the nodes of a tree have."""
    if not tree:
        return set()
    nodes, found = sum(one is not None for one in tree), set()
    for n in range(nodes):
        found.add(sum(one is not None for one in tree[1 + 2 * n : 3 + 2 * n]))
    return found


def _children(name: str, kinds: frozenset[int], values: Values) -> bool:
    return _child_counts(values[name]) <= kinds
