"""One call of the graph sampler, on the host: which response is in which slot, and what is launched next."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from .pages import Pages, Text
from .plain import LONG, Rows
from .sampler import Completion, Sampling

if TYPE_CHECKING:
    from .graph import GraphSampler

CHUNK = 4  # steps between two looks at what has finished
AHEAD = 64  # prompts that are read at once, some before they have a slot
PROMPT_TOKENS = 32768  # that are read at once
SMALLEST = 8  # rows of the smallest graph


@dataclass(slots=True)
class Usage:
    """How well the slots and pages of the last call were used."""

    steps: int = 0
    slot_steps: int = 0  # slots of each step, summed over the steps
    waiting_slot_steps: int = 0  # of these, while some response still waited for a slot
    idle_slot_steps: int = 0  # of those, without a response
    prompts_read: int = 0
    preemptions: int = 0  # responses that gave back their pages and began again later
    pages: int = 0  # that there were
    most_pages: int = 0  # used at once
    most_responses: int = 0  # written at once


@dataclass(slots=True)
class _Look:
    """The state after a chunk of decode steps, copied to the host."""

    owners: list[Text | None]
    state: torch.Tensor  # (2, n): lengths and done
    event: Any
    waiting: bool
    slot_steps: int


@dataclass(slots=True)
class Reading:
    """A text to be read: its tokens, and where the keys of those from `begin` on belong."""

    ids: Sequence[int]
    begin: int
    to: torch.Tensor  # page * PAGE + offset


class Call:
    """The state of one call: which completion is in which slot."""

    def __init__(self, sampler: GraphSampler, prompts: Sequence[Sequence[int]], sampling: Sampling, pages: int) -> None:
        self.sampler, self.prompts, self.sampling = sampler, prompts, sampling
        order = sorted(range(len(prompts)), key=lambda n: len(prompts[n]))  # alike lengths together: less padding
        self.waiting = deque(Text(n, k) for n in order for k in range(sampling.samples))
        self.unread = deque(order)
        self.pages = Pages(pages, prompts, sampling.limit, CHUNK)
        self.long = sampling.limit + max(map(len, prompts), default=0) > LONG
        self.left = [sampling.samples] * len(prompts)  # responses of each prompt that are not finished
        self.most = self.size = max(1, min(sampler.batch, len(self.waiting)))  # rows, and how many of them are launched
        self.owners: list[Text | None] = [None] * self.most
        self.slots = list(range(self.most))[::-1]  # those that are free
        self.usage = Usage(pages=pages)
        self.produced = self.handed = 0
        draw = random.Random(sampling.seed)
        self.seeds = [[draw.getrandbits(62) for _ in range(sampling.samples)] for _ in prompts]
        Rows(sampler.state).done.fill_(1)
        self.ends = set(sampler.ends.tolist())

    def completions(self) -> Iterator[Completion]:
        before: _Look | None = None
        while any(owner is not None for owner in self.owners) or self.waiting or before is not None:
            if not self._grow():
                self._admit()
            self._arrange()
            look = self._launch() if any(owner is not None for owner in self.owners) else None
            if before is not None:
                yield from self._finished(before)
            before = look

    def _grow(self) -> bool:
        """Take the pages of the next chunk; True if responses were preempted, which `_finished` puts back in line."""
        preempted = self.pages.grow()
        if preempted:
            rows = self.sampler.copied([one.row for one in preempted])
            Rows(self.sampler.state).done.index_fill_(0, rows, 1)
        return bool(preempted)

    def _admit(self) -> None:
        """Move waiting completions into free rows, after reading their prompts, several at once."""
        rows = [row for row, owner in enumerate(self.owners) if owner is None] if self.waiting else []
        columns, readings = [], []
        for row in rows[: len(self.waiting)]:
            one, prompt = self.waiting[0], self.prompts[self.waiting[0].prompt]
            known = one.prompt in self.pages.stored
            if not self.pages.admit(one, self.slots[-1]):
                break
            self.waiting.popleft()
            self.slots.pop()
            one.row, self.owners[row] = row, one
            text, first = [*prompt, *one.ids], len(prompt) - 1
            if one.ids or not known:
                readings.append(self._reading(one.prompt, text, first if known else 0, one.own))
                self.usage.prompts_read += not known
            columns.append(
                (text[-1], len(text) - 1, first, one.slot, len(one.ids), 0, self.seeds[one.prompt][one.sample], row)
            )
        self.usage.most_responses = max(self.usage.most_responses, len(self.pages.live))
        self._read(readings)
        if columns:
            new = self.sampler.copied(list(zip(*columns, strict=True)))
            self.sampler.state.index_copy_(1, new[7], new[:7])

    def _reading(self, prompt: int, text: Sequence[int], begin: int, own: Sequence[int] = ()) -> Reading:
        return Reading(text[:-1], begin, self.pages.places(prompt, own, begin, len(text) - 1))

    def _read(self, readings: list[Reading]) -> None:
        """Read texts, and prompts that will be needed soon, so that many are read at once."""
        tokens = len(readings) * max((len(one.ids) for one in readings), default=0)
        while readings and self.unread and len(readings) < AHEAD and tokens <= PROMPT_TOKENS:
            n = self.unread[0]
            if n not in self.pages.stored and self.left[n]:
                longest = max(len(self.prompts[n]), *(len(one.ids) for one in readings))
                tokens = (len(readings) + 1) * longest
                if tokens > PROMPT_TOKENS or not self.pages.store(n):
                    break
                readings.append(self._reading(n, self.prompts[n], 0))
                self.usage.prompts_read += 1
            self.unread.popleft()
        some: list[Reading] = []
        for one in sorted(readings, key=lambda one: len(one.ids)):
            if some and (len(some) + 1) * len(one.ids) > PROMPT_TOKENS:
                self.sampler.read(some)
                some = []
            some.append(one)
        self.sampler.read(some)

    def _arrange(self) -> None:
        """Choose the smallest graph that holds the responses; their rows move together if need be, long texts first."""
        live = [owner for owner in self.owners if owner is not None]
        self.size = self.most
        while self.size > SMALLEST and len(live) <= -(-self.size // 2):
            self.size = -(-self.size // 2)
        if self.long:
            live.sort(key=lambda one: one.begun - self.pages.lengths[one.prompt])
            if all(one.row == row for row, one in enumerate(live)):
                return
        elif all(owner is None for owner in self.owners[self.size :]):
            return
        empty = [row for row, owner in enumerate(self.owners) if owner is None]
        order = [owner.row for owner in live] + empty[: self.size - len(live)]
        state = self.sampler.state
        state[:, : self.size] = state[:, self.sampler.copied(order)]
        Rows(state).done[self.size :] = 1
        self.owners = [*live, *[None] * (self.most - len(live))]
        for row, owner in enumerate(live):
            owner.row = row

    def _launch(self) -> _Look:
        sampler = self.sampler
        if self.pages.changes:
            sampler.write_table(self.pages.changes)
            self.pages.changes = {}
        for _ in range(CHUNK):
            sampler.step(self.size, self.sampling)
        self.pages.steps += CHUNK
        self.usage.most_pages = self.pages.most
        self.usage.steps += CHUNK
        self.usage.slot_steps += CHUNK * self.size
        state = sampler.state[4:6, : self.size]  # lengths and done
        owners = self.owners[: self.size]
        if not sampler.cuda:
            return _Look(owners, state.clone(), None, bool(self.waiting), CHUNK * self.size)
        host = torch.empty(state.shape, dtype=state.dtype, pin_memory=True)
        host.copy_(state, non_blocking=True)
        event = torch.cuda.Event(blocking=True)  # waiting for it leaves the core to the judge
        event.record()
        return _Look(owners, host, event, bool(self.waiting), CHUNK * self.size)

    def _finished(self, look: _Look) -> list[Completion]:
        """Hand out what is finished, and put what was preempted back in line."""
        if look.event is not None:
            look.event.synchronize()
        lengths, done = look.state.tolist()
        open_ = [(n, owner) for n, owner in enumerate(look.owners) if owner is not None and not owner.finished]
        rows = [(n, owner) for n, owner in open_ if done[n] or owner.preempted]
        running = sum(lengths[n] - len(owner.ids) for n, owner in open_)
        if look.waiting:
            self.usage.waiting_slot_steps += look.slot_steps
            self.usage.idle_slot_steps += look.slot_steps - (self.handed + running - self.produced)
        self.produced = self.handed + running
        if not rows:
            return []
        ids, logprobs = self._fetch([owner.slot for _, owner in rows], max(lengths[n] for n, _ in rows), look.event)
        found = []
        for at, (n, owner) in enumerate(rows):
            begin, count = len(owner.ids), lengths[n]
            owner.finished = True
            self.owners[owner.row] = None
            self.slots.append(owner.slot)
            self.pages.leave(owner)
            self.handed += count - begin
            text, values = owner.ids + ids[at][begin:count], owner.logprobs + logprobs[at][begin:count]
            if not done[n]:
                self.usage.preemptions += 1
                self.waiting.appendleft(Text(owner.prompt, owner.sample, text, values))
                continue
            self.left[owner.prompt] -= 1
            if not self.left[owner.prompt]:
                self.pages.forget(owner.prompt)
            found.append(Completion(owner.prompt, owner.sample, text, values, truncated=text[-1] not in self.ends))
        return found

    def _fetch(self, slots: list[int], count: int, event: Any) -> tuple[list[list[int]], list[list[float]]]:
        """Copy finished tokens from the slots, while further steps run."""
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
