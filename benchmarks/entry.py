"""The entry point of every subject: `python -m benchmarks.SUBJECT [PART] ...` calls `main` of one of its modules."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path


def run(package: str, *parts: str, stopped: str = "stopped") -> None:
    """Call the part that the first word names, or the module with the subject's own name where there are no parts."""
    name, command = package.rpartition(".")[2], f"python -m {package}"
    if parts:
        name = sys.argv[1] if len(sys.argv) > 1 else ""
        if name not in parts:
            print(f"usage: {command} PART ...\n")
            for part in parts:
                print(f"  {part:12} {_title(package, part)}")
            sys.exit(0 if name in ("-h", "--help") else 2)
        del sys.argv[1]
        command += f" {name}"
    sys.argv[0] = command  # the name that argparse shows
    try:
        sys.exit(importlib.import_module(f"{package}.{name}").main())
    except KeyboardInterrupt:
        print(stopped, file=sys.stderr)
        sys.exit(130)


def _title(package: str, part: str) -> str:
    """The first line of the module's docstring. The module is not imported: it may need what is not installed."""
    file = Path(__file__).parent / package.rpartition(".")[2] / f"{part}.py"
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n")[0]
