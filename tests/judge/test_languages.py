"""Programs in Java, JavaScript, Go and Rust get the verdicts that tests/cases/languages states.

A file holds `language`, `[problems.NAME]`, `[snippets]` and `[[cases]]`: a name, the program as `code` (after the
snippets that it `uses`) or as `build` (a Python expression, which knows the programs before it as `codes`), a problem
(the first one if none is named), a verdict and a part of its message. The cases of a language are skipped where its
tools are missing. What programs must not do is in tests/attacks, under the name of the language.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from microcoder import Judge, Problem, Solution, Test
from microcoder.judge import JudgeError, languages
from microcoder.judge.boxes import Limits
from microcoder.judge.extract import code_block
from microcoder.judge.sandbox.root import PRECOMPILED
from microcoder.judge.toolchains import NoCompiler, java, kept
from microcoder.judge.toolchains.rust import Rust
from microcoder.schema import LANGUAGES, SchemaError, language_named

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="these languages are judged on Linux"),
    pytest.mark.long,
]

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


def test_every_language_earns_every_verdict() -> None:
    assert {case.language for case in CASES} == set(TOOLS) == set(languages.LANGUAGES) - {"cpp"}
    for language in TOOLS:
        cases = [case for case in CASES if case.language == language]
        assert {case.verdict for case in cases} == EARNED, language
        assert len({case.name for case in cases}) == len(cases) >= 20


@pytest.mark.parametrize("language", TOOLS)
def test_a_program_is_run_and_not_judged(judge: Judge, language: str) -> None:
    needs(language, judge.sandbox)
    right = next(case.code for case in CASES if case.language == language and case.name == "right")
    ran = judge.run(right, language, "12\n").result()
    assert (ran.status, ran.stdout, ran.exit_code) == ("ok", "144\n", 0), ran.message
    assert ran.cpu_s > 0 and ran.memory_mb > 1
    small = Limits(5.0, 128 << 20, 4)  # of output: its program is larger
    assert judge.run(right, language, "1\n", small).result().stdout == "1\n"
    assert judge.run(right, language, "12345\n", small).result().status == "output_limit"
    broken = judge.run("(", language).result()
    assert broken.status == "compile_error" and "solution." in broken.compile_error.replace("Main", "solution")


@pytest.mark.parametrize("language", TOOLS)
def test_a_completion_and_the_second_policy_mean_the_same_as_for_python(language: str) -> None:
    with Judge(workers=1, also="exact", reuse=True) as judge:
        needs(language, judge.sandbox)
        right = next(case for case in CASES if case.language == language and case.name == "right")
        answer = f"<think>```{language}\nno\n```</think>So:\n```{language}\n{right.code}\n```\n"
        given = judge.check(right.problem, Solution("square", completion=answer, language=language))
        none = judge.check(right.problem, Solution("square", completion="```python\n1\n```", language=language))
    assert (given.verdict, given.also, len(given.tests)) == ("accepted", "accepted", 3), given.message
    title = languages.NAMES[language]
    assert (none.verdict, none.message) == ("no_code", f"no complete fenced {title} block in the completion")


TAGS = {
    "java": ["java", "Java", "java17"],
    "javascript": ["javascript", "js", "node", "nodejs", "JavaScript", "mjs"],
    "go": ["go", "golang", "Go", "go title=x"],
    "rust": ["rust", "rs", "Rust", "{.rust}"],
}


@pytest.mark.parametrize(("language", "tag"), [(name, tag) for name, tags in TAGS.items() for tag in ["", *tags]])
def test_a_fenced_block_is_found_by_its_tag(language: str, tag: str) -> None:
    assert code_block(f"So:\n```{tag}\nthe program\n```\n```python\nprint(1)\n```\n", language) == "the program"


@pytest.mark.parametrize("language", TOOLS)
def test_a_block_of_another_language_is_not_taken_for_the_program(language: str) -> None:
    for other in {"python", "cpp", *TOOLS} - {language}:
        assert code_block(f"```{other}\nx\n```", language) is None


def test_names_of_languages_are_those_of_data_sets_and_people() -> None:
    assert set(LANGUAGES.values()) == set(languages.NAMES)
    for name, meant in {
        "Golang": "go",
        "rs": "rust",
        "node": "javascript",
        "nodejs": "javascript",
        "Java": "java",
    }.items():
        assert language_named(name) == meant
    with pytest.raises(SchemaError, match="'pascal'; programs in python, cpp, java, javascript, go and rust can be"):
        language_named("pascal")


def test_without_tools_a_verdict_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with Judge(workers=1) as judge:
        for language, tool in TOOLS.items():
            found = judge.check(CASES[0].problem, Solution("square", code="x", language=language))
            ran = judge.run("x", language).result()
            assert found.verdict == ran.status == "internal_error" and found.message == ran.message
            title = languages.NAMES[language]
            assert f"there is no {tool} here, so {title} cannot be judged: install " in found.message
            assert "apt-get install" in found.message
        assert judge.check(CASES[0].problem, code="print(int(input()) ** 2)").accepted


@pytest.mark.parametrize("language", TOOLS)
def test_tools_that_do_not_work_are_the_judges_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, language: str
) -> None:
    for name in (TOOLS[language], "gcc", "java"):
        (tmp_path / name).write_text("#!/bin/sh\necho out of order >&2\nexit 7\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("MICROCODER_CACHE", str(tmp_path / "cache"))
    with Judge(workers=1) as judge:
        found = judge.check(CASES[0].problem, Solution("square", code="x", language=language))
    assert found.verdict == "internal_error" and "apt-get install" in found.message


@pytest.mark.parametrize("language", TOOLS)
def test_a_function_problem_is_refused_for_it_is_the_callers_mistake(language: str) -> None:
    problem = Problem("add", kind="function", entry_point="add", tests=[Test("[1, 2]", "3")])
    with Judge(workers=1) as judge:
        found = judge.check(problem, Solution("add", code="x", language=language))
    assert found.verdict == "internal_error"
    assert f"{languages.NAMES[language]} is judged on stdin problems only" in found.message


@pytest.mark.skipif(os.getuid() != 0, reason="only root's boxes run as another user")
def test_tools_that_boxes_cannot_read_are_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with pytest.raises(NoCompiler, match="closed to other users, as whom the landlock sandbox runs programs"):
        Rust().open_to_boxes("landlock", [str(tmp_path / "rustc")])
    Rust().open_to_boxes("full", [str(tmp_path / "rustc")])


def test_a_folder_is_kept_once_and_not_where_there_is_no_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[str] = []

    def make(folder: str) -> None:
        made.append(folder)
        Path(folder, "x").write_text("1")

    monkeypatch.setenv("MICROCODER_CACHE", str(tmp_path))
    first, second = kept("go", "1", make, "full"), kept("go", "1", make, "full")
    assert first == second and first[1] == PRECOMPILED and len(made) == 1
    assert Path(first[0], "x").read_text() == "1" and not os.path.exists(made[0])
    assert kept("go", "2", make, "full") != first
    monkeypatch.setenv("MICROCODER_CACHE", "/dev/null")
    assert kept("go", "1", make, "full") == ("", "")


def test_the_memory_of_a_runtime_is_not_counted_against_the_program() -> None:
    limits = Limits(1.0, 100 << 20, 1 << 20)
    for language, own in {"python": 0, "cpp": 0, "go": 0, "rust": 0, "java": 160, "javascript": 128}.items():
        found = languages.with_runtime(limits, language)
        assert (found.memory_bytes >> 20, found.runtime_bytes >> 20) == (100 + own, own)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("public class Main {}", "Main"),
        ("class A {}\npublic  final\n class B {}", "B"),
        ("// public class A\n/* public class B */ class C {}", ""),
        ('class A { String s = "public class B"; char c = \'"\'; }', ""),
        ('class A { String s = """\npublic class B "\n"""; }', ""),
        ("public static class A {}", ""),
        ("public sealed interface Été permits A {}", "Été"),
        ("", ""),
    ],
)
def test_the_public_class_of_a_java_program(source: str, name: str) -> None:
    assert java.public_class(source) == name


def test_class_files_that_are_none_have_nothing_to_start() -> None:
    """What javac makes is read by the judge itself: nothing in it may cause an exception of another kind."""
    for junk in (b"", b"\xca\xfe\xba\xbe", b"\xca\xfe\xba\xbe" + bytes(100), bytes(range(256)) * 4, b"\xff" * 1000):
        assert java.way_to_start(junk) == 0
        with pytest.raises(ValueError):
            java.Java().made(junk or b"\0", "")


def test_a_long_name_is_folded_in_the_manifest() -> None:
    folded = java._folded(f"Main-Class: {'a' * 200}\n")
    assert all(len(line) <= 72 for line in folded.splitlines())
    assert folded.replace(b"\n ", b"") == b"Main-Class: " + b"a" * 200 + b"\n"
