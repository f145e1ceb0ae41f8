"""A file of lines that is being written: what is new in it since it was last looked at.

Its last line may wait for its end. After a rewind it is another file, or shorter, or no longer holds what was read:
then it is read from its beginning again.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import IO, Generic, TypeVar

CHUNK = 1 << 20
KEPT = 16  # files that are followed at once; the one asked for longest ago is let go of


class Follower(ABC):
    """What is drawn from such a file, line by line. `begin` makes it empty, `line` takes one in."""

    def __init__(self, path: Path) -> None:
        self.path, self.lock = path, threading.Lock()
        self._offset, self._inode, self._end = 0, 0, b""  # the last bytes that were read
        self.begin()

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def line(self, line: bytes) -> None: ...

    def update(self) -> None:
        """Take in what is new."""
        with self.lock:
            try:
                file = open(self.path, "rb")
            except OSError:
                self._offset, self._inode, self._end = 0, 0, b""
                self.begin()
                return
            with file:
                if not self._continues(file):
                    self._offset, self._inode, self._end = 0, os.fstat(file.fileno()).st_ino, b""
                    self.begin()
                file.seek(self._offset)
                rest = b""
                while chunk := file.read(CHUNK):
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        self.line(line)
                        self._offset += len(line) + 1
                        self._end = (line + b"\n")[-64:]

    def _continues(self, file: IO[bytes]) -> bool:
        state = os.fstat(file.fileno())
        if state.st_ino != self._inode or state.st_size < self._offset:
            return False
        file.seek(self._offset - len(self._end))
        return file.read(len(self._end)) == self._end


Kind = TypeVar("Kind", bound=Follower)


class Shelf(Generic[Kind]):
    """The followers of the files that were asked for last."""

    def __init__(self, make: Callable[[Path], Kind]) -> None:
        self._make, self._lock = make, threading.Lock()
        self._followers: OrderedDict[Path, Kind] = OrderedDict()

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
