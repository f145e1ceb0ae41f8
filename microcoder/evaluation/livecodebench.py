"""LiveCodeBench (code_generation_lite): six files, one for what each release added. Its tests stay on the disk.

1. A file with another number of problems than its release has is refused, and so is one with a line that cannot be
   read: a score over fewer problems is another score. Nothing of a file is executed.
2. Both ends of a span of dates count. Its runner compares with midnight, so contests later on the last day are not in.
3. Problems stay in the order of the files; its runner sorts them by id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from ..data.sources import Unreadable
from ..data.sources.fields import attempt
from ..data.sources.livecodebench import build
from ..schema import Problem, SchemaError
from .records import BenchError
from .stored import Stored, StoredProblems, read_lines

HUB = "livecodebench/code_generation_lite"
COUNTS = {  # file -> problems that are new in its release, v1 to v6
    "test.jsonl": 400, "test2.jsonl": 111, "test3.jsonl": 101, "test4.jsonl": 101, "test5.jsonl": 167,
    "test6.jsonl": 175,
}  # fmt: skip
RELEASE = "v6"  # the paper's
COLUMNS = (
    "question_title", "question_content", "platform", "question_id", "contest_id", "contest_date", "starter_code",
    "difficulty", "public_test_cases", "private_test_cases", "metadata",
)  # fmt: skip
PLATFORMS, DIFFICULTIES = ("atcoder", "codeforces", "leetcode"), ("easy", "medium", "hard")


def release_files(release: str) -> list[str]:
    """v6: what v6 added. release_v6: all up to it. v4_v6: what v4, v5 and v6 added."""
    names = list(COUNTS)
    found = re.fullmatch(r"(release_)?v([1-6])|v([1-6])_v([1-6])", release)
    if found and found[2]:
        last = int(found[2])
        return names[0 if found[1] else last - 1 : last]
    if found and found[3] < found[4]:
        return names[int(found[3]) - 1 : int(found[4])]
    raise BenchError(
        f"there is no release {release!r} of livecodebench; give v1 to v6 for the problems that it added, release_v6 "
        "for all up to it, or v4_v6 for those that v4 to v6 added"
    )


def read(
    release: str, paths: Sequence[Path], unchecked: bool = False, note: Callable[[str], None] = lambda _: None
) -> list[Stored]:
    """Every problem of a release out of its files, in order."""
    stored: dict[str, Stored] = {}
    for name, path in zip(release_files(release), paths, strict=True):
        before = len(stored)
        note(f"reading {path}")
        for one in read_lines(path, problem):
            twin = stored.get(one.problem.id)
            if twin:
                raise BenchError(
                    f"{one.path}:{one.line}: problem {one.problem.id!r} is in {twin.path}:{twin.line} already, so it "
                    "would count twice; download the files again, or take one of them out"
                )
            stored[one.problem.id] = one
        count = len(stored) - before
        if count != COUNTS[name] and not unchecked:
            raise BenchError(
                f"{path} has {count} problems, but {name} of {HUB} has {COUNTS[name]}; was a download cut off? "
                "Download it again; or, for a file of your own making, add --unchecked"
            )
    return list(stored.values())


def chosen(stored: Sequence[Stored]) -> StoredProblems:
    """Of what was read, those that count."""
    return StoredProblems(stored, problem)


def problem(line: bytes, where: str) -> Problem:
    """One line, or BenchError: where, what is wrong with it, what to do."""
    if line.startswith(b"version https://git-lfs"):
        raise BenchError(f"{where}: this is a pointer of Git LFS, not the file; type `git lfs pull` in its folder")
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BenchError(f"{where}: not JSON ({error}); was a download cut off? Download the file again") from None
    missing = [name for name in COLUMNS if name not in row] if isinstance(row, dict) else COLUMNS
    if missing:
        raise BenchError(f"{where}: no problem of {HUB}, since it lacks {', '.join(missing)}; download the file there")
    found = attempt("livecodebench", where, build, row)
    if isinstance(found, Unreadable):
        raise BenchError(f"{where}: {found.reason} ({found.detail}); download the file again from {HUB}")
    whole = found.problem
    whole.id, whole.lineage = whole.id.removeprefix("livecodebench/"), []
    try:
        whole.check()
    except SchemaError as error:
        raise BenchError(f"{where}: {error}; download the file again from {HUB}") from None
    for name, known in (("platform", PLATFORMS), ("difficulty", DIFFICULTIES)):
        if getattr(whole, name) not in known:
            raise BenchError(f"{where}: {name} is {getattr(whole, name)!r}; it must be one of {', '.join(known)}")
    if not whole.date:
        raise BenchError(f"{where}: contest_date is {row['contest_date']!r}; it must begin as 2025-01-11 does")
    return whole
