"""A real HTTP server on this machine that speaks the chat protocol, and fails as it is told to."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def completion(text, finish_reason="stop", tokens=None, pieces=None, reasoning=None):
    """`tokens`: how many are counted; `pieces`: the text of each, or its bytes as servers list them."""
    message = {"role": "assistant", "content": text}
    if reasoning is not None:
        message["reasoning_content"] = reasoning
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    if pieces is not None:
        choice["logprobs"] = {"content": [_token(piece) for piece in pieces]}
    found = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    if tokens is not None:
        found["usage"] = {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": tokens + 1}
    return found


def _token(piece):
    listed = list(piece) if isinstance(piece, bytes) else None
    text = piece.decode("utf-8", "replace") if isinstance(piece, bytes) else piece
    return {"token": text, "bytes": listed, "logprob": -0.5, "top_logprobs": []}


class ChatServer:
    """`replies` are given in turn, the last one for ever: a text to answer with, a dict to send as it is, a status
    code, bytes that are no JSON, a float: seconds of silence; or a function of the request's body that gives these."""

    def __init__(self):
        self.replies = ["an answer"]
        self.asked = []  # the bodies of all requests, with their Authorization header as "key"
        self.busy = self.most_busy = 0
        self.lock = threading.Lock()
        self.url = ""

    def next(self):
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    def handle(self, handler):
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self.lock:
            self.asked.append({**body, "key": handler.headers["Authorization"], "path": handler.path})
            self.busy += 1
            self.most_busy = max(self.busy, self.most_busy)
            reply = self.next()
        try:
            reply = reply(body) if callable(reply) else reply
            status, data = 200, reply
            if isinstance(reply, float):
                time.sleep(reply)
                data = completion("late")
            elif isinstance(reply, int):
                status, data = reply, {"error": {"message": f"said the server with {reply}"}}
            elif isinstance(reply, str):
                data = completion(reply)
            data = data if isinstance(data, bytes) else json.dumps(data).encode()
        finally:
            with self.lock:
                self.busy -= 1
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.send_header("retry-after-ms", "10")
        handler.end_headers()
        handler.wfile.write(data)


@contextmanager
def chat_server():
    server = ChatServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            try:
                server.handle(self)
            except (BrokenPipeError, ConnectionResetError):  # whoever asked did not wait
                pass

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{http.server_port}/v1"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
