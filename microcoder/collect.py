"""Sample completions and judge them meanwhile: the loop of training, calibration, evaluation and difficulty.

    loaded = load_sampler(resolve("nano"))
    sample = partial(loaded.sampler, sampling=...)
    responses, seconds = Responding([0, 1], problems, prompts, sample, loaded.text, judge).all()

1. A completion is judged while others are still being generated.
2. The same program for the same problem is judged once.
3. A verdict that comes too late is cut. Slow programs are seldom right, so scores over the other verdicts are too high.

`Collector` is the loop, for any items that have a program. `Responding` runs it over the completions of a sampler; its
caller may wait for all verdicts, or work while the last programs are being judged. `load_sampler` loads a model as a
sampler; nothing else here loads torch.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
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
PENDING = Verdict("")  # not judged yet
Item = TypeVar("Item")


@dataclass(slots=True)
class Try:
    """A try that failed and was followed by another."""

    ids: list[int]
    logprobs: list[float]
    truncated: bool
    text: str
    verdict: Verdict
    message: str  # what the model was told of it
    told: list[int]  # the tokens from its end to the beginning of the next try
    trained: bool  # whether its tokens are trained on


@dataclass(slots=True)
class Response:
    """A completion with its problem and its verdict; training adds reward, mask and advantage.

    With several turns these are of its last try, and the tries before it are `earlier`. The model has then written
    prompt, try, message, try, ... as one text: `tokens` is what follows the prompt.
    """

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
    earlier: list[Try] = field(default_factory=list)

    @property
    def tokens(self) -> list[int]:
        """All that follows the prompt: every try, and what the model was told in between."""
        return [*(n for one in self.earlier for n in (*one.ids, *one.told)), *self.ids] if self.earlier else self.ids

    @property
    def sampled(self) -> list[float]:
        """The sampler's log-probabilities of `tokens`; 0 for what it did not write."""
        before = [value for one in self.earlier for value in (*one.logprobs, *[0.0] * len(one.told))]
        return [*before, *self.logprobs]

    @property
    def trained(self) -> list[bool]:
        """Which of `tokens` are trained on."""
        before = [flag for one in self.earlier for flag in [one.trained] * len(one.ids) + [False] * len(one.told)]
        return [*before, *[True] * len(self.ids)]

    @property
    def first(self) -> Response | Try:
        """The first try."""
        return self.earlier[0] if self.earlier else self

    @property
    def tries(self) -> list[Response | Try]:
        return [*self.earlier, self]

    @property
    def accepted(self) -> bool:
        return self.verdict.verdict == ACCEPTED

    @property
    def faulty(self) -> bool:
        return self.verdict.verdict == FAULT

    @property
    def pending(self) -> bool:
        return self.verdict is PENDING


@dataclass(frozen=True)
class Repair:
    """How a failed try is followed by another."""

    turns: int  # tries at most
    tell: Callable[[Problem, Verdict], str]  # what the model is told
    encode: Callable[[list[int], str], list[int]]  # (a try, that) -> the tokens from its end to the next try
    sample: Callable[[list[list[int]], int], Iterable[Completion]]  # (texts so far, turn) -> one completion of each
    trained: bool = True  # whether the tries before the last are trained on


@dataclass
class Collector(Generic[Item]):
    """Judge programs as they arrive.

    collector(items, key, program) yields each item with its verdict as soon as that is ready. Or in single steps, to do
    something else while the last programs are being judged: `put` every item, `close`, and `settle` until nothing is
    left.

    judge         the judge to submit programs to
    straggler_s   seconds to wait for verdicts once the last program has come in; 0: wait for all
    seconds       generation_s, judging_s (what was waited after it), judging_floor_s
    """

    judge: Judging
    straggler_s: float = 0.0
    judged: int = 0  # programs that were run
    cpu_s: float = 0.0  # CPU seconds of those programs

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget the items of another call; what was counted stays."""
        self._before: dict[str, float] = {}
        self._started, self._generated, self._waited = time.perf_counter(), 0.0, 0.0
        self._found: dict[Hashable, Verdict] = {}
        self._waiting: dict[Hashable, list[Item]] = {}
        self._asked: dict[Future[Verdict], tuple[Hashable, float]] = {}  # future -> (key, time of submission)
        self._done: queue.SimpleQueue[Future[Verdict]] = queue.SimpleQueue()
        self._last = 0.0  # earliest possible end of judging: each program needs its CPU time after its submission
        self._cut = False

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
        self.begin()
        for item in items:
            yield from self.put(item, key(item), program)
            yield from self.settle()
        self.close()
        while self.left:
            yield from self.settle(wait=True)

    @property
    def left(self) -> bool:
        """Whether there are programs without a verdict."""
        return bool(self._asked)

    @property
    def seconds(self) -> dict[str, float]:
        waited = self._waited
        floor = waited if self._cut else min(waited, max(0.0, self._last - self._generated))
        found = {"generation_s": self._generated - self._started, "judging_s": waited, "judging_floor_s": floor}
        return {name: self._before.get(name, 0.0) + value for name, value in found.items()}

    def put(
        self, item: Item, name: Hashable, program: Callable[[Item], tuple[Problem, str | Solution]]
    ) -> Iterator[tuple[Item, Verdict]]:
        """Submit an item's program, unless it is known; then yield it with its verdict."""
        if name in self._found:
            yield item, self._found[name]
        elif name in self._waiting:
            self._waiting[name].append(item)
        else:
            self._waiting[name] = [item]
            now = time.perf_counter()
            future = self.judge.submit(*program(item))
            self._asked[future] = name, now
            future.add_done_callback(self._done.put)

    def close(self) -> None:
        """No more items will come."""
        self._generated = time.perf_counter()

    def reopen(self) -> None:
        """Accept more items after all have been judged. Known verdicts are kept, and times are added up."""
        self._before = self.seconds
        self._started, self._generated, self._waited = time.perf_counter(), 0.0, 0.0
        self._last, self._cut = 0.0, False
        self._done = queue.SimpleQueue()  # what was cut may still report to the old one

    def settle(self, wait: bool = False) -> Iterator[tuple[Item, Verdict | None]]:
        """Yield what has been judged since, or is cut; `wait` for the next verdict if there is none."""
        late = self._generated and self.straggler_s
        while self.left and (wait or not self._done.empty()):
            left = self._generated + self.straggler_s - time.perf_counter() if late else None
            started = time.perf_counter()
            try:
                future = self._done.get(timeout=None if left is None else max(0.0, left))
            except queue.Empty:
                break
            finally:
                self._waited += (time.perf_counter() - started) if self._generated else 0.0
            wait = False
            name, when = self._asked.pop(future)
            self._found[name] = verdict = replace(future.result(), tests=[])
            self._last = max(self._last, when + verdict.cpu_s)
            self.judged, self.cpu_s = self.judged + 1, self.cpu_s + verdict.cpu_s
            for item in self._waiting.pop(name):
                yield item, verdict
        if late and time.perf_counter() >= self._generated + self.straggler_s:
            yield from self._cut_off()

    def _cut_off(self) -> Iterator[tuple[Item, None]]:
        self._cut = self._cut or self.left
        asked, self._asked = self._asked, {}
        for future, (name, _) in asked.items():
            self.judge.drop(future)
            for item in self._waiting.pop(name):
                yield item, None


class Responding:
    """Responses to the problems `numbers`: sampled at once, judged meanwhile and, as far as that takes longer, later.

    problems, prompts   lists that `numbers` are indices of
    sample              prompts -> completions, each as soon as it is finished
    repair              how failed tries are followed by others; None: they are not
    responses           in order, once sampled; without a verdict while `settle` has not returned them

    The next tries begin when all have been judged: who is asked, and so what is drawn for whom, must not depend on
    which verdict came first. The last tries may still be without a verdict, like all where there is one turn.
    """

    def __init__(
        self,
        numbers: Sequence[int],
        problems: Sequence[Problem],
        prompts: Sequence[list[int]],
        sample: Callable[[list[list[int]]], Iterable[Completion]],
        decode: Callable[[list[int]], str],
        judge: Judging,
        straggler_s: float = 0.0,
        repair: Repair | None = None,
    ) -> None:
        self.decode = decode
        self.collector: Collector[Response] = Collector(judge, straggler_s)
        self.message = f"not judged: cut {straggler_s:g} s after the end of generation (rollout.straggler_s)"
        found = []
        for completion in sample([prompts[n] for n in numbers]):
            number = numbers[completion.prompt]
            response = Response(
                problem=problems[number],
                prompt=prompts[number],
                sample=completion.sample,
                ids=completion.ids,
                logprobs=completion.logprobs,
                truncated=completion.truncated,
                text=written(decode, prompts[number], completion.ids),
                verdict=PENDING,
            )
            found.append((completion.prompt, response))
            self._put(response, number)
        self.collector.close()
        found.sort(key=lambda item: (item[0], item[1].sample))
        self.responses = [response for _, response in found]
        if repair is not None:
            where = {id(response): numbers[at] for at, response in found}
            for turn in range(2, repair.turns + 1):
                self._again(repair, turn, where)

    def _put(self, response: Response, number: int) -> None:
        """Have a response judged, and set the verdicts that have come in."""
        put = self.collector.put(response, (number, code_block(response.text)), _program)
        self._judged([*put, *self.collector.settle()])

    def _again(self, repair: Repair, turn: int, numbers: Mapping[int, int]) -> None:
        """Another try for each response that has failed. A fault of the judge, or a verdict too late, ends one."""
        self.all()
        failed = [one for one in self.responses if not one.accepted and not one.faulty]
        for one in failed:
            message = repair.tell(one.problem, one.verdict)
            told = repair.encode(one.ids, message)
            last = Try(one.ids, one.logprobs, one.truncated, one.text, one.verdict, message, told, repair.trained)
            one.earlier.append(last)
            one.ids, one.verdict = [], PENDING
        self.collector.reopen()
        prompts = [[*one.prompt, *one.tokens] for one in failed]
        for completion in repair.sample(prompts, turn):  # also of none: devices may gather their weights for it
            one = failed[completion.prompt]
            one.ids, one.logprobs, one.truncated = completion.ids, completion.logprobs, completion.truncated
            one.text = written(self.decode, prompts[completion.prompt], one.ids)
            self._put(one, numbers[id(one)])
        self.collector.close()

    @property
    def left(self) -> bool:
        """Whether there are responses without a verdict."""
        return self.collector.left

    @property
    def seconds(self) -> dict[str, float]:
        return self.collector.seconds

    def settle(self, wait: bool = False) -> None:
        """Set the verdicts that have come in, or come too late; `wait` for the next if there is none."""
        self._judged(self.collector.settle(wait))

    def all(self) -> tuple[list[Response], dict[str, float]]:
        """Wait for all verdicts; return the responses, and the times."""
        while self.left:
            self.settle(wait=True)
        return self.responses, self.seconds

    def _judged(self, found: Iterable[tuple[Response, Verdict | None]]) -> None:
        for response, verdict in found:
            response.verdict, response.cut = verdict or Verdict(FAULT, message=self.message), verdict is None


def written(decode: Callable[[list[int]], str], prompt: Sequence[int], ids: list[int]) -> str:
    """Decode a completion. If its prompt ends with <think>, the text begins with it: the template opened a thought."""
    opened = decode(list(prompt[-16:])).rstrip().endswith("<think>")
    return ("<think>" if opened else "") + decode(ids)


def _program(response: Response) -> tuple[Problem, str]:
    return response.problem, response.text


@dataclass(frozen=True)
class LoadedSampler:
    """A model that is loaded on its device and ready for sampling."""

    source: ModelSource
    tokenizer: Any
    sampler: Sampler | GraphSampler | VllmSampler
    context: int  # most tokens of a prompt and its response together; 0: unknown
    engine: str  # the sampler: graph, transformers or vllm
    chat: Mapping[str, Any] = field(default_factory=dict)  # arguments of the chat template

    def text(self, ids: list[int]) -> str:
        """Decode a completion."""
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

    def prompt(self, problem: Problem, style: str = "code") -> list[int]:
        """Return the prompt of a problem as tokens, in the model's chat format."""
        from .sampling import encode

        return encode(self.tokenizer, messages(problem, style), self.chat)


def load_sampler(
    source: ModelSource,
    engine: str = "auto",
    batch: int = 512,
    memory: float | None = None,
    dtype: torch.dtype | None = None,
    note: Callable[[str], None] | None = None,
    chat: Mapping[str, Any] | None = None,
    **options: Any,
) -> LoadedSampler:
    """Load a model onto the GPU, or the CPU if there is none, and return a sampler for it.

    engine    auto, graph, transformers or vllm
    batch     responses at once
    memory    the share of a GPU's memory for keys and values; None: the sampler's own default
    dtype     of the weights; None: bfloat16 on a GPU, else float32
    note      is called with the reason if CUDA graphs cannot be used
    chat      arguments of the chat template for the prompts
    options   further options of transformers' from_pretrained

    Raise ModelError or another ValueError, or NotCapturable, if the model cannot be sampled like that.
    """
    import torch

    from .models.weights import end_tokens, load, load_tokenizer
    from .sampling import GraphSampler, VllmSampler, sampler_for

    if engine == "sglang":
        raise ModelError("rollout.engine=sglang is for training with run.engine=verl; use rollout.engine=vllm, or auto")
    if engine == "vllm" and source.adapter:
        raise ModelError(f"{source.name} is an adapter, which is not supported with vLLM; use rollout.engine=auto")
    tokenizer = load_tokenizer(source, chat)
    share: dict[str, Any] = {} if memory is None else {"memory": memory}
    if engine == "vllm":
        vllm = VllmSampler(source.path, [tokenizer.eos_token_id], **share)
        return LoadedSampler(source, tokenizer, vllm, vllm.context, "vllm", chat or {})
    on_gpu = torch.cuda.is_available()
    dtype = dtype or (torch.bfloat16 if on_gpu else torch.float32)
    model = load(source, dtype, **options).eval().to("cuda" if on_gpu else "cpu")
    sampler = sampler_for(model, end_tokens(model, tokenizer), engine, batch, note=note, **share)
    context = int(getattr(model.config, "max_position_embeddings", 0) or 0)
    used = "graph" if isinstance(sampler, GraphSampler) else "transformers"
    return LoadedSampler(source, tokenizer, sampler, context, used, chat or {})
