"""Runs, evaluations and studies under a folder, each named by its path from there.

A name that a browser sends is looked up in this listing and never joined to a path: what is not listed does not exist.
Links that lead out of the folder are not followed, and are counted; nor are those in a run that lead out of the run.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

KINDS = {"run": ("run.json", "metrics.jsonl"), "bench": ("scores.json",), "study": ("report.json",)}
INSIDE_RUN = {"bench"}  # the only folder of a run that may hold something of these kinds
DEPTH, FOLDERS = 6, 20_000  # how far is looked
FRESH_S = 1.0


class Missing(LookupError):
    """Something asked for that does not exist; the message says what does."""


@dataclass(frozen=True)
class Entry:
    """A folder that is a run, an evaluation or a study. `file` is the only way to its files."""

    kind: str
    name: str
    path: Path
    root: Path

    def file(self, *names: str) -> Path:
        """The real path of a file in the folder: it need not exist, but is nowhere else. `opened` opens it."""
        try:
            own, real = (Path(os.path.realpath(path)) for path in (self.path, self.path.joinpath(*names)))
        except ValueError:  # a zero byte
            raise Missing(f"there is no {names!r} in {self.name}") from None
        if not real.is_relative_to(own):
            raise Missing(f"{'/'.join(names)} of {self.name} is a link that leads out of {self.name}")
        return real


@dataclass(frozen=True)
class Listing:
    folders: dict[str, Entry]
    refused: tuple[str, ...]  # links that lead out
    complete: bool

    def of(self, kind: str) -> list[Entry]:
        return [folder for folder in self.folders.values() if folder.kind == kind]


class Library:
    """The runs, evaluations and studies under `root`, or the one that `root` is itself."""

    def __init__(self, root: Path) -> None:
        root = root.resolve()
        single = _kind({entry.name for entry in root.iterdir()}) is not None
        self.root = root.parent if single else root
        self.only = root.name if single else None
        self._lock = threading.Lock()
        self._listing, self._at = Listing({}, (), True), float("-inf")

    def listing(self) -> Listing:
        with self._lock:
            if time.monotonic() - self._at > FRESH_S:
                self._listing, self._at = _look(self.root, self.only), time.monotonic()
            return self._listing

    def get(self, name: str, *kinds: str) -> Entry:
        """The folder of that name; Missing where there is none."""
        folder = self.listing().folders.get(name)
        if folder is None or (kinds and folder.kind not in kinds):
            raise Missing(f"there is no {' or '.join(kinds) or 'run'} {name!r} under {self.root.name}")
        return folder


def _look(root: Path, only: str | None) -> Listing:
    folders: dict[str, Entry] = {}
    refused: list[str] = []
    looked, pending = 0, [(root / only, 1)] if only else [(root, 0)]
    within = root / only if only else root
    seen: set[Path] = set()
    while pending and looked < FOLDERS:
        path, depth = pending.pop()
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(within):
            refused.append(path.relative_to(root).as_posix())
            continue
        if real in seen:
            continue
        seen.add(real)
        looked += 1
        files, inner = _entries(path)
        kind = _kind(files) if depth else None
        if kind is not None:
            name = path.relative_to(root).as_posix()
            folders[name] = Entry(kind, name, path, root)
        if kind != "bench" and depth < DEPTH:
            pending += [(path / name, depth + 1) for name in inner if kind != "run" or name in INSIDE_RUN]
    return Listing(dict(sorted(folders.items())), tuple(sorted(refused)), not pending)


def _entries(path: Path) -> tuple[set[str], list[str]]:
    """The names of the files and of the visible folders in a folder; none where it cannot be read."""
    files, folders = set(), []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if not _is_dir(entry):
                    files.add(entry.name)
                elif not entry.name.startswith((".", "__")):
                    folders.append(entry.name)
    except OSError:
        return set(), []
    return files, sorted(folders, reverse=True)


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _kind(names: set[str]) -> str | None:
    return next((kind for kind, marks in KINDS.items() if names.intersection(marks)), None)


def stamps(paths: Iterator[Path] | list[Path]) -> tuple[tuple[int, int, int], ...]:
    """Inode, size and time of each file: what changes when one of them does."""
    return tuple(_stamp(path) for path in paths)


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        state = path.stat()
    except OSError:
        return (0, 0, 0)
    return (state.st_ino, state.st_size, state.st_mtime_ns)
