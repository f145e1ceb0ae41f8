"""Is one better than the other, or is it chance: hand-worked cases, and how often the test is wrong."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from microcoder.evaluation.score import compare, sign_flip_p
from microcoder.evaluation.suite import EvaluationError
from microcoder.evaluation.tables import comparison_markdown, comparison_text

BEFORE = {"a": [0, 0], "b": [0, 1], "c": [1, 1, 1], "d": [1], "x": [1]}
AFTER = {"d": [0, 1], "a": [1, 1], "b": [1, 1, 1, 1], "c": [1], "y": [0], "z": [0]}


def test_the_difference_is_over_the_problems_that_both_have():
    found = compare(BEFORE, AFTER)
    assert found["problems"] == 4
    assert found["before"] == (0 + 1 / 2 + 1 + 1) / 4
    assert found["after"] == (1 + 1 + 1 + 1 / 2) / 4
    assert found["difference"] == 0.25
    assert (found["only_before"], found["only_after"]) == (["x"], ["y", "z"])


def test_won_and_lost_problems_are_listed_with_the_largest_change_first():
    found = compare(BEFORE, AFTER)
    assert found["won"] == [{"id": "a", "before": 0.0, "after": 1.0}, {"id": "b", "before": 0.5, "after": 1.0}]
    assert found["lost"] == [{"id": "d", "before": 1.0, "after": 0.5}]
    assert found["equal"] == 1


@pytest.mark.parametrize(
    ("change", "p"),
    [
        ([1, 1, 0], 2 / 4),  # of ++ +- -+ --, two lie as far out as 2
        ([1] * 6, 2 / 64),
        ([1, 0.5, -0.5], 6 / 8),  # the sum is 1; the eight are +-2, +-1, +-1, 0, 0
        ([1, -1], 1.0),
        ([0, 0, 0], 1.0),
    ],
)
def test_the_p_value_of_few_differences_is_counted_out(change, p):
    assert sign_flip_p(np.array(change, float)) == p


def test_sums_that_rounding_tells_apart_count_as_equal():
    assert sign_flip_p(np.array([0.1, 0.2, -0.3, 0.6])) == pytest.approx(
        sum(abs(a + 2 * b + 3 * c + 6 * d) >= 6 for a, b, c, d in itertools.product((-1, 1), repeat=4)) / 16
    )


def test_drawn_p_values_are_those_of_the_enumeration():
    change = np.random.default_rng(3).integers(-3, 5, 16) / 4
    signs = np.array(list(itertools.product((-1, 1), repeat=16)))
    exact = (np.abs(signs @ np.abs(change)) >= abs(change.sum()) - 1e-9).mean()
    assert 0.02 < exact < 0.9
    assert sign_flip_p(change) == pytest.approx(exact, abs=0.01)


def test_no_drawn_p_value_is_zero():
    assert sign_flip_p(np.ones(60)) == 1 / 20_001


def test_identical_benches_differ_by_nothing():
    found = compare(BEFORE, BEFORE)
    assert (found["difference"], found["low"], found["high"], found["p"]) == (0.0, 0.0, 0.0, 1.0)
    assert "not more than chance" in found["verdict"]


def test_means_of_seeds_that_differ_in_rounding_alone_are_equal():
    def seeds(*right):
        return [{"a": [1] * n + [0] * (5 - n), "b": [1]} for n in right]

    found = compare(seeds(1, 1, 1), seeds(3, 0, 0))
    assert (found["won"], found["lost"], found["equal"], found["p"]) == ([], [], 2, 1.0)


def test_a_side_of_several_evaluations_is_their_mean():
    found = compare([BEFORE], [{"a": [1], "b": [1, 0]}, {"a": [0, 1], "b": [1], "c": [1]}])
    assert found["problems"] == 2  # a and b: c has no try in one of them
    assert (found["before"], found["before_each"]) == ((0 + 1 / 2) / 2, [0.25])
    assert (found["after"], found["after_each"]) == (0.75, [(1 + 1 / 2) / 2, (1 / 2 + 1) / 2])
    assert found["won"] == [{"id": "a", "before": 0.0, "after": 0.75}, {"id": "b", "before": 0.5, "after": 0.75}]
    assert found["only_before"] == ["c", "d", "x"] and found["only_after"] == []
    assert found["p"] == 2 / 4  # the sign flips of two problems, though no draw of the bootstrap is below 0


def test_an_evaluation_alone_and_a_list_of_one_are_the_same():
    assert compare(BEFORE, AFTER) == compare([BEFORE], [AFTER])


def test_a_side_without_evaluations_is_refused():
    with pytest.raises(EvaluationError, match="at least one on each"):
        compare([], [AFTER])


def test_runs_that_lie_far_apart_make_a_difference_uncertain():
    before = {str(n): [0, 1] for n in range(40)}
    alike = [{str(n): [1, 1, 1, 0] for n in range(40)}] * 3  # 75% each
    apart = [{str(n): [n_right > k for k in range(4)] for n in range(40)} for n_right in (1, 4, 4)]  # 25, 100, 100%
    sure, unsure = compare([before], alike), compare([before], apart)
    assert sure["difference"] == unsure["difference"] == 0.25
    assert (sure["low"], sure["high"]) == (pytest.approx(0.25), pytest.approx(0.25)) and sure["p"] < 0.001
    # draws of three runs: all of the worst 1 in 27, two of it 6 in 27; 75 - 50 * sqrt(3 / 2) and 75 + 25 * sqrt(3 / 2)
    assert unsure["low"] == pytest.approx(0.25 - 0.5 * 1.5**0.5) and unsure["high"] == pytest.approx(
        0.25 + 0.25 * 1.5**0.5
    )
    assert unsure["p"] == pytest.approx(2 * (1 / 27 + 6 / 27), abs=0.02)


@pytest.mark.long
def test_seeds_of_one_algorithm_are_told_apart_about_5_times_in_100():
    rng = np.random.default_rng(0)
    ps, problems_alone = [], []
    for _ in range(60):
        chances = rng.beta(0.4, 2, 60)
        sides = [[tries(rng, np.clip(chances + rng.normal(0, 0.03), 0, 1)) for _ in range(3)] for _ in range(2)]
        ps.append(compare(*sides)["p"])
        means = [[np.mean([each[name] for each in side]) for name in side[0]] for side in sides]
        problems_alone.append(sign_flip_p(np.subtract(*means)))
    assert np.mean(np.array(ps) < 0.05) <= 0.09
    assert np.mean(np.array(problems_alone) < 0.05) >= 0.2  # what it would be if these seeds were all there are


def tries(rng: np.random.Generator, chances: np.ndarray) -> dict[str, list[int]]:
    return {str(n): rng.binomial(1, chance, 4).tolist() for n, chance in enumerate(chances)}


@pytest.mark.long
def test_two_samples_of_one_model_are_told_apart_about_5_times_in_100():
    rng = np.random.default_rng(0)
    ps, held = [], 0
    for _ in range(300):
        chances = rng.beta(0.5, 0.7, 50)
        found = compare(tries(rng, chances), tries(rng, chances))
        ps.append(found["p"])
        held += found["low"] <= 0 <= found["high"]
    assert 0.02 <= np.mean(np.array(ps) < 0.05) <= 0.09
    assert 0.4 <= np.mean(np.array(ps) < 0.5) <= 0.6
    assert 0.91 <= held / 300 <= 0.98


def test_a_model_that_is_better_is_found_to_be():
    rng = np.random.default_rng(0)
    chances = rng.beta(0.5, 0.7, 300)
    found = compare(tries(rng, chances), tries(rng, np.minimum(1, chances + 0.08)))
    assert found["p"] < 0.001
    assert 0 < found["low"] < found["difference"] < found["high"]
    assert found["verdict"].endswith("p < 0.001; that is more than chance would give")


def test_the_verdict_is_one_honest_sentence():
    found = compare({str(n): [0, 1] for n in range(4)}, {str(n): [1, 1] for n in range(4)})
    words = "the difference is +50.0 points (+50.0 to +50.0), p = 0.125; that is not more than chance would give"
    assert found["verdict"] == words  # four wins of four: 2 of 16 orders


@pytest.mark.parametrize("after", [{}, {"a": [1]}, {"a": [1], "b": []}, {"p": [1], "q": [1]}])
def test_benches_that_share_less_than_two_judged_problems_are_refused(after):
    with pytest.raises(EvaluationError, match="same suite"):
        compare(BEFORE, after)


def test_a_comparison_is_the_same_each_time_and_is_json():
    found = compare(BEFORE, AFTER, seed=1)
    assert json.loads(json.dumps(found, allow_nan=False)) == found == compare(BEFORE, AFTER, seed=1)


def test_the_text_says_what_was_compared_and_what_came_out():
    found = compare(BEFORE, AFTER)
    lines = comparison_text(found, ("before/", "after/")).splitlines()
    assert lines[0] == "before/ 62.5%, after/ 87.5%, on the 4 problems that both have:"
    assert f"{found['verdict']}." in lines
    assert "With after/: 2 problems better, 1 worse, 1 the same." in lines
    assert "Left out: 1 problem that only before/ has." in lines
    assert "Left out: 2 problems that only after/ has." in lines
    assert lines[lines.index("Better, % of tries") + 2].split() == ["a", "0.0", "100.0"]
    assert lines[lines.index("Worse, % of tries") + 2].split() == ["d", "100.0", "50.0"]


def test_the_text_of_groups_gives_each_evaluation():
    found = compare([BEFORE], [AFTER, {**AFTER, "d": [1]}])
    lines = comparison_text(found, ("base", "runs/a-s0 and 1 more")).splitlines()
    assert lines[0] == "base 62.5%, runs/a-s0 and 1 more 93.8%, on the 4 problems that all have:"
    assert lines[4] == "Each of runs/a-s0 and 1 more: 87.5, 100.0%; the interval is over problems and over these."


def test_the_terminal_lists_ten_problems_and_markdown_all():
    found = compare({f"p_{n}": [0] for n in range(14)}, {f"p_{n}": [1] for n in range(14)})
    assert comparison_text(found, ("b", "a")).count("p_") == 10
    assert "and 4 more" in comparison_text(found, ("b", "a"))
    shown = comparison_markdown(found, ("my_run", "a|b"))
    assert shown.startswith("# my\\_run and a\\|b\n")
    assert shown.count("| p\\_") == 14
    assert "Worse" not in shown
