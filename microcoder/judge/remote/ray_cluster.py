"""The connection to a Ray cluster: one in each process, however many use it, and gone with the last of them."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import JudgeError
from ..pool import usable_cores

ANSWER_S = 5.0  # for a machine that is there to answer
START = "`ray start --head` here, then `ray start --address=THIS_HOST:6379` on the other machines"
_lock = threading.Lock()
_users, _where = 0, ""  # of a connection that was made here


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Ray, connected. A process that is connected already, such as one of Ray's own workers, stays so.

    auto               the cluster that this machine belongs to
    local              one of this machine's cores alone, for as long as it is used
    host:6379          the cluster of that head, which this machine belongs to
    ray://host:10001   a cluster that this machine does not belong to
    """
    global _users, _where
    try:
        import ray
    except ImportError:
        raise JudgeError("judging on Ray needs the package ray: pip install 'microcoder[ray]'") from None
    with _lock:
        ours = _users > 0 or not ray.is_initialized()
        if ours and _users == 0:
            _connect(ray, address)
            _where = address
        elif ours and address not in ("auto", _where):
            raise JudgeError(f"this process judges on the Ray cluster {_where} already; {address} needs one of its own")
        _users += ours
    try:
        yield ray
    finally:
        with _lock:
            _users -= ours
            if ours and _users == 0:
                ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    options: dict[str, Any] = {"address": address, "log_to_driver": False, "logging_level": "ERROR"}
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options |= {"num_cpus": usable_cores(), "include_dashboard": False}
    elif address != "auto":
        _answers(address)
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise JudgeError(
            f"no Ray cluster at {address!r}: {reason} Start one: {START}. From a machine outside of it: "
            "ray://HEAD:10001; `local` uses this machine's cores"
        ) from None


def _answers(address: str) -> None:
    """JudgeError unless something listens there; Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not (host and colon and port.isdigit()):
        raise JudgeError(f"{address!r} is no address of a Ray cluster; it is auto, local, HOST:6379 or ray://HOST:10001")
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER_S).close()
    except (OSError, OverflowError) as error:
        raise JudgeError(f"nothing answers at {address} ({error}); start a cluster: {START}") from None
