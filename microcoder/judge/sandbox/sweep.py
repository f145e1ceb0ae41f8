"""Empty a folder that a candidate has written to: whatever depth, names and modes it chose.

A recursive removal needs a descriptor or a stack frame for each level, and a program can nest deeper than there are of
either. So whatever lies in a subfolder is moved up to the folder itself first, and no path is ever long.
"""

import os
import stat
from collections.abc import Iterable
from itertools import count


def clear(folder: str, keep: Iterable[str] = ()) -> None:
    """Remove everything in `folder` but the names in `keep`. OSError if something cannot be removed."""
    number = count()
    waiting = [name for name in os.listdir(folder) if name not in keep]
    while waiting:
        path = os.path.join(folder, waiting.pop())
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
            continue
        os.chmod(path, 0o700)
        for name in os.listdir(path):
            inner = os.path.join(path, name)
            if not stat.S_ISDIR(os.lstat(inner).st_mode):
                os.unlink(inner)
                continue
            os.chmod(inner, 0o700)  # a folder that is moved must be writable itself
            while os.path.lexists(os.path.join(folder, free := f"{next(number)}")):
                pass
            os.rename(inner, os.path.join(folder, free))
            waiting.append(free)
        os.rmdir(path)
