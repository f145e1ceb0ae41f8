"""Match, the names of the strategies, and the short texts that messages are made of."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any, NamedTuple

# From the strictest to the most lenient. "bytes" to "unordered" cannot accept a wrong answer (the exact_ ones only
# under the policy `exact`); the rest belong to the policy `paper` and can.
STRATEGIES = (
    "bytes",
    "equal",
    "exact_lines",
    "lines",
    "tokens",
    "sequence",
    "array",
    "json_keys",
    "exact_decimals",
    "numbers",
    "words",
    "literal",
    "icpc",
    "unordered",
    "allclose",
    "unordered_lines",
    "unordered_tokens",
    "unordered_values",
    "string_form",
)
_RANK = {name: rank for rank, name in enumerate(STRATEGIES, start=1)}


class Match(NamedTuple):
    """The result of a comparison: the strategy that accepted, or "" and the first difference as `message`."""

    strategy: str
    message: str


def weakest(names: Iterable[str]) -> str:
    """The most lenient of these strategies. A name from elsewhere (a checker) counts as weaker than all of ours."""
    return max(names, key=lambda name: _RANK.get(name, len(_RANK) + 1) if name else 0, default="")


def differ(message: str) -> Match:
    return Match("", message if len(message) <= 200 else message[:197] + "...")


def shorten(data: bytes, limit: int = 60) -> str:
    """Shorten bytes for a message, and make them printable."""
    text = data[:limit].decode("utf-8", "backslashreplace")
    if len(data) <= limit and text.isascii() and text.isprintable():
        return text
    return ascii(text)[:limit] + (f"... ({len(data)} bytes)" if len(data) > limit else "")


class _Repr(reprlib.Repr):
    """A repr that stays short and fast for large values."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 60
        self.maxlevel = 3

    def repr_int(self, x: int, level: int) -> str:
        return str(x) if x.bit_length() < 200 else f"<integer of {x.bit_length()} bits>"

    def repr_Array(self, x: list[Any], level: int) -> str:
        return f"array({self.repr_list(list(x), level)})"

    def repr_Named(self, x: tuple[Any, ...], level: int) -> str:
        return self.repr_tuple(tuple(x), level)

    def repr_Counter(self, x: dict[Any, Any], level: int) -> str:
        return f"{type(x).__name__}({self.repr_dict(dict(x), level)})"

    repr_OrderedDict = repr_defaultdict = repr_Counter

    def repr_dict_keys(self, x: Any, level: int) -> str:
        return f"{type(x).__name__}({self.repr_list(list(x), level)})"

    def repr_Fraction(self, x: Any, level: int) -> str:
        return f"Fraction({self.repr_int(x.numerator, level)}, {self.repr_int(x.denominator, level)})"

    def repr_Opaque(self, x: Any, level: int) -> str:
        return f"<{x.type_name}>"


def show(value: object) -> str:
    return ascii_only(_Repr().repr(value))[:80]


def ascii_only(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()
