"""What overlaps with an evaluation problem is found, whichever of the two is the longer one."""

from __future__ import annotations

import pickle

import filter_problems as given
import pytest

from microcoder.data.filter.contamination import EvaluationSet, contamination
from microcoder.data.process import process
from microcoder.data.record import Dropped, Record
from microcoder.schema import Problem, Test

SENTENCES = [
    "A gardener waters the roses in the order in which they bloomed last year and stops when the can is empty.",
    "Seven ships leave the harbour at dawn, and each of them carries as much grain as its captain dares to load.",
    "The clock on the tower strikes once for every guest who has left the ballroom since the music began to play.",
    "Count the paths that a beetle may walk on the edges of a cube without crossing any of its corners twice.",
    "For each query print the smallest key that opens a door behind which another key of the same colour is lying.",
    "When two trains meet on the single track, the lighter one must go back to the station where it came from.",
]
EVALUATION = [
    *given.ALL,
    Problem("short", statement="Count the vowels in a sentence that ends with a stop."),
    Problem("two", statement=" ".join(SENTENCES[:2])),
]


@pytest.fixture(scope="module")
def evaluation():
    return EvaluationSet.build(EVALUATION)


def match(evaluation, statement, overlap=0.22, **fields):
    return evaluation.match(Record(Problem("x", statement=statement, **fields)), overlap)


def test_a_copy_overlaps_wholly(evaluation):
    found = match(evaluation, given.COINS.statement)
    assert (found.id, found.overlap, found.by) == ("coins", 1.0, "16-grams")


def test_the_overlap_is_the_share_of_16_grams(evaluation):
    assert match(evaluation, SENTENCES[0]).overlap == 1.0  # 21 words, 6 grams, all of them in "two"
    half = " ".join([SENTENCES[0], SENTENCES[2]])  # 42 words, 27 grams, as "two" has: they share 6
    assert match(evaluation, half).overlap == pytest.approx(6 / 27, abs=0.001)
    assert match(evaluation, half, overlap=0.23) is None


def test_an_evaluation_problem_inside_a_long_text_is_found(evaluation):
    text = " ".join([*SENTENCES[2:], *SENTENCES[:2], *SENTENCES[2:]])
    found = match(evaluation, text)
    assert (found.id, found.overlap) == ("two", 1.0)


def test_markup_and_case_hide_nothing(evaluation):
    text = " ".join(SENTENCES[:2]).upper().replace(" THE ", " **the** ").replace(", ", " --\n ")
    assert match(evaluation, text).overlap == 1.0


def test_fewer_than_16_words_overlap_only_with_the_very_same_words(evaluation):
    found = match(evaluation, "Count the VOWELS in a sentence, that ends with a stop!")
    assert (found.id, found.by) == ("short", "16-grams")
    assert match(evaluation, "Count the consonants in a sentence that ends with a stop.") is None
    assert match(evaluation, "Count the vowels in a sentence that ends with a stop and has nine words or more.") is None


def test_one_shared_turn_of_phrase_is_no_overlap():
    phrase = "it is guaranteed that the sum of all lengths over all test cases does not exceed"  # 16 words
    evaluation = EvaluationSet.build([Problem("a", statement=f"Sort. {phrase}")])  # 2 grams
    assert match(evaluation, f"{SENTENCES[0]} {phrase}") is None
    assert match(evaluation, f"{SENTENCES[0]} Sort. {phrase}").overlap == 1.0


def test_what_many_evaluation_problems_share_is_boilerplate():
    phrase = "the input is given from standard input in the following format and all values in it are small integers"
    problems = [Problem(f"{n}", statement=f"{sentence} {phrase}") for n, sentence in enumerate(SENTENCES)]
    text = f"Which rose is the last one? {phrase}"
    assert match(EvaluationSet.build(problems), text).overlap > 0.22
    assert match(EvaluationSet.build(problems, common=5), text) is None
    assert match(EvaluationSet.build(problems, common=5), problems[3].statement).id == "3"


def test_what_16_grams_cannot_see_the_signatures_can(evaluation):
    chinese = "爱丽丝把若干枚硬币排成一行，每天早上她可以从任意一端取走一枚硬币，求最多能得到多少。"
    found = match(evaluation, chinese, tests=given.COINS.tests)
    assert (found.id, found.by) == ("coins", "tests")


def test_tests_are_compared_as_process_leaves_them():
    many = [Test(f"{n} {n * n}\n{'7 ' * n}", f"{n * 31 % 101}\n") for n in range(2, 60)]
    known = EvaluationSet.build([given.record(given.COINS, tests=many).problem])
    record = process(given.record(given.BRIDGES, statement=given.BRIDGES.statement, tests=many))
    assert len(record.problem.tests) < len(many)
    assert known.match(record).by == "tests"


def test_the_step_drops_with_the_name_of_the_match(evaluation):
    with pytest.raises(Dropped) as caught:
        contamination(given.record(given.COINS), evaluation=evaluation)
    assert (caught.value.reason, caught.value.detail) == ("contaminated", "overlap 1.00 with coins")
    text = "列" * 30
    with pytest.raises(Dropped, match=r"the same tests, 1\.00 with coins"):
        contamination(given.record(given.COINS, statement=text), evaluation=evaluation)


def test_what_is_new_stays(evaluation):
    record = Record(Problem("x", statement=" ".join(SENTENCES[2:]), tests=[Test("1", "1")]))
    assert contamination(record, evaluation=evaluation) is record


def test_it_travels_to_worker_processes(evaluation):
    assert match(pickle.loads(pickle.dumps(evaluation)), given.RUNS.statement).id == "runs"
    assert len(evaluation) == len(EVALUATION)


def test_an_empty_set_matches_nothing():
    assert match(EvaluationSet.build([]), given.COINS.statement) is None
    assert match(EvaluationSet.build([Problem("none")]), "") is None
