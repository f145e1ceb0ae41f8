"""Text that spells a Python or JSON literal: [1, 2] and (1,2), 'a' and "a", True and true, None and null.

A parser of our own rather than ast or json, for three reasons: it keeps its own stack, so nesting cannot crash it; it
builds values and not a syntax tree of fifty times their size; and it accepts only what is meant here, so that 1_000,
0x10, NaN and 'a' 'b' are not literals. A bare word is not one either, hence never equal to a quoted word.
"""

from __future__ import annotations

import math
import re
from typing import Any

from .keys import key
from .structures import walk

MAX_SIZE = 1 << 20  # bytes of the expected text; larger ones may differ in spacing only
_MAX_DEPTH = 200
_MAX_DIGITS = 4000  # int() is quadratic, and refuses beyond 4300
_TOKEN = re.compile(
    r"""[ \t\r\n\f\v]*+(?:
        (?P<open>[\[({])
      | (?P<close>[\])}])
      | (?P<comma>,)
      | (?P<colon>:)
      | (?P<number>[+-]?(?:(?:0|[1-9][0-9]*+)(?P<float1>\.[0-9]*+)?|(?P<float2>\.[0-9]++))
                   (?P<float3>[eE][+-]?[0-9]{1,9}+)?(?![0-9A-Za-z_.]))
      | (?P<string>"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+')
      | (?P<name>True|true|False|false|None|null)(?![0-9A-Za-z_])
    )""",
    re.VERBOSE,
)
_BLANK = re.compile(r"[ \t\r\n\f\v]*")
_NAMES = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}
_ESCAPE = re.compile(r"\\(?:([\\'\"bfnrt])|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_SIMPLE = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_PAIRS = {"[": "]", "(": ")", "{": "}"}
_NUMERIC = b"0123456789+-.eE,:[](){} \t\r\n"
_STRATEGIES = frozenset({"equal", "sequence", "numbers"})


class NotALiteral(ValueError):
    pass


def same(got: bytes, expected: bytes, tolerance: float) -> bool:
    """Whether both texts are literals of the same value; inside one, true is never 1."""
    if not expected.translate(None, _NUMERIC) and _compact(got) == _compact(expected):
        return True  # [1, 2] and [1,2]: the usual case, without building anything
    if len(expected) > MAX_SIZE:
        return False
    try:
        want, tokens = parse(expected, MAX_SIZE)
        have, _ = parse(got, 2 * tokens)  # the same value has no more tokens, but for needless parentheses
        return bool(walk(have, want, _STRATEGIES, tolerance, strict_bool=True).strategy)
    except (NotALiteral, RecursionError, MemoryError):
        return False


def _compact(text: bytes) -> bytes:
    return text.strip().replace(b", ", b",").replace(b": ", b":")


class _Frame:
    """An open bracket while parsing: its items so far, and whether a value must come next."""

    def __init__(self, bracket: str) -> None:
        self.bracket = bracket
        self.items: list[Any] = []
        self.pairs: bool | None = None  # of a brace: a dict, a set, or not known yet
        self.comma = False
        self.wants_value = True


def parse(data: bytes, most: int) -> tuple[Any, int]:
    """Parse a literal of at most `most` tokens; return its value and the number of tokens.

    Of a dict, the keys are canonical texts; a set is a frozenset of such texts.
    """
    text = data.decode("utf-8", "surrogateescape")
    frames = [_Frame("")]
    position = tokens = 0
    while found := _TOKEN.match(text, position):
        position = found.end()
        tokens += 1
        _check(tokens <= most)
        frame, kind = frames[-1], found.lastgroup
        if kind == "open":
            _check(frame.wants_value and len(frames) <= _MAX_DEPTH)
            frames.append(_Frame(text[position - 1]))
        elif kind == "close":
            _check(_PAIRS.get(frame.bracket) == text[position - 1])
            frames.pop()
            _add(frames[-1], _build(frame))
        elif kind == "comma":
            _check(not frame.wants_value and frame.bracket != "" and _complete(frame))
            frame.comma = frame.wants_value = True
            frame.pairs = bool(frame.pairs)
        elif kind == "colon":
            _check(frame.bracket == "{" and not frame.wants_value and frame.pairs is not False)
            _check(len(frame.items) % 2 == 1)
            frame.pairs = frame.wants_value = True
        else:
            _add(frame, _atom(found))
    _check(_BLANK.fullmatch(text, position) is not None)
    _check(len(frames) == 1 and len(frames[0].items) == 1)
    return frames[0].items[0], tokens


def _check(condition: bool) -> None:
    if not condition:
        raise NotALiteral


def _complete(frame: _Frame) -> bool:
    return not frame.pairs or len(frame.items) % 2 == 0


def _add(frame: _Frame, value: Any) -> None:
    _check(frame.wants_value)
    frame.items.append(value)
    frame.wants_value = False


def _build(frame: _Frame) -> Any:
    items = frame.items
    _check(_complete(frame) and not (frame.wants_value and items and not frame.comma))
    if frame.bracket == "[":
        return items
    if frame.bracket == "(":
        return tuple(items) if frame.comma or not items else items[0]
    if frame.pairs or (frame.pairs is None and not items):
        pairs = zip(items[::2], items[1::2], strict=True)
        return {key(name, strict_bool=True): value for name, value in pairs}
    found = frozenset(key(item, strict_bool=True) for item in items)
    _check(len(found) == len(items))  # no set is written with an element twice
    return found


def _atom(found: re.Match[str]) -> Any:
    text = found.group().strip()
    if found["name"]:
        return _NAMES[text]
    if found["string"]:
        return _unescape(text[1:-1]) if "\\" in text else text[1:-1]
    if found["float1"] is None and found["float2"] is None and found["float3"] is None:
        _check(len(text) <= _MAX_DIGITS)
        return int(text)
    number = float(text)
    _check(math.isfinite(number))
    return number


def _unescape(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        simple, four, two, eight, unknown = found.groups()
        _check(unknown is None)  # Python and JSON read the rest differently
        if simple:
            return _SIMPLE.get(simple, simple)
        code = int(four or two or eight, 16)
        _check(code <= 0x10FFFF)
        return chr(code)

    plain = _ESCAPE.sub(one, text)
    # JSON spells characters beyond the first plane as two surrogates
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
