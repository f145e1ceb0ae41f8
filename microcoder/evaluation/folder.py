"""A bench's folder: what was asked, the samples and verdicts as they come, the scores.

    bench.json        what was asked: a bench goes on only under the same conditions
    samples.jsonl     a line for each try, appended as it is finished
    verdicts.jsonl    a line for each try and limit: `verdict` under robust, `also` under exact
    scores.json       what came out; report.md and table.tex are made of it

A kill at any moment leaves at most one torn line at the end of each file, which the next writer cuts away.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from ..files import FileError, json_line
from ..runs.disk import RunError, release_lock, take_lock, write_whole
from ..verdict_log import VerdictLog
from .asking import Ask, differences
from .reading import as_sample, read_json
from .records import BenchError, Sample

MADE = ("bench.json", "samples.jsonl", "verdicts.jsonl", "scores.json", "report.md", "table.tex")


class Folder:
    """One writer at a time. `samples` and `verdicts.done` hold what is there, by id."""

    def __init__(self, path: str | Path, ask: Ask, fresh: bool = False) -> None:
        self.path, self.ask = Path(path), ask
        self.samples: dict[str, Sample] = {}
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = take_lock(self.path, "name another folder with -o")
        except OSError as error:
            raise BenchError(f"{path} cannot be made: {error.strerror}; name another folder with -o") from None
        except RunError as error:
            raise BenchError(str(error)) from None
        try:
            self._begin(fresh)
            self._file: IO[bytes] = open(self.path / "samples.jsonl", "a+b")
            self._recover()
            self.verdicts = VerdictLog(self.path / "verdicts.jsonl")
        except FileError as error:
            release_lock(self._lock)
            raise BenchError(str(error)) from None
        except BaseException:
            release_lock(self._lock)
            raise

    def add(self, sample: Sample) -> None:
        """Keep a sample: it survives the end of this process."""
        self._file.write(json_line(_plain(sample)))
        self._file.flush()
        self.samples[sample.id] = sample

    def write(self, name: str, text: str) -> None:
        write_whole(self.path / name, text.encode("utf-8", "replace"))

    def close(self) -> None:
        self._file.close()
        self.verdicts.close()
        release_lock(self._lock)

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self, fresh: bool) -> None:
        file, asked = self.path / "bench.json", self.ask.to_dict()
        known = None if fresh else read_json(file)
        if known is None:
            if not fresh and any((self.path / name).exists() for name in MADE):
                raise BenchError(f"{self.path} holds files of a bench, but no bench.json; name another folder with -o")
            for name in MADE:
                (self.path / name).unlink(missing_ok=True)
            write_whole(file, json.dumps(asked, indent=1).encode() + b"\n")
        elif found := differences(known, asked):
            lines = "\n".join(f"  {line}" for line in found)
            raise BenchError(
                f"{self.path} holds a bench under other conditions:\n{lines}\n"
                "Name another folder with -o, or start this one over with --fresh."
            )

    def _recover(self) -> None:
        good = 0
        self._file.seek(0)
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                self._file.truncate(good)
                break
            sample = as_sample(self.path / "samples.jsonl", number, line)
            self.samples[sample.id] = sample
            good += len(line)
        self._file.seek(0, os.SEEK_END)


def _plain(sample: Sample) -> dict[str, Any]:
    """Without what has its default value."""
    default = asdict(Sample("", 0, ""))
    needed = ("problem_id", "number", "text")
    return {name: value for name, value in asdict(sample).items() if name in needed or value != default[name]}
