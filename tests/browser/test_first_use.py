"""What a first use with real data shows: results without a limit, wide tables, prompts, small shares, narrow pages."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect
from view_runs import make_bench, make_run, rollout

from microcoder.data.report import page as data_report
from microcoder.runs import Run, write_rollouts
from microcoder.view import export

LONG = "a-study-of-masks/microcoder-conditional-mask-of-the-paper-rho-0.5-seed-17"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("first") / "runs"
    make_run(root / LONG, steps=2)
    make_run(root / "bare", steps=2, rollouts=False)
    path = root / LONG / "run.json"
    info = json.loads(path.read_text()) | {"model": "HuggingFaceTB/SmolLM2-1.7B-Instruct-with-a-long-name"}
    path.write_text(json.dumps(info))
    with Run.create(root / "asked", "", {}) as run:
        scores = {f"{n / 300:.6g}": {"accuracy": 0.5, "problems": 1} for n in range(300)}
        small = {"truncated_share": 0.012, "learning_rate": 3e-6}
        run.log(1, {"reward": 0.5, "test_accuracy": 0.5, "test_by_difficulty": scores, **small})
        write_rollouts(run.path, 1, [rollout(0, "p0", True)], {"p0": "Add."}, {"p0": "Answer in a block: Add."})
        write_rollouts(run.path, 1, [rollout(0, "t0", False)], {"t0": "Held out."}, test=True)
    for name, right in (("one", 1), ("two", 3)):
        path = make_bench(root / name, right) / "verdicts.jsonl"
        path.write_text(path.read_text().replace("@64", ""))  # as of `--completions`
        path = path.with_name("samples.jsonl")
        path.write_text(path.read_text().replace(', "tokens": 20', ""))
    return root


@pytest.fixture(scope="module")
def site(root, serve):
    return serve(root)[0]


def test_the_table_of_runs_shows_all_its_columns_at_1400_pixels(site, opened):
    page = opened(site, width=1400)
    expect(page.get_by_role("link", name=LONG)).to_be_visible()
    box = page.get_by_role("columnheader", name="Last news").bounding_box()
    assert box["x"] + box["width"] <= 1400
    assert page.evaluate("(box => box.scrollWidth - box.clientWidth)(document.querySelector('.scroll'))") <= 0


def test_results_of_a_file_of_completions_are_listed_and_compared(site, opened):
    page = opened(site + "#/bench?bench=one")
    expect(page.locator(".picks a")).to_have_count(2)
    expect(page.locator(".sample")).to_have_count(4)
    assert "tokens" not in page.locator(".sample").first.inner_text()  # nobody knows how many
    page = opened(site + "#/compare?a=one&b=two")
    expect(page.locator(".picks a")).to_have_count(2)
    expect(page.get_by_text("no limit: 3 of 4 accepted")).to_be_visible()


def test_accuracy_by_difficulty_is_drawn_in_bands(site, opened):
    page = opened(site + "#/run?run=asked")
    page.locator("#chart-accuracy-by-difficulty summary").click()
    names = page.locator("#chart-accuracy-by-difficulty tbody th").all_inner_texts()
    assert names == ["0-0.2", "0.2-0.4", "0.4-0.6", "0.6-0.8", "0.8-1"]


def test_a_group_shows_the_prompt_and_evaluations_can_be_chosen(site, opened):
    page = opened(site + "#/rollouts?run=asked")
    expect(page.locator(".asked")).to_have_text("PromptAnswer in a block: Add.")
    page.get_by_label("Answers of").select_option("evaluations")
    expect(page.get_by_text("evaluation after step 1: 1 answers to 1 problems")).to_be_visible()
    expect(page.locator(".asked")).to_have_text("StatementHeld out.")
    page.get_by_label("Answers of").select_option("training")
    expect(page.locator(".asked")).to_have_text("PromptAnswer in a block: Add.")


def test_a_finished_run_without_rollouts_does_not_promise_any(site, opened):
    page = opened(site + "#/rollouts?run=bare")
    expect(page.get_by_text("This run has ended and holds no rollouts")).to_be_visible()
    assert "appears here by itself" not in page.locator("main").inner_text()
    box = page.locator(".empty").bounding_box()
    assert box["x"] + box["width"] / 2 == pytest.approx(1280 / 2, abs=20)  # not squeezed into the column of the list


def test_the_axes_tell_small_shares_and_rates_apart(site, opened):
    page = opened(site + "#/run?run=asked", height=3000)
    ticks = {}
    for chart in ("truncated-and-masked", "learning-rate"):
        plot = page.locator(f"#chart-{chart} .plot[data-drawn]")
        plot.locator(".ytick text").first.wait_for()
        ticks[chart] = plot.locator(".ytick text").all_text_contents()
    assert {"0.5%", "1%"} <= set(ticks["truncated-and-masked"])
    assert len(set(ticks["truncated-and-masked"])) == len(ticks["truncated-and-masked"])
    assert {"0", "3e-6"} <= {tick.replace("\u2212", "-") for tick in ticks["learning-rate"]}


def test_long_names_leave_the_choices_of_compare_in_one_line(site, opened):
    page = opened(site + "#/compare?a=one&b=two", width=1400)
    tops = page.locator(".bar .field").evaluate_all("(fields) => fields.map((one) => one.getBoundingClientRect().top)")
    assert len(tops) == 4 and max(tops) - min(tops) < 10


def test_all_titles_of_the_columns_of_evaluations_stand_at_one_height(site, opened):
    page = opened(site + "#/bench")
    middles = page.locator("thead th").evaluate_all("""(titles) => titles.map((title) => {
        const range = document.createRange();
        range.selectNodeContents(title.firstElementChild ?? title);
        const box = range.getBoundingClientRect();
        return box.top + box.height / 2;
    })""")
    assert max(middles) - min(middles) < 1.5


def test_an_exported_table_of_runs_tells_the_day_of_the_last_news(root, tmp_path, opened):
    export(root, tmp_path / "all.html")
    page = opened((tmp_path / "all.html").as_uri(), width=1400)
    last = page.locator("tbody tr td:last-child").all_inner_texts()
    assert len(last) == 3 and all(re.fullmatch(r"\d+ \w+ 20\d\d", words) for words in last)


def test_the_report_on_a_dataset_does_not_scroll_sideways_on_a_phone(tmp_path, opened):
    for stage, step in (("collect", "1-read"), ("filter", "3-contamination"), ("verify", "1-run")):
        done = {"kept": 9, "dropped": {"unreadable_tests": 3, "a_reason_with_quite_a_long_name": 1}, "seconds": 1234.5}
        path = tmp_path / stage / step / "done.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(done))
    (tmp_path / "report.html").write_text(data_report(tmp_path))
    page = opened((tmp_path / "report.html").as_uri(), width=390, ready=False)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator('meta[name="viewport"]').count() == 1
    assert page.locator(".flow svg").bounding_box()["width"] >= 600  # its words stay legible; it scrolls in its own box
