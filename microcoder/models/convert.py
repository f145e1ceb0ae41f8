"""Convert a GGUF file into a folder that transformers loads. Imports torch.

The folder holds config.json, generation_config.json, model.safetensors (bfloat16), tokenizer.json,
tokenizer_config.json and, if the file has one, chat_template.jinja. transformers can read GGUF itself, but needs a
further package, and its tokenizer then splits "x,  22" of SmolLM2 differently from the one that the model was trained
with.

1. GGUF's llama pairs row 2i of a head with row 2i + 1 in the rotation, transformers row i with i + dim / 2. So the rows
   of q and k are put back into their order. qwen2 and qwen3 need no change.
2. Embeddings are tied if the file has no output.weight. Quantisers may also store a tied tensor twice, as token_embd
   and output in two formats. So if those two differ by no more than the rounding errors of their formats (`FORMATS`),
   the model is tied again, and the finer tensor is taken for both. If they differ by more, both are kept.
3. A vocabulary is filled up to the size of the embeddings with tokens that are not used; they are left out at its end.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .blocks import dequantise
from .gguf import Gguf, GgufTensor, read
from .source import ModelError, Progress

CLASSES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
EMBEDDINGS, OUTPUT, ROPE = "token_embd.weight", "output.weight", "rope_freqs.weight"
OUTSIDE = {EMBEDDINGS: "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
LAYER = {  # GGUF's name within blk.N: transformers' name within model.layers.N
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
}
MORE = {  # what a layer has besides
    "llama": {},
    "qwen2": {f"attn_{part}.bias": f"self_attn.{part}_proj.bias" for part in "qkv"},
    "qwen3": {f"attn_{part}_norm.weight": f"self_attn.{part}_norm.weight" for part in "qk"},
}
COMPARED = 1024  # rows of two tensors, spread evenly, that decide whether they are one
CHUNK = {"cpu": 1 << 20, "cuda": 1 << 23}  # values de-quantised at a time: on a CPU few enough for its cache
TOKEN_UNUSED, TOKEN_CONTROL, TOKEN_USER = 5, 3, 4


def convert(path: Path, folder: Path, progress: Progress) -> None:
    """Write the model of a GGUF file into the folder."""
    began = time.monotonic()
    progress(f"converting {path.name} to bfloat16 safetensors, once")
    file = read(path)
    try:
        weights, config = _weights(file, path, progress), _config(file, path)
        tokenizer, pre = _tokenizer(file.metadata, path)
    except KeyError as error:
        raise ModelError(f"the metadata of {path} lack {error.args[0]}; take a file of a newer converter") from None
    ids, ends = _token_ids(file.metadata), _ends(file.metadata, pre)
    tied = "lm_head.weight" not in weights
    _json(folder / "config.json", {**config, "tie_word_embeddings": tied, **ids})
    _json(folder / "generation_config.json", ids if len(ends) < 2 else {**ids, "eos_token_id": ends})
    (folder / "tokenizer.json").write_text(tokenizer.to_str(pretty=True), encoding="utf-8")
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",  # any narrower class would use its own pre-tokenizer
        "model_max_length": config["max_position_embeddings"],
        "clean_up_tokenization_spaces": False,
        **_token_names(file.metadata),
    }
    _json(folder / "tokenizer_config.json", about)
    if template := file.metadata.get("tokenizer.chat_template"):
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    _save(folder / "model.safetensors", weights)
    progress(f"converted it in {time.monotonic() - began:.1f} s")


# --- weights


class _Weight(NamedTuple):
    tensor: GgufTensor
    heads: int = 0  # whose rows are put back into order; 0: none

    def rows(self) -> Tensor:
        """The rows as the file holds them, (rows, bytes) uint8, in transformers' order."""
        tensor, rows = self.tensor, math.prod(self.tensor.shape[:-1])
        found = torch.frombuffer(tensor.file, dtype=torch.uint8, count=tensor.size, offset=tensor.start).view(rows, -1)
        if self.heads:
            found = found.view(self.heads, -1, 2, found.shape[1]).transpose(1, 2).reshape(rows, -1)
        return found

    def values(self, device: str) -> Iterator[Tensor]:
        """The values in bfloat16, some rows at a time."""
        for part in self.rows().split(max(1, CHUNK[device] // self.tensor.shape[-1])):
            yield dequantise(part.to(device), self.tensor.format).to(torch.bfloat16)


def _weights(file: Gguf, path: Path, progress: Progress) -> dict[str, _Weight]:
    """The weights by their names in transformers."""
    kind = _architecture(file, path)
    layers = file.metadata[f"{kind}.block_count"]
    names = {f"blk.{n}.{a}": f"model.layers.{n}.{b}" for n in range(layers) for a, b in {**LAYER, **MORE[kind]}.items()}
    names |= OUTSIDE
    if missing := [name for name in names if name not in file.tensors]:
        raise ModelError(f"{path} lacks the tensor {missing[0]} of a {kind} model of {layers} layers")
    if strange := [name for name in file.tensors if name not in names and name not in (OUTPUT, ROPE)]:
        raise ModelError(f"{path} has the tensor {strange[0]}, which no plain {kind} model has; take another model")
    heads = {}
    if kind == "llama":
        count, of_keys = _heads(file.metadata, kind)
        heads = {"attn_q": count, "attn_k": of_keys}
    found = {ours: _Weight(file.tensors[name], heads.get(name.split(".")[-2], 0)) for name, ours in names.items()}
    if OUTPUT not in file.tensors:
        return found
    inner, outer = file.tensors[EMBEDDINGS], file.tensors[OUTPUT]
    if inner.shape == outer.shape:
        differ, most = difference(inner, outer), inner.format.error + outer.format.error
        finer = min(inner, outer, key=lambda tensor: tensor.format.error)
        if differ <= most:
            progress(
                f"{EMBEDDINGS} ({inner.format.name}) and {OUTPUT} ({outer.format.name}) differ by {differ:.1%}, which "
                f"is rounding: the embeddings are tied, from {finer.format.name}"
            )
            return {**found, OUTSIDE[EMBEDDINGS]: _Weight(finer)}
    return {**found, "lm_head.weight": _Weight(outer)}


def difference(one: GgufTensor, other: GgufTensor) -> float:
    """Return the difference of two tensors relative to the norm of the finer one, by some of their rows."""
    coarse, fine = sorted((one, other), key=lambda tensor: -tensor.format.error)
    chosen = torch.linspace(0, one.shape[0] - 1, min(COMPARED, one.shape[0])).long()
    a, b = (dequantise(_Weight(tensor).rows()[chosen], tensor.format) for tensor in (coarse, fine))
    return ((a - b).norm() / b.norm()).item()


def _save(path: Path, weights: dict[str, _Weight]) -> None:
    """Write a safetensors file, a chunk at a time: 8 bytes with the length of the header, the header, the values."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, weight in sorted(weights.items()):
        begin, end = end, end + 2 * math.prod(weight.tensor.shape)
        header[name] = {"dtype": "BF16", "shape": weight.tensor.shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    pinned = torch.empty(0, dtype=torch.bfloat16, pin_memory=device == "cuda")
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, weight in sorted(weights.items()):
            for values in weight.values(device):
                if device == "cuda":
                    if values.numel() > pinned.numel():
                        pinned = torch.empty(values.numel(), dtype=torch.bfloat16, pin_memory=True)
                    values = pinned[: values.numel()].copy_(values.flatten())
                file.write(values.view(torch.uint8).numpy().data)
    if device == "cuda":
        torch.cuda.empty_cache()  # training measures what is free


# --- configuration


def _architecture(file: Gguf, path: Path) -> str:
    kind = file.metadata["general.architecture"]
    if kind not in CLASSES:
        raise ModelError(f"{path} is a model of the architecture {kind}; supported are {', '.join(CLASSES)}")
    return str(kind)


def _heads(metadata: dict[str, Any], kind: str) -> tuple[int, int]:
    """(heads, heads of keys and values)"""
    heads = metadata[f"{kind}.attention.head_count"]
    return heads, metadata.get(f"{kind}.attention.head_count_kv", heads)


def _config(file: Gguf, path: Path) -> dict[str, Any]:
    kind = _architecture(file, path)
    own = {key.removeprefix(kind + "."): value for key, value in file.metadata.items() if key.startswith(kind + ".")}
    heads, of_keys = _heads(file.metadata, kind)
    width = own["embedding_length"]
    dim = own.get("attention.key_length", width // heads)
    theta = own.get("rope.freq_base", 10000.0)
    config = {
        "architectures": [CLASSES[kind]],
        "model_type": kind,
        "dtype": "bfloat16",
        "vocab_size": file.tensors[EMBEDDINGS].shape[0],
        "hidden_size": width,
        "intermediate_size": own["feed_forward_length"],
        "num_hidden_layers": own["block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": of_keys,
        "max_position_embeddings": own["context_length"],
        "rms_norm_eps": float(f"{own['attention.layer_norm_rms_epsilon']:.6g}"),  # float32's 9.9999997e-06
        "rope_theta": theta,
    }
    if dim * heads != width or kind == "qwen3":  # transformers' own default for Qwen3 is 128
        config["head_dim"] = dim
    scaling = own.get("rope.scaling.type", "none")
    if scaling != "none":
        raise ModelError(f"{path} scales its positions by {scaling!r}, which is not supported; take another model")
    if ROPE in file.tensors:
        config["rope_scaling"] = _llama3_scaling(file.tensors[ROPE], theta, dim, path)
    return config


def _llama3_scaling(tensor: GgufTensor, theta: float, dim: int, path: Path) -> dict[str, Any]:
    """The settings of Llama 3.1 to 3.3, which GGUF replaces by a divisor for each frequency."""
    found = dequantise(_Weight(tensor).rows(), tensor.format)[0].double()
    low, high, context, factor = 1.0, 4.0, 8192, round(found.max().item())
    waves = 2 * math.pi * theta ** (torch.arange(0, dim, 2, dtype=torch.double) / dim)
    smooth = ((context / waves - low) / (high - low)).clamp(0, 1)
    if len(found) != len(smooth) or not torch.allclose(found, 1 / ((1 - smooth) / factor + smooth), rtol=1e-3):
        raise ModelError(f"{path} has {ROPE} that are not those of Llama 3, which is not supported; take another model")
    return {
        "rope_type": "llama3",
        "factor": float(factor),
        "low_freq_factor": low,
        "high_freq_factor": high,
        "original_max_position_embeddings": context,
    }


# --- tokenizer

_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class _Pre(NamedTuple):
    """How a tokenizer cuts a text before it merges bytes."""

    pattern: str = ""  # of the pieces; "": GPT-2's, which is part of the library
    digits: bool = False  # each digit is a piece
    nfc: bool = False  # the text is normalised first
    whole: bool = False  # a piece that is in the vocabulary is one token, whatever the merges
    bos: bool = False  # texts begin with the bos token, unless the file says otherwise
    ends: tuple[str, ...] = ()  # tokens that end a response, besides the file's eos token


_LLAMA3 = _Pre(
    _WORDS.format(digits="{1,3}"), whole=True, bos=True, ends=("<|end_of_text|>", "<|eom_id|>", "<|eot_id|>")
)
PRE = {
    "qwen2": _Pre(_WORDS.format(digits=""), nfc=True, ends=("<|endoftext|>",)),
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "smollm": _Pre(digits=True),
    "gpt-2": _Pre(),
}


def _tokenizer(metadata: dict[str, Any], path: Path) -> tuple[Any, _Pre]:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    if (model := metadata["tokenizer.ggml.model"]) != "gpt2":
        raise ModelError(f"{path} has a tokenizer of the kind {model!r}; only byte-level BPE ('gpt2') is supported")
    pre = PRE.get(name := metadata["tokenizer.ggml.pre"])
    if not pre:
        raise ModelError(f"{path} has the pre-tokenizer {name!r}; supported are {', '.join(PRE)}")
    if metadata["general.architecture"] != "llama" and name != "qwen2":  # transformers then takes Qwen's own
        raise ModelError(f"{path} is a Qwen with the pre-tokenizer {name!r}; only 'qwen2' is supported")
    kinds = metadata["tokenizer.ggml.token_type"]
    used = len(kinds)
    while used and kinds[used - 1] == TOKEN_UNUSED:
        used -= 1
    tokens = metadata["tokenizer.ggml.tokens"][:used]
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    vocabulary = {token: n for n, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=pre.whole))
    if pre.nfc:
        tokenizer.normalizer = normalizers.NFC()
    steps: list[Any] = [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not pre.pattern)]
    if pre.pattern:
        steps.insert(0, pre_tokenizers.Split(Regex(pre.pattern), "isolated"))
    elif pre.digits:
        steps.insert(0, pre_tokenizers.Digits(individual_digits=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    typed = list(zip(tokens, kinds, strict=False))
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token, kind in typed if kind == TOKEN_CONTROL])
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token, kind in typed if kind == TOKEN_USER])
    bos = _token_names(metadata).get("bos_token")
    if bos and metadata.get("tokenizer.ggml.add_bos_token", pre.bos):
        pair = f"{bos} $A {bos} $B"
        tokenizer.post_processor = processors.TemplateProcessing(f"{bos} $A", pair, [(bos, vocabulary[bos])])
    return tokenizer, pre


def _token_ids(metadata: dict[str, Any]) -> dict[str, int]:
    keys = {"bos_token_id": "bos_token_id", "eos_token_id": "eos_token_id", "pad_token_id": "padding_token_id"}
    found = {ours: metadata.get(f"tokenizer.ggml.{theirs}") for ours, theirs in keys.items()}
    return {name: n for name, n in found.items() if n is not None}


def _token_names(metadata: dict[str, Any]) -> dict[str, str]:
    ids = {**_token_ids(metadata), "unk_token_id": metadata.get("tokenizer.ggml.unknown_token_id")}
    tokens = metadata["tokenizer.ggml.tokens"]
    return {name.removesuffix("_id"): tokens[n] for name, n in ids.items() if n is not None}


def _ends(metadata: dict[str, Any], pre: _Pre) -> list[int]:
    """The tokens that end a response, the eos token first."""
    keys = [f"tokenizer.ggml.{name}_token_id" for name in ("eos", "eot", "eom")]
    tokens = metadata["tokenizer.ggml.tokens"]
    named = [tokens.index(token) for token in pre.ends if token in tokens]
    return list(dict.fromkeys([*(metadata[key] for key in keys if key in metadata), *named]))


def _json(path: Path, record: dict[str, Any]) -> None:
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
