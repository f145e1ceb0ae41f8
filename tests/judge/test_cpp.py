"""C++: compiled and run in the sandbox, judged like Python. What it must not do is in tests/attacks/cpp.toml."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from microcoder import Judge, Problem, Solution, Test, Verdict
from microcoder.judge import JudgeError, languages
from microcoder.judge.boxes import Limits
from microcoder.judge.examine import Examiner, Settings
from microcoder.judge.extract import code_block
from microcoder.judge.toolchains import cpp

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here")
SQUARE = Problem("square", tests=[Test(f"{n}\n", f"{n * n}\n") for n in range(1, 4)], time_limit_s=1, memory_mb=128)
HEAD = "#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n#include <unistd.h>\n"
READ = HEAD + 'int main() { int n; if (scanf("%d", &n) != 1) return 9; '
RIGHT = READ + 'printf("%d\\n", n * n); }'
ENDLESS = """
template <int N, long M> struct Two { static const int v = Two<N - 1, 2 * M>::v + Two<N - 1, 2 * M + 1>::v; };
template <long M> struct Two<0, M> { static const int v = 1; };
int main() { return Two<50, 0>::v; }
"""


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(workers=1) as judge:
        yield judge


def judged(judge: Judge, code: str, problem: Problem = SQUARE) -> Verdict:
    return judge.check(problem, Solution(problem.id, code=code, language="cpp"))


@needs_compiler
@pytest.mark.parametrize(
    ("code", "verdict", "message"),
    [
        (RIGHT, "accepted", ""),
        ("\ufeff" + RIGHT.replace("\n", "\r\n"), "accepted", ""),
        (READ + 'printf("%d\\n", n + 1); }', "wrong_answer", "test 0: token 1: got 2, expected 1"),
        (READ + "for (volatile int i = 0;; i++); }", "time_limit", "limit 1 s"),
        (READ + "sleep(9); }", "time_limit", "it waited"),
        ("#include <vector>\nint main() { std::vector<char> v(1l << 40); }", "memory_limit", "std::bad_alloc"),
        (READ + 'for (;;) puts("0123456789"); }', "output_limit", "over 16 MB"),
        (READ + "return 3; }", "runtime_error", "exit code 3"),
        (READ + 'fprintf(stderr, "no square"); abort(); }', "runtime_error", "ended by SIGABRT: no square"),
        (READ + "*(volatile int*)8 = n; }", "runtime_error", "ended by SIGSEGV (stack overflow?)"),
        ("#include <vector>\nint main() { std::vector<int>().at(2); }", "runtime_error", "std::out_of_range"),
        ("int main() { return x; }", "compile_error", "solution.cpp:1:21: error: 'x' was not declared in this scope"),
        ("int f(); int main() { return f(); }", "compile_error", "undefined reference to `f()'"),
        ("int helper() { return 1; }", "compile_error", "undefined reference to `main'"),
        (" \n", "no_code", "the program is empty"),
    ],
)
def test_verdict(judge: Judge, code: str, verdict: str, message: str) -> None:
    found = judged(judge, code)
    assert found.verdict == verdict, found.message
    assert message in found.message


@needs_compiler
def test_memory_that_is_taken_bit_by_bit_comes_to_the_limit(judge: Judge) -> None:
    slow = replace(SQUARE, time_limit_s=20)  # a busy machine takes seconds to hand out 128 MB
    found = judged(judge, READ + "for (;;) memset(malloc(1 << 20), 1, 1 << 20); }", slow)
    assert found.verdict == "memory_limit" and "limit 128 MB" in found.message


@needs_compiler
def test_what_a_program_used_is_measured(judge: Judge) -> None:
    busy = READ + "volatile char* room = (char*)malloc(64 << 20); memset((char*)room, 1, 64 << 20); "
    found = judged(judge, busy + 'for (volatile int i = 0; i < 40000000; i++); printf("%d\\n", n * n * room[7]); }')
    assert found.accepted and len(found.tests) == 3
    assert 64 < found.memory_mb < 80
    assert all(0 < test.cpu_s < 1 for test in found.tests) and found.wall_s > found.cpu_s


@needs_compiler
def test_the_stack_is_as_large_as_the_memory(judge: Judge) -> None:
    deep = "int deep(int n) { volatile char room[1000]; room[0] = 1; return n ? room[0] + deep(n - 1) : 0; }\n"
    code = deep + READ + 'printf("%d\\n", deep(90000) == 90000 ? n * n : 0); }'
    assert judged(judge, code).accepted


@needs_compiler
def test_a_second_policy_and_reuse_mean_the_same_as_for_python() -> None:
    with Judge(workers=1, also="exact", reuse=True) as judge:
        right, wrong = judged(judge, RIGHT), judged(judge, "int main() {")
        spaced = judged(judge, READ + 'printf("  %d  \\n", n * n); static int calls; if (calls++) return 1; }')
    assert (right.verdict, right.also) == ("accepted", "accepted")
    assert (wrong.verdict, wrong.also) == ("compile_error", "compile_error")
    assert spaced.accepted


@pytest.mark.parametrize("tag", ["", "cpp", "c++", "C++", "CPP", "cc", "cxx", "c++17", "cpp title=x", "{.cpp}"])
def test_a_fenced_block_is_found_by_its_tag(tag: str) -> None:
    assert code_block(f"So:\n```{tag}\nint main() {{}}\n```\n", "cpp") == "int main() {}"


def test_a_block_of_another_language_is_not_taken_for_the_program() -> None:
    both = "```cpp\nint main() {}\n```\nor\n```python\nprint(1)\n```\n"
    assert code_block(both, "cpp") == "int main() {}"
    assert code_block(both) == "print(1)"
    assert code_block("```java\nclass A {}\n```", "cpp") is None


def test_a_completion_without_a_block_of_the_language_is_no_code(judge: Judge) -> None:
    completion = "```python\nprint(int(input()) ** 2)\n```"
    found = judge.check(SQUARE, Solution("square", completion=completion, language="cpp"))
    assert (found.verdict, found.message) == ("no_code", "no complete fenced C++ block in the completion")


def test_a_function_problem_is_refused_for_it_is_the_callers_mistake(judge: Judge) -> None:
    problem = Problem("add", kind="function", entry_point="add", tests=[Test("[1, 2]", "3")])
    found = judged(judge, RIGHT, problem)
    assert found.verdict == "internal_error" and "C++ is judged on stdin problems only" in found.message


def test_another_language_is_refused_by_name(judge: Judge) -> None:
    found = judge.check(SQUARE, Solution("square", code="begin end.", language="pascal"))
    assert found.verdict == "internal_error" and "'pascal'" in found.message
    with pytest.raises(JudgeError, match="'pascal'"):
        judge.run("begin end.", "pascal")


def test_without_a_compiler_the_verdict_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with Judge(workers=1) as judge:
        found, ran = judged(judge, RIGHT), judge.run(RIGHT, "cpp").result()
        assert judge.check(SQUARE, code="print(int(input()) ** 2)").accepted
    assert found.verdict == ran.status == "internal_error"
    assert "apt-get install g++" in found.message and ran.message == found.message


@needs_compiler
def test_a_compiler_that_cannot_link_is_the_judges_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpp, "LINK", [*cpp.LINK, "-lnosuchlibrary"])
    languages.toolchain.cache_clear()
    examiner = Examiner(Settings())
    try:
        found = examiner.examine(SQUARE, Solution("square", code=RIGHT, language="cpp"))
    finally:
        examiner.close()
        languages.toolchain.cache_clear()
    assert found.verdict == "internal_error" and "cannot find -lnosuchlibrary" in found.message


@needs_compiler
def test_a_compilation_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpp.Cpp, "compiling", Limits(1.0, 1 << 30, 64 << 20))
    examiner = Examiner(Settings())
    try:
        found = examiner.examine(SQUARE, Solution("square", code=ENDLESS, language="cpp"))
    finally:
        examiner.close()
    assert (found.verdict, found.message) == ("compile_error", "compiling took over 1 s")


@needs_compiler
def test_a_dropped_candidate_takes_the_compiler_with_it() -> None:
    def compilers() -> list[psutil.Process]:
        return [p for p in psutil.Process().children(recursive=True) if p.name() == "cc1plus"]

    with Judge(workers=1) as judge:
        future = judge.submit(SQUARE, Solution("square", code=ENDLESS, language="cpp"))
        while not compilers():
            time.sleep(0.02)
        judge.drop(future)
        assert future.result(timeout=60).verdict == "internal_error"
        assert compilers() == []


@needs_compiler
def test_the_header_is_compiled_once_for_all_judges() -> None:
    folder = cpp.header("g++")[0]
    if not folder:
        pytest.skip("there is no place for it here")
    made = os.stat(f"{folder}/bits/stdc++.h.gch")
    assert cpp.header("g++")[0] == folder and os.stat(f"{folder}/bits/stdc++.h.gch").st_mtime == made.st_mtime
    assert made.st_size > 1 << 20


def test_a_python_program_is_run_and_not_judged(judge: Judge) -> None:
    code = "import sys\nprint(input())\nprint('so', file=sys.stderr)\nraise ValueError(7)"
    ran = judge.run(code, stdin="hello").result()
    assert (ran.status, ran.stdout, ran.exit_code) == ("runtime_error", "hello\n", 1)
    assert ran.stderr.splitlines() == [
        "so", "Traceback (most recent call last):", '  File "solution.py", line 4, in <module>', "ValueError: 7",
    ]  # fmt: skip
    assert judge.run("print(1)").result().status == "ok"
    assert judge.run("print(").result().compile_error.startswith("SyntaxError")


def test_a_run_has_limits_of_its_own(judge: Judge) -> None:
    small = Limits(0.3, 64 << 20, 1 << 10)
    assert judge.run("while True: pass", limits=small).result().status == "time_limit"
    assert judge.run("x = bytearray(1 << 40)", limits=small).result().status == "memory_limit"
    full = judge.run("import sys\nprint('x' * 2000)\nsys.stderr.write('y' * 2000)", limits=small).result()
    assert full.status == "output_limit" and len(full.stdout) == 1 << 10 and len(full.stderr) <= 1 << 10


@needs_compiler
def test_a_cpp_program_is_run_and_not_judged(judge: Judge) -> None:
    ran = judge.run(READ + 'fprintf(stderr, "so"); printf("%d", n); fflush(stdout); abort(); }', "c++", "5").result()
    assert (ran.status, ran.stdout, ran.stderr) == ("runtime_error", "5", "so")
    assert (ran.exit_code, ran.signal) == (-6, "SIGABRT") and ran.wall_s > 0
    assert judge.run(RIGHT, "cpp", "5").result().stdout == "25\n"
    broken = judge.run("int main(", "cpp").result()
    assert broken.status == "compile_error" and broken.compile_error.startswith("solution.cpp:1:")


@needs_compiler
def test_the_command_judges_two_languages(tmp_path: Path) -> None:
    problem = {"id": "square", "tests": [{"input": "3\n", "output": "9\n"}]}
    rows = [
        {"id": "a", "problem_id": "square", "code": RIGHT, "language": "c++"},
        {"id": "b", "problem_id": "square", "completion": f"```cpp\n{RIGHT}\n```", "language": "cpp"},
        {"id": "c", "problem_id": "square", "code": "print(int(input()) ** 2)"},
        {"id": "d", "problem_id": "square", "code": RIGHT},
    ]
    (tmp_path / "problems.jsonl").write_text(json.dumps(problem))
    (tmp_path / "solutions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    arguments = "judge problems.jsonl solutions.jsonl -o verdicts.jsonl --workers 1".split()
    subprocess.run([sys.executable, "-m", "microcoder.cli", *arguments], cwd=tmp_path, check=True, capture_output=True)
    found = [json.loads(line) for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    verdicts = {record["id"]: record["verdict"] for record in found}
    assert verdicts == {"a": "accepted", "b": "accepted", "c": "accepted", "d": "compile_error"}
