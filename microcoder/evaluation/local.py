"""Sample a model on this machine with `microcoder.sampling`.

1. Problems are sampled in chunks of a fixed size, each with its own seed. After a kill, the interrupted chunk is
   sampled again with the same seed, and the samples that were saved are skipped: nothing is lost or repeated.
2. Several limits need only one generation: the sample under a smaller limit is a prefix.
3. If a prompt leaves less room than the limit in the model's context, it is sampled alone, to the end of the context.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from ..collect import load_sampler, written
from ..config import RolloutConfig
from ..models import ModelError, resolve
from ..sampling import Completion, NotCapturable, Sampling
from ..schema import Problem
from .folder import Ask, fingerprint
from .suite import EvaluationError, Sample

CPU_BATCH = 64  # default responses at once on a CPU: 512 of a real model would take all the memory
BATCHES = 4
Chunk = tuple[int, list[int], int]  # (number of the chunk, numbers of its problems, limit)


class LocalModel:
    """A local model, loaded once for any number of evaluations."""

    def __init__(
        self,
        name: str,
        settings: RolloutConfig,
        note: Callable[[str], None],
        chat: Mapping[str, Any] | None = None,  # arguments of its chat template
    ) -> None:
        if "batch" not in settings.model_fields_set and not torch.cuda.is_available():
            settings = settings.model_copy(update={"batch": CPU_BATCH})
        own = settings.engine == "vllm" and "memory" not in settings.model_fields_set  # then what vLLM takes
        memory = None if own else settings.memory
        try:
            source = resolve(name, progress=note)
            self.loaded = load_sampler(source, settings.engine, settings.batch, memory, note=note, chat=chat)
        except (ModelError, NotCapturable, OSError, ValueError) as error:
            raise EvaluationError(f"{name} cannot be used: {error}") from None
        self.note, self.batch = note, settings.batch

    def ask(self, common: dict[str, Any]) -> Ask:
        """Return the conditions of an evaluation of this model; `common` are the fields that do not depend on it."""
        source, engine = self.loaded.source, self.loaded.engine
        parts = filter(None, (source.path, source.adapter))
        weights = "+".join(fingerprint(part) for part in parts)
        # on a GPU a chunk is a few batches, since slots are idle only at its end
        responses = self.batch * (BATCHES if engine != "transformers" else 1)
        chunk = max(1, responses // common["tries"])
        return Ask(model=source.name, weights=weights, source=engine, chunk=chunk, **common).check()

    def samples(self, ask: Ask, problems: Sequence[Problem], known: Sequence[str]) -> Iterator[Sample]:
        """Yield the samples that are not known yet, as each one is finished."""
        try:
            prompts = [self.loaded.prompt(problem, ask.style) for problem in problems]
        except ValueError as error:
            raise EvaluationError(f"{ask.model} cannot be asked in the style {ask.style}: {error}") from None
        there = set(known)
        for number, chosen, limit in self._chunks(ask, prompts):
            ids = [problems[n].id for n in chosen]
            if all(f"{ident}#{k}" in there for ident in ids for k in range(ask.tries)):
                continue
            if limit < 1:
                found: Iterator[Completion] = (Completion(0, k, [], [], True) for k in range(ask.tries))
            else:
                seed = random.Random(f"{ask.seed} {number}").getrandbits(62)
                sampling = Sampling(ask.temperature or 0.0, limit, ask.tries, ask.top_p, ask.top_k, seed)
                found = self.loaded.sampler([prompts[n] for n in chosen], sampling)
            for completion in found:
                if f"{ids[completion.prompt]}#{completion.sample}" not in there:
                    prompt = prompts[chosen[completion.prompt]]
                    yield self._sample(ids[completion.prompt], prompt, completion, ask.limits)

    def _chunks(self, ask: Ask, prompts: Sequence[Sequence[int]]) -> Iterator[Chunk]:
        """Divide the problems into chunks: first those with room for the largest limit, then the others one by one.

        The result depends only on `ask` and the prompts.
        """
        most, context = max(ask.limits), self.loaded.context
        room = [min(most, context - len(prompt)) if context else most for prompt in prompts]
        wide = [n for n, left in enumerate(room) if left == most]
        tight = [n for n, left in enumerate(room) if left < most]
        if tight:
            least = min(room[n] for n in tight)
            self.note(
                f"{len(tight)} of {len(prompts)} prompts leave less than {most} tokens of the model's context of "
                f"{context}; their responses end where it ends ({max(least, 0)} tokens at the least)"
            )
        chunks = [wide[start : start + ask.chunk] for start in range(0, len(wide), ask.chunk)]
        for number, chosen in enumerate(chunks):
            yield number, chosen, most
        for n in tight:
            yield len(prompts) + n, [n], room[n]

    def _sample(self, ident: str, prompt: Sequence[int], completion: Completion, limits: Sequence[int]) -> Sample:
        ids = completion.ids
        text = written(self.loaded.text, prompt, ids)
        cuts = {str(limit): self._cut(prompt, ids[:limit], text) for limit in limits[:-1] if len(ids) > limit}
        return Sample(ident, completion.sample, text, len(ids), completion.truncated, cuts, ids)

    def _cut(self, prompt: Sequence[int], ids: list[int], text: str) -> int:
        """Count the characters of the text in its first tokens `ids`, without an incomplete character at the end."""
        start = written(self.loaded.text, prompt, ids)
        return next((n for n, pair in enumerate(zip(start, text, strict=False)) if pair[0] != pair[1]), len(start))
