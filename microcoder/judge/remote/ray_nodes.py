"""Which nodes of a Ray cluster judge for us: an actor on each that has cores for it, also on those that join later."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from ... import __version__
from ...schema import Solution, Verdict
from ..pool import LAYERS
from .ray_node import DEPTH, Item, NodeJudge

ASK_S = 60.0  # how long cores are asked for that others may hold; then half as many
TRIES = 3  # nodes that one candidate may have


@dataclass(eq=False)
class Candidate:
    """From `submit` until its verdict."""

    item: Item
    solution: Solution
    future: Future[Verdict] = field(default_factory=Future)
    node: Node | None = None
    lost: list[str] = field(default_factory=list)  # the nodes that were lost under it

    @property
    def suspect(self) -> bool:
        """It may be what ends the nodes. So its last try has no other suspect beside it."""
        return len(self.lost) == TRIES - 1


@dataclass(eq=False)
class Node:
    name: str
    actor: Any
    workers: int
    layer: str
    has: dict[int, Candidate] = field(default_factory=dict)
    asked: bool = False  # a call that brings verdicts is under way

    @property
    def room(self) -> int:
        return DEPTH * self.workers - len(self.has)

    @property
    def load(self) -> float:
        return len(self.has) / self.workers

    def takes(self, candidate: Candidate) -> bool:
        return self.room > 0 and not (candidate.suspect and any(other.suspect for other in self.has.values()))


class Nodes:
    """All of this happens in one event loop."""

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
        """It is lost; if only the actor was, the next look starts another."""
        self.reason = reason_of(error)
        self.since = time.monotonic()
        del self.ready[node.name]
        self.end(node.actor)

    def end(self, actor: Any) -> None:
        with contextlib.suppress(Exception):  # it has ended
            self.ray.kill(actor)


def reason_of(error: BaseException) -> str:
    """What went wrong in a line; Ray puts a traceback around it."""
    cause = getattr(error, "cause", None) or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return lines[-1] if lines else type(cause).__name__
