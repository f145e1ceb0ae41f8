"""How long `microcoder view` takes to its first chart, and how much memory: by the steps and the rollouts of a run.

    python -m benchmarks.view                     # 100, 1,000 and 10,000 steps, few and many rollouts
    python -m benchmarks.view --steps 100 1000 --rows 8 512 --json view.json

A run of 10,000 steps with 512 rollouts each has 5 million rows. They are not all made: the file of one step is linked
into the place of every step, with index lines of their own, so that every size is real but the making. The browser is
a chromium of the system (CHROMIUM=...); the server is the command itself, in a process of its own.

Columns: seconds from asking for the page until the curve of the reward is on the screen (curve) and until plotly has
drawn its chart, which can be zoomed and pointed at (chart), for a server that has read nothing yet, and again for one
that has (curve_again, chart_again); seconds until the samples of a group are shown; milliseconds of the longest frame
while the page of rollouts is scrolled; seconds of the slowest finder; the server's memory in MB before and after.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Page, sync_playwright

from microcoder.files import json_line
from microcoder.runs import Run, groups_of, write_rollouts

GROUP = 8
FINDERS = ("worst", "longest", "truncated", "solved", "hacks", "text")
ANSWER = "Let me think about it.\n" * 20 + "```python\ndef f(x):\n    return sorted(x)[::-1]\n```\n"
SCROLL = """async () => {
    let last = performance.now(), longest = 0;
    for (let n = 0; n < 60; n++) {
        window.scrollBy(0, 120);
        await new Promise((next) => requestAnimationFrame(next));
        longest = Math.max(longest, performance.now() - last);
        last = performance.now();
    }
    return longest;
}"""
WATCH = """
window.seen = {};
new MutationObserver(() => {
    for (const what of ['sketched', 'drawn']) {
        if (seen[what] || !document.querySelector(`#chart-reward .plot[data-${what}]`)) continue;
        seen[what] = performance.now();
        requestAnimationFrame(() => setTimeout(() => { seen[what] = performance.now(); }));  // painted
    }
}).observe(document, { subtree: true, childList: true, attributes: true });
"""


def make(path: Path, steps: int, rows: int) -> None:
    """A run whose rollout files are all one file."""
    config = f'[train]\nsteps = {steps}\n[grpo]\npreset = "microcoder"\n'
    Run.create(path, config, {"model": "nano", "status": "finished", "steps_done": steps}).close()
    rollouts = [rollout(n) for n in range(rows)]
    first = write_rollouts(path, 1, rollouts, {f"p{n}": "Sort the list." for n in range(rows // GROUP)})
    folder = first.parent
    entry = json.loads((folder / "index.jsonl").read_text())
    groups = [list(group) for group in groups_of(rollouts)]
    with (
        open(path / "metrics.jsonl", "wb") as metrics,
        open(folder / "index.jsonl", "wb") as index,
        open(folder / "groups.jsonl", "wb") as lines,
    ):
        for step in range(1, steps + 1):
            name = f"step_{step:05}.jsonl.gz"
            if step > 1:
                (folder / name).hardlink_to(first)
            index.write(json_line({**entry, "step": step, "file": name}))
            lines.write(json_line({"step": step, "size": entry["size"], "groups": groups}))
            metrics.write(json_line(line_of(step)))


def rollout(n: int) -> dict[str, Any]:
    right = n % 3 == 0
    return {
        "row": n, "problem": f"p{n // GROUP}", "sample": n % GROUP, "completion": ANSWER, "code": ANSWER[-45:-4],
        "verdict": "accepted" if right else "wrong_answer", "strategy": "equal" if right else "",
        "message": "" if right else "test 1: got [3], expected [1]", "reward": float(right),
        "advantage": 1.2 if right else -0.6, "length": 200 + n % 90, "truncated": n % 50 == 7, "repeated": False,
        "masked": n % 100 == 7,
    }  # fmt: skip


def line_of(step: int) -> dict[str, Any]:
    names = ("reward", "accuracy", "diversity", "entropy", "truncated_share", "masked_share", "no_signal_share",
             "clip_low", "clip_high", "loss", "grad_norm", "kl", "generation_s", "judging_s", "update_s", "other_s",
             "step_s", "tokens_per_s", "length_mean", "length_finished")  # fmt: skip
    values = {name: 0.5 + 0.3 * math.sin(step / (20 + n)) for n, name in enumerate(names)}
    tests = {"test_accuracy": 0.4} if step % 20 == 0 else {}
    return {"step": step, **values, **tests, "temperature": 1.2, "verdicts": {"accepted": 20, "wrong_answer": 44}}


def measure(root: Path, page: Page) -> dict[str, float]:
    command = [sys.executable, "-m", "microcoder.cli", "view", str(root), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = re.search(r"http://\S+", server.stdout.readline())[0]  # type: ignore[index]
        urllib.request.urlopen(address).read()
        memory = psutil.Process(server.pid).memory_info
        before = memory().rss
        first, again = (charts(page, f"{address}#/run?run=a") for _ in range(2))
        samples = seconds(page, f"{address}#/rollouts?run=a", "article")
        frame = page.evaluate(SCROLL)
        slowest = max(asked(f"{address}api/find?run=a&kind={kind}&q=zzz") for kind in FINDERS)
        return {
            "curve": first[0],
            "chart": first[1],
            "curve_again": again[0],
            "chart_again": again[1],
            "group": samples,
            "frame_ms": frame,
            "finder": slowest,
            "memory_before": before / 1e6,
            "memory_after": memory().rss / 1e6,
        }
    finally:
        server.terminate()
        server.wait()


def charts(page: Page, address: str) -> tuple[float, float]:
    """Seconds by the page's own clock, which asking from outside would have to wait for."""
    seconds(page, address, "#chart-reward .plot[data-drawn]")
    found: dict[str, float] = page.evaluate("seen")
    return found["sketched"] / 1000, found["drawn"] / 1000


def seconds(page: Page, address: str, selector: str) -> float:
    page.goto("about:blank")
    started = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_selector(selector, timeout=120_000)
    return time.perf_counter() - started


def asked(address: str) -> float:
    started = time.perf_counter()
    urllib.request.urlopen(address).read()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--rows", type=int, nargs="+", default=[GROUP, 512], help="rollouts in a step")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not browser:
        sys.exit("no chromium was found: apt install chromium, or CHROMIUM=/path/to/it")
    results = []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for steps in arguments.steps:
            for rows in arguments.rows:
                with tempfile.TemporaryDirectory() as folder:
                    make(Path(folder) / "runs" / "a", steps, rows)
                    page = chromium.new_page()  # with a cache of its own
                    page.add_init_script(WATCH)
                    found = measure(Path(folder) / "runs", page)
                    page.close()
                results.append({"steps": steps, "rows": steps * rows, **found})
                show(results[-1], header=len(results) == 1)
        chromium.close()
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2))


def show(result: dict[str, Any], header: bool) -> None:
    if header:
        print("| " + " | ".join(result) + " |\n|" + " ---: |" * len(result))
    shown = (f"{value:,}" if isinstance(value, int) else f"{value:.2f}" for value in result.values())
    print("| " + " | ".join(shown) + " |", flush=True)
