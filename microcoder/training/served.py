"""vLLM for all stages of a run (`engine_of`), and sampling from a server that has the weights of the training.

vLLM in the training's processes is `sampling/vllm.py`. A server is started by hand, on other GPUs or on the same one:

    VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --logprobs-mode processed_logprobs --max-model-len 4096

1. Each response is a request of its own with a seed of its own, `rows` of them at a time, and is handed out when its
   answer is here.
2. The weights travel through a folder that both see: one file, which the server is told to load. A server that was
   started again has the right weights after the next `refresh`. One that is started by `trl vllm-serve` gets them from
   GPU to GPU instead, by TRL's client (NCCL, which needs two different GPUs).
3. Who can reach the server can have it load any file: it belongs to a network of its own.
"""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch
from safetensors.torch import save_file

from ..models import ModelSource
from ..runs import Run, RunError
from ..sampling import Completion, Sampling, VllmError
from ..sampling.shadow import weights
from ..sampling.vllm import VllmSampler, asked_of, in_process
from .memory import MemoryPlan
from .ranks import devices, rank, together

START = "VLLM_SERVER_DEV_MODE=1 vllm serve {model} --logprobs-mode processed_logprobs --max-model-len {context}"
SECONDS = 1800  # for one request; a response may have to wait for its turn


class ServerGone(RuntimeError):
    """The server did not answer, or answered with an error, while a run depended on it."""


class ServedSampler:
    """`names` are those that the model may have at the server. `folder`: where weights are put for it to read.

    rank   of this process; the first one brings the weights
    """

    def __init__(self, url: str, names: Sequence[str], context: int, rows: int, folder: Path, rank: int = 0) -> None:
        self.url, self.rows, self.rank = url.rstrip("/"), rows, rank
        self.file = folder / "model.safetensors"
        self.start = START.format(model=names[0], context=context)
        self.model = self._checked(names, context)
        there = str((self.info.get("model_config") or {}).get("dtype"))
        self.dtype = torch.float32 if there.endswith("float32") else torch.bfloat16  # in which the weights travel
        self.on_cpu = (self.info.get("device_config") or {}).get("device") == "cpu"
        transfer = self.info.get("weight_transfer_config")
        self.backend = (transfer or {}).get("backend", "folder")
        self.client: Any = None  # TRL's, for weights from GPU to GPU
        self.metadata: list[tuple[str, str, list[int]]] = []
        self.end_tokens: list[int] = []

    def _checked(self, names: Sequence[str], context: int) -> str:
        """The model's name there. Raise VllmError where the server cannot serve this training, with what could."""
        try:
            found = self._ask("GET", "/v1/models", seconds=10)["data"][0]
        except (ServerGone, KeyError, IndexError, TypeError) as error:
            raise VllmError(
                f"no vLLM server answers at rollout.server={self.url} ({error}); start one: {self.start}"
            ) from None
        where = {found["id"], found.get("root") or found["id"]}
        if not where & {*names, *(str(Path(name).resolve()) for name in names)}:
            raise VllmError(
                f"the server at {self.url} serves {found['id']}, and model.name={names[0]} is trained; start one that "
                f"serves it: {self.start}"
            )
        if (found.get("max_model_len") or context) < context:
            raise VllmError(
                f"the server at {self.url} has room for {found['max_model_len']:,} tokens, and a prompt and its "
                f"response may have {context:,}; start it with more: {self.start}"
            )
        try:
            self.info: dict[str, Any] = self._ask("GET", "/server_info?config_format=json", seconds=60)["vllm_config"]
        except (ServerGone, KeyError, TypeError) as error:
            raise VllmError(
                f"the server at {self.url} cannot be given new weights ({error}); start it with "
                f"VLLM_SERVER_DEV_MODE=1: {self.start}"
            ) from None
        mode = (self.info.get("model_config") or {}).get("logprobs_mode")
        if mode != "processed_logprobs":
            raise VllmError(
                f"the server at {self.url} gives log-probabilities before the temperature (logprobs_mode {mode}), and "
                f"importance weights need them after it; start it so: {self.start}"
            )
        return str(found["id"])

    def record(self) -> dict[str, str]:
        """What a run writes down of its server."""
        return {"server": self.url, "server_model": self.model, "weights_by": self.backend}

    def __call__(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> Iterator[Completion]:
        """`sampling.samples` completions of each prompt, each as soon as it is finished."""
        samples = sampling.samples if sampling.temperature else 1
        asked = [(n, k) for n in range(len(prompts)) for k in range(samples)]
        with ThreadPoolExecutor(max(1, min(self.rows, len(asked)))) as pool:
            left: set[Future[Completion]] = {pool.submit(self._one, list(prompts[n]), sampling, n, k) for n, k in asked}
            try:
                while left:
                    done, left = wait(left, return_when=FIRST_COMPLETED)
                    for future in done:
                        found = future.result()
                        yield from (replace(found, sample=found.sample + k) for k in range(sampling.samples // samples))
            finally:
                for future in left:
                    future.cancel()

    def _one(self, prompt: list[int], sampling: Sampling, number: int, sample: int) -> Completion:
        words = {"model": self.model, "prompt": prompt, "return_token_ids": True}
        words |= asked_of(sampling, number, sample, self.end_tokens)
        choice = self._ask("POST", "/v1/completions", words)["choices"][0]
        ids, logprobs = list(choice["token_ids"]), list(choice["logprobs"]["token_logprobs"])
        if len(ids) != len(logprobs):
            raise ServerGone(f"{self.url} gave {len(ids)} tokens and {len(logprobs)} log-probabilities")
        return Completion(number, sample, ids, logprobs, truncated=choice["finish_reason"] == "length")

    @torch.no_grad()
    def refresh(self, model: Any) -> None:
        """Bring the server the weights of a model that is trained. On several ranks all of them do this together."""
        if self.on_cpu and model.config.get_text_config().tie_word_embeddings:
            raise VllmError(
                f"the server at {self.url} runs on a CPU, where vLLM keeps the first head of a model that has it tied "
                "to its embeddings, whatever weights come later; serve it on a GPU, or leave rollout.server out"
            )
        together()  # else another rank could still sample with the old weights
        by_folder = self.backend == "folder"
        if not by_folder and not self.metadata:
            self.metadata = [
                (name, str(self.dtype).removeprefix("torch."), list(weight.shape))
                for name, weight in weights(model, self.dtype)
            ]
        if self.rank:
            for _ in weights(model, self.dtype):  # gathered together, as often as by the first rank
                pass
        elif by_folder:
            self._load({name: weight.to("cpu", self.dtype).contiguous() for name, weight in weights(model, self.dtype)})
        else:
            self._send(model)
        together()  # and could begin to sample before the new ones are there

    def _load(self, found: dict[str, torch.Tensor]) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        part = self.file.with_suffix(".part")
        save_file(found, part)
        os.replace(part, self.file)
        folder = str(self.file.parent.resolve())
        self._ask("POST", "/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": folder}})
        if not self._ask("POST", "/reset_prefix_cache")["success"]:
            raise ServerGone(f"{self.url} has kept keys and values of old weights; does it serve others meanwhile?")

    def _send(self, model: Any) -> None:
        """From GPU to GPU, as TRL does it."""
        if self.client is None:
            from trl.generation.vllm_client import VLLMClient

            self.client = VLLMClient(base_url=self.url)
            self.client.init_communicator(device=next(model.parameters()).device)
        parts = ((name, weight.to(self.dtype)) for name, weight in weights(model, self.dtype))
        self.client.update_named_params(self.metadata, parts)
        self.client.reset_prefix_cache()

    def release(self) -> None:
        """Its memory is its own."""

    def close(self) -> None:
        if self.client is not None:
            self.client.close_communicator()
        if self.rank == 0:
            self.file.unlink(missing_ok=True)

    def _ask(self, method: str, path: str, words: Any = None, seconds: float = SECONDS) -> Any:
        parts = urlsplit(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        line = kind(parts.hostname or "", parts.port, timeout=seconds)
        body = None if words is None else json.dumps(words)
        try:
            line.request(method, parts.path + path, body, {"Content-Type": "application/json"})
            answer = line.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise ServerGone(f"{self.url}{path}: {error or type(error).__name__}") from error
        finally:
            line.close()
        if answer.status != 200:
            raise ServerGone(f"{self.url}{path}: status {answer.status}, {text[:200].decode(errors='replace')}")
        return json.loads(text) if text else None


@contextmanager
def engine_of(
    need: MemoryPlan, source: ModelSource, run: Run, note: Callable[[str], None]
) -> Iterator[VllmSampler | ServedSampler | None]:
    """The sampler of all stages; None where each stage makes its own from the model that it trains.

    Raise VllmError, before anything has happened, where it cannot be had; RunError when a server is gone later.
    """
    rollout = need.config.rollout
    if rollout.engine != "vllm":
        yield None
        return
    found: Any
    if rollout.server:
        names = [need.config.model.name, source.path]
        folder = run.path / "weights"
        found = ServedSampler(rollout.server, names, need.context, need.rows, folder, rank())
        run.update(vllm=found.record())
        note(f"vLLM: a server at {found.url}, weights by {found.backend}")
    else:
        torch.cuda.empty_cache()
        found = in_process(source.path, rollout.memory, need.context, need.rows, need.crowded)
        made = {"memory": rollout.memory, "context": need.context, "rows": need.rows, "sleeps": need.crowded}
        run.update(vllm=made)
        asleep = ", asleep during updates" if need.crowded else ""
        note(f"vLLM: {rollout.memory:.1%} of the GPU, {need.context:,} tokens of context{asleep}")
    try:
        yield found
    except ServerGone as error:
        raise RunError(
            f"the vLLM server is gone: {error}; start it again ({found.start}), then go on from the last checkpoint: "
            f"microcoder train {run.path} --resume"
        ) from error
    finally:
        if rollout.server or devices() == 1:  # ranks: it ends the process group, and ends with its process
            found.close()
