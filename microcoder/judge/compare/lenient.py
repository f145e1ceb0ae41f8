"""Policy `paper`: what MicroCoder-Evaluator's description adds. Kept for studies; it accepts wrong answers.

np.allclose on everything numeric, order-free comparison everywhere, automatic conversion between lists, tuples, sets
and strings. Where we differ from the description:
1. Verdicts keep their order: NO YES is never accepted for YES NO, nor [False, True] for [True, False].
2. A number too large for a float is not close to another one just because both become infinite.
"""

from __future__ import annotations

import math
from typing import Any

from .keys import key, verdicts_in_order
from .unordered import same_counts

_PRINTABLE = slice(33, 127)
_SEQUENCES = (list, tuple)


def lenient_text(got: bytes, expected: bytes) -> str:
    """Return the strategy of the policy `paper` that accepts, or nothing."""
    g, e = got.split(), expected.split()
    if len(g) != len(e):
        return ""
    try:
        if _all_close([float(token) for token in g], [float(token) for token in e]):
            return "allclose"
    except ValueError:
        pass  # not all of them are numbers
    if (_counts(got) != _counts(expected)).any():
        return ""  # other characters, so other tokens: spares the table of a large wrong answer
    if not same_counts(g, e) or verdicts_in_order(got) != verdicts_in_order(expected):
        return ""
    lines = [sorted(line.strip() for line in text.split(b"\n") if line.strip()) for text in (got, expected)]
    return "unordered_lines" if lines[0] == lines[1] else "unordered_tokens"


def _counts(text: bytes) -> Any:
    """How often each printable character occurs."""
    import numpy  # only this policy needs it

    return numpy.bincount(numpy.frombuffer(text, numpy.uint8), minlength=256)[_PRINTABLE]


def lenient_value(got: Any, expected: Any, from_json: bool) -> str:
    try:
        form = " ".join(str(expected).split())
    except ValueError:  # an integer too long to be written in decimal
        form = ""
    if _parts(got, _parts(expected) + len(form)) > _parts(expected) + len(form):
        return ""  # every part is at least a letter of what is expected: with more of them none of this can hold
    flat = _flatten(got, expected)
    if flat and _all_close(*flat):
        return "allclose"
    if key(got, order_free=True, from_json=from_json) == key(expected, order_free=True, from_json=from_json):
        return "unordered_values"
    try:
        same = form != "" and " ".join(str(got).split()) == form
    except ValueError:
        return ""
    return "string_form" if same and "Opaque(" not in form else ""


def _parts(value: Any, enough: float = math.inf) -> int:
    """At least how many letters a value has when it is written; counting ends where it is more than `enough`."""
    found, stack = 0, [value]
    while stack and found <= enough:
        item = stack.pop()
        found += 1
        if isinstance(item, int):
            found += item.bit_length() >> 2
        if isinstance(item, dict):
            stack += [*item, *item.values()]
        elif isinstance(item, (list, tuple, set, frozenset)):
            if len(item) > enough:
                return found + len(item)
            stack += item
    return found


def _flatten(got: Any, expected: Any) -> tuple[list[complex], list[complex]] | None:
    """The numbers of two values of one shape, or None if they are anything else."""
    left: list[complex] = []
    right: list[complex] = []
    stack = [(got, expected)]
    while stack:
        g, e = stack.pop()
        if isinstance(g, _SEQUENCES) and isinstance(e, _SEQUENCES) and len(g) == len(e):
            stack += zip(g, e, strict=True)
        elif isinstance(g, (int, float, complex)) and isinstance(e, (int, float, complex)):
            left.append(g)
            right.append(e)
        else:
            return None
    return left, right


def _all_close(got: list[Any], expected: list[Any]) -> bool:
    import numpy

    try:
        g: Any = numpy.array(got, dtype=_dtype(got))
        e: Any = numpy.array(expected, dtype=_dtype(expected))
    except OverflowError:
        return False
    if not got or not math.isfinite(abs(g).max()) or not math.isfinite(abs(e).max()):
        return False
    return bool(numpy.allclose(g, e))


def _dtype(numbers: list[Any]) -> type:
    return complex if complex in set(map(type, numbers)) else float
