"""Greedy: the same tokens as transformers' `generate`, on random models of three architectures, all in float32.

Prompts of different length, more of them than there are slots. Where two sequences part, the likeliest two tokens at
that place may be tied (within 1e-4): counted apart, as rounding decides there.
"""

from __future__ import annotations

import random
from typing import Any

import torch
from transformers import AutoModelForCausalLM, GenerationConfig, LlamaConfig, Qwen2Config, Qwen3Config

from benchmarks.sampling.bench import Bench, table
from microcoder.sampling import GraphSampler, Sampling

PROMPTS, LIMIT, SLOTS, TIED = 16, 64, 8, 1e-4
SIZES = {
    "vocab_size": 1024,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 512,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}


def run(bench: Bench) -> None:
    rows: list[dict[str, Any]] = []
    for kind, tied in ((LlamaConfig, True), (Qwen2Config, True), (Qwen3Config, False)):
        name = kind.__name__.removesuffix("Config")
        with bench.attempt(f"exact: greedy, {name}"):
            model = tiny(kind(**SIZES, tie_word_embeddings=tied), bench.device)
            rows.append({"model": name, **compare(model)})
            bench.keep("exact", greedy=rows)
    table(rows)


def tiny(config: Any, device: torch.device) -> Any:
    """Random in every weight: norms are not 1 and biases not 0, as they would be at first."""
    torch.manual_seed(0)
    config.initializer_range = 0.1
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="sdpa")
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter.data += 0.2 * torch.randn_like(parameter)
    return model.to(device).eval()


@torch.no_grad()
def compare(model: Any) -> dict[str, int]:
    draw = random.Random(0)
    prompts = [[draw.randrange(SIZES["vocab_size"]) for _ in range(3 * n + 1)] for n in range(PROMPTS)]
    sampler = GraphSampler(model, [], batch=SLOTS, dtype=torch.float32)
    ours = {each.prompt: each.ids for each in sampler(prompts, Sampling(0.0, LIMIT))}
    theirs = by_generate(model, prompts)
    counts = {"sequences": PROMPTS, "equal": 0, "part at a tie": 0, "differ": 0}
    for n, prompt in enumerate(prompts):
        if ours[n] == theirs[n]:
            counts["equal"] += 1
            continue
        at = next(at for at in range(LIMIT) if ours[n][at : at + 1] != theirs[n][at : at + 1])
        ids = torch.tensor([prompt + theirs[n][:at]], device=model.device)
        best = model(input_ids=ids, use_cache=False).logits[0, -1].topk(2).values
        counts["part at a tie" if float(best[0] - best[1]) < TIED else "differ"] += 1
    return counts


def by_generate(model: Any, prompts: list[list[int]]) -> list[list[int]]:
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in prompts], device=model.device)
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts], device=model.device)
    model.generation_config = GenerationConfig(max_new_tokens=LIMIT, do_sample=False, pad_token_id=0)
    return model.generate(input_ids=ids, attention_mask=mask)[:, longest:].tolist()
