"""Each page in a real browser: seen, steered by mouse and keyboard, read by a screen reader, and live."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from view_runs import make_bench, make_run, make_study, metrics, rollout, step_rows
from waiting import until

from microcoder.runs import Run, write_rollouts

PAGES = {
    "runs": "#/",
    "run": "#/run?run=a&smooth=3",
    "overlay": "#/run?run=a&with=b",
    "rollouts": "#/rollouts?run=a&step=9&problem=p0",
    "finder": "#/rollouts?run=a&find=solved",
    "compare": "#/compare?a=a&b=b",
    "no choice": "#/compare",
    "bench": "#/bench",
    "bench problems": "#/bench?bench=tiny",
    "studies": "#/studies",
    "nowhere": "#/nowhere",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory, serve):
    root = tmp_path_factory.mktemp("pages") / "runs"
    make_run(root / "a", steps=20)
    make_run(root / "b", steps=9, status="stopped")
    make_bench(root / "tiny", right=1)
    make_bench(root / "tiny2", right=3)
    make_study(root / "claims")
    return serve(root)[0]


def drawn(page, panel="reward"):
    """The chart, once it is drawn."""
    plot = page.locator(f"#chart-{panel} .plot[data-drawn]")
    plot.locator("svg.main-svg").first.wait_for()
    return plot


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious_on_any_page(site, opened, name, dark):
    page = opened(site + PAGES[name], dark=dark)
    if name in ("run", "overlay"):
        drawn(page)
    found = Axe().run(page).response["violations"]
    serious = [(one["id"], one["nodes"][0]["html"][:200]) for one in found if one["impact"] in ("serious", "critical")]
    assert serious == []
    assert page.locator("h1, h2").first.is_visible()


@pytest.mark.parametrize("name", PAGES)
def test_no_page_scrolls_sideways_on_a_phone(site, opened, name):
    page = opened(site + PAGES[name], width=360, height=740)
    if name in ("run", "overlay"):
        drawn(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("document.body.scrollWidth") <= 360


# ---- runs


def names(page):
    return page.locator("tbody th a").all_inner_texts()


def test_runs_are_filtered_sorted_and_the_address_holds_it(site, opened):
    page = opened(site)
    assert sorted(names(page)) == ["a", "b"]
    page.get_by_role("button", name="Step").click()
    assert names(page) == ["b", "a"]
    expect(page.get_by_role("columnheader", name="Step")).to_have_attribute("aria-sort", "ascending")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("stopped")
    expect(page.locator("tbody tr")).to_have_count(1)
    again = opened(page.url)
    assert names(again) == ["b"]
    page.get_by_placeholder("name, model, preset").fill("zzz")
    page.get_by_role("button", name="Show all").click()
    expect(page.locator("tbody tr")).to_have_count(2)


def test_several_runs_are_picked_and_laid_over_each_other(site, opened):
    page = opened(site)
    page.get_by_label("pick a").check()
    page.get_by_label("pick b").check()
    page.get_by_role("button", name="Overlay 2 runs").click()
    plot = drawn(page)
    assert plot.evaluate("plot => plot.data.slice(0, 2).map((trace) => trace.name)") == ["a", "b"]
    assert plot.evaluate("plot => plot.data.slice(0, 2).map((trace) => trace.line.dash)") == ["solid", "dash"]
    page.get_by_role("button", name="remove b").click()
    until(page, "document.querySelector('#chart-reward .plot').data.filter((t) => t.name === 'b').length === 0")


def test_runs_without_a_value_come_last_however_they_are_sorted(tmp_path, serve, opened):
    make_run(tmp_path / "runs" / "a", steps=1)
    Run.create(tmp_path / "runs" / "none", "", {}).close()
    address, _ = serve(tmp_path / "runs")
    for sort in ("accuracy", "-accuracy"):
        assert names(opened(f"{address}#/?sort={sort}")) == ["a", "none"]


def test_runs_with_commas_in_their_names_are_laid_over_each_other(tmp_path, serve, opened):
    for name in ("lr=1,seed=1", "lr=1,seed=2", "50%,2C"):
        make_run(tmp_path / "runs" / name, steps=2)
    page = opened(serve(tmp_path / "runs")[0])
    for name in ("lr=1,seed=1", "lr=1,seed=2", "50%,2C"):
        page.get_by_label(f"pick {name}").check()
    page.get_by_role("button", name="Overlay 3 runs").click()
    expect(page.locator(".bar .chip")).to_have_text(["lr=1,seed=1", "lr=1,seed=2 ×", "50%,2C ×"])
    shown = drawn(page).evaluate("plot => plot.data.slice(0, 3).map((trace) => trace.name)")
    assert shown == ["lr=1,seed=1", "lr=1,seed=2", "50%,2C"]


def test_a_run_that_is_gone_is_named_and_the_others_keep_the_colours_of_their_names(site, opened):
    page = opened(site + "#/run?run=a&with=gone,b")
    expect(page.locator(".note").last).to_contain_text("there is no run 'gone' under runs")
    colour = drawn(page).evaluate("plot => plot.data.find((trace) => trace.name === 'b').line.color")
    assert page.locator(".chip", has_text="b ×").locator("line").get_attribute("stroke") == colour


def test_the_time_since_the_last_news_goes_on_while_nothing_changes(tmp_path, serve, opened):
    make_run(tmp_path / "runs" / "a", steps=1)
    page = opened("about:blank", ready=False)
    page.clock.install()
    page.goto(serve(tmp_path / "runs")[0])
    expect(page.locator("tbody td").last).to_contain_text(re.compile("just now|s ago"))
    page.clock.fast_forward(600_000)
    page.clock.run_for(5000)
    expect(page.locator("tbody td").last).to_have_text("10 min ago")


def kept_back(page, *words):
    """The answers to questions with all these words in their address: on their way until they are continued."""
    late = []
    page.route(lambda address: all(word in address for word in words), lambda route: late.append(route))
    return late


def asked_for(page, late):
    while not late:
        page.wait_for_timeout(20)


def test_a_run_that_is_opened_while_another_is_on_its_way_is_shown(site, opened):
    page = opened(site)
    late = kept_back(page, "/api/metrics", "run=a")
    page.get_by_role("link", name="a", exact=True).click()
    asked_for(page, late)
    page.get_by_role("link", name="b", exact=True).click()
    expect(page.locator("h1")).to_have_text("b")
    for route in late:
        route.continue_()
    page.wait_for_timeout(300)
    expect(page.locator("h1")).to_have_text("b")


def test_the_sign_of_a_live_run_is_not_left_on_other_pages(tmp_path, serve, opened):
    with Run.create(tmp_path / "runs" / "a", "", {}):
        page = opened(serve(tmp_path / "runs")[0])
        expect(page.locator(".live")).to_be_visible()
        page.get_by_role("link", name="Studies").click()
        expect(page.locator("h1")).to_have_text("Studies")
        expect(page.locator(".live")).to_be_hidden()


# ---- a run


def test_the_curves_are_drawn_with_stages_evaluations_and_a_table_of_values(site, opened):
    page = opened(site + "#/run?run=a")
    plot = drawn(page)
    assert plot.evaluate("plot => plot.data[0].y[0]") == pytest.approx(metrics(1)["reward"], rel=1e-5)
    assert plot.evaluate("plot => plot.layout.annotations.map((note) => note.text)") == ["T 1.2"]
    assert plot.evaluate("plot => plot.data.find((trace) => trace.yaxis === 'y2').x") == [5, 10, 15, 20]
    shown = page.locator("figure:visible h3").all_inner_texts()
    assert {"Accuracy", "Response length", "Diversity D", "Entropy", "Clip fractions", "Time per step"} <= set(shown)
    page.locator("#chart-reward summary").click()
    assert page.locator("#chart-reward tbody tr").inner_text().split("\t")[-1].strip() == "20"


def test_the_curves_are_seen_before_the_large_script_of_the_charts_is_there(site, opened):
    page = opened("about:blank", ready=False)
    held = []
    page.route("**/plotly.js", lambda route: held.append(route))
    page.goto(site + "#/run?run=a")
    sketch = page.locator("#chart-reward .plot[data-sketched] svg")
    sketch.wait_for()
    points = sketch.locator("polyline").first.get_attribute("points").split()
    assert len(points) == 20
    heights = [float(point.split(",")[1]) for point in points]
    rewards = [metrics(step)["reward"] for step in range(1, 21)]
    assert heights[rewards.index(max(rewards))] == min(heights)  # the greatest reward is the highest point
    assert heights[rewards.index(min(rewards))] == max(heights)
    until(page, "document.querySelector('script[src$=\"plotly.js\"]') !== null")
    assert page.locator(".plot[data-drawn]").count() == 0
    for route in held:
        route.continue_()
    page.unroute("**/plotly.js")
    assert drawn(page).locator("polyline").count() == 0  # the chart has taken the place of the sketch


def test_zooming_into_one_chart_zooms_all_and_is_in_the_address(site, opened):
    page = opened(site + "#/run?run=a", height=1400)
    drawn(page), drawn(page, "entropy")
    box = page.locator("#chart-reward .plot .nsewdrag").first.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.25, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, y, steps=5)
    page.mouse.up()
    until(page, "location.hash.includes('range=')")
    low, high = map(float, re.search(r"range=([\d.-]+)_([\d.-]+)", page.url).groups())
    assert 2 < low < 8 < high < 14
    until(page, f"Math.abs(document.querySelector('#chart-entropy .plot').layout.xaxis.range[0] - {low}) < 0.2")
    other = drawn(opened(page.url), "diversity-d")
    assert other.evaluate("plot => plot.layout.xaxis.range") == pytest.approx([low, high])
    page.get_by_role("button", name="Whole run").click()
    until(page, "document.querySelector('#chart-entropy .plot').layout.xaxis.autorange === true")


def test_smoothing_and_log_scale_change_the_curves_and_settings_are_never_smoothed(site, opened):
    page = opened(site + "#/run?run=a")
    plot = drawn(page)
    page.get_by_label("Smoothing").fill("3")
    until(page, "document.querySelector('#chart-reward .plot').data[1]?.name === 'reward'")
    assert "smooth=9" in page.url
    raw, smooth = plot.evaluate("plot => plot.data.slice(0, 2).map((trace) => trace.y)")
    assert max(smooth) < max(raw)
    page.locator("#chart-temperature").scroll_into_view_if_needed()
    assert set(drawn(page, "temperature").evaluate("plot => plot.data[0].y")) == {1, 1.2}
    page.get_by_label("Log scale").check()
    until(page, "document.querySelector('#chart-reward .plot').layout.yaxis.type === 'log'")


def test_the_advisors_remarks_stand_on_the_page_and_at_their_step_in_the_charts(tmp_path, serve, opened):
    with Run.create(tmp_path / "runs" / "a", "", {}) as run:
        for step in range(1, 13):
            run.log(step, metrics(step) | dict.fromkeys(("reward", "accuracy"), 0.0 if step > 6 else 0.5))
    page = opened(serve(tmp_path / "runs")[0] + "#/run?run=a")
    expect(page.locator(".remarks li").first).to_contain_text("step 11: no program earned a reward in 5 steps")
    until(page, "document.querySelector('#chart-reward .plot').data?.at(-1).text?.[0].includes('no program')")
    assert drawn(page).evaluate("plot => plot.data.at(-1).x") == [11]


def test_a_page_follows_a_run_while_it_is_written(tmp_path, serve, opened):
    root = tmp_path / "runs"
    root.mkdir()
    address, _ = serve(root)
    listed = opened(address)
    expect(listed.get_by_role("heading", name="No runs yet")).to_be_visible()
    with Run.create(root / "a", "[train]\nsteps = 9\n", {"model": "nano"}) as run:
        expect(listed.get_by_role("link", name="a", exact=True)).to_be_visible()
        page = opened(address + "#/run?run=a")
        expect(page.get_by_role("heading", name="No steps yet")).to_be_visible()
        rollouts = opened(address + "#/rollouts?run=a")
        for step in (1, 2):
            write_rollouts(root / "a", step, step_rows(step))
            run.log(step, metrics(step))
        page.locator("#chart-reward .plot[data-drawn='2']").wait_for()
        expect(page.locator(".live")).to_be_visible()
        expect(page.locator(".facts")).to_contain_text("2 of 9")
        expect(rollouts.get_by_role("heading", name="p0")).to_be_visible()
        expect(listed.locator("tbody tr")).to_contain_text("2 / 9")
        run.log(3, metrics(3))
        page.locator("#chart-reward .plot[data-drawn='3']").wait_for()
        run.rewind(1)
        page.locator("#chart-reward .plot[data-drawn='1']").wait_for()
    expect(listed.locator("tbody tr")).to_contain_text("finished")


# ---- rollouts


def test_groups_and_steps_are_walked_through_by_keyboard_and_a_link_shows_exactly_that_view(site, opened):
    page = opened(site + "#/rollouts?run=a")
    heading = page.locator("section.group h2")
    expect(heading).to_have_text("p0")
    page.keyboard.press("j")
    expect(heading).to_have_text("p1")
    assert page.locator(".picks [aria-current]").inner_text().startswith("p1")
    page.keyboard.press("j")
    expect(heading).to_have_text("p2")
    page.keyboard.press("k")
    expect(heading).to_have_text("p1")
    page.keyboard.press("p")
    expect(page.locator("section.group > p").first).to_contain_text("step 19")
    page.keyboard.press("j")
    expect(heading).to_have_text("p1")
    again = opened(page.url)
    expect(again.locator("section.group h2")).to_have_text("p1")
    expect(again.locator("section.group > p").first).to_contain_text("step 19")
    page.go_back()
    expect(heading).to_have_text("p0")


def test_a_group_shows_reward_advantage_verdict_strategy_difference_marks_and_code(site, opened):
    page = opened(site + "#/rollouts?run=a&step=19&problem=p0")
    right = page.locator("article").nth(1)
    expect(right).to_contain_text("accepted by")
    assert right.locator(".numbers").inner_text().replace("\n", " ").startswith("reward 1 advantage +1 tokens 11")
    assert right.locator(".py-keyword").all_inner_texts() == ["def", "return"]
    assert right.locator(".py-comment").inner_text() == "# plus one"
    page.goto(site + "#/rollouts?run=a&step=19&problem=p1")
    last = page.locator("article").nth(3)
    expect(last).to_contain_text("truncated")
    expect(last).to_contain_text("masked")
    expect(last).to_contain_text("test 1: got 3, expected 4")
    expect(page.locator(".visits")).to_contain_text("Sampled 20 times")


def test_who_steps_faster_than_the_answers_come_is_shown_the_step_of_the_address(site, opened):
    page = opened(site + "#/rollouts?run=a")
    expect(page.locator("section.group > p").first).to_contain_text("step 20")
    late = kept_back(page, "/api/step?", "step=19")
    page.keyboard.press("p")
    asked_for(page, late)
    page.keyboard.press("p")
    page.keyboard.press("j")  # of a list that is not there yet
    late[0].continue_()
    expect(page.locator(".page > p.quiet")).to_contain_text("step 18: ")
    expect(page.locator("section.group > p").first).to_contain_text("step 18, ")
    assert "step=18" in page.url


def test_to_look_further_back_twice_at_once_finds_nothing_twice(site, opened):
    page = opened("about:blank", ready=False)
    asked = []

    def answer(route):
        asked.append(route.request.url)
        hit = {"step": 20 - len(asked), "problem": "p0", "why": f"no. {len(asked)}"}
        route.fulfill(json={"found": [hit], "next": 20 - len(asked), "note": ""})

    page.route("**/api/find?*", answer)
    page.goto(site + "#/rollouts?run=a&find=truncated")
    page.get_by_role("button", name="Look further back").evaluate("(button) => { button.click(); button.click(); }")
    expect(page.locator(".picks a")).to_have_count(2)
    page.wait_for_timeout(300)
    assert (page.locator(".picks a").count(), len(asked)) == (2, 2)


def test_answers_of_an_evaluation_before_the_first_step_are_shown(tmp_path, serve, opened):
    with Run.create(tmp_path / "runs" / "a", "", {}) as run:
        write_rollouts(run.path, 0, [rollout(0, "t0", False)], {"t0": "Held out."}, test=True)
        page = opened(serve(tmp_path / "runs")[0] + "#/rollouts?run=a")
        expect(page.get_by_role("heading", name="No rollouts yet")).to_be_visible()
        page.get_by_label("Answers of").select_option("evaluations")
        expect(page.locator("section.group h2")).to_have_text("t0")
        page.get_by_label("Answers of").select_option("training")
        expect(page.get_by_role("heading", name="No rollouts yet")).to_be_visible()
        expect(page.locator(".picks a")).to_have_count(0)


@pytest.mark.parametrize("code", [False, True])
def test_a_text_that_went_on_for_long_does_not_hold_up_the_page(tmp_path, serve, opened, code):
    Run.create(tmp_path / "runs" / "a", "", {}).close()
    text = f"```python\nx = {'1' * 150_000}a\n```" if code else f"a{chr(10) * 300_000}b"
    write_rollouts(tmp_path / "runs" / "a", 1, [rollout(0, "p0", False, completion=text)])
    page = opened(serve(tmp_path / "runs")[0] + "#/rollouts?run=a")
    expect(page.locator("article")).to_have_count(1)


def test_line_ends_of_windows_are_line_ends(tmp_path, serve, opened):
    Run.create(tmp_path / "runs" / "a", "", {}).close()
    text = "So:\r\n```python\r\nx = 1\r\n```\r\nDone.\r\n"
    write_rollouts(tmp_path / "runs" / "a", 1, [rollout(0, "p0", False, completion=text)])
    page = opened(serve(tmp_path / "runs")[0] + "#/rollouts?run=a")
    assert page.locator("article .text").inner_text().split() == ["So:", "x", "=", "1", "Done."]


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        ("worst", "p0"),
        ("longest", "p1"),
        ("truncated", "p1"),
        ("masked", "p1"),
        ("solved", "p0"),
        ("lost", "p0"),
        ("hacks", "p0"),  # the program of p2
    ],
)
def test_each_finder_leads_to_what_it_found(site, opened, kind, first):
    page = opened(site + "#/rollouts?run=a")
    page.get_by_label("Find").select_option(kind)
    expect(page.locator(".page > p.quiet")).to_contain_text("found")
    expect(page.locator("section.group h2")).to_have_text(first)
    page.keyboard.press("j")
    until(page, "document.querySelectorAll('.picks a')[1].getAttribute('aria-current') === 'true'")


def test_text_is_searched_for(site, opened):
    page = opened(site + "#/rollouts?run=a")
    page.keyboard.press("/")
    page.keyboard.type("DO NOT know")
    page.keyboard.press("Enter")
    expect(page.locator(".picks li").first).to_contain_text("completion: I do not know.")
    expect(page.locator("article.chosen")).to_contain_text("I do not know.")
    page.get_by_role("searchbox").fill("zzzz")
    page.get_by_role("searchbox").press("Enter")
    expect(page.get_by_role("heading", name="Nothing found")).to_be_visible()


# ---- comparing, bench results, studies


def test_two_runs_are_compared_on_the_same_problems_side_by_side(site, opened):
    page = opened(site + "#/compare")
    page.get_by_label("First").select_option("a")
    page.get_by_label("Second").select_option("b")
    expect(page.locator(".picks li").first).to_contain_text("won")
    expect(page.locator("section.group h2")).to_have_text("p0")
    sides = page.locator(".sides > section")
    expect(sides.locator("h3")).to_have_text(["a", "b"])
    expect(sides.nth(0).locator("article")).to_have_count(4)
    expect(sides.nth(1)).to_contain_text("3 of 4 accepted")
    page.get_by_role("button", name="Swap").click()
    expect(page.locator(".picks li").first).to_contain_text("lost")
    page.get_by_label("Show").select_option("same")
    expect(page.locator(".picks li")).to_have_count(2)


def test_bench_results_and_studies_are_read_in_the_same_place(site, opened):
    page = opened(site + "#/bench")
    page.get_by_role("link", name="tiny", exact=True).click()
    expect(page.locator(".report td").nth(1)).to_contain_text("25")
    page.get_by_label("Show").select_option("some")
    expect(page.locator(".picks li")).to_have_count(1)
    expect(page.locator("article")).to_have_count(4)
    page.get_by_role("link", name="Studies").click()
    expect(page.get_by_role("heading", name="The claims")).to_be_visible()
    assert page.locator(".report li").all_inner_texts() == ["one", "two"]
    assert page.locator(".report img").get_attribute("alt") == "a figure"
    assert page.locator(".report p").all_inner_texts() == [""]  # nothing is left of the link around the figure
    assert page.locator(".report strong").all_inner_texts() == ["Masks", "supported"]
    assert page.locator(".report td").nth(4).inner_text() == "a <b> ~ c"
    assert page.locator(".report td").nth(5).inner_text() == "supported\n+1 (0 to 2)"


# ---- the frame


def test_the_theme_is_kept_and_the_keys_are_explained(site, opened):
    page = opened(site)
    page.keyboard.press("t")
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.wait_for_selector("body[data-ready]")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next and previous problem")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
