"""Deals candidates out to the nodes of a Ray cluster and brings their verdicts back.

Each goes to the node with the most room, as many to a call as wait; a node has a few for each of its cores, and the
rest waits here (`submit` blocks). A node that is lost gives back what it has not answered, and that goes to others. A
candidate under which nodes are lost again and again is given up, and only it: see `Candidate.suspect`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import Any

from ...schema import Verdict
from ..base import JudgeError, failed
from .ray_node import Item
from .ray_nodes import TRIES, Candidate, Node, Nodes, reason_of

LOOK_S = 2.0  # between looks at which nodes there are
START_S, OTHERS_S = 120.0, 10.0  # for the first node to be ready, and for the others after it
ALONE_S = 60.0  # without any node, until what waits is given up
END_S = 30.0  # for a node's judge to end


class Dealer:
    """`add` may be called from any thread; all else happens in the event loop."""

    def __init__(
        self, ray: Any, loop: asyncio.AbstractEventLoop, workers: int | None, queue: int | None, options: dict[str, Any]
    ) -> None:
        self.nodes = Nodes(ray, workers, options, self._feed)
        self._loop, self._queue = loop, queue
        self._room = threading.Condition()  # guards what follows
        self._waiting: deque[Candidate] = deque()
        self._suspects: deque[Candidate] = deque()
        self._woken = self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, candidate: Candidate) -> None:
        """Waits for room."""
        with self._room:
            while not self._closed and len(self._waiting) >= (self._queue or 4 * max(1, self.nodes.workers)):
                self._room.wait()
            if self._closed:
                raise JudgeError("this judge is closed; make a new one")
            self._waiting.append(candidate)
            if not self._woken:
                self._woken = True
                self._loop.call_soon_threadsafe(self._feed)
        candidate.future.add_done_callback(lambda future: self._cancelled(candidate, future))

    async def open(self) -> None:
        await self.nodes.look()
        starting, end = {task for _, task in self.nodes.starting.values()}, time.monotonic() + START_S
        while starting and not self.nodes.ready and (left := end - time.monotonic()) > 0:
            _, starting = await asyncio.wait(starting, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if starting and self.nodes.ready:
            await asyncio.wait(starting, timeout=OTHERS_S)
        if not self.nodes.ready:
            raise JudgeError(f"no node of the Ray cluster can judge: {self.nodes.reason}")
        self._start(self._watch())

    async def close(self, cancel: bool) -> None:
        with self._room:
            self._closed = True
            self._room.notify_all()
        nodes = self.nodes.ready
        left = [*self._waiting, *self._suspects, *(each for node in nodes.values() for each in node.has.values())]
        if cancel:
            for candidate in left:
                candidate.future.cancel()
        elif left:
            await asyncio.wait([asyncio.wrap_future(candidate.future) for candidate in left])
        ours = [*self._tasks, *(task for _, task in self.nodes.starting.values())]
        for task in ours:
            task.cancel()
        await asyncio.gather(*ours, return_exceptions=True)
        await asyncio.gather(*(self._end(node, cancel) for node in nodes.values()))

    async def _end(self, node: Node, cancel: bool) -> None:
        with contextlib.suppress(Exception):  # what cannot end in time is killed, and its sandboxes with it
            async with asyncio.timeout(END_S):
                await node.actor.close.remote(cancel)
        self.nodes.end(node.actor)

    def _feed(self) -> None:
        batches: dict[Node, list[Candidate]] = {}
        with self._room:
            self._woken = False
            nodes = [node for node in self.nodes.ready.values() if node.room > 0]
            for line in (self._suspects, self._waiting):
                while line and (free := [node for node in nodes if node.takes(line[0])]):
                    candidate = line.popleft()
                    if candidate.future.cancelled():
                        continue
                    node = min(free, key=lambda node: (node.name in candidate.lost, node.load))
                    node.has[candidate.item.ident], candidate.node = candidate, node
                    batches.setdefault(node, []).append(candidate)
            self._room.notify_all()
        for node, batch in batches.items():
            self._send(node, [candidate.item for candidate in batch])

    def _send(self, node: Node, items: list[Item]) -> None:
        """Hand these over and, unless a call that does so is under way, bring back what is finished."""
        self._start((self._take if node.asked else self._exchange)(node, items))
        node.asked = True

    async def _take(self, node: Node, items: list[Item]) -> None:
        try:
            await node.actor.take.remote(items)
        except Exception as error:
            self._lose(node, error)

    async def _exchange(self, node: Node, items: list[Item]) -> None:
        try:
            answers = await node.actor.exchange.remote(items)
        except Exception as error:
            self._lose(node, error)
        if self.nodes.ready.get(node.name) is not node:
            return
        node.asked = False
        for ident, verdict in answers:
            self._answer(node.has.pop(ident), verdict)
        self._feed()
        if node.has and not node.asked:
            self._send(node, [])

    def _answer(self, candidate: Candidate, verdict: Verdict | str | None) -> None:
        if candidate.future.set_running_or_notify_cancel():
            assert verdict is not None  # only what was cancelled is dropped
            candidate.future.set_result(failed(candidate.solution, verdict) if isinstance(verdict, str) else verdict)

    def _lose(self, node: Node, error: BaseException) -> None:
        """What it had goes to the front of the line."""
        if self.nodes.ready.get(node.name) is not node:
            return
        self.nodes.leave(node, error)
        given_up = []
        with self._room:
            for candidate in reversed(node.has.values()):
                candidate.node = None
                candidate.lost.append(node.name)
                if len(candidate.lost) == TRIES:
                    given_up.append(candidate)
                else:
                    (self._suspects if candidate.suspect else self._waiting).appendleft(candidate)
        for candidate in given_up:
            self._answer(candidate, f"{TRIES} nodes were lost under it, the last one so: {reason_of(error)}")
        self._feed()

    def _cancelled(self, candidate: Candidate, future: Future[Verdict]) -> None:
        """In whatever thread a future ends."""
        if future.cancelled():
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._drop, candidate)

    def _drop(self, candidate: Candidate) -> None:
        if candidate.node is not None:
            candidate.node.actor.drop.remote(candidate.item.ident)  # its answer makes room
        else:
            with self._room, contextlib.suppress(ValueError):
                self._waiting.remove(candidate)
                self._room.notify_all()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.nodes.look()
            except Exception as error:  # the head does not answer
                self.nodes.reason = reason_of(error)
            if time.monotonic() - self.nodes.since > ALONE_S:
                with self._room:
                    left = [*self._suspects, *self._waiting]
                    self._suspects.clear()
                    self._waiting.clear()
                    self._room.notify_all()
                for candidate in left:
                    why = f"no node of the Ray cluster was there for {ALONE_S:.0f} s: {self.nodes.reason}"
                    self._answer(candidate, why)

    def _start(self, coroutine: Any) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)  # the loop itself keeps no hold on it
        task.add_done_callback(self._tasks.discard)
