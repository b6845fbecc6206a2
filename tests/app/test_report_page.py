"""The page of a report in a real browser: no user text runs, no request leaves the page, no error is logged."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.app.report_models import (
    CLASSIFIERS,
    HOSTILE,
    HOSTILE_CLASS,
    REGRESSORS,
    fitted,
    hostile_table,
    training_record,
    with_numbers,
)

from margrove import load_penguins
from margrove.app.report import write_report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


ALL_DRAWN = "[...document.querySelectorAll('[data-chart]')].every(chart => chart.querySelector('.main-svg'))"


def wait_for(page: Any, condition: str) -> None:
    """Poll from outside: the page's policy does not allow it from within."""
    for _ in range(200):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"it never came true: {condition}")


@dataclass
class Watched:
    """A page that is open, and what it did unasked."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    contexts = []

    def open_report(model: Any, table: Any, **look: Any) -> Watched:
        path = tmp_path / "report.html"
        write_report(model, table, path)
        context = browser.new_context(**look)
        contexts.append(context)
        watched = Watched(context.new_page())
        watched.page.on("console", lambda message: watched.complaints.append(message.text))
        watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
        watched.page.on("dialog", lambda dialog: (watched.complaints.append(dialog.message), dialog.dismiss()))
        watched.page.on("request", lambda request: watched.requests.append(request.url))
        watched.page.goto(path.as_uri())
        wait_for(watched.page, ALL_DRAWN)
        return watched

    yield open_report
    for context in contexts:
        context.close()


def check_quiet(watched: Watched) -> None:
    assert watched.complaints == []
    outside = [url for url in watched.requests if not url.startswith(("file:", "data:", "blob:"))]
    assert outside == []
    assert sum(url.startswith("file:") for url in watched.requests) == 1  # the page itself


def penguin_model(name: str) -> tuple[Any, Any]:
    penguins = load_penguins()
    model = fitted(CLASSIFIERS[name](), penguins)
    model.training_record_ = training_record(penguins)
    return model, penguins


@pytest.mark.parametrize("name", ["svm", "tree", "adaboost"])
def test_page_logs_no_error_and_sends_no_request(opened, name):
    watched = opened(*penguin_model(name))
    check_quiet(watched)
    assert watched.page.locator(".chart .main-svg").count() > 6


def test_page_of_a_regressor_logs_no_error_and_sends_no_request(opened):
    table = with_numbers()
    check_quiet(opened(fitted(REGRESSORS["tree"](), table), table))


@pytest.mark.parametrize("name", ["svm", "tree", "adaboost"])
def test_hostile_names_are_shown_and_not_run(opened, name):
    table = hostile_table()
    model = fitted(CLASSIFIERS[name](), table)
    record = training_record(table, n=100)
    for line in record["leaderboard"]:
        line["title"] = line["note"] = HOSTILE_CLASS
    record["choice"]["words"] = record["estimate"]["words"] = record["warnings"][0] = HOSTILE
    record["course"][0]["name"] = HOSTILE_CLASS
    model.training_record_ = record
    watched = opened(model, table)
    page = watched.page
    check_quiet(watched)
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main iframe, main script, main a[href^=javascript]").count() == 0
    assert page.locator("script").count() == 3  # the figures, plotly and what draws
    text = page.locator("main").inner_text()
    assert HOSTILE in text
    assert HOSTILE_CLASS in text
    assert page.title() == "How '<svg onload=window.hacked=3>' is predicted"
    # In the charts, too: as letters, where plotly would have made bold type or a link of them.
    legends = page.locator(".legendtext").all_text_contents()
    assert any("<b>good</b>" in legend for legend in legends)
    assert page.locator(".chart a[href^=javascript]").count() == 0


def test_nothing_is_wider_than_the_window(opened):
    page = opened(*penguin_model("tree")).page
    for width in (320, 375, 1100):
        page.set_viewport_size({"width": width, "height": 700})
        wait_for(page, f"document.documentElement.scrollWidth <= {width}")


CUT_OFF = """
[...document.querySelectorAll("[data-chart]")].flatMap(chart => {
  const frame = chart.getBoundingClientRect();
  const isOutside = box => box.left < frame.left - 1 || box.right > frame.right + 1
    || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
  return [...chart.querySelectorAll(".g-xtitle text, .g-ytitle text, .xtick text, .ytick text")]
    .filter(text => text.textContent.trim() && isOutside(text.getBoundingClientRect()))
    .map(text => `${chart.dataset.chart}: ${text.textContent}`);
})
"""


@pytest.mark.parametrize("name", ["svm", "tree", "adaboost"])
@pytest.mark.parametrize("width", [390, 1100])
def test_titles_and_labels_of_axes_are_never_cut_off(opened, name, width):
    model, table = penguin_model(name)
    for line in model.training_record_["leaderboard"]:
        line["title"] = "Support vector machine with a Gaussian kernel, C = 10, gamma = 0.01"
    page = opened(model, table, viewport={"width": width, "height": 844}).page
    assert page.locator(".g-xtitle text").count() > 4
    assert page.evaluate(CUT_OFF) == []


LUMINANCE = """
(() => {
  const channel = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = rgb => 0.2126 * channel(rgb[0]) + 0.7152 * channel(rgb[1]) + 0.0722 * channel(rgb[2]);
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const ground = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = numbers(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const element of document.querySelectorAll("main *, header *, nav *")) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || element.closest(".chart, svg, .matrix td") || !element.checkVisibility()) continue;
    const [ink, paper] = [light(numbers(getComputedStyle(element).color)), light(ground(element))];
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (contrast < 4.5) faint.push(`${element.tagName}.${element.className} ${contrast.toFixed(2)}`);
  }
  return faint;
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_enough_contrast(opened, scheme):
    """At least 4.5 to 1, as the WCAG has it."""
    watched = opened(*penguin_model("svm"), color_scheme=scheme)
    assert watched.page.evaluate(LUMINANCE) == []
    paper = watched.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


def test_every_chart_has_an_accessible_description_and_a_table(opened):
    page = opened(*penguin_model("svm")).page
    for chart in page.locator("[data-chart]").all():
        assert chart.get_attribute("role") == "img"
        assert len(chart.get_attribute("aria-label")) > 20
        assert chart.locator("xpath=ancestor::figure//details//table").count() == 1
    for tree in opened(*penguin_model("tree")).page.locator("svg.tree").all():
        assert tree.get_attribute("aria-label")
    assert page.evaluate("document.documentElement.lang") == "en"


def test_the_keyboard_goes_through_the_page_in_its_order(opened):
    page = opened(*penguin_model("tree")).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    places = []
    for _ in range(25):
        page.keyboard.press("Tab")
        places.append(page.evaluate("document.activeElement.getBoundingClientRect().top + scrollY"))
    assert places == sorted(places)
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(heading => Number(heading.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_folded_parts_are_printed_and_folded_again(opened):
    page = opened(*penguin_model("tree")).page
    folded = "document.querySelectorAll('details:not([open])').length"
    before = page.evaluate(folded)
    assert before > 0
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(folded) == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(folded) == before
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_page_without_scripts_lacks_only_the_charts(opened, browser, tmp_path):
    model, table = penguin_model("svm")
    write_report(model, table, tmp_path / "plain.html")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((tmp_path / "plain.html").as_uri())
    assert "The charts need JavaScript" in page.locator("noscript").inner_text()
    assert page.locator("figure details table").count() > 5
    context.close()
