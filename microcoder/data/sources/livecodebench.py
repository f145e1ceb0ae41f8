"""LiveCodeBench, code_generation and code_generation_lite: its private tests may be base64 of zlib of a pickle.

An untrusted pickle is read as plain data or refused. Every opcode is checked before anything is built: opcodes that
import, call or build objects are refused, and so is a memo index beyond the data's length (a few bytes could allocate
gigabytes). The rest is read by an unpickler whose `find_class` always refuses.
"""

from __future__ import annotations

import base64
import binascii
import io
import pickle
import pickletools
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...schema import Problem
from ..record import Dropped, Record
from .cases import add_cases
from .fields import Row, codeforces_url, day, decoded, read_rows, text
from .rows import Unreadable

LARGEST = 1 << 29  # bytes after decompression
_PLAIN = set(
    "PROTO FRAME STOP MARK POP POP_MARK DUP NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 "
    "FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 "
    "BINBYTES SHORT_BINBYTES BINBYTES8 "
    "EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT DICT SETITEM SETITEMS "
    "PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET LONG_BINGET".split()
)


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> Any:
        raise Dropped("unsafe_pickle", f"it asks for {module_name}.{global_name}")


def unpickle(data: bytes) -> Any:
    """Unpickle strings, numbers, lists, tuples and dicts; drop anything else."""
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name not in _PLAIN:
                raise Dropped("unsafe_pickle", f"it has the opcode {opcode.name} ({argument!r:.80})")
            if "PUT" in opcode.name and int(argument or 0) > len(data):
                raise Dropped("unsafe_pickle", f"it has a memo index of {argument}")
        return _PlainUnpickler(io.BytesIO(data)).load()
    except Dropped:
        raise
    except Exception as error:  # a damaged pickle may raise anything
        raise Dropped("unreadable_tests", f"no pickle that can be read: {error}"[:300]) from None


def decompress(data: bytes) -> bytes:
    """Decompress zlib data, up to LARGEST bytes."""
    stream = zlib.decompressobj()
    try:
        out = stream.decompress(data, LARGEST)
    except zlib.error as error:
        raise Dropped("unreadable_tests", f"no zlib data: {error}") from None
    if not stream.eof:
        too_much = len(out) >= LARGEST
        raise Dropped("unreadable_tests", f"over {LARGEST} bytes unpacked" if too_much else "the zlib data is cut off")
    return out


COLUMNS = ({"question_content", "question_id", "public_test_cases"},)  # private_test_cases may be missing


def read(path: str | Path, *, limit: int | None = None) -> Iterator[Record | Unreadable]:
    return read_rows("livecodebench", build, path, limit)


def build(row: Row) -> Record:
    site, ident = text(row, "platform", default=""), text(row, "question_id")
    title = text(row, "question_title", default="")
    metadata = decoded(row.get("metadata"), "the metadata")
    problem = Problem(
        id=ident,
        title=title,
        statement=text(row, "question_content"),
        starter_code=text(row, "starter_code", default=""),
        difficulty=text(row, "difficulty", default="").lower(),
        platform=site,
        url=_url(site, ident, title, text(row, "contest_id", default="")),
        date=day(row.get("contest_date")),
    )
    public, private = decoded(row.get("public_test_cases"), "the public tests"), _private(row.get("private_test_cases"))
    tests = [*(public or []), *(private or [])]
    for number, test in enumerate(tests):
        if isinstance(test, dict) and test.get("output") is None:
            raise Dropped("unreadable_tests", f"test {number} has no output: {test!r:.80}")
    if not private:
        problem.extra["public_tests_only"] = True
    add_cases(problem, tests, metadata.get("func_name") or "" if isinstance(metadata, dict) else "")
    return Record(problem)


def _private(value: Any) -> Any:
    """Read the private tests from JSON text, plain or compressed."""
    if not isinstance(value, str) or value.lstrip()[:1] in ("", "["):
        return decoded(value, "the private tests")
    try:
        packed = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise Dropped("unreadable_tests", f"the private tests are neither JSON nor base64: {value[:60]!r}") from None
    content = unpickle(decompress(packed))
    if not isinstance(content, str):
        raise Dropped("unreadable_tests", f"the private tests unpack to {type(content).__name__}, not to JSON text")
    return decoded(content, "the private tests")


def _url(site: str, ident: str, title: str, contest: str) -> str:
    if site == "codeforces":
        return codeforces_url(*ident.partition("_")[::2])
    if site == "atcoder" and contest:
        return f"https://atcoder.jp/contests/{contest}/tasks/{ident}"
    slug = re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", title)  # LeetCode's titles are the names in its addresses
    return f"https://leetcode.com/problems/{title}/" if site == "leetcode" and slug else ""
