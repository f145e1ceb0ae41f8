"""Collect: each layout's columns become a problem that the judge can judge, and nothing in a row can end the run."""

from __future__ import annotations

import base64
import json
import pickle
import zlib

import pytest

from microcoder import Judge, Solution
from microcoder.data.record import Record
from microcoder.data.sources import READERS, SourceError, Unreadable, collect, detect, free
from microcoder.schema import Problem, Test


def packed(tests):
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


CHECKER = """
import sys
def main():
    given, correct, answer = (open(name).read().split() for name in sys.argv[1:4])
    print(1 if sorted(answer) == sorted(correct) else 0)
if __name__ == "__main__":
    main()
"""
PROMPT = '''\
from typing import List

def one():
    return 1

def total(xs: List[int]) -> int:
    """ Add them.
    >>> total([1, 2])
    3
    """
'''
PYTEST = """
import pytest
from solution import half

EVEN = [2, 4]

def test_plain():
    "Both halves."
    assert half(4) == 2
    assert half(EVEN[0]) == 1

def test_near():
    assert half(1) == pytest.approx(0.5)

def test_loop():
    for n in EVEN:
        assert half(n) * 2 == n

def test_refuses():
    with pytest.raises(TypeError):
        half("x")

if __name__ == "__main__":
    pytest.main()
"""
ROWS = {
    "mbpp": {
        "task_id": 7,
        "text": "Write a function to double a number.",
        "code": "import math\r\ndef helper(x):\r\n    return x\r\ndef double(x, times=1):\r\n    return helper(x) * 2",
        "test_list": ["assert double(2) == 4", "assert sorted([double(1)]) == [2]"],
        "test_setup_code": "",
        "challenge_test_list": ["assert double(-1) == -2"],
    },
    "humaneval": {
        "task_id": "HumanEval/3",
        "prompt": PROMPT,
        "canonical_solution": "    return sum(xs)\n",
        "entry_point": "total",
        "test": "def check(candidate):\n    assert candidate([1, 2]) == 3\n    assert candidate([one()]) == 1\n",
    },
    "leetcode": {
        "task_id": "minus-one",
        "prompt": "from typing import *\n",
        "completion": "class Solution:\n    def minus(self, a: int, b: List[int]) -> int:\n        return a - b[0]\n",
        "entry_point": "Solution().minus",
        "test": "def check(some):\n    assert some(b = [1], a = 5) == 4\n    assert some(2, [3]) == -1\n",
        "query": "Take away.\nPlease complete the following python code precisely:\n```python\n```",
        "meta": {
            "question_id": 12,
            "difficulty": "Easy",
            "question_title": "Take away.\nConstraints: 1 <= a",
            "lang_code": "class Solution:\n    def minus(self, a: int, b: List[int]) -> int:\n        ",
        },
    },
    "apps": {
        "problem_id": 4,
        "question": "Print the sum.",
        "solutions": json.dumps(["print(sum(map(int, input().split())))", "print(eval(input().replace(*' +')))"]),
        "input_output": json.dumps({"inputs": ["1 2\n", ["3 4"]], "outputs": ["3\n", ["7"]]}),
        "difficulty": "Introductory",
        "url": "https://codeforces.com/problemset/problem/1/A",
        "starter_code": "",
    },
    "taco": {
        "question": "Return the pair.",
        "solutions": json.dumps(["class Solution:\n    def pair(self, a, b):\n        return [a, b]"]),
        "input_output": '{"fn_name": "pair", "inputs": [[1, 2], [[3], 4]], "outputs": [[[1, 2]], [[[3], 4]]]}',
        "difficulty": "UNKNOWN_DIFFICULTY",
        "starter_code": "class Solution:\n    def pair(self, a, b):",
        "raw_tags": "['arrays', 'easy']",
        "tags": '["arrays"]',
        "skill_types": "[]",
        "name": "Pair",
        "source": "GeeksforGeeks",
        "url": None,
        "date": "2021-05-06",
        "time_limit": "2.0 seconds",
        "memory_limit": "256.0 megabytes",
    },
    "code_contests": {
        "name": "1575_A. Twice",
        "description": "Print twice the number.",
        "public_tests": {"input": ["1\n"], "output": ["2\n"]},
        "private_tests": {"input": [], "output": []},
        "generated_tests": {"input": ["5\n", "7\n"], "output": ["10\n", "14\n"]},
        "source": 2,
        "difficulty": 7,
        "solutions": {"language": [2, 3], "solution": ["int main() {}", "print(2 * int(input()))"]},
        "incorrect_solutions": {"language": ["PYTHON3"], "solution": ["print(2 + int(input()))"]},
        "cf_contest_id": 1575,
        "cf_index": "A",
        "cf_rating": 1100,
        "cf_tags": ["math", ""],
        "time_limit": {"seconds": 1, "nanos": 500_000_000},
        "memory_limit_bytes": 256_000_000,
        "input_file": "",
        "output_file": "",
    },
    "codeforces": {
        "id": "1/A",
        "contest_id": "1",
        "index": "A",
        "contest_start": 1_691_000_000,
        "title": "Any order",
        "description": "Print the numbers in any order.",
        "input_format": "Two numbers.",
        "output_format": "The same.",
        "interaction_format": None,
        "note": "Easy.",
        "examples": [{"input": "1 2", "output": "2 1"}],
        "official_tests": [{"input": "1 2\n", "output": "2 1\n"}],
        "testset_size": 3,
        "time_limit": 2.0,
        "memory_limit": 256.0,
        "rating": 800,
        "tags": ["greedy"],
        "input_mode": "stdio",
        "generated_checker": CHECKER,
    },
    "livecodebench": {
        "question_title": "count-up",
        "question_content": "Add the values and k.",
        "platform": "leetcode",
        "question_id": "3001",
        "contest_id": "weekly-contest-1",
        "contest_date": "2023-09-02T00:00:00",
        "starter_code": "class Solution:\n    def up(self, nums: List[int], k: int) -> int:\n        ",
        "difficulty": "easy",
        "public_test_cases": json.dumps([{"input": "[1, 2]\n3", "output": "6", "testtype": "functional"}]),
        "private_test_cases": packed([{"input": "[]\n-1\n", "output": "-1", "testtype": "functional"}]),
        "metadata": json.dumps({"func_name": "up"}),
    },
    "kodcode": {
        "question_id": "Filter_7",
        "subset": "Filter",
        "question": "Halve it.",
        "solution": "def half(n: float) -> float:\n    return n / 2",
        "test": PYTEST,
        "gpt_difficulty": "easy",
    },
    "deepcoder": {
        "problem": "\nPrint it.\n\nTags:\n['dp', 'math']\n\nTime Limit: 1500 ms\nMemory Limit: 256 MB\n",
        "tests": [{"input": "1\n", "output": "1\n"}],
        "solutions": ["```python\nprint(input())\n```"],
    },
}  # fmt: skip
ANSWERS = {"codeforces": "print(input())", "livecodebench": "def up(nums, k): return sum(nums) + k"}
GARBAGE = [None, True, -1, 10**400, float("nan"), "[", "{}", "x" * 5000, [], [None], [[]], {}, {"": {}}, [{"input": 1}]]


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def one(tmp_path, name, row, **options):
    found = list(collect(name, write(tmp_path / "rows.jsonl", row), **options))
    assert len(found) == 1
    return found[0]


def problem(tmp_path, name, **changes):
    record = one(tmp_path, name, {**ROWS[name], **changes})
    assert isinstance(record, Record), record
    return record.problem


@pytest.fixture(scope="module")
def judge():
    with Judge(workers=1) as judge:
        yield judge


@pytest.mark.parametrize("name", ROWS)
def test_a_layout_is_told_by_its_columns(tmp_path, name):
    assert detect(write(tmp_path / "rows.jsonl", ROWS[name])) == name
    assert name in READERS


def test_columns_that_no_layout_has_are_no_layout(tmp_path):
    assert detect(write(tmp_path / "rows.jsonl", {"question": "?", "answer": "!"})) is None


def test_our_own_file_with_a_field_of_its_owners_is_known(tmp_path):
    row = {"id": "sum", "tests": [{"input": "1", "output": "1"}], "mine": 4}
    assert detect(write(tmp_path / "rows.jsonl", row)) == "microcoder"


@pytest.mark.parametrize("name", ROWS)
def test_the_reference_of_each_layout_is_accepted_and_a_wrong_one_is_not(tmp_path, judge, name):
    found = problem(tmp_path, name)
    right = [one["code"] for one in found.solutions if (one["language"], one["verdict"]) == ("python", "accepted")]
    for code in right or [ANSWERS[name]]:
        verdict = judge.check(found, Solution(found.id, code=code))
        assert verdict.accepted, verdict
    assert not judge.check(found, Solution(found.id, code="class Solution: pass")).accepted


@pytest.mark.parametrize("name", ROWS)
def test_a_record_says_where_it_comes_from_and_survives_being_written(tmp_path, name):
    record = one(tmp_path, name, ROWS[name])
    assert record.problem.source == name
    assert record.problem.id.startswith(f"{name}/")
    assert record.problem.lineage[0] == f"collect: {name} rows.jsonl:1"
    assert Record.from_dict(json.loads(json.dumps(record.to_dict()))) == record


@pytest.mark.parametrize("name", ROWS)
def test_garbage_in_any_column_gives_a_record_of_the_right_types_or_a_reason(tmp_path, name):
    rows = [{k: v for k, v in ROWS[name].items() if k != gone} for gone in ROWS[name]]
    rows += [{**ROWS[name], column: value} for column in ROWS[name] for value in GARBAGE]
    for column, inside in ((c, v) for c, v in ROWS[name].items() if isinstance(v, dict)):
        rows += [{**ROWS[name], column: {**inside, key: value}} for key in inside for value in GARBAGE]
    found = list(collect(name, write(tmp_path / "rows.jsonl", *rows)))
    assert len(found) == len(rows)
    for record in found:
        if isinstance(record, Unreadable):
            assert record.reason.isidentifier() and record.detail
        else:
            assert well_formed(record.problem), record
            json.dumps(record.problem.to_dict())


def well_formed(problem):
    texts = "id title statement starter_code entry_point setup difficulty source platform url date licence".split()
    listed = [*problem.asserts, *problem.tags, *problem.lineage]
    listed += [text for test in problem.tests for text in (test.input, test.output)]
    listed += [value for one in problem.solutions for value in one.values()]
    return all(isinstance(value, str) for value in [*listed, *(getattr(problem, name) for name in texts)])


def test_mbpp_takes_the_function_that_the_asserts_call_and_its_header(tmp_path):
    found = problem(tmp_path, "mbpp")
    assert (found.kind, found.entry_point, found.starter_code) == ("assert", "double", "def double(x, times=1):")
    assert found.asserts[2] == "assert double(-1) == -2"
    assert found.licence == "CC-BY-4.0"
    assert "\r" not in found.solutions[0]["code"]


def test_classes_and_imports_that_only_the_reference_of_mbpp_has_are_shown_as_starter_code(tmp_path):
    pair = "class Pair(object):\r\n\tdef __init__(self, a):\r\n\t\tself.a = base(a)\r\n"
    imports, rest = "import sys\r\nimport re\r\nfrom m import base\r\n", "class Other:\r\n\tpass\r\n"
    code = f"{imports}{pair}{rest}def chain(arr):\r\n\treturn 1"
    shown = "class Pair(object):\n\n    def __init__(self, a):\n        self.a = base(a)"
    row = {**ROWS["mbpp"], "code": code, "test_list": ["assert chain([Pair(5)]) == sys.maxsize"]}
    wanted = f"import sys\n\nfrom m import base\n\n{shown}\n\ndef chain(arr):"
    assert one(tmp_path, "mbpp", row).problem.starter_code == wanted
    row = {**row, "test_setup_code": "root = Pair(1)", "test_list": ["assert chain(root) == 1"]}
    assert one(tmp_path, "mbpp", row).problem.starter_code == f"from m import base\n\n{shown}\n\ndef chain(arr):"
    row = {**row, "test_setup_code": "class Pair: pass\nroot = Pair()"}
    assert one(tmp_path, "mbpp", row).problem.starter_code == "def chain(arr):"


def test_the_sanitized_mbpp_has_other_columns(tmp_path):
    row = {**ROWS["mbpp"], "prompt": "Double.", "test_imports": ["import math", "import re"]}
    del row["text"], row["test_setup_code"], row["challenge_test_list"]
    found = one(tmp_path, "mbpp", row).problem
    assert (found.statement, found.setup) == ("Double.", "import math\nimport re")


def test_humaneval_is_taken_apart_into_statement_starter_and_setup(tmp_path):
    found = problem(tmp_path, "humaneval")
    assert found.id == "humaneval/3"
    assert found.statement == "Add them.\n>>> total([1, 2])\n3"
    assert found.setup == "from typing import List\n\ndef one():\n    return 1"
    assert found.starter_code == found.setup + "\n\ndef total(xs: List[int]) -> int:"


def test_a_prompt_without_a_docstring_is_the_statement_as_it_stands(tmp_path):
    prompt = "def total(xs):\n    # add them\n    pass\n"
    found = problem(tmp_path, "humaneval", prompt=prompt, canonical_solution="    return sum(xs)\n")
    assert (found.statement, found.starter_code) == (prompt, "")


def test_leetcode_becomes_tests_of_a_function_with_arguments_in_the_order_of_its_parameters(tmp_path):
    record = one(tmp_path, "leetcode", ROWS["leetcode"])
    found = record.problem
    assert (found.kind, found.entry_point) == ("function", "Solution.minus")
    assert found.tests == [Test("[5, [1]]", "4"), Test("[2, [3]]", "-1")]
    assert (found.title, found.difficulty, found.licence) == ("Minus One", "easy", "MIT")
    assert found.url == "https://leetcode.com/problems/minus-one/"
    assert found.statement == "Take away.\nConstraints: 1 <= a"
    assert record.notes == {"question_id": 12}


def test_leetcode_of_the_hub_has_other_columns_and_a_date(tmp_path):
    row = {k: v for k, v in ROWS["leetcode"].items() if k != "meta"}
    row |= {"problem_description": "Take.", "estimated_date": "2021-03-04 00:00:00", "tags": ["Array"]}
    record = one(tmp_path, "leetcode", row | {"difficulty": "Hard", "question_id": 9, "starter_code": ""})
    found = record.problem
    assert (found.statement, found.date, found.tags, found.difficulty) == ("Take.", "2021-03-04", ["Array"], "hard")
    assert (found.licence, record.notes) == ("Apache-2.0", {"question_id": 9})
    assert found.tests[0].input == '{"b": [1], "a": 5}'  # without starter code the names are all there is


@pytest.mark.parametrize("value", ["(1, 2)", "{1, 2}", "{1: 2}", "list_node([1])", "float('inf')", "1e999"])
def test_what_json_would_change_stays_an_assert(tmp_path, value):
    found = problem(tmp_path, "leetcode", test=f"def check(f):\n    assert f(1) == {value}\n    assert f(2)\n")
    assert (found.kind, found.tests, found.setup) == ("assert", [], "from typing import *\n")
    assert found.asserts[0].startswith("assert Solution().minus(1) == ")
    assert found.asserts[1] == "assert Solution().minus(2)"


def test_a_check_with_more_than_asserts_stays_one_program(tmp_path):
    test = "def check(f):\n    for n in range(3):\n        assert f(n, [1]) == n - 1\n"
    assert problem(tmp_path, "leetcode", test=test).asserts == [test]


def test_integers_of_hundreds_of_digits_come_through_exactly(tmp_path):
    big = 7**800
    found = problem(tmp_path, "leetcode", test=f"def check(f):\n    assert f({big}, [1]) == {big - 1}\n")
    assert found.tests == [Test(f"[{big}, [1]]", str(big - 1))]
    tests = json.dumps([{"input": f"[{big}]\n1", "output": str(big + 1), "testtype": "functional"}])
    assert problem(tmp_path, "livecodebench", public_test_cases=tests).tests[0] == Test(f"[[{big}], 1]", str(big + 1))


def test_integers_of_many_thousand_digits_are_a_reason_and_not_a_crash(tmp_path):
    tests = f'{{"fn_name": "f", "inputs": [[1{"0" * 9999}]], "outputs": [[1]]}}'
    assert one(tmp_path, "apps", {**ROWS["apps"], "input_output": tests}).reason == "unreadable_tests"
    program = f"def check(f):\n    assert f(1{'0' * 9999}) == 1\n"
    assert one(tmp_path, "leetcode", {**ROWS["leetcode"], "test": program}).reason == "unreadable_tests"


def test_apps_joins_lines_and_knows_the_platform(tmp_path):
    found = problem(tmp_path, "apps")
    assert (found.kind, found.tests) == ("stdin", [Test("1 2\n", "3\n"), Test("3 4", "7")])
    assert (found.id, found.platform, found.difficulty) == ("apps/4", "codeforces", "introductory")
    assert len(found.solutions) == 2


@pytest.mark.parametrize(
    ("outputs", "results"), [([[3], [4]], ["3", "4"]), ([3, 4], ["3", "4"]), ([[3], [4, 5]], ["[3]", "[4, 5]"])]
)
def test_results_of_functions_are_unwrapped_where_all_are_wrapped(tmp_path, outputs, results):
    tests = json.dumps({"fn_name": "f", "inputs": [[1, 2], [2, 2]], "outputs": outputs})
    found = problem(tmp_path, "apps", input_output=tests)
    assert (found.kind, found.entry_point) == ("function", "f")
    assert [test.output for test in found.tests] == results
    assert [test.input for test in found.tests] == ["[1, 2]", "[2, 2]"]


def test_a_function_may_return_nothing_for_some_of_its_tests(tmp_path):
    tests = {"fn_name": "f", "inputs": [[1], [2]], "outputs": [None, 3]}
    assert [test.output for test in problem(tmp_path, "apps", input_output=json.dumps(tests)).tests] == ["null", "3"]
    tests["outputs"] = [None, None]
    assert [test.output for test in problem(tmp_path, "apps", input_output=json.dumps(tests)).tests] == ["", ""]


def test_inputs_without_outputs_are_kept_and_told(tmp_path):
    found = problem(tmp_path, "apps", input_output=json.dumps({"inputs": ["1\n", "2\n"], "outputs": []}))
    assert found.tests == [Test("1\n", ""), Test("2\n", "")]
    assert found.lineage[1] == "collect: the tests have no expected outputs"


def test_a_test_without_an_output_among_others_is_left_out_and_told(tmp_path):
    found = problem(tmp_path, "apps", input_output=json.dumps({"inputs": ["1\n", "2\n"], "outputs": ["1\n", None]}))
    assert found.tests == [Test("1\n", "1\n")]
    assert found.lineage[1] == "collect: 1 tests without an expected output left out"


def test_no_tests_at_all_are_for_process_to_judge(tmp_path):
    assert problem(tmp_path, "apps", input_output="").tests == []


@pytest.mark.parametrize("tests", [{"inputs": ["1", "2"], "outputs": [1]}, {"inputs": [None], "outputs": [1]}, 3, [1]])
def test_tests_that_do_not_fit_together_are_unreadable(tmp_path, tests):
    assert one(tmp_path, "apps", {**ROWS["apps"], "input_output": json.dumps(tests)}).reason == "unreadable_tests"


def test_taco_has_limits_tags_and_a_date(tmp_path):
    found = problem(tmp_path, "taco")
    assert (found.time_limit_s, found.memory_mb, found.date) == (2.0, 256, "2021-05-06")
    assert (found.tags, found.platform, found.difficulty) == (["arrays", "easy"], "geeksforgeeks", "")
    assert (found.entry_point, found.tests[1]) == ("Solution.pair", Test("[[3], 4]", "[[3], 4]"))


def test_code_contests_puts_python_first_and_keeps_wrong_solutions_apart(tmp_path):
    record = one(tmp_path, "code_contests", ROWS["code_contests"])
    found = record.problem
    assert [test.output for test in found.tests] == ["2\n", "10\n", "14\n"]
    assert [(one["language"], one["verdict"]) for one in found.solutions] == [
        ("python", "accepted"), ("c++", "accepted"), ("python", "wrong_answer"),
    ]  # fmt: skip
    assert (found.time_limit_s, found.memory_mb, found.tags) == (1.5, 256, ["math"])
    assert found.url == "https://codeforces.com/problemset/problem/1575/A"
    assert (found.title, found.difficulty, record.notes) == ("Twice", "1100", {"rating": 1100})
    assert problem(tmp_path, "code_contests", cf_rating=0, source="ATCODER").difficulty == "a"
    assert problem(tmp_path, "code_contests", source="ATCODER").platform == "atcoder"


def test_thousands_of_solutions_become_twenty_and_the_lineage_says_so(tmp_path):
    many = {"language": [3] * 3000, "solution": [f"print({n})" for n in range(3000)]}
    found = problem(tmp_path, "code_contests", solutions=many, incorrect_solutions=None)
    assert len(found.solutions) == 20
    assert found.lineage[1] == "collect: 20 of 3000 solutions kept (accepted)"


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("code_contests", {"input_file": "input.txt"}, "reads_files"),
        ("codeforces", {"input_mode": "file"}, "reads_files"),
        ("codeforces", {"interaction_format": "Ask ? x"}, "interactive"),
        ("mbpp", {"code": None}, "missing_column"),
        ("humaneval", {"test": "def check(:"}, "unreadable_tests"),
        ("kodcode", {"test": "def test_f(fixture):\n    assert f()"}, "unreadable_tests"),
        ("kodcode", {"test": PYTEST.replace("def test_near", "@pytest.mark.x\ndef test_near")}, "unreadable_tests"),
        ("kodcode", {"test": "from solution import other\ndef test_f():\n    assert other()"}, "unreadable_tests"),
        ("kodcode", {"test": "from solution import half\nassert half(2) == 1"}, "unreadable_tests"),
        ("kodcode", {"test": "def test_f():\n    from solution import half\n    assert half(2)"}, "unreadable_tests"),
        ("kodcode", {"test": "import solution\ndef test_f():\n    assert solution.half(2) == 1"}, "unreadable_tests"),
        ("livecodebench", {"private_test_cases": "not base64!"}, "unreadable_tests"),
        ("livecodebench", {"metadata": "{}"}, "unreadable_tests"),
    ],
)
def test_what_cannot_be_judged_rightly_is_refused_with_its_reason(tmp_path, name, change, reason):
    found = one(tmp_path, name, {**ROWS[name], **change})
    assert (found.where, found.reason) == ("rows.jsonl:1", reason)
    assert found.detail


def test_codeforces_is_put_together_and_its_checker_accepts_any_order(tmp_path, judge):
    found = problem(tmp_path, "codeforces")
    assert found.statement == (
        "Print the numbers in any order.\n\n## Input\n\nTwo numbers.\n\n## Output\n\nThe same.\n\n"
        "## Example 1\n\nInput\n\n```\n1 2\n```\n\nOutput\n\n```\n2 1\n```\n\n## Note\n\nEasy."
    )
    assert (found.date, found.difficulty, found.time_limit_s) == ("2023-08-02", "800", 2.0)
    assert found.lineage[1] == "collect: 1 of its 3 tests are here"
    assert judge.check(found, Solution(found.id, code="print('1', '2')")).strategy == "checker"
    assert judge.check(found, Solution(found.id, code="print('1', '1')")).verdict == "wrong_answer"


def test_livecodebench_unpacks_its_private_tests(tmp_path):
    found = problem(tmp_path, "livecodebench")
    assert (found.kind, found.entry_point) == ("function", "Solution.up")
    assert found.tests == [Test("[[1, 2], 3]", "6"), Test("[[], -1]", "-1")]
    assert (found.date, found.url) == ("2023-09-02", "https://leetcode.com/problems/count-up/")
    stdin = [{"input": "1\n", "output": "2", "testtype": "stdin"}]
    changes = {"public_test_cases": json.dumps(stdin), "private_test_cases": json.dumps(stdin), "metadata": "{}"}
    found = problem(tmp_path, "livecodebench", platform="atcoder", question_id="abc1_a", contest_id="abc1", **changes)
    assert (found.kind, found.tests) == ("stdin", [Test("1\n", "2")] * 2)
    assert found.url == "https://atcoder.jp/contests/abc1/tasks/abc1_a"


def test_kodcode_turns_pytest_functions_into_asserts(tmp_path):
    found = problem(tmp_path, "kodcode")
    assert (found.kind, found.entry_point, found.setup) == ("assert", "half", "EVEN = [2, 4]")
    assert found.starter_code == "def half(n: float) -> float:"
    assert found.asserts[:3] == [
        "assert half(4) == 2",
        "assert half(EVEN[0]) == 1",
        "assert math.isclose(half(1), 0.5, rel_tol=1e-06, abs_tol=1e-12)",
    ]
    assert found.asserts[3].startswith("for n in EVEN:")
    assert found.asserts[4].startswith("try:\n    half('x')\nexcept TypeError:")


def test_kodcode_shows_the_headers_of_a_class_that_is_wanted(tmp_path):
    code = "class Box:\n    def __init__(self, n): self.n = n\n    def get(self): return self.n"
    test = "from solution import Box\ndef test_it():\n    assert Box(2).get() == 2"
    found = problem(tmp_path, "kodcode", solution=code, test=test)
    assert (found.entry_point, found.starter_code) == ("", "class Box:\n    def __init__(self, n):\n    def get(self):")


def test_deepcoder_takes_tags_and_limits_out_of_the_text(tmp_path):
    found = problem(tmp_path, "deepcoder")
    assert (found.statement, found.tags, found.time_limit_s, found.memory_mb) == ("Print it.", ["dp", "math"], 1.5, 256)
    text = "Print it.\n\nTime Limit: {'seconds': 2, 'nanos': 500000000}\nMemory Limit: 512000000 Bytes\n"
    found = problem(tmp_path, "deepcoder", problem=text, tests=json.dumps({"inputs": ["1"], "outputs": ["1"]}))
    assert (found.statement, found.tags, found.time_limit_s, found.memory_mb) == ("Print it.", [], 2.5, 512)
    text = "Time Limit: of this story there is none.\nTags: many\nThe end."
    assert problem(tmp_path, "deepcoder", problem=text).statement == text


def test_deepcoder_knows_codeforces_by_the_name_of_the_file(tmp_path):
    (record,) = collect("deepcoder", write(tmp_path / "codeforces.jsonl", ROWS["deepcoder"]))
    assert record.problem.platform == "codeforces"


def test_ids_are_unique_and_do_not_depend_on_the_order(tmp_path):
    other = {**ROWS["deepcoder"], "tests": [{"input": "2\n", "output": "2\n"}]}
    first = [r.problem.id for r in collect("deepcoder", write(tmp_path / "a.jsonl", ROWS["deepcoder"], other))]
    second = [r.problem.id for r in collect("deepcoder", write(tmp_path / "b.jsonl", other, ROWS["deepcoder"], other))]
    assert second == [first[1], first[0], f"{first[1]}#2"]


def test_an_id_that_looks_like_a_second_one_is_not_given_twice(tmp_path):
    taken: dict[str, int] = {}
    assert [free(ident, taken) for ident in ("a", "a#2", "a", "a", "a#2")] == ["a", "a#2", "a#3", "a#4", "a#2#2"]


def test_a_source_can_be_given_another_name(tmp_path):
    record = one(tmp_path, "mbpp", ROWS["mbpp"], source="mine")
    assert (record.problem.id, record.problem.source) == ("mine/7", "mine")


def test_the_generic_reader_maps_columns_paths_and_constants(tmp_path):
    row = {"no": 3, "info": {"text": "Add.", "levels": [0, "Hard"]}, "ins": ["1 2\n"], "outs": '["3\\n"]', "by": "pass"}
    mapping = {
        "id": "no", "statement": "info.text", "difficulty": "info.levels.1", "inputs": "ins", "outputs": "outs",
        "solutions": "by", "licence": "=MIT", "source": "=club", "time_limit_s": "=500 ms",
    }  # fmt: skip
    found = one(tmp_path, "generic", row, mapping=mapping).problem
    assert found == Problem(
        id="club/3", statement="Add.", difficulty="Hard", tests=[Test("1 2\n", "3\n")], licence="MIT", source="club",
        time_limit_s=0.5, solutions=[{"code": "pass", "language": "python", "verdict": "accepted"}],
        lineage=["collect: generic rows.jsonl:1"],
    )  # fmt: skip


def test_the_generic_reader_settles_the_kind(tmp_path):
    def kind(row, **mapping):
        found = one(tmp_path, "generic", row, mapping=mapping)
        return (found.problem.kind, found.problem.tests, found.problem.asserts)

    ours = [{"input": "[1, 2]", "output": "3"}]
    assert kind({"t": ours}, tests="t", entry_point="=Solution.add") == ("function", [Test("[1, 2]", "3")], [])
    values = [{"input": [1, 2], "output": 3}]
    assert kind({"t": values}, tests="t", entry_point="=add") == ("function", [Test("[1, 2]", "3")], [])
    assert kind({"a": "assert f(1)"}, asserts="a") == ("assert", [], ["assert f(1)"])
    assert kind({"a": '["assert f(1)"]'}, asserts="a") == ("assert", [], ["assert f(1)"])


def test_solutions_of_any_table_may_be_json_text_or_a_single_one(tmp_path):
    def codes(value):
        found = one(tmp_path, "generic", {"q": "Add.", "s": value}, mapping={"statement": "q", "solutions": "s"})
        return [(solution["code"], solution["verdict"]) for solution in found.problem.solutions]

    both = [{"code": "a = 1"}, {"code": "b = 1", "verdict": "wrong_answer"}]
    for value in (both, json.dumps(both)):
        assert codes(value) == [("a = 1", "accepted"), ("b = 1", "wrong_answer")]
    for value in (both[0], json.dumps(both[0]), '["a = 1"]', "a = 1"):
        assert codes(value) == [("a = 1", "accepted")]


def test_a_row_without_any_mapped_column_is_told(tmp_path):
    found = one(tmp_path, "generic", {"a": 1}, mapping={"id": "b", "licence": "=MIT"})
    assert found == Unreadable("rows.jsonl:1", "missing_column", "none of the mapped columns is there; the row has a")


def test_garbage_reaches_the_generic_reader_and_ends_nothing(tmp_path):
    names = "id statement tests asserts solutions tags compare kind date entry_point inputs".split()
    mapping = {name: name for name in names}
    rows = [{**dict.fromkeys(rest, "x"), name: value} for rest in ([], names) for name in names for value in GARBAGE]
    found = list(collect("generic", write(tmp_path / "rows.jsonl", *rows), mapping=mapping))
    assert len(found) == len(rows)
    assert all(well_formed(record.problem) for record in found if isinstance(record, Record))


@pytest.mark.parametrize(
    ("name", "mapping", "hint"),
    [
        ("generic", None, "needs a mapping"),
        ("generic", {"statment": "text"}, "did you mean 'statement'"),
        ("mbpp", {"id": "x"}, "leave it out"),
        ("mbbp", None, "did you mean 'mbpp'"),
    ],
)
def test_mistakes_in_asking_are_told_at_once(tmp_path, name, mapping, hint):
    with pytest.raises(SourceError, match=hint):
        collect(name, tmp_path, mapping=mapping)
