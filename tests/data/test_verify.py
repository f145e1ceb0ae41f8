"""Verifying through the judge: wrong, flaky and weak tests are found, and right ones stay."""

from __future__ import annotations

import itertools

import pytest
from chat_server import chat_server

from microcoder.data.endpoint import Endpoint
from microcoder.data.record import Dropped, Record
from microcoder.data.verify import Options, agreement, readable, references, strength, verify
from microcoder.data.verify.agreement import AnswerRecorder
from microcoder.judge import Judge, JudgeError
from microcoder.schema import Compare, Problem, Test

ADD = "a, b = map(int, input().split())\nprint(a + b)\n"
SUMS = [Test("1 2", "3"), Test("5 -7", "-2"), Test("10 0", "10")]
LARGEST = """
def largest(values):
    best = values[0]
    for v in values:
        if v > best:
            best = v
    return best
"""


@pytest.fixture(scope="module")
def judge():
    with Judge(workers=2) as running:
        yield running


@pytest.fixture(scope="module")
def recorder(judge):
    running = AnswerRecorder(judge.sandbox)
    yield running
    running.close()


def record(*codes, tests=SUMS, wrong=(), **fields):
    right = [code if isinstance(code, dict) else {"code": code, "language": "python", "verdict": ""} for code in codes]
    known = [{"code": code, "language": "python", "verdict": verdict} for code, verdict in wrong]
    return Record(Problem("p", tests=list(tests), solutions=right + known, **fields))


def asserts(code, *lines, **fields):
    return record(code, tests=(), kind="assert", asserts=list(lines), entry_point="largest", **fields)


def reason(step, *args, **named):
    with pytest.raises(Dropped) as raised:
        step(*args, **named)
    return raised.value.reason, raised.value.detail


# references


def test_a_reference_that_is_accepted_twice_verifies_its_problem(judge):
    found = references(record(ADD, tags=["unverified", "maths"]), judge=judge)
    assert (found.notes["references"], found.notes["references_rejected"]) == (1, 0)
    assert found.problem.tags == ["maths"]
    assert 0 < found.notes["reference_cpu_s"] <= found.notes["reference_total_s"]


def test_a_wrong_expected_output_is_found_by_the_reference(judge):
    tests = [*SUMS[:2], Test("10 0", "11")]
    assert reason(references, record(ADD, tests=tests), judge=judge) == (
        "reference_fails",
        "wrong_answer on test 2: token 1: got 10, expected 11",
    )


def test_an_endless_reference_fails_by_its_time(judge):
    why, detail = reason(references, record("while True: pass"), judge=judge, options=Options(patience_s=0.2))
    assert (why, detail.split()[0]) == ("reference_fails", "time_limit")


@pytest.mark.parametrize(
    "chance",
    [
        "import os\nwrong = os.urandom(1)[0] < 128",
        "import time\nwrong = time.perf_counter_ns() // 100 % 2",
        "import random\nwrong = random.random() < 0.5",  # which the judge seeds: on its own, its verdict repeats
        "from random import choice as pick\nwrong = pick([False, True])",
    ],
)
def test_a_reference_that_leaves_it_to_chance_is_flaky(judge, chance):
    code = f"{chance}\n{ADD}print() if not wrong else print(1)\n"
    options = Options(chance_runs=20)
    assert reason(references, record(code, tests=SUMS[:1]), judge=judge, options=options)[0] == "flaky"


def test_chance_that_does_not_change_the_answer_is_no_fault(judge):
    code = "import random\nvalues = list(map(int, input().split()))\nrandom.shuffle(values)\nprint(sum(values))\n"
    assert references(record(code), judge=judge).notes["references"] == 1


def test_of_several_references_the_accepted_ones_stay(judge):
    found = references(record("print(3)", ADD, "print(", wrong=[("print(4)", "wrong_answer")]), judge=judge)
    assert [solution["code"] for solution in found.problem.solutions] == [ADD, "print(4)"]
    assert (found.notes["references"], found.notes["references_rejected"]) == (1, 2)
    assert "2 of 3 reference solutions removed: wrong_answer on test 1" in found.problem.lineage[-1]


def test_a_known_wrong_solution_that_is_accepted_convicts_the_tests(judge):
    nearly = ADD.replace("a + b", "abs(a + b)")
    fine = record(ADD, wrong=[(nearly, "wrong_answer"), ("1 / 0", "runtime_error")])
    assert references(fine, judge=judge) is fine
    lax = record(ADD, tests=SUMS[:1], wrong=[(nearly, "wrong_answer")])
    assert reason(references, lax, judge=judge)[0] == "accepts_wrong"


def test_a_problem_without_a_solution_that_can_be_run_is_kept_as_unverified(judge):
    for solutions in ((), ({"code": "int main() {}", "language": "cpp", "verdict": "accepted"},)):
        found = references(record(*solutions), judge=judge)
        assert found.problem.tags == ["unverified"]
        assert found.notes["solutions_not_run"] == len(solutions)


@pytest.mark.parametrize(
    ("language", "runs"), [("", 1), ("Python 3.11", 1), ("py", 1), ("PyPy 3-64", 1), ("python2", 0), ("Ruby", 0)]
)
def test_python_is_told_by_its_names(judge, language, runs):
    found = references(record({"code": ADD, "language": language, "verdict": "Accepted"}), judge=judge)
    assert found.notes["references"] == runs


def test_a_time_limit_that_a_reference_nearly_needs_is_raised(judge):
    slow = "sum(range(1_000_000))\n" + ADD
    found = references(record(slow, time_limit_s=0.01), judge=judge)
    assert -0.001 < found.problem.time_limit_s - 2 * found.notes["reference_cpu_s"] < 0.11
    assert "time limit raised from 0.01" in found.problem.lineage[-1]
    assert references(record(ADD, time_limit_s=5.0), judge=judge).problem.time_limit_s == 5.0
    assert references(record(ADD, time_limit_s=1e-6), judge=judge).problem.time_limit_s > 0  # and stays one


def test_a_problem_whose_own_code_fails_cannot_be_judged(judge):
    broken = asserts(LARGEST, "assert largest([1]) == 1", setup="import no_such_module")
    assert reason(references, broken, judge=judge)[0] == "cannot_be_judged"


GARBAGE = [None, 5, -1.5, "text", b"bytes", [None], [{}], {"a": 1}, object(), [[]], {"code": "x"}]
FIELDS = ("tests", "solutions", "asserts", "kind", "entry_point", "setup", "time_limit_s", "id", "tags", "compare")


@pytest.mark.parametrize("field", FIELDS)
def test_garbage_is_dropped_or_kept_but_never_a_crash(judge, recorder, field):
    for value in GARBAGE:
        for step in (references, strength):
            bad = record(ADD)
            setattr(bad.problem, field, value)
            try:
                step(bad, judge=judge)
            except Dropped as loss:
                assert loss.reason in ("cannot_be_judged", "reference_fails")
        bad = record(ADD)
        setattr(bad.problem, field, value)
        try:
            agreement(bad, recorder=recorder)
        except Dropped as loss:
            assert loss.reason in ("cannot_be_judged", "no_expected_output")


# strength


def test_tests_that_reach_every_part_of_the_reference_are_strong(judge):
    code = "def largest(a, b):\n    if a > b:\n        return a * 2 + 1\n    return b - a\n"
    lines = ["assert largest(3, 1) == 7", "assert largest(1, 5) == 4", "assert largest(4, 4) == 0"]
    found = strength(asserts(code, *lines), judge=judge)
    assert found.notes["mutants"] >= 10
    assert (found.notes["mutants_alive"], found.notes["strength"], found.notes["survivors"]) == (0, 1.0, [])


def test_tests_that_let_mistakes_pass_are_weak_and_one_of_them_is_shown(judge):
    lines = ["assert largest([7]) == 7", "assert largest([5, 5]) == 5", "assert largest([2, 1]) == 2"]
    weak = asserts(LARGEST, *lines)
    why, detail = reason(strength, weak, judge=judge)
    assert why == "weak_tests"
    assert detail.startswith(f"{weak.notes['mutants_alive']} of {weak.notes['mutants']} mutants accepted, e.g. `")
    assert weak.notes["survivors"][0] in detail


@pytest.mark.parametrize(
    "same",
    [
        record("print('YES')", tests=[Test("1", "YES\n"), Test("2", "YES")]),
        record("def f(x):\n    return [1]", tests=[Test("[5]", "[1]")], kind="function", entry_point="f"),
        asserts(LARGEST, "assert largest([1, 2]) == 2", "assert largest([2, 1]) == 2"),
    ],
    ids=["stdin", "function", "assert"],
)
def test_tests_that_one_constant_answer_passes_are_weak(judge, same):
    assert reason(strength, same, judge=judge) == ("weak_tests", f"the constant answer {_constant(same)} is accepted")


def _constant(same):
    return {"stdin": "YES", "function": "[1]", "assert": "2"}[same.problem.kind]


@pytest.mark.parametrize("form", ["isinstance({}, int)", "type({}) is int", "{} is not None", "{} in range(10)"])
def test_tests_that_hardly_look_at_the_answer_are_weak_however_few_mutants_there_are(judge, form):
    short = "def largest(values):\n    return max(values)"
    weak = asserts(short, *(f"assert {form.format(f'largest({values})')}" for values in ([1, 2], [5, 3, 4])))
    assert reason(strength, weak, judge=judge)[0] == "weak_tests"
    sound = asserts(short, "assert largest([1, 2]) in (2, 3)", "assert abs(largest([5, 3]) - 5) < 1e-6")
    assert strength(sound, judge=judge)


def test_a_method_of_a_class_is_measured_too(judge):
    code = "class Solution:\n    def add(self, a, b):\n        return self.twice(a) + b\n"
    code += "    def twice(self, a):\n        return a * 2\n"
    given = [Test("[1, 2]", "4"), Test("[5, -3]", "7")]
    found = strength(record(code, tests=given, kind="function", entry_point="Solution.add"), judge=judge)
    assert (found.notes["mutants"], found.notes["strength"]) == (6, 1.0)


def test_too_few_mutants_say_nothing(judge):
    found = strength(record("print(sum(map(int, input().split())))"), judge=judge, options=Options(alive=0.0, least=50))
    assert found.notes["mutants"] < 50


def test_without_a_reference_nothing_is_measured(judge):
    assert strength(record(), judge=judge).notes == {}


# agreement

BLANK = [Test("1 2", ""), Test("5 -7", "")]
OTHER = "print(sum(map(int, input().split())))"


def test_what_most_solutions_answer_becomes_the_expected_output(judge, recorder):
    found = agreement(record(ADD, OTHER, "print(3)", ADD.replace("a +", "b * 0 + a +"), tests=BLANK), recorder=recorder)
    assert [test.output.strip() for test in found.problem.tests] == ["3", "-2"]
    assert references(found, judge=judge).notes["references_rejected"] == 1


@pytest.mark.parametrize(
    ("codes", "why", "detail"),
    [
        ([ADD, "print(3)"], "solutions_disagree", "1 of 2 agree on test 1"),
        ([ADD, OTHER, "1 / 0", "print("], "solutions_disagree", "2 of 4 agree on test 0; 2 fail"),
        ([ADD, "# the same\n" + ADD], "no_expected_output", "there are 1 independent"),
        (["x = 1", "x = 2"], "solutions_disagree", "they print nothing"),
    ],
)
def test_without_a_clear_majority_there_is_no_expected_output(recorder, codes, why, detail):
    found = reason(agreement, record(*codes, tests=BLANK), recorder=recorder)
    assert found[0] == why
    assert found[1].startswith(detail)


@pytest.mark.parametrize(
    ("body", "again", "written"),
    [
        ("return (x, str(x))", "return [x, f'{x}']", '[3, "3"]'),
        ("return {x: None}", "return dict([(x, None)])", '{"3": null}'),
        ("return {x}", "return set([x])", "{3}"),
        ("return x / 9", "return x * (1 / 9)", "0.3333333333333333"),
    ],
)
def test_values_that_functions_return_are_written_as_tests_have_them(judge, recorder, body, again, written):
    codes = [f"def f(x):\n    {line}\n" for line in (body, again)]
    found = agreement(record(*codes, tests=[Test("[3]", "")], kind="function", entry_point="f"), recorder=recorder)
    assert found.problem.tests == [Test("[3]", written)]
    assert references(found, judge=judge).notes["references"] == 2


def test_a_function_that_changes_its_argument_is_voted_on_by_that(judge, recorder):
    codes = ["def f(x: list) -> None:\n    x.sort()\n", "def f(x: list) -> None:\n    x[:] = sorted(x)\n"]
    found = agreement(record(*codes, tests=[Test("[[2, 1]]", "")], kind="function", entry_point="f"), recorder=recorder)
    assert found.problem.tests == [Test("[[2, 1]]", "[1, 2]")]
    assert references(found, judge=judge).notes["references"] == 2


def test_a_problem_with_a_checker_or_with_outputs_is_not_voted_on(recorder):
    checker = Compare(checker="def check(i, o, e): return True")
    for fine in (record(ADD), record(ADD, tests=BLANK, compare=checker)):
        before = list(fine.problem.tests)
        assert agreement(fine, recorder=recorder).problem.tests == before


# the whole


def test_records_come_out_in_the_order_they_went_in_kept_or_dropped(judge):
    slow = "sum(range(1_000_000))\n" + ADD
    codes = [slow, "print(0)", ADD, slow, "1 / 0", ADD]
    records = [record(code) for code in codes]
    results = list(verify(iter(records), judge, options=Options(mutants=0, window=3)))
    assert [r if isinstance(r, Record) else r[0] for r in results] == records
    assert [isinstance(r, Record) for r in results] == [True, False, True, True, False, True]
    assert results[1][1].reason == "reference_fails"


def test_it_streams_an_endless_source(judge):
    read = itertools.count()
    source = (record(ADD) for _ in read)
    kept = list(itertools.islice(verify(source, judge, options=Options(mutants=0, window=2)), 5))
    assert all(isinstance(found, Record) for found in kept)
    assert next(read) <= 5 + 2 * 2


def test_outputs_references_and_strength_are_seen_to_in_one_go(judge):
    other = "x, y = input().split()\nprint(int(y) + int(x))"
    [found] = verify([record(ADD, other, tests=[*BLANK, Test("10 0", "")])], judge)
    assert [test.output.strip() for test in found.problem.tests] == ["3", "-2", "10"]
    assert (found.notes["voters"], found.notes["references"], found.notes["strength"]) == (2, 2, 1.0)


def test_a_judge_that_is_gone_is_no_fault_of_the_records():
    closed = Judge(workers=1)
    closed.close()
    with pytest.raises(JudgeError):
        list(verify([record(ADD)], closed))


# reading


@pytest.fixture
def server():
    with chat_server() as running:
        yield running


def test_a_model_that_cannot_read_a_statement_says_why(judge, server):
    server.replies = ['Well: {"readable": true, "complete": false, "reason": "the input is not described"}']
    endpoint = Endpoint(server.url, "tiny", key_env="")
    asked = record(ADD, statement="Print it.", starter_code="a = input()")
    [(found, loss)] = verify([asked], judge, options=Options(mutants=0), endpoint=endpoint)
    assert (found, loss.reason, loss.detail) == (
        asked,
        "unreadable_by_model",
        "not complete: the input is not described",
    )
    assert "Print it." in server.asked[0]["messages"][0]["content"]
    assert "a = input()" in server.asked[0]["messages"][0]["content"]


@pytest.mark.parametrize(
    ("reply", "noted"),
    [
        ('{"readable": true, "complete": true, "reason": ""}', "ok"),
        ('```json\n{"readable": true, "complete": true}\n```', "ok"),
        ('{"readable": "no", "complete": 0}', "no answer"),
        ("No.", "no answer"),
        ("}{", "no answer"),
        (400, "no answer"),
    ],
)
def test_a_problem_stays_unless_it_was_plainly_refused(server, reply, noted):
    server.replies = [reply]
    found = readable(record(ADD, statement="Add."), endpoint=Endpoint(server.url, "tiny", key_env="", max_retries=0))
    assert found.notes["reading"] == noted
