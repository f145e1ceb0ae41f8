"""The code blocks of docs/howto/rewards.md."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "howto" / "rewards.md"
_BLOCK = re.compile(r"^```(?P<kind>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks():
    return list(_BLOCK.finditer(PAGE.read_text(encoding="utf-8")))


def titled(title):
    """The text of the one block with this title."""
    (block,) = [block for block in blocks() if block["title"] == title]
    return block["text"]


def plain():
    """The Python blocks without a title, which any process with the core can run."""
    return [block["text"] for block in blocks() if block["kind"] == "python" and not block["title"]]
