"""The advisor's remarks over a whole run, each at the step that it concerns, as the live display would have made them.

1. Of a run of more than FIRST + LAST steps the advisor is shown the first and the last ones only, and after EVERY
   steps it is asked ever more seldom: a long run costs hardly more than a short one, and a fault that lasted for a few
   steps only may be missed.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..advise import QUIET, advise
from .following import Follower

FIRST, LAST = 32, 128  # lines that the advisor sees
EVERY = 150  # steps of which each is looked at; of the next 150 every second, of the next every third ...
MOST = 500  # remarks: a run that is told more needs no more


class Remarks(Follower):
    """What was wrong at which step, and was not already at one of the few steps before."""

    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        self.config = config
        super().__init__(path)

    def begin(self) -> None:
        self.found: list[dict[str, Any]] = []
        self._head: list[dict[str, Any]] = []
        self._tail: deque[dict[str, Any]] = deque(maxlen=LAST)
        self._said: dict[str, int] = {}  # code -> the number of the line where it was last found
        self._lines = 0

    def line(self, line: bytes) -> None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(record, dict) or not isinstance(record.get("step"), int):
            return
        (self._head if len(self._head) < FIRST else self._tail).append(record)
        number, self._lines = self._lines, self._lines + 1
        stride = number // EVERY + 1
        if number % stride or len(self.found) >= MOST:
            return
        try:
            now = advise([*self._head, *self._tail], self.config)
        except Exception:  # the rules expect what a run writes; of what somebody else wrote, there is nothing to say
            return
        lately = number - QUIET - stride
        self.found += [asdict(one) for one in now if self._said.get(one.code, lately) <= lately]
        self._said |= {one.code: number for top in now for one in (top, *top.symptoms)}
