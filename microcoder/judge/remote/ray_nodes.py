"""Which nodes of a Ray cluster judge for us: an actor on each that has cores for it, also on those that join later."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ... import __version__
from ...schema import Solution, Verdict
from .. import JudgeError
from ..pool import LAYERS, usable_cores
from .ray_node import DEPTH, Item, NodeJudge

ANSWER_S = 5.0  # for a machine that is there to answer
START = "`ray start --head` here, then `ray start --address=THIS_HOST:6379` on the other machines"
_lock = threading.Lock()
_users, _where = 0, ""  # of a connection that was made here


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to Ray and return the module. A process that is connected already keeps its connection.

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
        raise JudgeError(
            f"{address!r} is no address of a Ray cluster; it is auto, local, HOST:6379 or ray://HOST:10001"
        )
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER_S).close()
    except (OSError, OverflowError) as error:
        raise JudgeError(f"nothing answers at {address} ({error}); start a cluster: {START}") from None


ASK_S = 60.0  # how long cores are asked for that others may hold; then half as many
TRIES = 3  # nodes that one candidate may have


@dataclass(eq=False)
class DealtCandidate:
    """A candidate from `submit` until its verdict."""

    item: Item
    solution: Solution
    future: Future[Verdict] = field(default_factory=Future)
    node: Node | None = None
    lost: list[str] = field(default_factory=list)  # the nodes that were lost under it

    @property
    def suspect(self) -> bool:
        """Whether this candidate may have ended a node; its last try is then made apart from other suspects."""
        return len(self.lost) == TRIES - 1


@dataclass(eq=False)
class Node:
    name: str
    actor: Any
    workers: int
    layer: str
    has: dict[int, DealtCandidate] = field(default_factory=dict)
    asked: bool = False  # a call that brings verdicts is under way

    @property
    def room(self) -> int:
        return DEPTH * self.workers - len(self.has)

    @property
    def load(self) -> float:
        return len(self.has) / self.workers

    def takes(self, candidate: DealtCandidate) -> bool:
        return self.room > 0 and not (candidate.suspect and any(other.suspect for other in self.has.values()))


class Nodes:
    """The nodes that judge, and their actors; used in one event loop only."""

    def __init__(self, ray: Any, most: int | None, options: dict[str, Any], joined: Callable[[], None]) -> None:
        self.ray, self.most, self.options, self.joined = ray, most, options, joined
        self.ready: dict[str, Node] = {}
        self.starting: dict[str, tuple[int, asyncio.Task[None]]] = {}
        self.refused: dict[str, str] = {}  # nodes that cannot judge, and why
        self.reason = "its nodes have no CPUs; start them with --num-cpus"  # why there is none
        self.since = time.monotonic()  # there was a node, or began to look for one

    @property
    def workers(self) -> int:
        return sum(node.workers for node in list(self.ready.values()))

    async def look(self) -> None:
        """Start actors on nodes that have none."""
        if self.ready:
            self.since = time.monotonic()
        found = await asyncio.to_thread(self.ray.nodes)
        random.shuffle(found)  # several judges that want some cores each should not all ask the same nodes
        for each in found:
            name, cores = each["NodeID"], int(each["Resources"].get("CPU", 0)) if each["Alive"] else 0
            if self.most is not None:
                cores = min(cores, self.most - self.workers - sum(cores for cores, _ in self.starting.values()))
            if cores > 0 and not any(name in names for names in (self.ready, self.starting, self.refused)):
                self.starting[name] = cores, asyncio.create_task(self._start(name, cores))

    async def _start(self, name: str, cores: int) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(name, soft=False)
        try:
            while cores:
                actor = self.ray.remote(NodeJudge).options(
                    num_cpus=cores, scheduling_strategy=here, max_concurrency=8, enable_task_events=False
                ).remote(cores, self.options)  # fmt: skip
                try:
                    async with asyncio.timeout(ASK_S):
                        version, layer = await actor.open.remote()
                    if version != __version__:
                        raise RuntimeError(f"it has microcoder {version}, not {__version__}")
                    self._join(Node(name, actor, cores, layer))
                    return
                except TimeoutError:
                    self.reason = "others hold all its CPUs: `ray status`; or ask for fewer, with judge.workers"
                    cores //= 2
                except BaseException:
                    self.end(actor)
                    raise
                self.end(actor)
        except Exception as error:
            self.refused[name] = self.reason = reason_of(error)
            warnings.warn(f"node {name[:8]} of the Ray cluster does not judge: {self.reason}", stacklevel=1)
        finally:
            del self.starting[name]

    def _join(self, node: Node) -> None:
        layers = {other.layer for other in self.ready.values()}
        if layers and node.layer not in layers:
            warnings.warn(f"node {node.name[:8]} judges in another sandbox than others: {node.layer}", stacklevel=1)
        self.ready[node.name] = node
        self.joined()

    @property
    def layer(self) -> str:
        """The weakest sandbox of all nodes."""
        return max((node.layer for node in list(self.ready.values())), key=LAYERS.index, default="")

    def leave(self, node: Node, error: BaseException) -> None:
        """Remove a lost node; if only its actor was lost, the next look starts another."""
        self.reason = reason_of(error)
        self.since = time.monotonic()
        del self.ready[node.name]
        self.end(node.actor)

    def end(self, actor: Any) -> None:
        with contextlib.suppress(Exception):  # it has ended
            self.ray.kill(actor)


def reason_of(error: BaseException) -> str:
    """Return the cause of a Ray error in one line, without Ray's traceback."""
    cause = getattr(error, "cause", None) or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return lines[-1] if lines else type(cause).__name__
