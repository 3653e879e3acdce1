"""The pages as a person sees them: headless Chromium on a real server.

`make test` installs Debian's package chromium where it can; elsewhere `make test-browser` says how.
"""

from __future__ import annotations

import json
import os
import shutil
import time

import pytest

from .conftest import RESULTS, TOKEN

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
WAIT = 120_000
"""Milliseconds after which a page is stuck, however busy the machine is."""


def chromium() -> str | None:
    """The browser: RECOMBINE_CHROMIUM, or the first that is installed."""
    named = os.environ.get("RECOMBINE_CHROMIUM")
    return named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def browser():
    path = chromium()
    if path is None:
        assert "RECOMBINE_BROWSER_TESTS" not in os.environ, "no Chromium: see `make test-browser`"
        pytest.skip("no Chromium is installed: see `make test-browser`")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


class Tab:
    """A tab that remembers every error, and every request to another host."""

    def __init__(self, browser, client, **look):
        self.client, self.errors, self.elsewhere = client, [], []
        self.page = browser.new_context(**look).new_page()
        self.page.set_default_timeout(WAIT)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._request)
        self.page.goto(client.link)
        assert "token" not in self.page.url

    def _said(self, said):
        # The browser reports each request that was refused as bad, which the page shows as a message.
        if said.type in ("error", "warning") and "status of 400" not in said.text:
            self.errors.append(said.text)

    def _request(self, request):
        if not request.url.startswith((f"http://127.0.0.1:{self.client.port}/", "data:", "blob:", "file:")):
            self.elsewhere.append(request.url)

    def show(self, where):
        self.page.goto(self.client.page(where))
        return self.page


@pytest.fixture
def tab(browser, client):
    opened = Tab(browser, client, viewport={"width": 1400, "height": 900})
    yield opened
    opened.page.context.close()
    assert opened.errors == []
    assert opened.elsewhere == []


def test_evidence_answers_in_words_and_its_points_lead_to_runs(tab):
    page = tab.show("evidence")
    page.wait_for_selector(".ev-row")
    studies = len(tab.client.get("evidence")["studies"])
    assert page.locator(".ev-row").count() == studies
    page.get_by_role("searchbox").fill("which architecture")
    assert page.locator(".ev-row").count() == 1
    page = tab.show("evidence/data-scaling.smoke/rises")
    claim = page.locator(".ev-claim.chosen")
    assert claim.locator(".pill").inner_text().strip("✓?\n ") in ("holds", "not decided")
    page.wait_for_selector(".ev-figure svg")
    claim.locator(".points a").first.press("Enter")
    claim.locator(".ev-runs a").first.click()
    page.wait_for_selector(".stat")
    assert "#/run/" in page.url


def test_runs_are_filtered_sorted_grouped_and_plotted(tab):
    page = tab.show("runs")
    page.wait_for_selector(".tabulator-row")
    total = page.locator(".tabulator-row").count()
    page.locator("[data-search]").fill("family = 'lookup'")
    expected = tab.client.get("runs?where=family%20%3D%20%27lookup%27")["found"]
    page.wait_for_selector(f".grid[data-found='{expected}']")
    assert page.locator(".tabulator-row").count() == expected and 0 < expected < total
    assert "where=family" in page.url, "the address can be copied"
    page.locator("[data-search]").fill("width >")
    assert "cannot be used" in page.locator(".error").inner_text()
    page = tab.show("runs?by=support.number&x=support.number&y=score_held_out")
    page.wait_for_selector(".tabulator-row")
    assert page.locator(".tabulator-row").count() == tab.client.get("groups?by=support.number")["found"]
    page.wait_for_selector(".card .chart svg")
    # The keyboard: down to the first run, and open it.
    page = tab.show("runs?sort=-score_held_out")
    page.wait_for_selector(".tabulator-row")
    page.locator("h1").click()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector(".stat")
    best = tab.client.get("runs?sort=-score_held_out&limit=1")["rows"][0][0]
    assert page.url.endswith(best)


def test_a_run_shows_its_figures_and_two_runs_are_compared(tab):
    first, second = (tab.client.get(f"runs?where=number={number}&sort=run")["rows"][0][0] for number in (20, 120))
    page = tab.show(f"run/{first}")
    for title in ("Scores during training", "Which pairs were trained, which held out", "How decodable are"):
        page.locator(".ev-figure", has_text=title).locator("svg.marks").wait_for()
    page = tab.show(f"compare?a={first}&b={second}")
    page.wait_for_selector(".answer")
    assert "support.number" in page.inner_text("#main")


def test_a_plan_follows_its_text(tab):
    page = tab.show("plan")
    page.wait_for_selector(".curve")
    page.locator("textarea").fill("factors: {a: [1, 2], b: [x, y]}")
    page.get_by_text("4 combinations", exact=False).first.wait_for()
    assert page.locator("#main tbody tr").count() == 4
    page.locator("textarea").fill("factors: {a: [1, 2]")
    page.locator(".error").wait_for()


def test_hostile_names_are_shown_as_text(tab, tmp_path):
    hostile = "<img src=x onerror=alert(1)>"
    rows = [f"{hostile},{colour},{number % 2}" for number, colour in enumerate(["red", "blue"] * 6)]
    table = tmp_path / "hostile.csv"
    table.write_text("\n".join([f"{hostile},colour,success", *rows]))
    page = tab.show("audit")
    page.locator("input[type=file]").set_input_files(table)
    page.locator("th", has_text=hostile).wait_for()
    assert page.locator("#main img").count() == 0
    # Names of a study's results, and an address that is no page.
    page = tab.show("evidence/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    page.get_by_text(f"There is no result called {hostile}").wait_for()
    assert page.locator("#main img").count() == 0


def test_an_audit_runs_in_a_sandbox(tab, tmp_path):
    lines = ["object,colour,success"]
    lines += [
        f"{thing},{colour},{int((thing + colour) != 'catred')}"
        for thing in ("dog", "cat", "car", "cup")
        for colour in ("red", "blue", "green")
        for _ in range(3)
    ]
    table = tmp_path / "scores.csv"
    table.write_text("\n".join(lines))
    page = tab.show("audit")
    page.locator("input[type=file]").set_input_files(table)
    page.get_by_label("quick").check()
    page.get_by_role("button", name="Audit", exact=True).click()
    frame = page.locator("iframe")
    frame.wait_for()
    assert frame.get_attribute("sandbox") == "allow-scripts"
    page.frame_locator("iframe").locator("h1").wait_for()


def test_a_sweep_started_from_the_page_finishes_and_appears(browser, serving, tmp_path):
    client = serving(tmp_path / "new")
    tab = Tab(browser, client)
    page = tab.show("start?what=sweep")
    page.locator("[data-setting='recipe.steps']").wait_for()
    for setting, value in {
        "space.modules": "6",
        "space.max_active": "2",
        "recipe.steps": "2,3",
        "recipe.tasks": "4",
    }.items():
        field = page.locator(f"[data-setting='{setting}']")
        field.fill(value)
        field.press("Tab")
    page.locator("[data-replicates]").fill("1")
    page.get_by_role("button", name="Dry run").click()
    page.get_by_text("What would run").wait_for()
    page.get_by_role("button", name="Start", exact=True).click()
    page.locator("[data-job][data-state='done']").wait_for()
    page = tab.show("runs")
    page.wait_for_selector(".tabulator-row")
    assert page.locator(".tabulator-row").count() == 2
    tab.page.context.close()
    assert tab.errors == []


def test_the_evidence_page_opens_from_disk(browser, tmp_path):
    from recombine.view import write_evidence_page

    page = browser.new_context().new_page()
    errors = []
    page.on("console", lambda said: said.type in ("error", "warning") and errors.append(said.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(write_evidence_page(RESULTS, tmp_path / "site").as_uri() + "#/data-scaling/rises")
    page.wait_for_selector(".ev-claim.chosen .points")
    image = page.locator(".ev-figure img").first
    image.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    assert image.evaluate("image => image.complete && image.naturalWidth > 0")
    assert errors == []
    page.context.close()


def test_other_sites_and_a_lost_server_are_told(browser, client):
    """A page without the token sees how to get one; JavaScript of another origin reads nothing."""
    stranger = browser.new_context().new_page()
    stranger.goto(f"http://127.0.0.1:{client.port}/")
    assert "needs its link" in stranger.inner_text("h1")
    stranger.goto("data:text/html,<h1>other</h1>")
    answer = stranger.evaluate(
        "([port, token]) => fetch(`http://127.0.0.1:${port}/api/state`, {headers: {authorization: `Bearer ${token}`}})"
        ".then(() => 'read', () => 'refused')",
        [client.port, TOKEN],
    )
    assert answer == "refused"
    stranger.context.close()


@pytest.mark.slow
def test_ten_thousand_runs_are_about_as_quick_as_none(browser, serving, many_runs, tmp_path):
    """Ratios to an empty store are printed, not asserted: times belong to benchmarks. What is asserted is what is shown."""
    from recombine.store import Store

    times = {}
    for name, store in (("empty", Store(tmp_path / "empty").path), ("10,000 runs", many_runs)):
        client = serving(store)
        client.get("columns")  # The index is made once.
        tab = Tab(browser, client)
        tab.show("plan").wait_for_selector(".curve")
        begin = time.perf_counter()
        page = tab.show("runs")
        page.wait_for_selector(".grid[data-found]")
        times[name] = time.perf_counter() - begin
        begin = time.perf_counter()
        if name != "empty":
            page.locator("[data-search]").fill("width >= 64")
            page.wait_for_selector(".grid[data-found='4000']")
            times["filter"] = time.perf_counter() - begin
        assert tab.errors == []
        tab.page.context.close()
    ratio = {name: round(seconds / times["empty"], 2) for name, seconds in times.items()}
    print(json.dumps({"seconds": times, "ratio to an empty store": ratio}))
