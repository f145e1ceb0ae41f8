"""Settings as text: a TOML file with the descriptions as comments, and what a field takes in words."""

from __future__ import annotations

import json
import re
import textwrap
import types
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo


def to_toml(config: BaseModel, comments: bool = True) -> str:
    """Write the configuration as TOML that `load` reads, with the descriptions as comments."""
    lines: list[str] = []
    for name, field in type(config).model_fields.items():
        section = getattr(config, name)
        lines += [*_comment(field.description, comments), f"[{name}]"]
        for key, inner in fields_of(field).items():
            value = getattr(section, key)
            lines += _comment(inner.description, comments)
            lines.append(f"# {key} is not set" if value is None else f"{key} = {toml_value(value)}")
            lines += [""] if comments else []
        lines += [] if comments else [""]
    return "\n".join(lines).rstrip("\n") + "\n"


def toml_value(value: Any) -> str:
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_none=True)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(str(k))} = {toml_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")  # the one character JSON lets through


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_value(key)


def expected(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    """Describe the values that a field takes: `a whole number of at least 1, or "auto"`."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return expected(args[0], args[1:])
    if origin in (Union, types.UnionType):
        return ", or ".join(expected(a, metadata) for a in args if a is not type(None))
    if origin is Literal:
        return ("one of " if len(args) > 1 else "") + ", ".join(map(toml_value, args))
    if origin is list and isinstance(args[0], type) and issubclass(args[0], BaseModel):
        keys = [f"{name} ({expected(f.annotation, f.metadata)})" for name, f in args[0].model_fields.items()]
        return f"a list of tables with the keys {', '.join(keys)}"
    if origin in (list, tuple):
        return f"a list, such as {toml_value(['a', 'b'] if args[0] is str else [1, 2])}"
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}.get(annotation, "a table")
    return words + "".join(_bounds(metadata))


BOUNDS = {"ge": "of at least", "gt": "above", "le": "up to", "lt": "below", "pattern": "that matches"}


def _bounds(metadata: Sequence[Any]) -> Iterator[str]:
    for mark in metadata:
        yield from _bounds(mark.metadata) if isinstance(mark, FieldInfo) else ()
        for name, words in BOUNDS.items():
            if getattr(mark, name, None) is not None:
                yield f" {words} {getattr(mark, name)}"


def fields_of(field: FieldInfo) -> dict[str, FieldInfo]:
    """Return the fields of a section; none if `field` is a plain value."""
    kind = field.annotation
    return kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else {}


def _comment(text: str | None, wanted: bool) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text or "", 116)] if wanted else []
