"""One reader and one writer for problems and solutions, in JSON Lines or Parquet.

Nothing is dropped silently: a line that cannot be used comes back as a BadLine with its number and the reason, in
its place in the stream, and the caller counts it. Only a file that cannot be read at all is an exception.
"""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import json
import os
import zlib
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from .schema import Problem, Solution

SUFFIXES = (".jsonl", ".jsonl.gz", ".json", ".parquet")
BOM = b"\xef\xbb\xbf"
NESTED = ("tests", "asserts", "compare", "tags", "solutions", "lineage")  # JSON text in a Parquet column
NUMBERS = {"time_limit_s": "float64", "memory_mb": "int64", "difficulty_score": "float64"}
Record = TypeVar("Record", Problem, Solution)


class FileError(ValueError):
    """A file that cannot be used at all; the message says why and what to type instead."""


@dataclass(slots=True)
class BadLine:
    """A record that cannot be used. `line` counts from 1: lines of JSONL, rows of Parquet, items of a JSON list."""

    path: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


def read_problems(path: str | Path) -> Iterator[Problem | BadLine]:
    """Every problem of the file. Of problems with the same id the first counts; the others are bad lines."""
    seen: dict[str, int] = {}
    for line, record in _records(path):
        problem = _build(Problem.from_dict, path, line, record)
        if isinstance(problem, Problem):
            if problem.id in seen:
                reason = f"problem {problem.id!r} was already on line {seen[problem.id]}; the first one counts"
                problem = BadLine(str(path), line, reason)
            else:
                seen[problem.id] = line
        yield problem


def read_solutions(path: str | Path, problems: Container[str] | None = None) -> Iterator[Solution | BadLine]:
    """Every solution of the file; one without an id is called `<problem_id>#<n>`, n counting these from 0.

    With `problems`, the ids that exist, a solution to any other problem is a bad line too.
    """
    seen: dict[str, int] = {}
    unnamed: dict[str, int] = {}
    for line, record in _records(path):
        solution = _build(Solution.from_dict, path, line, record)
        if isinstance(solution, Solution):
            if not solution.id:
                n = unnamed.get(solution.problem_id, 0)
                unnamed[solution.problem_id] = n + 1
                solution.id = f"{solution.problem_id}#{n}"
            if solution.id in seen:
                reason = f"solution id {solution.id!r} was already on line {seen[solution.id]}; give each its own"
                solution = BadLine(str(path), line, reason)
            else:
                seen[solution.id] = line
                if problems is not None and solution.problem_id not in problems:
                    solution = BadLine(str(path), line, f"there is no problem {solution.problem_id!r} to judge it by")
        yield solution


def count_records(path: str | Path) -> int:
    """How many records the file holds, good or bad, without building them: for a progress bar."""
    return sum(1 for _ in _records(path, parse=False))


def write_problems(path: str | Path, problems: Iterable[Problem]) -> int:
    """Write them all and return how many; the file appears under its name only when it is complete."""
    path = Path(path)
    suffix = kind_of(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if suffix == ".parquet":
            count = _write_parquet(part, problems)
        else:
            count = _write_json(part, problems, suffix)
        os.replace(part, path)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)
    return count


def _build(make: Callable[[dict[str, Any]], Record], path: str | Path, line: int, record: Any) -> Record | BadLine:
    if isinstance(record, BadLine):
        return record
    if not isinstance(record, dict):
        return BadLine(str(path), line, f'not an object such as {{"id": ...}} but {type(record).__name__}')
    try:
        return make(record)
    except (ValueError, TypeError, AttributeError) as error:  # SchemaError is a ValueError
        return BadLine(str(path), line, str(error))


def kind_of(path: Path) -> str:
    """Which of SUFFIXES a file's name ends in."""
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if path.name.lower().endswith(suffix):
            return suffix
    raise FileError(f"{path}: what kind of file it is cannot be told; its name must end in {', '.join(SUFFIXES)}")


def _records(path: str | Path, parse: bool = True) -> Iterator[tuple[int, Any]]:
    """(line number, object or BadLine) of any of the formats; with parse=False only the numbers are of use."""
    path = Path(path)
    if path.is_dir():
        inside = sorted(p.name for p in path.iterdir() if p.name.endswith(SUFFIXES))
        raise FileError(f"{path} is a folder; name a file in it" + (f", such as {path / inside[0]}" if inside else ""))
    if not path.exists():
        raise FileError(f"there is no file {path}")
    suffix = kind_of(path)
    try:
        if suffix == ".parquet":
            yield from _rows(path, parse)
        elif suffix == ".json":
            yield from _items(path)
        else:
            yield from _lines(path, suffix, parse)
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from None


def _lines(path: Path, suffix: str, parse: bool) -> Iterator[tuple[int, Any]]:
    number = 0
    with gzip.open(path, "rb") if suffix.endswith(".gz") else open(path, "rb") as file:
        try:
            for number, line in enumerate(file, 1):
                text = line.removeprefix(BOM).strip() if number == 1 else line.strip()
                if text:
                    yield number, _loads(text, path, number) if parse else None
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            yield number + 1, BadLine(str(path), number + 1, f"the compressed file is damaged from here on: {error}")


def _loads(text: bytes, path: Path, number: int) -> Any:
    try:
        return json.loads(text.decode())
    except UnicodeDecodeError as error:
        return BadLine(str(path), number, f"not UTF-8 text (byte {error.start} of the line)")
    except json.JSONDecodeError as error:
        return BadLine(str(path), number, f"not JSON: {error.msg} at column {error.colno}")
    except (ValueError, RecursionError) as error:  # an integer of many thousand digits; a very deep nesting
        return BadLine(str(path), number, f"not JSON that can be read: {error}")


def _items(path: Path) -> Iterator[tuple[int, Any]]:
    whole = _loads(path.read_bytes().removeprefix(BOM), path, 1)
    if not isinstance(whole, list):
        reason = f" ({whole.reason})" if isinstance(whole, BadLine) else ""
        raise FileError(f"{path} does not hold a JSON list{reason}; if each line is an object, rename it to .jsonl")
    yield from enumerate(whole, 1)


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise FileError("Parquet files need pyarrow; install it with: pip install pyarrow") from None
    return pyarrow


def _rows(path: Path, parse: bool) -> Iterator[tuple[int, Any]]:
    pa = _pyarrow()
    try:
        with pa.parquet.ParquetFile(path) as file:
            if not parse:
                yield from ((n, None) for n in range(1, file.metadata.num_rows + 1))
                return
            number = 0
            for batch in file.iter_batches(batch_size=256):
                for row in batch.to_pylist():
                    number += 1
                    yield number, {k: _nested(k, v) for k, v in row.items() if not k.startswith("__index_level_")}
    except pa.ArrowException as error:
        raise FileError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from None


def _nested(name: str, value: Any) -> Any:
    """A nested field is JSON text in a Parquet column of ours; other people's may hold real lists, or plain text."""
    if name not in NESTED or not isinstance(value, str) or value[:1] not in ("[", "{"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def json_line(record: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half of a surrogate pair, as a program may print: only an escape can carry it
        text = json.dumps(record).encode()
    return text + b"\n"


def _write_json(path: Path, problems: Iterable[Problem], suffix: str) -> int:
    count = 0
    with gzip.open(path, "wb") if suffix.endswith(".gz") else open(path, "wb") as file:
        for count, problem in enumerate(problems, 1):
            start = b"" if suffix != ".json" else b"[\n" if count == 1 else b","
            file.write(start + json_line(problem.to_dict()))
        if suffix == ".json":
            file.write(b"]\n" if count else b"[]\n")
    return count


def _write_parquet(path: Path, problems: Iterable[Problem]) -> int:
    pa = _pyarrow()
    names = [field.name for field in dataclasses.fields(Problem)]
    schema = pa.schema([(name, pa.type_for_alias(NUMBERS.get(name, "string"))) for name in names])
    stream, count = iter(problems), 0
    with pa.parquet.ParquetWriter(path, schema) as writer:
        while batch := [problem.to_dict() for problem in itertools.islice(stream, 256)]:
            rows = [{k: json.dumps(v) if k in NESTED else v for k, v in record.items()} for record in batch]
            writer.write_table(pa.Table.from_pylist(rows, schema))
            count += len(rows)
    return count
