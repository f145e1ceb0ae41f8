"""Adversaries: programs that others wrote for the problems, many of them wrong, read from files and folders.

    a run's rollouts/ (or the run itself), solutions.jsonl, samples.jsonl and completions of `microcoder eval`, any
    .jsonl, .jsonl.gz, .json or .parquet whose records name a problem and hold code or a completion

They are kept in a temporary file, each program once for its problem, so that memory does not grow with them.
"""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...files import FileError, raw_records
from ...judge.extract import code_block
from ...schema import ACCEPTED
from ..record import DataError

SUFFIXES = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".parquet")
NAMES = ("problem_id", "problem", "task_id", "question_id")
LONGEST = 50_000  # characters of a program


class AdversaryStore:
    """The programs of some paths, by the id of their problem."""

    def __init__(self, paths: Sequence[str | Path], most: int = 32) -> None:
        self.most, self.lock = most, threading.Lock()
        self.folder = tempfile.TemporaryDirectory(prefix="microcoder-")
        self.base = sqlite3.connect(Path(self.folder.name) / "adversaries", check_same_thread=False)
        self.base.execute("CREATE TABLE found (problem, name, wrong, code, PRIMARY KEY (problem, name)) WITHOUT ROWID")
        self.passed_over = 0
        try:
            for path in paths:
                self._read(Path(path))
        except BaseException:
            self.close()
            raise
        self.base.commit()
        (self.count,) = self.base.execute("SELECT COUNT(*) FROM found").fetchone()

    def of(self, problem: str) -> list[tuple[str, str]]:
        """(name, code) of the programs for a problem: those that were once accepted first, then by a hash."""
        query = "SELECT name, code FROM found WHERE problem = ? ORDER BY wrong, name LIMIT ?"
        with self.lock:
            return list(self.base.execute(query, (problem, self.most)))

    def _read(self, path: Path) -> None:
        if not path.exists():
            raise DataError(
                f"there is no {path} to read adversaries from; name a file or a folder, such as runs/demo/rollouts"
            )
        insert = "INSERT INTO found VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET wrong = MIN(wrong, excluded.wrong)"
        some = False
        for file in files_of(path):
            try:
                for problem, code, accepted in programs_of(file):
                    if not problem or not code or len(code) > LONGEST:
                        self.passed_over += 1
                        continue
                    some, data = True, code.encode("utf-8", "replace")
                    name = hashlib.blake2b(data, digest_size=4).hexdigest()
                    self.base.execute(insert, (problem, name, not accepted, data.decode()))
            except FileError as error:
                if path.is_file():  # in a folder there are other files too
                    raise DataError(str(error)) from None
        if not some:
            raise DataError(
                f'{path} holds no programs of problems; a record needs "problem_id" (or "problem") and "code" or '
                '"completion", as in solutions.jsonl and in the rollouts of a run'
            )

    def close(self) -> None:
        self.base.close()
        self.folder.cleanup()


def files_of(path: Path) -> list[Path]:
    """The file itself, or those in a folder that may hold programs: for a run, its rollouts."""
    if path.is_file():
        return [path]
    if (path / "rollouts").is_dir():
        path = path / "rollouts"
    return sorted(p for p in path.rglob("*") if p.is_file() and p.name.endswith(SUFFIXES))


def programs_of(path: Path) -> Iterator[tuple[str, str, bool]]:
    """(problem, code, whether it was accepted) of each record of a file; "" for what a record does not have."""
    for record in raw_records(path):
        if not isinstance(record, dict):  # a line that cannot be read
            yield "", "", False
        elif "statement" not in record:
            yield (*_program(record), record.get("verdict") == ACCEPTED)


def _program(record: dict[str, Any]) -> tuple[str, str]:
    problem = next((str(record[name]) for name in NAMES if isinstance(record.get(name), (str, int))), "")
    code = record.get("code")
    if not isinstance(code, str):
        text = record.get("completion") or record.get("text")
        if record.get("is_code") is True:  # a sample of `microcoder eval` that is the program itself
            text = f"```python\n{text}\n```"
        code = code_block(text, "python") if isinstance(text, str) else None
    language = str(record.get("language") or "python").lower()
    return problem, code if code and code.strip() and language.startswith("py") else ""
