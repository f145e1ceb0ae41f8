"""The files of a problem package: YAML, tests, submissions. Nothing outside its folder is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...schema import Test
from ..record import Dropped, package
from .limits import seconds
from .reading import solution

LARGEST = 16 << 20  # bytes of a test; larger ones are left out, and counted
_VERDICTS = {
    "accepted": "accepted", "wrong_answer": "wrong_answer", "time_limit_exceeded": "time_limit",
    "run_time_error": "runtime_error", "rejected": "wrong_answer", "brute_force": "time_limit",
}  # fmt: skip
_LANGUAGES = {
    ".py": "python", ".py3": "python", ".py2": "python2", ".c": "c", ".cpp": "c++", ".cc": "c++", ".cxx": "c++",
    ".java": "java", ".kt": "kotlin", ".rs": "rust", ".go": "go", ".js": "javascript", ".cs": "c#", ".hs": "haskell",
    ".rb": "ruby", ".pas": "pascal", ".scala": "scala", ".php": "php", ".pl": "perl",
}  # fmt: skip
_TIME_LIMITS = {".timelimit": r"([\d.]+)", "domjudge-problem.ini": r"(?m)^timelimit *= *['\"]?([\d.]+)"}


def read_yaml(file: Path, folder: Path) -> dict[str, Any]:
    """The keys of a file that may be missing."""
    if not file.exists():
        return {}
    yaml = package("yaml")
    try:
        found = yaml.safe_load(read_text(file, folder))
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: 2024-02-31 is no date
        raise Dropped("unreadable_row", f"{file.name} is no YAML: {error}"[:300]) from None
    if not isinstance(found, (dict, type(None))):
        raise Dropped("unreadable_row", f"{file.name} holds no keys but {type(found).__name__}")
    return found or {}


def read_text(file: Path, folder: Path) -> str:
    if not file.resolve().is_relative_to(folder.resolve()):
        raise Dropped("unreadable_row", f"{file.name} is a link that leads out of the package")
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Dropped("unreadable_row", f"{file.relative_to(folder)} is not UTF-8 text") from None


def read_tests(folder: Path) -> tuple[list[Test], list[tuple[str, str]], int]:
    """(all tests, those shown as samples, how many were too large)."""
    tests, samples, left_out = [], [], 0
    for part in ("sample", "secret"):
        for given in sorted((folder / "data" / part).rglob("*.in")):
            answer = given.with_suffix(".ans")
            if not answer.is_file():
                raise Dropped("unreadable_tests", f"{given.name} has no {answer.name}")
            if given.with_suffix(".files").exists() or "args" in read_yaml(given.with_suffix(".yaml"), folder):
                raise Dropped("reads_files", f"{given.name} comes with files or arguments")
            if given.stat().st_size + answer.stat().st_size > LARGEST:
                left_out += 1
                continue
            tests.append(Test(read_text(given, folder), read_text(answer, folder)))
            if part == "sample":
                samples.append((tests[-1].input, tests[-1].output))
    return tests, samples, left_out


def read_submissions(folder: Path) -> Iterator[dict[str, str] | str]:
    """Solutions with the verdict they must get; the name alone of one that is not a single file of a known language."""
    for place, verdict in _VERDICTS.items():
        for entry in sorted((folder / "submissions" / place).glob("*")):
            inside = sorted(entry.rglob("*")) if entry.is_dir() else [entry]
            files = [file for file in inside if file.suffix in _LANGUAGES]
            if len(files) != 1:
                yield f"{place}/{entry.name}"
                continue
            code, language = read_text(files[0], folder), _LANGUAGES[files[0].suffix]
            old = language == "python" and re.match(r"#!.*python2", code)
            yield solution(code, "python2" if old else language, verdict)


def read_time_limit(folder: Path) -> float | None:
    """From where it was written before problem.yaml could hold it."""
    for name, pattern in _TIME_LIMITS.items():
        if (folder / name).is_file() and (match := re.search(pattern, read_text(folder / name, folder))):
            return seconds(match.group(1))
    return None
