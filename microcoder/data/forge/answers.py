"""Several right answers: recognised, and compared in a way that accepts all of them, or left alone.

    one                  one right answer, compared as the problem says
    any order            elements (lines, for stdin) in any order: `Compare.unordered`
    sets of lists        elements in any order, and the elements of each in any order
    lists in any order   the elements of each list in any order, the lists themselves as they are
    either direction     a list or its reverse
    topological order    an order of the same elements that keeps to pairs of the input
    tolerance            a number that may be off by what the statement says
    any                  several right answers, and no way to tell them: inputs with an answer are left out, those
                         for which there is none ("return -1 if it is impossible") can be used

The statement says so ("return any", "in any order", "answers within 10^-5"), or references show it: they make a list
of a set, or disagree with each other in nothing but order. A checker of our own is only chosen where it accepts what
all existing tests expect and could tell wrong answers: it refuses those answers with two elements exchanged, or cut.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...judge.compare import compare_value
from ...schema import Compare, Problem
from ..filter.relevance import any_answer, any_order
from ..record import references
from .examples import value

DEFAULT = 1e-6  # the judge's own tolerance
LOOSER = ("equal", "tolerance", "any order", "sets of lists")  # what two right answers may differ by, strict to loose
WORDS = {"tolerance": "rounding", "any order": "order", "sets of lists": "the order of lists and of what is in them"}
TOLERANCE = 1e-5  # by which references may differ

_ORDER = re.compile(
    r"\border of (?:the )?(?:\w+ ){0,3}?(?:outputs?|answers?|results?|returned \w+|triplets|pairs)\b"
    r"[^.\n]{0,60}?\b(?:does not|doesn't|do not|don't|is not|isn't) (?:matter|important)",
    re.I,
)
_DEMANDED = re.compile(  # an order: what a statement says of one may be meant for the answer
    r"\b(?:sort(?:s|ed|ing)?|(?:as|des)cending|(?:in|de)creasing|lexicograph\w+|alphabetic\w+|order(?:s|ed|ing)?|"
    r"respectively|permutations?|(?:re)?arrang\w+|revers\w+|rotat\w+|shuffl\w+|swap\w*|mov(?:e|es|ed|ing)|merg\w+|"
    r"paths?|routes?|sequences?|traversals?|positions?|ind(?:ex|ices)|consecutive|adjacent|sub(?:array|list|sequence)s?|"
    r"prefix\w*|suffix\w*|i-?th|matri(?:x|ces)|grid|rows?|columns?|stack|queue|coordinates?|first|last|next|"
    r"from left|from right|flatten\w*|each element|every element|triangle)\b|(?:answer|ans|result|output)\[",
    re.I,
)
_EACH = re.compile(r"\bquer(?:y|ies)\b|\btest ?cases?\b|\bfor each\b|\beach (?:of|line|day|step)\b|\bi-th line\b", re.I)
_ONE_LINE = re.compile(r"\b(?:(?:one|same|single) line|space[- ]separated|separated by (?:a |single )?spaces?)\b", re.I)
_WITHIN = re.compile(
    r"\b(?:within|errors?|precision|tolerance|off by)\b[^.\n]{0,80}?"
    r"(?:10\^?\{?[-−–](?P<power>\d{1,2})\}?|1e-(?P<e>\d{1,2})|(?P<plain>0\.0{2,9}1)\b)",
    re.I,
)
_SETS = re.compile(
    r"\b(?:combinations?|subsets?|groups?|triplets?|quadruplets?|pairs?|partitions?|clusters?|teams?)\b", re.I
)
_PLACES = re.compile(r"\banswer\[0\]|\banswer of size 2\b")
_ARRANGED = re.compile(
    r"\b(?:permutations?|paths?|sequences?|arrangements?|subsequences?|coordinates?|intervals?|segments?)\b", re.I
)
_NONE = frozenset({"-1", "[]", "[-1]", "[-1,-1]", '""', "", "no", '"no"', "impossible", "null", "false", "-1-1"})

SETS_OF_LISTS = """\
def check(input, output, expected):
    def one(item):
        return sorted(map(repr, item)) if isinstance(item, (list, tuple, set)) else [repr(item)]
    def bag(value):
        return sorted(map(one, value))
    return isinstance(output, (list, tuple, set)) and bag(output) == bag(expected)
"""
LISTS_IN_ANY_ORDER = """\
def check(input, output, expected):
    def bags(value):
        return [sorted(map(repr, item)) if isinstance(item, (list, tuple, set)) else repr(item) for item in value]
    return isinstance(output, (list, tuple)) and bags(output) == bags(expected)
"""
EITHER_DIRECTION = """\
def check(input, output, expected):
    return isinstance(output, (list, tuple)) and list(output) in (list(expected), list(expected)[::-1])
"""
TOPOLOGICAL = """\
def check(input, output, expected):
    pairs = input[{argument!r}]
    if not isinstance(output, (list, tuple)) or sorted(map(repr, output)) != sorted(map(repr, expected)):
        return False
    place = {{item: n for n, item in enumerate(output)}}
    return all(place[a] {sign} place[b] for a, b in pairs if a in place and b in place)
"""


@dataclass(frozen=True, slots=True)
class Rule:
    """How answers to a problem are compared, and what says so."""

    name: str  # one of those above
    said: str = ""  # the words of the statement, or what references show
    unordered: bool = False
    tolerance: float | None = None
    checker: str = ""

    @property
    def open(self) -> bool:
        """Whether several answers are right and no checker can tell them."""
        return self.name == "any"

    def applied(self, compare: Compare) -> Compare:
        """The problem's comparison with this rule in it."""
        return replace(
            compare,
            unordered=compare.unordered or self.unordered,
            tolerance=compare.tolerance if self.tolerance is None else self.tolerance,
            checker=compare.checker or self.checker or None,
        )


ONE = Rule("one")


def rule(problem: Problem) -> Rule:
    """How answers to a problem are compared, by its statement, its references and its existing tests."""
    compare, text = problem.compare, problem.statement
    if compare.checker or compare.unordered or compare.validator_flags is not None:
        return ONE
    lower = text.lower()
    if said := any_answer(text, lower):
        return _any(problem, said)
    found = _ORDER.search(text)
    if said := any_order(text, lower) or (found[0] if found else ""):
        return _any_order(problem, said)
    if problem.kind != "stdin" and any(map(made_of_a_set, references(problem)[:3])):
        return _any_order(problem, "a reference makes a list of a set")
    tolerance = stated_tolerance(text)
    if tolerance is not None and tolerance > (compare.tolerance or DEFAULT):
        return Rule("tolerance", f"the statement allows an error of {tolerance:g}", tolerance=tolerance)
    return ONE


def usable(chosen: Rule, output: str) -> bool:
    """Whether an input with this answer may become a test: always, unless the rule is open and there is an answer."""
    if not chosen.open:
        return True
    lines = output.strip().lower().split("\n") or [""]
    return all("".join(line.split()) in _NONE for line in lines)


def reconciled(answers: Sequence[Any], tolerance: float = TOLERANCE) -> str:
    """What answers of several right programs to one input differ by, one of LOOSER; "" if by more than that.

    Answers are values; the text of stdin is compared as its lines, each with its words and numbers.
    """
    first, *others = [_as_value(answer) for answer in answers]
    for name in LOOSER:
        if all(_same(first, other, name, tolerance) for other in others):
            return name
    return ""


def harmless(problem: Problem) -> frozenset[str]:
    """What right answers to a problem may differ by (of LOOSER), as far as its statement demands nothing else."""
    rules, text = problem.compare, problem.statement
    if rules.checker or rules.unordered or rules.validator_flags is not None:
        return frozenset()
    demanded = _DEMANDED.search(text) or (problem.kind == "stdin" and _EACH.search(text))
    exact = rules.tolerance is not None or stated_tolerance(text) is not None
    orders = ("any order", "sets of lists") if problem.kind == "function" else ("any order",)
    return frozenset(() if exact else ("tolerance",)) | frozenset(() if demanded else orders)


def by_disagreement(problem: Problem, disagreements: Sequence[Sequence[Any]]) -> Rule | None:
    """The rule under which references agree, given their answers to each input on which they do not; None for none.

    Two inputs at least must show it, all of them the same way, and the statement must not demand an order: else a
    reference may be wrong.
    """
    names = {reconciled(answers) for answers in disagreements} - {"equal"}
    if not names or not names <= harmless(problem) or len(disagreements) < 2:
        return None
    name = max(names, key=LOOSER.index)
    said = f"references differ in {WORDS[name]} on {len(disagreements)} inputs"
    if name == "tolerance":
        return Rule(name, said, tolerance=TOLERANCE)
    if name == "any order":
        return Rule(name, said, unordered=True)
    return Rule(name, said, checker=SETS_OF_LISTS)


def stated_tolerance(text: str) -> float | None:
    """The error that a statement allows; None where it says nothing of it."""
    found = _WITHIN.search(text)
    if not found:
        return None
    power = found["power"] or found["e"]
    return 10.0 ** -int(power) if power else float(found["plain"])


def made_of_a_set(code: str) -> bool:
    """Whether a program returns a list or tuple that it makes of a set, in whatever order that has."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    sets: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _is_set(node.value, sets):
            sets |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    lists = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _list_of_set(node.value, sets)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    returned = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return) and node.value is not None]
    sorts = any(isinstance(node, ast.Attribute) and node.attr == "sort" for node in ast.walk(tree))
    return not sorts and any(
        _list_of_set(value, sets) or (isinstance(value, ast.Name) and value.id in lists) for value in returned
    )


def _is_set(node: ast.expr, sets: set[str]) -> bool:
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Name(id=name):
            return name in sets
        case ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.Call(func=ast.Attribute(attr="union" | "intersection" | "difference" | "symmetric_difference")):
            return True
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() | ast.Sub() | ast.BitXor(), right=right):
            return _is_set(left, sets) or _is_set(right, sets)
    return False


def _list_of_set(node: ast.expr, sets: set[str]) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[inner]):
            return _is_set(inner, sets)
        case ast.ListComp(generators=[ast.comprehension(iter=over)]):
            return _is_set(over, sets)
        case ast.List(elts=[ast.Starred(value=inner)]):
            return _is_set(inner, sets)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _list_of_set(left, sets) or _list_of_set(right, sets)
    return False


# --- the rule for an order, and for any answer


def _any_order(problem: Problem, said: str) -> Rule:
    if problem.kind == "stdin":  # what is compared without order is lines: each must be an item of a single answer
        items = all(len(line.split()) < 2 for test in problem.tests for line in test.output.splitlines())
        lines = items and not _EACH.search(problem.statement) and not _ONE_LINE.search(problem.statement)
        return Rule("any order", said, unordered=True) if lines else Rule("any", said)
    tests = _tests(problem)
    answers = [answer for _, answer in tests]
    if answers and not all(isinstance(answer, (list, tuple, set)) for answer in answers):
        return ONE
    nested = answers and any(answers) and all(isinstance(item, (list, tuple)) for answer in answers for item in answer)
    if nested and _PLACES.search(problem.statement) and len(set(map(len, answers))) == 1:
        return Rule("lists in any order", said, checker=LISTS_IN_ANY_ORDER)
    if nested and _SETS.search(problem.statement) and not _ARRANGED.search(problem.statement):
        bags = [[sorted(map(repr, item)) for item in answer] for answer in answers]
        if all(bag.count(item) == 1 for bag in bags for item in bag):
            return Rule("sets of lists", said, checker=SETS_OF_LISTS)
    return Rule("any order", said, unordered=True)


def _any(problem: Problem, said: str) -> Rule:
    """A checker of our own, where one accepts all that the tests expect and would refuse other answers."""
    if problem.kind == "function":
        tests = _tests(problem)
        for name, checker in _checkers(problem, tests):
            if _holds(checker, tests):
                return Rule(name, said, checker=checker)
    return Rule("any", said)


def _checkers(problem: Problem, tests: list[tuple[Any, Any]]) -> list[tuple[str, str]]:
    lower = problem.statement.lower()
    found = []
    if not tests or not all(isinstance(answer, list) for _, answer in tests):
        return []
    if "topological" in lower or "ordering" in lower or "prerequisite" in lower:
        found += [
            ("topological order", TOPOLOGICAL.format(argument=n, sign=sign))
            for n in range(len(tests[0][0]))
            for sign in "<>"
            if all(_pairs(given[n]) for given, _ in tests)
        ]
    if "adjacent" in lower and "pairs" in lower:
        found.append(("either direction", EITHER_DIRECTION))
    return found


def _pairs(argument: Any) -> bool:
    return isinstance(argument, list) and all(isinstance(item, list) and len(item) == 2 for item in argument)


def _holds(checker: str, tests: list[tuple[Any, Any]]) -> bool:
    """Whether one of our own checkers accepts every expected answer, and refuses most that were tampered with."""
    names: dict[str, Callable[[Any, Any, Any], bool]] = {}
    exec(checker, names)  # one of the library above
    check, refused, tried = names["check"], 0, 0
    for given, answer in tests:
        if not check(given, answer, answer):
            return False
        for n in range(len(answer) - 1):
            exchanged = [*answer[:n], answer[n + 1], answer[n], *answer[n + 2 :]]
            if exchanged != answer:
                tried += 1
                refused += not check(given, exchanged, answer)
        if answer and check(given, answer[:-1], answer):
            return False
    return 3 * refused >= tried > 0


def _tests(problem: Problem) -> list[tuple[Any, Any]]:
    """Arguments and expected answer of the tests, as far as they are literals."""
    found = []
    for test in problem.tests:
        try:
            found.append((value(test.input), value(test.output)))
        except ValueError:
            continue
    return found


# --- answers of several programs


def _as_value(answer: Any) -> Any:
    if not isinstance(answer, str) or "\n" not in answer.strip():
        return answer
    return [[_word(word) for word in line.split()] for line in answer.strip().split("\n")]


def _word(word: str) -> Any:
    try:
        return float(word) if "." in word else word
    except ValueError:
        return word


def _same(one: Any, other: Any, name: str, tolerance: float) -> bool:
    rules = Compare(tolerance=tolerance if name == "tolerance" else 1e-9, unordered=name == "any order")
    if name == "sets of lists":
        if not all(isinstance(side, (list, tuple)) for side in (one, other)):
            return False
        one, other = (_bags(side) for side in (one, other))
    return bool(compare_value(one, other, "robust", rules).strategy)


def _bags(value: Any) -> list[Any]:
    return sorted(sorted(map(repr, item)) if isinstance(item, (list, tuple)) else [repr(item)] for item in value)
