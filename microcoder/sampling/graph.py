"""Sampling through CUDA graphs: the whole decode step is one launch, and the batch stays full.

1. A slot holds one response. When one is finished a waiting one takes its slot, so short responses do not wait for long
   ones; when none waits any more, the rows that are left move together and a smaller graph goes on.
2. A prompt is read once. Its keys and values are stored once, for all of its samples.
3. The first step of every response reads the prompt's last token, so the first token is drawn like any other.
4. Steps are launched in chunks; while one runs, what the chunk before finished is handed out. The host never waits for
   the newest step.
5. Weights: a bfloat16 shadow of the model, refreshed at the beginning of every call (`shadow.py`).

`sampler_for` chooses: CUDA graphs where the model allows it, else transformers, with a word on why.
"""

from __future__ import annotations

import contextlib
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch

from . import plain
from .plain import Pools, PromptCache, Rows, StepCache
from .sampler import Completion, Sampler, Sampling, cut
from .shadow import NotCapturable, Shadow, head_width, refuse

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
    """The state after a chunk of decode steps, copied to the host."""

    owners: list[_Sequence | None]
    state: torch.Tensor  # (2, n): lengths and done
    event: Any
    waiting: bool
    slot_steps: int


class _Call:
    """The state of one call: which completion is in which slot."""

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
        """Move waiting completions into free rows, after reading their prompts, several at once."""
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
        """Compact the rows when nothing waits and half of them are free."""
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


TOLERANCE = 0.25  # mean difference of log-probabilities above which the copy is taken to be wrong


@dataclass
class _Room:
    """The tensors whose addresses a captured graph contains."""

    slots: int = 0
    limit: int = 0
    prompts: int = 0
    longest: int = 0
    pools: Any = None
    graphs: dict[Any, Any] = field(default_factory=dict)
    memory: Any = None


class GraphSampler:
    """Sample from a causal language model on a CUDA GPU. Its weights may change between calls.

    On a CPU the same steps run one by one with plain operations: for tests, not for speed.
    """

    def __init__(
        self, model: Any, end_tokens: Sequence[int], batch: int = 512, memory: float = 0.4,
        dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        self.model, self.batch, self.memory = model, batch, memory
        first = next(model.parameters())
        self.device = first.device
        self.cuda = self.device.type == "cuda"
        if dtype is None:
            dtype = torch.bfloat16 if self.cuda and torch.cuda.is_bf16_supported() else first.dtype
        self.ops: ModuleType = plain
        if self.cuda:
            refuse(model.config)
            self.ops = _kernels()
            with _explained():
                self.ops.compile_all(model.config, dtype, self.device)
            self.side = torch.cuda.Stream()
        self.shadow = Shadow(model, dtype, fused=self.cuda)
        config = model.config
        self.width = head_width(config)
        self.heads, self.layers, self.dtype = config.num_key_value_heads, config.num_hidden_layers, dtype
        self.ends = torch.tensor(sorted(end_tokens), device=self.device, dtype=torch.int32)
        self.temperature = torch.ones((), device=self.device)
        self.limit = torch.zeros((), device=self.device, dtype=torch.int64)
        self.room, self.usage = _Room(), Usage()
        self.generator = torch.Generator(self.device)
        if self.cuda:
            self._check()

    @torch.no_grad()
    def __call__(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> Iterator[Completion]:
        """`sampling.samples` completions of each prompt, in the order in which they finish."""
        self.shadow.refresh(self.model)
        self._make_room(prompts, sampling)
        self.temperature.fill_(sampling.temperature)
        self.limit.fill_(sampling.limit)
        self.generator.manual_seed(sampling.seed)
        run = _Call(self, prompts, sampling)
        self.usage = run.usage
        yield from run.completions()

    # --- room

    def _make_room(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> None:
        """Make the key-value pools large enough; growing them captures the graphs again."""
        room, count = self.room, len(prompts)
        longest = -(-max(max(map(len, prompts), default=1), 2) // 64) * 64
        limit = max(room.limit, sampling.limit)
        longest = max(room.longest, longest)
        rows = self._slots(max(room.slots, count * sampling.samples), limit + longest)
        shared = min(max(room.prompts, count), rows + AHEAD)
        if (rows, limit, shared, longest) == (room.slots, room.limit, room.prompts, room.longest):
            return
        self.room = room = _Room(rows, limit, shared, longest)
        self.state = torch.zeros(8, -(-rows // 16) * 16, device=self.device, dtype=torch.int64)
        self.written = torch.zeros(rows, limit, device=self.device, dtype=torch.int32)
        self.logprobs = torch.zeros(rows, limit, device=self.device)
        options = {"device": self.device, "dtype": self.dtype}
        room.pools = Pools.make(self.layers, self.heads, self.width, (shared, longest), (rows, limit), **options)

    def _slots(self, wanted: int, tokens: int) -> int:
        """Return the number of slots: as many as asked for, as far as memory allows."""
        wanted = max(1, min(self.batch, wanted))
        if not self.cuda:
            return wanted
        size = 2 * self.layers * self.heads * self.width * torch.finfo(self.dtype).bits // 8 * tokens
        total = torch.cuda.get_device_properties(self.device).total_memory
        fitting = int(self.memory * total) // size
        if fitting < 1:
            raise NotCapturable(
                f"one response of {tokens} tokens needs {size / 2**30:.1f} GiB of keys and values, and rollout.memory="
                f"{self.memory:g} of this GPU is {self.memory * total / 2**30:.1f} GiB; raise it, or lower the limit"
            )
        return min(wanted, fitting)

    # --- a step

    def step(self, rows: int, sampling: Sampling) -> None:
        if not self.cuda:
            self._step(rows, sampling)
            return
        cutting = (sampling.top_p, sampling.top_k, sampling.temperature) if _cuts(sampling) else None
        key = rows, cutting
        if key not in self.room.graphs:
            self.room.graphs[key] = self._capture(rows, sampling)
        self.room.graphs[key].replay()

    def _step(self, count: int, sampling: Sampling) -> None:
        rows = Rows(self.state[:, :count])
        cache = StepCache(self.ops, self.room.pools, rows)
        logits = self.shadow.logits(rows.token[:, None], rows.position[:, None], cache)
        allowed = cut(logits, sampling) if _cuts(sampling) else None
        self.ops.pick(
            logits, allowed, rows, self.ends, self.written, self.logprobs, self.temperature, self.limit, self.generator
        )

    def _capture(self, count: int, sampling: Sampling) -> Any:
        kept = self.state.clone()
        Rows(self.state).done.fill_(1)  # nothing is written by rows that are done
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            self._step(count, sampling)  # libraries make their choices and kernels are compiled outside the capture
        torch.cuda.current_stream().wait_stream(self.side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.room.memory, capture_error_mode="thread_local"):
            self._step(count, sampling)
        self.room.memory = self.room.memory or graph.pool()
        self.state.copy_(kept)
        return graph

    def read(self, prompts: list[Sequence[int]], places: list[int]) -> None:
        """Compute keys and values of prompts, without the last token of each, into the shared pool."""
        longest = max(map(len, prompts)) - 1
        if longest < 1:
            return
        ids = torch.zeros(len(prompts), longest, dtype=torch.long)
        for n, prompt in enumerate(prompts):
            ids[n, : len(prompt) - 1] = torch.tensor(prompt[:-1], dtype=torch.long)
        positions = torch.arange(longest, device=self.device)[None].expand(len(prompts), longest)
        where = torch.tensor(places).to(self.device, non_blocking=True)
        self.shadow.hidden(ids.to(self.device, non_blocking=True), positions, PromptCache(self.room.pools, where))

    # --- is it right?

    def _check(self) -> None:
        """Check the sampler: sample a few tokens and compare their log-probabilities with the model's own."""
        vocabulary = self.shadow.model.config.vocab_size
        draw = random.Random(0)
        prompts = [[draw.randrange(vocabulary) for _ in range(count)] for count in (5, 12)]
        ends, self.ends = self.ends, self.ends[:0]
        training = self.model.training
        self.model.eval()
        try:
            with _explained():
                found = list(self(prompts, Sampling(0.0, 6, 2)))
                differences = [self._difference(prompts[one.prompt], one) for one in found]
        finally:
            self.ends = ends
            self.room = _Room()
            self.model.train(training)
        if not max(differences) < TOLERANCE:
            raise NotCapturable(f"its log-probabilities come out wrong (by {max(differences):.2g} on average)")

    @torch.no_grad()
    def _difference(self, prompt: list[int], one: Completion) -> float:
        """Between the log-probabilities of a response and those that the model itself gives it, on average."""
        ids = torch.tensor([prompt + one.ids], device=self.device)
        logits = self.model(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 : -1].float()
        wanted = torch.log_softmax(logits, -1).gather(1, ids[0, len(prompt) :, None])[:, 0]
        return float((wanted - torch.tensor(one.logprobs, device=self.device)).abs().mean())


def _cuts(sampling: Sampling) -> bool:
    return sampling.top_p < 1 or sampling.top_k > 0


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Whatever a model's code or a compiler does here means only that there has to be another way."""
    try:
        yield
    except NotCapturable:
        raise
    except Exception as error:
        reason = str(error).strip().splitlines() or ["no reason given"]
        raise NotCapturable(f"{type(error).__name__}: {reason[0]}") from error


def _kernels() -> ModuleType:
    try:
        from . import kernels
    except ImportError as error:
        raise NotCapturable(f"Triton is missing ({error}); install it: pip install triton") from None
    return kernels


def sampler_for(
    model: Any,
    end_tokens: Sequence[int],
    engine: str = "auto",
    batch: int = 512,
    memory: float = 0.4,
    note: Callable[[str], None] | None = None,
) -> Sampler | GraphSampler:
    """Return a sampler of `model` on its device. `engine`: auto, graph (or an error), transformers."""
    on_gpu = next(model.parameters()).is_cuda
    if engine == "graph" and not on_gpu:
        raise NotCapturable("rollout.engine=graph needs a CUDA GPU; use rollout.engine=auto here")
    if engine == "transformers" or not on_gpu:
        return Sampler(model, end_tokens, batch)
    try:
        return GraphSampler(model, end_tokens, batch, memory)
    except NotCapturable as reason:
        if engine == "graph":
            raise NotCapturable(
                f"{type(model).__name__} cannot be sampled through CUDA graphs: {reason}; use rollout.engine=auto"
            ) from None
        if note is not None:
            note(f"rollouts go through transformers, which is slower: CUDA graphs cannot be used ({reason})")
        return Sampler(model, end_tokens, batch)
