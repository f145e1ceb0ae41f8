"""A real browser for the pages: `make test-browser` names one in CHROMIUM; without it nothing here is collected."""

from __future__ import annotations

import os
import socket
import threading
import time

import pytest

collect_ignore_glob = [] if os.environ.get("CHROMIUM") else ["test_*.py"]
MAPS = "sha256-ji27qzEtxXZW"  # the charts' script brings a sheet for maps, which the policy rightly turns away


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def serve():
    """`serve(root)` -> (address, what ends it)."""
    import uvicorn

    from microcoder.view import app

    ends = []

    def start(root, token=None):
        listener = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app(root, token), log_level="warning", access_log=False))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()

        def end():
            server.should_exit = True
            thread.join(10)
            listener.close()

        ends.append(end)
        while not server.started:
            time.sleep(0.02)
        return f"http://127.0.0.1:{listener.getsockname()[1]}/", end

    yield start
    for end in ends:
        end()


@pytest.fixture
def opened(browser):
    """`opened(address, width=..., dark=...)` -> a page that is ready; faults of its scripts fail the test."""
    contexts, found = [], []

    def note(message):
        if message.type == "error" and MAPS not in message.text and "Failed to load resource" not in message.text:
            found.append(message.text)

    def open_page(address, width=1280, height=800, dark=False, ready=True, faults=True):
        scheme = "dark" if dark else "light"
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme))
        page = contexts[-1].new_page()
        page.set_default_timeout(15_000)
        if faults:
            page.on("pageerror", lambda error: found.append(str(error)))
            page.on("console", note)
        page.goto(address)
        if ready:
            page.wait_for_selector("body[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert found == []
