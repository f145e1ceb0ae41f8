"""Faults of the text that process is to undo: afterwards it has to be what it was, white space and marks aside."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Any

from benchmarks.faults.bank import BOILERPLATE, HARMLESS, TYPOGRAPHY
from benchmarks.faults.run import Draw, Kind
from microcoder.data.process.samples import blocks, on_prose
from microcoder.schema import Problem

_MARKS = re.compile(r"[\s*_#`$^{}|\\-]+")  # what Markdown and LaTeX may write in one way or another
_WORD = re.compile(r"(?<![\w$\\])[a-z]{4,}(?![\w$(])")
_VARIABLE = re.compile(r"(?<![\w$\\'.`])[b-hj-z](?![\w$'.`(])")
_QUOTED = re.compile(r"(?<![\w\"])\"(\w[^\"`'\n]{0,60})\"(?![\w\"])")
_MARKUP = re.compile(r"<\s*[A-Za-z/!]|&#?\w+;|```|!\[")


def anything(problem: Problem) -> bool:
    return len(problem.statement.split()) >= 8


def plain_markup(problem: Problem) -> bool:
    """Without anything that might be HTML, without images, and without fences, which no page of HTML has."""
    return anything(problem) and not _MARKUP.search(problem.statement)


def letters(problem: Problem) -> str:
    return _MARKS.sub("", problem.statement)


def ascii_text(text: str) -> str:
    folded = text.replace("\u2264", "<=").replace("\u2265", ">=").replace("\u00a0", " ")
    return unicodedata.normalize("NFKC", folded).encode("ascii", "ignore").decode()


def typographic(problem: Problem, draw: Draw) -> bool:
    """The control of broken encodings: quotes, dashes, accents and signs as they should be."""
    text = ascii_text(problem.statement).replace("'", "\u2019").replace("<=", "\u2264").replace(" - ", " \u2013 ")
    first, end, rest = text.partition("\n")
    problem.statement = f"{first} {draw.choice(TYPOGRAPHY)}{end}{rest}"
    return True


def mojibake(problem: Problem, draw: Draw) -> bool:
    """UTF-8 read as something else, once or twice."""
    for encoding in draw.choice([["cp1252"], ["latin-1"], ["cp1252", "cp1252"], ["mac_roman"]]):
        problem.statement = "".join(_misread(byte, encoding) for byte in problem.statement.encode())
    return True


def _misread(byte: int, encoding: str) -> str:
    try:
        return bytes([byte]).decode(encoding)
    except UnicodeDecodeError:  # a hole in the table: what browsers do
        return chr(byte)


def look_alikes(problem: Problem, draw: Draw) -> bool:
    """The control of HTML: what looks a little like it and is none."""
    problem.statement = f"{ascii_text(problem.statement).rstrip()}\n\n{draw.choice(HARMLESS)}"
    return True


def html_page(problem: Problem, draw: Draw) -> bool:
    """The statement as a page has it: escaped, in paragraphs, samples in <pre>; some with what stands around it."""
    out = []
    for part in blocks(problem.statement):
        text = html.escape(part.text.strip("\n"))
        if part.kind == "prose":
            text = re.sub(r"\b([A-Za-z0-9]+)\^(\d+)\b", r"\1<sup>\2</sup>", text).replace("  ", "&nbsp; ")
            paragraphs = filter(str.strip, re.split(r"\n\n+", text))
            out += [f"<p>{paragraph}</p>".replace("\n", "<br>\n") for paragraph in paragraphs]
        elif text.strip():
            out.append(f"<pre>{text}</pre>")
    page = "\n".join(out)
    if draw.random() < 0.5:
        page = f'<div class="statement" id="p{draw.randrange(999)}">{page}</div><script>var x = 1 < 2;</script>'
    problem.statement = page
    return True


def latex(problem: Problem, draw: Draw) -> bool:
    """A contest's LaTeX: formulas in one of three ways, words set in another type, quotes."""
    begin, end = draw.choice([("$$$", "$$$"), ("\\(", "\\)"), ("$", "$")])
    styles = [r"\textbf{%s}", r"\emph{%s}", r"\texttt{%s}", r"\textit{%s}", r"\textsf{%s}"]
    changed = 0

    def change(text: str) -> str:
        nonlocal changed
        text, count = _VARIABLE.subn(lambda match: f"{begin}{match.group()}{end}", text)
        words = list(_WORD.finditer(text))
        for match in sorted(draw.sample(words, min(3, len(words))), key=lambda match: -match.start()):
            text = text[: match.start()] + draw.choice(styles) % match.group() + text[match.end() :]
        changed += count + len(words)
        return _QUOTED.sub(r"``\1''", text)

    problem.statement = on_prose(problem.statement, change, within=True)
    return changed > 0


def boilerplate(problem: Problem, draw: Draw) -> bool:
    """A line of a site above the text and one below it."""
    above, below = (draw.line(lines) for lines in BOILERPLATE)
    problem.statement = f"{above}\n\n{problem.statement.strip()}\n\n{below}"
    return True


def white_space(problem: Problem, draw: Draw) -> bool:
    """Spaces that are none, line ends of other systems, marks of no width."""
    odd = draw.choice(["\u00a0", "\u2009", "\u3000", "\u200b "])
    words = problem.statement.split(" ")
    for n in draw.sample(range(len(words)), max(1, len(words) // 4)):
        words[n] += odd[:-1]
    text = "".join(word + (odd[-1] if draw.random() < 0.3 else " ") for word in words).rstrip()
    problem.statement = "\ufeff" + text.replace("\n", draw.choice(["\r\n", "\n", " \n"]))
    return True


def plain_spaces(problem: Problem, draw: Draw) -> bool:
    problem.statement = "\n".join(line.rstrip() for line in ascii_text(problem.statement).strip().split("\n"))
    return True


def visible(problem: Problem) -> list[str]:
    """The words with whatever is not a plain space between them."""
    return re.split(r"[ \n]+", problem.statement.replace("^", "").strip())


def limited(problem: Problem, draw: Draw) -> bool:
    problem.time_limit_s, problem.memory_mb = draw.choice([0.5, 1.0, 2.0, 3.0]), draw.choice([64, 256, 512])
    return True


def limits_in_text(problem: Problem, draw: Draw) -> bool:
    seconds, megabytes = problem.time_limit_s or 0, problem.memory_mb
    lines = draw.choice([
        f"time limit per test\n{seconds:g} seconds\nmemory limit per test\n{megabytes} megabytes",
        f"Time Limit: {seconds * 1000:.0f} ms\nMemory Limit: {megabytes} MB",
        f"**Time limit:** {seconds:g} s\n\n**Memory limit:** {megabytes} MiB",
        f"CPU Time limit: {seconds:g} seconds\nMemory limit: {megabytes} MB",
        f"Time limit : {seconds:g} sec / Memory limit : {megabytes} MB",
    ])  # fmt: skip
    problem.time_limit_s = problem.memory_mb = None
    problem.statement = f"{lines}\n\n{problem.statement}"
    return True


def with_limits(problem: Problem) -> tuple[Any, ...]:
    return letters(problem), problem.time_limit_s, problem.memory_mb


KINDS = [
    Kind("mojibake", mojibake, (), letters, "encoding repaired", typographic, anything),
    Kind("html", html_page, (), letters, "html to markdown", look_alikes, plain_markup),
    Kind("latex", latex, (), letters, "latex normalised", plain_spaces, plain_markup),
    Kind("boilerplate", boilerplate, (), letters, "boilerplate removed", plain_spaces, plain_markup),
    Kind("white space", white_space, (), visible, "white space normalised", plain_spaces, plain_markup),
    Kind("limits in the text", limits_in_text, (), with_limits, "taken out of the text", limited, plain_markup),
]
