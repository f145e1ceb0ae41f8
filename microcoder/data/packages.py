"""The packages of the extra `data`, imported when they are first used."""

from __future__ import annotations

import importlib
from typing import Any

from .record import DataError


def package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        top = name.partition(".")[0]
        raise DataError(f"the package {top} is missing; install it with: pip install 'microcoder[data]'") from None
