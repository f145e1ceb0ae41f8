"""Messages between the trusted side, a zygote and a box: a length, JSON, and sometimes descriptors."""

import array
import json
import struct
from _socket import CMSG_SPACE, SCM_RIGHTS, SOL_SOCKET, socket  # the module `socket` is large, and a fork copies it
from typing import Any

LENGTH = struct.Struct("!I")
ORDER = struct.Struct("!d")  # what a box is told of one test: the CPU seconds it may take
# What a box says of one test: wait status, CPU seconds, peak KiB, wall seconds; whether it was overdue, ran in a fresh
# process, and left the box unclean.
RESULT = struct.Struct("!idqd???")


def send(sock: socket, message: Any, fds: tuple[int, ...] = ()) -> None:
    data = json.dumps(message).encode()
    rights = [(SOL_SOCKET, SCM_RIGHTS, array.array("i", fds))] if fds else []
    header = LENGTH.pack(len(data))
    sent = sock.sendmsg([header, data], rights)
    if sent < len(header) + len(data):
        sock.sendall((header + data)[sent:])


def receive(sock: socket, max_fds: int = 0) -> tuple[Any, list[int]]:
    """Receive the next message and its descriptors. Raise EOFError if the other side is gone."""
    fds = array.array("i")
    if max_fds:
        header, rights, _, _ = sock.recvmsg(LENGTH.size, CMSG_SPACE(max_fds * fds.itemsize))
        for level, kind, data in rights:
            if level == SOL_SOCKET and kind == SCM_RIGHTS:
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    else:
        header = sock.recv(LENGTH.size)
    header += exactly(sock, LENGTH.size - len(header))
    (size,) = LENGTH.unpack(header)
    return json.loads(exactly(sock, size)), list(fds)


def receive_order(sock: socket) -> tuple[float, list[int]] | None:
    """The next test: its CPU seconds and its three descriptors; none of these if it runs in the process that is there.

    None when the trusted side is gone.
    """
    order, rights, _, _ = sock.recvmsg(ORDER.size, CMSG_SPACE(12))
    if not order:
        return None
    fds = array.array("i")
    if rights:
        fds.frombytes(rights[0][2])
    return ORDER.unpack(order)[0], list(fds)


def exactly(sock: socket, size: int) -> bytes:
    """Receive exactly so many bytes. Raise EOFError if the other side is gone."""
    parts = []
    while size > 0:
        part = sock.recv(min(size, 1 << 20))
        if not part:
            raise EOFError("the other side is gone")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
