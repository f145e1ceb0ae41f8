"""Sending a model to the hub: its real client, and a small server that speaks what the client needs."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from click.testing import CliRunner

from microcoder.cli import cli
from microcoder.runs import RunError
from microcoder.training.card import check_name

SEND = "import sys; from microcoder.training.card import send; print(send(*sys.argv[1:]))"


class Hub(ThreadingHTTPServer):
    """Takes what is sent with the token `good`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.made: dict = {}
        self.large: dict[str, bytes] = {}
        self.files: dict[str, bytes] = {}


class Asked(BaseHTTPRequestHandler):
    server: Hub

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path, hub = self.path.partition("?")[0], self.server
        if self.headers["Authorization"] != "Bearer good":
            return self.answer({"error": "Invalid username or password."}, 401)
        if path == "/api/repos/create":
            hub.made = json.loads(body)
            return self.answer({"url": f"{hub.address}/me/model", "name": "me/model"})
        if path == "/api/validate-yaml":  # the head of the model card
            return self.answer({"errors": [], "warnings": []})
        if path == "/api/models/me/model/preupload/main":
            files = [
                {"path": file["path"], "uploadMode": "lfs" if file["size"] > 1000 else "regular", "shouldIgnore": False}
                for file in json.loads(body)["files"]
            ]
            return self.answer({"files": files})
        if path == "/me/model.git/info/lfs/objects/batch":
            objects = [
                {**each, "actions": {"upload": {"href": f"{hub.address}/store/{each['oid']}"}}}
                for each in json.loads(body)["objects"]
            ]
            return self.answer({"transfer": "basic", "objects": objects})
        assert path == "/api/models/me/model/commit/main", path
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                hub.files[value["path"]] = base64.b64decode(value["content"])
            if line["key"] == "lfsFile":
                hub.files[value["path"]] = hub.large[value["oid"]]
        return self.answer({"commitUrl": f"{hub.address}/me/model/commit/1", "commitOid": "1"})

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.large[hashlib.sha256(body).hexdigest()] = body
        self.answer({})

    def do_GET(self) -> None:
        self.answer({"error": "not found"}, 404)

    def answer(self, value: dict, status: int = 200) -> None:
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def hub():
    with Hub() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def folder(tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "README.md").write_text("# a model\n")
    (model / "model.safetensors").write_bytes(bytes(range(256)) * 40)
    return model


def sent(folder, address, token="good"):
    settings = {"HF_ENDPOINT": address, "HF_TOKEN": token, "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0"}
    words = [sys.executable, "-c", SEND, str(folder), "me/model"]
    return subprocess.run(words, env=os.environ | settings, capture_output=True, text=True, timeout=120)


def test_every_file_arrives_in_a_private_repository(hub, folder):
    done = sent(folder, hub.address)
    assert done.stdout.strip() == f"{hub.address}/me/model", done.stderr
    assert hub.made["name"] == "model" and hub.made["visibility"] == "private"
    assert hub.files == {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("token", ["bad", "good"])
def test_what_cannot_be_sent_is_said_with_where_the_model_is(hub, folder, token):
    address = hub.address if token == "bad" else "http://127.0.0.1:9"  # nobody listens there
    done = sent(folder, address, token)
    assert done.returncode and not hub.files
    assert f"the model is in {folder}" in done.stderr and f"hf upload me/model {folder}" in done.stderr


@pytest.mark.parametrize("name", ["model", "me/my model", "me/model/more", "/me"])
def test_a_name_that_is_none_is_refused(name, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "good")
    with pytest.raises(RunError, match="OWNER/NAME"):
        check_name(name)


def test_without_a_token_nothing_is_begun(monkeypatch, tmp_path):
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "none"))
    asked = CliRunner().invoke(cli, ["export", str(tmp_path), str(tmp_path / "model"), "--push", "me/model"])
    assert asked.exit_code == 2 and "hf auth login" in asked.output and not (tmp_path / "model").exists()
