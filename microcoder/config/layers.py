"""The three layers of a configuration, their errors, how one is found by its name, and the way back to TOML.

A layer that names a preset brings all of the preset's values with it, under the layer's own: so a preset on the
command line replaces what a file spelled out, and a single key still wins over its preset.
"""

from __future__ import annotations

import datetime
import json
import re
import textwrap
import tomllib
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from ..schema import nearest
from .presets import PRESETS
from .sections import Config

Settings = TypeVar("Settings", bound=BaseModel)
SETTING = re.compile(r"([\w-]+(?:\.[\w-]+)*)=(.*)", re.DOTALL)


RETIRED = (("grpo", "diversity_target"),)  # keys without effect, in the files of runs of older versions


class ConfigError(ValueError):
    """A setting that cannot be used; the message says what was found, what is expected, and what to type."""


def load(path: str | Path | None = None, overrides: Sequence[str] = ()) -> Config:
    """Load settings: the defaults, then the file, then each `section.key=value`."""
    return load_as(Config, path, overrides, _with_preset({"grpo": {"preset": Config().grpo.preset}}))


def configuration(words: Sequence[str]) -> tuple[Config, Path]:
    """Load `[CONFIG] [section.key=value ...]`; return the configuration and the folder of its run.

    CONFIG is a file, a run, or a configuration of the package by its name.
    """
    named = bool(words) and SETTING.fullmatch(words[0]) is None
    changes = words[1:] if named else words
    path = find(words[0]) if named else None
    config = load(path, changes)
    if named and path == Path(words[0]) / "config.toml":  # a run: it is gone on with where it lies now
        if not any(change.startswith(("train.folder=", "train.name=")) for change in changes):
            return config, path.parent
    name = Path(words[0]).name.removesuffix(".toml") if named else "run"  # not its stem: leetcode-0.5b has a dot
    return config, Path(config.train.folder) / (config.train.name or name)


def find(word: str) -> Path:
    """Find the file of CONFIG: a path, a run directory, or the name of a configuration of the package."""
    path, names = Path(word), shipped()
    if (path / "config.toml").exists():
        return path / "config.toml"
    if path.exists() and not path.is_dir():
        if path.name.removesuffix(".gz").endswith((".jsonl", ".json", ".parquet")):
            raise ConfigError(f"{path} holds problems, not settings; write data.train={path} behind a configuration")
        return path
    if word in names:
        return names[word]
    if path.is_dir():
        raise ConfigError(f"{path} is a folder that holds no run; name a run, a file, or one of {', '.join(names)}")
    if path.suffix == ".toml" or "/" in word:
        raise ConfigError(f"there is no file {path}; to begin one: microcoder cp demo {path}")
    hint = nearest(word, names) or f"; there are {', '.join(names)}"
    raise ConfigError(f"{word!r} is neither a file nor a configuration of the package{hint}")


def load_as(
    model: type[Settings],
    path: str | Path | None,
    overrides: Sequence[str] = (),
    defaults: dict[str, Any] | None = None,
) -> Settings:
    """Load settings of another model than Config, in the same layers."""
    data: dict[str, Any] = defaults or {}
    origin: dict[tuple[str, ...], str] = {}  # where each value came from, for the messages
    if path is not None:
        layer = {key: {"on": value} if _short(model, key, value) else value for key, value in _read(Path(path)).items()}
        origin = dict.fromkeys(_check_keys(model, layer, (), str(path)), f"{path}: ")
        _merge(data, _with_preset(layer))
    layer = {}
    for text in overrides:
        keys, value = parse_setting(text, model)
        for key in reversed(keys):
            value = {key: value}
        origin |= dict.fromkeys(_check_keys(model, value, (), text), "")
        _merge(layer, value)
    _merge(data, _with_preset(layer))
    try:
        return model.model_validate(data)
    except ValidationError as failure:
        places = [error["loc"] for error in failure.errors()]  # a union's places go deeper than the key
    wrong = [keys for keys in origin if any(keys == place[: len(keys)] for place in places)]
    raise ConfigError("\n".join(_complaint(model, data, keys, origin[keys]) for keys in wrong))


def parse_setting(text: str, model: type[BaseModel] = Config) -> tuple[tuple[str, ...], Any]:
    """`judge.workers=4` -> (("judge", "workers"), 4): the value is TOML, or text where it is not TOML."""
    match = SETTING.fullmatch(text)
    if match is None:
        raise ConfigError(f"{text!r} is not a setting; write section.key=value, such as judge.workers=4")
    keys = tuple(match[1].split("."))
    if _short(model, match[1], match[2]):
        return (match[1], "on"), match[2]
    if len(keys) == 1:
        found = [f"{section}.{text}" for section, field in model.model_fields.items() if keys[0] in fields_of(field)]
        raise ConfigError(f"{text!r} names no section; write {found[0] if found else 'section.key=value'}")
    try:
        parsed = tomllib.loads(f"value = {match[2]}")
    except tomllib.TOMLDecodeError:
        words = re.fullmatch(r"\[([\w\s,./-]+)\]", match[2])  # ["a", "b"], whose quotes the shell has eaten
        return keys, [word.strip() for word in words[1].split(",") if word.strip()] if words else match[2]
    value = parsed.get("value")
    if len(parsed) != 1 or isinstance(value, datetime.date | datetime.time):
        return keys, match[2]
    return keys, value


def settings(section: str | None = None) -> Iterator[tuple[str, FieldInfo]]:
    """("judge.workers", its field), ... for help texts and shell completion."""
    for name, field in Config.model_fields.items():
        if section in (None, name):
            yield from ((f"{name}.{key}", inner) for key, inner in fields_of(field).items())


def _read(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        hint = f"; to write one: microcoder config > {path}" if isinstance(error, FileNotFoundError) else ""
        raise ConfigError(f"cannot read {path}: {error.strerror}{hint}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read {path}: it is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}; `microcoder config` prints a file that is") from None
    for section, key in RETIRED:
        if isinstance(found.get(section), dict):
            found[section].pop(key, None)
    return found


def _check_keys(model: type[BaseModel], data: Any, above: tuple[str, ...], source: str) -> list[tuple[str, ...]]:
    """Yield the path of every value in `data`; refuse an unknown key, with the nearest known one."""
    here, found = ".".join(above), []
    if not isinstance(data, dict):
        raise ConfigError(f"{source}: {here} is a section, not a value; its keys are {', '.join(model.model_fields)}")
    for key, value in data.items():
        keys = (*above, key)
        if key not in model.model_fields:
            where = f"section [{here}]" if here else "the settings"
            homes = [name for name, field in model.model_fields.items() if key in fields_of(field)]
            hint = f"; it belongs in section [{homes[0]}]" if homes else nearest(key, model.model_fields)
            known = "; known are " + ", ".join(model.model_fields)
            raise ConfigError(f"{source}: unknown key {key!r} in {where}{hint or known}")
        field = model.model_fields[key]
        if fields_of(field):
            found += _check_keys(field.annotation, value, keys, source)  # type: ignore[arg-type]
        else:
            _check_tables(field, value, f"{source}: ", ".".join(keys))
            found.append(keys)
    return found


def _check_tables(field: FieldInfo, value: Any, source: str, name: str) -> None:
    """Refuse an unknown key in one of the tables of a list; what else is wrong with them is found later."""
    known = table.model_fields if (table := table_of(field.annotation)) else {}
    for number, row in enumerate(value if known and isinstance(value, list) else [], 1):
        for key in row if isinstance(row, dict) else ():
            if key not in known:
                hint = nearest(key, known) or f"; known are {', '.join(known)}"
                raise ConfigError(f"{source}unknown key {key!r} in table {number} of {name}{hint}")


def _short(model: type[BaseModel], key: str, value: Any) -> bool:
    """Whether a value is short for a section's `on`: judge = "http://...", in a file or on the command line."""
    return isinstance(value, str) and key in model.model_fields and "on" in fields_of(model.model_fields[key])


def _with_preset(layer: dict[str, Any]) -> dict[str, Any]:
    grpo = layer.get("grpo", {})
    name = grpo.get("preset")
    return {**layer, "grpo": {**PRESETS[name], **grpo}} if isinstance(name, str) and name in PRESETS else layer


def _merge(data: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(data.get(key), dict):
            _merge(data[key], value)
        else:
            data[key] = value


def _complaint(model: type[BaseModel], data: dict[str, Any], keys: tuple[str, ...], source: str) -> str:
    value: Any = data
    field = model.model_fields[keys[0]]
    for depth, key in enumerate(keys):
        value = value[key]
        field = fields_of(field)[key] if depth else field
    kinds = {bool: "true/false", int: "a whole number", float: "a number", str: "text", list: "a list", dict: "a table"}
    found = f"{toml_value(value)} ({kinds.get(type(value), type(value).__name__)})"
    name = ".".join(keys)
    takes = expected(field.annotation, field.metadata)
    return f"{source}{name} is {found}; expected {takes}\n  {name}: {field.description}"


RECIPES = Path(__file__).parent / "recipes"


def shipped() -> dict[str, Path]:
    """Return every configuration of the package by name."""
    return {path.stem: path for path in sorted(RECIPES.glob("*.toml"))}


def about(path: Path) -> str:
    """Return what a configuration is for: the comment in its first line."""
    return path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ").rstrip()


def to_toml(config: BaseModel, comments: bool = True) -> str:
    """Write the configuration as TOML that `load` reads, with the descriptions as comments."""
    lines: list[str] = []
    for name, field in type(config).model_fields.items():
        section = getattr(config, name)
        lines += [*_comment(field.description, comments), f"[{name}]"]
        for key, inner in fields_of(field).items():
            value = getattr(section, key)
            lines += _comment(inner.description, comments)
            table = table_of(inner.annotation)
            if value is None:
                lines.append(f"# {key} is not set")
            elif table and not value and comments:  # `key = []` would forbid tables with [[name.key]] further down
                lines += _example(f"{name}.{key}", table)
            else:
                lines.append(f"{key} = {toml_value(value)}")
            lines += [""] if comments else []
        lines += [] if comments else [""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _example(name: str, table: type[BaseModel]) -> list[str]:
    """Show, as comments, how a list that is empty is filled: with tables of such keys."""
    lines = ["# None is set here. Write one table for each at the end of the file, with these keys:", f"#   [[{name}]]"]
    for key, field in table.model_fields.items():
        value = "..." if field.is_required() or field.default is None else toml_value(field.default)
        lines.append(f"#   {key} = {value}  # {field.description}")
    return lines


def toml_value(value: Any) -> str:
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_none=True)
    if hasattr(value, "tolist"):  # a number or an array of NumPy's
        value = value.tolist()
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
    if table := table_of(annotation):
        keys = [f"{name} ({expected(f.annotation, f.metadata)})" for name, f in table.model_fields.items()]
        return f"a list of tables with the keys {', '.join(keys)}"
    if origin in (list, tuple):
        return f"a list, such as {toml_value(['a', 'b'] if args[0] is str else [1, 2])}"
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}.get(annotation, "a table")
    return words + "".join(_bounds(metadata))


def table_of(annotation: Any) -> type[BaseModel] | None:
    """The model of a list of tables; None for other types."""
    inner = get_args(annotation)[0] if get_origin(annotation) is list else None
    return inner if isinstance(inner, type) and issubclass(inner, BaseModel) else None


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
