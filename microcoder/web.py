"""The names by which this machine is asked, when it is asked by itself."""

from __future__ import annotations

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def hostname(header: str) -> str:
    """Of a Host header: example.org:80 -> example.org; [::1]:80 -> ::1."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0].lower()
