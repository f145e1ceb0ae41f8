"""Sample a model behind an OpenAI-compatible address: vLLM, SGLang, llama.cpp, a provider.

1. Each request has its own seed, made of the evaluation's seed, the problem and the number of the try. A resumed
   evaluation therefore sends the same requests as one that was never stopped. Some servers ignore the seed.
2. Several limits need only one generation if the server shows its tokens (logprobs): the text under a smaller limit is
   a prefix. A second request with the smaller limit would give a different answer.
3. No sample is dropped or made up. If the server refuses a request, the evaluation ends after the requests under way.

The server chooses all settings that the protocol does not have. vLLM takes top_k and the like from the model's
generation_config.json, unless it is started with --generation-config vllm.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from queue import SimpleQueue
from typing import Any

from ..data.endpoint import Endpoint, NoAnswer, Reply
from ..data.record import DataError
from ..prompts import messages
from ..schema import Problem
from .suite import EvaluationError, Sample

Work = tuple[int, int]  # (number of the problem, number of the try)


class ChatModel:
    """A model behind a server. `concurrency`: requests at a time, at most as many as the endpoint allows."""

    def __init__(self, endpoint: Endpoint, concurrency: int) -> None:
        self.endpoint, self.concurrency = endpoint, concurrency

    def samples(
        self, work: Sequence[Work], problems: Sequence[Problem], style: str, *,
        temperature: float, limits: Sequence[int], top_p: float = 1.0, seed: int | None = 0,
        chat: Mapping[str, Any] | None = None,
    ) -> Iterator[Sample]:  # fmt: skip
        """Yield each sample as it is finished. `seed=None` sends no seed, for servers that do not accept one.

        chat   arguments of the chat template, sent as chat_template_kwargs, which vLLM, SGLang and llama.cpp know
        """
        several = len(limits) > 1
        way_out = "a lower --limit, or a server with a longer context, may help"
        if several:
            way_out += "; where it knows no logprobs, which several limits need, run once for each limit"

        def sample(one: Work) -> Sample:
            problem, number = problems[one[0]], one[1]
            own = None if seed is None else request_seed(seed, problem.id, number)
            try:
                reply = self.endpoint.complete(
                    messages(problem, style), temperature=temperature, max_tokens=max(limits), top_p=top_p, seed=own,
                    logprobs=several, chat=chat,
                )  # fmt: skip
            except NoAnswer as error:
                raise EvaluationError(f"problem {problem.id!r} has no answer to score: {error}; {way_out}") from None
            except DataError as error:
                raise EvaluationError(str(error)) from None
            tokens, cuts = self._cuts(reply, limits) if several else (reply.tokens, {})
            return Sample(problem.id, number, reply.text, tokens, reply.truncated, cuts)

        return _as_they_come(sample, work, self.concurrency)

    def _cuts(self, reply: Reply, limits: Sequence[int]) -> tuple[int, dict[str, int]]:
        """Return the number of tokens, and {limit: characters that fit in it} for each smaller limit."""
        pieces = reply.pieces or ()
        tokens = len(pieces) if reply.tokens is None else reply.tokens
        found = {str(limit): fitting(reply.text, pieces, limit) for limit in limits if limit < tokens}
        cuts = {limit: characters for limit, characters in found.items() if characters is not None}
        # some servers count the end token and do not show it; more missing tokens are hidden reasoning
        if reply.pieces is None or len(cuts) < len(found) or tokens - len(pieces) > 1:
            raise EvaluationError(
                f"{self.endpoint} does not show the tokens of its answer (logprobs), so it cannot be cut at several "
                f"limits; run once for each: --limit {min(limits)}, then the others"
            )
        return tokens, cuts


def _as_they_come(make: Callable[[Work], Sample], work: Sequence[Work], concurrency: int) -> Iterator[Sample]:
    """Yield samples as they are finished. After a failure start no new request, but finish those under way.

    Ctrl-C waits for no server: what has come is yielded, and the threads, which are daemons, end with the process.
    """
    todo, taking, over = iter(work), threading.Lock(), threading.Event()
    room = threading.Semaphore(concurrency)  # for samples that nobody has taken yet, and requests under way
    come: SimpleQueue[Sample | BaseException | None] = SimpleQueue()  # None: a thread has ended

    def ask() -> None:
        while True:
            room.acquire()
            with taking:
                one = None if over.is_set() else next(todo, None)
            if one is None:
                break
            try:
                come.put(make(one))
            except BaseException as error:
                over.set()
                come.put(error)
        come.put(None)

    threads = min(concurrency, len(work))
    for _ in range(threads):
        threading.Thread(target=ask, name="request", daemon=True).start()
    failure: BaseException | None = None
    try:
        while threads:
            try:
                found = come.get()
            except KeyboardInterrupt as error:
                over.set()
                failure, threads = error, 0
                while not come.empty():
                    if isinstance(last := come.get(), Sample):
                        yield last
                break
            room.release()
            if isinstance(found, Sample):
                yield found
            elif found is None:
                threads -= 1
            else:
                failure = failure or found
    finally:
        over.set()
        room.release(concurrency)
    if failure is not None:
        raise failure


def request_seed(seed: int, problem_id: str, number: int) -> int:
    """Return the seed of a request: below 2**31, and the same on every machine."""
    digest = hashlib.sha256(f"{seed} {number} {problem_id}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def fitting(text: str, pieces: Sequence[bytes], limit: int) -> int | None:
    """Count the characters of the text in the first `limit` tokens; None if the tokens are not those of the text.

    The tokens may hold more than the text: reasoning before it, an end token after it. If several tokens share one
    character, servers may show a replacement character for each part. Then only the ASCII characters are compared,
    and the cut is after the last of them that fits.
    """
    written, whole = _decoded(pieces[:limit]), _decoded(pieces)
    found = _overlap(text, written, whole)
    if found is not None:
        return found
    plain = [n for n, character in enumerate(text) if character.isascii()]
    found = _overlap("".join(text[n] for n in plain), _ascii(written), _ascii(whole))
    return found if not found else plain[found - 1] + 1


def _overlap(text: str, written: str, whole: str) -> int | None:
    start = 0 if whole.startswith(text) else whole.rfind(text)
    return None if start < 0 else max(0, min(len(written) - start, len(text)))


def _decoded(pieces: Sequence[bytes]) -> str:
    return b"".join(pieces).decode("utf-8", "ignore")


def _ascii(text: str) -> str:
    return "".join(filter(str.isascii, text))
