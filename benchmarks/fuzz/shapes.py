"""Generators for the result channel: tagged JSON as a program under test could forge it, and text as it could print it.

`value` and `word` draw small things by grammar; the shapes are things of any size n, each a way to make careless code
slow, deep or large. All are recipes (recipes.py).
"""

from __future__ import annotations

import random
from collections.abc import Callable

from benchmarks.fuzz.recipes import Recipe

PRIME = (1 << 61) - 1  # hash(n) is n modulo this: multiples of it all have hash 0
NUMBERS = (
    "0", "-0", "1", "-1", "7", "1.0", "-0.0", "0.1", "1e308", "-1e308", "1e309", "5e-324", "1e-400", "NaN", "Infinity",
    "-Infinity", "9007199254740993", "18446744073709551616", "1e22", "1E+2", "123456789012345678901234567890", "1.5",
)  # fmt: skip
BODIES = (
    "0",
    "-1",
    "1.5",
    "null",
    "true",
    '""',
    '"ab"',
    '"0x1f"',
    '"-0x_f"',
    '"zz"',
    "[]",
    "[1]",
    "[1,2]",
    "{}",
    '["a","b"]',
)
TAGS = ("t", "s", "z", "d", "a", "i", "b", "c", "v", "?", "ln", "tn", "r", "m", "", "nope", "dd", "n", "k", "e")
DATES = (
    '{"v":["date","datetime.date(2024, 2, 30)"]}', '{"v":["datetime","datetime.datetime(1, 1, 1, 0, 0)"]}',
    '{"v":["timedelta","datetime.timedelta(days=-999999999)"]}', '{"v":["time",[]]}', '{"v":"xy"}', '{"v":{}}',
    '{"v":["date","__import__(\'os\').abort()"]}', '{"v":["date"]}', '{"v":[1e999,null]}',
    '{"v":["Decimal","1e999999999"]}',
    '{"v":["Fraction","1/0"]}', '{"v":["Decimal","sNaN"]}', '{"v":["Counter",[]]}',
)  # fmt: skip
KINDS = (
    '{"k":["deque",[1,2]]}', '{"k":["deque",5]}', '{"k":["range",[0,1,2]]}', '{"k":["range",[1e308,"a"]]}',
    '{"k":["range",[0,0,0]]}', '{"k":["dict_keys",[1,[]]]}', '{"k":["Counter",{"d":[["a",1],["b",[]]]}]}',
    '{"k":["OrderedDict",{"d":[[1,2]]}]}', '{"k":["defaultdict",{"d":[]},"int"]}', '{"k":["defaultdict",{"d":[]},[]]}',
    '{"k":["Counter",[]]}', '{"k":["os",{}]}', '{"k":["array",[1]]}', '{"n":["Point",["x","y"],[1,2]]}',
    '{"n":["class",["__class__"],[1]]}', '{"n":["P",["x","x"],[1]]}', '{"n":[1,2,3]}', '{"e":["Color","RED"]}',
    '{"e":[[],0]}',
    '{"a":["int64",[1,2]]}', '{"a":["O",[[1],2]]}', '{"a":["<U1",["a"]]}', '{"a":["float64",[NaN]]}',
    '{"v":["PosixPath","/../x"]}', '{"v":["Decimal","-NaN"]}', '{"v":["Decimal","1E+1000"]}', '{"v":["Decimal","."]}',
    '{"v":["Fraction","0x1/0x0"]}', '{"v":["Fraction","0x1/-0x3"]}', '{"v":["datetime","2024-01-01T00:00:00+99:99"]}',
    '{"v":["timedelta","999999999 0 0"]}', '{"v":["timedelta","1e9"]}', '{"v":["time","24:00"]}',
    '{"v":["date","9999-12-31"]}',
)  # fmt: skip
STRINGS = (
    '""', '"a"', '"\\ud800"', '"\\udfff\\ud800"', '"\\u0000"', '"\\ud83d\\ude00"', '"yes"', '"NaN"', '"\x7f"',
    '"\xc3\xa9"',
    '"\xed\xa0\x80"', '"\xff"', '"Opaque("', '"0"', '"1e5"', '"\\\\"', '"\\/"', '"\\x"',
)  # fmt: skip


def join(recipes: list[Recipe]) -> Recipe:
    out: Recipe = []
    for n, one in enumerate(recipes):
        out += [",", *one] if n else one
    return out


def value(draw: random.Random, depth: int = 0) -> Recipe:
    """One value in JSON, tagged as values.py tags or nearly so."""
    way = draw.randrange(12 if depth < 4 else 5)
    if way == 0:
        return [draw.choice(NUMBERS)]
    if way == 1:
        return [draw.choice(("null", "true", "false", "[]", "{}", '{"t":[]}', '{"s":[]}', '{"d":[]}', '{"a":[]}'))]
    if way == 2:
        return [draw.choice(STRINGS)]
    if way == 3:
        return [draw.choice((*DATES, *KINDS))]
    if way == 4:
        return [_tag(draw), draw.choice(BODIES), "}"]
    if way == 5:
        n = draw.choice((1, 10, 399, 400, 401, 4300, 4301, 20000))
        return draw.choice(
            ([["9", n]], ['{"i":"0x', ["f", n], '"}'], ['{"i":"', ["9", n], '"}'], ["1e", ["9", n]], ["0.", ["3", n]])
        )
    if way == 6:
        n = draw.choice((2, 140, 149, 150, 151, 156, 160, 300, 950, 985, 990, 995))
        left, right = draw.choice(
            (
                ("[", "]"),
                ('{"t":[', "]}"),
                ('{"s":[', "]}"),
                ('{"z":[', "]}"),
                ('{"d":[[0,', "]]}"),
                ('{"a":[', "]}"),
                ('{"v":[', ',"x"]}'),
                ('{"?":', "}"),
            )
        )
        return [[left, n], *value(draw, 5), [right, n]]
    if way == 7:
        return [_tag(draw), *value(draw, depth + 1), f',"{draw.choice(TAGS)}":', *value(draw, depth + 1), "}"]
    if way == 8:
        pairs = [["[", *value(draw, depth + 1), ",", *value(draw, depth + 1), "]"] for _ in range(draw.randrange(4))]
        return ['{"d":[', *join(pairs), "]}"]
    items = join([value(draw, depth + 1) for _ in range(draw.randrange(5))])
    return ["[", *items, "]"] if way < 10 else [_tag(draw) + "[", *items, "]}"]


def _tag(draw: random.Random) -> str:
    return f'{{"{draw.choice(TAGS)}":'


def many(unit: Recipe) -> Callable[[int], Recipe]:
    """A list of about n bytes that holds the unit again and again."""
    length = sum(len(p) if isinstance(p, str) else len(p[0]) * p[1] for p in unit) + 1
    return lambda n: ["[", [[*unit, ","], max(1, n // length)], *unit, "]"]


def counted(text: str, step: int, before: str, after: str, group: int = 0) -> Callable[[int], Recipe]:
    """Numbers in steps within `before` and `after`: one such thing, or a list of them with `group` numbers each."""

    def shape(n: int) -> Recipe:
        length = len(text) + len(str(step)) + 4
        if not group:
            return [before, [text + ",", max(2, n // length), 0, step], text % 1, after]
        one: Recipe = [before, [text + ",", group, 0, step], text % 1, after]
        return ["[", [[*one, ","], max(1, n // (group * length))], *one, "]"]

    return shape


VALUE_SHAPES: dict[str, Callable[[int], Recipe]] = {
    "digits": lambda n: [["9", n]],
    "negative digits": lambda n: ["-", ["9", n]],
    "digits of a float": lambda n: ["0.", ["3", n]],
    "digits before a point": lambda n: [["9", n], ".5"],
    "digits of an exponent": lambda n: ["1e", ["9", n]],
    "hex": lambda n: ['{"i":"0x', ["f", n], '"}'],
    "hex with underscores": lambda n: ['{"i":"0x', ["f_", n // 2], 'f"}'],
    "digits as hex": lambda n: ['{"i":"', ["7", n], '"}'],
    "hex spaces": lambda n: ['{"i":"', [" ", n], '1"}'],
    "a complex of digits": lambda n: ['{"c":[', ["9", n], ",0]}"],
    "a complex of text": lambda n: ['{"c":["', ["9", n], '","1"]}'],
    "an opaque of digits": lambda n: ['{"?":', ["9", n], "}"],
    "a date of digits": lambda n: ['{"v":["date",', ["9", n], "]}"],
    "bytes": lambda n: ['{"b":"', ["ab", n // 2], '"}'],
    "bytes with spaces": lambda n: ['{"b":"', ["ab ", n // 3], '"}'],
    "text": lambda n: ['"', ["a", n], '"'],
    "escapes": lambda n: ['"', ["\\n", n // 2], '"'],
    "surrogates": lambda n: ['"', ["\\ud800", n // 6], '"'],
    "four-byte text": lambda n: ['"', ["\xf0\x9f\x98\x80", n // 4], '"'],
    "an open string": lambda n: ['"', ["\\", n]],
    "spaces": lambda n: [[" ", n], "1"],
    "open lists": lambda n: [["[", n]],
    "deep lists": lambda n: [["[", n // 2], ["]", n // 2]],
    "deep tuples": lambda n: [['{"t":[', n // 8], ["]}", n // 8]],
    "deep sets": lambda n: [['{"z":[', n // 8], ["]}", n // 8]],
    "deep dicts": lambda n: [['{"d":[[0,', n // 12], "0", ["]]}", n // 12]],
    "deep unknown": lambda n: [['{"?":', n // 6], "0", ["}", n // 6]],
    "empty lists": many(["[]"]),
    "empty objects": many(["{}"]),
    "empty tuples": many(['{"t":[]}']),
    "empty frozensets": many(['{"z":[]}']),
    "opaque": many(['{"?":"x"}']),
    "malformed": many(['{"i":[]}']),
    "dates": many(['{"v":["date","datetime.date(2024, 1, 1)"]}']),
    "zeros": many(["0"]),
    "nan": many(["NaN"]),
    "floats": many(["1.25"]),
    "nulls": many(["null"]),
    "verdicts": many(["true"]),
    "empty texts": many(['""']),
    "texts of 100": many(['"', ["a", 100], '"']),
    "numbers of 1,000 digits": many([["7", 1000]]),
    "numbers of 4,000 digits": many([["7", 4000]]),
    "hex of 1,000 digits": many(['{"i":"0x', ["f", 1000], '"}']),
    "hex of 100,000 digits": many(['{"i":"0x', ["f", 100000], '"}']),
    "complex": many(['{"c":[1,2]}']),
    "lists 140 deep": many([["[", 140], ["]", 140]]),
    "tuples 140 deep": many([['{"t":[', 140], ["]}", 140]]),
    "sets 140 deep": many([['{"z":[', 140], ["]}", 140]]),
    "pairs": many(["[1,2]"]),
    "colliding list": counted("%d", PRIME, "[", "]"),
    "colliding set": counted("%d", PRIME, '{"s":[', "]}"),
    "colliding sets of 999": counted("%d", PRIME, '{"s":[', "]}", 990),
    "colliding sets of 90": counted("%d", PRIME, '{"s":[', "]}", 90),
    "colliding frozensets of 30": counted("%d", PRIME, '{"z":[', "]}", 30),
    "colliding dict": counted("[%d,0]", PRIME, '{"d":[', "]}"),
    "colliding dicts of 900": counted("[%d,0]", PRIME, '{"d":[', "]}", 900),
    "colliding tuples": counted('{"t":[%d]}', PRIME, '{"s":[', "]}"),
    "colliding tuples by 900": counted('{"t":[%d]}', PRIME, '{"s":[', "]}", 900),
    "colliding frozensets": counted('{"z":[%d]}', PRIME, '{"s":[', "]}"),
    "colliding frozensets by 900": counted('{"z":[%d]}', PRIME, '{"s":[', "]}", 900),
    "hashes alike in low bits": counted("%d", 1 << 40, '{"s":[', "]}"),
    "hashes alike in many bits": counted("%d", 1 << 56, '{"s":[', "]}"),
    "keys of a dict": counted("[%d,0]", 1, '{"d":[', "]}"),
    "sets in sets": counted('{"z":[%d]}', 1, '{"s":[', "]}"),
    "tuples in a set": counted('{"t":["a",%d]}', 1, '{"s":[', "]}"),
    "plain set": counted("%d", 1, '{"s":[', "]}"),
    "floats in a set": counted("%d.5", 1, '{"s":[', "]}"),
    "texts in a set": counted('"%d"', 1, '{"s":[', "]}"),
    "array": counted("%d", 1, '{"a":[', "]}"),
    "array of arrays": counted('{"a":[%d]}', 1, '{"a":[', "]}"),
    "decimals": many(['{"v":["Decimal","1E+1000"]}']),
    "decimals of 19,000 digits": many(['{"v":["Decimal","', ["7", 19000], '"]}']),
    "fractions": many(['{"v":["Fraction","0x1/0x3"]}']),
    "fractions of 19,000 bits": many(['{"v":["Fraction","0x', ["d", 4700], "/0x", ["b", 4699], '"]}']),
    "a fraction": lambda n: ['{"v":["Fraction","0x', ["f", n // 2], "/0x", ["d", n // 2], '"]}'],
    "slashes of a fraction": lambda n: ['{"v":["Fraction","', ["1/", n // 2], '1"]}'],
    "a path": lambda n: ['{"v":["PosixPath","', ["a/", n // 2], '"]}'],
    "paths": many(['{"v":["PosixPath","a/../b"]}']),
    "a decimal": lambda n: ['{"v":["Decimal","', ["9", n], '"]}'],
    "times": many(['{"v":["datetime","2024-01-01T00:00:00"]}']),
    "deques": many(['{"k":["deque",[]]}']),
    "counters": many(['{"k":["Counter",{"d":[["a",1]]}]}']),
    "a range": counted("%d", 1, '{"k":["range",[', "]]}"),
    "a counter": counted("[%d,1]", 1, '{"k":["Counter",{"d":[', "]}]}"),
    "a colliding counter": counted("[%d,1]", PRIME, '{"k":["Counter",{"d":[', "]}]}"),
    "named tuples": many(['{"n":["P",["x"],[1]]}']),
    "fields of a named tuple": counted('"a%d"', 1, '{"n":["P",[', "],[1]]}"),
    "members": many(['{"e":["C","R"]}']),
    "arrays with a type": many(['{"a":["int64",[1]]}']),
    "an array of arrays with a type": counted("[%d]", 1, '{"a":["int64",[', "]]}"),
    "colliding decimals": counted('{"v":["Decimal","%d"]}', PRIME, '{"s":[', "]}"),
    "colliding decimals by 60": counted('{"v":["Decimal","%d"]}', PRIME, '{"s":[', "]}", 60),
    "colliding fractions by 60": counted('{"v":["Fraction","0x%x/0x1"]}', PRIME, '{"s":[', "]}", 60),
    "colliding members by 60": counted("%d", PRIME, '{"s":[', "]}", 60),
    "object of many keys": lambda n: ["{", ['"%d":1,', n // 10, 0, 1], '"x":1}'],
}
# the whole result, not only the value in it
RESULT_SHAPES: dict[str, Callable[[int], Recipe]] = {
    "many results": lambda n: ['{"r":0', [',"r":0', n // 6], "}"],
    "many keys": lambda n: ['{"r":0', [',"%d":0', n // 9, 0, 1], "}"],
    "many keys decoded": lambda n: ['{"r":{}', [',"%d":{}', n // 10, 0, 1], "}"],
    "a changed argument": lambda n: ['{"r":null,"m":[', ["0,", n // 2], "0]}"],
    "a changed argument of digits": lambda n: ['{"r":null,"m":', ["9", n], "}"],
    "spaces around": lambda n: [[" \n", n // 2], '{"r":1}', ["\t", 9]],
    "two results": lambda n: ['{"r":1}', [" ", n], '{"r":2}'],
    "zero bytes": lambda n: [["\0", n]],
    "UTF-16": lambda n: ['\xff\xfe{\0"\0r\0"\0:\0', ["1\0", n // 2], "}\0"],
    "UTF-32": lambda n: ['{\0\0\0"\0\0\0r\0\0\0"\0\0\0:\0\0\0', ["1\0\0\0", n // 4], "}\0\0\0"],
    "UTF-8 with a mark": lambda n: ['\xef\xbb\xbf{"r":', ["1", n], "}"],
    "no UTF-8": lambda n: [["\xff", n]],
    "a key of its own": lambda n: ['{"r":1,"', ["k", n], '":{"t":[]}}'],
}

WORDS = (
    "YES", "no", "True", "false", "None", "null", "nan", "inf", "-inf", "Infinity", "sNaN", "1", "-0", "+1", "007",
    "1e5",
    "1e999999999", "1E-999999999", "-1e9999999999999999999", "0.1", ".5", "5.", "1_000", "0x10", "\xd9\xa1\xd9\xa2",
    "\xff",
    "\xe2\x80\x8b", "[1,2]", "(1,)", "{1:2}", "'a'", '"a"', "[[", "]]", "'", '"', "\\", "1,2", "...", "9" * 30,
    "1.0000001",
    "\xc2\xa0", "\xe2\x88\x9e", "\x1c", "\x85", "\x0b", "\0", "b'a'", "1j", "--1", "1e", "e1", "+-1", "Decimal(1)",
)  # fmt: skip
SPACES = (
    " ",
    "\n",
    "\r\n",
    "\t",
    "  ",
    "\n\n",
    " \n",
    "\x0b",
    "\x0c",
    "\r",
    "\x1c",
    "\xc2\x85",
    "\xe2\x80\xa8",
    "\xc2\xa0",
    "",
)


def text(draw: random.Random) -> Recipe:
    """A small text of words that comparisons treat in ways of their own."""
    words = draw.sample(WORDS, draw.randint(1, 5))
    out: Recipe = []
    for _ in range(draw.randint(1, 12)):
        out += [draw.choice(words), draw.choice(SPACES)]
    return out


def literal(draw: random.Random, depth: int = 0) -> str:
    """A Python or JSON literal, for texts."""
    way = draw.randrange(8 if depth < 3 else 4)
    if way < 4:
        return draw.choice(
            ("1", "-2.5", "'a'", '"b"', "True", "null", "1e5", "''", "[]", "{}", "()", "0", '"\\u00e9"', "2.50")
        )
    items = [literal(draw, depth + 1) for _ in range(draw.randrange(4))]
    if way == 4:
        return "{" + ", ".join(f"{draw.choice(('1', repr('k'), '(1,)'))}: {item}" for item in items) + "}"
    left, right = draw.choice(("[]", "()", "{}", "[ ", "[)"))
    return left + ", ".join(items) + right


TEXT_SHAPES: dict[str, Callable[[int], Recipe]] = {
    "digits": lambda n: [["9", n]],
    "digits and a point": lambda n: [["9", n], ".0"],
    "digits after a point": lambda n: ["5.", ["0", n], "1"],
    "an exponent": lambda n: ["1e", ["9", n]],
    "zeros before": lambda n: [["0", n], "7"],
    "signs": lambda n: [["-", n], "1"],
    "numbers": lambda n: [["%d ", n // 8, 10, 7]],
    "numbers on lines": lambda n: [["%d\n", n // 8, 10, 7]],
    "floats": lambda n: [["%d.25 ", n // 10, 10, 7]],
    "floats on lines": lambda n: [["%d.25\n", n // 10, 10, 7]],
    "nan": lambda n: [["nan ", n // 4]],
    "inf": lambda n: [["inf ", n // 4]],
    "huge exponents": lambda n: [["1e999999999 ", n // 12]],
    "tiny exponents": lambda n: [["1e-999999999\n", n // 13]],
    "exponents that count": lambda n: [["1e%d ", n // 8, 1, 1]],
    "long floats": lambda n: [["1.%064d ", n // 67, 1, 1]],
    "underscores": lambda n: [["1_", n // 2], "1"],
    "digits of other scripts": lambda n: [["\xd9\xa1", n // 2]],
    "spaces": lambda n: [[" ", n], "x"],
    "line breaks": lambda n: [["\n", n], "x"],
    "line breaks of two": lambda n: [["\r\n", n // 2]],
    "trailing spaces": lambda n: [["1 \n", n // 3]],
    "odd spaces": lambda n: [["\x1c\x1d\x85\x0b\x0c", n // 5], "x"],
    "wide spaces": lambda n: [["\xe2\x80\x83", n // 3], "x"],
    "one letter a token": lambda n: [["a ", n // 2]],
    "one letter a line": lambda n: [["a\n", n // 2]],
    "words": lambda n: [["YES\n", n // 4]],
    "words in other case": lambda n: [["yEs ", n // 4]],
    "words run together": lambda n: [["yes", n // 3]],
    "open brackets": lambda n: [["[", n]],
    "brackets": lambda n: [["[", n // 2], ["]", n // 2]],
    "needless parentheses": lambda n: [["(", n // 2], "1", [")", n // 2]],
    "pairs of brackets": lambda n: ["[", ["[],", n // 3], "[]]"],
    "lines of brackets": lambda n: [["[1]\n", n // 4]],
    "lines of open brackets": lambda n: [["[\n", n // 2]],
    "a list": lambda n: ["[", ["%d, ", n // 9, 10, 7], "1]"],
    "a list without spaces": lambda n: ["[", ["%d,", n // 8, 10, 7], "1]"],
    "a list of floats": lambda n: ["[", ["%d.5, ", n // 11, 10, 7], "1.5]"],
    "a set": lambda n: ["{", ["%d, ", n // 9, 10, 7], "1}"],
    "a dict": lambda n: ["{", ["%d: 1, ", n // 12, 10, 7], "1: 1}"],
    "a dict of texts": lambda n: ["{", ["'k%d': [1], ", n // 18, 10, 7], "'x': []}"],
    "colliding numbers": lambda n: ["{", ["%d, ", n // 20, 0, PRIME], "1}"],
    "colliding tokens": lambda n: [["%d\n", n // 20, 0, PRIME]],
    "quotes": lambda n: [["'", n]],
    "texts": lambda n: ["[", ["'a', ", n // 5], "'a']"],
    "one text": lambda n: ["'", ["a", n], "'"],
    "escapes": lambda n: ["'", ["\\x41", n // 4], "'"],
    "backslashes": lambda n: ["['", ["\\", n]],
    "bad escapes": lambda n: ["'", ["\\q", n // 2], "'"],
    "surrogates": lambda n: ["'", ["\\ud800", n // 6], "'"],
    "zero bytes": lambda n: [["\0", n]],
    "no UTF-8": lambda n: [["\xff", n]],
    "no UTF-8 on lines": lambda n: [["\xff\n", n // 2]],
    "long lines": lambda n: [[[["a ", 5000], "\n"], max(1, n // 10001)]],
    "commas": lambda n: [[",", n]],
    "colons in braces": lambda n: ["{", ["1:", n // 2], "1}"],
}
