"""The file that verdicts go to: appended to, one line each, so that an interrupted judging can go on."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import IO

from .files import FileError, json_line, kind_of
from .schema import Verdict


class VerdictLog:
    """Verdicts in a JSONL file that is only ever appended to, so that an interrupted judging can go on.

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
            hint = f"; create the folder first: mkdir -p {self.path.parent}" if not self.path.parent.exists() else ""
            raise FileError(f"cannot write {path}: {error.strerror}{hint}") from None
        try:
            self._lock()
            self._recover()
            if fresh:
                self.done = {}
                self._file.truncate(0)
        except BaseException:
            self._file.close()
            raise

    def append(self, verdict: Verdict) -> None:
        """Write one line and flush it: what was judged survives the end of this process."""
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

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # not a Unix: two writers are then the user's to avoid
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileError(f"another process is writing to {self.path}; name another file with -o") from None
        except OSError:
            pass  # a file system without locks

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


def _is_cut_off(line: bytes) -> bool:
    """Whether a last line without its end is the beginning of a verdict (and not somebody's one-line file)."""
    start = b'{"id": '
    if not line.startswith(start):
        return start.startswith(line)
    try:
        json.loads(line)
    except ValueError:
        return True
    return False
