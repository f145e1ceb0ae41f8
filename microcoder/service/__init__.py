"""The judge over HTTP, for trainers on other machines and in other languages: `microcoder serve`.

    asking.py      bytes -> a checked Problem, Solution, Settings, or the reason why not
    shelf.py       problems that were sent once and are named after that
    desk.py        the bounded queue, turns among clients, dropping, draining
    answers.py     verdicts as they become known; a client that goes away
    fusion.py      SandboxFusion's requests and answers
    metrics.py     counters for Prometheus
    described.py   the OpenAPI schemas
    guard.py       tokens and clients; it stands before everything
    shared.py      what the routes share
    server.py      the routes
    running.py     the process and its end

The client is `microcoder.judges.remote`.
"""

from .running import serve
from .server import app

__all__ = ["app", "serve"]
