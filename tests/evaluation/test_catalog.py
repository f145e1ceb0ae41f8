"""HumanEval, MBPP and files of one's own as suites: all of their problems, or a message that says what to do."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pyarrow.parquet
import pytest

from microcoder import Judge, Solution
from microcoder.evaluation.catalog import load_suite
from microcoder.evaluation.suite import EvaluationError
from microcoder.files import write_problems
from microcoder.prompts import messages
from microcoder.schema import Problem, Test


def refused(words, name, **options):
    with pytest.raises(EvaluationError, match=words):
        load_suite(name, **options)


PROMPT = 'from typing import List\n\n\ndef double(x: int) -> int:\n    """Twice x."""\n'
CHECK = "def check(candidate):\n    assert candidate(2) == 4\n"


def humaneval_rows(count):
    row = {"prompt": PROMPT, "entry_point": "double", "canonical_solution": "    return 2 * x\n", "test": CHECK}
    return [{"task_id": f"HumanEval/{n}", **row} for n in range(count)]


def mbpp_rows(numbers):
    return [
        {"task_id": n, "text": f"Write a function to add {n}.", "code": f"def add(x):\r\n  return x + {n}",
         "test_list": [f"assert add(1) == {n + 1}", f"assert add(0) == {n}"], "test_setup_code": "",
         "challenge_test_list": ["assert add(7) == 'never asked'"]}
        for n in numbers
    ]  # fmt: skip


def jsonl(path, rows):
    data = "\n".join(map(json.dumps, rows)).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


def accepted(suite, codes):
    pairs = [(suite.problems.whole(n), Solution(suite.problems[n].id, code=code)) for n, code in codes.items()]
    with Judge(time_limit_s=suite.time_limit_s) as judge:
        return all(verdict.accepted for _, verdict in judge.map(pairs))


def test_humaneval_is_164_problems_asked_with_their_raw_prompts(tmp_path):
    suite = load_suite("humaneval", data=jsonl(tmp_path / "h.jsonl.gz", humaneval_rows(164)))
    assert (len(suite.problems), suite.style, suite.tries, suite.limits) == (164, "humaneval", 4, (1024,))
    assert suite.time_limit_s == 3
    problem = suite.problems[3]
    assert (problem.id, problem.statement, problem.setup) == ("HumanEval/3", "Twice x.", "from typing import List")
    assert messages(problem, suite.style)[0]["content"].endswith(f"the code for this function.\n{PROMPT}")
    assert problem.solutions[0]["code"] == PROMPT + "    return 2 * x\n"
    assert accepted(suite, {3: problem.solutions[0]["code"]})
    assert not accepted(suite, {3: "def double(x): return 5"})


def test_mbpp_is_its_test_part_with_its_three_asserts_alone(tmp_path):
    suite = load_suite("mbpp", data=jsonl(tmp_path / "m.jsonl", mbpp_rows(range(1, 975))))
    assert (len(suite.problems), suite.style, suite.limits, suite.time_limit_s) == (500, "mbpp", (1024,), 10)
    assert [suite.problems[0].id, suite.problems[-1].id] == ["mbpp/11", "mbpp/510"]
    assert suite.problems[0].asserts == ["assert add(1) == 12", "assert add(0) == 11"]
    assert accepted(suite, {0: suite.problems[0].solutions[0]["code"]})


def test_a_setup_of_mbpp_can_build_on_the_answers_own_class(tmp_path):
    code = "class Node:\n    def __init__(self, v):\n        self.v = v\n\ndef value(n):\n    return n.v"
    (row,) = mbpp_rows([367])
    row |= {"code": code, "test_setup_code": "root = Node(3) \r\nroot.v = 4", "test_list": ["assert value(root) == 4"]}
    suite = load_suite("mbpp", data=jsonl(tmp_path / "m.jsonl", [row]), unchecked=True)
    assert suite.problems[0].asserts == ["root = Node(3) \nroot.v = 4\nassert value(root) == 4"]
    assert accepted(suite, {0: code})
    assert not accepted(suite, {0: code.replace("n.v", "3")})
    (message,) = messages(suite.problems[0], suite.style)  # nothing else tells what a Node is made of
    shown = message["content"].partition("which your code should define too:\n\n")[2]
    assert shown.startswith("class Node:") and "self.v = v" in shown and "def value" not in shown


def test_the_prompt_of_mbpp_is_the_papers_where_tests_use_plain_values(tmp_path):
    suite = load_suite("mbpp", data=jsonl(tmp_path / "m.jsonl", mbpp_rows([11])), unchecked=True)
    (message,) = messages(suite.problems[0], suite.style)
    assert message["content"].endswith("these tests:\n\nassert add(1) == 12\nassert add(0) == 11")


@pytest.mark.parametrize("inside", ["openai_humaneval/test-00000-of-00001.parquet", "test-00000-of-00001.parquet"])
def test_a_folder_may_be_laid_out_as_on_the_hub(tmp_path, inside):
    (tmp_path / inside).parent.mkdir(exist_ok=True)
    pa.parquet.write_table(pa.Table.from_pylist(humaneval_rows(164)), tmp_path / inside)
    assert len(load_suite("humaneval", data=str(tmp_path)).problems) == 164


@pytest.mark.parametrize(
    ("name", "rows", "words"),
    [
        ("humaneval", humaneval_rows(163), "has 163 problems, but humaneval has 164; download .*--unchecked"),
        ("mbpp", mbpp_rows(range(1, 400)), "has 389 problems with ids 11 to 510, but mbpp has 500"),
        ("humaneval", [*humaneval_rows(2), humaneval_rows(1)[0]], r"d\.jsonl: problem .HumanEval/0. is there twice"),
        ("humaneval", [{"task_id": "HumanEval/0"}], r"d\.jsonl:1: missing_column.*is it humaneval's file\?"),
        ("humaneval", [[]], r"d\.jsonl:1: unreadable_row"),
        ("mbpp", [{**mbpp_rows([11])[0], "test_list": []}], r'd\.jsonl: problem .mbpp/11.: .*"asserts" is empty'),
        ("mbpp", [{**mbpp_rows([11])[0], "task_id": "eleven"}], "mbpp/eleven is no task of mbpp"),
    ],
)
def test_a_classic_that_is_not_whole_is_refused(tmp_path, name, rows, words):
    refused(words, name, data=jsonl(tmp_path / "d.jsonl", rows))


def test_any_file_of_problems_is_a_suite_with_our_own_prompts(tmp_path):
    path = tmp_path / "mine.jsonl"
    problems = [Problem(str(n), tests=[Test("1", "1")], date=f"2024-01-0{n}", platform="here") for n in range(1, 4)]
    write_problems(path, problems)
    suite = load_suite(str(path))
    assert (suite.name, suite.style, [p.id for p in suite.problems]) == (str(path), "code", ["1", "2", "3"])
    assert suite.problems.whole(0).tests == [Test("1", "1")]
    assert [p.id for p in load_suite(str(path), start="2024-01-02", platforms=["here"], first=1).problems] == ["2"]


def test_a_file_in_a_layout_that_data_knows_is_a_suite_too(tmp_path):
    suite = load_suite(jsonl(tmp_path / "m.jsonl", mbpp_rows([1, 2])))
    assert (suite.style, [problem.id for problem in suite.problems]) == ("code", ["mbpp/1", "mbpp/2"])


ONE = {"id": "a", "tests": [{"input": "1", "output": "1"}]}


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ([ONE, ONE], {}, r"mine\.jsonl: problem 'a' is there twice .*mend the line"),
        ([ONE, {"id": "b"}], {}, r"mine\.jsonl:2: .*\"tests\" is empty"),
        (mbpp_rows([1, 1]), {}, "'mbpp/1' is there twice"),
        ([{"what": 1}], {}, "no layout that is known"),
        ([], {}, "it is empty"),
        ([ONE], {"start": "2024-01-01"}, "1 of 1 problems have no date"),
        ([ONE], {"release": "v6"}, "--release cannot be used with .*mine.jsonl, which is a file of problems"),
        ([ONE], {"data": "x", "unchecked": True}, "leave out --data and --unchecked"),
    ],
)
def test_a_file_of_problems_that_cannot_be_used_is_refused(tmp_path, rows, options, words):
    refused(words, jsonl(tmp_path / "mine.jsonl", rows), **options)


@pytest.mark.parametrize("name", ["humaneval", "mbpp"])
def test_options_that_a_suite_does_not_have_are_refused(name):
    refused(f"--release and --platform cannot be used with {name}", name, release="v6", platforms=["atcoder"])


@pytest.mark.parametrize(
    ("name", "words"), [("livecodbench", "did you mean 'livecodebench'"), ("gsm", "suites are livecodebench, humane")]
)
def test_a_suite_that_does_not_exist_gets_the_nearest_name(name, words):
    refused(words, name)
