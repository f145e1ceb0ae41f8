"""An address to listen at, for the commands that answer over HTTP."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable

import click

from . import Refused


def check_tokens(tokens: Iterable[str], variable: str | None = None) -> None:
    """Refuse an empty token, which would let everybody in."""
    empty = "--token is empty" if not all(token.strip() for token in tokens) else ""
    if variable and not tokens and variable in os.environ and not os.environ[variable].strip():
        empty = f"{variable} is empty"
    if empty:
        raise click.UsageError(f"{empty}, which would let anybody in; give a long random one, or leave it away")


def listen(host: str, port: int) -> tuple[socket.socket, str]:
    """Open a listening socket; return it and the address to tell clients."""
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise Refused(
            f"cannot listen at {host}, port {port}: {error.strerror}; the same command may be running already: "
            "choose another with --port, or any that is free with --port 0"
        ) from None
    # Or 40 ms pass between head and body of an answer: asyncio sets it only for listeners of its own.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    name = socket.gethostname() if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    return listener, f"http://{name}:{listener.getsockname()[1]}"
