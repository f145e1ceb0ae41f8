"""A client for a language model behind any OpenAI-compatible address.

    endpoint = Endpoint("http://localhost:8000/v1", "qwen3-8b", key_env="", cache=Path("cache"))
    answer = endpoint.ask([{"role": "user", "content": "..."}])
    reply = endpoint.complete([{"role": "user", "content": "..."}], temperature=0.2, max_tokens=1024)

`ask` returns one whole answer and caches it. `complete` returns whatever the model writes, even a truncated or empty
reply, and caches nothing.

Each answer is cached in its own file, named by a digest of the whole question and written under a temporary name first.
So a killed run loses no answer, and processes may share the folder. `key` separates equal questions that need separate
answers, such as the second of three opinions.

Temporary faults are retried with growing pauses: no connection, a timeout, 408, 409, 429 (after the time that the
server asks for), 5xx, and an answer outside the protocol. EndpointError means that the endpoint cannot be used.
NoAnswer means that it does not answer one question, which a caller can treat as a fact about one problem.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from ..models import cache
from .record import DataError, package
from .settings import EndpointConfig

Message = dict[str, str]


class EndpointError(DataError):
    """The endpoint cannot be used; the message says what to change."""


class NoAnswer(EndpointError):
    """The endpoint works, but gives no whole answer to this question."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply, without its reasoning if the server separates the two."""

    text: str
    tokens: int | None  # reasoning included; None: the server does not count them
    truncated: bool  # stopped by max_tokens
    reason: str = ""  # why it ended, in the server's words: stop, length, content_filter, or a refusal
    pieces: tuple[bytes, ...] | None = None  # the text of each token; None: not asked for, or not given


class Asks(Protocol):
    """Protocol of an `Endpoint`, or of anything else that answers. `key` separates equal questions in a cache."""

    def ask(self, messages: list[Message], *, key: str = "", temperature: float = 0.0) -> str: ...


class Endpoint:
    """A model at an address. Threads may share it, and it can be sent to other processes.

    key_env        the environment variable that holds the key; "" if none is needed
    cache          a folder for answers; None: no cache
    timeout_s      time limit of one attempt
    max_retries    number of further attempts
    concurrency    most questions of this process at a time
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        key_env: str = "OPENAI_API_KEY",
        cache: Path | None = None,
        timeout_s: float = 120.0,
        max_retries: int = 5,
        concurrency: int = 8,
    ) -> None:
        self.base_url, self.model, self.key_env = base_url, model, key_env
        self.cache = None if cache is None else Path(cache)
        self.timeout_s, self.max_retries, self.concurrency = timeout_s, max_retries, concurrency
        self._start()

    def _start(self) -> None:
        self._room = threading.BoundedSemaphore(self.concurrency)
        self._lock = threading.Lock()
        self._made: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without locks, connections and the key, which a process reads from its environment."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def ask(self, messages: list[Message], *, key: str = "", temperature: float = 0.0, max_tokens: int = 4096) -> str:
        """Ask a question and return the answer, from the cache if it is there."""
        question = {
            "base_url": self.base_url, "model": self.model, "messages": messages, "key": key,
            "temperature": temperature, "max_tokens": max_tokens,
        }  # fmt: skip
        digest = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()
        kept = None if self.cache is None else self.cache / digest[:2] / f"{digest}.json"
        if kept is not None and (known := _read(kept)) is not None:
            return known
        reply = self._reply(messages=messages, temperature=temperature, max_tokens=max_tokens)
        if reply.truncated:
            raise NoAnswer(f"the answer of {self} is cut off at max_tokens={max_tokens}; allow more")
        if not reply.text.strip():
            raise NoAnswer(f"{self} gave an empty answer ({reply.reason})")
        if kept is not None:
            _write(kept, reply.text)
        return reply.text

    def complete(
        self, messages: list[Message], *, temperature: float, max_tokens: int, top_p: float = 1.0,
        seed: int | None = None, logprobs: bool = False, chat: Mapping[str, Any] | None = None,
    ) -> Reply:  # fmt: skip
        """Return whatever the model writes. `logprobs` requests the tokens too; `chat` is for the chat template."""
        body = {"chat_template_kwargs": dict(chat)} if chat else None
        # sent only if needed: not every server knows them
        more = {"seed": seed, "logprobs": logprobs or None, "extra_body": body}
        return self._reply(
            messages=messages, temperature=temperature, max_tokens=max_tokens, top_p=top_p,
            **{name: value for name, value in more.items() if value is not None},
        )  # fmt: skip

    def _reply(self, **question: Any) -> Reply:
        client, openai = self._client()
        for attempt in range(self.max_retries + 1):
            if attempt:
                time.sleep(min(0.5 * 2 ** (attempt - 1), 8.0))
            try:
                with self._room:
                    found = client.chat.completions.create(model=self.model, **question)
            except openai.OpenAIError as error:  # the client has retried, if that can help
                raise self._explained(error) from None
            except ValueError:  # not JSON
                continue
            try:
                return _reply_in(found)
            except (AttributeError, IndexError, TypeError):  # JSON, but no completion
                continue
        raise EndpointError(f"{self} answers, but not with chat completions; is base_url right? Usually it ends in /v1")

    def _client(self) -> Any:
        """Return (client, the package openai); make the client on first use."""
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made

    def _make(self) -> Any:
        openai = package("openai")
        key = os.environ.get(self.key_env) if self.key_env else "none"
        if not key:
            raise EndpointError(
                f"the environment variable {self.key_env} holds no key for {self.base_url}; set it, name another one "
                'as key_env, or say key_env = "" if that endpoint needs none'
            )
        retries = self.max_retries
        return openai.OpenAI(base_url=self.base_url, api_key=key, timeout=self.timeout_s, max_retries=retries), openai

    def _explained(self, error: Exception) -> EndpointError:
        status, said = getattr(error, "status_code", None), " ".join(str(error).split())[:300]
        if status in (400, 413, 422):
            return NoAnswer(f"{self} refuses this question ({said})")
        if status in (401, 403):
            return EndpointError(f"{self} refuses the key in {self.key_env or '(key_env is empty)'} ({said})")
        if status == 404:
            return EndpointError(f"{self} was not found ({said}); check base_url, which usually ends in /v1, and model")
        tries = f"after {self.max_retries + 1} attempts"
        if status == 429:
            return EndpointError(f"{self} gets too many requests, {tries} ({said}); lower concurrency, or try later")
        if status is not None:
            return EndpointError(f"{self} fails, {tries} ({said})")
        return EndpointError(f"{self} cannot be reached, {tries} ({said}); check base_url and timeout_s")

    def __str__(self) -> str:
        return f"{self.model} at {self.base_url}"


def _reply_in(found: Any) -> Reply:
    choice = found.choices[0]
    text, why = choice.message.content, choice.finish_reason
    if not isinstance(text, str | None):
        raise NoAnswer(f"{found.model} answers in parts ({type(text).__name__}), and only one text can be read")
    tokens = None if found.usage is None else found.usage.completion_tokens
    listed = None if choice.logprobs is None else choice.logprobs.content
    pieces = None if listed is None else tuple(map(_piece, listed))
    return Reply(text or "", tokens, why == "length", str(choice.message.refusal or why), pieces)


def _piece(token: Any) -> bytes:
    return token.token.encode("utf-8", "replace") if token.bytes is None else bytes(token.bytes)


def _read(path: Path) -> str | None:
    """Read a cached answer; None if there is none that can be read."""
    try:
        answer = json.loads(path.read_text(encoding="utf-8"))["answer"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return answer if isinstance(answer, str) else None


def _write(path: Path, answer: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps({"answer": answer}), encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise EndpointError(f"no answer can be kept in {path.parent} ({error.strerror}); name another cache") from None


@lru_cache(maxsize=1)
def endpoint_for(settings: str) -> Endpoint | None:
    """Return the endpoint of these settings (EndpointConfig as JSON), one for each process; None for ""."""
    if not settings:
        return None
    found = EndpointConfig(**json.loads(settings))
    return Endpoint(found.base_url, found.model, found.key_env, cache=cache() / "endpoint")
