"""Checkers in C++, called as `checker input output answer`. The header here is a stand-in with testlib's names."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from microcoder import Judge, Problem, Solution, Test
from microcoder.schema import Compare

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here")
HEADER = r"""
#pragma once
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
enum TResult { _ok = 0, _wa = 1, _pe = 2, _fail = 3 };
[[noreturn]] inline void quitf(TResult result, const char* text, ...) {
    va_list rest;
    va_start(rest, text);
    vfprintf(stderr, text, rest);
    exit(result);
}
struct InStream {
    std::ifstream file;
    std::string readToken() {
        std::string word;
        if (!(file >> word)) quitf(_pe, "unexpected end of file");
        return word;
    }
    int readInt() { return atoi(readToken().c_str()); }
    bool seekEof() { return (file >> std::ws).eof(); }
};
static InStream inf, ouf, ans;
inline void registerTestlibCmd(int argc, char* argv[]) {
    if (argc != 4) quitf(_fail, "%d arguments", argc);
    inf.file.open(argv[1]);
    ouf.file.open(argv[2]);
    ans.file.open(argv[3]);
}
"""
SUM = r"""// any two numbers with the wanted sum
#include "testlib.h"
int main(int argc, char* argv[]) {
    registerTestlibCmd(argc, argv);
    int wanted = inf.readInt(), a = ouf.readInt(), b = ouf.readInt();
    if (ans.readToken() != "jury") quitf(_fail, "the answer file is not the jury's");
    if (!ouf.seekEof()) quitf(_pe, "more than two numbers");
    if (a + b != wanted) quitf(_wa, "%d and %d do not give %d", a, b, wanted);
    quitf(_ok, "fine");
}
"""


@pytest.fixture(scope="module")
def judge(tmp_path_factory) -> Iterator[Judge]:
    header = tmp_path_factory.mktemp("header") / "testlib.h"
    header.write_text(HEADER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MICROCODER_TESTLIB", str(header))
        with Judge(workers=1) as judge:
            yield judge


def verdict(judge: Judge, code: str, checker: str = SUM, answer: str = "jury\n"):
    problem = Problem("sum", tests=[Test("7\n", answer)], compare=Compare(checker=checker), time_limit_s=2)
    return judge.check(problem, Solution("sum", code=code))


@pytest.mark.parametrize(
    ("code", "answer", "expected", "message"),
    [
        ("print(3, 4)", "jury\n", "accepted", ""),
        ("print(-1)\nprint(8)", "jury\n", "accepted", ""),
        ("print(3, 5)", "jury\n", "wrong_answer", "checker: 3 and 5 do not give 7"),
        ("print(3)", "jury\n", "wrong_answer", "checker: unexpected end of file"),
        ("print(3, 4, 0)", "jury\n", "wrong_answer", "checker: more than two numbers"),
        ("print(3, 4)", "nobody\n", "internal_error", "the checker failed: the answer file is not the jury's"),
    ],
)
def test_the_exit_code_of_a_checker_decides(judge, code, answer, expected, message):
    found = verdict(judge, code, answer=answer)
    assert (found.verdict, found.strategy) == (expected, "checker" if expected == "accepted" else "")
    assert message in found.message


def test_a_checker_without_testlib_is_called_alike(judge):
    own = '#include <cstring>\nint main(int n, char** names) { return n != 4 || strcmp(names[2], "output.txt"); }'
    assert verdict(judge, "print(1)", own).verdict == "accepted"


def test_a_checker_that_crashes_refuses(judge):
    own = "#include <cstdlib>\nint main(int, char**) { abort(); }"
    found = verdict(judge, "print(1)", own)
    assert (found.verdict, "the checker stopped" in found.message) == ("wrong_answer", True)


def test_a_checker_that_does_not_compile_is_the_problem_s_fault(judge):
    found = verdict(judge, "print(1)", "#include <cstdio>\nint main(int, char**) { return x; }")
    assert (found.verdict, "the checker does not compile" in found.message) == ("internal_error", True)


def test_without_testlib_the_message_says_what_to_set(monkeypatch):
    monkeypatch.delenv("MICROCODER_TESTLIB", raising=False)
    with Judge(workers=1) as judge:
        found = verdict(judge, "print(3, 4)")
    assert found.verdict == "internal_error"
    assert "MICROCODER_TESTLIB is not set; set it to the path of testlib.h" in found.message
