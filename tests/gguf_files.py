"""Small models as GGUF files, written with the gguf package."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType
from tiny_models import tiny
from tokenizers.pre_tokenizers import ByteLevel

TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
CODE = "def f(x):\n    if x == 1024:\n\treturn [1,  22]\n\n\n# ñ 漢字 🙂\r\n"
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool>"]  # the last is the user's own
MERGES = ["Ġ Ġ", "ĠĠ Ġ", "2 2", "r e", "' s", "1 22", "l l", "Ċ Ċ"]
TOKENS = [*SPECIAL, *sorted(ByteLevel.alphabet()), *(merge.replace(" ", "") for merge in MERGES), "whole"]
TYPES = [3, 3, 3, 4] + [1] * (len(TOKENS) - 4)
NAMES = {
    "embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output", "input_layernorm": "attn_norm",
    "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output", "q_norm": "attn_q_norm",
    "k_norm": "attn_k_norm", "post_attention_layernorm": "ffn_norm", "gate_proj": "ffn_gate", "up_proj": "ffn_up",
    "down_proj": "ffn_down",
}  # fmt: skip
SHAPE = {
    "vocab_size": len(TOKENS) + 5,  # embeddings are often longer than the vocabulary
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
}


def stored(values: np.ndarray, form: str) -> tuple[np.ndarray, np.ndarray]:
    """(the bytes in this format, the values that they stand for)"""
    kind = GGMLQuantizationType[form]
    data = gguf.quants.quantize(values, kind)
    return data, gguf.quants.dequantize(data, kind).reshape(values.shape)


def metadata_of(config: Any, pre: str) -> dict[str, Any]:
    kind = config.model_type
    return {
        f"{kind}.block_count": config.num_hidden_layers,
        f"{kind}.context_length": config.max_position_embeddings,
        f"{kind}.embedding_length": config.hidden_size,
        f"{kind}.feed_forward_length": config.intermediate_size,
        f"{kind}.attention.head_count": config.num_attention_heads,
        f"{kind}.attention.head_count_kv": config.num_key_value_heads,
        f"{kind}.attention.key_length": config.head_dim,
        f"{kind}.attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        f"{kind}.rope.freq_base": float(config.rope_parameters["rope_theta"]),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": TOKENS + [f"[PAD{n}]" for n in range(5)],
        "tokenizer.ggml.token_type": TYPES + [5] * 5,
        "tokenizer.ggml.merges": MERGES,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.padding_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.chat_template": TEMPLATE,
    }


def write_gguf(
    path: Path,
    family: str = "qwen2",
    *,
    pre: str = "qwen2",
    formats: dict[str, str] | None = None,
    architecture: str = "",
    metadata: dict[str, Any] | None = None,
    extra: dict[str, tuple[np.ndarray, GGMLQuantizationType | None]] | None = None,
    without: str = "",
    options: dict[str, Any] | None = None,
    **changes: Any,
) -> Any:
    """Write a small random model; return it with the weights that bfloat16 makes of the file's.

    formats   of tensors, by their GGUF names or what these end in; F32 if not given
    metadata  keys to change; None leaves one out
    """
    model = tiny(family, **SHAPE | changes)
    config, half = model.config, model.config.head_dim // 2
    writer = gguf.GGUFWriter(path, architecture or family, **options or {})
    for key, value in {**metadata_of(config, pre), **(metadata or {})}.items():
        match value:
            case None:
                pass
            case str():
                writer.add_string(key, value)
            case bool():
                writer.add_bool(key, value)
            case int():
                writer.add_uint32(key, value)
            case float():
                writer.add_float32(key, value)
            case _:
                writer.add_array(key, value)
    heads = {"attn_q.weight": config.num_attention_heads, "attn_k.weight": config.num_key_value_heads}
    for name, parameter in model.named_parameters():
        parts = name.split(".")
        short = f"{NAMES[parts[-2]]}.{parts[-1]}"
        full = f"blk.{parts[2]}.{short}" if "layers" in parts else short
        form = next((form for end, form in (formats or {}).items() if full.endswith(end)), "F32")
        data, values = stored(parameter.detach().numpy(), form)
        if family == "llama" and short in heads:  # row i of a head stands beside row i + half in the file
            data = data.reshape(heads[short], 2, half, -1).swapaxes(1, 2).reshape(data.shape)
        if full != without:
            writer.add_tensor(full, data, raw_dtype=GGMLQuantizationType[form])
        parameter.data = torch.tensor(values).to(torch.bfloat16).float()
    for name, (data, kind) in (extra or {}).items():
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


def random_blocks(form: str, rows: int, blocks: int, seed: int = 0) -> np.ndarray:
    """Rows of random bytes whose scales are finite numbers."""
    kind = GGMLQuantizationType[form]
    values, size = gguf.GGML_QUANT_SIZES[kind]
    random = np.random.default_rng(seed)
    if values == 1:
        numbers = random.normal(size=rows * blocks).astype("<f4")
        return stored(numbers, form)[0].reshape(rows, -1).view(np.uint8)
    found = random.integers(0, 256, (rows * blocks, size), dtype=np.uint8)
    scales = {"Q6_K": [208]}.get(form, [0, 2] if form in ("Q4_1", "Q5_1", "Q4_K", "Q5_K") else [0])
    for at in scales:
        found[:, at : at + 2] = random.normal(size=(len(found), 1)).astype("<f2").view(np.uint8)
    assert math.prod(found.shape) == rows * blocks * size
    return found.reshape(rows, -1)
