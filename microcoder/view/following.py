"""A file of lines that is being written: what is new in it since it was last looked at.

Its last line may wait for its end. After a rewind it is another file, or shorter, or no longer holds what was read:
then it is read from its beginning again.
"""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import IO, Generic, TypeVar

from ..runs.disk import opened

LINE = 1 << 22  # bytes
BUDGET_S = 3.0
KEPT = 16  # files that are followed at once; the one asked for longest ago is let go of


class Follower(ABC):
    """What is drawn from such a file, line by line. `begin` makes it empty, `line` takes one in."""

    def __init__(self, path: Path) -> None:
        self.path, self.lock = path, threading.Lock()
        self.behind = False
        self.offset, self._inode, self._end = 0, 0, b""  # the last bytes that were read
        self._long = False  # in the middle of a line that is too long
        self.begin()

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def line(self, line: bytes) -> None: ...

    def update(self) -> None:
        """Take in what is new; `behind` where that would take too long at once: the next time it goes on."""
        with self.lock:
            try:
                file = opened(self.path)
            except OSError:
                self._afresh(0)
                return
            with file:
                if not self._continues(file):
                    self._afresh(os.fstat(file.fileno()).st_ino)
                file.seek(self.offset)
                self._go_on(file, time.monotonic() + BUDGET_S)

    def _afresh(self, inode: int) -> None:
        self.offset, self._inode, self._end, self._long, self.behind = 0, inode, b"", False, False
        self.begin()

    def _go_on(self, file: IO[bytes], ends: float) -> None:
        self.behind = False
        while piece := file.readline(LINE):
            whole = piece.endswith(b"\n")
            if not whole and len(piece) < LINE:
                return  # it waits for its end
            if whole and not self._long:
                self.line(piece[:-1])
            elif not self._long:
                self.line(b"")  # a line that is too long counts as a broken one, and is not kept
            self._long = not whole
            self.offset += len(piece)
            self._end = piece[-64:]
            if time.monotonic() > ends:
                self.behind = True
                return

    def _continues(self, file: IO[bytes]) -> bool:
        state = os.fstat(file.fileno())
        if state.st_ino != self._inode or state.st_size < self.offset:
            return False
        file.seek(self.offset - len(self._end))
        return file.read(len(self._end)) == self._end


Kind = TypeVar("Kind", bound=Follower)


class Shelf(Generic[Kind]):
    """The followers of the files that were asked for last."""

    def __init__(self, make: Callable[[Path], Kind]) -> None:
        self._make, self._lock = make, threading.Lock()
        self._followers: OrderedDict[Path, Kind] = OrderedDict()

    def behind(self, path: Path) -> int:
        """How far a file has been read that is not read to its end; 0 for others: the answers go on without it."""
        follower = self._followers.get(Path(os.path.realpath(path)))
        return follower.offset if follower is not None and follower.behind else 0

    def get(self, path: Path) -> Kind:
        """That of the file, up to date."""
        with self._lock:
            if path not in self._followers:
                self._followers[path] = self._make(path)
            follower = self._followers[path]
            self._followers.move_to_end(path)
            if len(self._followers) > KEPT:
                self._followers.popitem(last=False)
        follower.update()
        return follower
