"""From weak tests to stronger ones: the search, labels, reasons, and a whole file."""

from __future__ import annotations

import json
import shutil
import threading
import time
from dataclasses import replace

import pytest

from microcoder import forge as forge_file
from microcoder import load_problems
from microcoder.config import load_as
from microcoder.data import forge as room
from microcoder.data.forge import ForgeOptions, forge
from microcoder.data.forge.adversaries import AdversaryStore
from microcoder.data.forge.finds import Find, reduced
from microcoder.data.forge.label import SMALL_S, Labelled, limit_tests, time_limit
from microcoder.data.forge.mistakes import mistakes
from microcoder.data.forge.run import Behaviour
from microcoder.data.forge.search import Effort
from microcoder.data.forge.space import Candidate, NoSpace
from microcoder.data.forge.whole import Journal
from microcoder.data.record import DataError, Record
from microcoder.data.settings import Pipeline
from microcoder.data.verify.programs import judged
from microcoder.files import FileError, write_problems
from microcoder.judge import Judge
from microcoder.schema import Compare, Problem, Test

from .shared_space import LARGEST, Numbers, weak

WRONG = "class Solution:\n    def largest(self, nums):\n        return {}\n"
BURN = """
import time
class Solution:
    def largest(self, nums):
        end = time.process_time() + 0.3 * ({})
        while time.process_time() < end:
            pass
        return max(nums)
"""
QUICK = ForgeOptions(Effort(tests=8, candidates=48, mutants=30))


@pytest.fixture(scope="module")
def judge():
    with Judge(workers=2) as found:
        yield found


@pytest.fixture(autouse=True)
def numbers(monkeypatch):
    monkeypatch.setattr(room, "space_of", lambda problem, references: Numbers())


def forged(judge, problem, **options):
    (record,) = forge([Record(problem)], judge, options=QUICK, **options)
    return record.problem


def test_forged_tests_refuse_what_weak_ones_accept_and_accept_what_is_right(judge):
    problem = forged(judge, weak())
    about = problem.extra["forge"]
    assert problem.tests[0] == Test("[[7]]", "7", SMALL_S) and 2 <= len(problem.tests) <= 9
    assert about["before"]["alive"] > 3 * about["after"]["alive"]
    assert [test["test"] for test in about["tests"]] == list(range(1, len(problem.tests)))
    assert all(test["by"] and "seed" in test for test in about["tests"]) and any(t["killed"] for t in about["tests"])
    for wrong in ("nums[0]", "nums[-1]", "max(nums[:3])", "abs(max(nums))", "sum(nums)"):
        assert judge.check(weak(), code=WRONG.format(wrong)).accepted
        assert not judge.check(problem, code=WRONG.format(wrong)).accepted, wrong
    assert judge.check(problem, code=WRONG.format("sorted(nums)[-1]")).accepted


def test_the_same_seed_forges_the_same_tests(judge):
    first, second = (forged(judge, weak()).tests for _ in range(2))
    assert first == second


def test_adversaries_are_killed_and_named(judge):
    code = WRONG.format("max(nums) if len(nums) != 4 else 0")
    about = forged(judge, weak(), adversaries=lambda ident: [("a1b2", code)]).extra["forge"]
    assert about["before"]["adversaries_alive"] == 1 and about["after"]["adversaries_alive"] == 0
    assert any("adversary a1b2" in test["killed"] for test in about["tests"])


def test_a_slow_adversary_that_the_judge_accepts_is_not_counted_as_refused(judge):
    slow = BURN.replace("0.3 * ({})", "0.1")
    about = forged(judge, weak(), adversaries=lambda ident: [("slow", slow)]).extra["forge"]
    assert about["before"]["adversaries_alive"] == about["after"]["adversaries_alive"] == 1
    assert not any("adversary slow" in test["killed"] for test in about["tests"])


@pytest.mark.parametrize(
    ("fields", "reason", "detail"),
    [
        ({"solutions": []}, "no_reference", "no Python solution"),
        ({"solutions": [{"code": WRONG.format("0")}]}, "reference_fails", "wrong_answer"),
        ({"solutions": [{"code": WRONG.format("7 if nums == [7] else [][0]")}]}, "no_test", "fails"),
        ({"solutions": [{"code": WRONG.format("7 if nums == [7] else [0 for i in iter(int, 1)]")}]},
         "no_test", "slow"),
        ({"tests": []}, "cannot_be_judged", "empty"),
        ({"statement": "Assume that each input would have exactly one solution."}, "unique_answer", "exactly one"),
    ],
)  # fmt: skip
def test_a_problem_that_cannot_be_forged_stays_as_it_is_and_says_why(judge, fields, reason, detail):
    before = weak(**fields)
    problem = forged(judge, weak(**fields))
    about = problem.extra.pop("forge")
    assert about["reason"] == reason and detail in about["detail"]
    assert problem == before


def test_no_space_is_a_reason(judge, monkeypatch):
    def none(problem, references):
        raise NoSpace("no constraints, and no tests that could be changed")

    monkeypatch.setattr(room, "space_of", none)
    assert forged(judge, weak()).extra["forge"] == {
        "reason": "no_space",
        "detail": "no constraints, and no tests that could be changed",
    }


def test_an_example_that_the_reference_contradicts_is_named_even_if_nothing_can_be_forged(judge, monkeypatch):
    def none(problem, references):
        raise NoSpace("nothing is known")

    statement = "Return the largest number.\n\nInput: nums = [3, 1]\nOutput: {}\n{}"
    wrong = forged(judge, weak(statement=statement.format(1, ""))).extra["forge"]
    assert len(wrong["contradictions"]) == 1 and "got 3, expected 1" in wrong["contradictions"][0]
    monkeypatch.setattr(room, "space_of", none)
    unforged = forged(judge, weak(statement=statement.format(1, ""))).extra["forge"]
    assert unforged["reason"] == "no_space" and unforged["contradictions"] == wrong["contradictions"]
    for text in (statement.format(3, ""), statement.format(1, "If there are several answers, return any of them.")):
        assert "contradictions" not in forged(judge, weak(statement=text)).extra["forge"]


def test_inputs_on_which_references_disagree_are_left_out_and_the_odd_one_is_named(judge):
    codes = [LARGEST, WRONG.format("max(nums)"), WRONG.format("max(nums) if len(nums) < 3 else 99")]
    problem = forged(judge, weak(solutions=[{"code": code} for code in codes]))
    about = problem.extra["forge"]
    assert about["left_out"]["references disagree"] > 0
    assert any("reference 3 stands alone" in text for text in about["refused"])
    assert all(len(json.loads(test.input)[0]) < 3 for test in problem.tests)


def test_a_reference_that_uses_chance_labels_nothing_that_changes(judge):
    chance = "import random\n" + WRONG.format("max(nums) if len(nums) == 1 else random.randrange(10 ** 6)")
    about = forged(judge, weak(solutions=[{"code": chance}])).extra["forge"]
    tests = about.get("tests", [])
    assert about.get("reason") == "no_test" or (all(t["by"] for t in tests) and about["left_out"])
    coin = "import random\n" + WRONG.format("max(nums) if len(nums) < 4 else int(random.random() < 0.9)")
    problem = forged(judge, weak(solutions=[{"code": coin}]))
    assert all(len(json.loads(test.input)[0]) < 4 for test in problem.tests)


def test_several_right_answers_without_a_checker_are_left_out(judge):
    statement = "Return the largest number. If there are multiple answers, return any of them."
    problem = forged(judge, weak(statement=statement))
    assert {test.output for test in problem.tests[1:]} <= {"-1"}  # which says that there is no answer
    assert problem.extra["forge"]["left_out"]["several answers are right"] > 10


SUM = r"""
#include <cstdio>
int main(int, char* names[]) {
    long wanted, a, b;
    fscanf(fopen(names[1], "r"), "%ld", &wanted);
    if (fscanf(fopen(names[2], "r"), "%ld %ld", &a, &b) != 2) return 2;
    return a >= 0 && b >= 0 && a + b == wanted ? 0 : 1;
}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here")
def test_a_checker_in_cpp_decides_in_the_search_too(judge, monkeypatch):
    monkeypatch.undo()
    problem = Problem(
        "sum", statement="Print two numbers with the sum n.\n\nInput\n\nThe only line contains n (1 ≤ n ≤ 1000).\n",
        tests=[Test("1\n", "0 1\n"), Test("4\n", "0 4\n")], compare=Compare(checker=SUM),
        solutions=[{"code": "print(0, int(input()))"}, {"code": "n = int(input())\nprint(n // 2, n - n // 2)"}],
    )  # fmt: skip
    others = [("right", "print(1, int(input()) - 1)"), ("wrong", "n = int(input())\nprint(1, n - 1 + (n > 4))")]
    about = forged(judge, problem, adversaries=lambda ident: others).extra["forge"]
    assert "references disagree" not in about["left_out"]
    killed = {name for test in about["tests"] for name in test["killed"]}
    assert "adversary wrong" in killed and "adversary right" not in killed
    assert about["after"]["adversaries_alive"] == 1


def test_a_time_limit_is_only_lowered_and_only_where_none_was_given():
    assert time_limit(weak(), 0.3, 10) == 3.0
    assert time_limit(weak(), 0.001, 10) == 2.0  # never lower: a right program may be slower than the reference
    assert time_limit(weak(), 0.9, 10) is None  # the judge's own limit is lower
    assert time_limit(weak(time_limit_s=5), 0.3, 10) is None
    assert time_limit(weak(), 0.3, 0) is None


def test_a_time_limit_leaves_room_for_the_tests_that_a_problem_came_with(judge):
    problem = forged(judge, weak(solutions=[{"code": BURN.format("nums == [7]")}]))
    assert len(problem.tests) > 1 and problem.time_limit_s >= 3.0


def test_no_forged_test_takes_the_reference_more_than_half_of_the_time_limit_there_was(judge):
    slow = weak(solutions=[{"code": BURN.format("len(nums) > 3")}], time_limit_s=0.2)
    options = ForgeOptions(Effort(tests=8, candidates=12, mutants=0))
    (record,) = forge([Record(slow)], judge, options=options)
    assert record.problem.extra["forge"]["left_out"]["the reference is slow"] > 0
    assert len(record.problem.tests) > 1 and all(len(json.loads(t.input)[0]) < 4 for t in record.problem.tests)


def test_null_stays_the_answer_of_a_reference_that_sorts_its_argument(judge):
    twice = WRONG.format("next((a for a, b in zip(nums, nums[1:]) if a == b), None)").replace("ret", "nums.sort(); ret")
    problem = weak(starter_code="", tests=[Test("[[7, 7]]", "7"), Test("[[7]]", "null")], solutions=[{"code": twice}])
    assert "null" in {test.output for test in forged(judge, problem).tests[2:]}
    assert judge.check(problem, code=twice).accepted


def test_tests_may_be_written_as_literals_of_python(judge, monkeypatch):
    monkeypatch.undo()
    statement = "Return the longest.\n\nConstraints:\n\n1 <= words.length <= 5\n1 <= words[i].length <= 5\n"
    problem = Problem(
        "longest", "function", statement=statement, entry_point="f", starter_code="def f(words: list[str]) -> str:",
        tests=[Test("[['ab', 'c']]", "'ab'"), Test('{"words": ["d"]}', '"d"'), Test("[('e', 'ff')]", "'ff'")],
        solutions=[{"code": "def f(words):\n    return max(words, key=len)"}],
    )  # fmt: skip
    assert forged(judge, problem).extra["forge"]["tests"], problem.extra["forge"]


def test_no_forged_assert_repeats_one_there_was(judge, monkeypatch):
    monkeypatch.undo()
    problem = Problem(
        "twice", "assert", statement="Return twice n.", entry_point="f",
        asserts=["assert f(2) == 4", "assert f(5) == 10", "assert f(-3) == -6"],
        solutions=[{"code": "def f(n):\n    return 2 * n"}],
    )  # fmt: skip
    asserts = forged(judge, problem).asserts
    assert len(set(asserts)) == len(asserts) > 3
    (record,) = forge([Record(replace(problem, entry_point=""))], judge)
    assert "entry_point" in record.problem.extra["forge"]["detail"]


def test_each_test_gets_the_time_that_its_reference_needs(judge):
    code = "import time\nend = time.process_time() + float(input())\nwhile time.process_time() < end: pass\nprint(1)"
    problem = Problem("p", tests=[Test("0.001\n", "1\n"), Test("0.1\n", "1\n"), Test("0.4\n", "1\n")], time_limit_s=3)
    limit_tests(problem, [code], judge, 10)
    small, middle, large = (test.time_limit_s for test in problem.tests)
    assert small == SMALL_S and 1.0 < middle < 3.0 and large is None
    assert judge.check(judged(problem, 3), code="while True: pass").cpu_s >= 3  # with its own limits it ends in 0.5 s
    wrong = replace(problem, tests=[Test("0.001\n", "2\n")])
    limit_tests(wrong, [code], judge, 10)
    assert wrong.tests[0].time_limit_s is None  # what a program takes that is not right says nothing


def test_the_small_set_kills_what_the_whole_does():
    finds = [
        Find(Candidate(f"[{n}]", "random"), Labelled(f"[{n}]", str(n), Behaviour("ok"), 0.0), kills)
        for n, kills in enumerate([{1}, {1, 2}, {3}, {2, 3}, set(), {4}, {1, 2, 3}])
    ]
    chosen = reduced(finds, most=2, large=0)
    assert {kill for find in chosen for kill in find.kills} == {1, 2, 3, 4}
    assert len(reduced(finds, most=5, large=0)) == 5


def test_typical_mistakes_are_other_programs():
    made = mistakes(
        "def f(a):\n    if not a:\n        return 0\n    return max(sorted(set(a), key=abs)) % 7\n", entry_point="f"
    )
    said = " ".join(map(str, made))
    assert len({mutant.code for mutant in made}) == len(made) >= 5
    assert all(word in said for word in ("`max` -> `min`", "`key=`", "`set` left out", "modulus", "if not a"))


def test_adversaries_come_from_rollouts_solutions_and_samples(tmp_path):
    rows = [
        {"problem": "p", "completion": "x", "code": "a = 1", "verdict": "wrong_answer"},
        {"problem": "p", "completion": "x", "code": "a = 2", "verdict": "accepted"},
        {"problem_id": "p", "completion": "```python\na = 3\n```"},
        {"problem_id": "p", "number": 0, "text": "a = 4", "is_code": True},
        {"problem_id": "p", "code": "a = 1"},
        {"problem_id": "q", "code": "int a;", "language": "cpp"},
        {"problem": "p", "statement": "A statement"},
    ]
    (tmp_path / "rollouts").mkdir()
    (tmp_path / "rollouts" / "step_1.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\nbroken")
    store = AdversaryStore([tmp_path], most=3)
    found = [code for _, code in store.of("p")]
    assert len(found) == 3 and found[0] == "a = 2" and store.count == 4 and not store.of("q")
    assert store.passed_over == 2  # a program in C++, a line that cannot be read
    store.close()
    with pytest.raises(DataError, match="there is no"):
        AdversaryStore([tmp_path / "none"])
    (tmp_path / "empty.jsonl").write_text("{}\n")
    with pytest.raises(DataError, match="problem_id"):
        AdversaryStore([tmp_path / "empty.jsonl"])
    (tmp_path / "one.json").write_text(json.dumps(rows[1]))
    with pytest.raises(DataError, match="does not hold a JSON list"):
        AdversaryStore([tmp_path / "one.json"])


def test_a_program_that_is_found_twice_counts_once(tmp_path):
    rows = [{"problem": "p", "code": "a = 1", "verdict": word} for word in ("wrong_answer", "accepted")]
    rows.append({"problem": "p", "code": "a = 2", "completion": None, "verdict": "wrong_answer"})
    (tmp_path / "some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    store = AdversaryStore([tmp_path / "some.jsonl", tmp_path])
    assert store.count == 2 and [code for _, code in store.of("p")] == ["a = 1", "a = 2"]
    store.close()


def test_a_whole_file_goes_on_where_it_was_stopped(tmp_path):
    problems = [weak(), weak(solutions=[])]
    problems[1].id = "another"
    write_problems(tmp_path / "in.jsonl", problems)
    settings = {"forge.tests": 4, "forge.candidates": 48, "judge.workers": 1}
    seen = []

    def stop(before):
        seen.append(before)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        forge_file(tmp_path / "in.jsonl", tmp_path / "out.parquet", progress=stop, **settings)
    assert seen == [False] and not (tmp_path / "out.parquet").exists()
    summary = forge_file(tmp_path / "in.jsonl", tmp_path / "out.parquet", progress=seen.append, **settings)
    assert seen == [False, True, False]
    assert (summary.problems, summary.forged, summary.resumed) == (2, 1, 1)
    assert summary.reasons == {"no_reference": 1} and summary.after["alive"] < summary.before["alive"]
    first, second = load_problems(tmp_path / "out.parquet")
    assert len(first.tests) == 5 and first.extra["forge"]["tests"] and second.extra["forge"]["reason"] == "no_reference"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_only_work_that_is_done_takes_the_place_of_what_was_done_before(tmp_path):
    write_problems(tmp_path / "in.jsonl", [weak()])
    paths = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    first = Journal(paths[1], "digest", False)
    with first:
        first.append(weak())
        with pytest.raises(FileError, match="another process is writing"):
            forge_file(*paths)
    for wrong in ({"adversaries": tmp_path / "none"}, {"forge.endpoint": True}):
        with pytest.raises(DataError):
            forge_file(*paths, **{"judge.workers": 1}, **wrong)
    with first:
        assert len(list(first.done())) == 1
    with Journal(paths[1], "digest", True) as fresh:
        assert not list(fresh.done())
        fresh.append(weak(solutions=[]))
        assert [problem.solutions for problem in fresh.done()] == [[]]


def test_a_stop_does_not_wait_for_what_runs(judge):
    sleeps = "import time\n" + WRONG.format("(len(nums) > 1 and time.sleep(0.5)) or max(nums)")

    def records():
        yield Record(weak(solutions=[{"code": sleeps}]))
        time.sleep(2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(forge(records(), judge, options=QUICK))
    end = time.monotonic() + 5
    while (left := [one for one in threading.enumerate() if one.name.startswith("record")]) and time.monotonic() < end:
        time.sleep(0.05)
    assert not left


def test_extra_fields_pass_through_the_pipeline():
    record = Record(weak(extra={"forge": {"reason": "no_space"}, "from": "elsewhere"}))
    assert Record.from_dict(json.loads(json.dumps(record.to_dict()))) == record


def test_the_forge_is_off_unless_asked_for():
    assert load_as(Pipeline, None).forge.enabled is False
