"""Predict: what a problem shows, and what is learned from it."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from microcoder.data.difficulty.features import NAMES, features, solution_features
from microcoder.data.difficulty.predictor import (
    SETTINGS,
    Predictor,
    PredictorError,
    drawn,
    fit,
    grow,
    labelled,
    learn,
    predict,
    probabilities,
    table,
    train,
)
from microcoder.data.difficulty.rubric import DIMENSIONS, WEIGHTS, parse, question, rubric, weighted
from microcoder.data.parts import kept_parts, write_part
from microcoder.data.record import DataError, Record
from microcoder.data.steps import rows_of
from microcoder.schema import Problem, Test

EASY = "def f(a):\n    return sum(a) + {n}\n"
MEDIUM = "def f(a):\n    best = {n}\n    for x in a:\n        if x > best:\n            best = x\n    return best\n"
HARD = """
def f(a):
    table = [[0] * {n} for _ in a]
    def go(i, j):
        if i == len(a):
            return j
        for k in range(j):
            while table[i][k] and k < {n}:
                table[i][k] = max(go(i + 1, k), table[i][j] & 7)
        return table[i][j]
    return go(0, {n})
"""


def record(code="", statement="Given a list, return a number.", label="", ident="p", **fields):
    solutions = [{"code": code, "language": "python"}] if code else []
    problem = Problem(ident, "function", statement=statement, entry_point="f", tests=[Test("[[1]]", "1")])
    problem = dataclasses.replace(problem, solutions=solutions, difficulty=label, **fields)
    return Record(problem)


def corpus(each=16):
    """Problems whose code and bounds tell their label."""
    kinds = [("easy", EASY, "{n}0"), ("medium", MEDIUM, "{n}000"), ("hard", HARD, "{n}0^5")]
    found = []
    for n in range(1, each + 1):
        for label, code, bound in kinds:
            statement = f"Return a number.\n\nConstraints:\n\n1 <= n <= {bound.format(n=n)}\n"
            found.append(record(code.format(n=n), statement, label, f"{label}{n}"))
    return found


@pytest.fixture(scope="module")
def predictor():
    return train(*zip(*labelled(corpus()), strict=True), trees=40)


# features


def test_what_would_tell_the_answer_is_not_looked_at():
    plain = record(EASY)
    telling = record(
        EASY, label="hard", ident="leetcode/3000", title="Hard one", date="2024-01-01", url="https://x/3000"
    )
    telling.problem = dataclasses.replace(
        telling.problem, tags=["hard"], source="s", platform="p", difficulty_score=0.9, lineage=["x"], language="en"
    )
    telling.notes["question_id"] = 3000
    assert features(plain) == features(telling)


def test_missing_parts_say_so_and_the_rest_of_them_is_zero():
    found = features(Record(Problem("p")))
    missing = {name for name, value in found.items() if value}
    assert missing == {name for name in NAMES if name.endswith("_missing")} | {"kind_stdin"}
    whole = features(corpus(1)[0])
    assert not any(whole[name] for name in NAMES if name.endswith("_missing"))


GARBAGE = [None, 7, b"x", "", "\x00\ud800", ["x", None, 3], {"a": 1}, float("nan"), "((" * 3000, "<=" * 5000, "def f(:"]


@pytest.mark.parametrize("value", GARBAGE, ids=[str(n) for n in range(len(GARBAGE))])
def test_anything_goes_in_and_finite_numbers_of_the_same_names_come_out(value, predictor):
    fields = {field.name: value for field in dataclasses.fields(Problem)}
    several = [
        Record(Problem(**fields)),
        Record(Problem("p", solutions=[{"code": value, "language": value, "verdict": ""}])),
        Record(Problem("p", statement="x", starter_code=value, entry_point=value, asserts=[value], tests=[value])),
    ]
    for one in several:
        found = features(one)
        assert tuple(found) == NAMES
        assert all(isinstance(number, float) and math.isfinite(number) for number in found.values())
        assert 0 <= predict(one, predictor=predictor).notes["difficulty"] <= 1


def test_a_long_hostile_statement_is_read_in_bounded_time():
    for text in ("<", "1 <= ", "10^", "n ", "-1 a", "\n" * 3 + "*", "range [", "between ", "a."):
        features(record(statement=text * (200_000 // len(text))))


def test_the_shape_of_a_solution_is_measured():
    found = solution_features(HARD.format(n=3))
    assert found["code_recursion"] == found["code_tables"] == found["uses_extremes"] == 1
    assert (found["code_loops"], found["code_while"], found["code_loop_depth"]) == (3, 1, 2)
    assert (found["code_functions"], found["code_branches"], found["code_bits"]) == (2, 1, 1)
    assert found["code_cyclomatic"] == pytest.approx(math.log1p(3 + 1 + 1 + 2))  # loops, if, and, functions
    tools = solution_features("import heapq\n@cache\ndef g(x): heapq.heappush(x, sorted(x))")
    used = {name for name, value in tools.items() if name.startswith("uses_") and value}
    assert used == {"uses_heap", "uses_cache", "uses_sort"}
    assert solution_features("class S:\n def f(self): return self.f()")["code_recursion"] == 1
    assert solution_features("class S:\n def f(self, o): return o.f() + g()\ndef g(): return 1")["code_recursion"] == 0


def test_the_reference_is_the_first_python_solution_that_is_not_known_to_be_wrong():
    one = record(EASY)
    wrong = {"code": HARD, "language": "python", "verdict": "wrong_answer"}
    foreign = {"code": "int main() {}", "language": "cpp", "verdict": "accepted"}
    two = record(EASY)
    two.problem.solutions = [wrong, foreign, {"code": EASY, "language": "Python 3", "verdict": "accepted"}]
    assert features(one) == features(two)


def test_the_signature_comes_from_the_starter_code_even_without_a_body():
    starter_code = "class Solution:\n    def other(self): pass\n    def f(self, a: List[List[int]], s: str) -> bool:"
    found = features(record(starter_code=starter_code))
    assert (found["arguments"], found["takes_table"], found["takes_text"], found["returns_truth"]) == (2, 1, 1, 1)
    from_reference = features(record("def f(root: TreeNode) -> int:\n    return 1"))
    assert (from_reference["takes_tree"], from_reference["returns_integer"]) == (1, 1)


def test_asserts_count_as_tests():
    one = Record(Problem("p", "assert", asserts=["def check(f):\n    assert f(1) == 20\n    assert f(2) == 3"]))
    found = features(one)
    assert (found["tests_missing"], found["tests"], found["test_output_number"]) == (0, math.log1p(2), 1)


# predictor


def test_labels_that_can_be_told_are_learned_and_the_score_rises_with_them(predictor):
    fresh = corpus(22)[-18:]
    found = [predictor.predict(one) for one in fresh]
    assert [prediction.label for prediction in found] == [one.problem.difficulty for one in fresh]
    assert all(sum(p.probabilities.values()) == pytest.approx(1) and 0 <= p.score <= 1 for p in found)
    easy, medium, hard = ([p.score for p in found[n::3]] for n in range(3))
    assert max(easy) < min(medium) <= max(medium) < min(hard)


def test_a_problem_without_its_solution_is_still_told_by_the_rest(predictor):
    for one in corpus(4):
        one.problem.solutions = []
        assert predictor.predict(one).label == one.problem.difficulty


def test_the_step_leaves_its_score_in_the_notes_and_the_problem(predictor):
    one = predict(record(HARD.format(n=4)), predictor=predictor)
    assert one.notes["difficulty"] == one.notes["predicted"] == one.problem.difficulty_score
    assert one.notes["difficulty_by"] == "predictor"


def test_a_predictor_comes_back_from_its_file_and_from_a_pickle(predictor, tmp_path):
    predictor.save(tmp_path / "p.json")
    rows = [features(one) for one in corpus(5)]
    for copy in (Predictor.load(tmp_path / "p.json"), pickle.loads(pickle.dumps(predictor))):
        assert copy.predict_features(rows) == predictor.predict_features(rows)
        assert (copy.labels, copy.form, copy.problems) == (predictor.labels, predictor.form, 48)


def test_the_trees_say_what_scikit_learn_says():
    from sklearn.ensemble import GradientBoostingClassifier

    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(120, 5)), draw.integers(3, size=120)
    model = GradientBoostingClassifier(n_estimators=30, **SETTINGS, random_state=3).fit(x, y)
    fresh = draw.normal(size=(50, 5))
    assert np.allclose(probabilities("classes", grow(x, y, 30, 3), fresh), model.predict_proba(fresh), atol=1e-12)
    y = (y > 0).astype(int)
    model.fit(x, y)
    assert np.allclose(probabilities("cumulative", grow(x, y, 30, 3), fresh), model.predict_proba(fresh), atol=1e-12)


def test_both_forms_give_probabilities_of_sum_one():
    x = table([features(one) for one in corpus()], NAMES)
    y = np.arange(48) % 3
    for form in ("classes", "cumulative"):
        chances = probabilities(form, fit(form, NAMES, 30, 0, x, y), x)
        assert chances.shape == (48, 3)
        assert np.allclose(chances.sum(axis=1), 1)
        assert chances.min() >= 0
        assert (chances.argmax(axis=1) == y).mean() > 0.9


def test_two_labels_are_enough(tmp_path):
    two = [one for one in corpus() if one.problem.difficulty != "medium"]
    made = train(*zip(*labelled(two), strict=True), trees=30)
    made.save(tmp_path / "p.json")
    assert {Predictor.load(tmp_path / "p.json").predict(one).label for one in two} == {"easy", "hard"}


def test_on_several_cores_the_same_is_learned(predictor):
    pairs = list(labelled(corpus()))
    rows = [table([features(one)], NAMES)[0] for one, _ in pairs]
    with ThreadPoolExecutor(3) as pool:
        made = learn(rows, [label for _, label in pairs], trees=40, spread=pool.map)
    assert made.form == predictor.form
    assert [one.to_dict() for one in made.trees] == [one.to_dict() for one in predictor.trees]


def test_of_many_problems_each_label_gets_its_share_and_a_rare_one_enough_to_be_learned():
    y = np.repeat([0, 1, 2], [6000, 3980, 20])
    some = drawn(y, 1000, seed=0)
    assert np.bincount(y[some]).tolist() == [600, 398, 10] and len(set(some)) == len(some)
    assert drawn(y[:1000], 1000, seed=0).tolist() == list(range(1000))


def test_a_part_gives_no_more_than_its_share_to_learn_from_whatever_the_order(tmp_path):
    write_part(tmp_path, "0", corpus())
    write_part(tmp_path, "1", corpus()[::-1])
    one, other = (rows_of(10, part) for part in kept_parts(tmp_path))
    assert [label for _, label in one] == [label for _, label in other] and len(one) == 10
    assert all((a == b).all() for (a, _), (b, _) in zip(one, other, strict=True))


@pytest.mark.parametrize("labels", [[], ["easy"] * 40, ["easy"] * 30 + ["hard"] * 3, ["easy", "tricky"] * 20])
def test_labels_that_nothing_can_be_learned_from_are_named(labels):
    with pytest.raises(PredictorError, match=r"learns from the labels easy, medium, hard.*Found"):
        train([record(EASY)] * len(labels), labels)


def _loop(data):
    data["trees"][0]["left"][0] = data["trees"][0]["right"][0] = data["trees"][0]["roots"][1]
    data["trees"][0]["left"][data["trees"][0]["roots"][1]] = 0


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.update(version=0),
        lambda data: data.update(form="other"),
        lambda data: data.update(labels=["easy"]),
        lambda data: data.update(names=[*data["names"], "unheard_of"]),
        lambda data: data.update(names=data["names"][:3]),
        lambda data: data.update(trees=data["trees"][:1]),
        lambda data: data["trees"][0].update(value="x"),
        lambda data: data["trees"][0].update(roots=[10**9]),
        lambda data: data["trees"][0].update(start=float("nan")),
        lambda data: data["trees"][0]["left"].pop(),
        _loop,
        lambda data: data.clear(),
    ],
)
def test_a_damaged_or_hostile_predictor_is_refused(predictor, tmp_path, spoil):
    predictor.save(tmp_path / "p.json")
    data = json.loads((tmp_path / "p.json").read_text())
    spoil(data)
    (tmp_path / "p.json").write_text(json.dumps(data))
    with pytest.raises(PredictorError, match="train it again"):
        Predictor.load(tmp_path / "p.json")


def test_what_is_no_json_or_not_there_is_refused(tmp_path):
    (tmp_path / "p.json").write_bytes(pickle.dumps(print))
    with pytest.raises(PredictorError, match="train it again"):
        Predictor.load(tmp_path / "p.json")
    with pytest.raises(PredictorError, match="No such file"):
        Predictor.load(tmp_path / "none.json")


def test_without_scikit_learn_training_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(DataError, match=r"pip install 'microcoder\[data\]'"):
        train(*zip(*labelled(corpus()), strict=True))


# rubric

GOOD = dict.fromkeys(DIMENSIONS, 5)


class Answers:
    """An endpoint that gives these answers in turn, and remembers what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def ask(self, messages, *, key="", temperature=0.0):
        self.asked.append((messages, key, temperature))
        return self.answers[(len(self.asked) - 1) % len(self.answers)]


def test_the_weights_are_of_sum_one_and_the_score_is_their_mean():
    assert sum(WEIGHTS.values()) == pytest.approx(1)
    assert len(WEIGHTS) == 5
    assert weighted(dict.fromkeys(DIMENSIONS, 10)) == pytest.approx(1)
    assert weighted({**dict.fromkeys(DIMENSIONS, 0), "insight": 10}) == pytest.approx(WEIGHTS["insight"])


def test_the_mean_and_the_spread_of_the_tries_go_to_the_notes():
    endpoint = Answers(*(json.dumps(dict.fromkeys(DIMENSIONS, n)) for n in (2, 4, 6)))
    one = rubric(record(), endpoint=endpoint)
    assert one.notes["rubric"] == one.notes["difficulty"] == one.problem.difficulty_score == 0.4
    assert one.notes["rubric_spread"] == pytest.approx(math.sqrt(0.08 / 3), abs=1e-4)
    assert (one.notes["rubric_insight"], one.notes["rubric_tries"], one.notes["difficulty_by"]) == (4, 3, "rubric")
    assert len({key for _, key, _ in endpoint.asked}) == 3  # a cache must not take them for one
    assert len({messages[0]["content"] for messages, _, _ in endpoint.asked}) == 3  # the order turns


def test_the_question_shows_the_problem_but_not_its_label_or_solution():
    one = record("SECRET", "Add the numbers.", "hard", starter_code="def add(a):")
    system, user = (message["content"] for message in question(one.problem, 0))
    assert user == "Add the numbers.\n\ndef add(a):"
    assert all(name in system for name in DIMENSIONS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I would say 5.",
        "5",
        "[]",
        json.dumps({**GOOD, "care": 11}),
        json.dumps({**GOOD, "care": -1}),
        json.dumps({**GOOD, "care": 5.5}),
        json.dumps({**GOOD, "care": True}),
        json.dumps({**GOOD, "care": "5"}),
        json.dumps({**GOOD, "more": 5}),
        json.dumps(dict.fromkeys(list(GOOD)[1:], 5)),
        json.dumps(GOOD) + " Hope this helps!",
        "[" * 100_000,
    ],
)
def test_an_answer_that_is_not_exactly_the_json_asked_for_is_asked_for_again(text):
    assert parse(text) is None
    endpoint = Answers(text, json.dumps(GOOD))
    assert rubric(record(), endpoint=endpoint, tries=1).notes["rubric"] == 0.5
    assert len({key for _, key, _ in endpoint.asked}) == 2


def test_a_fence_around_the_answer_is_forgiven():
    assert parse(f"```json\n{json.dumps(GOOD)}\n```") == GOOD


def test_without_an_endpoint_or_a_usable_answer_the_predictor_stands(predictor):
    one = predict(record(EASY), predictor=predictor)
    before = dict(one.notes)
    assert rubric(one).notes == before
    endpoint = Answers("no")
    assert rubric(one, endpoint=endpoint).notes == {**before, "rubric_tries": 0}
    assert len(endpoint.asked) == 9
