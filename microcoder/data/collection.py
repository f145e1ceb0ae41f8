"""Collect: read all sources into parts, in parallel; a source that was read before is not read again."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ..schema import Problem
from .parts import (
    OUTSIDE,
    SIZE,
    Counts,
    Loss,
    begin,
    count_part,
    kept_parts,
    name_of,
    read_lines,
    read_losses,
    read_records,
    write_json,
    write_part,
)
from .pipeline import StepProgress, worker_pool
from .record import Dropped, Record
from .settings import Source
from .sources import SourceError, Unreadable, collect, detect, free
from .sources.rows import rows

NAME = "collect/1-read"
SOURCES = "sources.json"  # beside the parts: the name and the file of each source, by the number in a part's name
NUMBER = re.compile(r"(\d+)(?:#\d+)?$")


def collect_all(
    out: Path, sources: list[Source], limit: int, workers: int, progress: StepProgress
) -> tuple[list[Path], str]:
    """Return the parts, and a digest of their sources. Unreadable rows are drops with a reason."""
    named = [(source, layout_of(source)) for source in sources]
    digest = digest_of(sources, limit)
    folder = out / NAME
    finished = begin(folder, digest)
    files = [Path(source.path).name for source in sources]
    known = [file if files.count(file) == 1 else source.path for file, source in zip(files, sources, strict=True)]
    named_files = {f"{n:02}": {"name": source.name, "file": known[n]} for n, source in enumerate(sources)}
    write_json(folder / SOURCES, named_files)
    if finished is not None:
        progress.done(NAME, Counts.of(finished["kept"], finished["dropped"]), finished["seconds"], again=True)
        return kept_parts(folder), digest
    started = time.monotonic()
    progress.step(NAME, len(named))
    total = Counts()
    jobs = [(n, source.model_dump(), layout) for n, (source, layout) in enumerate(named)]
    work = partial(collect_one, folder, limit)
    with worker_pool(min(workers, len(jobs))) as pool:
        for counts in pool.map(work, jobs):
            total.add(counts)
            progress.part(counts)
        if len(jobs) > 1:
            _apart(folder, pool)
    seconds = time.monotonic() - started
    write_json(folder / "done.json", {**total.to_dict(), "seconds": round(seconds, 2), "digest": digest})
    progress.done(NAME, total, seconds, again=False)
    return kept_parts(folder), digest


def _apart(folder: Path, pool: ProcessPoolExecutor) -> None:
    """Make ids unique across sources too, as of two files that both count from 1: the first one keeps its id."""
    taken: dict[str, int] = {}
    parts = kept_parts(folder)
    for part, idents in zip(parts, pool.map(_idents, parts), strict=True):
        names = [free(ident, taken) for ident in idents]
        if names == idents:
            continue
        records = list(read_records(part))
        for record, name in zip(records, names, strict=True):
            if record.problem.id != name:
                record.did(f"collect: the id was {record.problem.id}, which another source has too")
                record.problem.id = name
        losses = list(read_losses(folder / "dropped" / part.name))
        write_part(folder, name_of(part), [*records, *losses])


def _idents(part: Path) -> list[str]:
    return [json.loads(line)["problem"]["id"] for line in read_lines(part)]


def by_number(out: Path) -> dict[str, dict[str, str]]:
    """Return "name" and "file" of each source of a run, by the number in the names of its parts."""
    path = out / NAME / SOURCES
    found: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def collect_one(folder: Path, limit: int, job: tuple[int, dict[str, Any], str]) -> Counts:
    """Read one source, in a worker process, part by part; existing parts are only counted."""
    number, settings, layout = job
    found = read(Source(**settings), layout, limit)
    total = Counts()
    for part in range(1 << 30):
        chunk = list(islice(found, SIZE))
        if not chunk:
            break
        name = f"{number:02}-{part:05}"
        total.add(count_part(folder, name) or write_part(folder, name, chunk))
    return total


def read(source: Source, layout: str, limit: int = 0) -> Iterator[Record | Loss]:
    """Yield all records of a source, and its unreadable rows as drops. Raise SourceError for wrong settings at once."""
    found = collect(layout, source.path, mapping=source.mapping or None, source=source.name)
    return _read(source, found, ranges(source.ids), limit)


def _read(
    source: Source, rows_found: Iterator[Record | Unreadable], wanted: list[range], limit: int
) -> Iterator[Record | Loss]:
    taken = 0
    for found in rows_found:
        if limit and taken >= limit:
            return
        if isinstance(found, Unreadable):
            yield Record(Problem(found.where)), Dropped(found.reason, found.detail)
            continue
        found.problem.licence = found.problem.licence or source.licence
        if wanted and not within(found, wanted):
            yield found, Dropped(OUTSIDE, f"its id is not among {source.ids}")
        else:
            taken += 1
            yield found


def layout_of(source: Source) -> str:
    """Return the layout of a source: the one that is named, or else the detected one."""
    if source.read != "auto":
        return source.read
    try:
        layout = detect(source.path)
    except (OSError, ValueError) as error:
        raise SourceError(f"{source.path} cannot be read: {error}") from None
    if layout is None:
        _, row = next(rows(source.path), ("", Unreadable(source.path, "", "it is empty")))
        if isinstance(row, Unreadable):
            raise SourceError(f"{row.where} cannot be read: {row.detail}")
        raise SourceError(
            f'{source.path} has none of the known layouts; name one (read = "apps"), or say what its columns are: '
            'read = "generic", mapping = {id = "name", statement = "question", tests = "cases"}'
        )
    return layout


def ranges(text: str) -> list[range]:
    """Read "11-510, 600" as numbers; ends are included."""
    found = []
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", piece)
        if match is None:
            raise SourceError(f'ids = {text!r} is no list of numbers; write such as ids = "601-974"')
        found.append(range(int(match[1]), int(match[2] or match[1]) + 1))
    if text.strip() and not (found and all(found)):
        raise SourceError(f'ids = {text!r} holds no number; write the smaller one first, such as ids = "601-974"')
    return found


def within(record: Record, wanted: list[range]) -> bool:
    """Whether a problem's number is among these: LeetCode's own number of it, else the one that its id ends in."""
    match = NUMBER.search(record.problem.id)
    number = str(record.notes.get("question_id", match[1] if match else ""))  # LeetCode's ids are titles: base-7
    return number.isdecimal() and any(int(number) in each for each in wanted)


def digest_of(sources: list[Source], limit: int) -> str:
    """Return a digest that changes when a setting or a file changes."""
    stamps = []
    for source in sources:
        path = Path(source.path)
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        stamps.append([(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.is_file()])
    text = json.dumps([[source.model_dump() for source in sources], limit, stamps], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
