"""The figures of a study: curves of its arms, and the effects behind the verdicts."""

from __future__ import annotations

import re
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from microcoder.study.figures import (
    LOOKS,
    TITLES,
    ArmCurves,
    boundaries,
    curve,
    draw,
    draw_effects,
    draw_metric,
    evaluations,
    step_time,
)
from microcoder.study.plan import StudyError

ASPECTS = {"evaluator": 4, "temperature": 10, "data": 4, "context": 6, "truncation": 6, "batch": 2, "kl_clip": 2}
LABELS = ("none", "mask 10%", "mask 20%", "mask 30%", "all", "conditional", "T 0.6 → 1.2", "4K → 8K", "GRPO & <KL> $5")


@pytest.fixture(autouse=True)
def _without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def run(arm: int, seed: int, steps: int = 40) -> list[dict]:
    """A run that looks like one: accuracy saturates, length grows, diversity decays, all of it noisy."""
    noise = np.random.default_rng([arm, seed])
    metrics: list[dict] = [{"step": 0, "test_accuracy": 0.12 + 0.01 * noise.normal()}]
    for step in range(1, steps + 1):
        gain = (0.12 + 0.03 * arm) * (1 - np.exp(-step / 12)) - 0.002 * arm * max(0, step - 25)
        line = {
            "step": step,
            "reward": 0.2 + gain + 0.03 * noise.normal(),
            "length_mean": 180 + (1 + arm) * step + 12 * noise.normal(),
            "diversity": 0.35 + 0.3 * np.exp(-step * (1 + arm) / 60) + 0.02 * noise.normal(),
            "temperature": 1.2 if arm == 6 and step > 15 else 0.6,
            "max_response_tokens": 512 if arm == 7 and step > 25 else 256,
            "generation_s": 2.0 + 0.2 * arm + 0.1 * noise.normal(),
            "judging_s": 0.4,
            "update_s": 1.1,
            "other_s": 0.1,
        }
        if step % 8 == 0:
            line["test_accuracy"] = 0.12 + gain + 0.015 * noise.normal()
        metrics.append(line)
    return metrics


def arms(count: int, seeds: int = 3, steps: int = 40) -> list[ArmCurves]:
    return [ArmCurves(f"arm-{n}", LABELS[n], [run(n, seed, steps) for seed in range(seeds)]) for n in range(count)]


def effects() -> list[dict]:
    noise = np.random.default_rng(0)
    rows = []
    for number, aspect in enumerate((aspect for aspect, count in ASPECTS.items() for _ in range(count)), 1):
        estimate, half = noise.normal(0.6, 0.8), noise.uniform(0.2, 1.2)
        verdict = "supported" if estimate > half else "contradicted" if estimate < 0 else "undecided"
        words = f"{number} more of what the claim changes makes more of what it speaks of"
        row = {"aspect": aspect, "label": words, "estimate": estimate, "verdict": verdict}
        rows.append({**row, "low": estimate - half, "high": estimate + half})
    rows[3] |= {"low": None, "high": None, "verdict": "undecided"}
    rows[7] |= {"low": -40.0, "high": 41.0, "verdict": "undecided"}
    rows[20] |= {"estimate": None, "low": None, "high": None, "verdict": "not run"}
    return rows


def texts(path) -> dict[str, float]:
    """The words of an SVG, and how far down each stands (its last place, where it has several)."""
    down = re.compile(r"[ ,]([-.0-9]+)\)")
    found = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    return {"".join(t.itertext()): float(t.get("y") or down.search(t.get("transform", ""))[1]) for t in found}


def size(path) -> tuple[int, int]:
    header = path.read_bytes()[:24]
    assert header.startswith(b"\x89PNG")
    return int.from_bytes(header[16:20], "big"), int.from_bytes(header[20:24], "big")


@pytest.fixture(scope="module")
def nine(tmp_path_factory):
    path = tmp_path_factory.mktemp("nine") / "T-0.6"
    draw("Mask", 2, arms(9), path)
    return path


def test_a_figure_is_written_as_a_picture_and_as_a_drawing_beside_a_name_with_a_dot(nine):
    assert {file.name for file in nine.parent.iterdir()} == {"T-0.6.png", "T-0.6.svg"}
    assert size(nine.with_name("T-0.6.png"))[0] == 1520  # 7.6 inches


def test_the_drawing_holds_every_label_as_text_of_eight_points_or_more(nine):
    words = texts(nine.with_name("T-0.6.svg"))
    titles = {"Accuracy (held out)", "Response length (tokens)", "Response diversity D", "Critic reward"}
    phases = {"Time per step (s)", "generation", "judging", "update", "other"}
    assert {"Mask (the paper's figure 2)", *titles, *phases, *LABELS} <= set(words)
    assert "not recorded" not in words
    points = re.findall(r'font[^"]*?([.0-9]+)px', nine.with_name("T-0.6.svg").read_text())
    assert min(map(float, points)) >= 8


def test_nine_arms_differ_in_colour_in_dashes_and_in_marker():
    assert [len({look[part] for look in LOOKS}) for part in ("color", "dashes", "marker")] == [9, 9, 9]


def test_the_legend_stands_below_the_panels(nine):
    words = texts(nine.with_name("T-0.6.svg"))
    panels = max(words[word] for word in ("step", "0", "Time per step (s)"))
    assert min(words[label] for label in LABELS) > panels


def test_the_same_runs_give_the_same_files(tmp_path):
    for name in ("a", "b"):
        draw("", 1, arms(1, seeds=1), tmp_path / name, ("reward",))
    for end in ("png", "svg"):
        assert (tmp_path / f"a.{end}").read_bytes() == (tmp_path / f"b.{end}").read_bytes()


def test_runs_of_different_lengths_missing_metrics_missing_runs_and_single_seeds_are_drawn(tmp_path):
    bare = [{"step": step, "reward": 0.5} for step in range(1, 4)]
    uneven = ArmCurves("uneven", "uneven", [run(0, 0), run(0, 1, steps=7)])
    odd = [uneven, ArmCurves("bare", "bare", [bare]), ArmCurves("none", "none", []), ArmCurves("new", "new", [[]])]
    draw("Odd", 2, odd, tmp_path / "odd", ("test_accuracy", "reward", "time"))
    words = texts(tmp_path / "odd.svg")
    assert {"uneven", "bare", "none (not run)", "new (not run)", "not recorded"} <= set(words)
    draw("Bare", 2, odd[1:], tmp_path / "bare")
    assert (tmp_path / "bare.svg").read_text().count(">not recorded<") == 4  # all panels but the reward's


@pytest.mark.parametrize("panels", [("time",), ("entropy",), ("reward", "test_length"), ("a", "b", "c", "d", "e")])
def test_any_choice_of_panels_has_a_layout(tmp_path, panels):
    draw("", 1, arms(2, seeds=1, steps=3), tmp_path / "a", panels)
    assert {TITLES.get(name, name) for name in panels} <= set(texts(tmp_path / "a.svg"))


def test_labels_too_long_for_columns_are_wrapped_within_the_page(tmp_path):
    label = "an arm whose label tells all of its configuration, one setting after the other, until the line is full up"
    draw("", 1, [ArmCurves("a", label, [run(0, 0)])], tmp_path / "a", ("reward",))
    first, second = [word for word in texts(tmp_path / "a.svg") if word and word in label and " " in word]
    assert f"{first} {second}" == label


@pytest.mark.parametrize(
    ("count", "panels", "words"), [(0, ("time",), "0 arms"), (10, ("time",), "1 to 9"), (1, (), "test_accuracy")]
)
def test_a_figure_that_cannot_be_drawn_says_why(tmp_path, count, panels, words):
    with pytest.raises(StudyError, match=words):
        draw("", 1, [ArmCurves("a", "a", [run(0, 0, 3)])] * count, tmp_path / "a", panels)
    assert list(tmp_path.iterdir()) == []


def test_a_stage_boundary_is_a_line_in_the_colour_and_dashes_of_its_arm():
    axis = Figure().subplots()
    draw_metric(axis, "diversity", arms(8))
    lines = [line for line in axis.lines if len(set(line.get_xdata())) == 1]
    assert [(line.get_xdata()[0], line.get_color()) for line in lines] == [
        (15.5, LOOKS[6]["color"]),
        (25.5, LOOKS[7]["color"]),
    ]
    assert all(line.is_dashed() for line in lines)


def test_a_point_between_gaps_is_marked():
    axis = Figure().subplots()
    steps = [{"step": n, "reward": 0.5 if n in (3, *range(10, 30)) else None} for n in range(30)]
    draw_metric(axis, "reward", [ArmCurves("a", "a", [steps])])
    assert axis.lines[-1].get_gid() == "reward of a"
    assert axis.lines[-1].get_markevery()[3]


def test_a_mean_is_there_only_where_every_seed_that_recorded_the_metric_has_a_value():
    seeds = [[{"step": n, "x": 1.0} for n in range(4)], [{"step": n, "x": 3.0} for n in (1, 2)], [{"step": 9}]]
    steps, values, mean = curve(ArmCurves("a", "a", seeds), "x")
    nan = np.nan
    assert np.array_equal(steps, [0, 1, 2, 3])
    assert np.array_equal(values, [[1, 1, 1, 1], [nan, 3, 3, nan]], equal_nan=True)
    assert np.array_equal(mean, [nan, 2, 2, nan], equal_nan=True)
    steps, mean, _ = evaluations(ArmCurves("a", "a", seeds), "x")
    assert np.array_equal([steps, mean], [[1, 2], [2, 2]])


def test_each_seed_is_smoothed_within_its_own_stages():
    def seed(boundary: int) -> list[dict]:
        return [{"step": n, "x": float(n >= boundary), "temperature": 1.0 + (n >= boundary)} for n in range(8)]

    arm = ArmCurves("a", "a", [seed(2), seed(6)])
    assert np.array_equal(curve(arm, "x")[2], [0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1])
    assert boundaries(arm) == [1.5, 5.5]


def test_a_band_goes_from_the_lowest_to_the_highest_smoothed_seed():
    seeds = [[{"step": n, "reward": level} for n in range(1, 4)] for level in (1.0, 2.0, 6.0)]
    axis = Figure().subplots()
    draw_metric(axis, "reward", [ArmCurves("a", "a", seeds)], bands=True)
    (band,), (line,) = axis.collections, axis.lines  # no line for each seed
    edges = band.get_paths()[0].vertices
    assert (edges[:, 1].min(), edges[:, 1].max()) == (1, 6) and np.array_equal(line.get_ydata(), [3, 3, 3])


def test_the_legend_says_whether_there_are_bands(tmp_path):
    for bands, words in ((True, "band: lowest to highest seed"), (False, "thin: each seed")):
        draw("", 0, arms(2, seeds=2, steps=3), tmp_path / "a", ("reward",), bands)
        assert words in " ".join(texts(tmp_path / "a.svg"))


def test_whiskers_are_the_t_interval_of_three_seeds_and_the_range_of_two():
    seeds = [[{"step": 0, "test_accuracy": value, "test_length": value}] for value in (0.1, 0.2, 0.3)]
    half = 4.302653 * 0.1 / 3**0.5
    for name, low in (("test_length", 0.2 - half), ("test_accuracy", 0.0)):  # an accuracy is not below 0
        _, mean, ends = evaluations(ArmCurves("a", "a", seeds), name)
        assert mean == pytest.approx([0.2])
        assert ends.ravel() == pytest.approx([low, 0.2 + half], abs=1e-6)
    assert evaluations(ArmCurves("a", "a", seeds[:2]), "test_accuracy")[2].ravel() == pytest.approx([0.1, 0.2])


def test_step_time_is_the_mean_over_the_steps_of_the_fastest_seed():
    long = [{"step": 0}, *({"step": n, "generation_s": 2.0, "judging_s": n} for n in (1, 2, 3))]
    short = [{"step": 1, "generation_s": 4.0, "judging_s": None, "other_s": 1.0}]
    assert step_time(ArmCurves("a", "a", [short, long, []])).tolist() == [2.0, 2.0, 0.0, 0.0]
    assert step_time(ArmCurves("a", "a", [])).tolist() == [0.0] * 4


def test_all_claims_stand_on_one_page_under_the_headings_of_their_aspects(tmp_path):
    rows = effects()
    draw_effects(rows, tmp_path / "effects", "All claims")
    assert size(tmp_path / "effects.png") == (1520, 2150)  # as A4: 1 to 1.414
    words = texts(tmp_path / "effects.svg")
    places = [words[aspect] for aspect in ASPECTS]
    assert places == sorted(places)
    for row in rows:
        number = row["label"].split()[0]
        (place,) = (down for word, down in words.items() if word.startswith(f"{number} more"))
        assert sum(heading < place for heading in places) == list(ASPECTS).index(row["aspect"]) + 1
    verdicts = [row["verdict"] for row in rows]
    kinds = ("supported", "contradicted", "undecided", "not run")
    assert {f"{verdict}: {verdicts.count(verdict)}" for verdict in kinds} <= set(words)


def test_effects_are_told_in_figures_with_their_interval_where_there_is_one(tmp_path):
    row = {"aspect": "data", "label": "$harder$ & better", "estimate": 0.5, "low": -0.25, "high": 1.25}
    rows = [
        {**row, "verdict": "undecided"},
        {**row, "estimate": 0.75, "low": None, "high": None, "verdict": "undecided"},
        {**row, "estimate": None, "low": None, "high": None, "verdict": "not run"},
    ]
    draw_effects(rows, tmp_path / "a", scale="in standard deviations")
    words = {word.strip() for word in texts(tmp_path / "a.svg")}
    assert {"$harder$ & better", "+0.50 (−0.25 to +1.25)", "+0.75", "not run", "in standard deviations"} <= words
    assert size(tmp_path / "a.png")[1] < 500  # few claims need no whole page


def test_one_wide_interval_does_not_squeeze_the_others(tmp_path):
    row = {"aspect": "data", "label": "a", "estimate": 1.0, "low": 0.5, "high": 1.5, "verdict": "supported"}
    draw_effects([*[row] * 9, {**row, "low": -500.0, "high": 500.0}], tmp_path / "a")
    ticks = {word for word in texts(tmp_path / "a.svg") if re.fullmatch("[−0-9]+", word)}
    assert ticks == {"−2", "0", "2"}


def test_a_page_without_effects_is_refused(tmp_path):
    with pytest.raises(StudyError, match="at least one claim"):
        draw_effects([], tmp_path / "a")
