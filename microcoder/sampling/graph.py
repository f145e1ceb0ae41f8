"""Sampling through CUDA graphs: the whole decode step is one launch, and the batch stays full.

1. A slot holds one response. When one is finished a waiting one takes its slot, so short responses do not wait for long
   ones; when none can, the rows that are left move together and a smaller graph goes on.
2. A prompt is read once. Its keys and values are stored once, for all of its samples.
3. Keys and values lie in pages, which are taken as responses grow; when they run out, the response that was admitted
   last goes back into the queue with the tokens it has (`pages.py`).
4. The first step of every response reads the prompt's last token, so the first token is drawn like any other.
5. Steps are launched in chunks; while one runs, what the chunk before finished is handed out. The host never waits for
   the newest step.
6. Weights: a bfloat16 shadow of the model, refreshed at the beginning of every call (`shadow.py`).

`sampler_for` chooses: CUDA graphs where the model allows it, else transformers, with a word on why.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch

from . import plain
from .call import AHEAD, Call, Reading, Usage
from .mapped import MappedMemory, reserve
from .pages import pages_of
from .plain import PAGE, Pools, PromptCache, Rows, StepCache
from .sampler import Completion, Sampler, Sampling, cut
from .shadow import NotCapturable, Shadow, head_width, refuse

LEFT_FREE = 2**31  # bytes of the GPU that pages never take
TOLERANCE = 0.25  # mean difference of log-probabilities above which the copy is taken to be wrong


@dataclass
class _Room:
    """The tensors whose addresses a captured graph contains."""

    sizes: tuple[int, ...] = (0, 0, 0, 0)  # slots, limit of a response, most pages of a text, pages
    pools: Any = None
    graphs: dict[Any, Any] = field(default_factory=dict)
    memory: Any = None


class GraphSampler:
    """Sample from a causal language model on a CUDA GPU. Its weights may change between calls.

    On a CPU the same steps run one by one with plain operations: for tests, not for speed. `own`: the copy of the
    weights is made new when `refresh` is called, not by each call: ranks make different numbers of calls.
    """

    def __init__(
        self, model: Any, end_tokens: Sequence[int], batch: int = 512, memory: float = 0.4,
        dtype: torch.dtype | None = None, own: bool = False,
    ) -> None:  # fmt: skip
        self.model, self.batch, self.memory, self.own = model, batch, memory, own
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
        self.page_shape = self.layers, 2, self.heads, PAGE, self.width
        self.page_bytes = math.prod(self.page_shape) * torch.finfo(dtype).bits // 8
        self.mapped: MappedMemory | None = None
        self.ends = torch.tensor(sorted(end_tokens), device=self.device, dtype=torch.int32)
        self.temperature = torch.ones((), device=self.device)
        self.limit = torch.zeros((), device=self.device, dtype=torch.int64)
        self.room, self.usage = _Room(), Usage()
        self.generator = torch.Generator(self.device)
        if self.cuda:
            self.mapped = reserve(self.device, self._share() // self.page_bytes * self.page_bytes)
            self._check()
            self.release()

    @torch.no_grad()
    def __call__(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> Iterator[Completion]:
        """`sampling.samples` completions of each prompt, in the order in which they finish."""
        if not self.own:
            self.refresh(self.model)
        pages = self._make_room(prompts, sampling)
        self.temperature.fill_(sampling.temperature)
        self.limit.fill_(sampling.limit)
        run = Call(self, prompts, sampling, pages)
        self.usage, self.pages = run.usage, run.pages
        try:
            yield from run.completions()
        finally:
            run.pages.close()

    @torch.no_grad()
    def refresh(self, model: Any) -> None:
        """Take over the weights of `model`."""
        self.shadow.refresh(model)

    @property
    def releasable(self) -> bool:
        """Whether `release` does anything: it needs the virtual memory of the CUDA driver."""
        return self.mapped is not None

    def release(self) -> None:
        """Give the memory of keys and values to others until the next call. Captured graphs stay valid."""
        if self.mapped is not None:
            self.mapped.unmap()

    # --- room

    def _make_room(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> int:
        """Make rows and pages for a call, and return how many pages it has; growing them captures the graphs again."""
        room, own = self.room, pages_of(sampling.limit)
        prompt_pages = sorted((pages_of(len(prompt) - 1) for prompt in prompts), reverse=True)
        rows = max(1, min(self.batch, len(prompts) * sampling.samples))
        whole = own + max(prompt_pages, default=0)  # pages of the longest text
        pages = self._take_pages(rows * own + sum(prompt_pages[: rows + AHEAD]), whole)
        sizes = rows, sampling.limit, whole, 0 if self.mapped else pages
        if all(size <= there for size, there in zip(sizes, room.sizes, strict=True)):
            return pages
        self.room = room = _Room(tuple(map(max, sizes, room.sizes)))
        slots, limit, columns, count = room.sizes
        self.state = torch.zeros(7, -(-slots // 16) * 16, device=self.device, dtype=torch.int64)
        self.written = torch.zeros(slots, limit, device=self.device, dtype=torch.int32)
        self.logprobs = torch.zeros(slots, limit, device=self.device)
        table = torch.zeros(slots, columns, device=self.device, dtype=torch.int32)
        if self.mapped is None:
            memory = torch.zeros(count, *self.page_shape, device=self.device, dtype=self.dtype)
        else:
            memory = self.mapped.tensor
            memory = memory[: len(memory) // self.page_bytes * self.page_bytes]
            memory = memory.view(self.dtype).view(-1, *self.page_shape)
        room.pools = Pools.of(memory, table)
        return pages

    def _share(self) -> int:
        """Return the bytes that keys and values may take."""
        return int(self.memory * torch.cuda.get_device_properties(self.device).total_memory)

    def _take_pages(self, wanted: int, needed: int) -> int:
        """Return the pages that there is memory for: `wanted` at most; the longest text must fit, which needs some."""
        if not self.cuda:
            return wanted
        size, share = self.page_bytes, self._share()
        most, taken = share, self.mapped.mapped if self.mapped else 0
        if self.mapped and taken < min(wanted * size, share):
            torch.cuda.empty_cache()  # what an update has kept for itself
            most = min(share, max(taken, taken + torch.cuda.mem_get_info(self.device)[0] - LEFT_FREE))
        pages = min(wanted, most // size)
        if pages < needed:
            advice = (
                f"set it to {needed * size / share * self.memory + 0.005:.2f} or more" if most == share else "free some"
            )
            raise NotCapturable(
                f"one response of {needed * PAGE} tokens with its prompt needs {needed * size / 2**30:.1f} GiB of keys "
                f"and values, and there are {most / 2**30:.1f} GiB (rollout.memory={self.memory:g} of this GPU is "
                f"{share / 2**30:.1f} GiB); {advice}, or lower the limit"
            )
        if self.mapped and taken < pages * size:
            self.mapped.map(pages * size)
        return pages

    def copied(self, numbers: Any) -> torch.Tensor:
        """Numbers as an int64 tensor on the device, without waiting for it."""
        new = torch.as_tensor(numbers)
        return new.pin_memory().to(self.device, non_blocking=True) if self.cuda else new

    def write_table(self, changes: dict[tuple[int, int], int]) -> None:
        """Changes: (slot, column): page."""
        table = self.room.pools.table
        new = self.copied([[slot * table.shape[1] + column for slot, column in changes], list(changes.values())])
        table.view(-1).index_copy_(0, new[0], new[1].int())

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

    def read(self, readings: list[Reading]) -> None:
        """Compute keys and values of texts, and keep them where they belong."""
        longest = max((len(one.ids) for one in readings), default=0)
        if longest < 1:
            return
        ids = torch.zeros(len(readings), longest, dtype=torch.long)
        for n, one in enumerate(readings):
            ids[n, : len(one.ids)] = torch.tensor(one.ids, dtype=torch.long)
        source = torch.cat([torch.arange(one.begin, len(one.ids)) + n * longest for n, one in enumerate(readings)])
        source, to = self.copied(torch.stack([source, torch.cat([one.to for one in readings])]))
        positions = torch.arange(longest, device=self.device)[None].expand(ids.shape)
        self.shadow.hidden(self.copied(ids), positions, PromptCache(self.room.pools, source, to, longest))

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


class CopySampler(Sampler):
    """Sample with transformers from a whole copy of a model whose weights lie in shares on several ranks."""

    def __init__(self, model: Any, end_tokens: Sequence[int], batch: int = 512, memory: float = 0.4) -> None:
        first = next(model.parameters())
        dtype = torch.bfloat16 if first.is_cuda and torch.cuda.is_bf16_supported() else first.dtype
        self.shadow = Shadow(model, dtype, fused=False, own_attention=True)
        super().__init__(self.shadow.model, end_tokens, batch, memory)

    @torch.no_grad()
    def refresh(self, model: Any) -> None:
        """Take over the weights of `model`; all ranks at the same time."""
        self.shadow.refresh(model)


def sampler_for(
    model: Any,
    end_tokens: Sequence[int],
    engine: str = "auto",
    batch: int = 512,
    memory: float = 0.4,
    note: Callable[[str], None] | None = None,
    own: bool = False,
) -> Sampler | GraphSampler:
    """Return a sampler of `model` on its device. `engine`: auto, graph (or an error), transformers.

    `own`: it has a whole copy of the weights, which `refresh` makes new.
    """
    on_gpu = next(model.parameters()).is_cuda
    plain = CopySampler if own else Sampler
    if engine == "graph" and not on_gpu:
        raise NotCapturable("rollout.engine=graph needs a CUDA GPU; use rollout.engine=auto here")
    if engine == "transformers" or not on_gpu:
        return plain(model, end_tokens, batch, memory)
    try:
        return GraphSampler(model, end_tokens, batch, memory, own=own)
    except NotCapturable as reason:
        if engine == "graph":
            raise NotCapturable(
                f"{type(model).__name__} cannot be sampled through CUDA graphs: {reason}; use rollout.engine=auto"
            ) from None
        if note is not None:
            note(f"rollouts go through transformers, which is slower: CUDA graphs cannot be used ({reason})")
        return plain(model, end_tokens, batch, memory)
