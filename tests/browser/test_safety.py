"""What a browser must not do, and what a page says when things are not as they should be."""

from __future__ import annotations

import gzip
import shutil

import pytest
from playwright.sync_api import expect
from view_runs import HOSTILE, make_bench, make_run
from waiting import until

from microcoder.view import export

HARMLESS = "document.body.dataset.hacked === undefined && !document.querySelector('main img, main script')"


def test_a_rollout_full_of_html_and_script_does_nothing_and_hidden_characters_are_seen(tmp_path, serve, opened):
    make_run(tmp_path / "runs" / "a", steps=3)
    make_bench(tmp_path / "runs" / "tiny")
    address, _ = serve(tmp_path / "runs")
    page = opened(address + "#/rollouts?run=a&step=3&problem=p0")
    sample = page.locator("article").first
    expect(sample).to_contain_text("<script>document.body.dataset.hacked = 'yes'</script><img src=x")
    expect(sample).to_contain_text("⟦U+202E⟧gnp.exe⟦U+200B⟧⟦U+001B⟧[31m<!--")
    expect(sample.locator(".message")).to_contain_text("<script>")
    assert page.evaluate(HARMLESS)
    for hash_ in ("#/rollouts?run=a&find=text&q=gnp.exe", "#/bench?bench=tiny"):
        page.goto(address + hash_)
        expect(page.locator(".page")).to_contain_text("gnp.exe")
        assert page.evaluate(HARMLESS)


def test_a_problem_and_a_run_with_a_hostile_name_do_nothing_either(tmp_path, serve, opened):
    name = "<img src=x onerror=document.body.dataset.hacked=1>"
    path = make_run(tmp_path / "runs" / name, steps=2)
    for file in (path / "rollouts").glob("step_*.gz"):
        text = gzip.decompress(file.read_bytes()).replace(b'"p0"', b'"' + name.encode() + b'"')
        file.write_bytes(gzip.compress(text))
    address, _ = serve(tmp_path / "runs")
    page = opened(address)
    page.get_by_role("link", name=name).click()
    page.locator("#chart-reward .plot[data-drawn]").wait_for()
    page.get_by_role("link", name="Rollouts").click()
    expect(page.locator("section.group h2")).to_have_text(name)
    assert page.evaluate(HARMLESS)


def test_a_script_that_got_into_the_page_would_not_run(tmp_path, serve, opened):
    make_run(tmp_path / "runs" / "a", steps=1)
    page = opened(serve(tmp_path / "runs")[0], faults=False)
    page.evaluate("""() => {
        document.addEventListener('securitypolicyviolation', () => { document.body.dataset.stopped = 'yes'; });
        const script = document.createElement('script');
        script.textContent = "document.body.dataset.hacked = 'yes'";
        const button = document.createElement('button');
        button.setAttribute('onclick', "document.body.dataset.hacked = 'yes'");
        document.body.append(script, button);
        button.click();
    }""")
    until(page, "document.body.dataset.stopped === 'yes'")
    assert page.evaluate("document.body.dataset.hacked === undefined")


def test_a_wrong_token_is_turned_away_and_the_right_one_leaves_the_address(tmp_path, serve, opened):
    make_run(tmp_path / "runs" / "a", steps=1)
    address, _ = serve(tmp_path / "runs", "secret-token")
    wrong = opened(address + "?token=wrong", ready=False)
    expect(wrong.locator("body")).to_contain_text("that token is not the right one")
    page = opened(address + "?token=secret-token#/run?run=a")
    page.locator("#chart-reward .plot[data-drawn]").wait_for()
    assert "token" not in page.url
    assert page.evaluate("document.cookie") == ""  # no script can read it


@pytest.mark.parametrize("large", [False, True])
def test_an_exported_file_is_opened_from_the_disk_and_asks_nobody(tmp_path, opened, browser, large):
    make_run(tmp_path / "runs" / "a", steps=8)
    make_run(tmp_path / "runs" / "b", steps=6)
    export(tmp_path / "runs" if large else tmp_path / "runs" / "a", tmp_path / "a.html")
    page = opened((tmp_path / "a.html").as_uri())
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    if large:
        page.get_by_role("link", name="a", exact=True).click()
    page.locator("#chart-reward .plot[data-drawn='8']").wait_for()
    assert page.locator("#chart-reward svg.main-svg").first.is_visible()
    page.get_by_role("link", name="Rollouts").click()
    expect(page.locator("section.group h2")).to_have_text("p0")
    expect(page.locator("article").first).to_contain_text("gnp.exe")
    page.keyboard.press("j")
    expect(page.locator("section.group h2")).to_have_text("p1")
    page.get_by_label("Find").select_option("solved")
    expect(page.locator(".picks li").first).to_contain_text("at step 6 it was 0")
    assert page.evaluate(HARMLESS)
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == []
    expect(page.locator(".banner")).to_contain_text("A copy of")


def test_broken_and_half_written_files_are_named_and_the_rest_is_shown(tmp_path, serve, opened):
    path = make_run(tmp_path / "runs" / "a", steps=6)
    with open(path / "metrics.jsonl", "ab") as file:
        file.write(b'nonsense\n\xff\xfe\n{"step": 7, "rew')
    (path / "run.json").write_text('{"status": "runn')
    last = path / "rollouts" / "step_00006.jsonl.gz"
    last.write_bytes(last.read_bytes()[:-40])
    last.with_name("step_00005.jsonl.gz").write_bytes(b"nothing")
    make_run(tmp_path / "runs" / "b", steps=1)
    address, _ = serve(tmp_path / "runs")
    page = opened(address)
    expect(page.get_by_role("row", name="pick a")).to_contain_text("damaged")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.goto(address + "#/run?run=a")
    page.locator("#chart-reward .plot[data-drawn='6']").wait_for()
    expect(page.locator(".page")).to_contain_text("2 lines of a’s metrics.jsonl cannot be read")
    expect(page.locator(".page")).to_contain_text("run.json cannot be read")
    page.goto(address + "#/rollouts?run=a")
    expect(page.locator(".page > p.quiet")).to_contain_text("step_00006.jsonl.gz is damaged")
    page.goto(address + "#/rollouts?run=a&step=5")
    expect(page.locator(".page > p.quiet")).to_contain_text("step_00005.jsonl.gz is damaged")
    page.goto(address + "#/run?run=gone")
    expect(page.locator("main")).to_contain_text("there is no run 'gone' under runs")


def test_when_the_server_ends_the_page_says_that_it_may_be_old(tmp_path, serve, opened):
    make_run(tmp_path / "runs" / "a", steps=1)
    address, end = serve(tmp_path / "runs")
    page = opened(address)
    end()
    page.locator("main.stale").wait_for()
    expect(page.locator("#said")).to_contain_text("the server does not answer")


def test_when_a_run_is_removed_its_page_says_so(tmp_path, serve, opened):
    path = make_run(tmp_path / "runs" / "a", steps=1)
    make_run(tmp_path / "runs" / "b", steps=1)
    page = opened(serve(tmp_path / "runs")[0] + "#/run?run=a")
    shutil.rmtree(path)
    page.locator("main.stale").wait_for()
    assert page.locator("main").get_attribute("data-stale").startswith("there is no run 'a' under runs")


def test_hostile_text_of_the_tests_is_hostile(tmp_path, browser):
    """In a page that takes it for HTML it does harm: the tests above could fail."""
    context = browser.new_context()
    page = context.new_page()
    page.set_content(f"<body>{HOSTILE}</body>")
    until(page, "document.body.dataset.hacked === 'yes'")
    context.close()
