"""What a judge over HTTP and its clients agree on: how a problem is written, what it is called, which settings travel.

A problem can be megabytes and has many solutions, so it is sent once and named after that: by the SHA-256 of the
bytes it was sent as, which needs no registry and cannot stand for two problems.
"""

from __future__ import annotations

import hashlib
import json

from ...schema import JUDGED, Problem

SETTINGS = (  # of `Judge`, for one candidate: its verdict is the one that a judge here with these would give
    "policy", "also", "stop_at_first_failure", "reuse", "time_limit_s", "time_factor", "memory_mb", "output_mb",
)  # fmt: skip


def packed(problem: Problem) -> bytes:
    """The problem as JSON. ASCII, so that text which is no Unicode (a lone surrogate) arrives as it is."""
    record = {name: value for name, value in problem.to_dict().items() if name in JUDGED}  # the rest stays at home
    return json.dumps(record, separators=(",", ":")).encode()


def key_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
