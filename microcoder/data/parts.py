"""The folder of a step: numbered parts of kept and dropped records, each complete or absent.

    filter/2-duplicates/
      step.json            what made it: a digest of the settings and of everything before
      kept/00003.jsonl.gz      {"problem": {...}, "notes": {...}} a line
      dropped/00003.jsonl.gz   the same with "reason" and "detail"
      done.json            counts by reason, seconds; written last

A part is written under another name first, so a stopped run leaves no half of one.
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
OUTSIDE = "outside_ids"  # the reason of records that the setting `ids` leaves aside
Loss = tuple[Record, Dropped]


@dataclass
class Counts:
    """Records kept and dropped, of a part or of all of them."""

    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)  # by reason
    outside: int = 0  # left aside because the setting `ids` did not ask for them: on file with the drops, but no loss

    @classmethod
    def of(cls, kept: int, dropped: Mapping[str, int]) -> Counts:
        """Read counts from a file, in which rows left aside by `ids` are among the drops."""
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
        """The numbers as they stand on file, by falling number."""
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
    """The name of a part: `02-00003` is the fourth part of the third source."""
    return part.name.removesuffix(".jsonl.gz")


def write_part(folder: Path, name: str, results: Iterable[Record | Loss]) -> Counts:
    """Write both files of a part; the kept one appears last, and says that the part is complete."""
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
    """Count a complete part; None where it has to be made."""
    kept = folder / "kept" / f"{name}.jsonl.gz"
    if not kept.exists():
        return None
    reasons = Counter(json.loads(line)["reason"] for line in read_lines(folder / "dropped" / f"{name}.jsonl.gz"))
    return Counts.of(sum(1 for _ in read_lines(kept)), reasons)


def begin(folder: Path, digest: str) -> dict[str, Any] | None:
    """Make the folder ready for a step with this digest and return its done.json, if it is done."""
    forget(folder, digest)
    marker, done = folder / "step.json", folder / "done.json"
    if not marker.exists():
        if any(not path.name.startswith(".") for path in folder.glob("*")):
            raise DataError(f"{folder} holds files of somebody else; name another place: output.folder=...")
        folder.mkdir(parents=True, exist_ok=True)
        write_json(marker, {"digest": digest})
    return json.loads(done.read_text()) if done.exists() else None


def forget(folder: Path, digest: str | None) -> None:
    """Remove the folder of a step unless this is its digest. A folder without a marker is somebody else's."""
    marker = folder / "step.json"
    if marker.exists() and json.loads(marker.read_text())["digest"] != digest:
        shutil.rmtree(folder)


def stamp(path: str) -> str:
    """A text that changes with the file; the path itself where there is no such file."""
    return f"{Path(path).stat().st_size} {Path(path).stat().st_mtime_ns}" if path and Path(path).exists() else path


def write_json(path: Path, data: Any) -> None:
    write_whole(path, json.dumps(data, indent=2, ensure_ascii=False).encode() + b"\n")


def _write(file: Any, data: dict[str, Any]) -> None:
    # surrogates that a broken source left behind cannot be UTF-8; as escapes they survive until a step looks at them
    file.write(json.dumps(data, ensure_ascii=True) + "\n")


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")
