"""Read rows from JSON Lines, a JSON list, Parquet or CSV, plain or compressed, a folder of those, or a hub id.

An unreadable row becomes an Unreadable in its place. Only a path that does not exist raises an exception.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from ..record import DataError

KINDS = (".jsonl", ".json", ".csv", ".parquet")
SUFFIXES = (*KINDS, *(f"{kind}{packed}" for kind in KINDS[:3] for packed in (".gz", ".zst")))
BOM = b"\xef\xbb\xbf"
FIELD = 1 << 28  # bytes of a CSV field; Python's own limit of 128 KB is less than many tests
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+(?::[\w.-]*){0,2}")  # owner/name, owner/name:config, owner/name:config:split
Row = dict[str, Any]


class SourceError(DataError):
    """A source that cannot be used at all; the message says why and what to type instead."""


@dataclass(slots=True)
class Unreadable:
    """A row that cannot become a problem: `where` is `file:line`, `reason` a short word, `detail` what was found."""

    where: str
    reason: str
    detail: str = ""


def rows(path: str | Path) -> Iterator[tuple[str, Row | Unreadable]]:
    """Yield (`file:line`, row) for every row; lines, items of a list and rows of a table count from 1."""
    where = Path(path)
    if not where.exists():
        if not HUB_ID.fullmatch(str(path)) or where.name.lower().endswith(SUFFIXES):  # data/mbpp.jsonl is none
            raise SourceError(f"there is no file or folder {path}, and it is no hub id such as owner/name")
        found: Iterator[tuple[str, Any]] = hub_rows(str(path))
    else:
        found = (row for file in data_files(where) for row in _file(file, where))
    for place, row in found:
        if isinstance(row, dict):  # NaN is what pandas has for nothing
            row = {name: None if isinstance(value, float) and value != value else value for name, value in row.items()}
        elif not isinstance(row, Unreadable):
            row = Unreadable(place, "unreadable_row", f"not an object with columns but {type(row).__name__}")
        yield place, row


def data_files(path: Path) -> list[Path]:
    """Return the file itself, or all files of known types in the folder and its subfolders, by name."""
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file() and not _hidden(p, path))
    known = [file for file in files if file.name.lower().endswith(SUFFIXES)]
    if not known:
        raise SourceError(f"{path}: nothing to read; the names of files must end in {', '.join(SUFFIXES)}")
    return known


def _hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def _file(file: Path, within: Path) -> Iterator[tuple[str, Any]]:
    name = file.name if file == within else str(file.relative_to(within))
    number = 0
    try:
        for number, row in _numbered(file):
            place = f"{name}:{number}"
            yield place, Unreadable(place, "unreadable_row", str(row)) if isinstance(row, Exception) else row
    except Exception as error:  # of the disk, of gzip, of Arrow: the rows so far and other files are good
        place = f"{name}:{number + 1}"
        yield place, Unreadable(place, "unreadable_file", f"damaged from here on: {error}"[:300])


def _numbered(file: Path) -> Iterator[tuple[int, Any]]:
    """Yield (number, row), with the exception instead of a row that cannot be read."""
    kind = "." + file.name.lower().removesuffix(".gz").removesuffix(".zst").rpartition(".")[2]
    if kind == ".parquet":
        yield from _parquet(file)
        return
    with _open(file) as stream:
        if kind == ".csv":
            yield from _csv(stream)
        elif kind == ".json":
            whole = _loads(stream.read().removeprefix(BOM))
            if not isinstance(whole, list):
                found = whole if isinstance(whole, Exception) else f"a {type(whole).__name__}"
                raise ValueError(f"not a JSON list ({found}); if each line is an object, rename it to .jsonl")
            yield from enumerate(whole, 1)
        else:
            for number, line in enumerate(stream, 1):
                line = line.removeprefix(BOM) if number == 1 else line
                if line.strip():
                    yield number, _loads(line)


def _open(file: Path) -> IO[bytes]:
    if file.suffix.lower() == ".gz":
        return cast(IO[bytes], gzip.open(file))
    if file.suffix.lower() == ".zst":
        import pyarrow

        return io.BufferedReader(pyarrow.input_stream(str(file), compression="zstd"))
    return open(file, "rb")


def _loads(line: bytes) -> Any:
    try:
        return json.loads(line)
    except RecursionError:
        return ValueError("not JSON that can be read: nested too deeply")
    except ValueError as error:  # bad UTF-8 and integers of many thousand digits too
        return ValueError(f"not JSON that can be read: {error}")


def _csv(stream: IO[bytes]) -> Iterator[tuple[int, Any]]:
    csv.field_size_limit(FIELD)
    reader = csv.DictReader(io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""), strict=True)
    number = 0
    while True:
        number += 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield number, ValueError(f"not CSV that can be read: {error}")
            continue
        yield number, ValueError("more fields than columns") if None in row else row


def _parquet(file: Path) -> Iterator[tuple[int, Any]]:
    import pyarrow.parquet

    number = 0
    with pyarrow.parquet.ParquetFile(file) as table:
        for batch in table.iter_batches(batch_size=32):  # rows may hold megabytes of tests
            for row in batch.to_pylist():
                number += 1
                yield number, {k: v for k, v in row.items() if not k.startswith("__index_level_")}


def hub_rows(ident: str) -> Iterator[tuple[str, Any]]:
    """Yield (`owner/name[split]:row`, row) of a data set on the Hugging Face hub, streamed split after split."""
    name, config, split = (*ident.split(":"), "", "")[:3]
    try:
        import datasets
    except ImportError:
        raise SourceError(f"{ident} is no file here, and hub ids need: pip install 'microcoder[data]'") from None
    try:
        found = datasets.load_dataset(name, config or None, split=split or None, streaming=True)
        parts = found if isinstance(found, dict) else {split: found}
        for part, table in parts.items():
            for number, row in enumerate(table, 1):
                yield f"{name}[{part}]:{number}", row
    except Exception as error:  # of the library, of the network, of the data set's own files
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SourceError(
            f"{ident} is no file or folder here, and the hub could not give it: {reason}. "
            "Download it where there is a network, and give the folder's path"
        ) from None
