"""ICPC and Kattis problem packages, a folder each: `legacy` and `2023-07`.

    problem.yaml                    name, limits, licence, validation
    problem_statement/ statement/   problem.en.tex, .md; the samples are added to it, as judges do
    data/sample/ data/secret/       x.in with x.ans, in groups
    submissions/accepted/ ...       solutions by the verdict they must get

Output validators of their own, interaction and the like cannot be judged here; then they are the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from ...judge.compare.icpc import parse_flags
from ...schema import Compare, Problem
from ..record import Dropped, Record, package
from .faults import SourceError, Unreadable
from .limits import megabytes, seconds
from .package import LARGEST, read_submissions, read_tests, read_text, read_time_limit, read_yaml
from .reading import add_solutions, attempt, words
from .sections import statement
from .sites import platform

_LICENCES = {"unknown": "", "cc0": "CC0-1.0", "cc by": "CC-BY-4.0", "cc by-sa": "CC-BY-SA-4.0"}


def read(path: str | Path, *, limit: int | None = None) -> Iterator[Record | Unreadable]:
    package("yaml")
    if not (found := packages(Path(path))):
        raise SourceError(f"{path}: there is no folder with a problem.yaml, here or inside")
    return (attempt("icpc", f"{folder.name}/problem.yaml:1", _build, folder) for folder in islice(found, limit))


def packages(path: Path) -> list[Path]:
    """The folder itself, or those inside it, that hold a problem.yaml."""
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
    """The default validator's flags; Dropped where something else decides, or is decided."""
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
    """(language, text, title), in English where there is a choice."""
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
    names = about.get("name")
    title = names.get(language) or next(iter(names.values()), "") if isinstance(names, dict) else names
    inside = re.search(r"\\problemname\{([^{}]*)\}", text)
    text = text.replace(inside.group(), "", 1) if inside else text
    return language, text, str(title or (inside.group(1) if inside else ""))


def _url(about: dict[str, Any]) -> str:
    source = about.get("source")
    first = source[0] if isinstance(source, list) and source else source
    return str(about.get("source_url") or (first.get("url") if isinstance(first, dict) else None) or "")
