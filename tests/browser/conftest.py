"""A headless Chromium for tests of pages: Debian's own, driven by Playwright; nothing is downloaded.

Without Chromium or the npm packages these tests are skipped, or fail (`tests/support/programs.py`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.programs import npm_file

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--force-device-scale-factor=1",
)  # fmt: skip
PATIENCE_MS = 120_000  # the first search of a page may wait for the compilation of kernels, on a busy machine


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser; each test uses a separate page.

    Its scope is one module: while Playwright runs, this thread has an event loop, and no other test could run one.
    """
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """A separate browser profile, with a timeout of `PATIENCE_MS` for each operation."""
    fresh = chromium.new_context(viewport={"width": 1280, "height": 900})
    fresh.set_default_timeout(PATIENCE_MS)
    yield fresh
    fresh.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page; an exception in its scripts fails the test."""
    fresh = context.new_page()
    thrown: list[str] = []
    fresh.on("pageerror", lambda error: thrown.append(str(error)))
    yield fresh
    assert not thrown


@pytest.fixture(scope="session")
def mermaid_script() -> Path:
    """Mermaid's script, as npm installs it from the package.json next to this file."""
    return npm_file("mermaid/dist/mermaid.min.js")
