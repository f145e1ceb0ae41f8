"""Sample, and judge meanwhile: the loop that training, calibration, evaluation and difficulty share.

    loaded = load_sampler(resolve("nano"))
    responses, seconds = respond([0, 1], problems, prompts, partial(loaded.sampler, sampling=...), loaded.text, judge)

1. A completion is judged while others are still being written.
2. The same program for the same problem is judged once.
3. A verdict that comes too late is cut: what takes long is seldom right, so whoever uses the others alone is flattered.

`Collector` is the loop itself, for anything that has a program. `respond` runs it over the completions of a sampler,
`load_sampler` loads a model for that. Torch is loaded by `load_sampler` alone.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .judge.base import Judging
from .judge.extract import code_block
from .models import ModelError, ModelSource
from .prompts import messages
from .schema import ACCEPTED, Problem, Solution, Verdict

if TYPE_CHECKING:
    import torch

    from .sampling import Completion, GraphSampler, Sampler, VllmSampler

FAULT = "internal_error"  # of the judge: neither right nor wrong
Item = TypeVar("Item")


@dataclass(slots=True)
class Response:
    """A completion with its problem and its verdict; training adds reward, mask and advantage."""

    problem: Problem
    prompt: list[int]
    sample: int
    ids: list[int]
    logprobs: list[float]
    truncated: bool
    text: str
    verdict: Verdict
    repeated: bool = False
    masked: bool = False
    discarded: bool = False
    reward: float | None = None
    advantage: float = 0.0
    cut: bool = False  # its verdict was not waited for

    @property
    def accepted(self) -> bool:
        return self.verdict.verdict == ACCEPTED

    @property
    def faulty(self) -> bool:
        return self.verdict.verdict == FAULT


@dataclass
class Collector(Generic[Item]):
    """Have programs judged while they come in, and hand each one back with its verdict, the soonest first.

    judge         what judges
    straggler_s   seconds to wait for verdicts once the last program has come in; 0: wait for all
    seconds       how long the last call took: generation_s, judging_s (the wait after it), judging_floor_s
    """

    judge: Judging
    straggler_s: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    judged: int = 0  # programs that were run
    cpu_s: float = 0.0  # that they took

    def __call__(
        self,
        items: Iterable[Item],
        key: Callable[[Item], Hashable],
        program: Callable[[Item], tuple[Problem, str | Solution]],
    ) -> Iterator[tuple[Item, Verdict | None]]:
        """Yield (item, verdict), without the verdict's tests; None for a verdict that came too late.

        key       equal for items that are the same program for the same problem; such a program is judged once
        program   what to hand to the judge, asked for once for each key
        """
        started = time.perf_counter()
        found: dict[Hashable, Verdict] = {}
        waiting: dict[Hashable, list[Item]] = {}
        asked: dict[Future[Verdict], tuple[Hashable, float]] = {}  # whose, and when
        done: queue.SimpleQueue[Future[Verdict]] = queue.SimpleQueue()
        last = 0.0  # no program can have ended before: it takes its CPU time after it was handed in

        def settle(future: Future[Verdict]) -> Iterator[tuple[Item, Verdict]]:
            nonlocal last
            name, when = asked.pop(future)
            found[name] = verdict = replace(future.result(), tests=[])
            last = max(last, when + verdict.cpu_s)
            self.judged, self.cpu_s = self.judged + 1, self.cpu_s + verdict.cpu_s
            for item in waiting.pop(name):
                yield item, verdict

        for item in items:
            name = key(item)
            if name in found:
                yield item, found[name]
            elif name in waiting:
                waiting[name].append(item)
            else:
                waiting[name] = [item]
                now = time.perf_counter()
                future = self.judge.submit(*program(item))
                asked[future] = name, now
                future.add_done_callback(done.put)
            while not done.empty():
                yield from settle(done.get())
        generated = time.perf_counter()
        while asked:
            left = generated + self.straggler_s - time.perf_counter()
            try:
                future = done.get(timeout=max(0.0, left) if self.straggler_s else None)
            except queue.Empty:
                break
            yield from settle(future)
        waited = time.perf_counter() - generated
        floor = waited if asked else min(waited, max(0.0, last - generated))
        self.seconds = {"generation_s": generated - started, "judging_s": waited, "judging_floor_s": floor}
        for future, (name, _) in asked.items():
            self.judge.drop(future)
            for item in waiting[name]:
                yield item, None


def respond(
    numbers: Sequence[int],
    problems: Sequence[Problem],
    prompts: Sequence[list[int]],
    sample: Callable[[list[list[int]]], Iterable[Completion]],
    decode: Callable[[list[int]], str],
    judge: Judging,
    straggler_s: float = 0.0,
) -> tuple[list[Response], dict[str, float]]:
    """Sample the problems `numbers`; return all responses, in order, judged, and the seconds it took.

    problems, prompts   of which `numbers` are the places
    sample              prompts -> completions, each as soon as it is finished
    """
    collector: Collector[tuple[Completion, str]] = Collector(judge, straggler_s)
    written = ((completion, decode(completion.ids)) for completion in sample([prompts[n] for n in numbers]))
    message = f"not judged: cut {straggler_s:g} s after the end of generation (rollout.straggler_s)"
    responses = [
        (
            completion.prompt,
            Response(
                problem=problems[numbers[completion.prompt]],
                prompt=prompts[numbers[completion.prompt]],
                sample=completion.sample,
                ids=completion.ids,
                logprobs=completion.logprobs,
                truncated=completion.truncated,
                text=text,
                verdict=verdict or Verdict(FAULT, message=message),
                cut=verdict is None,
            ),
        )
        for (completion, text), verdict in collector(
            written,
            key=lambda item: (numbers[item[0].prompt], code_block(item[1])),
            program=lambda item: (problems[numbers[item[0].prompt]], item[1]),
        )
    ]
    responses.sort(key=lambda item: (item[0], item[1].sample))
    return [response for _, response in responses], collector.seconds


@dataclass(frozen=True)
class LoadedSampler:
    """A model that is loaded, placed and ready to be sampled from."""

    source: ModelSource
    tokenizer: Any
    sampler: Sampler | GraphSampler | VllmSampler
    context: int  # tokens that a prompt and its response may have together; 0: the model does not say
    engine: str  # what samples: graph, transformers or vllm

    def text(self, ids: list[int]) -> str:
        """Decode a completion."""
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

    def prompt(self, problem: Problem, style: str = "microcoder") -> list[int]:
        """Encode a problem as the model wants to read it."""
        from .sampling import encode

        return encode(self.tokenizer, messages(problem, style))


def load_sampler(
    source: ModelSource,
    engine: str = "auto",
    batch: int = 512,
    memory: float | None = None,
    dtype: torch.dtype | None = None,
    note: Callable[[str], None] | None = None,
    **options: Any,
) -> LoadedSampler:
    """Load a model, place it on the GPU where there is one, and make a sampler of it.

    engine    auto, graph, transformers or vllm
    batch     responses at once
    memory    the share of a GPU's memory for keys and values; None: the sampler's own default
    dtype     of the weights; None: bfloat16 on a GPU, else float32
    note      is told why CUDA graphs cannot be used, where they cannot
    options   for transformers' from_pretrained

    Raise ModelError or another ValueError, or NotCapturable, where the model cannot be sampled from like that.
    """
    import torch

    from .models.weights import end_tokens, load, load_tokenizer
    from .sampling import GraphSampler, VllmSampler, sampler_for

    if engine == "vllm" and source.adapter:
        raise ModelError(f"{source.name} is an adapter, which vLLM is not given here; use rollout.engine=auto")
    tokenizer = load_tokenizer(source)
    share = {} if memory is None else {"memory": memory}
    if engine == "vllm":
        vllm = VllmSampler(source.path, [tokenizer.eos_token_id], **share)
        return LoadedSampler(source, tokenizer, vllm, vllm.context, "vllm")
    on_gpu = torch.cuda.is_available()
    dtype = dtype or (torch.bfloat16 if on_gpu else torch.float32)
    model = load(source, dtype, **options).eval().to("cuda" if on_gpu else "cpu")
    sampler = sampler_for(model, end_tokens(model, tokenizer), engine, batch, note=note, **share)
    context = int(getattr(model.config, "max_position_embeddings", 0) or 0)
    used = "graph" if isinstance(sampler, GraphSampler) else "transformers"
    return LoadedSampler(source, tokenizer, sampler, context, used)
