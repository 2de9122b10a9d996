"""One browser for all tests: Playwright allows one of its loops at a time."""

import os

import pytest
from playwright.sync_api import sync_playwright

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["COVARY_BROWSER"], args=FLAGS)
        yield browser
        browser.close()
