"""Sample completions and judge them meanwhile: the loop of training, calibration, evaluation and difficulty.

    loaded = load_sampler(resolve("nano"))
    responses, seconds = respond([0, 1], problems, prompts, partial(loaded.sampler, sampling=...), loaded.text, judge)

1. A completion is judged while others are still being generated.
2. The same program for the same problem is judged once.
3. A verdict that comes too late is cut. Slow programs are seldom right, so scores over the other verdicts are too high.

`Collector` is the loop, for any items that have a program. `respond` runs it over the completions of a sampler.
`load_sampler` loads a model as a sampler; nothing else here loads torch.
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

FAULT = "internal_error"  # a fault of the judge: neither right nor wrong
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
    cut: bool = False  # its verdict came too late

    @property
    def accepted(self) -> bool:
        return self.verdict.verdict == ACCEPTED

    @property
    def faulty(self) -> bool:
        return self.verdict.verdict == FAULT


@dataclass
class Collector(Generic[Item]):
    """Judge programs as they arrive, and yield each one with its verdict as soon as that is ready.

    judge         the judge to submit programs to
    straggler_s   seconds to wait for verdicts once the last program has come in; 0: wait for all
    seconds       times of the last call: generation_s, judging_s (the wait after it), judging_floor_s
    """

    judge: Judging
    straggler_s: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    judged: int = 0  # programs that were run
    cpu_s: float = 0.0  # CPU seconds of those programs

    def __call__(
        self,
        items: Iterable[Item],
        key: Callable[[Item], Hashable],
        program: Callable[[Item], tuple[Problem, str | Solution]],
    ) -> Iterator[tuple[Item, Verdict | None]]:
        """Yield (item, verdict), without the verdict's tests; None for a verdict that came too late.

        key       equal for items that are the same program for the same problem; such a program is judged once
        program   returns the program of an item; called once for each key
        """
        started = time.perf_counter()
        found: dict[Hashable, Verdict] = {}
        waiting: dict[Hashable, list[Item]] = {}
        asked: dict[Future[Verdict], tuple[Hashable, float]] = {}  # future -> (key, time of submission)
        done: queue.SimpleQueue[Future[Verdict]] = queue.SimpleQueue()
        last = 0.0  # earliest possible end of judging: each program needs its CPU time after its submission

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
    """Sample and judge completions for the problems `numbers`; return all responses in order, and the times.

    problems, prompts   lists that `numbers` are indices of
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
    """A model that is loaded on its device and ready for sampling."""

    source: ModelSource
    tokenizer: Any
    sampler: Sampler | GraphSampler | VllmSampler
    context: int  # most tokens of a prompt and its response together; 0: unknown
    engine: str  # the sampler: graph, transformers or vllm

    def text(self, ids: list[int]) -> str:
        """Decode a completion."""
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

    def prompt(self, problem: Problem, style: str = "microcoder") -> list[int]:
        """Return the prompt of a problem as tokens, in the model's chat format."""
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
    """Load a model onto the GPU, or the CPU if there is none, and return a sampler for it.

    engine    auto, graph, transformers or vllm
    batch     responses at once
    memory    the share of a GPU's memory for keys and values; None: the sampler's own default
    dtype     of the weights; None: bfloat16 on a GPU, else float32
    note      is called with the reason if CUDA graphs cannot be used
    options   further options of transformers' from_pretrained

    Raise ModelError or another ValueError, or NotCapturable, if the model cannot be sampled like that.
    """
    import torch

    from .models.weights import end_tokens, load, load_tokenizer
    from .sampling import GraphSampler, VllmSampler, sampler_for

    if engine == "vllm" and source.adapter:
        raise ModelError(f"{source.name} is an adapter, which is not supported with vLLM; use rollout.engine=auto")
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
