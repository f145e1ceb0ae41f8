"""Loopback host names, and the host name in a Host header."""

from __future__ import annotations

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def hostname(header: str) -> str:
    """Return the host name of a Host header: example.org:80 -> example.org; [::1]:80 -> ::1."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0].lower()
