"""Files in the layout of LiveCodeBench's code_generation_lite, with problems of our own, and ways to damage them."""

from __future__ import annotations

import base64
import json
import os
import pickle
import random
import zlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import cycle, islice
from pathlib import Path

from microcoder.evaluation.catalog import LCB_COUNTS, release_files

STARTS = {  # file -> the day of its first contest; each ends where the next one begins
    "test.jsonl": "2023-05-06", "test2.jsonl": "2024-03-02", "test3.jsonl": "2024-05-04", "test4.jsonl": "2024-07-06",
    "test5.jsonl": "2024-09-07", "test6.jsonl": "2025-01-11",
}  # fmt: skip
END = "2025-04-07"
V6 = {"atcoder": (26, 26, 60), "leetcode": (17, 26, 20)}  # easy, medium, hard
DIFFICULTIES = ("easy", "medium", "hard")


@dataclass(frozen=True)
class Family:
    """A task that can be asked on standard input and as a method alike."""

    name: str
    parameters: str
    statement: str
    body: str  # of the function, from its parameters to its result
    parse: str  # standard input -> the same parameters

    def right(self, site: str) -> str:
        return self._program(site, self.body)

    def wrong(self, site: str) -> str:
        return self._program(site, "return -1")

    def starter(self) -> str:
        return f"class Solution:\n    def {self.name}(self, {self.parameters}) -> int:\n        "

    def answer(self, *arguments: object) -> int:
        scope: dict = {}
        exec(f"def answer({', '.join(_names(self.parameters))}):\n{_indented(self.body, 4)}", scope)
        return scope["answer"](*arguments)

    def _program(self, site: str, body: str) -> str:
        if site == "leetcode":
            return self.starter().rstrip() + "\n" + _indented(body, 8)
        names = ", ".join(_names(self.parameters))
        return f"def solve({names}):\n{_indented(body, 4)}\n\n{self.parse}\nprint(solve({names}))"


FAMILIES = (
    Family(
        "total",
        "nums: List[int]",
        "Add the numbers.",
        "return sum(nums)",
        "input()\nnums = [*map(int, input().split())]",
    ),
    Family(
        "longestRun",
        "s: str",
        "How long is the longest stretch of one and the same letter?",
        "best = run = 1\nfor a, b in zip(s, s[1:]):\n    run = run + 1 if a == b else 1\n    best = max(best, run)\n"
        "return best",
        "s = input()",
    ),
    Family(
        "remainders",
        "nums: List[int], k: int",
        "How many different remainders do the numbers leave when they are divided by k?",
        "return len({x % k for x in nums})",
        "n, k = map(int, input().split())\nnums = [*map(int, input().split())]",
    ),
)


@dataclass
class Release:
    folder: Path
    paths: list[Path] = field(default_factory=list)
    right: dict[str, str] = field(default_factory=dict)  # id -> a program
    wrong: dict[str, str] = field(default_factory=dict)


def write_release(folder: Path, release: str = "v6", seed: int = 0, problems: int | None = None) -> Release:
    """The files of a release, or the first so many problems of each file; and a right and a wrong program for each."""
    folder.mkdir(parents=True, exist_ok=True)
    out = Release(folder)
    for name in release_files(release):
        rng = random.Random(f"{seed} {name}")
        path = folder / name
        with open(path, "w") as file:
            for number, (site, difficulty) in enumerate(islice(_mixture(name, rng), problems)):
                family = rng.choice(FAMILIES)
                row = _row(name, number, site, difficulty, family, rng)
                out.right[row["question_id"]], out.wrong[row["question_id"]] = family.right(site), family.wrong(site)
                file.write(json.dumps(row) + "\n")
        out.paths.append(path)
    return out


def packed(text: str) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(text))).decode()


def cut(path: Path) -> None:
    """As a download that was broken off."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def cut_between_lines(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))


def change(path: Path, line: int, **columns: object) -> None:
    """Other values in one line (from 1); None takes a column away."""
    lines = path.read_text().splitlines()
    row = {**json.loads(lines[line - 1]), **columns}
    lines[line - 1] = json.dumps({name: value for name, value in row.items() if value is not None})
    path.write_text("\n".join(lines) + "\n")


def make_hostile(path: Path, line: int, marker: Path) -> None:
    """Private tests that would write a file if anybody unpickled them."""
    data = pickle.dumps(_Touch(marker))
    change(path, line, private_test_cases=base64.b64encode(zlib.compress(data)).decode())


class _Touch:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple:
        return os.system, (f"touch {self.marker}",)


def _mixture(name: str, rng: random.Random) -> list[tuple[str, str]]:
    """(platform, difficulty) of every problem of a file: as they are in v6, and in some such way in the others."""
    if name == "test6.jsonl":
        counts = {(site, word): n for site in V6 for word, n in zip(DIFFICULTIES, V6[site], strict=True)}
        pairs = [pair for pair, count in counts.items() for _ in range(count)]
    else:
        first = [("codeforces", d) for d in islice(cycle(DIFFICULTIES), 9)] if name == "test.jsonl" else []
        rest = cycle((s, d) for s in V6 for d in DIFFICULTIES)
        pairs = [*first, *islice(rest, LCB_COUNTS[name] - len(first))]
    rng.shuffle(pairs)
    return pairs


def _row(name: str, number: int, site: str, difficulty: str, family: Family, rng: random.Random) -> dict[str, str]:
    unique = 1000 * (1 + list(LCB_COUNTS).index(name)) + number
    ident = {"atcoder": f"abc{unique}_{'abcdefg'[number % 7]}", "codeforces": f"{unique}_A"}.get(site, str(unique))
    tests = [_test(site, family, size, rng) for size in (3, 1, 5, 20, 200)]
    days = [*map(datetime.fromisoformat, (*STARTS.values(), END))]
    begin, end = days[list(STARTS).index(name) :][:2]
    date = begin + timedelta(days=rng.randrange((end - begin).days), minutes=18 * 60 + 30)
    private = json.dumps(tests[2:])
    return {
        "question_title": f"{family.name}-{unique}",
        "question_content": f"{family.statement} ({unique})",
        "platform": site,
        "question_id": ident,
        "contest_id": f"contest-{unique}",
        "contest_date": date.isoformat(),
        "starter_code": family.starter() if site == "leetcode" else "",
        "difficulty": difficulty,
        "public_test_cases": json.dumps(tests[:2]),
        "private_test_cases": private if number % 5 == 4 else packed(private),
        "metadata": json.dumps({"func_name": family.name} if site == "leetcode" else {}),
    }


def _test(site: str, family: Family, size: int, rng: random.Random) -> dict[str, str]:
    numbers, letters = [rng.randint(-(10**12), 10**12) for _ in range(size)], "".join(rng.choices("ab", k=size))
    k = rng.randint(2, 9)
    arguments = {"total": (numbers,), "longestRun": (letters,), "remainders": (numbers, k)}[family.name]
    if site == "leetcode":
        given, kind = "\n".join(map(json.dumps, arguments)), "functional"
    else:
        head = f"{size} {k}" if family.name == "remainders" else str(size)
        given = f"{letters}\n" if family.name == "longestRun" else f"{head}\n{' '.join(map(str, numbers))}\n"
        kind = "stdin"
    result = str(family.answer(*arguments))
    return {"input": given, "output": result if site == "leetcode" else f"{result}\n", "testtype": kind}


def _names(parameters: str) -> list[str]:
    return [part.partition(":")[0] for part in parameters.split(", ")]


def _indented(code: str, by: int) -> str:
    return "\n".join(" " * by + line for line in code.split("\n"))
