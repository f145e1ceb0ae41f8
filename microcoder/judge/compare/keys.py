"""A short text for any value, the same for equal values: what multisets, sets and dict keys are compared by.

Texts rather than the values' own hashes, since a program under test can choose a million integers of one hash and make
any dict of them quadratic. Long texts are replaced by a digest, so nesting does not copy them again and again.
"""

from __future__ import annotations

import datetime
import hashlib
import math
import re
from collections import deque
from collections.abc import KeysView
from decimal import Decimal
from fractions import Fraction
from itertools import count
from pathlib import PurePosixPath
from typing import Any

from ..sandbox.values import Member

VERDICT_WORDS = frozenset(
    {b"yes", b"no", b"true", b"false", b"possible", b"impossible", b"valid", b"invalid", b"correct", b"incorrect"}
)
_LONGEST = max(map(len, VERDICT_WORDS))
_LETTERS = re.compile(rb"[a-z]+")


class Words:
    """Decide for one test whether a word may differ in case."""

    def __init__(self, expected: bytes, test_input: bytes) -> None:
        self.expected, self.input = expected, test_input
        self.free: dict[bytes, bool] = {}

    def same(self, got: bytes, expected: bytes) -> bool:
        if len(got) != len(expected) or len(got) > _LONGEST:
            return False
        word = expected.lower()
        if word not in VERDICT_WORDS or got.lower() != word:
            return False
        if word not in self.free:
            self.free[word] = self._is_free(word)
        return self.free[word]

    def _is_free(self, word: bytes) -> bool:
        """Not where the input holds the word (its case may be asked for), nor where the answer has it in two cases."""
        whole = re.compile(rb"(?<![A-Za-z])" + word + rb"(?![A-Za-z])", re.IGNORECASE)
        return not whole.search(self.input) and len(set(whole.findall(self.expected))) == 1


def verdicts_in_order(text: bytes) -> list[bytes]:
    """The verdict words of a text in lower case, in the order in which they stand, quoted or not."""
    return [word for word in _LETTERS.findall(text.lower()) if word in VERDICT_WORDS]


_never_again = count()
_SHORT = 80
_WRITTEN_OUT = 100  # digits or bits: numbers of this size are made one form, whatever their type
DATES = (datetime.date, datetime.datetime, datetime.time, datetime.timedelta)
_VERDICTS = frozenset(word.decode() for word in VERDICT_WORDS)


def key(value: Any, *, strict_bool: bool = False, from_json: bool = False, order_free: bool = False) -> str:
    """Equal for equal values: 1 and 1.0 (and True, unless `strict_bool`), list and tuple. Unique for nan and opaque.

    `from_json`: a dict's keys count as their JSON spelling. `order_free`: lists and sets are bags throughout, except
    that a list of verdicts keeps its order: [True, False] for [False, True] is a wrong answer under any policy.
    """
    return _Keys(strict_bool, from_json, order_free).key(value)[0]


def json_spelling(name: Any) -> str | None:
    """Return a dict's key as JSON writes it; None if JSON cannot."""
    if isinstance(name, str):
        return name
    if name is None or isinstance(name, bool):
        return {None: "null", True: "true", False: "false"}[name]
    if isinstance(name, int):
        return str(name) if name.bit_length() < 4000 else None
    return repr(name) if isinstance(name, float) else None


class _Keys:
    def __init__(self, strict_bool: bool, from_json: bool, order_free: bool) -> None:
        self.strict_bool, self.from_json, self.order_free = strict_bool, from_json, order_free

    def key(self, value: Any) -> tuple[str, bool]:
        """The text, and whether the value is a verdict or made of nothing else."""
        if isinstance(value, str):
            return _pack("s", value), len(value) < 20 and value.lower() in _VERDICTS
        if value is None:
            return "none", False
        if isinstance(value, (int, float, complex, Decimal, Fraction)):
            return self._number(value), isinstance(value, bool)
        if isinstance(value, bytes):
            return _pack("b", value.hex()), False
        if isinstance(value, dict):
            return self._dict(value), False
        if isinstance(value, (list, tuple, set, frozenset, deque, range, KeysView)):
            return self._collection(value)
        if isinstance(value, DATES):
            return f"{type(value).__name__}:{_instant(value)!r}", False
        if isinstance(value, (PurePosixPath, Member)):
            return _pack("v", repr(value)), False
        return f"?{next(_never_again)}", False

    def _number(self, value: Any) -> str:
        if self.strict_bool and isinstance(value, bool):
            return f"bool{value}"
        if isinstance(value, complex):
            if value.imag:
                return f"c({self._number(value.real)},{self._number(value.imag)})"
            value = value.real
        if isinstance(value, Decimal) and (not value.is_finite() or abs(value.adjusted()) < _WRITTEN_OUT):
            value = Fraction(value) if value.is_finite() else float(value)
        if isinstance(value, Decimal):
            return _pack("D", str(value))  # no float is as large
        if isinstance(value, Fraction):
            short = value.numerator.bit_length() < _WRITTEN_OUT and Fraction(float(value)) == value
            if value.denominator > 1 and not short:
                return _pack("q", f"{value.numerator:x}/{value.denominator:x}")
            value = float(value) if value.denominator > 1 else value.numerator
        if isinstance(value, float):
            if math.isnan(value):
                return f"?{next(_never_again)}"
            if not value.is_integer():  # inf is not an integer either
                return f"f{value!r}"
            value = int(value)
        return _pack("i", hex(value))  # decimal would be quadratic

    def _dict(self, value: dict[Any, Any]) -> str:
        parts = []
        for name, item in value.items():
            spelled = json_spelling(name) if self.from_json else None
            parts.append(self.key(name if spelled is None else spelled)[0] + "=" + self.key(item)[0])
        return _pack("d", _join(sorted(parts)))

    def _collection(self, value: Any) -> tuple[str, bool]:
        pairs = [self.key(item) for item in value]
        texts = [text for text, _ in pairs]
        verdicts = bool(pairs) and all(flag for _, flag in pairs)
        is_set = isinstance(value, (set, frozenset, KeysView))
        if self.order_free and not (verdicts and len(pairs) > 1 and not is_set):
            return _pack("bag", _join(sorted(texts))), verdicts
        if is_set:
            return _pack("set", _join(sorted(texts))), verdicts
        return _pack("seq", _join(texts)), verdicts


def _instant(value: Any) -> Any:
    """One value for all spellings of a moment: two time zones can name the same."""
    try:
        return value.astimezone(datetime.UTC) if getattr(value, "tzinfo", None) else value
    except (AttributeError, OverflowError):  # a time of day, or one at the end of time
        return value


def _join(parts: list[str]) -> str:
    return ";".join(f"{len(part)}:{part}" for part in parts)


def _pack(tag: str, body: str) -> str:
    """Tag and body, unambiguous: a digest is told from a short body by its mark."""
    if len(body) <= _SHORT:
        return f"{tag}:{body}"
    return f"{tag}#{hashlib.blake2b(body.encode('utf-8', 'surrogatepass'), digest_size=24).hexdigest()}"
