"""Take the pictures of docs/view anew: pages of `microcoder view` over a folder of runs, evaluations and studies.

    python -m benchmarks.view.pictures runs/ pictures.json docs/view

`pictures.json` names each picture with its page:
{"runs.png": {"page": "#/", "width": 1280, "height": 560, "dark": false, "full": false}}. Only "page" is needed.
The browser is a chromium of the system (CHROMIUM=...).
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import threading
import time
from pathlib import Path

import uvicorn
from playwright.sync_api import Browser, sync_playwright

from microcoder.view import app

WAITING = ".chart:not([hidden]) .plot:not([data-drawn])"  # charts that are not drawn yet


def take(
    browser: Browser, address: str, path: Path, page: str, width: int = 1280, height: int = 900, **look: bool
) -> None:
    """Open one page, wait until its charts are drawn, and write the picture."""
    scheme = "dark" if look.get("dark") else "light"
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    shown = context.new_page()
    shown.goto(address + page)
    shown.wait_for_selector("body[data-ready]")
    if page.startswith("#/run?"):
        shown.wait_for_selector(WAITING, state="detached")
    shown.wait_for_timeout(500)
    shown.screenshot(path=path, full_page=bool(look.get("full")))
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("root", type=Path)
    parser.add_argument("pictures", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app(args.root), log_level="warning"))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    with sync_playwright() as playwright:
        chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, look in json.loads(args.pictures.read_text()).items():
            take(browser, f"http://127.0.0.1:{listener.getsockname()[1]}/", args.out / name, **look)
        browser.close()
    server.should_exit = True
    thread.join(10)


if __name__ == "__main__":
    main()
