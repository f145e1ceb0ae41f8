"""A server that speaks the part of vLLM's protocol that `ServedSampler` asks for, with nano and our sampler behind it.

It loads the weights that it is told to, and draws from them; so what is trained against it is trained for real. It does
not show that vLLM's own server answers like this.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import torch
from safetensors.torch import load_file

from microcoder.models import resolve
from microcoder.models.weights import load
from microcoder.sampling import Sampler, Sampling


class Served:
    def __init__(self, **changes):
        source = resolve("nano")
        self.model = load(source, torch.float32).eval()
        self.card = {"id": "nano", "root": source.path, "max_model_len": 4096}
        self.config = {"weight_transfer_config": None, "model_config": {"logprobs_mode": "processed_logprobs"}}
        self.asked, self.loaded, self.lock = [], [], threading.Lock()
        self.delay = lambda request: 0.0
        self.card |= changes.pop("card", {})
        self.config |= changes

    def answer(self, path, words):
        if path == "/v1/models":
            return {"data": [self.card]}
        if path.startswith("/server_info"):
            return {"vllm_config": self.config} if self.config else None
        if path == "/collective_rpc":
            assert words["method"] == "reload_weights"
            found = load_file(Path(words["kwargs"]["weights_path"]) / "model.safetensors")
            self.loaded.append(len(self.asked))
            missing = self.model.load_state_dict(found, strict=False).missing_keys
            assert set(missing) <= {"lm_head.weight"}  # which is tied
            return {"results": [None]}
        if path == "/reset_prefix_cache":
            return {"success": True}
        assert path == "/v1/completions"
        return self.complete(words)

    def complete(self, words):
        time.sleep(self.delay(words))
        with self.lock:
            self.asked.append(words)
            sampling = Sampling(
                words["temperature"], words["max_tokens"], 1, words["top_p"], words["top_k"], words["seed"]
            )
            [found] = Sampler(self.model, words["stop_token_ids"])([words["prompt"]], sampling)
        reason = "length" if found.truncated else "stop"
        return {"choices": [
            {"token_ids": found.ids, "logprobs": {"token_logprobs": found.logprobs}, "finish_reason": reason}
        ]}  # fmt: skip


@contextmanager
def serving(served):
    """The address of the server, while it is there."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            size = int(self.headers.get("Content-Length") or 0)
            found = served.answer(self.path, json.loads(self.rfile.read(size)) if size else None)
            body = json.dumps(found).encode()
            self.send_response(200 if found is not None else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.request_queue_size = 64
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
