"""An address to listen at, for the commands that answer over HTTP."""

from __future__ import annotations

import socket

from . import Refused


def listen(host: str, port: int) -> tuple[socket.socket, str]:
    """A socket that listens, and the address to give to others."""
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
