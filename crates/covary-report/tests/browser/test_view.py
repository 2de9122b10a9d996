"""`covary view` in a headless Chromium: every control, the keyboard, narrow windows, and the end."""

import subprocess

import pytest
from test_report import COVARY, ROOT

TABLE = ROOT / "examples" / "wine_gaps.csv"


class Viewed:
    """A server and its page, which remembers what went wrong and what was asked for."""

    def __init__(self, browser, table=TABLE, width=1280):
        call = [COVARY, "view", str(table), "--no-open", "--quiet"]
        self.process = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        self.context = browser.new_context(viewport={"width": width, "height": 800}, accept_downloads=True)
        self.page = self.context.new_page()
        self.page.set_default_timeout(180_000)
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(self.address)
        self.wait("s.")

    def wait(self, words):
        """Until the status ends with these words."""
        self.page.wait_for_function("words => document.getElementById('status').textContent.endsWith(words)", arg=words)

    def status(self):
        return self.page.inner_text("#status")

    def report(self):
        return self.page.frame_locator("#report")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()
        self.process.kill()
        self.process.wait()


def test_every_control_recomputes_the_report(browser):
    with Viewed(browser) as viewed:
        page = viewed.page
        assert "wine_gaps.csv" in page.inner_text("h1")
        assert viewed.report().locator("figure").count() > 8
        page.select_option("[name=model]", "fa")
        page.locator("#status", has_text="factor analysis").wait_for()
        page.fill("[name=components]", "3")
        page.keyboard.press("Tab")
        page.locator("#status", has_text="factor analysis, 3 components").wait_for()
        page.select_option("[name=rotation]", "varimax")
        viewed.report().get_by_text("--rotation varimax").first.wait_for()
        page.fill("[name=y]", "3")
        page.keyboard.press("Enter")
        viewed.report().get_by_text("--axes 1,3").first.wait_for()
        page.select_option("[name=color]", "cultivar")
        viewed.report().get_by_text("--color cultivar").first.wait_for()
        page.fill("[name=components]", "99")
        page.keyboard.press("Enter")
        page.wait_for_selector("#status.wrong")
        assert "99 components are too many" in viewed.status()
        assert viewed.report().get_by_text("--color cultivar").count() > 0, "the last report stays"
        with page.expect_download() as saved:
            page.click("#save")
        assert "covary report" in saved.value.path().read_text()
        assert viewed.said == []
        assert all(url.startswith((viewed.address, "data:")) for url in viewed.asked), viewed.asked


def test_the_keyboard_reaches_every_control(browser):
    with Viewed(browser) as viewed:
        reached = []
        for _ in range(9):
            viewed.page.keyboard.press("Tab")
            reached.append(viewed.page.evaluate("document.activeElement.name || document.activeElement.id || document.activeElement.type"))
        for name in ("model", "components", "rotation", "color", "x", "y", "submit", "save"):
            assert name in reached, (name, reached)
        unnamed = viewed.page.evaluate(
            "[...document.querySelectorAll('select, input, button, a, iframe')].filter(e => "
            "!(e.labels?.length || e.textContent.trim() || e.title)).map(e => e.outerHTML)"
        )
        assert unnamed == []


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_nothing_overflows(browser, width):
    with Viewed(browser, width=width) as viewed:
        assert viewed.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        inside = viewed.page.locator("#report").element_handle().content_frame()
        assert inside.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_closing_the_page_ends_the_command(browser):
    with Viewed(browser) as viewed:
        viewed.page.close()
        assert viewed.process.wait(timeout=60) == 0


def test_hostile_names_execute_nothing(browser, tmp_path):
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    rows = "\n".join(f"{i % 7},{i % 7 + i * 37 % 11 / 10},{2 * (i % 7) - i * 37 % 11 / 10},{evil}{i % 2}" for i in range(40))
    table = tmp_path / "<b>t.csv"
    table.write_text(f"{evil}a,b,c,{evil}kind\n{rows}\n")
    with Viewed(browser, table) as viewed:
        viewed.page.on("dialog", lambda dialog: viewed.said.append(dialog.message))
        viewed.page.select_option("[name=color]", index=2)
        viewed.report().get_by_text("--color").first.wait_for()
        assert viewed.said == []
        assert viewed.page.evaluate("document.images.length") == 0
