"""A Llama model in a GGUF file -> a folder that transformers loads as it is.

The folder holds config.json, generation_config.json, model.safetensors (bfloat16, as the model was published),
tokenizer.json, tokenizer_config.json and chat_template.jinja. transformers can read GGUF itself, but only with a
further package, and its tokenizer then cuts "x,  22" otherwise than the one the model was trained with.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import gguf

CONTROL = 3  # the token type of <|im_start|> and its like
LAYER = {  # GGUF's name within blk.N: transformers' name within model.layers.N
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OUTSIDE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def convert(data: bytes, folder: Path) -> None:
    """Write the model of a GGUF file into the folder."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    metadata, tensors = gguf.read(data)
    found = (metadata["general.architecture"], metadata["tokenizer.ggml.model"], metadata["tokenizer.ggml.pre"])
    if found != ("llama", "gpt2", "smollm"):
        raise ValueError(f"only a llama with SmolLM's tokenizer can be converted; this is {', '.join(found)}")
    heads = {"attn_q": metadata["llama.attention.head_count"], "attn_k": metadata["llama.attention.head_count_kv"]}
    weights = {}
    for name, values in tensors:
        kind = name.split(".")[-2]
        if kind in heads:
            values = _halves(values, heads[kind])
        weights[_name(name)] = torch.from_numpy(np.ascontiguousarray(values)).to(torch.bfloat16)
    _write(folder / "config.json", _config(metadata, tied="lm_head.weight" not in weights))
    _write(folder / "generation_config.json", _ends(metadata))
    _tokenizer(metadata).save(str(folder / "tokenizer.json"))
    _write(folder / "tokenizer_config.json", _tokenizer_config(metadata))
    (folder / "chat_template.jinja").write_text(metadata["tokenizer.chat_template"], encoding="utf-8")
    try:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    except SafetensorError as error:  # how it reports a full disk
        raise OSError(str(error)) from None
    shutil.copymode(folder / "config.json", folder / "model.safetensors")  # it is written for its owner alone


def _name(name: str) -> str:
    parts = name.split(".")  # blk.7.attn_q.weight, or output_norm.weight
    if parts[0] == "blk":
        return f"model.layers.{parts[1]}.{LAYER[parts[2]]}.{parts[3]}"
    return f"{OUTSIDE[parts[0]]}.{parts[1]}"


def _halves(weight: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Undo GGUF's order of the rows: it pairs row 2i with 2i + 1 for the rotation, transformers i with i + dim / 2."""
    rows, columns = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def _ends(metadata: dict[str, Any]) -> dict[str, int]:
    names = {"bos_token_id": "bos_token_id", "eos_token_id": "eos_token_id", "pad_token_id": "padding_token_id"}
    return {ours: metadata[f"tokenizer.ggml.{theirs}"] for ours, theirs in names.items()}


def _config(metadata: dict[str, Any], tied: bool) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "bfloat16",
        "vocab_size": len(metadata["tokenizer.ggml.tokens"]),
        "hidden_size": metadata["llama.embedding_length"],
        "intermediate_size": metadata["llama.feed_forward_length"],
        "num_hidden_layers": metadata["llama.block_count"],
        "num_attention_heads": metadata["llama.attention.head_count"],
        "num_key_value_heads": metadata["llama.attention.head_count_kv"],
        "max_position_embeddings": metadata["llama.context_length"],
        "rms_norm_eps": float(f"{metadata['llama.attention.layer_norm_rms_epsilon']:.6g}"),  # float32's 9.9999997e-06
        "rope_theta": metadata["llama.rope.freq_base"],
        "tie_word_embeddings": tied,
        **_ends(metadata),
    }


def _tokenizer(metadata: dict[str, Any]) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({token: n for n, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(  # what GGUF calls "smollm"
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = zip(tokens, metadata["tokenizer.ggml.token_type"], strict=True)
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token, kind in kinds if kind == CONTROL])
    return tokenizer


def _tokenizer_config(metadata: dict[str, Any]) -> dict[str, Any]:
    ids = {**_ends(metadata), "unk_token_id": metadata["tokenizer.ggml.unknown_token_id"]}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",  # any narrower class would put its own pre-tokenizer in place
        "model_max_length": metadata["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        **{name.removesuffix("_id"): metadata["tokenizer.ggml.tokens"][n] for name, n in ids.items()},
    }


def _write(path: Path, record: dict[str, Any]) -> None:
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
