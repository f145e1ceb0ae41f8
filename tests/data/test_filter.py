"""Quality, relevance, dates and licences: what is bad goes with its reason, what is good stays."""

from __future__ import annotations

import random

import filter_problems as given
import pytest

from microcoder.data.filter import dates, licences
from microcoder.data.filter.contamination import EvaluationSet
from microcoder.data.filter.duplicates import Index, signature
from microcoder.data.filter.forms import blind, cases, code, words
from microcoder.data.filter.quality import LIMITS, quality, signals
from microcoder.data.filter.relevance import relevance
from microcoder.data.record import Dropped, Record
from microcoder.schema import Compare, Problem, Test


def of(statement, **fields):
    return Record(Problem(id="p", statement=statement, **fields))


def loss(step, *args, **options):
    with pytest.raises(Dropped) as caught:
        step(*args, **options)
    return caught.value


# --- text


def test_words_are_the_same_whatever_the_markup():
    plain = "given integers a i with 1 a i 10 5 find the sum"
    assert words("Given **integers** $a_i$ with $1 \\le a_i \\le 10^5$, find the sum.") == plain.split()
    assert words("given integers a_i  with 1 ≤ a_i ≤ 10^5; find the `sum`") == plain.split()


def test_chinese_is_split_into_characters_and_keeps_its_numbers():
    assert words("求两个整数的和 n=12") == [*"求两个整数的和", "n", "12"]


def test_blind_words_forget_variables_and_names_but_no_numbers():
    one = "Alice has n coins and gives maxTake of them to Robert, at most 10 times. Then Alice has a_i coins."
    two = "Zoe has q coins and gives most_of of them to Quentin, at most 10 times. Then Zoe has b_{j} coins."
    same = "# has # coins and gives # of them to # at most 10 times then # has # coins"
    assert blind(one) == blind(two) == same.split()


def test_code_forgets_names_comments_docstrings_and_brackets():
    one = 'def f(xs):\n    """Adds."""\n    total = 0  # so far\n    for x in xs: total += x\n    return (total)'
    two = "def g(list):\n    max = 0\n    for y in list:\n        max += y\n    return max"
    assert code(one) == code(two)
    assert code(one) != code(two.replace("+=", "*="))
    assert code("int a = 1; // one\n/* two */ int b;", "cpp") == ["int", "v", "=", "1", "int", "v"]


def test_cases_of_all_kinds_come_to_the_same_values():
    function = Problem("a", "function", entry_point="f", tests=[Test('[[1, 2], "ab", true]', "null")])
    asserts = Problem("b", "assert", asserts=["assert f([1, 2], x='ab', flag=True) == None"])
    check = Problem("c", "assert", asserts=["def check(f):\n    assert f((1, 2), 'ab', True) == None\n"])
    assert list(cases(function)) == list(cases(asserts)) == list(cases(check)) == [("1 2 ab true", "none")]


def test_strings_in_asserts_are_values_whatever_they_say():
    problem = Problem("a", "assert", asserts=["assert f('assert x == y') == 'a == b'\nassert f('#') == 2"])
    assert list(cases(problem)) == [("assert x == y", "a == b"), ("#", "2")]


# --- quality


@pytest.mark.parametrize("problem", given.ALL, ids=lambda problem: problem.id)
def test_good_statements_are_good(problem):
    assert quality(given.record(problem)).notes["quality"] == 1.0


@pytest.mark.parametrize(
    ("signal", "statement"),
    [
        ("few words", ""),
        ("few words", "1 2 3"),
        ("few words", "Sort it."),
        ("many words", "The sum of some numbers is wanted here. " * 3000),
        ("letters", "a! b@ is## the$$ %% of^^ &&&&&&&& to**** (((((((((( and)))))))))))) ++++++++++++++"),
        ("function words", "weather guitar monday purple engine bottle forest window pepper castle " * 2),
        ("function words", "xqzj kwpv bnmt rrtg plkj hgfd qwrt zxcv mnbv lkjh gfds poiu"),
        ("long words", " ".join("thisisnotawordbutaverylongone" + "abcdefghij"[n] for n in range(10)) + " the of a to"),
        ("long sentences", " ".join(f"the number of {random.Random(n).randrange(10**6)} and" for n in range(100))),
        ("repeated lines", "Print the sum of all the numbers.\n" * 30),
        ("repeated phrases", "You are given an array of numbers and a limit. " * 20),
        (
            "one phrase again and again",
            f"{given.COINS.statement}\n{given.BRIDGES.statement}\n" + "Buy the best course here and now! " * 32,
        ),
        ("odd characters", "Find the ¶§¤¦ sum ¶§¤¦ of ¶§¤¦ all the ¶§¤¦ given ¶§¤¦ numbers and print it here."),
        ("mojibake", "CafÃ© number nÃ£o is Ã©tat, find the sum of the numbers that are given, s'il vous plaÃ®t"),
        ("markup", "<div><p>Find</p></div><br><br><b>the</b> <i>sum</i> <br><hr><b>of</b> <i>all</i> <b>given</b>"),
        ("unbalanced brackets", "Find ((( the [[[ sum of {{{ all the numbers ((( that are [[[ given"),
    ],
)
def test_each_signal_finds_what_it_is_for(signal, statement):
    found = loss(quality, of(statement))
    assert (found.reason, found.detail.split(":")[0]) == ("low_quality", signal)


def test_things_to_be_added_are_no_placeholder():
    quality(of("Given two numbers to be added and a bridge under construction, is the problem that one is missing?"))


def test_a_placeholder_is_no_statement():
    found = loss(quality, of("English description is not available for the problem. Please switch to Chinese."))
    assert (found.reason, "not available" in found.detail) == ("low_quality", True)


def test_samples_grids_and_formulas_do_not_count_as_prose():
    grid = "\n".join(["#..#..#..#"] * 40 + ["1 2 3 4 5 6 7 8 9"] * 40)
    assert quality(given.record(given.COINS, statement=f"{given.COINS.statement}\n\n{grid}")).notes["quality"] == 1.0


def test_a_text_in_another_language_is_not_measured_by_english():
    chinese = "给定一个长度为 n 的整数数组，请你找出其中和最大的连续子数组，并输出这个最大的和。数组可能包含负数。"
    russian = "Дан массив целых чисел. Найдите непрерывный подмассив с наибольшей суммой и выведите эту сумму."
    for statement, language in ((chinese, "zh"), (russian, "ru"), (russian, "")):
        assert quality(of(statement, language=language)).notes["quality"] > 0.5


def test_half_bad_is_between_and_least_decides():
    statement = "Print the sum of all of the numbers.\n" * 2 + "Print the product of the primes.\nStop there.\n"
    assert 0 < quality(of(statement * 2)).notes["quality"] < 1
    assert loss(quality, of(statement * 2), least=0.9).reason == "low_quality"


def test_every_signal_has_its_limits():
    assert set(signals(given.COINS.statement)) == set(LIMITS)


# --- relevance


@pytest.mark.parametrize(
    ("what", "statement"),
    [
        ("SQL", "Write an SQL query to report the names of all customers that never ordered anything."),
        ("SQL", "Table: Person\n+----+-------+\n| id | email |\n+----+-------+\nFind all duplicate emails."),
        ("a shell script", "Write a bash script to count the frequency of each word in a file."),
        ("a web page", "Create an HTML page with a form for the name and the age of the user."),
        ("a web page", "Build a website for a bakery."),
        ("a graphical interface", "Design a calculator with a GUI using Tkinter."),
        ("use of the network", "Write a function that fetches the weather: send a GET request and return the answer."),
        ("use of the network", "Download all images from the web page at the given address."),
        ("use of the network", "Write a program that downloads the list of all the towns from a website."),
        ("an essay", "Write a short essay on the history of computing."),
        ("a question about a program", "What is the output of the following program?\nprint(1 + 1)"),
        ("a question about a program", "What is the output of the following code that adds two numbers to a list?"),
        ("multiple choice", "Which of the following sorts in place?\nA) merge sort\nB) heap sort\nC) radix sort"),
        ("a proof", "Let n be a positive integer. Prove that n squared plus n is always even."),
        ("an explanation", "Explain how a hash table deals with collisions, and why that matters."),
        ("an explanation", "What is the difference between a process and a thread?"),
    ],
)
def test_what_no_judge_can_tell_right_from_wrong_is_irrelevant(what, statement):
    found = loss(relevance, of(statement, kind="assert"))
    assert (found.reason, found.detail.split(":")[0]) == ("irrelevant", what)


@pytest.mark.parametrize(
    "statement",
    [
        "Write a function that removes all HTML tags from a string.",
        "A web developer needs to know how to design a web page's size. Find its length and width.",
        "Write a function to check whether a url is valid using regex.",
        "Given the path of a file in a Unix file system, return its canonical form.",
        "Return the number of requests that the server received. It can be proven that the answer is unique.",
        "Prove that you are a good thief: print the largest sum that can be stolen.",
        "Describe the tree by its parents: output n integers.",
        "Which of the following holds? Print 1 if a < b, else 2.\nInput\nA: 3\n",
        "The robot picks a random cell. Print the expected number of steps.",
        "Write a function that parses an SQL-like condition such as a = 1 and returns its tokens.",
    ],
)
def test_problems_about_such_things_stay(statement):
    assert "many_answers" not in relevance(of(statement)).problem.tags


@pytest.mark.parametrize(
    "statement",
    [
        "Return a random element of the list.",
        "Given a linked list, each node must have the same probability of being chosen.",
        "Write a function to read the numbers from a csv file and add them.",
        "Return the current time as text.",
    ],
)
def test_a_function_must_not_depend_on_chance_files_or_the_clock(statement):
    assert loss(relevance, of(statement, kind="function")).reason == "irrelevant"
    relevance(of(statement, kind="stdin"))


@pytest.mark.parametrize(
    "statement",
    [
        "Find a permutation. If there are multiple answers, print any of them.",
        "If there are several ways to do so, you may output any.",
        "Return any valid arrangement of the letters.",
        "Return all such numbers. You may return the answer in any order.",
        "If there are multiple solutions achieving the minimum number of operations among all, you may output any.",
        "For each test case, output one line containing any permutation of length $n$ that maximizes the score.",
        "Output n integers: any suitable matrix, or -1 if there is none.",
        "Return any string of minimum length that will unlock the safe.",
        "Your task is to find any value of d which yields a beautiful coloring, or report that it is impossible.",
        "If there are multiple ways that minimize the total cost, printing any one of them is accepted.",
        "If there are several answers, print one of them.",
        "If there exist multiple such permutations, you can pick any of them. Output q.",
    ],
)
def test_many_right_answers_are_marked_and_dropped_by_nobody(statement):
    record = of(statement)
    record.problem.tags = ["dp"]
    assert relevance(record).problem.tags == ["dp", "many_answers"]
    assert relevance(record).problem.tags == ["dp", "many_answers"]
    record.problem.compare.checker = "def check(): ..."
    assert relevance(record).problem.tags == ["dp"]


@pytest.mark.parametrize(
    "statement",
    [
        "You can output YES and NO in any case: multiple spellings are recognized, and you may print each in any case.",
        "If there are multiple answers, return the lexicographically smallest one.",
        "If there are several identical minima, he can choose any of them. Print the sum.",
        "Return the maximum score of any valid set of words.",
        "Any answer with a calculation error less than 10-5 will be accepted.",
        "Given an array, return true if any value appears twice. Find whether there is any duplicate.",
        "Do not print any debug information. Don't output any text besides the sum.",
        "Perform the operations in any order, any number of times, and print the largest value.",
        "A permutation has n distinct integers in arbitrary order. Print its sign.",
        "If you output any other positive number instead of 1, it is taken for 1.",
        "If the correct answer is Yes, any of yes, YES, and yEs will be accepted.",
    ],
)
def test_one_right_answer_is_not_marked(statement):
    assert relevance(of(statement)).problem.tags == []


def test_an_unordered_comparison_takes_care_of_order_alone():
    unordered = Compare(unordered=True)
    assert relevance(of("Return the answer in any order.", compare=unordered)).problem.tags == []
    modes = "If there is more than one mode, return them in any order."
    assert relevance(of(modes)).problem.tags == ["many_answers"]
    assert relevance(of(modes, compare=unordered)).problem.tags == []
    assert relevance(of("In case of many answers print any.", compare=unordered)).problem.tags == ["many_answers"]


# --- dates and licences


@pytest.mark.parametrize(
    ("date", "kept"),
    [
        ("2023-01-01", True), ("2022-12-31", False), ("2024-05-31T10:00:00Z", True), ("2024-06-01", False),
        ("2023", True), ("2023/4/9", True), ("2022", False), ("2024-07", False),
    ],
)  # fmt: skip
def test_the_window_takes_its_first_day_and_not_its_last(date, kept):
    record = of("", date=date)
    if kept:
        assert dates(record, after="2023-01-01", before="2024-06-01") is record
    else:
        assert loss(dates, record, after="2023-01-01", before="2024-06-01").reason == "outside_dates"


@pytest.mark.parametrize("date", ["", "soon", "2023-13-01", "12/05/2023", None, 2023])
def test_an_unknown_date_is_kept_or_dropped_as_told(date):
    assert dates(of("", date=date))
    assert loss(dates, of("", date=date), unknown="drop").reason == "outside_dates"


def test_a_limit_that_is_no_date_is_the_users_mistake():
    with pytest.raises(ValueError, match="2023-01-01"):
        dates(of("", date="2023-05-05"), after="May 2023")


@pytest.mark.parametrize(
    ("licence", "kept"),
    [("MIT", True), ("mit license", True), ("CC BY 4.0", True), ("cc-by-4.0", True), ("CC BY-SA 4.0", False),
     ("Apache License, Version 2.0", True), ("apache-2.0", True), ("GPL-3.0", False), ("", True), (None, True)],
)  # fmt: skip
def test_licences_are_the_same_however_they_are_spelled(licence, kept):
    record, allow = of("", licence=licence), ["MIT", "CC-BY-4.0", "Apache 2.0"]
    if kept:
        assert licences(record, allow=allow) is record
    else:
        assert loss(licences, record, allow=allow).reason == "licence"


def test_an_unknown_licence_is_dropped_as_told_and_no_list_allows_all():
    assert loss(licences, of(""), allow=["MIT"], unknown="drop").reason == "licence"
    assert licences(of("", licence="GPL-3.0"))


# --- all of them


FIELDS = ("statement", "kind", "tests", "asserts", "solutions", "compare", "language", "date", "licence")


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", given.GARBAGE, ids=lambda value: f"{type(value).__name__}{str(value)[:6]!r}")
def test_garbage_is_dropped_and_never_an_exception(field, value):
    evaluation, index = EvaluationSet.build([given.COINS]), Index()
    for step in (quality, relevance, dates, licences, evaluation.match):
        try:
            step(given.record(given.WINDOW, **{field: value}))
        except Dropped:
            pass
    mark = signature(given.record(given.WINDOW, **{field: value}))
    index.add("a", mark)
    index.match(mark)


@pytest.mark.parametrize("unit", ["write a ", '\\"', "'''", "<a ", "\n 1. ", "a = ", "\u0301\u0323", "/*", "A) b\n"])
def test_hostile_texts_of_100_kb_take_linear_time(unit):
    """Quadratic time would not take longer than expected here, but minutes: no clock is needed."""
    text = unit * (100_000 // len(unit))
    record = of(text, kind="assert", asserts=[text], solutions=[{"code": text, "language": "cpp"}])
    for step in (quality, relevance, signature):
        try:
            step(record)
        except Dropped:
            pass
