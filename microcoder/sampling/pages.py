"""Pages of keys and values, on the host: which are free, and which a prompt or a response has.

1. A page holds PAGE tokens. A prompt's pages are stored once and shared by its responses; a response's own come after
   them, and more are taken as it grows.
2. A response is admitted if there are pages for its beginning and one more for each response that is being written.
3. When pages run out, prompts that no response uses are dropped. Then the response that was admitted last is preempted:
   it gives back its pages and begins again later with the tokens it has. The oldest one always comes to its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from .plain import PAGE

RESERVE = 1  # pages that are kept for each response being written when another is admitted
AHEAD_RESERVE = 4  # and when a prompt is read before it is needed


def pages_of(tokens: int) -> int:
    """Return the number of pages that hold so many tokens."""
    return -(-tokens // PAGE)


@dataclass(slots=True, eq=False)
class Text:
    """A response that waits or is being written."""

    prompt: int
    sample: int
    ids: list[int] = field(default_factory=list)  # what it had when it was preempted
    logprobs: list[float] = field(default_factory=list)
    row: int = -1
    slot: int = -1  # its place in the table and in the tokens written; the row may move
    own: list[int] = field(default_factory=list)  # its own pages
    begun: int = 0  # the step at which it would have begun without a preemption
    preempted: bool = False
    finished: bool = False


class Pages:
    """The pages of one call. `chunk`: steps between two calls of `grow`."""

    def __init__(self, count: int, prompts: Sequence[Sequence[int]], limit: int, chunk: int) -> None:
        self.count, self.limit, self.chunk, self.steps = count, limit, chunk, 0
        self.lengths = [len(prompt) - 1 for prompt in prompts]  # the last token is a response's own
        self.free = list(range(count))[::-1]
        self.stored: dict[int, list[int]] = {}  # pages of each prompt that is stored
        self.users: Counter[int] = Counter()  # responses of each prompt that are being written
        self.live: dict[Text, None] = {}  # in the order in which they were admitted
        self.changes: dict[tuple[int, int], int] = {}  # (slot, column): page, which the device's table lacks
        self.owned = 0  # pages of all that are live
        self.most = 0  # pages used at once

    @property
    def used(self) -> int:
        return self.count - len(self.free)

    def admit(self, one: Text, slot: int) -> bool:
        """Give a response its slot and the pages to begin with, the prompt's included; False if too few are free."""
        prompt = 0 if one.prompt in self.stored else pages_of(self.lengths[one.prompt])
        own = pages_of(min(len(one.ids) + self.chunk, self.limit))
        if prompt + own + self._growth(RESERVE, len(self.live) + 1, self.owned + own) > len(self.free):
            if self.live:
                return False
            self._drop_idle(one.prompt)  # alone it always fits
        one.slot, one.begun = slot, self.steps - len(one.ids)
        self.live[one] = None
        self.users[one.prompt] += 1
        if one.prompt not in self.stored:
            self.stored[one.prompt] = self._take(prompt)
        self.changes |= {(slot, column): page for column, page in enumerate(self.stored[one.prompt])}
        self._extend(one, own)
        return True

    def store(self, prompt: int) -> bool:
        """Take pages for a prompt that is not needed yet; False if responses may need them sooner."""
        count = pages_of(self.lengths[prompt])
        if count + self._growth(AHEAD_RESERVE, len(self.live), self.owned) > len(self.free):
            return False
        self.stored[prompt] = self._take(count)
        return True

    def grow(self) -> list[Text]:
        """Give each response that is being written the pages for the next chunk; return those that were preempted."""
        preempted = []
        now, limit = self.steps + self.chunk, self.limit
        for one in [one for one in self.live if len(one.own) * PAGE < min(now - one.begun, limit)]:
            missing = pages_of(min(now - one.begun, limit)) - len(one.own)
            while one in self.live and missing > len(self.free):
                if not self._drop_idle():
                    last = next(reversed(self.live))
                    last.preempted = True
                    self.leave(last)
                    preempted.append(last)
            if one in self.live:
                self._extend(one, missing)
        return preempted

    def leave(self, one: Text) -> None:
        """Take back a response's own pages, if it still has them."""
        if one in self.live:
            del self.live[one]
            self.users[one.prompt] -= 1
            self.free += one.own
            self.owned -= len(one.own)
            one.own = []

    def forget(self, prompt: int) -> None:
        """Take back a prompt's pages."""
        self.free += self.stored.pop(prompt, [])

    def close(self) -> None:
        """Take back all pages."""
        for one in list(self.live):
            self.leave(one)
        for prompt in list(self.stored):
            self.forget(prompt)

    def places(self, prompt: int, own: Sequence[int], begin: int, end: int) -> torch.Tensor:
        """Return page * PAGE + offset of the tokens begin..end of a prompt and the response with the pages `own`."""
        first = self.lengths[prompt]
        at = torch.arange(begin, end)
        at = torch.where(at < first, at, at - first + pages_of(first) * PAGE)
        return torch.tensor([*self.stored[prompt], *own], dtype=torch.long)[at // PAGE] * PAGE + at % PAGE

    def _growth(self, each: int, live: int, owned: int) -> int:
        """Pages that so many responses, which own so many, may still take: `each` at most, on average."""
        return min(each * live, pages_of(self.limit) * live - owned)

    def _extend(self, one: Text, count: int) -> None:
        column = len(self.stored[one.prompt]) + len(one.own)
        taken = self._take(count)
        self.changes |= {(one.slot, column + n): page for n, page in enumerate(taken)}
        one.own += taken
        self.owned += count

    def _take(self, count: int) -> list[int]:
        taken = [self.free.pop() for _ in range(count)]
        self.most = max(self.most, self.used)
        return taken

    def _drop_idle(self, but: int = -1) -> bool:
        """Take back the pages of prompts that no response uses; False if there are none."""
        idle = [n for n, pages in self.stored.items() if pages and not self.users[n] and n != but]
        for n in idle:
            self.forget(n)
        return bool(idle)
