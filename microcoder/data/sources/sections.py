"""A statement put together from parts that a source keeps apart."""

from __future__ import annotations

from collections.abc import Iterable


def statement(
    description: str, given: str = "", asked: str = "", samples: Iterable[tuple[str, str]] = (), note: str = ""
) -> str:
    """Markdown: the story, what is read, what is printed, samples in fenced blocks, remarks."""
    parts = [description.strip()]
    parts += [f"## {name}\n\n{part.strip()}" for name, part in (("Input", given), ("Output", asked)) if part.strip()]
    parts += [
        f"## Example {number}\n\nInput\n\n{_block(before)}\n\nOutput\n\n{_block(after)}"
        for number, (before, after) in enumerate(samples, 1)
    ]
    parts += [f"## Note\n\n{note.strip()}"] if note.strip() else []
    return "\n\n".join(part for part in parts if part)


def _block(sample: str) -> str:
    fence = "```"
    while fence in sample:
        fence += "`"
    return "{0}\n{1}\n{0}".format(fence, sample.rstrip("\n"))
