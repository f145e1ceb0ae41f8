"""Configurations that come with the package: `microcoder ls` names them, `microcoder cp` copies one to change it."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def shipped() -> dict[str, Path]:
    """Every configuration by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


def about(path: Path) -> str:
    """What a configuration is for: its first line, a comment."""
    return path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ").rstrip()
