"""The program in a model's completion: the last complete fenced block of the language."""

_TAGS = {  # a block without a tag counts as the language that was asked for
    "python": {"", "python", "py", "python3", "py3"},
    "cpp": {"", "cpp", "c++", "cc", "cxx"} | {f"{name}{year}" for name in ("cpp", "c++") for year in (11, 14, 17, 20)},
}


def code_block(completion: str, language: str = "python") -> str | None:
    """The code, or None if there is none. A block that is never closed is not complete, so it does not count."""
    tags = _TAGS[language]
    found: str | None = None
    fence, indent, counts = "", "", False
    lines: list[str] = []
    for line in completion.replace("\r\n", "\n").split("\n"):
        mark = _fence(line)
        if mark is None:
            lines.append(line.removeprefix(indent))  # a block in a list item is indented as a whole
            continue
        this, info = mark
        if fence and this.startswith(fence) and not info:
            if counts:
                found = "\n".join(lines)
            fence = ""
        elif not fence or info:  # a tagged fence inside an open block: the model began anew
            fence, indent, lines = this, line[: len(line) - len(line.lstrip(" \t"))], []
            counts = info.lower().split(maxsplit=1)[0].strip("{}.") in tags if info else True
        else:
            lines.append(line)
    return found if found and found.strip() else None


def _fence(line: str) -> tuple[str, str] | None:
    """("```", "python") for such a line. A regular expression could be made to run for hours here."""
    text = line.lstrip(" \t")
    mark = text[:1]
    if mark not in ("`", "~") or not text.startswith(mark * 3):
        return None
    info = text.lstrip(mark)
    if mark in info:  # inline code, not a fence
        return None
    return text[: len(text) - len(info)], info.strip()
