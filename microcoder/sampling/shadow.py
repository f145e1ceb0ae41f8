"""A second copy of a model's weights, made for decoding: bfloat16, with fused layers, refreshed in place.

Training keeps its fp32 weights: at a learning rate of 1e-6 most steps are smaller than bfloat16 can express.

1. Projections of the same input are one product (query, key and value; gate and up).
2. Norms, rotary positions and the gate's product are kernels of ours, each taken only if it gives what the model's own
   does on random input: another model with the same names keeps its own. What a norm reads is added up on the way.
3. Attention goes through transformers' attention interface, so any model that uses it and declares no windows works.
4. Of a model whose weights lie in shares on several ranks (FSDP2, ZeRO-3) the copy is whole on each: weight after
   weight is gathered, copied, and dropped again. All ranks have to do so at the same time.
"""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import AttentionInterface

NAME = "microcoder_decode"
# all but cuDNN's, which takes 0.1 s to plan for each new shape, and prompts are always of another
BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]

TOGETHER = 2**26  # weights that are copied at once: with an adapter each of them is made anew


class NotCapturable(RuntimeError):
    """This model cannot be sampled through CUDA graphs; the message says why."""


class Shadow:
    """A copy of `model` for decoding, in bfloat16 as a rule. With `own_attention` it is called as the model is."""

    def __init__(self, model: Any, dtype: torch.dtype, fused: bool, own_attention: bool = False) -> None:
        plain = model.get_base_model() if hasattr(model, "get_base_model") else model  # peft's wrapper, or the model
        config = copy.deepcopy(plain.config)  # which is changed below, and the model's own attention must not be
        if not own_attention:
            refuse(config)
            config._attn_implementation = NAME
        device = next(plain.parameters()).device
        self.model: Any = _empty(type(plain), config, dtype)
        self.model.to_empty(device=device)
        self.model.tie_weights()
        self.model.eval().requires_grad_(False)
        for (_, to), (_, of) in zip(self.model.named_buffers(), plain.named_buffers(), strict=True):
            to.data = of.data.clone()  # such as rotary frequencies, which stay as exact as they are
        self.rotary: tuple[Any, Any, Any] | None = None
        self.waiting: list[torch.Tensor] = []  # what attention or an MLP gave, until the next norm adds it
        with torch.no_grad():
            self.refresh(model)
            if fused:
                self._fuse()

    def refresh(self, model: Any) -> None:
        """Take over the weights of `model`, an adapter's included."""
        parts = dict(self.model.named_parameters())
        together = 1 if sharded(model) else TOGETHER  # what was gathered is gone with the next one
        to, of, count = [], [], 0
        for name, weight in weights(model, self.model.dtype):
            if name not in parts:
                raise NotCapturable(f"its weight {name} has no place in {type(self.model).__name__}")
            to.append(parts[name])
            of.append(weight)
            count += weight.numel()
            if count >= together:
                torch._foreach_copy_(to, of)
                to, of, count = [], [], 0
        if to:
            torch._foreach_copy_(to, of)

    def logits(self, ids: torch.Tensor, positions: torch.Tensor, cache: Any) -> torch.Tensor:
        """(n, vocabulary), in fp32: of bfloat16 logits many are equal. ids, positions (n, 1)"""
        hidden = self.hidden(ids, positions, cache)[:, -1]
        weight = self.model.get_output_embeddings().weight
        if hidden.is_cuda and hidden.dtype != torch.float32:
            return torch.mm(hidden, weight.t(), out_dtype=torch.float32)
        return functional.linear(hidden, weight).float()

    def hidden(self, ids: torch.Tensor, positions: torch.Tensor, cache: Any) -> torch.Tensor:
        """(n, t, hidden); `cache` gets the keys and values."""
        self.waiting.clear()  # of a call that failed
        with self._rotating(cache):
            output = self.model.get_decoder()(
                input_ids=ids, position_ids=positions, past_key_values=cache, use_cache=True
            )
        found: torch.Tensor = output.last_hidden_state
        return found

    def _fuse(self) -> None:
        from . import kernels

        for module in list(self.model.modules()):
            children = dict(module.named_children())
            if {"q_proj", "k_proj", "v_proj"} <= children.keys():
                _join([children[name] for name in ("q_proj", "k_proj", "v_proj")])
            if {"gate_proj", "up_proj", "down_proj"} <= children.keys():
                _replace(module, _mlp(module, children, kernels.silu_times))
        if self._fuse_norms(kernels.rms_norm):
            self._fuse_sums(kernels.rms_norm)
        self.rotary = _rotary(self.model, kernels.rotate)

    def _fuse_norms(self, rms_norm: Callable[..., torch.Tensor]) -> bool:
        """If all norms are RMS norms, what flows between the layers can be float32, as it is in training."""
        norms = [module for name, module in self.model.named_modules() if name.endswith("norm")]
        dtype = self.model.dtype

        def fused(module: Any) -> Callable[[torch.Tensor], torch.Tensor]:
            return lambda x: rms_norm(x, module.weight, module.variance_epsilon, dtype)

        if not all(hasattr(norm, "variance_epsilon") and _replace(norm, fused(norm)) for norm in norms):
            return False
        for norm in norms:
            norm.weight.data = norm.weight.data.float()
        embed = self.model.get_input_embeddings()
        embed.forward = lambda ids: functional.embedding(ids, embed.weight).float()
        return True

    def _fuse_sums(self, rms_norm: Callable[..., torch.Tensor]) -> None:
        """Let each norm add what the part before it gave to the stream: one kernel for two, and one pass over it."""
        decoder = self.model.get_decoder()
        parts = {"input_layernorm", "self_attn", "post_attention_layernorm", "mlp"}
        if any(set(dict(layer.named_children())) != parts for layer in decoder.layers):
            return
        dtype = self.model.dtype
        waiting = self.waiting

        def normed(norm: Any, stream: torch.Tensor) -> torch.Tensor:
            more = waiting.pop() if waiting else None
            return rms_norm(stream, norm.weight, norm.variance_epsilon, dtype, more)

        def fused(layer: Any) -> Callable[..., torch.Tensor]:
            def forward(hidden_states: torch.Tensor, **more: Any) -> torch.Tensor:
                found, _ = layer.self_attn(hidden_states=normed(layer.input_layernorm, hidden_states), **more)
                waiting.append(found)
                waiting.append(layer.mlp(normed(layer.post_attention_layernorm, hidden_states)))
                return hidden_states

            return forward

        first = decoder.layers[0]
        stream = torch.randn(2, 5, self.model.config.hidden_size, device=self.model.device)
        angles = decoder.rotary_emb(stream, torch.arange(5, device=stream.device)[None])
        try:
            wanted = first(stream, position_embeddings=angles, attention_mask=None) - stream
            kept = stream.clone()
            found = fused(first)(stream, position_embeddings=angles, attention_mask=None) + waiting.pop() - kept
        except Exception:  # another layer under the same names
            waiting.clear()
            return
        if torch.linalg.vector_norm(found - wanted) > 2e-2 * torch.linalg.vector_norm(wanted):
            return
        for layer in decoder.layers:
            layer.forward = fused(layer)
        decoder.norm.forward = lambda stream: normed(decoder.norm, stream)

    @contextlib.contextmanager
    def _rotating(self, cache: Any) -> Iterator[None]:
        """Our rotation in the place of the function that the model's file has for it; a cache may do it later."""
        if self.rotary is None:
            yield
            return
        place, own, ours = self.rotary
        place.apply_rotary_pos_emb = getattr(cache, "rotate", ours)
        try:
            yield
        finally:
            place.apply_rotary_pos_emb = own


def _empty(kind: Any, config: Any, dtype: torch.dtype) -> Any:
    """A model without weights. Not by `from_config`, which deals them out to the ranks where ZeRO-3 is on."""
    kind = next(each for each in kind.__mro__ if not issubclass(each, FSDPModule))  # FSDP2 makes a class of its own
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device("meta"):
            return kind(config)
    finally:
        torch.set_default_dtype(before)


def sharded(model: Any) -> bool:
    """Whether a rank holds only its share of the weights."""
    return any(isinstance(weight, DTensor) or hasattr(weight, "ds_id") for weight in model.parameters())


def weights(model: Any, dtype: torch.dtype | None = None) -> Iterator[tuple[str, torch.Tensor]]:
    """Every weight by its name in the plain model, with the adapter's part added; whole, where it lies in shares.

    A weight that had to be gathered lasts until the next one. `dtype`: in which it travels then.
    """
    plain = model.get_base_model() if hasattr(model, "get_base_model") else model
    modules = dict(plain.named_modules())
    for name, weight in plain.named_parameters():
        if ".lora_" in name and ".lora_magnitude" not in name:  # which is DoRA's, and more than a sum
            continue
        owner, _, last = name.rpartition(".")
        layer = modules.get(owner.removesuffix(".base_layer"))
        adapted = owner.endswith(".base_layer") and last == "weight"
        with _gathered(layer.parameters() if adapted else [weight]):  # type: ignore[union-attr]
            value = weight.detach()
            if adapted:
                for adapter in layer.active_adapters:  # type: ignore[union-attr]
                    value = value + layer.get_delta_weight(adapter)  # type: ignore[union-attr]
            if isinstance(value, DTensor):
                share: Any = value.to(dtype or value.dtype)
                value = share.full_tensor()
            yield name.replace(".base_layer.", "."), value


@contextlib.contextmanager
def _gathered(parameters: Iterable[Any]) -> Iterator[None]:
    """Parameters of which DeepSpeed keeps shares are whole meanwhile."""
    shares = [weight for weight in parameters if hasattr(weight, "ds_id")]
    if not shares:
        yield
        return
    import deepspeed

    with deepspeed.zero.GatheredParameters(shares):
        yield


def attention(module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float, **_: Any) -> tuple[Any, None]:
    """What transformers calls. While decoding, the cache gives itself as the key: see `Cache.update`."""
    if not isinstance(key, torch.Tensor):
        return key.attend(query, scaling), None
    group = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    with sdpa_kernel(BACKENDS):
        result = functional.scaled_dot_product_attention(query, key, value, is_causal=query.shape[2] > 1, scale=scaling)
    return result.transpose(1, 2), None


AttentionInterface.register(NAME, attention)


def head_width(config: Any) -> int:
    return int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)


def refuse(config: Any) -> None:
    """What the kernels would get wrong on long texts only, where no check at the start could see it."""
    kinds = set(getattr(config, "layer_types", None) or []) - {"full_attention"}
    if kinds:
        raise NotCapturable(f"it has layers of the kind {', '.join(sorted(kinds))}")
    if getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True):
        raise NotCapturable(f"its attention has a window of {config.sliding_window} tokens")
    if not hasattr(config, "num_key_value_heads") or getattr(config, "is_encoder_decoder", False):
        raise NotCapturable("it is not a decoder with key-value heads")
    width = head_width(config)
    if width & (width - 1) or not 32 <= width <= 256:
        raise NotCapturable(f"its heads are {width} wide, and the kernels need a power of two from 32 to 256")
    scaling = getattr(config, "rope_scaling", None) or getattr(config, "rope_parameters", None) or {}
    if scaling.get("rope_type", "default") in ("dynamic", "longrope"):
        raise NotCapturable("its rotary frequencies change with the length of the text")


def _join(layers: list[Any]) -> None:
    """Make several linear layers of one input one product. Their weights become views of the joined one."""
    if any(type(layer) is not nn.Linear for layer in layers) or len({layer.in_features for layer in layers}) > 1:
        return
    sizes = [layer.out_features for layer in layers]
    weight = torch.cat([layer.weight for layer in layers])
    biased = all(layer.bias is not None for layer in layers)
    if not biased and any(layer.bias is not None for layer in layers):
        return
    bias = torch.cat([layer.bias for layer in layers]) if biased else None
    for n, layer in enumerate(layers):
        layer.weight.data = weight.split(sizes)[n]
        if bias is not None:
            layer.bias.data = bias.split(sizes)[n]
    parts: list[torch.Tensor] = []

    def first(x: torch.Tensor) -> torch.Tensor:
        parts[:] = functional.linear(x, weight, bias).split(sizes, -1)
        return parts[0]

    layers[0].forward = first  # which is always called first, with the input of all
    for n, layer in enumerate(layers[1:], 1):
        layer.forward = lambda x, n=n: parts[n]


def _mlp(module: Any, children: dict[str, Any], silu_times: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    gate, up, down = children["gate_proj"], children["up_proj"], children["down_proj"]
    if any(type(layer) is not nn.Linear or layer.bias is not None for layer in (gate, up)):
        return None
    weight = torch.cat([gate.weight, up.weight])
    gate.weight.data, up.weight.data = weight.split([gate.out_features, up.out_features])
    return lambda x: down(silu_times(functional.linear(x, weight)))


def _replace(module: Any, ours: Any) -> bool:
    """Replace the forward of `module` by `ours`, if both give the same."""
    if ours is None:
        return False
    weight = next(module.parameters())
    generator = torch.Generator(weight.device).manual_seed(0)
    x = torch.randn(3, 5, weight.shape[-1], device=weight.device, generator=generator).to(weight.dtype)
    wanted = module.forward(x)
    tolerance = 1e-4 if weight.dtype == torch.float32 else 2e-2
    if torch.linalg.vector_norm((ours(x) - wanted).float()) > tolerance * torch.linalg.vector_norm(wanted.float()):
        return False
    module.forward = ours
    return True


def _rotary(model: Any, ours: Callable[..., Any]) -> tuple[Any, Any, Any] | None:
    """(the module that has the function, the function, ours), if they do the same."""
    decoder = model.get_decoder()
    attention_ = next((m for m in decoder.modules() if hasattr(m, "q_proj")), None)
    place = sys.modules[type(attention_).__module__]
    own, frequencies = getattr(place, "apply_rotary_pos_emb", None), getattr(decoder, "rotary_emb", None)
    if own is None or frequencies is None:
        return None
    weight = next(model.parameters())
    width = attention_.head_dim  # type: ignore[union-attr]
    generator = torch.Generator(weight.device).manual_seed(0)
    q = torch.randn(2, 3, 7, width, device=weight.device, generator=generator).to(weight.dtype)
    k = torch.randn(2, 1, 7, width, device=weight.device, generator=generator).to(weight.dtype)
    positions = torch.arange(7, device=weight.device)[None].expand(2, 7) * 11
    wanted = own(q, k, *frequencies(q, positions))
    exact = frequencies.forward
    like = torch.empty((), device=weight.device)  # only its type and device are looked at
    try:
        found = ours(q.clone(), k.clone(), *exact(like, position_ids=positions))
    except Exception:
        return None
    for a, b in zip(wanted, found, strict=True):
        if torch.linalg.vector_norm((a - b).float()) > 2e-2 * torch.linalg.vector_norm(a.float()):
            return None
    frequencies.forward = lambda x, position_ids: exact(like, position_ids=position_ids)  # cosines in fp32
    return place, own, ours
