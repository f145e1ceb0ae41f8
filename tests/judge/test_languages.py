"""Programs in Java, JavaScript, Go and Rust get the verdicts that tests/cases/languages states.

A file holds `language`, `[problems.NAME]`, `[snippets]` and `[[cases]]`: a name, the program as `code` (after the
snippets that it `uses`) or as `build` (a Python expression, which knows the programs before it as `codes`), a problem
(the first one if none is named), a verdict and a part of its message. The cases of a language are skipped where its
tools are missing. What programs must not do is in tests/attacks, under the name of the language.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from microcoder import Judge, Problem, Solution
from microcoder.judge import JudgeError, languages
from microcoder.judge.toolchains import NoCompiler

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these languages are judged on Linux")

FOLDER = Path(__file__).parents[1] / "cases" / "languages"
TOOLS = {"java": "javac", "javascript": "node", "go": "go", "rust": "rustc"}
EARNED = {"accepted", "wrong_answer", "time_limit", "memory_limit", "output_limit", "runtime_error", "compile_error"}


@dataclass(frozen=True)
class Case:
    language: str
    name: str
    problem: Problem
    code: str
    verdict: str
    message: str = ""


def read(path: Path) -> Iterator[Case]:
    table = tomllib.loads(path.read_text("utf-8"))
    snippets, codes = table.get("snippets", {}), {}
    problems = {name: Problem.from_dict({"id": name, **fields}) for name, fields in table["problems"].items()}
    for row in table["cases"]:
        code = "".join(snippets[name] for name in row.pop("uses", [])) + row.pop("code", "")
        codes[row["name"]] = code = eval(row.pop("build")) if "build" in row else code
        problem = problems[row.pop("problem", next(iter(problems)))]
        yield Case(table["language"], problem=problem, code=code, **row)


CASES = [case for path in sorted(FOLDER.glob("*.toml")) for case in read(path)]


def needs(language: str, layer: str) -> None:
    try:
        languages.toolchain(language, layer)
    except NoCompiler as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module", params=["full", "landlock"])
def judge(request: pytest.FixtureRequest) -> Iterator[Judge]:
    try:
        judge = Judge(sandbox=request.param)
    except JudgeError as error:
        pytest.skip(f"the {request.param} sandbox does not work here: {error}")
    with judge:
        yield judge


@pytest.mark.parametrize("case", [pytest.param(c, id=f"{c.language}: {c.name}") for c in CASES])
def test_case(judge: Judge, case: Case) -> None:
    needs(case.language, judge.sandbox)
    given = judge.check(case.problem, Solution(case.problem.id, code=case.code, language=case.language))
    assert given.verdict == case.verdict, given.message
    assert case.message in given.message
