"""Values on their way out of a test process: what comes back, and what hostile data can cost."""

from __future__ import annotations

import datetime
import json
import random
import time
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from microcoder.judge.checks import natural
from microcoder.judge.compare.match import show
from microcoder.judge.sandbox.records import faithful
from microcoder.judge.sandbox.values import Array, Member, Opaque, TooMuch, answer, decode, encode

MB4 = 4_100_000
Point = namedtuple("Point", "x y")
Colour = Enum("Colour", "RED BLUE")

SAME = [
    None, True, 5, -(1 << 5000), 0.1, 2 + 3j, "a\ud800", b"\xff", [1, [2]], (1, (2,)), {1, 2}, frozenset({1}),
    {1: {2: 3}}, datetime.date(2024, 2, 29), datetime.datetime(2024, 1, 2, 3, 4, 5, 6), datetime.time(1, 2),
    datetime.timedelta(-1, 5), datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC), Decimal("0.10"), Decimal("-1E+5"),
    Decimal("Infinity"), Fraction(-1, 3), Counter("aab"), OrderedDict(b=1, a=2), deque([1, 2]), range(2, 11, 3),
    range(0), Path("a/b"), defaultdict(list, {1: [2]}), [Decimal(1), {datetime.date(2024, 1, 1): (Fraction(1, 2),)}],
]  # fmt: skip


@pytest.mark.parametrize("value", SAME, ids=lambda value: show(value))
def test_a_value_comes_back_as_what_it_was(value: Any) -> None:
    again = answer(json.dumps({"r": encode(value), "x": {"t": []}}).encode())["r"]
    assert again == value and type(again) is type(value)
    assert encode(again) == encode(value)


def test_a_named_tuple_keeps_its_fields_and_is_a_tuple() -> None:
    data = encode(Point(1, 2))
    assert decode(data) == (1, 2) and encode(decode(data)) == data
    assert decode(data, real=True)._asdict() == {"x": 1, "y": 2}


def test_members_of_enumerations_are_known_by_name() -> None:
    assert decode(encode(Colour.RED)) == Member("Colour", "RED") != Member("Colour", "BLUE")


def test_what_has_no_plain_value_is_named() -> None:
    found = decode(encode([object(), (x for x in ())]))
    assert [item.type_name for item in found] == ["object", "generator"]


@pytest.mark.parametrize(
    ("value", "faith"),
    [
        (5, "frozen"), ((1, "a"), "frozen"), (Decimal(1), "frozen"), (range(3), "frozen"), (frozenset({1}), "frozen"),
        ([1], "plain"), ((1, [2]), "plain"), ({1: 2}, "plain"), (deque([1]), "plain"), (Counter("a"), "plain"),
        (object(), ""), ([object()], ""), (Point(1, 2), ""), (len, ""), ([[1]] * 2, ""), (bytearray(b"a"), ""),
        (Colour.RED, ""),
    ],
)  # fmt: skip
def test_only_what_comes_back_the_same_is_handed_over(value: Any, faith: str) -> None:
    assert faithful(value) == faith


def test_numbers_become_natural_for_what_reads_json() -> None:
    given = [
        Decimal("2.0"),
        Decimal("0.5"),
        Fraction(1, 2),
        deque([Decimal(1)]),
        {"a": Fraction(4, 2)},
        Decimal("1E+999"),
    ]
    assert natural(given) == [2, 0.5, 0.5, (1,), {"a": 2}, float("inf")]


def nested(tag: str, depth: int) -> Any:
    item: Any = {tag: []}
    for _ in range(depth):
        item = {tag: [item]}
    return item


def tagged(body: Any) -> bytes:
    return json.dumps({"r": body}).encode()


def colliding(count: int, same: int, length: int) -> bytes:
    return tagged(
        {"s": [{"t": [0] * same + [-1 - (n >> k & 1) for k in reversed(range(length))]} for n in range(count)]}
    )


def fractions(count: int) -> bytes:
    draw = random.Random(1).getrandbits
    return tagged([{"v": ["Fraction", f"{draw(19_999):x}/{draw(19_999):x}"]} for _ in range(count)])


HOSTILE: dict[str, tuple[Callable[[], bytes], bool]] = {  # name: (the result, whether it is too much)
    "digits": (lambda: b'{"r": ' + b"7" * MB4 + b"}", True),
    "digits with a sign": (lambda: b'{"r": [-' + b"7" * MB4 + b"]}", True),
    "digits after a point": (lambda: b'{"r": 0.' + b"7" * MB4 + b"}", False),
    "an exponent": (lambda: b'{"r": 1e' + b"7" * MB4 + b"}", False),
    "integers just short enough": (lambda: b'{"r": [' + (b"7" * 1299 + b",") * 3150 + b"1]}", False),
    "a text of digits": (lambda: b'{"r": "' + b"7" * MB4 + b'"}', False),
    "open brackets": (lambda: b'{"r": ' + b"[" * MB4, True),
    "open objects": (lambda: b'{"r": ' + b'{"a":' * (MB4 // 5), True),
    "tuples too deep": (lambda: tagged(nested("t", 170)), True),
    "tuples as deep as allowed": (lambda: tagged([nested("t", 140)] * 750), False),
    "sets of sets": (lambda: tagged({"s": [{"z": [{"z": [n]}]} for n in range(50_000)]}), False),
    "too many sets": (lambda: tagged({"s": [{"z": [n]} for n in range(150_000)]}), True),
    "many pairs": (lambda: tagged([{"t": [n, n]} for n in range(110_000)]), False),
    "a long integer": (lambda: tagged({"i": "f" * MB4}), False),
    "bytes": (lambda: tagged({"b": "ff" * (MB4 // 2)}), False),
    "blanks for bytes": (lambda: tagged({"b": " " * MB4}), False),
    "a long decimal": (lambda: tagged({"v": ["Decimal", "7" * MB4]}), True),
    "a decimal with a long exponent": (lambda: tagged({"v": ["Decimal", "1E+" + "9" * MB4]}), True),
    "a decimal with a large exponent": (lambda: tagged({"v": ["Decimal", "1E+999999999"]}), True),
    "many decimals": (lambda: tagged({"s": [{"v": ["Decimal", f"{n}E+999"]} for n in range(110_000)]}), False),
    "a decimal that is none": (lambda: tagged({"v": ["Decimal", "." * MB4]}), False),
    "a long fraction": (lambda: tagged({"v": ["Fraction", "f" * MB4 + "/3"]}), True),
    "many fractions": (lambda: fractions(400), False),
    "many colliding tuples": (lambda: colliding(999, 0, 900), True),
    "a few colliding tuples that begin alike": (lambda: colliding(32, 20_000, 6), False),
    "colliding integers": (lambda: tagged({"s": [n * (2**61 - 1) for n in range(150_000)]}), True),
    "colliding keys": (lambda: tagged({"d": [[n * (2**61 - 1), 0] for n in range(150_000)]}), True),
    "integers with many zeros": (lambda: tagged({"s": [n << 40 for n in range(200_000)]}), False),
    "a named tuple with a million fields": (lambda: tagged({"n": ["a", ["b"] * 800_000, [1]]}), False),
    "dates": (lambda: tagged([{"v": ["datetime", "2024-01-01T00:00:00+00:00"]}] * 80_000), False),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_reading_hostile_results_is_bounded(name: str) -> None:
    make, too_much = HOSTILE[name]
    output = make()
    start = time.process_time()
    if too_much:
        with pytest.raises(TooMuch):
            answer(output)
    else:
        show(answer(output)["r"])
    assert time.process_time() - start < 6  # all took less than 2.5 s on a slow core, most less than 0.5 s


@pytest.mark.parametrize(
    "body",
    [
        {"i": 5}, {"i": "x"}, {"b": 7}, {"b": "x"}, {"c": "xy"}, {"c": [10**400, 0]}, {"c": ["1", 0]}, {"v": [1]},
        {"v": "ab"}, {"v": ["date", "2024-13-01"]}, {"v": ["date", "2024-01-\ud800"]},
        {"v": ["timedelta", "9" * 70 + " 1 1"]}, {"v": ["Decimal", "sNaN"]}, {"v": ["Decimal", ["1"]]},
        {"v": ["Fraction", "1/0"]}, {"v": ["Fraction", "1"]}, {"v": ["__class__", "x"]}, {"k": {}},
        {"k": ["range", [0, 10**30]]}, {"k": ["range", [0.5, 1.5]]}, {"k": ["deque", 7]}, {"k": ["range", [1, 1]]},
        {"k": ["Counter", [1]]}, {"k": ["defaultdict", {"d": []}, ["x"]]}, {"k": ["dict_keys", [[]]]},
        {"n": [1, 2, 3]}, {"n": ["a", ["b"], 7]}, {"e": None}, {"e": [1, 2]}, {"a": [[]]}, {"a": [1, [1]]}, {"s": 1},
        {"s": [[]]}, {"d": [1]}, {"d": [[{"?": "x"}, 1]]}, {"?": []}, {"t": 5}, {"zz": 1}, {}, {"t": [], "s": []},
    ],
    ids=repr,
)  # fmt: skip
def test_malformed_values_become_opaque_or_harmless(body: Any) -> None:
    found = answer(tagged([body, {"t": []}]))["r"][0]
    assert isinstance(found, (Opaque, Array, range, defaultdict))


@pytest.mark.parametrize("output", [b"", b"null", b"[]", b"{}", b'{"x": 1}', b"\xff", b'{"r"', b'{"r": 1} x'])
def test_what_is_no_result_is_no_value(output: bytes) -> None:
    assert isinstance(answer(output)["r"], Opaque)
