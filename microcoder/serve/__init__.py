"""The judge over HTTP, for trainers on other machines and in other languages: `microcoder serve`.

    connections.py  how many, how large a head, how slow; and the process with its end
    requests.py     JSON -> a checked Problem, Solution, Settings, or the reason why not
    bodies.py       bytes -> what is asked; large bodies in a process of their own
    room.py         the memory that requests and answers may take; counters for Prometheus
    desk.py         problems that were sent once; the bounded queue, turns among clients, answers
    fusion.py       SandboxFusion's requests and answers
    server.py       the routes and their OpenAPI schemas, tokens and clients

The client is `microcoder.judge.remote.http`.
"""

from .connections import serve
from .requests import Most
from .server import app

__all__ = ["Most", "app", "serve"]
