"""The fused functions of an update against plain operations, in Triton's interpreter.

Triton decides when it is imported whether it interprets, so all checks run in a process of their own: this file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from model_folders import ROOT
from tiny_models import tiny
from torch import Tensor
from torch.nn import functional
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from microcoder.grpo import token_logprobs
from microcoder.training import packed

fused = pytest.importorskip("microcoder.training.fused", reason="the kernels need Triton: pip install triton")


@pytest.fixture(scope="module")
def found() -> dict[str, list[float]]:
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    return dict(json.loads(subprocess.check_output([sys.executable, __file__], env=environment)))


def apart(ours: Callable[..., Tensor], plain: Callable[..., Tensor], *inputs: Tensor) -> list[float]:
    """Relative differences of the result and of each gradient; `plain` is computed in float32."""
    mine = [x.requires_grad_() for x in inputs]
    wide = [x.detach().float().requires_grad_() for x in inputs]
    results = [ours(*mine), plain(*wide)]
    grad = torch.randn(results[0].shape, generator=torch.Generator().manual_seed(1)).to(results[0].dtype)
    gradients = [
        torch.autograd.grad(result, of, grad.to(result.dtype)) for result, of in zip(results, (mine, wide), strict=True)
    ]
    pairs = zip([results[0], *gradients[0]], [results[1], *gradients[1]], strict=True)
    return [float((a.float() - b).norm() / b.norm()) for a, b in pairs]


def checks() -> dict[str, list[float]]:
    rng = torch.Generator().manual_seed(0)

    def some(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=rng)

    angles = some(1, 11, 16).repeat(1, 1, 2)
    cos, sin = angles.cos(), angles.sin()
    out = {}
    for dtype in (torch.float32, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        out[f"norm {name}"] = apart(
            lambda x, w, dtype=dtype: fused.norm(x, w, 1e-5, dtype),
            lambda x, w: x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * w,
            some(2, 37, 96).to(dtype),
            some(96),
        )
        out[f"gated {name}"] = apart(
            fused.gated, lambda a, b: functional.silu(a) * b, some(5, 700).to(dtype), some(5, 700).to(dtype)
        )
        out[f"rotate {name}"] = apart(
            lambda x: fused.rotate(x.transpose(1, 2), cos, sin),
            lambda x: apply_rotary_pos_emb(x.transpose(1, 2), x.transpose(1, 2), cos, sin)[0],
            some(1, 11, 3, 32).to(dtype),
        )
    for family in ("llama", "qwen2", "qwen3"):
        out[f"model {family}"] = whole(family)
    targets = torch.randint(30, (11,), generator=rng)
    exact = [some(11, 8).bfloat16().float(), some(30, 8).bfloat16().float()]
    packed.PIECE = 4
    for dtype in (torch.float32, torch.bfloat16):  # which has these factors exactly, and rounds what comes back
        out[f"head {str(dtype).removeprefix('torch.')}"] = apart(
            lambda states, weight, dtype=dtype: packed._Head.apply(states, weight, targets, 0.7, dtype),
            lambda states, weight: token_logprobs((states @ weight.t())[None], targets[None], 0.7)[0],
            *exact,
        )
    return out


def whole(family: str) -> list[float]:
    """A model with fused functions against one without, logits and gradients."""
    ids = torch.randint(0, 60, (1, 9), generator=torch.Generator().manual_seed(0))
    found = []
    for ours in (False, True):
        model: Any = tiny(family)
        if ours:
            fused.active, fused.torch.get_autocast_dtype = lambda x: True, lambda _: torch.float32
            fused.fuse(model)
        logits = model(ids, use_cache=False).logits
        logits.square().mean().backward()
        found.append([logits.detach(), *(weight.grad for weight in model.parameters())])
    return [float((a - b).norm() / b.norm()) for a, b in zip(*found, strict=True) if b.norm() > 1e-6]


@pytest.mark.parametrize("what", ["norm", "gated", "rotate", "head"])
def test_results_and_gradients_are_those_of_plain_operations(found: dict[str, list[float]], what: str) -> None:
    assert max(found[f"{what} float32"]) < 1e-6
    assert max(found[f"{what} bfloat16"]) < 5e-3


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_a_model_computes_the_same_with_them(found: dict[str, list[float]], family: str) -> None:
    assert 0 < max(found[f"model {family}"]) < 1e-4  # not 0: they were used


if __name__ == "__main__":
    print(json.dumps(checks()))
