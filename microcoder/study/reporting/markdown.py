"""The few pieces of Markdown that a report is made of, as GitHub shows them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ...evaluation.layout import for_markdown

__all__ = ["anchor", "for_markdown", "picture", "table"]


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Cells are Markdown already; the first `words` columns hold words, the others numbers."""
    line = ["---"] * words + ["---:"] * (len(head) - words)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, line, *rows))


def picture(words: str, path: str) -> str:
    """A figure that leads to the same one as a drawing. `path` is relative and has no suffix."""
    return f"[![{for_markdown(words)}]({path}.png)]({path}.svg)"


def anchor(heading: str) -> str:
    """Where GitHub puts a heading: its words in small letters, joined by hyphens."""
    return "#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
