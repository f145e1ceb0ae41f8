"""A checkpoint is written as a whole or not at all, and a full disk is called one, whichever library met it."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def saving(folder: Path) -> Iterator[None]:
    """While a checkpoint is written into `folder`, which is removed again if that fails."""
    try:
        yield
    except Exception as error:
        full = _full(error, folder)
        shutil.rmtree(folder, ignore_errors=True)
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder)) from error
        raise


def _full(error: Exception, folder: Path) -> bool:
    """safetensors quotes the system's error in words; torch knows only that its stream has failed."""
    if isinstance(error, OSError):
        return error.errno in FULL
    return any(f"os error {number}" in str(error) for number in FULL) or shutil.disk_usage(folder.parent).free < 1 << 20
