"""The memory of a training on one device: its parts in bytes, what fits, and what to change where nothing does.

There all the time: weights, optimizer states, the reference model, the bfloat16 copy that samples, CUDA; of several
devices also what they exchange. Of some of it a device may hold a share only (`sharding.py`).
One after the other, so that the larger counts: the pages of keys and values while sampling; gradients and a pass.

A pass of n tokens keeps n x (12 h + 4 q + 4 k + 6 i) bytes in each layer, where h is the width of the residual stream,
q and k that of all query and key heads, i that of the MLP. This is what autograd saves of a packed layer on a GPU under
bfloat16 autocast, from float32 weights (`fused.py`):

    12 h   both norms: the stream in float32 (2 x 4), and what the products read, in bfloat16 (2 x 2)
    4 q    rotated queries, and the output of attention; 4 k: rotated keys, and values
    6 i    gate, up, and silu(gate) * up

A padded one keeps 26 h + 4 q + 4 k + 8 i: the normalised stream in float32 too (2 x 4), a bfloat16 cast for each of the
five products that read it (5 x 2), and silu(gate).

`KEPT` has these numbers for other weights too; a test counts what autograd really saves. Besides, a pass needs the
bfloat16 casts of the weights, and the larger of the head (its logits in pieces of HEAD_TOKENS) and the gradients of one
layer. A pass that recomputes keeps the float32 stream of each layer only, and one layer at a time.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from ..config import Config
from .model_shape import ModelShape
from .sharding import SHARES, refusal

if TYPE_CHECKING:
    from .plan import Batches  # which imports this module

GIB = 1 << 30

# --- the coefficients, all of them


class KeptBytes(NamedTuple):
    """Bytes that a layer keeps for each token and each unit of a width."""

    hidden: int
    queries: int
    keys: int
    inner: int
    qk_norm: int  # of queries and keys, where these are normalised too (Qwen3)


KEPT = {  # (type of the weights and of the products, whether only adapters are trained)
    ("fused mixed", False): KeptBytes(12, 4, 4, 6, 2),
    ("fused mixed", True): KeptBytes(18, 6, 4, 6, 2),
    ("fused bfloat16", False): KeptBytes(8, 4, 4, 6, 2),
    ("fused bfloat16", True): KeptBytes(14, 6, 4, 6, 2),
    ("mixed", False): KeptBytes(26, 4, 4, 8, 6),
    ("bfloat16", False): KeptBytes(16, 4, 4, 8, 6),
    ("float32", False): KeptBytes(24, 8, 8, 16, 8),
    ("mixed", True): KeptBytes(18, 6, 4, 8, 4),
    ("bfloat16", True): KeptBytes(18, 6, 4, 8, 4),
    ("float32", True): KeptBytes(16, 8, 8, 16, 4),
}
HEAD_TOKENS = 2048  # whose logits are there at a time
HEAD_BYTES = 4 + 2  # of a logit, and of its gradient
HEAD_GRADIENT = 4 + 4  # of a weight of the head: its gradient so far, and that of a piece
LAYER_GRADIENTS = 1.0  # gradients of one layer on their way back, over what it keeps
STATES = {"adamw": 8.0, "adam8bit": 2 + 8 / 256}  # bytes of the optimizer for a trained weight
CUDA = int(1.2 * GIB)  # context and libraries
VLLM = 2 * GIB  # what vLLM takes beside weights, keys and values: activations of 8,192 tokens, CUDA graphs
VLLM_LOGIT = 16  # bytes of a logit of each response while vLLM draws: float32, and three copies
ZERO_BUCKET = 500_000_000  # values in a bucket of DeepSpeed's
RESERVE = 0.08  # the share of the memory that no plan touches: pieces too small to be used
MOST_TOKENS, MOST_TOKENS_CPU = 32768, 16384  # of a pass that is "auto"
TOLD = {"nothing": 64, "verdict": 64, "error": 256, "difference": 256}  # tokens of grpo.feedback, at most or nearly
ENOUGH_TOKENS = 8192  # a pass of so many without recomputation is better than a larger one with it


@dataclass(frozen=True)
class Device:
    """A GPU, or main memory and the CPU."""

    memory: int
    gpu: bool
    bf16: bool = True  # whether a GPU has it

    @property
    def usable(self) -> float:
        return (1 - RESERVE) * self.memory

    def words(self) -> str:
        kind = "a GPU" if self.gpu else "main memory"
        return f"{kind} of {self.memory / GIB:.0f} GiB"


def here(ranks: int = 1) -> Device:
    """The GPU of this machine, or without one its main memory, of which each of the ranks has a share."""
    if torch.cuda.is_available():
        total = int(torch.cuda.get_device_properties(0).total_memory)
        return Device(total, True, torch.cuda.is_bf16_supported())
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        found = min(found, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):  # no limit on this container, or none that can be read
        pass
    return Device(found // ranks, False)


@dataclass(frozen=True)
class MemoryPlan:
    """What a training needs on a device. `prompt`: tokens of the longest one."""

    config: Config
    counts: Batches
    shape: ModelShape
    prompt: int
    device: Device

    @property
    def limit(self) -> int:
        """Tokens of the longest try."""
        train = self.config.train
        return max([train.max_response_tokens, *(stage.max_response_tokens or 0 for stage in train.stages)])

    @property
    def longest(self) -> int:
        """Tokens of the longest prompt and the longest response: all of its tries, and what is told between them."""
        grpo = self.config.grpo
        return self.prompt + grpo.turns * self.limit + (grpo.turns - 1) * TOLD[grpo.feedback]

    def parts(self) -> dict[str, int]:
        """The bytes of each part on one device."""
        model, engine, shape = self.config.model, self.config.rollout.engine, self.shape
        size = 2 if model.dtype == "bfloat16" else 4
        adapter = shape.adapted * model.lora_rank
        trained = adapter or shape.parameters
        gpu = self.device.gpu
        copied = engine != "vllm" and (self._sharded or (gpu and engine != "transformers"))
        found = {
            "weights": size * shape.parameters + 4 * adapter,
            "gradients": 4 * trained,
            "optimizer": (STATES[self.config.train.optimizer] + 4 * self._layout.startswith("zero")) * trained,
            "reference": size * shape.parameters * self._reference,
            "exchange": self._exchange(size, trained),
            "sampling copy": (2 if gpu else size) * shape.parameters * copied,
            "CUDA": CUDA if gpu else 0,
            "pages": self._pages(),
            "pass": self.a_pass(self.tokens, model.gradient_checkpointing is True),
        }
        shares = SHARES[self._layout]
        return {name: int(value / (self.counts.devices if name in shares else 1)) for name, value in found.items()}

    @property
    def _layout(self) -> str:
        layout = self.config.run.layout
        return "replicated" if self.counts.devices == 1 or layout == "auto" else layout

    @property
    def _sharded(self) -> bool:
        return "weights" in SHARES[self._layout]

    def _exchange(self, size: int, trained: int) -> int:
        """What devices exchange: DDP's copy of the gradients; DeepSpeed's two buckets; of weights in shares those of
        two layers and of the head, whole, and the gradients of a layer.
        """
        if self.counts.devices == 1:
            return 0
        shape = self.shape
        buckets = 4 * trained if self._layout == "replicated" else 0
        buckets += 2 * 4 * min(trained, ZERO_BUCKET) * self._layout.startswith("zero")
        layer = shape.linear // shape.layers
        return buckets + self._sharded * (size * (2 * layer + shape.vocabulary * shape.hidden) + 4 * layer)

    def standing(self) -> int:
        """The bytes of all parts that are there all the time."""
        return sum(value for name, value in self.parts().items() if name not in ("pages", "gradients", "pass"))

    @property
    def crowded(self) -> bool:
        """Whether pages and an update cannot be there at once."""
        return self.device.gpu and sum(self.parts().values()) > self.device.usable

    def least(self) -> dict[str, int]:
        """The parts, where a single response reaches the limit."""
        parts = self.parts()
        one = self.a_pass(min(self.tokens, self.longest), self.config.model.gradient_checkpointing is True)
        padded = self.config.train.update == "padded"
        return parts | {"pages": min(self.fewest, parts["pages"]), "pass": one if padded else parts["pass"]}

    # --- a pass

    @property
    def tokens(self) -> int:
        """Tokens of the largest pass."""
        train, counts = self.config.train, self.counts
        if train.update == "padded":
            return counts.micro * self.longest
        budget = MOST_TOKENS_CPU if train.pass_tokens == "auto" else train.pass_tokens
        group = self.prompt + counts.samples * (self.longest - self.prompt)
        return min(-(-counts.mini // counts.devices) * group, max(self.longest, budget))

    def a_pass(self, tokens: int, recompute: bool) -> int:
        """The bytes of one pass of the update, forward and backward."""
        model, shape = self.config.model, self.shape
        kind = "bfloat16" if model.dtype == "bfloat16" else "mixed" if self._mixed else "float32"
        fused = self._mixed and self.device.gpu and self.config.train.update == "packed"
        kept = KEPT[f"fused {kind}" if fused else kind, model.lora_rank > 0]
        queries, keys = shape.heads * shape.width, shape.kv_heads * shape.width
        layer = kept.hidden * shape.hidden + kept.queries * queries + kept.keys * keys + kept.inner * shape.inner
        layer += kept.qk_norm * (queries + keys) * shape.qk_norm + 4 * shape.heads  # the last: log-sum-exps
        stream = (2 if kind == "bfloat16" else 4) * shape.hidden * tokens
        layer, back = layer * tokens, int(LAYER_GRADIENTS * layer * tokens)
        casts = 2 * shape.linear if kind == "mixed" else 0
        head = min(tokens, HEAD_TOKENS) * shape.vocabulary * HEAD_BYTES
        of_weight = (2 if casts else 0) + (0 if model.lora_rank else HEAD_GRADIENT)
        head += of_weight * shape.vocabulary * shape.hidden
        if recompute:
            whole = (shape.layers + 1) * stream + max(casts + head, casts // shape.layers + layer + back)
        else:
            whole = shape.layers * layer + stream + casts + max(head, back)
        return whole + casts * self._reference

    @property
    def _mixed(self) -> bool:
        bf16 = self.config.train.bf16
        return self.device.gpu and self.device.bf16 if bf16 == "auto" else bf16

    @property
    def _reference(self) -> bool:
        return self.config.grpo.kl > 0 and not self.config.model.lora_rank

    # --- pages

    @property
    def rows(self) -> int:
        """Responses at once, on one device."""
        return min(self.config.rollout.batch, self.counts.responses // self.counts.devices)

    def _pages(self) -> int:
        """Keys and values while sampling: of as many responses at once as there are, and as rollout.memory lets. Of
        vLLM in this process all that it takes, its weights too; a server has memory of its own."""
        rollout, rows = self.config.rollout, self.rows
        if rollout.engine == "vllm" and (rollout.server or not self.device.gpu):
            return 0
        if not self.device.gpu or rollout.engine == "transformers":
            return rows * self._cached(self.longest, 2 if self.config.model.dtype == "bfloat16" else 4)
        wanted = rows * self._cached(self.longest - self.prompt) + self._prompts * self._cached(self.prompt)
        return max(self.fewest, min(wanted + self._beside, int(rollout.memory * self.device.memory)))

    @property
    def _prompts(self) -> int:
        """Prompts whose keys and values are kept at once: a group shares its own, until it takes turns."""
        return self.rows if self.config.grpo.turns > 1 else min(self.counts.problems // self.counts.devices, self.rows)

    @property
    def _beside(self) -> int:
        """What vLLM takes with its pages: its copy of the weights, and its work."""
        logits = VLLM_LOGIT * self.rows * self.shape.vocabulary
        return (2 * self.shape.parameters + VLLM + logits) * (self.config.rollout.engine == "vllm")

    @property
    def fewest(self) -> int:
        """The least that sampling can do with: the pages of one response."""
        return self.response + self._beside

    @property
    def context(self) -> int:
        """Tokens that a prompt and its response may have together, in training and in evaluations."""
        return max(self.longest, self.prompt + self.config.train.eval_max_response_tokens)

    @property
    def response(self) -> int:
        """Keys and values of the longest response and its prompt."""
        return self._cached(self.context)

    def _cached(self, tokens: int, size: int = 2) -> int:
        return 2 * size * self.shape.layers * self.shape.kv_heads * self.shape.width * tokens

    # --- what fits

    def having(self, **settings: Any) -> MemoryPlan:
        """The same training with other settings: section__key=value."""
        config = self.config
        for name, value in settings.items():
            section, _, key = name.partition("__")
            part = getattr(config, section).model_copy(update={key: value})
            config = config.model_copy(update={section: part})
        return replace(self, config=config)

    def fitted(self) -> MemoryPlan:
        """The same training with a value for each "auto", and no larger rollout.memory than there is room for."""
        if self.config.run.layout == "auto":
            whole = self.having(run__layout="replicated").fitted()
            fits = self.counts.devices == 1 or peak(whole.least()) <= self.device.usable
            tried = fits or refusal(self.having(run__layout="fsdp").config, self.counts.devices)
            return whole if tried else self.having(run__layout="fsdp").fitted()
        device, left = self.device, self.device.usable - self.standing()
        room = left - self.parts()["gradients"]
        auto = self.config.train.update == "packed" and self.config.train.pass_tokens == "auto"
        recompute = self.config.model.gradient_checkpointing
        if recompute == "auto":
            tokens = min(self.tokens, max(ENOUGH_TOKENS, self.longest)) if auto else self.tokens
            recompute = device.gpu and self.a_pass(tokens, False) > room
        found = self.having(model__gradient_checkpointing=recompute)
        if auto:
            most = MOST_TOKENS if device.gpu else MOST_TOKENS_CPU
            fitting = (tokens for tokens in range(most, self.longest, -256) if self.a_pass(tokens, recompute) <= room)
            found = found.having(train__pass_tokens=next(fitting, self.longest))
        if device.gpu and self.parts()["pages"] > left:
            share = max(self.fewest, left) / device.memory
            found = found.having(rollout__memory=min(self.config.rollout.memory, share))
        if found.config.rollout.engine == "vllm" and (pages := found.parts()["pages"]):
            found = found.having(rollout__memory=round(pages / device.memory, 4))  # it takes all that it may
        return found

    def lack(self) -> str:
        """What stands in the way, and settings that would fit; empty if this fits."""
        fitted, device = self.fitted(), self.device
        share = self.config.rollout.memory
        own = self.config.rollout.engine != "transformers" and self.parts()["pages"]
        if device.gpu and own and self.fewest > share * device.memory:
            weights = "vLLM with its weights, and " if self._beside else ""
            return (
                f"memory: {weights}keys and values of one response of {self.longest:,} tokens, its prompt included, "
                f"take {self.fewest / GIB:.1f} GiB, and rollout.memory={share:g} of {device.words()} is less; set "
                f"rollout.memory={math.ceil(100 * self.fewest / device.memory) / 100:g} or a smaller limit"
            )
        least = fitted.least()
        if peak(least) <= device.usable:
            return ""
        where = device.words() if device.gpu else f"{device.words()}, for there is no GPU,"
        found = (
            f"memory: {self.config.model.name} needs {peak(least) / GIB:.1f} GiB at the least ({_listed(least)}), "
            f"and {where} leaves {device.usable / GIB:.1f}"
        )
        ways = {words: peak(other.fitted().least()) for words, other in (self._ways() | self._spread()).items()}
        ways = {words: most for words, most in ways.items() if most < peak(least)}
        fitting = {words: most for words, most in ways.items() if most <= device.usable}
        said = [f"{words} ({most / GIB:.1f} GiB)" for words, most in (fitting or ways).items()]
        if not fitting:
            larger = "a smaller model or a larger GPU"
            if device.gpu:
                larger += ", or let verl deal the sampling copy out to several GPUs: microcoder cp cluster-32b 32b.toml"
            tried = f"none of these alone is enough: {', '.join(said)}; " * bool(said)
            return f"{found}; {tried}name {larger}"
        return f"{found}; what fits: {', or '.join(said)}"

    def _spread(self) -> dict[str, MemoryPlan]:
        """This training on the fewest GPUs of the same size that have room for it."""
        counts = self.counts
        for number in (2, 4, 8) * (self.device.gpu and counts.devices == 1 and self.config.run.layout == "auto"):
            if counts.problems % number == counts.mini * counts.samples % number == 0:
                spread = replace(self, counts=replace(counts, devices=number))
                if peak(spread.fitted().least()) <= self.device.usable:
                    return {f"{number} such GPUs": spread}
        return {}

    def _ways(self) -> dict[str, MemoryPlan]:
        """Settings that need less, and the training with them."""
        train, model = self.config.train, self.config.model
        small, half = {"train__optimizer": "adam8bit"}, {"model__dtype": "bfloat16"}
        ways: dict[str, dict[str, Any]] = {}
        if not model.lora_rank:
            ways["model.lora_rank=32"] = {"model__lora_rank": 32}
            if train.optimizer != "adam8bit":
                ways["train.optimizer=adam8bit"] = small
        if model.dtype != "bfloat16":
            ways |= {f"{words} model.dtype=bfloat16": {**more, **half} for words, more in ways.items()}
            ways = ways or {"model.dtype=bfloat16": half}
        if self.counts.devices > 1 and self.config.run.layout not in ("auto", "fsdp"):
            ways["run.layout=fsdp"] = {"run__layout": "fsdp"}
        if model.gradient_checkpointing is False:
            ways["model.gradient_checkpointing=auto"] = {"model__gradient_checkpointing": "auto"}
        if self.config.rollout.engine == "vllm" and self.device.gpu:
            ways["rollout.engine=auto"] = {"rollout__engine": "auto"}
        if train.update == "padded":
            ways["train.update=packed"] = {"train__update": "packed"}
        elif train.pass_tokens != "auto":
            ways["train.pass_tokens=auto"] = {"train__pass_tokens": "auto"}
        limits = [1 << n for n in range(8, 17) if 1 << n < self.limit]
        shorter = [n for n in limits if peak(self._shorter(n).fitted().least()) <= self.device.usable]
        found = {words: self.having(**settings) for words, settings in ways.items()}
        found = {words: plan for words, plan in found.items() if not refusal(plan.config, self.counts.devices)}
        return found | {f"train.max_response_tokens={n}": self._shorter(n) for n in shorter[-1:]}

    def _shorter(self, limit: int) -> MemoryPlan:
        return self.having(train__max_response_tokens=limit, train__stages=[], train__eval_max_response_tokens=0)

    def words(self) -> str:
        """The plan in one line, for a training that is fitted."""
        parts, device, whole = self.parts(), self.device, sum(self.parts().values())
        pages, one = parts.pop("pages") / GIB, parts.pop("pass") / GIB
        sampling = f"pages {pages:.2f} while sampling, then " if pages else ""
        most = peak(self.parts())
        more = ", should all responses reach the limit" if peak(self.least()) <= device.usable < most else ""
        stay = device.gpu and not self.crowded and whole > most  # beside others on one GPU that counts
        kept = f", {whole / GIB:.2f} with pages that stay while there is room" if stay else ""
        return (
            f"about {most / GIB:.2f} GiB{kept}, and {device.words()} leaves {device.usable / GIB:.2f}{more}: "
            f"{_listed(parts)}; {sampling}a pass of {self.tokens:,} tokens {one:.2f}; "
            f"recompute: {'yes' if self.config.model.gradient_checkpointing else 'no'}"
        )

    def sampling_words(self) -> str:
        """How many responses are sampled at once, for a training that is fitted."""
        of_device = self.counts.responses // self.counts.devices
        where = " on each device" * (self.counts.devices > 1)
        most = f", at most {self.rows} at once" * (self.rows < of_device)
        said = f"{of_device} responses{where}{most}, of up to {self.context:,} tokens with their prompt"
        pages = self.parts()["pages"] - self._beside
        if not self.device.gpu or self.config.rollout.engine == "transformers" or pages <= 0:
            return said
        fit, share = self._at_once(pages), self.config.rollout.memory
        if fit >= self.rows:
            return f"{said}, and all that long have room"
        more = math.floor(100 * (self.device.usable - self.standing()) / self.device.memory) / 100
        roomier = self._at_once(int(more * self.device.memory) - self._beside)
        other = f"; {more:g}: for {roomier}" * (more > share and roomier > fit)
        return f"{said}; if all are that long there is room for {fit} at once (rollout.memory={share:.3g}{other})"

    def _at_once(self, pages: int) -> int:
        """Responses at the limit whose keys and values fit; samples of a problem share its prompt's."""
        group = max(1, self.rows // self._prompts)
        return min(
            self.rows, int(pages / (self._cached(self.context - self.prompt) + self._cached(self.prompt) / group))
        )


def saved_bytes(config: Config, size: int) -> float:
    """Bytes of a checkpoint for a trained weight of `size` bytes: the weight, with FSDP2 twice, for others to load and
    to go on with; the optimizer's states, to which ZeRO adds a copy of the weight.
    """
    layout = config.run.layout
    return size * (1 + (layout == "fsdp")) + STATES[config.train.optimizer] + 4 * layout.startswith("zero")


def peak(parts: dict[str, int]) -> int:
    """The most bytes at a time: while sampling, or in an update, which finds no pages."""
    return sum(parts.values()) - min(parts["pages"], parts["gradients"] + parts["pass"])


def _listed(parts: dict[str, int]) -> str:
    return ", ".join(f"{name} {value / GIB:.2f}" for name, value in parts.items() if value)
