"""The packages that only cleaning needs, imported when they are first used."""

from __future__ import annotations

import importlib
from typing import Any


def package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        top = name.partition(".")[0]
        raise ImportError(f"cleaning problems needs {top}; install it with: pip install 'microcoder[data]'") from None
