"""Which response sits where: one call of the graph sampler, from waiting responses to finished ones.

A response takes a free row of the batch, is written there chunk by chunk, and is handed out one chunk after its last.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from .plain import Rows
from .sampling import Completion, Sampling

if TYPE_CHECKING:
    from .graph import GraphSampler

CHUNK = 4  # steps between two looks at what has finished
AHEAD = 64  # prompts that may be read before they have a slot
PROMPT_TOKENS = 32768  # that are read at once
SMALLEST = 8  # rows of the smallest graph


@dataclass(slots=True)
class Usage:
    """How well the slots of the last call were used."""

    steps: int = 0
    slot_steps: int = 0  # slots of each step, summed over the steps
    waiting_slot_steps: int = 0  # of these, while some response still waited for a slot
    idle_slot_steps: int = 0  # of those, without a response
    prompts_read: int = 0


@dataclass(slots=True, eq=False)
class _Sequence:
    prompt: int
    sample: int
    row: int = -1
    slot: int = -1  # the row that it began in, which may move
    finished: bool = False


@dataclass(slots=True)
class _Look:
    """The state after a chunk, as it reaches the host."""

    owners: list[_Sequence | None]
    state: torch.Tensor  # (2, n): lengths and done
    event: Any
    waiting: bool
    slot_steps: int


class Run:
    """One call: which response sits where."""

    def __init__(self, sampler: GraphSampler, prompts: Sequence[Sequence[int]], sampling: Sampling) -> None:
        self.sampler, self.prompts, self.sampling = sampler, prompts, sampling
        order = sorted(range(len(prompts)), key=lambda n: len(prompts[n]))  # alike lengths together: less padding
        self.waiting = deque(_Sequence(n, k) for n in order for k in range(sampling.samples))
        self.unread = deque(order)
        self.place: dict[int, int] = {}  # of each prompt that has been read, in the shared pool
        self.free = list(range(sampler.room.prompts))[::-1]
        self.left = [sampling.samples] * len(prompts)  # responses of each prompt that are not finished
        self.size = max(1, min(sampler.room.slots, len(self.waiting)))
        self.owners: list[_Sequence | None] = [None] * self.size
        self.usage = Usage()
        self.produced = self.handed = 0
        draw = random.Random(sampling.seed)
        self.seeds = [[draw.getrandbits(62) for _ in range(sampling.samples)] for _ in prompts]
        rows = Rows(sampler.state)
        rows.slot.copy_(torch.arange(len(rows.slot), device=sampler.device))
        rows.done.fill_(1)
        self.ends = set(sampler.ends.tolist())

    def completions(self) -> Iterator[Completion]:
        before: _Look | None = None
        while any(owner is not None for owner in self.owners) or self.waiting or before is not None:
            self._admit()
            self._shrink()
            look = self._launch() if any(owner is not None for owner in self.owners) else None
            if before is not None:
                yield from self._finished(before)
            before = look

    def _admit(self) -> None:
        """Waiting responses into free rows; their prompts are read before, several at once."""
        rows = [row for row, owner in enumerate(self.owners) if owner is None] if self.waiting else []
        columns = []
        for row in rows[: len(self.waiting)]:
            if self.waiting[0].prompt not in self.place:
                self._read()
            one = self.waiting.popleft()
            one.row, one.slot, self.owners[row] = row, row, one  # rows move only when nothing waits any more
            prompt = self.prompts[one.prompt]
            columns.append(
                (prompt[-1], len(prompt) - 1, self.place[one.prompt], len(prompt) - 1, one.slot, 0, 0,
                 self.seeds[one.prompt][one.sample])
            )  # fmt: skip
        if columns:
            new = torch.tensor([*zip(*columns, strict=True), tuple(rows[: len(columns)])])
            if self.sampler.cuda:
                new = new.pin_memory().to(self.sampler.device, non_blocking=True)
            self.sampler.state.index_copy_(1, new[8], new[:8])

    def _read(self) -> None:
        chosen: list[int] = []
        longest = 0
        while self.unread and len(chosen) < min(len(self.free), AHEAD):
            longest = max(longest, len(self.prompts[self.unread[0]]))
            if chosen and longest * (len(chosen) + 1) > PROMPT_TOKENS:
                break
            chosen.append(self.unread.popleft())
        for n in chosen:
            self.place[n] = self.free.pop()
        self.sampler.read([self.prompts[n] for n in chosen], [self.place[n] for n in chosen])
        self.usage.prompts_read += len(chosen)

    def _shrink(self) -> None:
        """When nothing waits and half of the rows are free, the others move together."""
        live = [owner for owner in self.owners if owner is not None]
        size = self.size
        while size > SMALLEST and len(live) <= -(-size // 2):
            size = -(-size // 2)
        if self.waiting or not live or size == self.size:
            return
        empty = [row for row, owner in enumerate(self.owners) if owner is None]
        order = [owner.row for owner in live] + empty[: size - len(live)]
        self.sampler.state[:, :size] = self.sampler.state[:, torch.tensor(order, device=self.sampler.device)]
        self.owners = [*live, *[None] * (size - len(live))]
        for row, owner in enumerate(live):
            owner.row = row
        self.size = size

    def _launch(self) -> _Look:
        sampler = self.sampler
        for _ in range(CHUNK):
            sampler.step(self.size, self.sampling)
        self.usage.steps += CHUNK
        self.usage.slot_steps += CHUNK * self.size
        state = sampler.state[5:7, : self.size]  # lengths and done
        if not sampler.cuda:
            return _Look(list(self.owners), state.clone(), None, bool(self.waiting), CHUNK * self.size)
        host = torch.empty(state.shape, dtype=state.dtype, pin_memory=True)
        host.copy_(state, non_blocking=True)
        event = torch.cuda.Event(blocking=True)  # waiting for it leaves the core to the judge
        event.record()
        return _Look(list(self.owners), host, event, bool(self.waiting), CHUNK * self.size)

    def _finished(self, look: _Look) -> list[Completion]:
        if look.event is not None:
            look.event.synchronize()
        lengths, done = look.state.tolist()
        rows = [
            (n, owner) for n, owner in enumerate(look.owners) if owner is not None and not owner.finished and done[n]
        ]
        running = sum(lengths[n] for n, owner in enumerate(look.owners) if owner is not None and not owner.finished)
        if look.waiting:
            self.usage.waiting_slot_steps += look.slot_steps
            self.usage.idle_slot_steps += look.slot_steps - (self.handed + running - self.produced)
        self.produced = self.handed + running
        if not rows:
            return []
        ids, logprobs = self._fetch([owner.slot for _, owner in rows], max(lengths[n] for n, _ in rows), look.event)
        found = []
        for at, (n, owner) in enumerate(rows):
            count = lengths[n]
            owner.finished = True
            self.owners[owner.row] = None
            self.handed += count
            self.left[owner.prompt] -= 1
            if not self.left[owner.prompt]:
                self.free.append(self.place[owner.prompt])
            text = ids[at][:count]
            found.append(
                Completion(owner.prompt, owner.sample, text, logprobs[at][:count], truncated=text[-1] not in self.ends)
            )
        return found

    def _fetch(self, slots: list[int], count: int, event: Any) -> tuple[list[list[int]], list[list[float]]]:
        """What was written into slots, past the steps that are running meanwhile."""
        sampler = self.sampler
        if not sampler.cuda:
            return sampler.written[slots, :count].tolist(), sampler.logprobs[slots, :count].tolist()
        with torch.cuda.stream(sampler.side):
            sampler.side.wait_event(event)
            index = torch.tensor(slots).pin_memory().to(sampler.device, non_blocking=True)
            ids = sampler.written[:, :count].index_select(0, index).to("cpu", non_blocking=True)
            values = sampler.logprobs[:, :count].index_select(0, index).to("cpu", non_blocking=True)
            sampler.side.synchronize()
        return ids.tolist(), values.tolist()
