"""Duplicates are found whatever was done to them, and look-alikes are not taken for duplicates."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from random import Random

import filter_problems as given
import numpy as np
import pytest

from microcoder.data.filter.duplicates import Index, Twin, signature
from microcoder.data.filter.signature import SIGNATURE, grams, leaders, sketch
from microcoder.data.record import Record
from microcoder.schema import Problem, Test


def index_of(*records, threshold=0.8):
    index = Index(threshold)
    for one in records:
        index.add(one.problem.id, signature(one))
    return index


@pytest.fixture(scope="module")
def index():
    return index_of(*map(given.record, given.ALL))


def twin(index, problem, **changes):
    return index.match(signature(given.record(problem, **changes)))


# --- sketches


def test_sketches_estimate_how_much_two_sets_share():
    items = np.arange(3000, dtype=np.uint64) * np.uint64(7919)
    for share in (0, 300, 700, 950):
        a, b = items[:1000], items[1000 - share : 2000 - share]
        estimate = np.mean(sketch(a, 128) == sketch(b, 128))
        assert abs(estimate - share / (2000 - share)) < 0.13  # three standard deviations
    assert (sketch(items, 60) == sketch(items[::-1], 60)).all()


def test_a_large_set_is_sketched_piece_by_piece_to_the_same_end():
    items = np.arange(1, 5001, dtype=np.uint64)
    value, where = leaders(items, 60)
    parts = [leaders(items[n : n + 1], 60)[0] for n in where]
    assert [part[slot] for slot, part in enumerate(parts)] == value.tolist()
    assert not sketch(items[:0], 60).any()


def test_grams_depend_on_order_and_a_short_text_is_one_gram():
    text = "a b c d e f".split()
    assert len(grams(text, 5)) == 2 and len(grams(text, 16)) == 1 and len(grams([], 5)) == 0
    assert not set(grams(text, 5)) & set(grams(text[::-1], 5))
    assert grams(["a"], 5) != grams(["a", "a"], 5)


def test_signatures_are_the_same_in_every_process():
    program = (
        "import sys; sys.path.insert(0, 'tests'); import filter_problems as given\n"
        "from microcoder.data.filter.duplicates import signature\n"
        "sys.stdout.write(signature(given.record(given.WINDOW)).hex())"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert bytes.fromhex(run.stdout) == signature(given.record(given.WINDOW))


# --- planted duplicates


@pytest.mark.parametrize("problem", given.ALL, ids=lambda problem: problem.id)
def test_an_exact_copy_is_found_though_its_tests_are_others(index, problem):
    copy = problem.statement.upper().replace("\n", "\n  ")
    assert twin(index, problem, statement=copy, tests=[], asserts=[], solutions=[]) == Twin(problem.id, 1.0, "exact")


def test_a_copy_that_lost_its_superscripts_is_exact():
    limits = "Return the number of pairs that add up to zero.\nConstraints: 1 <= n <= 10^5"
    index = index_of(Record(Problem("a", statement=limits)))
    assert index.match(signature(Record(Problem("b", statement=limits.replace("^", ""))))) == Twin("a", 1.0, "exact")


def test_renamed_variables_and_people_in_the_text_are_seen_through(index):
    text = given.COINS.statement
    for old, new in (("Alice", "Miriam"), ("Robert", "Yusuf"), (r"\bn\b", "m"), (r"\bk\b", "the_days"), ("v_i", "c_j")):
        text = re.sub(old, new, text)
    found = twin(index, given.COINS, statement=text, tests=[])
    assert (found.id, found.by) == ("coins", "text")


def renamed(problem):
    """All names in program, tests and statement replaced, the program written out otherwise."""
    names = {"squeeze": "pack", "word": "w", "out": "list", "letter": "c", "count": "n2"} | {
        "longest_calm": "f", "speeds": "xs", "limit": "max", "high": "a", "low": "b", "best": "res", "start": "i",
        "end": "j", "speed": "x",
    }  # fmt: skip
    new = {old: re.compile(rf"\b{old}\b") for old in names}

    def swap(text):
        for old, pattern in new.items():
            text = pattern.sub(names[old], text)
        return text

    code = swap(problem.solutions[0]["code"]).replace("return ", "return  ").replace("    ", "\t") + "# the end\n"
    solutions = [{"code": code, "language": "python"}]
    return given.record(
        problem, statement=swap(problem.statement), solutions=solutions, asserts=[swap(a) for a in problem.asserts]
    )


@pytest.mark.parametrize("problem", [given.WINDOW, given.RUNS], ids=lambda problem: problem.id)
def test_renamed_variables_everywhere_are_seen_through(index, problem):
    assert index.match(signature(renamed(problem))).id == problem.id


@pytest.mark.parametrize(
    ("problem", "edits"),
    [
        (given.COINS, {"wants to know": "would like to know", "long row": "very long row", "Print one": "Output one"}),
        (given.BRIDGES, {"wooden bridges": "bridges made of wood", "asks how many": "wonders how many"}),
        (given.WINDOW, {"consecutive hours": "hours in sequence", "the answer\nis zero": "return zero"}),
    ],
)
def test_a_text_that_was_edited_lightly_is_found(index, problem, edits):
    text = problem.statement
    for old, new in edits.items():
        assert old in text
        text = text.replace(old, new)
    assert twin(index, problem, statement=text).id == problem.id


@pytest.mark.parametrize("problem", given.ALL, ids=lambda problem: problem.id)
def test_appended_boilerplate_hides_nothing(index, problem):
    text = problem.statement + "\n\nAll rights reserved by the organisers. Please submit your answer below."
    assert twin(index, problem, statement=text).id == problem.id


def test_a_short_text_with_an_appendix_is_found_without_tests(index):
    text = given.RUNS.statement.replace("its count.", "its count, by using regex.")
    assert twin(index, given.RUNS, statement=text, asserts=[], solutions=[]).by == "text"


TRANSLATED = {
    "coins": "爱丽丝把若干枚硬币排成一行，每天早上她可以从任意一端取走一枚硬币，求最多能得到多少。",
    "bridges": "Un royaume d'îles est relié par des ponts de bois, dont certains sont pourris et tombent après un pas.",
    "window": "Dada una lista de velocidades del viento, devuelve la longitud de la racha más larga dentro del límite.",
    "runs": "Schreibe eine Funktion, die jede Folge gleicher Buchstaben durch den Buchstaben und die Anzahl ersetzt.",
}


@pytest.mark.parametrize("problem", given.ALL, ids=lambda problem: problem.id)
def test_a_translation_is_found_by_its_tests(index, problem):
    found = twin(index, problem, statement=TRANSLATED[problem.id])
    assert (found.id, found.by) == (problem.id, "tests")


def test_a_translation_with_other_tests_is_found_by_a_long_solution(index):
    found = twin(index, given.WINDOW, statement=TRANSLATED["window"], tests=[Test("[[1, 5, 5], 1]", "2")])
    assert (found.id, found.by) == ("window", "solution")


def test_the_same_tests_are_found_across_kinds(index):
    asserts = [
        "assert solve(speeds=[3, 4, 9, 8, 8, 1], limit=2) == 3",
        "assert solve([], 5) == 0",
        "assert solve([7, 7, 7, 7], 0) == 4",
    ]
    text = "How long was the wind calm? Hours are calm while gusts differ by the bound or less."
    other = Record(Problem("x", "assert", statement=text, asserts=asserts))
    assert index.match(signature(other)) == Twin("window", 1.0, "tests")


# --- look-alikes


def test_the_problems_are_not_twins_of_each_other():
    for problem in given.ALL:
        others = index_of(*(given.record(other) for other in given.ALL if other is not problem))
        assert twin(others, problem) is None


NUMBER = "Write a function to find the nth {} number."
FAMILIES = [
    # (statement, asserts, solution) of two different problems
    (
        (NUMBER.format("pentagonal"), ["assert f(5) == 35", "assert f(10) == 145", "assert f(1) == 1"],
         "def f(n):\n    return n * (3 * n - 1) // 2"),
        (NUMBER.format("hexagonal"), ["assert f(5) == 45", "assert f(7) == 91", "assert f(1) == 1"],
         "def f(n):\n    return n * (2 * n - 1)"),
    ),
    (
        ("Write a function to find the sum of two integers.", ["assert f(2, 2) == 4", "assert f(0, 0) == 0"],
         "def f(a, b):\n    return a + b"),
        ("Write a function to find the product of two integers.", ["assert f(2, 2) == 4", "assert f(0, 0) == 0"],
         "def f(a, b):\n    return a * b"),
    ),
    (
        ("Write a function to find the perimeter of a square.", ["assert p(10) == 40", "assert p(5) == 20"],
         "def p(a):\n    return 4 * a"),
        ("Write a function to find the perimeter of a rhombus.", ["assert r(10) == 40", "assert r(5) == 20"],
         "def r(s):\n    return 4 * s"),
    ),
    (
        ("Write a function to find all index positions of the maximum values in a given list.",
         ["assert f([12, 33, 23, 10, 67, 89, 45, 667, 23, 12, 11, 10, 54]) == [7]", "assert f([1, 2, 2]) == [1, 2]"],
         "def f(xs):\n    best = max(xs)\n    return [i for i, x in enumerate(xs) if x == best]"),
        ("Write a function to find all index positions of the minimum values in a given list.",
         ["assert f([12, 33, 23, 10, 67, 89, 45, 667, 23, 12, 11, 10, 54]) == [3, 11]", "assert f([1, 2, 2]) == [0]"],
         "def f(xs):\n    best = min(xs)\n    return [i for i, x in enumerate(xs) if x == best]"),
    ),
    (
        ("Write a function to locate the left insertion point for a specified value in sorted order.",
         ["assert f([1, 2, 4, 5], 6) == 4", "assert f([1, 2, 4, 5], 3) == 2", "assert f([1, 2, 4, 5], 7) == 4"], ""),
        ("Write a function to locate the right insertion point for a specified value in sorted order.",
         ["assert f([1, 2, 4, 5], 6) == 4", "assert f([1, 2, 4, 5], 3) == 2", "assert f([1, 2, 4, 5], 7) == 4"], ""),
    ),
    (
        ("Write a function that matches a string that has an a followed by two to three 'b'.",
         ["assert f('ac') == 'Not matched!'", "assert f('dc') == 'Not matched!'", "assert f('abbba') == 'Matched!'"],
         "import re\ndef f(text):\n    return 'Matched!' if re.search('ab{2,3}', text) else 'Not matched!'"),
        ("Write a function that matches a string that has an a followed by three 'b'.",
         ["assert f('ac') == 'Not matched!'", "assert f('dc') == 'Not matched!'", "assert f('abbba') == 'Matched!'"],
         "import re\ndef f(text):\n    return 'Matched!' if re.search('ab{3}?', text) else 'Not matched!'"),
    ),
    (
        ("Remove the empty lists from a list of lists that was given.", ["assert f([[], [1]]) == [[1]]"],
         "def f(items):\n    return [x for x in items if x]"),
        ("Drop whatever tuples are of no length at all.", ["assert f([(), (2,)]) == [(2,)]"],
         "def f(tuples):\n    return [t for t in tuples if t]"),
    ),
    (
        ("Decodes a text that was encoded with encode_cyclic before, and returns the decoded text.", [], ""),
        ("Decodes a text that was encoded with encode_shift before, and returns the decoded text.", [], ""),
    ),
]  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family[0][0][:40])
def test_problems_bred_by_a_template_are_two(family):
    one, two = (given.simple(str(n), *parts) for n, parts in enumerate(family))
    assert index_of(one).match(signature(two)) is None
    assert index_of(two).match(signature(one)) is None


@pytest.mark.parametrize(
    "edits",
    [
        {"the largest total": "the smallest total"},  # another choice
        {"(1 <= k <= n <= 2000)": "(1 <= k <= n <= 300000)"},  # another bound, and nothing but the text to go by
    ],
)
def test_a_long_statement_with_one_decisive_change_is_another_problem(index, edits):
    text = given.COINS.statement
    for old, new in edits.items():
        assert old in text
        text = text.replace(old, new)
    assert twin(index, given.COINS, statement=text, tests=[]) is None


def test_easy_and_hard_versions_are_two_though_their_samples_agree():
    text = "This is the {} version of the problem. The only difference is the bound on n. " + given.COINS.statement
    easy, hard = (given.record(given.COINS, id=name, statement=text.format(name)) for name in ("easy", "hard"))
    assert index_of(easy).match(signature(hard)) is None


def test_another_output_for_the_same_input_speaks_against_all_but_the_same_statement(index):
    wrong = [Test(test.input, test.output.replace("1", "2").replace("6", "7")) for test in given.COINS.tests]
    text = given.COINS.statement.replace("wants to know", "would like to know")
    assert twin(index, given.COINS, statement=text, tests=wrong) is None
    assert twin(index, given.COINS, tests=wrong).by == "exact"


def test_trivial_tests_and_trivial_solutions_prove_nothing():
    asserts = ["assert f(1) == False", "assert f(2) == True"]
    one = given.simple("1", "Is the number even?", asserts, "f = lambda n: n % 2 == 0")
    two = given.simple("2", "Has the month 28 days in most years?", asserts, "f = lambda month: month == 2")
    three = given.simple("3", "Is the number of legs even?", ["assert f(1) == False"], "f = lambda legs: legs % 2 == 0")
    assert index_of(one, two).match(signature(three)) is None
    assert index_of(one).match(signature(two)) is None


def test_a_problem_without_anything_resembles_nothing():
    empty = Record(Problem("empty"))
    index = index_of(empty)
    assert index.match(signature(empty)) is None


# --- the index


def test_the_threshold_is_that_of_texts():
    text = given.COINS.statement
    for old, new in (("long row", "very long line"), ("may take", "is allowed to take"), ("wants to know", "asks")):
        text = text.replace(old, new)
    edited = signature(given.record(given.COINS, statement=text, tests=[]))
    known = [given.record(problem) for problem in given.ALL]
    assert index_of(*known, threshold=0.95).match(edited) is None
    assert index_of(*known, threshold=0.7).match(edited).id == "coins"


def many(count):
    """Statements that share boilerplate and no more."""
    random = Random(5)
    for n in range(count):
        story = " ".join("".join(random.choices("abcdefghij", k=6)) for _ in range(40))
        text = f"{story}. The first line contains the number of test cases, and then each case has a line of its own."
        yield Record(Problem(f"p{n}", statement=text, tests=[Test(f"{n} {n % 7}", str(n * n))]))


def test_a_grown_index_finds_all_it_has_seen_and_nothing_else(tmp_path):
    marks = [(one.problem.id, signature(one)) for one in many(1100)]  # beyond the room it begins with
    index = Index(0.7)
    for ident, mark in marks:
        assert index.match(mark) is None
        index.add(ident, mark)
    index.save(tmp_path / "index.npz")
    for known in (index, Index.load(tmp_path / "index.npz"), pickle.loads(pickle.dumps(index))):
        assert (len(known), known.threshold) == (1100, 0.7)
        assert [known.match(mark).id for _, mark in marks[::7]] == [ident for ident, _ in marks[::7]]
        known.add("new", signature(given.record(given.COINS)))
        assert twin(known, given.COINS).id == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["index.npz"]


def test_of_equals_the_first_is_named():
    one, two = (given.record(given.RUNS, id=name) for name in ("one", "two"))
    assert index_of(one, two).match(signature(two)).id == "one"


def test_a_file_of_another_layout_says_what_to_do(tmp_path):
    np.savez(tmp_path / "index.npz", rows=np.zeros(3))
    with pytest.raises(ValueError, match="delete it and run again"):
        Index.load(tmp_path / "index.npz")


def test_a_signature_is_600_bytes_however_long_the_problem_is():
    long = given.record(given.COINS, statement=given.COINS.statement * 50, tests=given.COINS.tests * 500)
    assert len(signature(long)) == len(signature(Record(Problem("x")))) == SIGNATURE.itemsize < 620
