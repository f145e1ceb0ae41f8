"""One judge for each setting in a process: made at its first use, shared by all threads, closed at exit.

A forked process, such as a worker of a dataloader, makes judges of its own: the threads that serve the parent's judges
do not exist there.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
from collections.abc import Mapping
from typing import Any

from ..config import JudgeConfig, load, toml_value
from ..judge.base import Judging
from ..judge.remote import open_judge

QUEUE = 1 << 20  # so that `submit` never blocks an event loop

JudgeSetting = str | Mapping[str, Any] | JudgeConfig


def options_of(judge: JudgeSetting = "here", **fixed: Any) -> dict[str, Any]:
    """Return the options of `open_judge` for the argument `judge=`: a place, settings of [judge], or a JudgeConfig.

    `fixed` are settings that the caller depends on; they win. Raise ConfigError for a setting that cannot work.
    """
    if isinstance(judge, JudgeConfig):
        given = judge.model_dump(exclude_unset=True)
    else:
        given = {"on": judge} if isinstance(judge, str) else dict(judge)
    settings = {"queue": QUEUE, **given, **fixed}
    return load(None, [f"judge.{name}={toml_value(value)}" for name, value in settings.items()]).judge.options()


class _Judges:
    """The judges of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.open: dict[str, Judging] = {}

    def forget(self) -> None:
        """Begin anew in a forked process. The lock may have been held, and the judges are the parent's."""
        self.lock, self.open = threading.Lock(), {}

    def close(self) -> None:
        with self.lock:
            while self.open:
                self.open.popitem()[1].close(cancel=True)


_JUDGES = _Judges()
os.register_at_fork(after_in_child=_JUDGES.forget)
atexit.register(_JUDGES.close)


def shared_judge(options: dict[str, Any]) -> Judging:
    """Return the judge of this process for `options` (from `options_of`); open it if there is none yet."""
    key = json.dumps(options, sort_keys=True)
    with _JUDGES.lock:
        if key not in _JUDGES.open:
            _JUDGES.open[key] = open_judge(options)
        return _JUDGES.open[key]


def close_judges() -> None:
    """Close the judges of this process now, before its end. The next use opens new ones."""
    _JUDGES.close()
