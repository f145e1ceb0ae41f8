"""The program in a model's completion: the last complete fenced block of the language, outside of its thoughts.

A block without a tag counts only if none is tagged with the language: after a program it mostly shows an output.
"""

import re
from bisect import bisect_left, bisect_right

_TAGS = {
    "python": {"python", "py", "python3", "py3"},
    "cpp": {"cpp", "c++", "cc", "cxx"} | {f"{name}{year}" for name in ("cpp", "c++") for year in (11, 14, 17, 20)},
    "java": {"java"} | {f"java{version}" for version in (8, 11, 17, 21)},
    "javascript": {"javascript", "js", "node", "nodejs", "mjs", "cjs"},
    "go": {"go", "golang"},
    "rust": {"rust", "rs"},
}
_THINK = re.compile(r"""(["'])</?think>\1|`</?think>`(?!`)|(?P<tag></?think>)""")  # in quotes a tag is only named
_END = re.compile(r"<[|｜][^<>\s]{1,40}[|｜]>|</s>|<eos>|<pad>|<end_of_turn>")  # of a model's turn
_LONGEST_END = 44


def code_block(completion: str, language: str = "python") -> str | None:
    """The code, or None if there is none. A block that is never closed is not complete, so it does not count."""
    tags = _TAGS[language]
    found: dict[bool, str] = {}  # the last one that is tagged (True), the last one without a tag
    fence, indent, kind = "", "", ""
    lines: list[str] = []
    for line in answer(completion).split("\n"):
        mark = _fence(line)
        if mark is None:
            lines.append(line.removeprefix(indent))  # a block in a list item is indented as a whole
            continue
        this, info = mark
        if _closes(mark, fence):
            if not kind or kind in tags:
                blank = not any(map(str.strip, lines))  # the program is the one before, if there was one
                found[bool(kind)] = found.get(bool(kind), "") if blank else "\n".join(lines)
            fence = ""
        elif not fence or info:  # a tagged fence inside an open block: the model began anew
            fence, indent, lines = this, line[: len(line) - len(line.lstrip(" \t"))], []
            kind = _kind(info)
        else:
            lines.append(line)
    return found.get(True, found.get(False)) or None


def _kind(info: str) -> str:
    """The language that a fence names: "python" of "python3.11", "{.python .numberLines}", "python:main.py"."""
    named = re.split(r"[\s:,]", info.lower().lstrip("{. "), maxsplit=1)[0].rstrip("}")
    return named.partition(".")[0]


def answer(completion: str) -> str:
    """The completion without its thoughts and without end tokens, with "\\n" at the ends of lines.

    A thought reaches from <think> to the next </think>, or to the end if there is none. If the first tag is a </think>,
    the prompt has opened the thought, so it begins with the completion. Tags inside a fenced block of the answer are
    text of the program.
    """
    text = _without_end(completion.replace("\r\n", "\n"))
    tags = [(found["tag"], found.start()) for found in _THINK.finditer(text) if found["tag"]]
    begins = [place for tag, place in tags if tag == "<think>"]
    ends = [place + len(tag) for tag, place in tags if tag == "</think>"]
    if not tags:
        return text
    kept: list[str] = []
    at, line_end, fence = ends[0] if tags[0][0] == "</think>" else 0, 0, ""
    while at < len(text):
        if at >= line_end:
            line_end = text.find("\n", at) + 1 or len(text)
        n = bisect_left(begins, at)
        begin = begins[n] if not fence and n < len(begins) and begins[n] < line_end else line_end
        kept.append(text[at:begin])
        mark = _fence(kept[-1].removesuffix("\n"))
        if mark is not None and (not fence or mark[1] or _closes(mark, fence)):
            fence = "" if _closes(mark, fence) else mark[0]
        at = begin
        if begin < line_end and not fence:
            n = bisect_right(ends, begin)
            at = ends[n] if n < len(ends) else len(text)
            kept.append("\n")  # what follows a thought is a line of its own
    return "".join(kept)


def _without_end(text: str) -> str:
    """The text without the end tokens that some trainers leave in it: "```<|im_end|>" would close no block."""
    end = len(text)
    while True:
        stop = end
        while stop and text[stop - 1].isspace():
            stop -= 1
        start = text.rfind("<", max(0, stop - _LONGEST_END), stop)
        if start < 0 or not _END.fullmatch(text, start, stop):
            return text[:end]
        end = start


def _closes(mark: tuple[str, str], fence: str) -> bool:
    """Tell whether a fence ("```", "") closes the open one; "" is no open one."""
    return bool(fence) and mark[0].startswith(fence) and not mark[1]


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
