"""ICPC and Kattis problem packages, one folder each: formats `legacy` and `2023-07`.

    problem.yaml                    name, limits, licence, validation
    problem_statement/ statement/   problem.en.tex, .md; the samples are added to it, as judges do
    data/sample/ data/secret/       x.in with x.ans, in groups
    submissions/accepted/ ...       solutions by the verdict they must get

Packages with their own output validator, interaction and the like cannot be judged and are dropped. Nothing outside a
package's folder is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from ...judge.compare.icpc import parse_flags
from ...schema import Compare, Problem, Test
from ..record import Dropped, Record, package
from .fields import add_solutions, attempt, megabytes, platform, seconds, solution, statement, words
from .rows import SourceError, Unreadable

LARGEST = 16 << 20  # bytes of a test; larger ones are left out and counted
_VERDICTS = {
    "accepted": "accepted", "wrong_answer": "wrong_answer", "time_limit_exceeded": "time_limit",
    "run_time_error": "runtime_error", "rejected": "wrong_answer", "brute_force": "time_limit",
}  # fmt: skip
_LANGUAGES = {
    ".py": "python", ".py3": "python", ".py2": "python2", ".c": "c", ".cpp": "c++", ".cc": "c++", ".cxx": "c++",
    ".java": "java", ".kt": "kotlin", ".rs": "rust", ".go": "go", ".js": "javascript", ".cs": "c#", ".hs": "haskell",
    ".rb": "ruby", ".pas": "pascal", ".scala": "scala", ".php": "php", ".pl": "perl",
}  # fmt: skip
_OLD_NAMES = re.compile(
    r"^(?!.*(?:def|except|import|=) *(?:NameError|raw_input|xrange)).*\b(?:raw_input|xrange)\(", re.M
)
_TIME_LIMITS = {".timelimit": r"([\d.]+)", "domjudge-problem.ini": r"(?m)^timelimit *= *['\"]?([\d.]+)"}


def read_yaml(file: Path, folder: Path) -> dict[str, Any]:
    """Read the keys of a YAML file; {} if there is no such file."""
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
    """Return (all tests, the samples, the number of tests that were too large)."""
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
    """Yield solutions with their expected verdict; only the name if it is no single text of a known language."""
    for place, verdict in _VERDICTS.items():
        for entry in sorted((folder / "submissions" / place).glob("*")):
            inside = sorted(entry.rglob("*")) if entry.is_dir() else [entry]
            files = [file for file in inside if file.suffix in _LANGUAGES]
            if len(files) != 1:
                yield f"{place}/{entry.name}"
                continue
            try:
                code, language = read_text(files[0], folder), _LANGUAGES[files[0].suffix]
            except Dropped:  # a name in Latin-1 in a comment is no fault of the problem
                yield f"{place}/{entry.name}"
                continue
            old = language == "python" and (re.match(r"#!.*python2", code) or _OLD_NAMES.search(code))
            yield solution(code, "python2" if old else language, verdict)


def read_time_limit(folder: Path) -> float | None:
    """Read the time limit from the files that had it before problem.yaml did."""
    for name, pattern in _TIME_LIMITS.items():
        if (folder / name).is_file() and (match := re.search(pattern, read_text(folder / name, folder))):
            return seconds(match.group(1))
    return None


_LICENCES = {"unknown": "", "cc0": "CC0-1.0", "cc by": "CC-BY-4.0", "cc by-sa": "CC-BY-SA-4.0"}


def read(path: str | Path, *, limit: int | None = None) -> Iterator[Record | Unreadable]:
    package("yaml")
    if not (found := packages(Path(path))):
        raise SourceError(f"{path}: there is no folder with a problem.yaml, here or inside")
    return (attempt("icpc", f"{folder.name}/problem.yaml:1", _build, folder) for folder in islice(found, limit))


def packages(path: Path) -> list[Path]:
    """Return the folder itself, or the folders inside it, with a problem.yaml."""
    if (path / "problem.yaml").is_file():
        return [path]
    return sorted(file.parent for file in path.rglob("problem.yaml")) if path.is_dir() else []


def _build(folder: Path) -> Record:
    about = read_yaml(folder / "problem.yaml", folder)
    flags = _flags(about, folder)
    language, description, title = _statement(about, folder)
    tests, samples, left_out = read_tests(folder)
    limits = about.get("limits") or {}
    keywords = about.get("keywords")
    problem = Problem(
        id=folder.resolve().name,
        title=title,
        statement=statement(description, samples=samples) if description.strip() else "",
        tests=tests,
        time_limit_s=seconds(limits.get("time_limit")) or read_time_limit(folder),
        memory_mb=megabytes(limits.get("memory")),
        compare=Compare(validator_flags=flags),
        url=_url(about),
        language=language,
        licence=_LICENCES.get(str(about.get("license", "unknown")), str(about.get("license"))),
        tags=words(keywords.split() if isinstance(keywords, str) else keywords),
    )
    problem.platform = platform(problem.url)
    if left_out:
        problem.lineage.append(f"collect: {left_out} tests of over {LARGEST >> 20} MB left out")
    found = list(read_submissions(folder))
    if strange := [name for name in found if isinstance(name, str)]:
        problem.lineage.append(f"collect: submissions left out, not one program each: {', '.join(strange)}")
    add_solutions(problem, [one for one in found if isinstance(one, dict)])
    return Record(problem)


def _flags(about: dict[str, Any], folder: Path) -> str:
    """Return the flags of the default validator; drop a package that uses another one."""
    kinds = set(words(about.get("type"))) | set(str(about.get("validation", "")).split())
    if "interactive" in kinds:
        raise Dropped("interactive", "problem.yaml says so")
    if strange := kinds & {"multi-pass", "submit-answer"}:
        raise Dropped("unsupported_type", f"it is of type {', '.join(sorted(strange))}")
    if "custom" in kinds or (folder / "output_validator").exists():
        raise Dropped("custom_validator", "its outputs are judged by a program of its own")
    if any((folder / "include").glob("*/*")):
        raise Dropped("unsupported_type", "answers are built together with the files of include/")
    found = {" ".join(str(about.get("validator_flags") or "").split())}
    for name in ("testdata.yaml", "test_group.yaml"):
        for file in (folder / "data").rglob(name):
            group = read_yaml(file, folder)
            value = group.get("output_validator_args") or group.get("output_validator_flags") or ""
            found.add(" ".join(map(str, value) if isinstance(value, list) else str(value).split()))
    found.discard("")
    if len(found) > 1:
        raise Dropped("custom_validator", f"its tests are compared in different ways: {'; '.join(sorted(found))}")
    flags = "".join(found)
    try:
        parse_flags(flags)
    except ValueError as error:
        raise Dropped("custom_validator", str(error)) from None
    return flags


def _statement(about: dict[str, Any], folder: Path) -> tuple[str, str, str]:
    """Return (language, text, title), in English if available."""
    found: dict[str, Path] = {}
    for place in ("statement", "problem_statement"):
        for file in sorted((folder / place).glob("problem*")):
            match = re.fullmatch(r"problem(?:\.([A-Za-z-]+))?\.(?:tex|md)", file.name)
            if match:
                found.setdefault((match.group(1) or "en").lower(), file)
    language = "en" if "en" in found else next(iter(found), "")
    text = read_text(found[language], folder) if language else ""
    for name, value in (about.get("constants") or {}).items():
        text = text.replace(f"{{{{{name}}}}}", str(value)).replace(f"\\constant{{{name}}}", str(value))
    text = _expanded(text)
    names = about.get("name")
    title = names.get(language) or next(iter(names.values()), "") if isinstance(names, dict) else names
    inside = re.search(r"\\problemname\{([^{}]*)\}", text)
    text = text.replace(inside.group(), "", 1) if inside else text
    return language, text, str(title or (inside.group(1) if inside else ""))


_MACRO = re.compile(
    r"\\(?:re)?newcommand\*?(?:\{\\([A-Za-z]+)\}|\\([A-Za-z]+))\{((?:[^{}]|\{[^{}]{0,60}\}){0,80})\}%?\n?"
)


def _expanded(text: str) -> str:
    """The text with the macros that it defines written out, as far as they take no arguments."""
    macros = [(found[1] or found[2], found[3]) for found in _MACRO.finditer(text)]
    text = _MACRO.sub("", text) if macros else text
    for name, said in macros[:50]:
        text = re.sub(rf"\\{name}(?![A-Za-z])(?:\{{\}})?", said.replace("\\", r"\\"), text)
    return text


def _url(about: dict[str, Any]) -> str:
    source = about.get("source")
    first = source[0] if isinstance(source, list) and source else source
    return str(about.get("source_url") or (first.get("url") if isinstance(first, dict) else None) or "")
