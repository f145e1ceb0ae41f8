"""Scores as text, Markdown and LaTeX; and the figure over temperatures."""

from __future__ import annotations

import re

import pytest

from microcoder.evaluation.score import score
from microcoder.evaluation.suite import EvaluationError, Mark, Sample
from microcoder.evaluation.tables import latex, markdown, text
from microcoder.layout import Table, aligned, for_latex, for_markdown, piped
from microcoder.schema import Problem

RIGHT, WRONG = "accepted", "wrong_answer"
PROBLEMS = [
    Problem(id="abc_a", platform="atcoder", difficulty="easy", date="2025-01-11"),
    Problem(id="lc_1", platform="leetcode", difficulty="hard", date="2025-02-01"),
]
MARKS = [
    Mark("abc_a", 0, 4096, RIGHT, RIGHT, tokens=1000),
    Mark("abc_a", 1, 4096, RIGHT, WRONG, "space", "", "said `no` | \x1b[31m\nsecond line", tokens=2000),
    Mark("lc_1", 0, 4096, WRONG, WRONG, tokens=4096, truncated=True),
    Mark("lc_1", 1, 4096, "no_code", "no_code", tokens=4096, truncated=True),
]
SAMPLES = [Sample(p, n, "", ids=[1, 2, 3, 4, n]) for p in ("abc_a", "lc_1") for n in (5, 6)]  # D = 2/3
ABOUT = {"model": "org/my_model", "suite": "livecodebench v6", "problems": 2, "tries": 2, "temperature": 0.2, "seed": 0}
RESULT = {**ABOUT, "scores": score(MARKS, PROBLEMS, SAMPLES)}


def cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


def section(of: str, title: str) -> list[list[str]]:
    """The cells of the lines under a title, up to the next empty line."""
    lines = of.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(title))
    return [cells(line) for line in lines[start + 1 : [*lines, ""].index("", start)]]


def test_the_text_begins_with_who_was_tested_on_what():
    head = "org/my_model on livecodebench v6: 2 problems × 2 tries, temperature 0.2, seed 0"
    assert text(RESULT).splitlines()[0] == head
    assert text({"scores": RESULT["scores"]}).splitlines()[0] == "completions on problems"


def test_the_head_says_where_some_problems_have_fewer_answers():
    result = {**ABOUT, "scores": score(MARKS[:3], PROBLEMS)}
    assert text(result).startswith("org/my_model on livecodebench v6: 2 problems × up to 2 tries,")


def test_the_text_shows_each_number_of_a_limit():
    shown = text(RESULT)
    # exact: (1/2 + 0) / 2, robust: (1 + 0) / 2, resampled from two problems: from the one to the other
    overview = ["4,096", "25.0 (0.0-50.0)", "50.0 (0.0-100.0)", "50.0%", "25.0%", "2,798", "1,500", "0.667"]
    assert section(shown, "Accuracy")[1] == overview
    assert section(shown, "pass@k") == [
        ["limit", "policy", "k=1", "k=2"],
        ["4,096", "exact", "25.0", "50.0"],
        ["4,096", "robust", "50.0", "50.0"],
    ]
    assert section(shown, "Verdicts") == [
        ["limit", "verdict", "exact", "robust"],
        ["4,096", RIGHT, "1", "2"],
        [WRONG, "2", "1"],
        ["no_code", "1", "1"],
    ]


def test_the_text_has_table_1_with_a_platform_a_line():
    assert section(text(RESULT), "By platform") == [
        ["limit", "policy", "platform", "easy", "hard", "all"],
        ["problems", "AtCoder", "1", "0", "1"],
        ["LeetCode", "0", "1", "1"],
        ["All", "1", "1", "2"],
        ["4,096", "exact", "AtCoder", "50.0", "-", "50.0"],
        ["LeetCode", "-", "0.0", "0.0"],
        ["All", "50.0", "0.0", "25.0 (0-50)"],
        ["4,096", "robust", "AtCoder", "100.0", "-", "100.0"],
        ["LeetCode", "-", "0.0", "0.0"],
        ["All", "100.0", "0.0", "50.0 (0-100)"],
    ]


def test_months_are_shown_where_there_are_several():
    assert section(text(RESULT), "By month")[1:] == [
        ["4,096", "2025-01", "1", "50.0", "100.0"],
        ["2025-02", "1", "0.0", "0.0"],
    ]
    assert "By month" not in text({"scores": score(MARKS[:2], PROBLEMS[:1])})


def test_a_suite_without_platforms_and_difficulties_has_no_table_of_them():
    shown = text({"scores": score(MARKS[:2], [Problem(id="abc_a")])})
    assert "By platform" not in shown
    assert "50.0" in shown


def test_what_only_robust_accepted_is_listed_without_what_a_terminal_would_obey():
    shown = text(RESULT)
    title = "Accepted only by robust, limit 4,096: 1"
    assert section(shown, title)[1] == ["abc_a#1", "space", "said `no` | [31m second line"]
    assert "\x1b" not in shown
    assert "Accepted only by exact" not in shown


def test_the_terminal_lists_ten_of_them_and_markdown_all():
    marks = [Mark("abc_a", n, 0, RIGHT, WRONG, "space", "", "x" * 300) for n in range(25)]
    result = {"scores": score(marks, PROBLEMS)}
    assert text(result).count("abc_a#") == 10
    assert "and 15 more: see report.md" in text(result)
    assert markdown(result).count("abc\\_a#") == 25


def test_agreement_is_said_too():
    assert "Accepted only by robust, limit none: 0" in text(
        {"scores": score([Mark("a", 0, 0, RIGHT, RIGHT)], [Problem("a")])}
    )


def test_no_line_of_the_text_is_wider_than_100_columns():
    names = ["a_platform_with_quite_a_long_name", "codeforces", "atcoder"]
    problems = [
        Problem(id=f"{n}" * 80, platform=names[n % 3], difficulty=("easy", "medium", "hard")[n // 3]) for n in range(9)
    ]
    marks = [
        Mark(problem.id, n, limit, WRONG if n == p else RIGHT, WRONG, "space", "", "wrong " * 99, tokens=131_072)
        for p, problem in enumerate(problems)
        for n in range(101)
        for limit in (65_536, 131_072)
    ]
    shown = text({**ABOUT, "model": "/long" * 40, "scores": score(marks, problems)})
    assert max(map(len, shown.splitlines())) <= 100
    assert "k=101" in shown


def test_where_all_problems_score_the_same_no_interval_is_shown():
    problems = [Problem(name) for name in "ab"]
    shown = text({"scores": score([Mark(p.id, 0, 0, RIGHT, RIGHT) for p in problems], problems)})
    assert "100.0" in shown and "(100" not in shown


def test_faults_of_the_judge_are_said_with_how_to_mend_them():
    marks = [*MARKS, Mark("lc_1", 2, 4096, "internal_error", "internal_error")]
    for form in (text, markdown):
        shown = " ".join(form({"scores": score(marks, [*PROBLEMS, Problem(id="c")])}).split())
        assert "failed on 1 answer (internal_error)" in shown
        assert "same command judges again" in shown
        assert "No judged answer: 1 problem" in shown
        assert "internal_error" not in form(RESULT)


def test_markdown_cells_keep_what_a_model_wrote_and_stay_cells():
    rows = [line for line in markdown(RESULT).splitlines() if line.startswith("| abc")]
    assert rows == [r"| abc\_a#1 | space | said \`no\` \| \[31m second line |"]
    assert for_markdown("<b> a*b* & $x$ ~ \\ \ud800") == r"\<b\> a\*b\* \& \$x\$ \~ \\"


def test_every_table_of_the_markdown_has_as_many_cells_in_each_line():
    blocks = [block for block in markdown(RESULT).split("\n\n") if block.startswith("|")]
    assert len(blocks) == 6
    for block in blocks:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1


def test_latex_is_table_1_with_a_group_of_columns_for_each_platform():
    lines = latex(RESULT).splitlines()
    assert r"\begin{tabular}{rlrrrrrrrrr}" in lines
    groups = r" &  & \multicolumn{3}{c}{AtCoder} & \multicolumn{3}{c}{LeetCode} & \multicolumn{3}{c}{All} \\"
    assert groups in lines
    assert r"\cmidrule(lr){3-5} \cmidrule(lr){6-8} \cmidrule(lr){9-11}" in lines
    assert r"Limit & Policy & Easy & Hard & All & Easy & Hard & All & Easy & Hard & All \\" in lines
    assert r"4,096 & exact & 50.0 & - & 50.0 & - & 0.0 & 0.0 & 50.0 & 0.0 & 25.0 \\" in lines
    assert r"4,096 & robust & 100.0 & - & 100.0 & - & 0.0 & 0.0 & 100.0 & 0.0 & 50.0 \\" in lines
    assert r"\caption{org/my\_model on livecodebench v6: 2 problems $\times$ 2 tries" in latex(RESULT)


def spread(platforms, levels):
    """A result with four problems in each cell, of which every second is right."""
    problems = [
        Problem(f"{p}{level}{n}", platform=p, difficulty=level) for p in platforms for level in levels for n in range(4)
    ]
    marks = [Mark(p.id, 0, 100, *[RIGHT if n % 2 else WRONG] * 2) for n, p in enumerate(problems)]
    return {"problems": len(problems), "tries": 1, "scores": score(marks, problems)}


def test_latex_has_the_interval_of_every_accuracy_on_a_line_below():
    lines = latex(spread(["atcoder"], ["easy", "hard"])).splitlines()
    at = lines.index(r"100 & exact & 50.0 & 50.0 & 50.0 & 50.0 & 50.0 & 50.0 \\")
    spans = re.findall(r"\{\\scriptsize (\d+)--(\d+)\}", lines[at + 1])
    assert len(spans) == 6 and all(int(low) < 50 < int(high) for low, high in spans)
    assert r"Accuracy in \%, with its 95\% interval." in lines[2]


def test_a_caption_speaks_of_intervals_only_where_there_are_some():
    assert "interval" not in latex({"problems": 1, "tries": 1, "scores": score([MARKS[0]], PROBLEMS[:1])})
    assert r"Accuracy in \%." in latex({"scores": {}})


def test_many_platforms_and_difficulties_stand_below_each_other_and_no_line_is_cut():
    levels = [f"level{n}" for n in range(7)]
    result = spread(["atcoder", "kattis", "spoj"], levels)
    assert r"\begin{tabular}{lllrrrrrrrr}" in latex(result)
    assert re.search(r" & kattis & 50.0 \(\d+-\d+\) & ", latex(result))
    for form in (text, markdown):
        shown = form(result)
        assert "By platform and difficulty, %, continued" in shown
        assert [name for name in levels if shown.count(name) != 1] == []
    assert max(map(len, text(result).splitlines())) <= 100


def test_the_headline_counts_the_problems_that_were_scored():
    for form, words in ((text, "2 of 3 problems"), (markdown, "2 of 3 problems"), (latex, "2 of 3 problems")):
        assert words in form({**RESULT, "problems": 3})
        assert words not in form(RESULT) and "2 problems" in form(RESULT)


def test_latex_escapes_whatever_a_name_may_hold():
    assert for_latex("a_b & 100% #1 {x} \\n ~ ^ $") == (
        r"a\_b \& 100\% \#1 \{x\} \textbackslash{}n \textasciitilde{} \textasciicircum{} \$"
    )


def test_a_bench_without_scores_still_has_its_tables():
    for form in (text, markdown, latex):
        assert "org/my" in form({**ABOUT, "scores": {}})


def test_words_stand_left_and_numbers_right():
    table = Table("T", ("name", "n"), [("a", "1"), ("bcdef", "100")])
    assert aligned(table) == "T\n  name     n\n  a        1\n  bcdef  100"
    assert piped(table) == "## T\n\n| name | n |\n| --- | ---: |\n| a | 1 |\n| bcdef | 100 |"


ROWS = [
    {"model": model, "temperature": t, "accuracy": 0.5 - t / 10, "low": 0.3, "high": 0.6, "diversity": t / 2}
    for model in ("org/a", "runs/$b$")
    for t in (1.2, 0.2)
]


def test_the_figure_names_its_models_and_temperatures_and_is_the_same_each_time(tmp_path):
    from microcoder.evaluation.temperatures import plot_temperatures

    for name in ("a.svg", "b.svg"):
        plot_temperatures(ROWS, tmp_path / name, "livecodebench v6")
    drawn = (tmp_path / "a.svg").read_text()
    words = ["livecodebench v6", "org/a", "runs/$b$", "Accuracy", "Diversity D", "0.2", "1.2", "temperature T"]
    assert [word for word in words if f">{word}<" not in drawn] == []
    assert "not recorded" not in drawn
    assert drawn == (tmp_path / "b.svg").read_text()


def test_a_temperature_at_which_nothing_could_be_judged_has_a_dash_in_the_table():
    from microcoder.evaluation.temperatures import _table

    row = {"model": "a", "temperature": 1.0, "accuracy": None, "low": None, "high": None, "diversity": None}
    assert "| a | 1 | - | - | 12 | 0.0% |" in _table([row | {"length": 12.0, "truncated_share": 0.0}])


def test_a_figure_of_one_temperature_without_diversity_says_what_is_missing(tmp_path):
    from microcoder.evaluation.temperatures import plot_temperatures

    plot_temperatures([{"model": "a", "temperature": 0, "accuracy": 0.0}], tmp_path / "a.svg", "")
    assert (tmp_path / "a.svg").read_text().count("not recorded") == 1


@pytest.mark.parametrize(("rows", "name", "words"), [(ROWS, "a.pdf", ".png or .svg"), ([], "a.png", "nothing to plot")])
def test_a_figure_that_cannot_be_drawn_says_why(tmp_path, rows, name, words):
    from microcoder.evaluation.temperatures import plot_temperatures

    with pytest.raises(EvaluationError, match=words):
        plot_temperatures(rows, tmp_path / name, "")
