"""Limits as people write them: 2, "2.0 seconds", "1000 ms", {"seconds": 2, "nanos": 0}, "256 megabytes"."""

from __future__ import annotations

import re
from typing import Any

_SECONDS = {"": 1.0, "s": 1.0, "sec": 1.0, "second": 1.0, "ms": 1e-3, "millisecond": 1e-3, "minute": 60.0}
_MEGABYTES = {
    "": 1.0, "mb": 1.0, "mib": 1.0, "megabyte": 1.0, "mebibyte": 1.0, "gb": 1024.0, "gib": 1024.0, "gigabyte": 1024.0,
    "kb": 1 / 1024, "kib": 1 / 1024, "kilobyte": 1 / 1024, "b": 1e-6, "byte": 1e-6,
}  # fmt: skip
_LONGEST, _LARGEST = 3600.0, 1 << 20  # beyond an hour or a terabyte a number means something else


def seconds(value: Any) -> float | None:
    """A time limit, or None where there is none that can be used."""
    if isinstance(value, dict):
        whole, rest = value.get("seconds") or 0, value.get("nanos") or 0
        value = whole + rest * 1e-9 if isinstance(whole, (int, float)) and isinstance(rest, (int, float)) else None
    found = _measure(value, _SECONDS)
    return round(found, 3) if found is not None and 1e-3 <= found <= _LONGEST else None


def megabytes(value: Any) -> int | None:
    """A memory limit, or None where there is none that can be used."""
    found = _measure(value, _MEGABYTES)
    return max(1, round(found)) if found is not None and 0 < found <= _LARGEST else None


def _measure(value: Any, units: dict[str, float]) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value) if abs(value) < 1e18 else None
    if not isinstance(value, str):
        return None
    match = re.match(r"\s*(\d{1,18}(?:\.\d{1,18})?)\s*([A-Za-z]*)", value)
    if match is None:
        return None
    unit = match.group(2).lower()
    scale = units.get(unit, units.get(unit.removesuffix("s")))
    return float(match.group(1)) * scale if scale is not None else None
