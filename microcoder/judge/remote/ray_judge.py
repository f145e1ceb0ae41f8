"""A judge on a Ray cluster: the same verdicts, from the cores of many machines.

One actor on each node holds a `Judge` with a worker for each core that it was given (`ray_node`); `ray_nodes` knows
which nodes there are; `Deal` deals the candidates out.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import pickle
import threading
import time
from collections import deque
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any

from ...schema import Problem, Solution, Verdict
from ..base import JudgeError, Judging, failed, solution_of
from .ray_node import Item, Kept, said
from .ray_nodes import TRIES, DealtCandidate, Node, Nodes, connected, reason_of

LOOK_S = 2.0  # between looks at which nodes there are
START_S, OTHERS_S = 120.0, 10.0  # for the first node to be ready, and for the others after it
ALONE_S = 60.0  # without any node, until what waits is given up
END_S = 30.0  # for a node's judge to end


class Dealer:
    """Send candidates to nodes. `add` may be called from any thread; the rest runs in the event loop."""

    def __init__(
        self, ray: Any, loop: asyncio.AbstractEventLoop, workers: int | None, queue: int | None, options: dict[str, Any]
    ) -> None:
        self.nodes = Nodes(ray, workers, options, self._feed)
        self._loop, self._queue = loop, queue
        self._room = threading.Condition()  # guards what follows
        self._waiting: deque[DealtCandidate] = deque()
        self._suspects: deque[DealtCandidate] = deque()
        self._woken = self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, candidate: DealtCandidate) -> None:
        """Add a candidate; wait while the queue is full."""
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
        batches: dict[Node, list[DealtCandidate]] = {}
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

    def _answer(self, candidate: DealtCandidate, verdict: Verdict | str | None) -> None:
        if candidate.future.set_running_or_notify_cancel():
            assert verdict is not None  # only what was cancelled is dropped
            candidate.future.set_result(failed(candidate.solution, verdict) if isinstance(verdict, str) else verdict)

    def _lose(self, node: Node, error: BaseException) -> None:
        """Handle a lost node: put its candidates at the front of the queue."""
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

    def _cancelled(self, candidate: DealtCandidate, future: Future[Verdict]) -> None:
        """Handle a cancelled future, in whatever thread that happens."""
        if future.cancelled():
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._drop, candidate)

    def _drop(self, candidate: DealtCandidate) -> None:
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


LARGE = 16 << 10  # bytes of tests from which on a problem goes through the object store; below, that costs more


class RayJudge(Judging):
    """`address`: see `connected`. `workers`: cores in all, None: all there are. The others are options of `Judge`."""

    def __init__(
        self, address: str = "auto", workers: int | None = None, queue: int | None = None, **options: Any
    ) -> None:
        self._exit = ExitStack()
        self._ray = self._exit.enter_context(connected(address))
        self._numbers = itertools.count()
        self._stored = Kept()  # large problems in the object store
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._dealer = Dealer(self._ray, self._loop, workers, queue, options)
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="ray-judge")
        self._thread.start()
        try:
            self._run(self._dealer.open())
        except BaseException:
            self.close(cancel=True)
            raise

    @property
    def workers(self) -> int:  # type: ignore[override]
        return max(1, self._dealer.nodes.workers)

    @property
    def sandbox(self) -> str:  # type: ignore[override]
        return self._dealer.nodes.layer

    def submit(
        self, problem: Problem, completion: str | Solution | None = None, *, code: str | None = None
    ) -> Future[Verdict]:
        solution = solution_of(problem, completion, code)
        try:
            large = self._large(problem)
            rest = pickle.dumps((None if large else problem, solution))
        except Exception as error:
            if self._closed:
                raise JudgeError("this judge is closed; make a new one") from None
            future: Future[Verdict] = Future()  # a problem that cannot even be handed over, such as one with a lock
            future.set_result(failed(solution, said(error)))
            return future
        candidate = DealtCandidate(Item(next(self._numbers), large, rest), solution)
        self._dealer.add(candidate)
        return candidate.future

    def drop(self, future: Future[Verdict]) -> None:
        future.cancel()  # the dealer is told, as of any that is cancelled

    def close(self, cancel: bool = False) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            self._run(self._dealer.close(cancel))
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._exit.close()

    def _large(self, problem: Problem) -> Any:
        """Put a large problem into Ray's object store and return its reference; None for small ones."""
        size = problem.size()
        if size < LARGE:
            return None
        return self._stored.get(problem.fingerprint(), lambda: (self._ray.put(problem), size))

    def _run(self, coroutine: Any) -> Any:
        running = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return running.result()
        except BaseException:  # Ctrl-C, perhaps
            running.cancel()
            raise
