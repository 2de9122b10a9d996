"""Reports opened in a headless Chromium, as a reader would: looked at, pointed at, printed.

`cargo xtask test` runs this with COVARY (the command) and COVARY_BROWSER (the browser) set. With
COVARY_SCREENSHOTS=DIR it also leaves pictures of the pages there.
"""

import csv
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
COVARY = os.environ["COVARY"]
DATA = Path(os.environ.get("COVARY_DATA", ROOT.parent / "shared" / "data"))
TABLES = {
    "ozone": DATA / "missmda" / "ozone.csv",
    "metabolite": DATA / "metabolite" / "metabolite_missing.csv",
    "yeast": DATA / "yeast_spellman" / "yeast_spellman.parquet",
    "wine": ROOT / "examples" / "wine_gaps.csv",
}


def report(table, folder, *flags):
    """The page and the facts of a table."""
    page = folder / "report.html"
    call = [COVARY, "report", str(table), "-o", str(page), "--json", "--quiet", *flags]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert page.exists(), done.stderr
    return page, json.loads(done.stdout), done.returncode


@pytest.fixture(scope="session", params=TABLES)
def made(request, tmp_path_factory):
    table = TABLES[request.param]
    if not table.exists():
        pytest.skip(f"no {table.name}: name the folder with the data by COVARY_DATA")
    page, facts, status = report(table, tmp_path_factory.mktemp(request.param))
    assert status == 0
    return request.param, page, facts


class Watched:
    """A page that remembers what went wrong and what it asked for."""

    def __init__(self, browser, path, **options):
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        self.page = self.context.new_page()
        # A loaded machine is slow, not wrong.
        self.page.set_default_timeout(180_000)
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())

    def __enter__(self):
        return self.page

    def __exit__(self, *_):
        self.context.close()

    def check_quiet(self, path):
        assert self.said == []
        assert self.asked == [path.as_uri()]


def test_it_opens_without_error_or_network_and_draws_every_chart(browser, made):
    name, path, facts = made
    assert path.stat().st_size < 2_000_000
    watched = Watched(browser, path)
    with watched as page:
        figures = page.locator("figure")
        names = [f.get_attribute("data-figure") for f in figures.all()]
        expected = {"missing", "scree", "hinton", "scores", "biplot", "covariance", "samples", "intervals", "select", "trace"}
        assert expected <= set(names), expected - set(names)
        for figure in figures.all():
            shown = [s for s in figure.locator("svg").all() if s.is_visible()]
            assert len(shown) == 1
            box = shown[0].bounding_box()
            assert box["width"] > 250 and box["height"] > 100
            assert shown[0].locator("path, rect, circle, line").count() > 3
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        watched.check_quiet(path)


def test_it_says_what_the_facts_say(browser, made):
    _, path, facts = made
    with Watched(browser, path) as page:
        text = re.sub(r"\s+", " ", page.inner_text("body"))
        q = facts["model"]["n_components"]
        assert f"with {q} component" in text
        filled = f"{facts['filled']['n_filled']:,}".replace(",", "\u202f" if facts["filled"]["n_filled"] > 9999 else "")
        assert re.sub(r"\s", "", filled) + "missingvalueswereimputed" in re.sub(r"\s", "", text)
        at_95 = facts["check"]["coverage"][-1]
        covered = f"95 % prediction intervals covered {100 * at_95['share']:.1f} ± {100 * at_95['standard_error']:.1f} % of them"
        assert covered in text
        rows = page.locator("#cells tbody tr")
        assert rows.count() == len(facts["filled"]["cells"])
        assert facts["command"] in text


def test_pointing_at_a_mark_says_what_it_is(browser, made):
    _, path, facts = made
    with Watched(browser, path) as page:
        bar = page.locator("#fig-scree [data-tip]").first
        bar.scroll_into_view_if_needed()
        bar.hover()
        tip = page.locator("#tip")
        assert tip.is_visible()
        assert tip.inner_text().startswith("component 1: eigenvalue")
        page.mouse.move(1, 1)
        page.locator("h1").hover()
        assert not tip.is_visible()


def test_series_switch_off_and_on_by_mouse_and_keyboard(browser, made):
    _, path, _ = made
    with Watched(browser, path) as page:
        figure = page.locator("#fig-intervals")
        figure.scroll_into_view_if_needed()
        covered = figure.locator("g[data-series='covered']")
        assert covered.count() > 5 and covered.first.is_visible()
        button = figure.get_by_role("button", name="covered", exact=True)
        assert button.get_attribute("aria-pressed") == "true"
        button.focus()
        page.keyboard.press("Enter")
        assert button.get_attribute("aria-pressed") == "false"
        assert not any(g.is_visible() for g in covered.all()[:5])
        figure.locator("[data-key='covered']").click()
        assert button.get_attribute("aria-pressed") == "true" and covered.first.is_visible()


def test_the_table_of_filled_cells_sorts_and_filters(browser, made):
    _, path, facts = made
    with Watched(browser, path) as page:
        cells = page.locator("#cells")
        head = cells.get_by_role("button", name="sd", exact=True)
        head.click()
        column = [h.inner_text().strip(" ▲▼") for h in cells.locator("thead th").all()].index("sd")
        shown = page.evaluate(
            "c => [...document.querySelectorAll('#cells tbody tr')].map(r => Number(r.cells[c].textContent))", column
        )
        assert shown == sorted(shown) and len(shown) > 10
        head.click()
        assert cells.locator("th[aria-sort='descending']").count() == 1
        wanted = facts["filled"]["cells"][0]["column"]
        page.locator("#only").fill(wanted)
        visible = page.evaluate("[...document.querySelectorAll('#cells tbody tr')].filter(r => !r.hidden).length")
        assert 0 < visible <= len(shown)
        assert page.locator("#shown").inner_text().startswith(f"{visible} of")


def test_a_figure_enlarges_and_zooms(browser, made):
    _, path, facts = made
    with Watched(browser, path) as page:
        page.locator("#fig-scores .enlarge").click()
        dialog = page.locator("dialog#large")
        assert dialog.is_visible()
        box = lambda: page.evaluate("document.querySelector('.stage svg').getAttribute('viewBox').split(' ').map(Number)")
        before = box()
        dialog.locator("[data-zoom='in']").click()
        assert box()[2] < before[2]
        page.keyboard.press("ArrowRight")
        assert box()[0] > before[0]
        for _ in range(40):
            page.keyboard.press("ArrowRight")
        assert box()[0] <= before[0] + before[2]
        dialog.locator("[data-zoom='reset']").click()
        assert box() == before
        if facts["table"]["n_rows"] <= 4000:
            dialog.locator("[data-tip]").first.hover(force=True)
            tip = page.locator("#tip")
            assert tip.is_visible() and tip.inner_text().startswith("row ")
            middle = tip.bounding_box()
            at = [middle["x"] + middle["width"] / 2, middle["y"] + middle["height"] / 2]
            page.evaluate("document.getElementById('tip').style.pointerEvents = 'auto'")
            assert page.evaluate("([x, y]) => document.elementFromPoint(x, y).id", at) == "tip"
        page.keyboard.press("Escape")
        assert not dialog.is_visible()


def test_figures_stand_in_pairs(browser, made):
    _, path, _ = made
    with Watched(browser, path) as page:
        box = lambda name: page.locator(f"#fig-{name}").bounding_box()
        for left, right in [("select", "scree"), ("hinton", "scores"), ("biplot", "contributions"), ("trace", "outliers")]:
            a, b = box(left), box(right)
            assert a["y"] == b["y"] and a["x"] + a["width"] <= b["x"], (left, right)
        for width in (390, 768, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), width
            assert page.locator(".swipe").first.is_visible() == (width == 390)


def test_figures_and_tables_can_be_downloaded(browser, made, tmp_path):
    _, path, facts = made
    watched = Watched(browser, path)
    with watched as page:
        with page.expect_download() as waiting:
            page.locator("#fig-scree [data-save=svg]").click()
        waiting.value.save_as(tmp_path / "a.svg")
        assert waiting.value.suggested_filename.endswith("-scree.svg")
        import xml.etree.ElementTree as xml

        text = (tmp_path / "a.svg").read_text(encoding="utf-8")
        assert xml.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg" and "var(--c" not in text
        with page.expect_download() as waiting:
            page.locator("#fig-scree [data-save=png]").click()
        waiting.value.save_as(tmp_path / "a.png")
        head = (tmp_path / "a.png").read_bytes()[:24]
        # Three pixels for each of the figure, which is 480 wide.
        assert head[:8] == b"\x89PNG\r\n\x1a\n" and int.from_bytes(head[16:20]) == 1440
        # Those of large figures are deflated in the page.
        n_with_data = page.locator("figure:has([data-save=csv])").count()
        assert n_with_data >= 6
        # The browser holds the downloads of one page back after ten: each has a page of its own.
        for k in range(n_with_data):
            with Watched(browser, path) as other:
                figure = other.locator("figure:has([data-save=csv])").nth(k)
                with other.expect_download() as waiting:
                    figure.locator("[data-save=csv]").click()
                waiting.value.save_as(tmp_path / "figure.csv")
                rows = list(csv.reader((tmp_path / "figure.csv").open(encoding="utf-8", newline="")))
                assert len(rows) > 1 and len({len(row) for row in rows}) == 1, figure.get_attribute("data-figure")
        button = page.get_by_role("button", name="Download as CSV: Imputed values")
        with page.expect_download() as waiting:
            button.click()
        waiting.value.save_as(tmp_path / "a.csv")
        lines = (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()
        assert len(lines) == 1 + len(facts["filled"]["cells"])
        assert watched.said == []


def test_everything_has_an_accessible_name(browser, made):
    _, path, _ = made
    with Watched(browser, path) as page:
        unnamed = page.evaluate(
            """() => [...document.querySelectorAll('button, a, input, svg[role=img], [role=region], dialog, nav, section')]
            .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length
                || e.getAttribute('aria-labelledby'))).map(e => e.outerHTML.slice(0, 80))"""
        )
        assert unnamed == []
        images = page.get_by_role("img").all()
        assert len(images) >= 10
        assert all(len(i.get_attribute("aria-label")) > 20 for i in images)
        assert page.get_by_role("heading", level=1).count() == 1
        assert page.get_by_role("heading", level=2).count() >= 7
        assert page.locator("html").get_attribute("lang") == "en"
        assert page.evaluate("[...document.querySelectorAll('thead th')].every(h => h.scope === 'col')")
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id).filter(i => !i.startsWith('clip-'))")
        assert len(ids) == len(set(ids))


ACCESSIBLE = """() => {
  // What axe-core calls region, color-contrast, label, aria-allowed-role, tabindex, duplicate-id, heading-order, link-name,
  // scrollable-region-focusable, target-size and nested-interactive, for what this page is made of.
  const wrong = [], say = (rule, e) => wrong.push(rule + ': ' + e.outerHTML.slice(0, 90));
  const all = (what) => [...document.querySelectorAll(what)];
  const levels = all('h1, h2, h3, h4').map((h) => Number(h.tagName[1]));
  levels.forEach((level, k) => { if (k && level > levels[k - 1] + 1) say('heading-order', all('h1, h2, h3, h4')[k]); });
  for (const e of all('[tabindex]')) if (Number(e.getAttribute('tabindex')) > 0) say('tabindex', e);
  for (const e of all('a[href]')) if (!e.textContent.trim()) say('link-name', e);
  for (const e of all('a[href^="#"]')) if (!document.querySelector(e.getAttribute('href'))) say('skip-link', e);
  for (const e of all('input, select')) if (!e.labels?.length && !e.getAttribute('aria-label')) say('label', e);
  for (const e of all('button button, a button, button a, a a')) say('nested-interactive', e);
  for (const e of all('body > *')) if (!/^(HEADER|NAV|MAIN|FOOTER|DIALOG|SCRIPT)$/.test(e.tagName) && e.id !== 'tip' && e.className !== 'skip') say('region', e);
  for (const e of all('.scroll, figure')) {
    if (e.scrollWidth > e.clientWidth + 1 && !e.matches('[tabindex]') && !e.querySelector('button')) say('scrollable-region-focusable', e);
  }
  for (const e of all('[aria-labelledby]')) if (!document.getElementById(e.getAttribute('aria-labelledby'))) say('aria-labelledby', e);
  for (const e of all('[role=img]')) if (!(e.getAttribute('aria-label') ?? '').trim()) say('svg-img-alt', e);
  for (const e of all('th')) if (!e.scope) say('scope', e);
  const channel = (c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const found = rgb(getComputedStyle(e).backgroundColor);
      if (found.length < 4 || found[3] > 0.99) return found;
    }
    return [255, 255, 255];
  };
  for (const e of all('p, li, td, th, h1, h2, h3, a, button, caption, summary, label, svg text')) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    if (!e.getClientRects().length) continue;
    const style = getComputedStyle(e), inside = e instanceof SVGElement;
    const a = light(rgb(inside ? style.fill : style.color)), b = light(ground(inside ? e.closest('figure') : e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    // Numbers within shades have a ground of their own.
    if (ratio < 4.5 && !(inside && ratio < 1.6)) say('color-contrast ' + ratio.toFixed(2), e);
  }
  return wrong;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility_rules_hold(browser, made, scheme):
    _, path, _ = made
    with Watched(browser, path, color_scheme=scheme) as page:
        assert page.evaluate(ACCESSIBLE) == []


def test_the_bar_of_contents_follows(browser, made):
    _, path, _ = made
    with Watched(browser, path) as page:
        now = lambda: page.locator("nav a[aria-current]").all_inner_texts()
        for link in page.locator("nav a").all()[1:]:
            link.click()
            page.wait_for_function("name => document.querySelector('nav a[aria-current]')?.textContent === name", arg=link.inner_text())
            assert now() == [link.inner_text()]
        box = page.locator("nav").bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 900


def empty_bottoms(pdf):
    """Share of each page between its margins that is empty at the bottom."""
    import pypdfium2

    shares = []
    for page in pypdfium2.PdfDocument(pdf):
        darkest = page.render(scale=50 / 72, grayscale=True).to_numpy().squeeze().min(axis=1)
        last = max((y for y, shade in enumerate(darkest) if shade < 200), default=0)
        margin = 0.4 * 50
        shares.append(max(0.0, len(darkest) - margin - last) / (len(darkest) - 2 * margin))
    return shares


def test_printed_pages_are_filled(browser, made):
    _, path, _ = made
    with Watched(browser, path) as page:
        margins = {side: "0.4in" for side in ("top", "bottom", "left", "right")}
        for size in ("A4", "Letter"):
            shares = empty_bottoms(page.pdf(format=size, margin=margins))
            # The last page ends where the report does.
            assert max(shares[:-1]) <= 0.15, (size, [round(share, 2) for share in shares])


def test_it_prints(browser, made, tmp_path):
    name, path, _ = made
    with Watched(browser, path) as page:
        pdf = page.pdf(format="A4")
        # Headings become buttons again.
        assert page.evaluate("[...document.querySelectorAll('table.sortable thead th')].every(h => h.querySelector('button'))")
        assert pdf.startswith(b"%PDF") and pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page>") >= 2
        if folder := os.environ.get("COVARY_SCREENSHOTS"):
            Path(folder, f"{name}.pdf").write_bytes(pdf)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(browser, made, scheme):
    name, path, _ = made
    with Watched(browser, path, color_scheme=scheme) as page:
        dark = lambda: page.evaluate(
            "getComputedStyle(document.querySelector('#fig-scree svg text')).fill.match(/\\d+/g).slice(0, 3).every(c => c > 127)"
        )
        assert dark() == (scheme == "dark")
        if folder := os.environ.get("COVARY_SCREENSHOTS"):
            page.screenshot(path=Path(folder, f"{name}-{scheme}.png"), full_page=True)
        page.locator("#theme").click()
        assert dark() == (scheme != "dark")


HOSTILE = ["<script>window.hacked=1</script>", "\"'><img src=x onerror=window.hacked=1>", "🦀 crab 🧪", "עמודה", "</title></style>", "a&amp;b", "x" * 300]


def odd_tables():
    import random

    random.seed(1)
    draw = lambda: f"{random.gauss(0, 1):.3f}"
    quoted = lambda name: '"' + name.replace('"', '""') + '"'
    rows = lambda d, n: [[draw() for _ in range(d)] for _ in range(n)]
    hostile = rows(len(HOSTILE), 60)
    for k in range(0, 60, 7):
        hostile[k][k % len(HOSTILE)] = ""
    gap_column = rows(4, 40)
    for k in range(0, 40, 3):
        gap_column[k][2] = ""
    empty_column = [[*row, ""] for row in rows(3, 40)]
    named = lambda d: [f"c{k}" for k in range(d)]
    return {
        "one column": (["only"], rows(1, 30), 0),
        "no numbers": (["word", "other"], [["a", "b"], ["c", "d"]], 1),
        "no gaps": (named(5), rows(5, 50), 0),
        "gaps in one column": (named(4), gap_column, 0),
        "a column of gaps": (named(4), empty_column, 0),
        "constants only": (named(2), [["1", "2"]] * 5, 1),
        "one row": (named(3), rows(3, 1), None),
        "hostile names": ([quoted(n) for n in HOSTILE], hostile, 0),
    }


@pytest.mark.parametrize("kind", odd_tables())
def test_odd_tables_get_a_correct_page(browser, kind, tmp_path):
    names, rows, status = odd_tables()[kind]
    table = tmp_path / "table <b>&.csv"
    table.write_text("\n".join(",".join(row) for row in [names, *rows]) + "\n", encoding="utf-8")
    path, facts, got = report(table, tmp_path)
    assert status is None or got == status
    assert (facts["refusal"] is not None) == (got == 1)
    watched = Watched(browser, path)
    with watched as page:
        watched.check_quiet(path)
        assert page.evaluate("window.hacked === undefined")
        assert page.locator("img, h1 b, iframe, object").count() == 0
        assert page.locator("script").count() == 1 and page.locator("style").count() == 1
        assert "table <b>&.csv" in page.locator("h1").inner_text()
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert page.locator("main section").count() >= (2 if facts["refusal"] else 5) - (facts["table"] is None)
        if kind == "hostile names":
            text = page.inner_text("main")
            assert all(name in text for name in HOSTILE)
            assert page.locator("figure").count() >= 5
        if folder := os.environ.get("COVARY_SCREENSHOTS"):
            page.screenshot(path=Path(folder, f"odd-{kind.replace(' ', '-')}.png"), full_page=True)


def test_five_thousand_columns(browser, tmp_path):
    import random

    random.seed(2)
    table = tmp_path / "wide.csv"
    rows = [[f"{random.gauss(0, 1):.2f}" for _ in range(5000)] for _ in range(12)]
    table.write_text("\n".join(",".join(row) for row in [[f"c{k}" for k in range(5000)], *rows]) + "\n")
    path, facts, status = report(table, tmp_path, "--components", "2")
    assert status == 0 and path.stat().st_size < 2_000_000
    watched = Watched(browser, path)
    with watched as page:
        watched.check_quiet(path)
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert "5000 columns" in page.inner_text("header")


def test_data_of_large_figures_are_unpacked_when_asked_for(browser, tmp_path):
    import random

    random.seed(3)
    table = tmp_path / "wide.csv"
    rows = [[f"{random.gauss(0, 1):.2f}" for _ in range(80)] for _ in range(60)]
    table.write_text("\n".join(",".join(row) for row in [[f"c{k}" for k in range(80)], *rows]) + "\n")
    path, _, status = report(table, tmp_path, "--components", "2")
    assert status == 0 and path.stat().st_size < 2_000_000
    watched = Watched(browser, path)
    with watched as page:
        figure = page.locator("figure:has(template.data[data-packed])").first
        with page.expect_download() as waiting:
            figure.locator("[data-save=csv]").click()
        waiting.value.save_as(tmp_path / "figure.csv")
        rows = list(csv.reader((tmp_path / "figure.csv").open(encoding="utf-8", newline="")))
        assert (tmp_path / "figure.csv").stat().st_size > 20_000
        assert len(rows) > 1 and len({len(row) for row in rows}) == 1
        assert watched.said == []


def test_a_report_in_time_has_factors_forecasts_and_surprises(browser, tmp_path):
    months = ROOT / "examples" / "months.csv"
    path, facts, status = report(months, tmp_path, "--model", "dfm", "--time", "month", "--season", "12")
    assert status == 0
    watched = Watched(browser, path)
    with watched as page:
        names = [f.get_attribute("data-figure") for f in page.locator("figure").all()]
        assert {"missing", "hinton", "forecast", "factors", "trace", "intervals"} <= set(names)
        for figure in page.locator("figure").all():
            box = figure.locator("svg").first.bounding_box()
            assert box["width"] > 200 and box["height"] > 100
        assert page.locator("nav a").all_inner_texts()[3] == "Time"
        section = page.locator("#time").inner_text()
        assert "237 rows, monthly, from 1981-01 to 2000-12" in section and "3 months have no row" in section
        assert f"modulus {facts['time']['roots'][0]['modulus']:.4f}" in section
        page.locator("#time details summary").first.click()
        rows = page.locator("#time details").first.locator("tbody tr")
        assert rows.count() == len(facts["time"]["ahead"]) == 12 * 7
        assert "2001-01" in rows.first.inner_text() and "harbor" in rows.first.inner_text()
        # Surprises are listed by date, the furthest first.
        first = page.locator("#odd tbody tr").first.inner_text()
        assert facts["time"]["surprises"]["rows"][0]["time"] in first
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        if os.environ.get("COVARY_SCREENSHOTS"):
            page.screenshot(path=Path(os.environ["COVARY_SCREENSHOTS"]) / "months.png", full_page=True)
        watched.check_quiet(path)


FAMILIES = {
    "mixture": ("wine_gaps.csv", ["--model", "mppca", "--mixtures", "3", "--components", "2"]),
    "classes": ("wine_gaps.csv", ["--target", "cultivar", "--components", "2"]),
    "sources": ("wine.csv", ["--model", "ica", "--components", "3"]),
    "views": ("wine_gaps.csv", ["--model", "gfa", "--components", "4", "--view", "a=alcohol,ash,hue,magnesium", "--view", "b=proline,flavanoids,malic_acid"]),
    "curves": ("growth.csv", ["--model", "fpca", "--curve", "child", "--time", "age"]),
    "sparse": ("wine_gaps.csv", ["--model", "spca", "--components", "2"]),
    "factors": ("wine.csv", ["--model", "fa", "--components", "2", "--rotation", "oblimin"]),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_a_page(browser, family, tmp_path):
    table, flags = FAMILIES[family]
    path, facts, status = report(ROOT / "examples" / table, tmp_path, *flags)
    assert status == 0
    watched = Watched(browser, path)
    with watched as page:
        watched.check_quiet(path)
        assert page.evaluate(ACCESSIBLE) == []
        assert page.locator("#structure figure, #fig-diagram").count() >= 1
        for width in (390, 768, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), width
        if folder := os.environ.get("COVARY_SCREENSHOTS"):
            page.screenshot(path=Path(folder, f"family-{family}.png"), full_page=True)


def test_hostile_names_of_groups_views_and_cells_stay_text(browser, tmp_path):
    evil = ["<img src=x onerror=window.hacked=1>", "=HYPERLINK(1)", "</template><script>window.hacked=1</script>", "x" * 200]
    import random

    random.seed(3)
    rows = [[f"{random.gauss(3 * (k % 3), 1):.3f}" for _ in range(4)] + [evil[k % 3] + str(k % 3)] for k in range(90)]
    quoted = lambda text: '"' + text.replace('"', '""') + '"'
    table = tmp_path / "t.csv"
    table.write_text("\n".join(",".join(map(quoted, row)) for row in [[*evil, "kind"], *rows]) + "\n", encoding="utf-8")
    for flags in (["--target", "kind"], ["--model", "mppca", "--mixtures", "2"], ["--model", "ica"], ["--model", "spca"],
                  ["--view", "<script>throw 1</script>=1,2", "--view", "</template>b=3,4", "--model", "gfa"]):
        path, facts, status = report(table, tmp_path, "--components", "1", *flags)
        assert status == 0 and facts["structure"], flags
        watched = Watched(browser, path)
        with watched as page:
            watched.check_quiet(path)
            assert page.evaluate("window.hacked === undefined && document.images.length === 0")
            assert page.locator("script").count() == 1
            assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
            for figure in page.locator("figure:has([data-save=csv])").all():
                with page.expect_download() as waiting:
                    figure.locator("[data-save=csv]").click()
                waiting.value.save_as(tmp_path / "figure.csv")
                for row in csv.reader((tmp_path / "figure.csv").open(encoding="utf-8", newline="")):
                    assert not any(cell.startswith(("=", "@", "+")) for cell in row)
