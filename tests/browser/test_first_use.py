"""What a first use with real data shows: results without a limit, wide tables, prompts, runs without rollouts."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect
from view_runs import make_bench, make_run, rollout

from microcoder.runs import Run, write_rollouts

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
        run.log(1, {"reward": 0.5, "test_accuracy": 0.5, "test_by_difficulty": scores})
        write_rollouts(run.path, 1, [rollout(0, "p0", True)], {"p0": "Add."}, {"p0": "Answer in a block: Add."})
        write_rollouts(run.path, 1, [rollout(0, "t0", False)], {"t0": "Held out."}, test=True)
    for name, right in (("one", 1), ("two", 3)):
        path = make_bench(root / name, right) / "verdicts.jsonl"
        path.write_text(path.read_text().replace("@64", ""))  # as of `--completions`
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
