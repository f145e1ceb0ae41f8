"""What commands print. Ids, messages, names and texts come from others: what would steer a terminal is shown instead.

Every command prints by `echo`, or by a `Terminal` (terminal.py) where there are tables and colours.
"""

from __future__ import annotations

import re
from typing import Any

import click

# All control characters but tab and newline, halves of surrogate pairs, and what turns the direction of writing.
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Replace control characters by escapes that are valid in JSON too."""
    return STEERING.sub(lambda match: f"\\x{ord(match[0]):02x}" if match[0] < " " else f"\\u{ord(match[0]):04x}", text)


def echo(text: Any = "", err: bool = False, nl: bool = True) -> None:
    click.echo(visible(str(text)), err=err, nl=nl)
