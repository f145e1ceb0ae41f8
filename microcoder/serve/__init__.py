"""The judge over HTTP, for trainers on other machines and in other languages: `microcoder serve`.

    connections.py how many, how large a head, how slow; it stands before everything
    guard.py       tokens and clients
    asking.py      JSON -> a checked Problem, Solution, Settings, or the reason why not
    reading.py     bytes -> what is asked; large bodies in a process of their own
    room.py        the memory that requests and answers may take
    shelf.py       problems that were sent once and are named after that
    desk.py        the bounded queue, turns among clients, dropping, draining
    answers.py     verdicts as they become known; a client that goes away
    fusion.py      SandboxFusion's requests and answers
    metrics.py     counters for Prometheus
    described.py   the OpenAPI schemas
    shared.py      what the routes share
    server.py      the routes
    running.py     the process and its end

The client is `microcoder.judge.remote.remote`.
"""

from .asking import Most
from .connections import serve
from .server import app

__all__ = ["Most", "app", "serve"]
