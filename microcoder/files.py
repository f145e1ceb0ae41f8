"""One reader and one writer for problems and solutions, in JSON Lines or Parquet.

Nothing is dropped silently: a line that cannot be used comes back as a BadLine with its number and the reason, in
its place in the stream, and the caller counts it. Only a file that cannot be read at all is an exception.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import itertools
import json
import os
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeVar

from .schema import NESTED, Problem, Solution, Verdict

SUFFIXES = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".parquet")
BOM = b"\xef\xbb\xbf"
NUMBERS = {"time_limit_s": "float64", "memory_mb": "int64", "difficulty_score": "float64"}
Record = TypeVar("Record", Problem, Solution)
FOREIGN = {  # layouts of other data sets, told by some of their columns
    "EvalPlus": {"task_id", "base_input", "plus_input"},
    "MBPP": {"task_id", "test_list"},
    "HumanEval": {"task_id", "canonical_solution", "test"},
    "LeetCodeDataset": {"task_id", "input_output"},
    "LiveCodeBench": {"question_id", "public_test_cases"},
    "APPS": {"question", "input_output"},
    "CodeContests": {"description", "public_tests"},
    "KodCode": {"question", "solution", "test"},
    "DeepCoder": {"problem", "tests"},
}


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
    """Read every problem of a file. If an id occurs again, that record is a BadLine."""
    seen: dict[str, int] = {}
    for line, record in _records(path):
        if not seen and isinstance(record, dict) and "id" not in record:
            for name, columns in FOREIGN.items():
                if columns <= record.keys():
                    raise FileError(
                        f"{path} is in the layout of {name}; make problems of it first: write a data.toml with "
                        f'collect.sources = [{{path = "{path}"}}], then `microcoder data run data.toml`'
                    )
        problem = _build(Problem.from_dict, path, line, record)
        if isinstance(problem, Problem):
            if problem.id in seen:
                reason = f"problem {problem.id!r} was already on line {seen[problem.id]}; the first one counts"
                problem = BadLine(str(path), line, reason)
            else:
                seen[problem.id] = line
        yield problem


def load_problems(path: str | os.PathLike[str]) -> list[Problem]:
    """Return all problems of a file, in its order. Raise FileError if a record is broken."""
    found = []
    for one in read_problems(os.fspath(path)):
        if isinstance(one, BadLine):
            raise FileError(f"{one}; `microcoder judge` passes over such records, and names each")
        found.append(one)
    return found


def read_solutions(path: str | Path, problems: Collection[str] | None = None) -> Iterator[Solution | BadLine]:
    """Every solution of the file; one without an id is called `<problem_id>#<n>`, n counting these from 0.

    With `problems`, the ids that exist, a solution to any other problem is a bad line too.
    """
    seen: dict[str, int] = {}
    unnamed: dict[str, int] = {}
    whole: dict[str, str] = {}  # ids by what follows their last slash, once an unknown one has come
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
                    whole = whole or {ident.rpartition("/")[2]: ident for ident in problems}
                    reason = f"there is no problem {solution.problem_id!r} to judge it by"
                    if (ident := whole.get(solution.problem_id.rpartition("/")[2])) is not None:
                        reason += f"; did you mean {ident!r}?"
                    solution = BadLine(str(path), line, reason)
        yield solution


def raw_records(path: str | Path) -> Iterator[Any]:
    """Every record of the file as it stands there, whatever it holds; a BadLine for one that cannot be read."""
    return (record for _, record in _records(path))


def count_records(path: str | Path) -> int:
    """Count the records of a file, good or bad, without parsing them: for a progress bar."""
    return sum(1 for _ in _records(path, parse=False))


def write_problems(path: str | Path, problems: Iterable[Problem]) -> int:
    """Write problems to a file and return their number. The file appears only when it is complete."""
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
        with contextlib.suppress(OSError):  # where nothing could be written, this fails too
            part.unlink()
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
    """Return the suffix of a file's name, one of SUFFIXES."""
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if path.name.lower().endswith(suffix):
            return suffix
    raise FileError(f"{path}: what kind of file it is cannot be told; its name must end in {', '.join(SUFFIXES)}")


def _records(path: str | Path, parse: bool = True) -> Iterator[tuple[int, Any]]:
    """Yield (line number, object or BadLine) from any format; with parse=False only the numbers are valid."""
    path = Path(path)
    try:
        if path.is_dir():
            inside = sorted(p.name for p in path.iterdir() if p.name.endswith(SUFFIXES))
            example = f", such as {path / inside[0]}" if inside else ""
            raise FileError(f"{path} is a folder; name a file in it{example}")
        if not path.exists():
            raise FileError(f"there is no file {path}")
        if path.suffix.lower() in (".csv", ".tsv"):
            raise FileError(
                f"{path} is a table; make problems of it first: write a data.toml with collect.sources = [{{path = "
                f'"{path}", read = "generic", mapping = {{statement = "a column", tests = "another"}}}}], then '
                "`microcoder data run data.toml`"
            )
        suffix = kind_of(path)
        if suffix == ".parquet":
            yield from _rows(path, parse)
        elif suffix in (".json", ".json.gz"):
            yield from _items(path, suffix)
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


def _items(path: Path, suffix: str) -> Iterator[tuple[int, Any]]:
    try:
        text = gzip.decompress(path.read_bytes()) if suffix.endswith(".gz") else path.read_bytes()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FileError(f"{path} is damaged: {error}") from None
    whole = _loads(text.removeprefix(BOM), path, 1)
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
                    yield number, {k: v for k, v in row.items() if not k.startswith("__index_level_")}
    except pa.ArrowException as error:
        raise FileError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from None


def json_line(record: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half of a surrogate pair, as a program may print: only an escape can carry it
        text = json.dumps(record).encode()
    return text + b"\n"


def writable(value: Any) -> Any:
    """Replace half surrogate pairs by their escapes, in texts and what holds them: Parquet has UTF-8 only."""
    if isinstance(value, dict):
        return {key: writable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [writable(item) for item in value]
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _write_json(path: Path, problems: Iterable[Problem], suffix: str) -> int:
    count = 0
    with gzip.open(path, "wb") if suffix.endswith(".gz") else open(path, "wb") as file:
        for count, problem in enumerate(problems, 1):
            start = b"" if ".jsonl" in suffix else b"[\n" if count == 1 else b","
            file.write(start + json_line(problem.to_dict()))
        if ".jsonl" not in suffix:
            file.write(b"]\n" if count else b"[]\n")
    return count


def _columns(problem: Problem, names: list[str]) -> dict[str, Any]:
    record = problem.to_dict()
    known = {name: record[name] for name in names if name in record}
    return {**known, "extra": problem.extra} if problem.extra else known


def _write_parquet(path: Path, problems: Iterable[Problem]) -> int:
    pa = _pyarrow()
    names = [field.name for field in dataclasses.fields(Problem)]
    schema = pa.schema([(name, pa.type_for_alias(NUMBERS.get(name, "string"))) for name in names])
    stream, count = iter(problems), 0
    with pa.parquet.ParquetWriter(path, schema) as writer:
        while batch := [_columns(problem, names) for problem in itertools.islice(stream, 256)]:
            rows = [{k: json.dumps(v) if k in NESTED else writable(v) for k, v in record.items()} for record in batch]
            writer.write_table(pa.Table.from_pylist(rows, schema))
            count += len(rows)
    return count


class VerdictLog:
    """Verdicts in a JSONL file that is only appended to, so that interrupted judging can continue.

    On opening, `done` holds the verdicts that are there (without their tests, which may be many), by id. A last line
    that was cut off in the middle is removed. A file with anything else in it is refused, never overwritten.
    """

    def __init__(self, path: str | Path, fresh: bool = False) -> None:
        self.path = Path(path)
        self.done: dict[str, Verdict] = {}
        if kind_of(self.path) != ".jsonl":
            raise FileError(f"verdicts are written line by line, so {path} must end in .jsonl")
        try:
            self._file: IO[bytes] = open(self.path, "a+b")
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            hint = f"; create the folder first: mkdir -p {self.path.parent}" if missing else ""
            raise FileError(f"cannot write {path}: {error.strerror}{hint}") from None
        try:
            lock(self._file, self.path)
            self._recover()
            if fresh:
                self.done = {}
                self._file.truncate(0)
        except BaseException:
            self._file.close()
            raise

    def append(self, verdict: Verdict) -> None:
        """Write one verdict and flush it, so that it survives the end of this process."""
        self._file.write(json_line(verdict.to_dict()))
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> VerdictLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _recover(self) -> None:
        self._file.seek(0)
        good, line = 0, b"\n"
        for n, line in enumerate(self._file, 1):
            if not line.endswith(b"\n") and _is_cut_off(line):
                self._file.truncate(good)
                return
            try:
                verdict = Verdict.from_dict({**json.loads(line), "tests": []}) if line.strip() else None
            except (ValueError, TypeError):
                raise FileError(
                    f"{self.path}:{n} is not a verdict, so nothing was added to that file; "
                    f"move it away or name another file with -o"
                ) from None
            if verdict is not None:
                self.done[verdict.id] = verdict
            good += len(line)
        if not line.endswith(b"\n"):
            self._file.write(b"\n")


def lock(file: IO[bytes], path: Path) -> None:
    """Make an open file this process's own until it is closed. Raise FileError where another one writes to it."""
    try:
        import fcntl
    except ImportError:  # not a Unix: two writers are then the user's to avoid
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FileError(f"another process is writing to {path}; name another file with -o") from None
    except OSError:
        pass  # a file system without locks


def _is_cut_off(line: bytes) -> bool:
    """Whether a last line without a line end is the beginning of a verdict, not a user's one-line file."""
    start = b'{"id": '
    if not line.startswith(start):
        return start.startswith(line)
    try:
        json.loads(line)
    except ValueError:
        return True
    return False
