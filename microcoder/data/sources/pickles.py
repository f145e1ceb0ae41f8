"""A pickle from strangers, read as plain data or not at all.

Two locks. Every opcode is looked at before anything is built: those that import, call or build objects are refused, and
so is a memo index beyond the data's length (a few bytes that would ask for gigabytes). What passes goes to an
unpickler whose `find_class` always refuses.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import zlib
from typing import Any

from ..record import Dropped

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
    """Strings, numbers, lists, tuples and dicts; anything else is Dropped."""
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
    """zlib, up to LARGEST bytes."""
    stream = zlib.decompressobj()
    try:
        out = stream.decompress(data, LARGEST)
    except zlib.error as error:
        raise Dropped("unreadable_tests", f"no zlib data: {error}") from None
    if not stream.eof:
        too_much = len(out) >= LARGEST
        raise Dropped("unreadable_tests", f"over {LARGEST} bytes unpacked" if too_much else "the zlib data is cut off")
    return out
