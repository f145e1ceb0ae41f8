"""TOML that is read strictly: what is not known, missing or of another kind is named, with its place and a remedy."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from ..schema import nearest


class StudyError(ValueError):
    """A study or a claim that cannot be used; the message says where, why, and what would work."""


def among(word: str, known: Collection[str], what: str = "there are") -> str:
    """What may have been meant: the nearest of the known names, or all of them."""
    return nearest(word, known) or f"; {what} {', '.join(known) or 'none'}"


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:  # not UTF-8, or not TOML
        raise StudyError(f"{path} is not TOML: {error}") from None


def only(record: Iterable[str], known: Collection[str], where: str) -> None:
    for key in record:
        if key not in known:
            raise StudyError(f"{where}: unknown key {key!r}{among(key, known, 'known are')}")


def text(record: dict[str, Any], names: Iterable[str], where: str) -> None:
    for name in names:
        if not isinstance(record.get(name), str) or not record[name].strip():
            found = f"is {record[name]!r}" if name in record else "is missing"
            raise StudyError(f'{where}: {name} {found}; write it as text: {name} = "..."')


def texts(record: dict[str, Any], name: str, where: str) -> tuple[str, ...]:
    """A list of texts; none where it is left out."""
    found = record.get(name, [])
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise StudyError(f'{where}: {name} is {found!r}; it must be a list of texts: {name} = ["..."]')
    return tuple(found)


def one_of(record: dict[str, Any], name: str, known: Collection[str], where: str) -> None:
    if record[name] not in known:
        raise StudyError(f"{where}: {name} is {record[name]!r}{among(record[name], known, 'it must be one of')}")


def tables(record: dict[str, Any], name: str, where: str, above: str = "") -> list[dict[str, Any]]:
    """One or more tables; `above` names the list that each of them belongs to."""
    found = record.get(name)
    if not isinstance(found, list) or not found or not all(isinstance(table, dict) for table in found):
        raise StudyError(f"{where}: there is no table of {name}; write [[{above}{name}]] and its keys below it")
    return found
