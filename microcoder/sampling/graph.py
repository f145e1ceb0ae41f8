"""Sampling through CUDA graphs: the whole decode step is one launch, and the batch stays full.

1. A slot holds one response. When one is finished a waiting one takes its slot, so short responses do not wait for long
   ones; when none waits any more, the rows that are left move together and a smaller graph goes on.
2. A prompt is read once. Its keys and values are stored once, for all of its samples.
3. The first step of every response reads the prompt's last token, so the first token is drawn like any other.
4. Steps are launched in chunks; while one runs, what the chunk before finished is handed out. The host never waits for
   the newest step (`slots.py`).
5. Weights: a bfloat16 shadow of the model, refreshed at the beginning of every call (`shadow.py`).
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch

from . import plain, slots
from .plain import Pools, Rows
from .sampling import Completion, Sampling, cut
from .shadow import NotCapturable, Shadow, head_width, refuse

TOLERANCE = 0.25  # mean difference of log-probabilities above which the copy is taken to be wrong


@dataclass
class _Room:
    """Everything whose addresses a captured graph has in it."""

    slots: int = 0
    limit: int = 0
    prompts: int = 0
    longest: int = 0
    pools: Any = None
    graphs: dict[Any, Any] = field(default_factory=dict)
    memory: Any = None


class GraphSampler:
    """Samples from a causal language model on a CUDA GPU. Its weights may change between calls.

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
        self.room, self.usage = _Room(), slots.Usage()
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
        run = slots.Run(self, prompts, sampling)
        self.usage = run.usage
        yield from run.completions()

    # --- room

    def _make_room(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> None:
        """Pools that are large enough; growing them makes the graphs anew."""
        room, count = self.room, len(prompts)
        longest = -(-max(max(map(len, prompts), default=1), 2) // 64) * 64
        limit = max(room.limit, sampling.limit)
        longest = max(room.longest, longest)
        rows = self._slots(max(room.slots, count * sampling.samples), limit + longest)
        shared = min(max(room.prompts, count), rows + slots.AHEAD)
        if (rows, limit, shared, longest) == (room.slots, room.limit, room.prompts, room.longest):
            return
        self.room = room = _Room(rows, limit, shared, longest)
        self.state = torch.zeros(8, -(-rows // 16) * 16, device=self.device, dtype=torch.int64)
        self.written = torch.zeros(rows, limit, device=self.device, dtype=torch.int32)
        self.logprobs = torch.zeros(rows, limit, device=self.device)
        options = {"device": self.device, "dtype": self.dtype}
        room.pools = Pools.make(self.layers, self.heads, self.width, (shared, longest), (rows, limit), **options)

    def _slots(self, wanted: int, tokens: int) -> int:
        """As many as are asked for and the memory has room for, at so many tokens each."""
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
        cache = _Cache(self.ops, self.room.pools, rows)
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
        """Keys and values of prompts, all but the last token of each, into the shared pool."""
        longest = max(map(len, prompts)) - 1
        if longest < 1:
            return
        ids = torch.zeros(len(prompts), longest, dtype=torch.long)
        for n, prompt in enumerate(prompts):
            ids[n, : len(prompt) - 1] = torch.tensor(prompt[:-1], dtype=torch.long)
        positions = torch.arange(longest, device=self.device)[None].expand(len(prompts), longest)
        where = torch.tensor(places).to(self.device, non_blocking=True)
        self.shadow.hidden(ids.to(self.device, non_blocking=True), positions, _Reading(self.room.pools, where))

    # --- is it right?

    def _check(self) -> None:
        """A few tokens of its own, whose log-probabilities the model itself must confirm."""
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


class _Cache:
    """What a decode step gives transformers as its cache: it takes what is new, and attends itself."""

    angles: tuple[torch.Tensor, torch.Tensor] | None = None

    def __init__(self, ops: Any, pools: Pools, rows: Rows) -> None:
        self.ops, self.pools, self.rows = ops, pools, rows

    def rotate(self, q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, *_: Any) -> Any:
        """Left to `attend`."""
        self.angles = cos.expand(len(q), -1, -1), sin.expand(len(q), -1, -1)
        return q, k

    def update(self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any) -> tuple[Any, None]:
        self.newest = keys, values, layer
        return self, None

    def attend(self, query: torch.Tensor, scale: float) -> Any:
        keys, values, layer = self.newest
        return self.ops.attend(query, keys, values, self.angles, self.pools, layer, self.rows, scale)


class _Reading:
    """While prompts are read, attention is the ordinary one, and the keys are kept."""

    def __init__(self, pools: Pools, places: torch.Tensor) -> None:
        self.pools, self.places = pools, places

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        count = keys.shape[2]
        self.pools.shared_keys[layer][self.places, :, :count] = keys
        self.pools.shared_values[layer][self.places, :, :count] = values
        return keys, values


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
