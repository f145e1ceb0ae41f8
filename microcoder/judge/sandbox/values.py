"""Values as tagged JSON: how a result leaves a candidate's process, and how arguments enter it.

Never pickle: decoding must build plain data whatever the other side wrote. `encode` runs beside untrusted code and
may be lied to; a lie only yields another value, which is then compared like any other. `decode` runs on the trusted
side and builds nothing but natives, values of the standard library that are as harmless (dates, decimals, deques), and
the four classes below. What it would take long to build is TooMuch.

Tags: {"t": tuple} {"s": set} {"z": frozenset} {"d": [[key, value], ...]} {"a": [dtype, numpy array as lists]}
{"i": hex of a big int} {"b": bytes in hex} {"c": [real, imag]} {"v": [type, text] of a date, a decimal or the like}
{"k": [type, encoded list or dict] of a deque, a Counter or the like} {"n": [type, fields, list] of a named tuple}
{"e": [class, name] of a member of an enumeration} {"?": type name of anything else}.
"""

import json
import re
from itertools import islice
from typing import Any

MAX_DEPTH = 150  # of nesting; deeper results are reported as opaque
MAX_LAZY = 1_000_000  # elements taken from a range or a deque
MAX_EQUAL_HASHES = 32  # in one set or dict: beyond, building it is quadratic
MAX_PARTS = 1_000_000  # lists, and tags eight times: 4 MB can hold more, which take seconds to build and to compare
TAG_PARTS = 8
MAX_DIGITS = 1300  # of an integer written in decimal; larger ones come in hexadecimal, which is linear
MAX_EXPONENT = 1000  # of a Decimal: as an integer it has so many digits, however short it is here
MAX_DECIMAL = 20_000  # digits of one
MAX_FRACTION_BITS = 20_000  # a Fraction is reduced when it is built, which is quadratic
BIG_INT_BITS = 4000
BIG_INT = 1 << BIG_INT_BITS
SCALARS = {str, bool, float, type(None)}
_DIGITS = b"0123456789"
_DEEP = "value nested too deeply"
_DECIMAL = re.compile(r"-?(?:[0-9]*+\.?[0-9]*+)(?:E[+-]?([0-9]++))?|-?(?:Infinity|NaN)")
_DTYPE = re.compile(r"[<>|=]?[biufcUS][0-9]{1,4}")
_named: dict[tuple[str, ...], Any] = {}  # classes of named tuples, in a box
_FACTORIES = {"int": int, "list": list, "dict": dict, "set": set, "str": str, "float": float, "tuple": tuple}


class TooMuch(Exception):
    """A result beyond what the trusted side takes: digits, nesting, or members of a set with one hash."""


class Array(list):  # type: ignore[type-arg]
    """A numpy array, as nested lists."""

    dtype = "O"


class Named(tuple):  # type: ignore[type-arg]
    """A named tuple: `name` of its type, and `fields`. Equal to any tuple of the same items."""

    name = ""
    fields: tuple[str, ...] = ()


class Member:
    """A member of an enumeration, which is known by names only."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: str, name: str) -> None:
        self.owner, self.name = owner, name

    def __repr__(self) -> str:
        return f"{self.owner}.{self.name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Member) and (self.owner, self.name) == (other.owner, other.name)

    def __hash__(self) -> int:
        return hash((self.owner, self.name))


class Opaque:
    """Something that has no plain value (a generator, an object, a cycle); equal to nothing."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name

    def __repr__(self) -> str:
        return f"<{self.type_name}>"

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]


DATES = ("date", "datetime", "time", "timedelta")
_PATHS = ("PosixPath", "PurePosixPath")
KINDS = ("deque", "range", "dict_keys", "Counter", "OrderedDict", "defaultdict")  # told from a list or a dict


def encode(value: Any, depth: int = 0) -> Any:
    """A JSON-ready form of `value`. Subclasses are read through their base class, so overridden methods never run."""
    kind = type(value)
    if value is None or kind is bool or kind is str or kind is float:
        return value
    if kind is int:
        return value if value.bit_length() <= BIG_INT_BITS else {"i": hex(value)}
    if depth > MAX_DEPTH:
        return {"?": _DEEP}
    depth += 1
    if isinstance(value, bool):
        return bool(value)
    if isinstance(value, int):
        return encode(int.__index__(value), depth)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (bytes, bytearray)):
        return {"b": bytes(value).hex()}
    if isinstance(value, list):
        if kind is Array:
            return {"a": [getattr(value, "dtype", "O"), [encode(item, depth) for item in value]]}
        return value if _plain(value) else [encode(item, depth) for item in list.__iter__(value)]
    if isinstance(value, tuple):
        return _encode_tuple(value, kind, depth)
    if isinstance(value, dict):
        body = {"d": [[encode(k, depth), encode(v, depth)] for k, v in dict.items(value)]}
        return _encode_dict(value, kind, body) if kind is not dict else body
    if isinstance(value, set):
        return {"s": [encode(item, depth) for item in set.__iter__(value)]}
    if isinstance(value, frozenset):
        return {"z": [encode(item, depth) for item in frozenset.__iter__(value)]}
    if isinstance(value, complex):
        return {"c": [value.real, value.imag]}
    return _encode_other(value, kind, depth)


def _plain(items: list[Any]) -> bool:
    """Whether a list can stand as it is; most can, and this looks at all its elements at once."""
    kinds = set(map(type, list.__iter__(items)))
    if type(items) is not list:
        return False
    if kinds == {int}:
        return -BIG_INT < min(items) and max(items) < BIG_INT
    return kinds <= SCALARS


def _encode_tuple(value: Any, kind: type, depth: int) -> Any:
    items = [encode(item, depth) for item in tuple.__iter__(value)]
    if kind is tuple:
        return {"t": items}
    fields = value.fields if kind is Named else getattr(kind, "_fields", None)
    if isinstance(fields, tuple) and len(fields) == len(items) and all(type(field) is str for field in fields):
        return {"n": [value.name if kind is Named else kind.__name__, list(fields), items]}
    return {"t": items}


def _encode_dict(value: Any, kind: type, body: Any) -> Any:
    name = kind.__name__
    if kind.__module__ != "collections" or name not in KINDS:
        return body
    if name != "defaultdict":
        return {"k": [name, body]}
    factory = getattr(value.default_factory, "__name__", None)
    return {"k": [name, body, factory]}


def _encode_other(value: Any, kind: type, depth: int) -> Any:
    name, module = kind.__name__, kind.__module__
    if module == "numpy":
        if getattr(value, "ndim", None) == 0:
            return encode(value.item(), depth)
        if name == "ndarray" and value.dtype.kind in "biufcUS":
            return {"a": [value.dtype.str, encode(value.tolist(), depth)]}
    if name in ("deque", "range", "dict_keys", "dict_values", "dict_items"):
        items = list(islice(iter(value), MAX_LAZY + 1))
        if len(items) <= MAX_LAZY:
            encoded = [encode(item, depth) for item in items]
            return {"k": [name, encoded]} if name in KINDS else {"t": encoded}
    if module in ("decimal", "_decimal") and name == "Decimal":
        return {"v": [name, str(value)]}
    if module == "fractions" and name == "Fraction":
        return {"v": [name, f"{value.numerator:x}/{value.denominator:x}"]}
    if module == "datetime" and name in DATES:
        text = f"{value.days} {value.seconds} {value.microseconds}" if name == "timedelta" else value.isoformat()
        return {"v": [name, text]}
    if module in ("pathlib", "pathlib._local") and name in _PATHS:
        return {"v": [name, str(value)]}
    if hasattr(kind, "__members__") and hasattr(value, "_name_"):
        return {"e": [name, str(value._name_)]}
    if hasattr(value, "val") and hasattr(value, "next"):
        return _linked_list(value, depth)
    if hasattr(value, "val") and hasattr(value, "left") and hasattr(value, "right"):
        return _tree(value, depth)
    return {"?": name}


def _linked_list(node: Any, depth: int) -> Any:
    out: list[Any] = []
    seen: set[int] = set()
    while node is not None:
        if id(node) in seen:
            return {"?": "linked list with a cycle"}
        seen.add(id(node))
        out.append(encode(node.val, depth))
        node = node.next
    return out


def _tree(root: Any, depth: int) -> Any:
    """Level order with null for a missing child, trailing nulls left out: LeetCode's form."""
    out: list[Any] = []
    seen: set[int] = set()
    level = [root]
    while level:
        below = []
        for node in level:
            if node is None:
                out.append(None)
                continue
            if id(node) in seen:
                return {"?": "tree with a cycle"}
            seen.add(id(node))
            out.append(encode(node.val, depth))
            below += [node.left, node.right]
        level = below
    while out and out[-1] is None:
        out.pop()
    return out


def decode(data: Any, depth: int = 0, real: bool = False) -> Any:
    """The value that `encode` wrote. Anything malformed becomes Opaque; of hostile data nothing but TooMuch is raised.

    real: for use in a box: arrays are numpy's, and named tuples have their fields.
    """
    if isinstance(data, list):
        if depth > MAX_DEPTH + 5:
            raise TooMuch(_DEEP)
        return [decode(item, depth + 1, real) for item in data]
    if not isinstance(data, dict):
        return data
    if depth > MAX_DEPTH + 5:
        raise TooMuch(_DEEP)
    if len(data) != 1:
        return Opaque("malformed value")
    [(tag, body)] = data.items()
    try:
        if tag in ("t", "s", "z", "d"):
            items = [decode(item, depth + 1, real) for item in body]
            if tag == "t":
                return tuple(items)
            if tag == "d":
                _hashable([k for k, _ in items])
                return dict(items)
            return set(_hashable(items)) if tag == "s" else frozenset(_hashable(items))
        if tag == "i":
            return int(body, 16)
        if tag == "b":
            return bytes.fromhex(body)
        if tag == "c":
            return complex(_float(body[0]), _float(body[1]))
        if tag == "v":
            return _decode_text(body[0], body[1])
        if tag == "e":
            return Member(_short(body[0]), _short(body[1]))
        if tag == "k":
            return _decode_kind(body[0], decode(body[1], depth + 1, real), body[2:])
        if tag == "n":
            return _decode_named(body[0], body[1], [decode(item, depth + 1, real) for item in body[2]], real)
        if tag == "a":
            return _decode_array(_short(body[0]), [decode(item, depth + 1, real) for item in body[1]], real)
        if tag == "?":
            return Opaque(_short(body))
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, ImportError, RecursionError):
        pass
    return Opaque("malformed value")


def _short(text: Any) -> str:
    if not isinstance(text, str):
        raise TypeError
    return text[:80]


def _float(number: Any) -> float:
    if not isinstance(number, (int, float)):
        raise TypeError
    return float(number)


def _decode_text(name: str, text: str) -> Any:
    if name == "Decimal":
        from decimal import Decimal

        found = _DECIMAL.fullmatch(text)
        if found is None:
            raise ValueError
        if len(text) > MAX_DECIMAL or len(found[1] or "") > 9 or int(found[1] or 0) > MAX_EXPONENT:
            raise TooMuch("a Decimal with too many digits")
        return Decimal(text)
    if name == "Fraction":
        from fractions import Fraction

        above, below = (int(part, 16) for part in text.split("/"))
        if max(above.bit_length(), below.bit_length()) > MAX_FRACTION_BITS:
            raise TooMuch("a Fraction with too many digits")
        return Fraction(above, below)
    if name in _PATHS:
        import pathlib

        return (pathlib.Path if name == "PosixPath" else pathlib.PurePosixPath)(text)
    if name in DATES and len(text) <= 80:
        import datetime

        if name == "timedelta":
            return datetime.timedelta(*map(int, text.split()))
        return getattr(datetime, name).fromisoformat(text)
    raise ValueError


def _decode_kind(name: str, body: Any, rest: list[Any]) -> Any:
    import collections

    if name == "deque":
        return collections.deque(list(body))
    if name == "range":
        step = body[1] - body[0] if len(body) > 1 else 1
        found = range(body[0], body[0] + step * len(body), step) if body else range(0)
        return found if list(found) == body else Opaque("malformed value")
    if name == "dict_keys":
        return dict.fromkeys(_hashable(list(body))).keys()
    if not isinstance(body, dict):
        raise TypeError
    if name == "Counter":
        return collections.Counter(body)
    if name == "OrderedDict":
        return collections.OrderedDict(body)
    if name == "defaultdict":
        return collections.defaultdict(_FACTORIES.get(rest[0]) if rest and isinstance(rest[0], str) else None, body)
    raise ValueError


def _decode_named(name: str, fields: list[str], items: list[Any], real: bool) -> Any:
    if real:
        import collections

        key = (_short(name), *map(_short, fields))
        if key not in _named and (len(_named) >= 50 or len(key) > 100):  # to make a class takes long
            return tuple(items)
        if key not in _named:
            _named[key] = collections.namedtuple(key[0], key[1:])
        return _named[key](*items)
    found = Named(items)
    found.name, found.fields = _short(name), tuple(map(_short, fields))
    return found


def _decode_array(dtype: str, items: list[Any], real: bool) -> Any:
    if real and _DTYPE.fullmatch(dtype):
        return __import__("numpy").array(items, dtype=dtype)  # in a box; where there is none, it is no array
    found = Array(items)
    found.dtype = dtype
    return found


def _hashable(keys: list[Any]) -> list[Any]:
    """The keys, unless many have one hash: they make a set or a dict quadratic, and a result can be made of them."""
    if len(keys) > MAX_EQUAL_HASHES:
        seen: dict[int, int] = {}
        for key in keys:
            value = hash(key)
            seen[value] = seen.get(value, 0) + 1
        if max(seen.values()) > MAX_EQUAL_HASHES:
            raise TooMuch("values whose hashes collide")
    return keys


def answer(output: bytes) -> dict[str, Any]:
    """The values that a test process left: "r", and perhaps "m". Anything can stand there; only TooMuch is raised."""
    try:  # as text: bytes may be UTF-16, in which long numbers look otherwise
        found = json.loads(output.decode(), parse_int=_integer if _long_number(output) else None)
    except RecursionError:
        raise TooMuch(_DEEP) from None
    except ValueError:
        found = None
    if not isinstance(found, dict) or "r" not in found:
        return {"r": Opaque("no value")}
    if output.count(b"{") * TAG_PARTS + output.count(b"[") > MAX_PARTS:
        _count(found)
    if output.count(b"{") == 1:  # no tag anywhere: plain JSON is its own value
        return found
    return {key: decode(value) for key, value in found.items()}


def _count(found: Any) -> None:
    """Whether there are too many lists and tags; brackets in texts are neither."""
    parts, stack = 0, [found]
    while stack and parts <= MAX_PARTS:
        item = stack.pop()
        if isinstance(item, dict):
            parts += TAG_PARTS
            stack += item.values()
        elif isinstance(item, list):
            parts += 1
            stack += item
    if parts > MAX_PARTS:
        raise TooMuch("a value of too many parts")


def _long_number(output: bytes) -> bool:
    """Whether so many digits stand in a row: they do only if they stand around one of these places."""
    for at in range(MAX_DIGITS, len(output), MAX_DIGITS + 1):
        if output[at] in _DIGITS:
            before, after = output[at - MAX_DIGITS : at], output[at : at + MAX_DIGITS + 1]
            if len(before) - len(before.rstrip(_DIGITS)) + len(after) - len(after.lstrip(_DIGITS)) > MAX_DIGITS:
                return True
    return False


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise TooMuch(f"an integer of {len(text)} digits")
    return int(text)
