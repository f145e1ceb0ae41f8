"""The folder of a step: numbered parts of kept and dropped records, each complete or absent.

    filter/2-duplicates/
      step.json            a digest of the settings and of all earlier steps
      kept/00003.jsonl.gz      {"problem": {...}, "notes": {...}} a line
      dropped/00003.jsonl.gz   the same with "reason" and "detail"
      done.json            counts by reason, seconds; written last

A part is written under a temporary name first, so a stopped run leaves no incomplete part.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..runs.disk import write_whole
from .record import DataError, Dropped, Record

SIZE = 500  # records in a part: the unit of work, of resuming, and of memory
OUTSIDE = "outside_ids"  # the reason of records that the setting `ids` excludes
Loss = tuple[Record, Dropped]


@dataclass
class Counts:
    """Numbers of kept and dropped records, of one part or of all."""

    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)  # by reason
    outside: int = 0  # excluded by the setting `ids`: written with the drops, but not counted as such

    @classmethod
    def of(cls, kept: int, dropped: Mapping[str, int]) -> Counts:
        """Make counts from a file's numbers, where rows excluded by `ids` are among the drops."""
        losses = Counter(dropped)
        outside = losses.pop(OUTSIDE, 0)
        return cls(kept, losses, outside)

    def add(self, other: Counts) -> None:
        self.kept += other.kept
        self.dropped += other.dropped
        self.outside += other.outside

    @property
    def seen(self) -> int:
        return self.kept + self.dropped.total()

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for a file, largest first."""
        losses = self.dropped + Counter({OUTSIDE: self.outside})
        return {"kept": self.kept, "dropped": dict(losses.most_common())}


def read_lines(path: Path) -> Iterator[bytes]:
    with gzip.open(path, "rb") as file:
        yield from file


def record_of(line: bytes) -> Record:
    return Record.from_dict(json.loads(line))


def read_records(path: Path) -> Iterator[Record]:
    return map(record_of, read_lines(path))


def read_losses(path: Path) -> Iterator[Loss]:
    for line in map(json.loads, read_lines(path)):
        yield Record.from_dict(line), Dropped(line["reason"], line["detail"])


def kept_parts(folder: Path) -> list[Path]:
    return sorted((folder / "kept").glob("*.jsonl.gz"))


def dropped_parts(folder: Path) -> list[Path]:
    return sorted((folder / "dropped").glob("*.jsonl.gz"))


def name_of(part: Path) -> str:
    """Return the name of a part: `02-00003` is the fourth part of the third source."""
    return part.name.removesuffix(".jsonl.gz")


def write_part(folder: Path, name: str, results: Iterable[Record | Loss]) -> Counts:
    """Write both files of a part; the kept one is written last and marks the part as complete."""
    kept, dropped = 0, Counter[str]()
    paths = {kind: folder / kind / f"{name}.jsonl.gz" for kind in ("dropped", "kept")}
    files = {}
    for kind, path in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        files[kind] = gzip.open(_unfinished(path), "wt", compresslevel=1, encoding="utf-8")
    try:
        for result in results:
            if isinstance(result, Record):
                kept += 1
                _write(files["kept"], result.to_dict())
            else:
                record, loss = result
                dropped[loss.reason] += 1
                _write(files["dropped"], {**record.to_dict(), "reason": loss.reason, "detail": loss.detail})
    finally:
        for file in files.values():
            file.close()
    for path in paths.values():
        os.replace(_unfinished(path), path)
    return Counts.of(kept, dropped)


def count_part(folder: Path, name: str) -> Counts | None:
    """Count the records of a complete part; None if the part is missing."""
    kept = folder / "kept" / f"{name}.jsonl.gz"
    if not kept.exists():
        return None
    reasons = Counter(json.loads(line)["reason"] for line in read_lines(folder / "dropped" / f"{name}.jsonl.gz"))
    return Counts.of(sum(1 for _ in read_lines(kept)), reasons)


def begin(folder: Path, digest: str) -> dict[str, Any] | None:
    """Prepare the folder for a step with this digest; return its done.json if the step is done."""
    forget(folder, digest)
    marker, done = folder / "step.json", folder / "done.json"
    if not marker.exists():
        if any(not path.name.startswith(".") for path in folder.glob("*")):
            raise DataError(f"{folder} holds files that are not of a data run; name another folder: output.folder=...")
        folder.mkdir(parents=True, exist_ok=True)
        write_json(marker, {"digest": digest})
    if done.exists():
        found: dict[str, Any] = json.loads(done.read_text())
        return found
    for left in folder.glob("*/.*"):  # by a run that was killed
        left.unlink()
    return None


def forget(folder: Path, digest: str | None) -> None:
    """Remove the folder of a step unless it has this digest. A folder without step.json is not ours and stays."""
    marker = folder / "step.json"
    if marker.exists() and json.loads(marker.read_text())["digest"] != digest:
        shutil.rmtree(folder)


def stamp(path: str) -> str:
    """Return a text that changes with the file; the path itself if there is no such file."""
    return f"{Path(path).stat().st_size} {Path(path).stat().st_mtime_ns}" if path and Path(path).exists() else path


def write_json(path: Path, data: Any) -> None:
    write_whole(path, json.dumps(data, indent=2, ensure_ascii=False).encode() + b"\n")


def _write(file: Any, data: dict[str, Any]) -> None:
    # lone surrogates of a broken source cannot be UTF-8; as escapes they survive until a step handles them
    file.write(json.dumps(data, ensure_ascii=True) + "\n")


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")
