r"""Relations between quantities: `0 <= ai < bi <= n - 1` read from text, checked on values, used as bounds.

    relations("1 <= n, m <= 2 * 10^5")      # 1 <= n, 1 <= m, n <= 200000, m <= 200000
    relations(r"1 \leq A_i \leq N")         # 1 <= A[i], A[i] <= N

Terms are Python expressions in a normal form: `nums.length`, `|S|` and `len(s)` are len(...), `10^5` is 10 ** 5, `2n`
is 2 * n, `a_i` is a[i], `n!` is factorial(n). A `Checker` tells for values whether a relation holds for all of its
indices (a name in a subscript that is no value's is an index); `narrowed` gives what it leaves for one quantity.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Values = Mapping[str, Any]

OPPOSITE = {"<=": ">=", ">=": "<=", "<": ">", ">": "<", "==": "==", "!=": "!="}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "len": len, "abs": abs, "min": min, "max": max, "sum": sum, "floor": math.floor, "ceil": math.ceil,
    "int": int, "range": range, "factorial": lambda n: math.factorial(min(n, 30)), "all": all, "sqrt": math.sqrt,
    "comb": lambda n, k: math.comb(n, k) if min(k, n - k) < 1000 else math.inf,
    "count": lambda nodes: sum(one is not None for one in nodes),
    "total": lambda lists: sum(map(len, lists)),
    "digits": lambda number: len(str(abs(int(number)))),
}  # fmt: skip
_ALLOWED = (
    ast.Expression, ast.Name, ast.Load, ast.Subscript, ast.Constant, ast.BinOp, ast.UnaryOp, ast.USub, ast.UAdd,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.Call, ast.List,
)  # fmt: skip
_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_CURLY = str.maketrans("‘’“”", "''\"\"")

_REWRITTEN: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (re.compile(r"&lt;"), "<"),
    (re.compile(r"&gt;"), ">"),
    (re.compile(r"\\(?:leqslant|leqq|leq|le)(?![a-zA-Z])|≤|⩽|≦|=<"), "<="),
    (re.compile(r"\\(?:geqslant|geqq|geq|ge)(?![a-zA-Z])|≥|⩾|≧|=>"), ">="),
    (re.compile(r"\\lt(?![a-zA-Z])"), "<"),
    (re.compile(r"\\gt(?![a-zA-Z])"), ">"),
    (re.compile(r"\\neq?(?![a-zA-Z])|≠|<>"), "!="),
    (re.compile(r"\\(?:times|cdot|ast)(?![a-zA-Z])|×|·|∗"), "*"),
    (re.compile(r"\\(?:ldots|dots|cdots|vdots)(?![a-zA-Z])|…"), "..."),
    (re.compile(r"\\(?:l?d?frac)\{([^{}]*)\}\{([^{}]*)\}"), r"((\1)/(\2))"),
    (re.compile(r"\\l?floor|\\r?floor|\\l?ceil|\\r?ceil|\\left|\\right"), ""),
    (re.compile(r"\\(?:min|max)(?![a-zA-Z])"), lambda m: m.group()[1:]),
    (re.compile(r"\\(?:mathrm|text|textbf|mathbf|texttt|operatorname)\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\[lr]?vert(?![a-zA-Z])|\\\|"), "|"),
    (re.compile(r"\\[,;:! ]|~|\{,\}|[$`]|\*\*(?=\s|$)"), ""),
    (re.compile(r"[−–—]"), "-"),
    (re.compile(r"\bMath\.|\bmath\."), ""),
    (re.compile(r"([A-Za-z])_\{(\w+)\s*,\s*(\w+)\}"), r"\1[\2][\3]"),
    (re.compile(r"([A-Za-z])_(\w)\s*,\s*(\w)(?![\w.\[])"), r"\1[\2][\3]"),
    (re.compile(r"([A-Za-z])_\{([^{}]*)\}"), r"\1[\2]"),
    (re.compile(r"([A-Za-z])_([A-Za-z0-9])(?![A-Za-z0-9_])"), r"\1[\2]"),
    (re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]+"), lambda m: "^" + m.group().translate(_SUPERSCRIPT)),
    (re.compile(r"\^\{([^{}]*)\}"), r"**(\1)"),
    (re.compile(r"\^"), "**"),
    (re.compile(r"(?<=\d),(?=\d{3}(?:\D|$))"), ""),
    (re.compile(r"(?<=\d) (?=\d{3}(?:\D|$))"), ""),
    (re.compile(r"(?<![\w.])(\d+)e(\d+)\b"), r"\1*10**\2"),
    (re.compile(r"(?<![\w.])(\d+)(?=[A-Za-z(](?!\w*\())"), r"\1*"),
    (re.compile(r"(?<=[\w)\]])\.(?:length|size)(?:\(\))?"), ".length"),
    (re.compile(r"(\w)!(?!=)"), r"factorial(\1)"),
    (re.compile(r"\|\s*([A-Za-z]\w*(?:\[\w+\])*)\s*\|"), r"len(\1)"),
    (re.compile(r"\|([^|<>=]+)\|"), r"abs(\1)"),
    (re.compile(r"(?<![<>=!])=(?![=<>])"), "=="),
    (re.compile(r"\b[Ss]um(?:\(| of )(?:all )?([A-Za-z]\w*)\[\w\]\.length\)?"), r"total(\1)"),
    (re.compile(r"\b[Ss]um(?:\(| of )(?:all )?([A-Za-z]\w*)\[\w\](?!\[)\)?"), r"sum(\1)"),
    (
        re.compile(
            r"\b[Ss]um of (?:the )?lengths? of (?:all )?(?:the )?(?:(?:strings|words|elements|arrays) (?:in|of) )?"
            r"([A-Za-z]\w*)"
        ),
        r"total(\1)",
    ),
    (re.compile(r"\b(max|min)\(([A-Za-z]\w*)\[[a-z]\]\)"), r"\1(\2)"),
    (re.compile(r"(?<=\d) x (?=10\b)"), " * "),
    (re.compile(r"(?:is |are )(?:(?:smaller|less) than or equal(?: to)?|not greater than|at most)(?= \d)"), "<="),
    (re.compile(r"(?:does|do|will|must|should) not exceed"), "<="),
]
_OPERATOR = re.compile(r"<=|>=|==|!=|<|>")
_QUOTES = re.compile(r"'[^'\n]{0,20}'|\"[^\"\n]{0,20}\"")


@dataclass(frozen=True, slots=True)
class Relation:
    """`left op right`, each side Python source in the normal form."""

    left: str
    op: str
    right: str
    text: str  # where it was read

    def turned(self) -> Relation:
        return Relation(self.right, OPPOSITE[self.op], self.left, self.text)


def normal(text: str) -> str:
    """The text with one spelling for operators, powers, subscripts and lengths."""
    text = text.translate(_CURLY).replace("\xa0", " ")
    quoted: list[str] = []

    def keep(match: re.Match[str]) -> str:
        quoted.append(match.group())
        return f"\x00{chr(0xE000 + len(quoted))}"

    text = _QUOTES.sub(keep, text)
    for pattern, new in _REWRITTEN:
        text = pattern.sub(new, text)
    for n, one in enumerate(quoted, 1):
        text = text.replace(f"\x00{chr(0xE000 + n)}", one)
    return text


@lru_cache(4096)
def expression(text: str) -> str | None:
    """A term as Python source in the normal form; None if it is none."""
    text = text.strip().strip(".;:,").strip()
    if not text or len(text) > 120:
        return None
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    tree = _Lengths().visit(tree)
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            return None
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS):
            return None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            power = node.right
            if isinstance(power, ast.Constant) and isinstance(power.value, int) and power.value > 200:
                return None
    return ast.unparse(tree)


class _Lengths(ast.NodeTransformer):
    """`x.length` becomes len(x); `Node.val` becomes a name of its own."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr == "length":
            return ast.Call(ast.Name("len", ast.Load()), [node.value], [])
        if node.attr == "val" and isinstance(node.value, ast.Name):
            return ast.Name("Node_val" if node.value.id[:1].isupper() else f"{node.value.id}_val", ast.Load())
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Div):
            node.op = ast.FloorDiv()
        return node


def relations(text: str) -> list[Relation]:
    """All relations that a line, a formula or the inside of brackets gives."""
    found: list[Relation] = []
    text = normal(text)
    whole = text.strip()
    text = _EVERY.sub(lambda match: f" starting {_start(match)} ;", text)
    for part in re.split(r"\band\b|\bwhere\b|\bwhen\b|\bif\b|;|\bfor (?:all|each|every|any)\b|\(inclusive\)", text):
        if _OPERATOR.search(part):
            part, _, start = part.partition(" starting ")
            for chain in _chains(part):
                found += [_from(one, int(start or 0)) for one in _of_chain(chain, whole)]
    return found


# "for all i >= 1", "for every 0 <= i < n": which indices a relation is about
_EVERY = re.compile(
    r",?\s*\b(?:for|where) (?:all |each |every |any )?(?:valid )?(?:ind(?:ex|ices) )?"
    r"(?:(\d+) ?<=? ?[ijk](?:, ?[ijk])? ?<=? ?[\w.() +-]+?|[ijk] ?(>=?|!=(?= ?0)) ?(\d+))\s*(?=[.;,]|$|\band\b)"
)


def _start(match: re.Match[str]) -> int:
    """The first index: 1 of "for all i >= 1", "for i > 0", "for i != 0"."""
    return int(match[1] or match[3]) + (match[2] in (">", "!="))


def _from(relation: Relation, start: int) -> Relation:
    """The relation for indices from `start` on: about x[i + start] for x[i]."""
    if not start:
        return relation
    new = {name: f"({name} + {start})" for name in ("i", "j", "k")}
    left, right = (_subscripts(side, new) for side in (relation.left, relation.right))
    return Relation(left, relation.op, right, relation.text)


def _subscripts(source: str, new: Mapping[str, str]) -> str:
    """The term with names in subscripts replaced."""
    tree = ast.parse(source, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            node.slice = ast.parse(renamed(ast.unparse(node.slice), new), mode="eval").body
    return ast.unparse(tree)


def _chains(text: str) -> list[str]:
    """The text cut at commas between two chains: `1 <= a <= 5, 1 <= b <= 7` but not `1 <= a, b <= 7`."""
    pieces = _split(text, ",")
    chains = [pieces[0]]
    for piece in pieces[1:]:
        before = _operands(chains[-1])
        after = _operands(piece)
        complete = len(before) >= 3 or (len(before) == 2 and not _number(before[0][0]))
        alike = len(before) == 2 == len(after) and _alike(before[-1][-1], after[0][0])  # a <= x1, x2 <= b
        if len(after) >= 2 and complete and not alike and (_number(after[0][0]) or len(before) == 2 or "!=" in piece):
            chains.append(piece)
        else:
            chains[-1] += "," + piece
    return chains


def _alike(one: str, other: str) -> bool:
    """Whether two names differ in numbers only."""
    bare = [re.sub(r"\d", "", term.strip()) for term in (one, other)]
    return bare[0] == bare[1] and one.strip() != other.strip() and bare[0].isidentifier()


def _operands(chain: str) -> list[list[str]]:
    """The terms of a chain, each as the list of what commas part."""
    out, last = [], 0
    for match in _operators(chain):
        out.append(chain[last : match.start()])
        last = match.end()
    out.append(chain[last:])
    return [_split(term, ",") for term in out]


def _operators(chain: str) -> list[re.Match[str]]:
    hidden = _QUOTES.sub(lambda m: "x" * len(m.group()), chain)
    return list(_OPERATOR.finditer(hidden))


def _number(text: str) -> bool:
    source = expression(text)
    return source is not None and not any(isinstance(node, ast.Name) for node in ast.walk(ast.parse(source)))


def _split(text: str, mark: str) -> list[str]:
    """The text cut at a mark outside of brackets and quotes."""
    out, depth, last, quote = [], 0, 0, ""
    for n, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"" and (n == 0 or not text[n - 1].isalnum()):
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == mark and depth <= 0:
            out.append(text[last:n])
            last = n + 1
    return [*out, text[last:]]


def _of_chain(chain: str, text: str) -> list[Relation]:
    operators = [match.group() for match in _operators(chain)]
    if not operators:
        return []
    operands = _operands(chain)
    groups: list[list[str]] = []
    for n, terms in enumerate(operands):
        first, last = n == 0, n == len(operands) - 1
        group = []
        for k, term in enumerate(terms):
            source = expression(term)
            if source is None and first and k == 0:
                source = _trimmed(term, from_left=True)
            if source is None and last and k == len(terms) - 1:
                source = _trimmed(term, from_left=False)
            if source is not None:
                group.append(source)
            elif not (first or last):
                group = []
                break
        groups.append(group)
    return [
        Relation(left, op, right, text)
        for op, lefts, rights in zip(operators, groups, groups[1:], strict=False)
        for left in lefts
        for right in rights
    ]


def _trimmed(term: str, from_left: bool) -> str | None:
    """The term without the words before it, or after it."""
    words = term.split()
    if len(words) > 40:
        words = words[-40:] if from_left else words[:40]
    for n in range(len(words)):
        part = words[n:] if from_left else words[: len(words) - n]
        text = " ".join(part)
        if from_left and text.count("(") > text.count(")"):
            text = text.replace("(", "", 1)
        elif not from_left and text.count(")") > text.count("("):
            text = text.removesuffix(")")
        source = expression(text)
        if source is not None:
            return source
    return None


# --- checking


def names(source: str) -> set[str]:
    """The names in a term that are no functions."""
    tree = ast.parse(source, mode="eval")
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called}


def renamed(source: str, new: Mapping[str, str]) -> str:
    """The term with names replaced by terms."""
    tree = ast.parse(source, mode="eval")

    class OtherNames(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return ast.parse(new[node.id], mode="eval").body if node.id in new else node

    return ast.unparse(OtherNames().visit(tree))


GLOBALS: dict[str, Any] = {"__builtins__": {}, **_FUNCTIONS}  # what terms may use


@lru_cache(8192)
def compiled(source: str) -> Any:
    """The code of a term."""
    return compile(source, "<relation>", "eval")


def value(source: str, values: Values) -> Any:
    """What a term is, given the values of its names. Raises what Python raises."""
    return eval(compiled(source), {**GLOBALS, **values})


@dataclass(frozen=True, slots=True)
class Loop:
    """An index and what it runs over."""

    name: str
    over: str  # a term


def loops(sources: Iterable[str], known: set[str]) -> list[Loop] | None:
    """The indices in terms, in an order in which each can be run over; None where one cannot."""
    found: dict[str, str] = {}
    free: set[str] = set()
    for source in sources:
        tree = ast.parse(source, mode="eval")
        free |= names(source) - known
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript):
                for name in names(ast.unparse(node.slice)) - known:
                    base = ast.unparse(node.value)
                    if name not in found or len(base) < len(found[name]):
                        found[name] = base
    if free - set(found):
        return None
    out: list[Loop] = []
    done = set(known)
    while len(out) < len(found):
        ready = [n for n, base in found.items() if n not in done and names(base) <= done]
        if not ready:
            return None
        out.append(Loop(ready[0], found[ready[0]]))
        done.add(ready[0])
    return out


class Checker:
    """Tells whether a relation holds for values, for all of its indices."""

    def __init__(self, relation: Relation, known: set[str]):
        self.relation = relation
        found = loops([relation.left, relation.right], known)
        if found is None:
            raise ValueError(f"{relation.text}: a name that is not known")
        self.loops = found
        self.names = (names(relation.left) | names(relation.right)) - {loop.name for loop in found}
        guards = [
            f"0 <= {ast.unparse(node.slice)} < len({ast.unparse(node.value)})"
            for source in (relation.left, relation.right)
            for node in ast.walk(ast.parse(source, mode="eval"))
            if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant)
            and not (isinstance(node.slice, ast.Name) and any(
                loop.name == node.slice.id and loop.over == ast.unparse(node.value) for loop in found))
        ]  # fmt: skip
        test = f"{relation.left} {relation.op} {relation.right}"
        if guards:
            test = f"not ({' and '.join(dict.fromkeys(guards))}) or {test}"
        if found:
            runs = " ".join(f"for {loop.name} in range(len({loop.over}))" for loop in found)
            test = f"all({test} {runs})"
        self.source = test

    def holds(self, values: Values) -> bool:
        """Whether it holds; an error of Python where it says nothing about such values."""
        space = {**GLOBALS, **values}
        return bool(eval(compiled(self.source), space))


def about(relation: Relation, quantity: str) -> Relation | None:
    """The relation with the quantity alone on its left; None if it stands alone on neither side."""
    if relation.left == quantity:
        return relation
    return relation.turned() if relation.right == quantity else None


def narrowed(low: float, high: float, relations: Sequence[Relation], values: Values) -> tuple[float, float, list[Any]]:
    """Bounds of whole numbers after relations `quantity op term`; and values that are not allowed.

    A relation whose term has no value yet says nothing.
    """
    unequal: list[Any] = []
    for relation in relations:
        try:
            other = value(relation.right, values)
        except Exception:
            continue
        if isinstance(other, str) and re.fullmatch(r"-?\d+", other):
            other = int(other)
        if not isinstance(other, (int, float)) or isinstance(other, bool):
            continue
        whole = math.floor(other) if math.isfinite(other) else other
        match relation.op:
            case "<=":
                high = min(high, whole)
            case "<":
                high = min(high, whole - 1 if whole == other else whole)
            case ">=":
                low = max(low, math.ceil(other))
            case ">":
                low = max(low, whole + 1)
            case "==":
                low, high = max(low, whole), min(high, whole)
            case "!=":
                unequal.append(other)
    return low, high, unequal
