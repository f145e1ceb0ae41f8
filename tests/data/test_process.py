"""Process, the problem: its format is settled, its tests are chosen, it is complete and English; or it is dropped."""

from __future__ import annotations

import builtins
import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.data.endpoint import NoAnswer
from microcoder.data.process import OPTIONS, STEPS, completeness, format, language, process, tests, unsuitable
from microcoder.data.process.format import defined, find, starter
from microcoder.data.record import DataError, Dropped, Record, package
from microcoder.prompts import prompt
from microcoder.schema import Compare, Problem, Test

SUM = (
    "You are given two integers and must find their sum.\n\nInput\n\nThe first line contains two integers a and b.\n\n"
    "Output\n\nPrint the sum of a and b."
)
CLASS = "class Solution:\n    def add(self, a: int, b: int) -> int:"


def stdin(statement=SUM, **fields):
    return Record(Problem("s", statement=statement, **{"tests": [Test("1 2", "3")], **fields}))


def function(**fields):
    given = {"kind": "function", "entry_point": "add", "starter_code": "def add(a, b):", "tests": [Test("[1, 2]", "3")]}
    return Record(Problem("f", statement="Return the sum of the two numbers.", **{**given, **fields}))


def asserts(*texts, **fields):
    given = {"kind": "assert", "entry_point": "add", "starter_code": "def add(a, b):"}
    return Record(Problem("a", statement="Return the sum of both numbers.", asserts=list(texts), **{**given, **fields}))


def dropped(record, step=process, **options):
    with pytest.raises(Dropped) as caught:
        step(record, **options)
    return caught.value.reason


# the whole


@pytest.mark.parametrize("record", [stdin(), function(), asserts("assert add(1, 2) == 3")])
def test_a_clean_problem_goes_through_unchanged(record):
    before = record.copy()
    problem = process(record).problem
    before.problem.language = "en"
    assert problem == before.problem


def test_text_that_was_escaped_twice_is_cleaned_all_the_way():
    record = process(stdin(f"&amp;lt;p&amp;gt;{SUM}&amp;lt;/p&amp;gt;".replace("\n\n", "&lt;br&gt;\n\n")))
    assert record.problem.statement.split() == SUM.split()
    assert record.problem.lineage.count("process: html to markdown") == 1


PIECES = st.sampled_from(
    [
        "<p>", "</p>", "<b>x</b>", "<br>", "<div class=x>", "</div>", "&lt;", "&amp;lt;b&amp;gt;", "&nbsp;", "&#0;",
        "<pre>1 2</pre>", "<table><tr><td>", "</td></tr></table>", "<sup>2</sup>", "![](a.png)", "<!-- c -->", "&quot;",
        "`", "```", "~~~", "$", "$$", "$$$x$$$", "\\(x\\)", "\\[", "\\textbf{a}", "``q''",
        "\\item ", "\n", "\n\n\n", "   ", "\t", "\u00a0", "\u200b", "\r\n", "â€œ", "\x00", "\ud800", "中文", "⟦3⟧",
        "Example 1:\n", "Input\n", "Output\n", "Input: x = 1\n", "Explanation: so", "Note\n", "Constraints:\n",
        "1 <= n <= 105", "1 2 3\n", "def f(x):\n    return 1\n", ">>> f(1)\n2\n", "Submit\n", "Time limit: 2 seconds\n",
        "Tags:\n['a']\n", "Please complete the following python code precisely:\n```python\ndef f(x):\n```\n",
        "A sentence with some words in it. ", "* one    * two", "vector<int>", "[link text](https:// ", "| a | b |",
        "---|---", "> q", "$5 and $6", "x_i^2", "<script>x</script>", "...",
    ]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=20).map("".join), st.sampled_from(["before", "after"]), st.booleans())
def test_to_process_again_changes_nothing(pieces, where, is_function):
    statement = f"{SUM}\n\n{pieces}" if where == "before" else f"{pieces}\n\n{SUM}"
    record = function() if is_function else stdin()
    record.problem.statement, record.problem.platform = statement, "leetcode"
    try:
        process(record)
    except Dropped:
        return
    again = process(record.copy())
    assert again == record


GARBAGE = [None, 0, -1.5, float("nan"), True, "x", "\ud800", b"b", [], [None], ["x", 1], {}, {1: 2}, object(), 10**5000]


@pytest.mark.parametrize("field", Problem.__dataclass_fields__)
def test_garbage_of_every_type_is_dropped_and_never_an_error(field):
    for value in GARBAGE:
        for make in (stdin, function, lambda: asserts("assert add(1, 2) == 3")):
            record = make()
            setattr(record.problem, field, value)
            try:
                process(record)
            except Dropped as loss:
                assert loss.reason


@pytest.mark.parametrize("record", [None, 5, "text", Record(None), Record(Problem("x"), None)])
def test_what_is_no_record_is_dropped(record):
    assert dropped(record) == "broken_record"


@pytest.mark.parametrize(
    "broken",
    [
        {"tests": [Test(1, "2")]},
        {"tests": [Test("[" * 100_000, "1")], "kind": "function", "entry_point": "f"},
        {"kind": "assert", "asserts": ["(" * 50_000], "tests": []},
        {"kind": "assert", "asserts": ["assert f(1)\x00"], "tests": []},
        {"solutions": [{"code": None}]},
        {"time_limit_s": float("inf")},
        {"compare": Compare(policy=["exact"])},
        {"entry_point": "a b", "kind": "function"},
    ],
)
def test_hostile_fields_are_dropped(broken):
    assert dropped(stdin(**broken)) in ("broken_record", "wrong_format", "missing_tests")


def test_steps_can_be_sent_to_other_processes_and_unknown_options_are_named():
    assert pickle.loads(pickle.dumps(STEPS)) == STEPS
    assert list(OPTIONS) == STEPS
    with pytest.raises(TypeError, match=r"no step has the option mosst; there are .*most"):
        process(stdin(), mosst=3)


def test_without_its_packages_cleaning_says_what_to_install(monkeypatch):
    monkeypatch.setattr(builtins, "__import__", None)
    with pytest.raises(DataError, match=r"pip install 'microcoder\[data\]'"):
        package("no_such_package.inside")


# format


def test_a_kind_that_the_tests_contradict_is_settled():
    assert process(function(kind="stdin")).problem.kind == "function"
    assert process(asserts("assert add(1, 2) == 3", kind="stdin")).problem.kind == "assert"
    assert process(stdin(kind="assert")).problem.kind == "stdin"


def test_the_entry_point_is_found_in_the_starter_code_or_by_the_asserts():
    assert process(function(entry_point="", starter_code=CLASS)).problem.entry_point == "Solution.add"
    assert process(function(entry_point="Solution().add", starter_code=CLASS)).problem.entry_point == "Solution.add"
    code = "def help(x): pass\ndef add(a, b): return a + b"
    record = asserts("assert add(1, 2) == 3", entry_point="", starter_code="", solutions=[{"code": code}])
    assert process(record).problem.entry_point == "add"


def test_starter_code_comes_from_a_reference_and_the_prompt_shows_it():
    code = "class Solution:\n    def help(self): ...\n    def add(self, a: int,\n            b=(1, 2)) -> int: return 1"
    record = process(function(entry_point="Solution.add", starter_code="", solutions=[{"code": code}]))
    assert record.problem.starter_code == "class Solution:\n    def add(self, a: int, b=(1, 2)) -> int:"
    assert record.problem.starter_code in prompt(record.problem)


WRONG = {
    "arguments": {"tests": [Test("1 2", "3")]},
    "too many arguments": {"tests": [Test("[1, 2, 3]", "3")]},
    "unknown keyword": {"tests": [Test('{"a": 1, "c": 2}', "3")]},
    "output": {"tests": [Test("[1, 2]", "three")]},
    "entry point and starter code": {"entry_point": "sub"},
    "entry point and reference": {"solutions": [{"code": "def sub(a, b): return a - b"}]},
    "no entry point": {"entry_point": "", "starter_code": ""},
    "a name": {"entry_point": "add two"},
}


@pytest.mark.parametrize("fields", WRONG.values(), ids=WRONG)
def test_a_function_that_cannot_be_called_as_tested_is_dropped(fields):
    assert dropped(function(**fields)) == "wrong_format"


@pytest.mark.parametrize(
    "record",
    [
        asserts("assert add(1, 2 == 3"),
        asserts("assert sub(1, 2) == 3"),
        asserts("def check(candidate):\n    assert candidate(1) == 1", entry_point="", starter_code=""),
        stdin(starter_code=CLASS),
        stdin(entry_point="add"),
        stdin(solutions=[{"code": "def add(a, b):\n    return a + b"}]),
    ],
)
def test_a_contradiction_of_tests_and_code_is_dropped(record):
    assert dropped(record) == "wrong_format"


@pytest.mark.parametrize(
    "fields",
    [
        {"tests": [Test('{"a": 1, "b": 2}', "3")]},
        {"tests": [Test("[(1, 2), {3}]", "(1, {2})"), Test("[(1, 2), {4}]", "2j")]},  # values that JSON does not have
        {"tests": [Test("[" + "9" * 5_000 + ", 1]", "1e400")]},
        {"starter_code": "def add(*args, **more):", "tests": [Test("[1]", "3"), Test('{"z": 1}', "3")]},
        {"starter_code": "# class Tree { }\nint add(int a, int b)"},
        {"solutions": [{"code": "add = lambda a, b: a + b"}, {"code": "int x;", "language": "cpp"}]},
    ],
)
def test_unusual_but_right_formats_stay(fields):
    assert process(function(**fields)).problem.kind == "function"


def test_signatures_are_read_from_code_without_a_body_and_from_code_that_is_no_python():
    assert find(CLASS, "Solution.add").names == ("a", "b")
    assert find("def f(a, b: dict[str, int] = {'x': 1}) -> int: return )(", "f").header.startswith("def f(a, b")
    assert find("def f(a", "f") is None
    assert starter("def f(): ...", "g") == ""
    assert defined("class A:\n  def _x(self): ...\n  def y(self): ...\ndef z(): ...") == ["A.y", "z"]


# tests


def test_the_longest_tests_stay_in_the_order_of_the_file_and_twins_go():
    cases = [Test("x" * n, str(n)) for n in (5, 30, 1, 20, 30, 20, 7)]
    cases[4] = Test("y" * 30, "30")
    record = tests.choose(stdin(tests=cases), most=3)
    assert [test.input for test in record.problem.tests] == ["x" * 30, "x" * 20, "y" * 30]
    assert record.notes["tests_removed"] == 4
    assert record.problem.lineage == ["process: 4 of 7 tests removed"]


def test_a_test_that_is_too_large_goes_and_if_all_are_the_problem_is_dropped():
    large = Test("9" * 3000, "1")
    assert tests.choose(stdin(tests=[large, Test("1", "1")]), test_kb=2).problem.tests == [Test("1", "1")]
    assert dropped(stdin(tests=[large]), tests.choose, test_kb=2) == "tests_too_large"


def test_one_input_with_two_outputs_is_a_contradiction_unless_a_checker_decides():
    cases = [Test("1\n", "a b"), Test("1", "b a")]
    assert dropped(stdin(tests=cases), tests.choose) == "contradicting_tests"
    checked = stdin(tests=cases, compare=Compare(checker="def check(i, o, e): return True"))
    assert len(tests.choose(checked).problem.tests) == 1


@pytest.mark.parametrize("other", ["3.0000001", " 3.0 \n"])
def test_outputs_that_are_written_differently_do_not_contradict(other):
    assert len(tests.choose(stdin(tests=[Test("1", "3.0"), Test("1", other)])).problem.tests) == 1


def test_arguments_are_compared_as_values():
    record = function(tests=[Test("[1,  2]", "[3]"), Test("[1, 2]", "[ 3 ]"), Test('["1", 2]', "3")])
    assert [test.input for test in tests.choose(record).problem.tests] == ["[1,  2]", '["1", 2]']
    assert dropped(function(tests=[Test("[1, 2]", "3"), Test("[1,2]", "4")]), tests.choose) == "contradicting_tests"
    assert tests.choose(function(tests=[Test("[1, 2]", "[0.1]"), Test("[1,2]", "[0.1000000001]")]))


def test_asserts_are_chosen_likewise():
    one, same, longer = "assert add(1, 2) == 3", "assert add(1,2)==3", "assert add(1, 22) == 23"
    assert tests.choose(asserts(one, same, longer, "assert add(0, 0) == 0, 'zero'"), most=2).problem.asserts == [
        one,
        longer,
    ]
    assert dropped(asserts("assert add(1, 2) == 3", "assert add(1, 2) == 4"), tests.choose) == "contradicting_tests"


def test_asserts_of_a_check_are_chosen_and_what_stands_around_them_stays():
    start = "LIMIT = 5\n\ndef check(candidate):\n    # simple\n    assert candidate(1) == 2\n"
    longest, end = "    assert candidate(10,\n        20) == 30\n", "\ncheck(add)\n"
    program = f"{start}    assert candidate(1) == 2\n{longest}    assert candidate(3) == 4\n{end}"
    assert tests.choose(asserts(program), most=2).problem.asserts == [start + longest + end]


@pytest.mark.parametrize(
    "texts",
    [
        ["x = [1]", "assert add(x, x) == [1]", "assert add(x, x) == [1]"],
        ["def check(candidate):\n    x = []\n    assert candidate(x) == 1\n    assert candidate(x) == 1"],
        ["def check(candidate):\n    assert candidate(1); assert candidate(1)"],
    ],
)
def test_asserts_with_statements_between_them_are_left_alone(texts):
    assert tests.choose(asserts(*texts), most=1).problem.asserts == texts


# completeness


def test_missing_parts_are_named():
    assert dropped(stdin(tests=[])) == "missing_tests"
    assert dropped(asserts()) == "missing_tests"
    assert dropped(asserts("add(1, 2)")) == "missing_tests"
    assert dropped(asserts("pass")) == "missing_tests"
    assert dropped(stdin(tests=[Test("1", ""), Test("2", " \n")])) == "missing_outputs"
    assert dropped(function(entry_point="Solution.add", starter_code="")) == "missing_starter_code"


def test_tests_without_outputs_stay_where_two_references_can_give_them():
    solutions = [{"code": "print(1)"}, {"code": "print(2 - 1)", "language": "python"}]
    assert process(stdin(tests=[Test("1", "")], solutions=solutions)).problem.tests == [Test("1", "")]


@pytest.mark.parametrize(
    "statement",
    [
        "", "   ", "Sum two", "See the attached pdf for all the details of it.", "The Sum of Two Integers",
        "Read it: https://example.org/the-sum/of-two/integers?a=1&b=2",
    ],
)  # fmt: skip
def test_a_problem_without_a_statement_is_dropped(statement):
    assert dropped(stdin(statement, title="The sum of two integers")) == "missing_statement"


BODY = "    total = a\n    for _ in range(b):\n        total += 1\n    return total"
PROGRAM = f'import math\n\ndef add(a, b):\n    """Return the sum of the two numbers."""\n{BODY}\n'


@pytest.mark.parametrize("shown", [f"```python\n{PROGRAM}```", f"Solution:\n\n{BODY}", BODY.replace("    ", "\t")])
def test_a_statement_that_shows_the_reference_gives_the_answer_away(shown):
    record = function(solutions=[{"code": PROGRAM}])
    record.problem.statement += f"\n\n{shown}"
    assert dropped(record, unsuitable.refuse_answer) == "gives_answer"


@pytest.mark.parametrize("shown", ["def add(a, b):", "import math", "    total += 1", "```python\nadd(1, 2)\n```"])
def test_a_header_or_a_single_line_gives_nothing_away(shown):
    record = function(solutions=[{"code": PROGRAM}, {"code": "no Python ("}])  # its docstring is the statement
    record.problem.statement += f"\n\n{shown}"
    assert unsuitable.refuse_answer(record) is record


@pytest.mark.parametrize(
    "statement",
    [
        "You are given two integers. Find out what their sum is.",
        SUM.partition("Output")[0] + "Output\n\nExample\n\nInput\n\n1 2\n\nOutput\n\n3",
        "Find the sum of both.\n\nExample\n\nInput\n\n1 2\n\nOutput\n\n3",
    ],
)
def test_without_a_word_on_input_or_output_a_program_cannot_be_written(statement):
    assert dropped(stdin(statement)) == "missing_io"


@pytest.mark.parametrize(
    "end",
    [
        "The sum is the largest of all of the", "We say that a sequence is good, if it,", "so the answer is known...",
        "It is said that 1 ≤ n holds, where $1 \\le n", "Note that the numbers can be very lar", "```\n1 2",
        "Example\n\nInput\n\n1 2", "Example 1:", "Outp", "it is known that all of\nthem are larger",
        "where a[i] == b[i] and so it must be shorter after", "- the first is a;\n- the second is equal",
        "## Note\n\nIn the second test the least number",
    ],
)  # fmt: skip
def test_a_statement_that_was_cut_off_is_dropped(end):
    assert dropped(stdin(f"{SUM}\n\nMore is to be said.\n\n{end}")) == "truncated_statement"


@pytest.mark.parametrize(
    "end",
    [
        "The sequence is 1, 2, 3, ...", "It costs $5.", "Constraints:\n\n1 <= n <= k\nAll values are distinct",
        "```\n1 2\n```", "Example\n\nInput\n\n1 2\n\nOutput\n\n3", "- the first is a\n- the second is b", "Have fun :)",
        "add(1, 2) => the least of them\nadd(3, 4) => none", "A) it is linear\nB) it is quadratic",
        "- take the first minus the second, and so on", "- write them with a space in between",
    ],
)  # fmt: skip
def test_a_statement_that_ends_in_its_own_way_stays(end):
    assert process(stdin(f"{SUM}\n\nMore is to be said.\n\n{end}"))


# language

CHINESE = (
    "给定一个长度为 n 的整数数组 `a`，请你找出其中最大的连续子数组的和 $\\sum a_i$。\n\n输入格式\n\n"
    "第一行包含一个整数 n (1 ≤ n ≤ 10^5)。\n\n输出格式\n\n输出 YES 或者一个整数。\n\n"
    "输入样例\n\n5\n1  2 3 4 5\n\n输出样例\n\n15"
)
RUSSIAN = "Дан массив из n целых чисел (1 ≤ n ≤ 100). Найдите сумму всех чисел и выведите её на экран."
SPANISH = "Dado un arreglo de N enteros y un número k, encuentra la suma máxima e imprime el resultado en una línea."


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (CHINESE, "zh"),
        (RUSSIAN, "ru"),
        (SPANISH, "es"),
        (SUM, "en"),
        ("Return n-th Fibonacci number.", "en"),
        ("Validate a gregorian date.", "en"),
        ("def f(x):\n    '''Return the number of the words in the list.'''", "en"),
    ],
)
def test_the_language_of_the_prose_is_found(statement, expected):
    record = language.identify(stdin(statement))
    assert record.problem.language == expected
    assert 0 < record.notes["language_probability"] <= 1


def test_without_an_endpoint_other_languages_are_dropped():
    with pytest.raises(Dropped, match=r"needs_translation: language is zh \(\d\.\d\d\)"):
        process(stdin(CHINESE))


class Translator:
    """Answers with English around the marks it was given, after as many bad answers as it was told to give."""

    def __init__(self, *bad):
        self.bad, self.asked = list(bad), []

    def ask(self, messages, *, key):
        self.asked.append((json.dumps(messages), key))
        marks = language._MARK.findall(messages[1]["content"])
        if self.bad:
            answer = self.bad.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer(marks)
        return (
            f"You are given an array {marks[0]} and the {' and the '.join(marks[1:-2])}. The input has one line."
            f" Print the largest sum.\n\nSample Input\n{marks[-2]}\n\nSample Output\n{marks[-1]}"
        )


def test_code_formulas_samples_and_names_go_through_translation_unchanged():
    record = process(stdin(CHINESE), endpoint=Translator())
    statement = record.problem.statement
    assert record.problem.language == "en"
    assert record.notes["translated_from"] == "zh"
    for kept in ("`a`", "$\\sum a_i$", "n (1 ≤ n ≤ 10^5)", "YES", "\n5\n1  2 3 4 5\n", "\n15"):
        assert kept in statement
    assert process(record.copy(), endpoint=None) == record


def test_the_model_sees_neither_code_nor_data():
    endpoint = Translator()
    process(stdin(CHINESE), endpoint=endpoint)
    shown = json.loads(endpoint.asked[0][0])[1]["content"]
    assert not any(secret in shown for secret in ("a_i", "10^5", "YES", "1  2 3"))


@pytest.mark.parametrize("text", [CHINESE, RUSSIAN, SPANISH, "Входные данные: a = ⟦1⟧", "例\n\n输入: x = 1\n输出: 2\n"])
def test_marks_put_back_give_the_text_again(text):
    masked, kept = language.mask(text)
    assert language.unmask(masked, kept) == text


def test_a_bad_answer_is_asked_for_again_with_the_reason():
    endpoint = Translator(lambda marks: "The sum of it.", lambda marks: " ".join(marks) + CHINESE[:30])
    process(stdin(CHINESE), endpoint=endpoint)
    first, second, third = endpoint.asked[:3]
    assert "⟦1⟧, ⟦2⟧" in json.loads(second[0])[-1]["content"]
    assert "not English" in json.loads(third[0])[-1]["content"]
    assert len({key for _, key in (first, second, third)}) == 3


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda marks: "The largest sum of the numbers.", "translation_changed_code"),
        (lambda marks: " ".join([*marks, marks[0]]), "translation_changed_code"),
        (lambda marks: " ".join([*marks, "⟦99⟧"]), "translation_changed_code"),
        (lambda marks: " ".join(marks) + RUSSIAN, "translation_failed"),
        (NoAnswer("too long"), "translation_failed"),
    ],
)
def test_a_translation_that_stays_bad_is_dropped(answer, reason):
    assert dropped(stdin(CHINESE), endpoint=Translator(*[answer] * 3)) == reason


def test_an_endpoint_that_fails_is_no_fault_of_the_problem():
    with pytest.raises(ConnectionError):
        process(stdin(CHINESE), endpoint=Translator(ConnectionError("no route")))


def test_formats_and_parts_are_checked_before_a_translation_is_paid_for():
    endpoint = Translator()
    assert dropped(stdin(CHINESE, tests=[]), endpoint=endpoint) == "missing_tests"
    assert dropped(stdin(CHINESE, entry_point="add"), endpoint=endpoint) == "wrong_format"
    assert endpoint.asked == []
    assert completeness.parts in STEPS and format.settle in STEPS
