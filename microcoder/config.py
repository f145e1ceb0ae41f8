"""Typed settings in three layers: the defaults below, a TOML file, then `section.key=value` on the command line.

The field descriptions are the only copy of the help text: `microcoder config`, `--help` and the error messages all
print them. `to_toml` writes a file that `load` accepts back.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import textwrap
import tomllib
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from .schema import Policy, nearest

SETTING = re.compile(r"([\w-]+(?:\.[\w-]+)*)=(.*)", re.DOTALL)


class ConfigError(ValueError):
    """A setting that cannot be used; the message says what was found, what is expected, and what to type."""


class Section(BaseModel):
    # strict: "4" is not 4, so a quoted number in a file is a mistake that is named rather than guessed at
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class JudgeConfig(Section):
    workers: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        default="auto",
        description="How many programs are judged at once; auto: one for each core this process may use.",
    )
    policy: Policy = Field(
        default="robust",
        description="How outputs are compared. exact: LiveCodeBench's rule; robust: every comparison that cannot "
        "accept a wrong answer; paper: also the order-free comparisons of the paper.",
    )
    stop_at_first_failure: bool = Field(
        default=True,
        description="Stop a program at its first failed test (enough for a 0/1 reward); false: run all tests.",
    )
    reuse: bool = Field(
        default=False,
        description="Run a candidate's tests in one process; faster, weaker promise: one test can affect the next.",
    )
    time_limit_s: float = Field(
        default=6.0,
        gt=0,
        le=86400,
        description="CPU seconds for each test of a problem that names no limit of its own.",
    )
    time_factor: float = Field(
        default=1.0,
        gt=0,
        le=1000,
        description="Multiplies every problem's time limit, for a machine slower than the judges'.",
    )
    memory_mb: int = Field(
        default=1024,
        ge=16,
        le=1 << 20,
        description="Memory in MiB for each test of a problem that names no limit of its own.",
    )
    output_mb: int = Field(default=16, ge=1, le=4096, description="The most output in MiB that one test may write.")
    sandbox: Literal["auto", "full", "landlock", "rlimits"] = Field(
        default="auto",
        description="The walls around a program. full: namespaces, seccomp, Landlock and limits; landlock: the same "
        "without namespaces; rlimits: limits only, which stops accidents, not attacks, and so must be asked for by "
        "name; auto: full where it works, else landlock. `microcoder doctor` says what works here.",
    )
    queue: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        default="auto",
        description="How many programs may wait for a worker before reading pauses; auto: 4 for each worker.",
    )

    def options(self) -> dict[str, Any]:
        """The arguments for `microcoder.Judge`, with each `auto` that is a number worked out."""
        workers = usable_cores() if self.workers == "auto" else self.workers
        queue = 4 * workers if self.queue == "auto" else self.queue
        return {**self.model_dump(), "workers": workers, "queue": queue}


class Config(Section):
    judge: JudgeConfig = Field(default=JudgeConfig(), description="How programs are judged.")


def usable_cores() -> int:
    """Cores this process may run on, which in a container or under taskset are fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load(path: str | Path | None = None, overrides: Sequence[str] = ()) -> Config:
    """The defaults, then the file, then each `section.key=value`."""
    data: dict[str, Any] = {}
    origin: dict[tuple[str, ...], str] = {}  # where each value came from, for the messages
    if path is not None:
        data = _read(Path(path))
        origin = dict.fromkeys(_check_keys(Config, data, (), str(path)), f"{path}: ")
    for text in overrides:
        keys, value = parse_setting(text)
        for key in reversed(keys):
            value = {key: value}
        origin |= dict.fromkeys(_check_keys(Config, value, (), text), "")
        _merge(data, value)
    try:
        return Config.model_validate(data)
    except ValidationError as failure:
        places = [error["loc"] for error in failure.errors()]  # a union's places go deeper than the key
    wrong = [keys for keys in origin if any(keys == place[: len(keys)] for place in places)]
    raise ConfigError("\n".join(_complaint(data, keys, origin[keys]) for keys in wrong))


def parse_setting(text: str) -> tuple[tuple[str, ...], Any]:
    """`judge.workers=4` -> (("judge", "workers"), 4): the value is TOML, or text where it is not TOML."""
    match = SETTING.fullmatch(text)
    if match is None:
        raise ConfigError(f"{text!r} is not a setting; write section.key=value, such as judge.workers=4")
    keys = tuple(match[1].split("."))
    if len(keys) == 1:
        found = [f"{section}.{text}" for section, field in Config.model_fields.items() if keys[0] in _fields(field)]
        raise ConfigError(f"{text!r} names no section; write {found[0] if found else 'section.key=value'}")
    try:
        parsed = tomllib.loads(f"value = {match[2]}")
    except tomllib.TOMLDecodeError:
        return keys, match[2]
    value = parsed.get("value")
    if len(parsed) != 1 or isinstance(value, datetime.date | datetime.time):
        return keys, match[2]
    return keys, value


def settings(section: str | None = None) -> Iterator[tuple[str, FieldInfo]]:
    """("judge.workers", its field), ... for help texts and shell completion."""
    for name, field in Config.model_fields.items():
        if section in (None, name):
            yield from ((f"{name}.{key}", inner) for key, inner in _fields(field).items())


def to_toml(config: Config, comments: bool = True) -> str:
    """The whole configuration as a file that `load` accepts back, with the descriptions as comments."""
    lines: list[str] = []
    for name, field in Config.model_fields.items():
        section = getattr(config, name)
        lines += [*_comment(field.description, comments), f"[{name}]"]
        for key, inner in _fields(field).items():
            value = getattr(section, key)
            lines += _comment(inner.description, comments)
            lines.append(f"# {key} is not set" if value is None else f"{key} = {toml_value(value)}")
            lines += [""] if comments else []
        lines += [] if comments else [""]
    return "\n".join(lines).rstrip("\n") + "\n"


def toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml_value(str(k))} = {toml_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")  # the one character JSON lets through


def expected(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    """What a field takes, in words: `a whole number of at least 1, or "auto"`."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return expected(args[0], args[1:])
    if origin in (Union, types.UnionType):
        return ", or ".join(expected(a) for a in args if a is not type(None))
    if origin is Literal:
        return ("one of " if len(args) > 1 else "") + ", ".join(map(toml_value, args))
    if origin in (list, tuple):
        return "a list, such as [1, 2]"
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}.get(annotation, "a table")
    return words + "".join(_bounds(metadata))


def _bounds(metadata: Sequence[Any]) -> Iterator[str]:
    for mark in metadata:
        yield from _bounds(mark.metadata) if isinstance(mark, FieldInfo) else ()
        for name, words in (("ge", "of at least"), ("gt", "above"), ("le", "up to"), ("lt", "below")):
            if getattr(mark, name, None) is not None:
                yield f" {words} {getattr(mark, name)}"


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        hint = f"; to write one: microcoder config > {path}" if isinstance(error, FileNotFoundError) else ""
        raise ConfigError(f"cannot read {path}: {error.strerror}{hint}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read {path}: it is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}; `microcoder config` prints a file that is") from None


def _fields(field: FieldInfo) -> dict[str, FieldInfo]:
    """The fields of the section that `field` holds; none where it holds a plain value."""
    kind = field.annotation
    return kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else {}


def _check_keys(model: type[BaseModel], data: Any, above: tuple[str, ...], source: str) -> list[tuple[str, ...]]:
    """The path of every value in `data`; an unknown key is refused with the nearest known one."""
    here, found = ".".join(above), []
    if not isinstance(data, dict):
        raise ConfigError(f"{source}: {here} is a section, not a value; its keys are {', '.join(model.model_fields)}")
    for key, value in data.items():
        keys = (*above, key)
        if key not in model.model_fields:
            where = f"section [{here}]" if here else "the settings"
            homes = [name for name, field in model.model_fields.items() if key in _fields(field)]
            hint = f"; it belongs in section [{homes[0]}]" if homes else nearest(key, model.model_fields)
            known = "; known are " + ", ".join(model.model_fields)
            raise ConfigError(f"{source}: unknown key {key!r} in {where}{hint or known}")
        field = model.model_fields[key]
        if _fields(field):
            found += _check_keys(field.annotation, value, keys, source)  # type: ignore[arg-type]
        else:
            found.append(keys)
    return found


def _merge(data: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(data.get(key), dict):
            _merge(data[key], value)
        else:
            data[key] = value


def _complaint(data: dict[str, Any], keys: tuple[str, ...], source: str) -> str:
    value: Any = data
    field = Config.model_fields[keys[0]]
    for depth, key in enumerate(keys):
        value = value[key]
        field = _fields(field)[key] if depth else field
    kinds = {bool: "true/false", int: "a whole number", float: "a number", str: "text", list: "a list", dict: "a table"}
    found = f"{toml_value(value)} ({kinds.get(type(value), type(value).__name__)})"
    name = ".".join(keys)
    takes = expected(field.annotation, field.metadata)
    return f"{source}{name} is {found}; expected {takes}\n  {name}: {field.description}"


def _comment(text: str | None, wanted: bool) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text or "", 116)] if wanted else []
