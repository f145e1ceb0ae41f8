"""Waiting for a page without evaluating strings in it, which its policy forbids."""

from __future__ import annotations

import time


def until(page, expression, seconds=15):
    ends = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < ends, f"never true: {expression}"
        time.sleep(0.05)
