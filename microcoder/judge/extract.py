"""The program in a model's completion: the last complete fenced Python block."""

import re

_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$")
_PYTHON = {"", "python", "py", "python3", "py3"}


def code_block(completion: str) -> str | None:
    """The code, or None if there is none. A block that is never closed is not complete, so it does not count."""
    found: str | None = None
    fence, indent, python = "", "", False
    lines: list[str] = []
    for line in completion.replace("\r\n", "\n").split("\n"):
        mark = _FENCE.match(line)
        if mark is None:
            lines.append(line.removeprefix(indent))  # a block in a list item is indented as a whole
            continue
        this, info = mark["fence"], mark["info"].strip()
        closes = fence and this[0] == fence[0] and len(this) >= len(fence) and not info
        if closes:
            if python:
                found = "\n".join(lines)
            fence = ""
        elif not fence or info:  # a tagged fence inside an open block: the model began anew
            fence, indent, lines = this, mark["indent"], []
            python = info.lower().split(maxsplit=1)[0].strip("{}.") in _PYTHON if info else True
        else:
            lines.append(line)
    return found if found and found.strip() else None
