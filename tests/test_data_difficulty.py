"""Predict, calibrate, select: what a problem shows, what is learned from it, and what stays."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
import random
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from microcoder.data.difficulty.calibrate import Calibration, CalibrationError, calibrate, calibrated, falling
from microcoder.data.difficulty.constraints import below_zero, bounds
from microcoder.data.difficulty.evaluation import evaluate, majority, wilson
from microcoder.data.difficulty.features import NAMES, features
from microcoder.data.difficulty.measure import pass_rates, points
from microcoder.data.difficulty.predictor import Predictor, PredictorError, predict, probabilities, table
from microcoder.data.difficulty.rubric import DIMENSIONS, WEIGHTS, parse, question, rubric, weighted
from microcoder.data.difficulty.select import BY_SUCCESS, Bands, SelectError, plan, select, selected
from microcoder.data.difficulty.solution import solution_features
from microcoder.data.difficulty.training import drawn, fit, labelled, learn, train
from microcoder.data.difficulty.trees import SETTINGS, grow
from microcoder.data.parts import kept_parts, write_part
from microcoder.data.ranking import rows_of
from microcoder.data.record import DataError, Dropped, Record
from microcoder.judge import Judge
from microcoder.schema import Problem, Test
from microcoder.starter import problems as starter

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


# constraints


@pytest.mark.parametrize(
    ("text", "log10"),
    [
        ("1 <= n <= 10^5", [5]),
        ("1 ≤ n ≤ 10⁵", [5]),
        (r"$1 \le n \leq 2 \cdot 10^{5}$", [math.log10(2e5)]),
        ("1 &lt;= n &lt;= 2×10^5", [math.log10(2e5)]),
        ("0 <= k <= 1e9", [9]),
        ("n <= 3 * 10**4", [math.log10(3e4)]),
        ("n <= 200,000", [math.log10(2e5)]),
        (r"n \leqslant 100\,000", [5]),
        ("-2^31 <= x <= 2^31 - 1", [31 * math.log10(2)]),
        ("(2 ≤ n ≤ 10^5, 1 ≤ k ≤ 10^9)", [5, 9]),
        ("The sum of n does not exceed $10^6$.", [6]),
        ("The number of nodes is in the range [1,100].", [2]),
        ("between 1 and 50,000", [math.log10(5e4)]),
        ("At most 100 calls", [2]),
        ("n <= 100.", [2]),
        ("i < j and a < b", []),
        ("x <= 1.5", []),
        ("x <= 0", []),
        ("x <= 3rd", []),
    ],
)
def test_bounds_are_read_in_every_spelling(text, log10):
    assert [bound.log10 for bound in bounds(text)] == pytest.approx(log10)


def test_a_lost_superscript_is_put_back_unless_the_page_kept_others():
    assert [b.log10 for b in bounds("1 <= n <= 105\n-109 <= nums[i] <= 109\nm <= 2 * 104")] == pytest.approx(
        [5, 9, math.log10(2e4)]
    )
    assert [b.log10 for b in bounds("-231 <= n <= 231 - 1")] == pytest.approx([31 * math.log10(2)])
    assert [b.log10 for b in bounds("n <= 105, k <= 10^9")] == pytest.approx([math.log10(105), 9])
    assert [b.log10 for b in bounds("n <= 100, k <= 1000")] == [2, 3]


def test_the_section_of_constraints_comes_first_and_sizes_are_told_from_values():
    text = "If x <= 7, stop.\n\nConstraints:\n\n1 <= nums.length <= 10^5\n-10^9 <= nums[i] <= 10^9"
    assert [(b.name, b.size) for b in bounds(text)] == [("nums.length", True), ("nums[i]", False)]
    assert below_zero(text)
    assert not below_zero("1 <= n - 1 <= 5")
    assert bounds("Constraints are harsh: none is told. But n <= 50") == bounds("n <= 50")
    (nodes, value) = bounds("The number of nodes is in the range [1, 50].\n1 <= Node.val <= 9")
    assert (nodes.size, value.size) == (True, False)


# features


def test_what_would_tell_the_answer_is_not_looked_at():
    plain = record(EASY)
    telling = record(EASY, label="hard", ident="leetcode/3000", title="Hard one", date="2024-01-01", url="https://x/3000")
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


def test_an_evaluation_counts_as_by_hand():
    truth, guess = ["easy"] * 4 + ["hard"] * 6, ["easy"] * 3 + ["hard"] * 5 + ["easy"] * 2
    found = evaluate(truth, guess, ("easy", "hard"))
    assert found.confusion.tolist() == [[3, 1], [2, 4]]
    assert found.accuracy == 0.7
    assert found.macro_f1 == pytest.approx((6 / 9 + 8 / 11) / 2)
    assert found.interval == pytest.approx((0.3968, 0.8922), abs=1e-4)  # Wilson's, of 7 in 10
    assert majority(truth) == "hard"
    assert wilson(0, 10)[0] == 0
    assert wilson(10, 10)[1] == pytest.approx(1)


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


# calibrate


def test_adjacent_violators_are_pooled_as_by_hand():
    data = np.array([[0.1, 4, 4], [0.2, 1, 4], [0.3, 3, 4], [0.9, 0, 4]], dtype=float)
    scores, chances = falling(data)
    assert scores == pytest.approx([0.1, 0.25, 0.9])  # 0.2 and 0.3 break the order, and become one
    assert chances == pytest.approx([1, 0.5, 0])


def test_the_curve_is_that_of_scikit_learn_at_the_blocks():
    from sklearn.isotonic import IsotonicRegression

    draw = np.random.default_rng(1)
    for _ in range(20):
        score, tried = draw.integers(12, size=40) / 12, draw.integers(1, 9, size=40)
        passed = draw.binomial(tried, 1 - 0.7 * score)
        scores, chances = falling(np.stack([score, passed, tried], axis=1).astype(float))
        theirs = IsotonicRegression(increasing=False).fit(score, passed / tried, sample_weight=tried)
        assert sorted({round(c, 9) for c in theirs.predict(score)}) == pytest.approx(sorted(chances), abs=1e-8)
        assert (np.diff(scores) > 0).all()
        assert (np.diff(chances) < 0).all()


def made_points(count, seed=0):
    """Success is 1 - score."""
    draw = random.Random(seed)
    scores = [draw.random() for _ in range(count)]
    return [(score, sum(draw.random() > score for _ in range(8)), 8) for score in scores]


def test_the_boundaries_are_where_success_falls_to_them_and_their_intervals_hold_the_truth():
    made = calibrate(made_points(400), "m", successes=(0.8, 0.4), resamples=200)
    for boundary, truth in zip(made.boundaries, (0.2, 0.6), strict=True):
        assert boundary.low <= truth <= boundary.high
        assert boundary.low <= boundary.score <= boundary.high
        assert boundary.high - boundary.low < 0.25
        assert made.success(boundary.score) == pytest.approx(boundary.success)
    assert (made.problems, made.attempts, made.model) == (400, 3200, "m")
    wide = calibrate(made_points(40), "m", successes=(0.4,), resamples=200).boundaries[0]
    assert wide.high - wide.low > made.boundaries[1].high - made.boundaries[1].low


def test_a_model_that_solves_all_or_nothing_has_its_boundaries_at_the_ends():
    nothing = calibrate([(0.1, 0, 4), (0.9, 0, 4)], "m", resamples=10)
    assert [boundary.score for boundary in nothing.boundaries] == [0, 0]
    everything = calibrate([(0.1, 4, 4), (0.9, 4, 4)], "m", resamples=10)
    assert [boundary.score for boundary in everything.boundaries] == [1, 1]


def test_a_calibration_comes_back_from_its_file(tmp_path):
    made = calibrate(made_points(60), "nano", resamples=20)
    made.save(tmp_path / "c.json")
    assert Calibration.load(tmp_path / "c.json") == made
    for text in ("{}", "[]", "no", json.dumps({**dataclasses.asdict(made), "scores": [1, 0]})):
        (tmp_path / "c.json").write_text(text)
        with pytest.raises(CalibrationError, match="make it again"):
            Calibration.load(tmp_path / "c.json")
    with pytest.raises(CalibrationError, match="No such file"):
        Calibration.load(tmp_path / "none.json")


@pytest.mark.parametrize(
    "data", [[], [(0.5, 1, 2)], [(0.5, 0, 0)] * 9, [(0.1, 3, 2), (0.2, 1, 2)], [(math.nan, 1, 2)] * 3]
)
def test_points_that_cannot_be_calibrated_on_are_refused(data):
    with pytest.raises(CalibrationError):
        calibrate(data, "m")


def test_the_step_notes_the_chance_of_success():
    made = calibrate([(0.0, 4, 4), (1.0, 0, 4)], "m", resamples=5)
    one = Record(Problem("p"), {"difficulty": 0.25})
    assert calibrated(one, calibration=made).notes["success"] == 0.75
    with pytest.raises(Dropped) as dropped:
        calibrated(Record(Problem("p")), calibration=made)
    assert dropped.value.reason == "unscored"


# select

PAIRS = [(f"p{n}", (n % 100) / 100) for n in range(1000)]  # 340 easy, 330 medium, 330 hard


def shares(pairs, mask, bands=BY_SUCCESS):
    kept = [bands.of(hardness) for (_, hardness), stays in zip(pairs, mask, strict=True) if stays]
    return {band: kept.count(band) for band in bands.names}


def test_a_floor_drops_exactly_what_is_easier():
    mask = select(PAIRS, floor=0.4)
    assert [hardness for (_, hardness), stays in zip(PAIRS, mask, strict=True) if stays] == [
        hardness for _, hardness in PAIRS if hardness >= 0.4
    ]


def test_a_target_is_met_exactly_with_as_many_problems_as_it_allows():
    mask = select(PAIRS, target={"easy": 0.2, "medium": 0.4, "hard": 0.4})
    assert shares(PAIRS, mask, Bands()) == {"easy": 165, "medium": 330, "hard": 330}
    mask = select(PAIRS, target={"easy": 0.2, "medium": 0.4, "hard": 0.4}, size=100)
    assert shares(PAIRS, mask, Bands()) == {"easy": 20, "medium": 40, "hard": 40}


def test_bands_that_a_target_leaves_out_divide_the_rest():
    mask = select(PAIRS, target={"hard": 0.5}, size=200)
    assert shares(PAIRS, mask, Bands()) == {"easy": 51, "medium": 49, "hard": 100}
    mask = select(PAIRS, target={"hard": 1.0})
    assert shares(PAIRS, mask, Bands()) == {"easy": 0, "medium": 0, "hard": 330}


def test_a_band_without_problems_is_made_up_for_by_the_others():
    easier = [pair for pair in PAIRS if pair[1] < 2 / 3]
    mask = select(easier, target={"easy": 0.2, "medium": 0.4, "hard": 0.4})
    assert shares(easier, mask, Bands()) == {"easy": 165, "medium": 330, "hard": 0}


def test_neither_the_order_nor_the_parts_matter_but_the_seed_does():
    options = {"target": {"easy": 0.1, "hard": 0.2}, "size": 300}
    kept = {ident for (ident, _), stays in zip(PAIRS, select(PAIRS, **options), strict=True) if stays}
    shuffled = random.Random(1).sample(PAIRS, len(PAIRS))
    made = plan(shuffled, **options)
    assert {ident for ident, hardness in reversed(PAIRS) if made.refuse(ident, hardness) is None} == kept
    assert {i for (i, _), stays in zip(PAIRS, select(PAIRS, **options, seed=1), strict=True) if stays} != kept
    smaller = {i for (i, _), s in zip(PAIRS, select(PAIRS, **{**options, "size": 100}), strict=True) if s}
    assert smaller < kept
    assert (len(smaller), len(kept)) == (100, 300)


def test_what_is_dropped_says_why_in_terms_of_what_is_known():
    made = plan(PAIRS, floor=0.2, target={"easy": 0.1}, bands=BY_SUCCESS)
    scored = Record(Problem("p0"), {"difficulty": 0.05})
    measured = Record(Problem("p0"), {"difficulty": 0.5, "success": 0.92})
    for one, detail in ((scored, "hardness 0.05 < 0.2"), (measured, "success 0.92 > 0.8")):
        with pytest.raises(Dropped) as dropped:
            selected(one, plan=made)
        assert (dropped.value.reason, dropped.value.detail) == ("too_easy", detail)
    made = plan(PAIRS, target={"easy": 0.0, "hard": 0.1})
    with pytest.raises(Dropped, match="over_target: easy: 0 of 340 stay"):
        selected(scored, plan=made)
    with pytest.raises(Dropped, match="unscored"):
        selected(Record(Problem("p")), plan=made)
    with pytest.raises(Dropped, match="unscored"):
        selected(Record(Problem("p"), {"difficulty": math.nan}), plan=made)


def test_the_report_adds_up_before_and_after():
    made = plan(PAIRS, floor=0.1, target={"easy": 0.2, "medium": 0.4, "hard": 0.4})
    assert made.before == {"easy": 340, "medium": 330, "hard": 330}
    assert made.floored == {"easy": 240, "medium": 330, "hard": 330}
    assert made.after == {"easy": 165, "medium": 330, "hard": 330}
    assert made.table().splitlines()[1].split() == ["easy", "340", "34.0%", "100", "75", "165", "20.0%"]


@pytest.mark.parametrize("target", [{"esay": 0.2}, {"easy": 0.8, "hard": 0.5}, {"easy": -0.1}, {"easy": 0.0}])
def test_a_target_that_cannot_be_meant_says_what_to_write(target):
    with pytest.raises(SelectError, match=r"such as \{easy = 0.2, hard = 0.5\}"):
        plan(PAIRS, target=target)


def test_a_target_of_bands_that_are_all_empty_is_refused():
    with pytest.raises(SelectError, match="none of the problems"):
        plan([("a", 0.1)], target={"hard": 1.0})


# measure


@pytest.mark.usefixtures("one_thread")
def test_pass_rates_of_nano_go_through_rollout_and_judge_and_can_be_calibrated_on():
    found = [Record(problem, {"difficulty": 0.1 * n}) for n, problem in enumerate(starter("train", 2))]
    hopeless = Record(Problem("hopeless", tests=[Test("", "never said")], statement="Say it."), {"difficulty": 0.9})
    empty = Record(Problem("empty"), {"difficulty": 0.5})
    endless = Record(Problem("endless", tests=[Test("", "1")], statement="word " * 2000), {"difficulty": 0.5})
    records = [*found, hopeless, empty, endless]
    with Judge(workers=1, queue=1000) as judge:
        rates = list(pass_rates(iter(records), "nano", 4, judge=judge, limit=64))
        beyond = list(pass_rates(iter(found[:1]), "nano", 1, judge=judge, limit=100_000))
    assert [rate.id for rate in rates] == [one.problem.id for one in records]
    assert [rate.attempts for rate in rates] == [4, 4, 4, 0, 0]
    assert sum(rate.successes for rate in rates[:2]) > 0
    assert rates[2].successes == 0
    assert [rate.attempts for rate in beyond] == [1]  # a limit beyond the model's window is cut to what is left of it
    made = calibrate(points(records, rates), "nano", resamples=20)
    assert (made.problems, made.attempts) == (3, 12)
