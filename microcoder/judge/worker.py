"""A worker: the trusted process that judges one candidate after another. It holds the expected outputs.

Started by the pool through exec; the two talk in pickles over a socket, both being trusted. When the pool closes the
socket the worker ends its box and leaves; when the pool's process dies, the kernel ends the worker and all below it.
"""

import pickle
import socket
import struct
import traceback
from dataclasses import replace
from typing import Any, NamedTuple

from ..schema import Problem, Solution, Verdict
from .boxes import Abandoned, Box, BoxError, Limits
from .examine import Examiner, Settings
from .execution import Program, Ran, run_program
from .sandbox import kernel

_LENGTH = struct.Struct("!Q")
_TRIAL = """
import os, sys, tempfile
print([path for path in sys.path if path.endswith("-packages") and not os.path.isdir(path)])
"""


class Request(NamedTuple):
    """Judge `solution`. A problem can be large and has many solutions: it is sent once, and named by key after that."""

    key: str
    problem: Problem | None  # None: sent before
    forget: bool  # drop all problems sent before
    solution: Solution
    settings: Settings | None  # None: those the worker was started with


def send(sock: socket.socket, message: Any) -> None:
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    sock.sendall(_LENGTH.pack(len(data)))
    sock.sendall(data)


def receive(sock: socket.socket) -> Any:
    """The next message, None for a sign of life (boxes.BEAT); EOFError if the other side is gone."""
    (size,) = _LENGTH.unpack(_exactly(sock, _LENGTH.size))
    return pickle.loads(_exactly(sock, size)) if size else None


def _exactly(sock: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = sock.recv_into(view)
        if not count:
            raise EOFError
        view = view[count:]
    return data


def main(fd: int, parent: int) -> None:
    kernel.die_with_parent(parent)
    sock = socket.socket(fileno=fd)
    settings: Settings = receive(sock)
    try:
        examiner = start(settings, sock)
    except BoxError as error:
        send(sock, error)
        return
    send(sock, examiner.settings.layer)
    known: dict[str, Problem] = {}
    try:
        while True:
            request: Request | Program = receive(sock)
            if isinstance(request, Program):
                send(sock, run(examiner, request))
                continue
            if request.forget:
                known.clear()
                examiner.forget()
            if request.problem is not None:
                known[request.key] = request.problem
            problem, solution = known[request.key], request.solution
            try:
                verdict = examiner.examine(problem, solution, request.settings)
            except Exception as error:
                verdict = Verdict("internal_error", solution.problem_id, solution.id, message=told(error))
            send(sock, verdict)
    except (EOFError, ConnectionError, Abandoned):
        pass
    finally:
        examiner.close()


def run(examiner: Examiner, program: Program) -> Ran:
    try:
        return run_program(examiner, program)
    except Exception as error:
        return Ran("internal_error", message=told(error))


def told(error: Exception) -> str:
    return f"the judge failed: {type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}"


def start(settings: Settings, watch: socket.socket | None) -> Examiner:
    """Start an examiner and check that its sandbox works. Layer "auto" takes the best that does, except rlimits."""
    layers = ["full", "landlock"] if settings.layer == "auto" else [settings.layer]
    reasons = []
    for layer in layers:
        examiner = Examiner(replace(settings, layer=layer), watch)
        try:
            # No zygote has tempfile loaded: that a program can import it shows that it can read the library. The
            # folders of installed packages must be there too.
            with Box(examiner.zygote("plain"), _TRIAL, "stdin", Limits(5.0, 1 << 29, 1 << 20)) as box:
                outcome = box.run(b"")
            if outcome.output == b"[]\n":
                return examiner
            reasons.append(f"{layer}: a trial program ended with {outcome.status}, {outcome.output!r} {outcome.report}")
        except BoxError as error:
            reasons.append(f"{layer}: {error}")
        examiner.close()
    raise BoxError("; ".join(reasons))
