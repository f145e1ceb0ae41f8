"""When two numbers are the same: decimal tokens exactly at any size, floats within a tolerance.

Nothing here converts a token to an int or a Decimal: a program under test may print 16 MB of digits or 1e999999999,
and every operation below is linear in the length of the token whatever it holds. Of values, a Decimal and a Fraction
are of bounded size when they come here (sandbox/values.py), but integers are not.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

NUMBERS = (int, float, complex, Decimal, Fraction)
_TOO_LONG = 100_000  # bits: no Decimal or Fraction has as many, and to convert such an integer takes long
DEFAULT_TOLERANCE = 1e-6

# Plain decimal syntax. Leading zeros, underscores, hexadecimal, nan and inf are not numbers: "007" is a string.
_DECIMAL = re.compile(rb"([+-]?)(?:(0|[1-9][0-9]*+)(?:\.([0-9]*+))?|\.([0-9]++))(?:[eE]([+-]?[0-9]++))?")
_POINTS = re.compile(rb"(?:-?(?:0|[1-9][0-9]{0,30}+)\.[0-9]{1,30}+(?: |\Z))++")
_LONG = 64  # characters; a longer token is cut to its leading digits before it becomes a float
_NOISE = 4.5e-16  # two units in the last place: 0.5 and 0.500001 lie within 1e-6 in decimal, but not quite in binary

Canonical = tuple[bool, bytes, int]  # negative, significant digits, power of ten


def canonical(token: bytes) -> Canonical | None:
    """One form for all spellings of a number (5, +5, 5.00, 0.5e1); None for what is not a number."""
    found = _DECIMAL.fullmatch(token)
    if found is None:
        return None
    sign, whole, after, bare, power = found.groups()
    if power is not None and len(power) > 18:
        return None  # no program means such an exponent
    fraction = after or bare or b""
    digits = ((whole or b"") + fraction).lstrip(b"0")
    kept = digits.rstrip(b"0")
    if not kept:
        return (False, b"", 0)
    return (sign == b"-", kept, int(power or 0) - len(fraction) + len(digits) - len(kept))


def is_approximate(token: bytes) -> bool:
    """Whether a decimal token is a measurement, to which tolerance applies: it has a point or a signed exponent.

    12e5 without either may be hexadecimal, and no language prints a float like that: it is compared by exact value.
    """
    return b"." in token or b"-" in token[1:] or b"+" in token[1:]


def same_token(got: bytes, expected: bytes, tolerance: float) -> bool:
    """Whether `got` denotes the number `expected`: exactly for an integer, within `tolerance` for a float."""
    if not _DECIMAL.fullmatch(expected) or not _DECIMAL.fullmatch(got):
        return False
    if is_approximate(expected) and close(_to_float(got), _to_float(expected), tolerance):
        return True
    exact = canonical(expected)
    return exact is not None and exact == canonical(got)


def same_floats(got: list[bytes], expected: list[bytes], tolerance: float) -> bool:
    """`same_token` for many pairs at once, several times as fast; False only means that one must look closer."""
    if not all(_POINTS.fullmatch(b" ".join(side)) for side in (got, expected)):
        return False
    limit = tolerance + _NOISE
    pairs = zip(map(float, got), map(float, expected), strict=True)
    return tolerance > 0 and all(abs(a - b) <= limit * (abs(b) if abs(b) > 1 else 1.0) for a, b in pairs)


def equal(got: Any, expected: Any) -> bool:
    """`==` of two numbers of any type, without converting a long integer to a Decimal."""
    for one, other in ((got, expected), (expected, got)):
        if isinstance(one, (Decimal, Fraction)) and isinstance(other, int) and other.bit_length() > _TOO_LONG:
            return False
    return bool(got == expected)


def close(got: Any, expected: complex, tolerance: float) -> bool:
    """Within `tolerance` of `expected`, absolutely or relatively; nan and inf are close to nothing."""
    try:
        if isinstance(got, (Decimal, Fraction)):
            got = float(got)
        gap, size = abs(got - expected), abs(expected)
    except OverflowError:
        return False
    return tolerance > 0 and math.isfinite(gap) and gap <= (tolerance + _NOISE) * max(1.0, size)


def _to_float(token: bytes) -> float:
    if len(token) <= _LONG:
        return float(token)
    number = canonical(token)
    if number is None:
        return math.nan
    negative, digits, power = number
    return float(b"%s.%se%d" % (b"-0" if negative else b"0", digits[:40] or b"0", power + len(digits)))
