"""The built site: whole, readable offline, and with everything in its sidebar. It takes half a minute to build."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CAPTIONS = ["Start", "How to", "Guide", "Theory", "Reference", "Develop"]
FETCHED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}
FORMULA_FONT = """async () => {
    await document.fonts.ready;
    return [...document.fonts].find((face) => face.family.includes("STIX Two Math"))?.status;
}"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with warnings as errors."""
    for package in ("sphinx", "furo", "myst_parser", "numpydoc"):
        pytest.importorskip(package, reason="the documentation's packages are not installed: make docs installs them")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(ROOT / "docs"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


class Page(HTMLParser):
    """What a browser would fetch, where links lead, what pictures are called."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.nameless: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        is_fetched = tag in FETCHED and given.get("rel") not in ("canonical", "prev", "next", "search", "index")
        if is_fetched and FETCHED[tag] in given:
            self.fetched.append(given[FETCHED[tag]])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "img" and not given.get("alt"):
            self.nameless.append(given.get("src", ""))


def pages_of(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def test_no_page_fetches_anything_from_elsewhere(site):
    for path in pages_of(site):
        for address in Page(path).fetched:
            assert not re.match(r"(\w+:)?//", address), f"{path.name} fetches {address}"
            assert address.startswith("data:") or (path.parent / re.split(r"[?#]", address)[0]).exists(), address
    for path in [*site.rglob("*.css"), *site.rglob("*.js")]:
        text = path.read_text("utf-8")
        assert not re.search(r"""url\(["']?(https?:)?//|@import\s+["']?(https?:)?//""", text), path.name
        assert not re.search(r"""(fetch|import|importScripts)\(["'`]https?://""", text), path.name


def test_every_picture_has_words_for_who_cannot_see_it(site):
    for path in pages_of(site):
        assert Page(path).nameless == [], path.name


def test_every_page_is_reached_from_the_sidebar_of_the_first(site):
    text = (site / "index.html").read_text("utf-8")
    assert re.findall(r'class="caption"[^>]*><span class="caption-text">([^<]+)', text)[: len(CAPTIONS)] == CAPTIONS
    reached = {link.split("#")[0] for link in Page(site / "index.html").links}
    written = {
        path.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for path in (ROOT / "docs").rglob("*.md")
    }
    written = {page for page in written if not page.startswith("_build")} - {"index.html"}
    assert written <= reached


def test_links_between_pages_lead_somewhere(site):
    ids = {path: set(re.findall(r'id="([^"]+)"', path.read_text("utf-8"))) for path in pages_of(site)}
    for path in pages_of(site):
        for link in Page(path).links:
            page, _, anchor = link.partition("#")
            if re.match(r"\w+:", link):
                continue
            target = (path.parent / page).resolve() if page else path
            assert target.exists(), f"{path.name} links to {link}"
            if anchor and target in ids:
                assert anchor in ids[target], f"{path.name} links to {link}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("there is no Chromium here")
    api = pytest.importorskip("playwright.sync_api", reason="Playwright's Python package is not installed")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


def test_a_browser_asks_nobody_and_complains_of_nothing(site, browser):
    outside: list[str] = []
    said: list[str] = []
    theory = [f"theory/{path.stem}" for path in sorted((ROOT / "docs" / "theory").glob("*.md"))]
    for name in ("index", "start", "guide/pictures", "reference/learners", "glossary", *theory):
        for width in (1700, 1400, 390):
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.on("request", lambda request: outside.append(request.url))
            page.on("console", lambda message: said.append(message.text))
            page.goto((site / f"{name}.html").as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than {width}"
            if name in theory:
                assert page.evaluate(FORMULA_FONT) == "loaded", f"{name} has no font for its formulas"
            page.close()
    assert [address for address in outside if not address.startswith(("file:", "data:"))] == []
    assert said == []


def test_a_search_shows_excerpts_from_a_folder(site, browser):
    said: list[str] = []
    page = browser.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.goto((site / "search.html").as_uri() + "?q=gap")
    page.wait_for_selector("#search-results p.context >> text=gap")
    excerpts = page.locator("#search-results p.context").all_text_contents()
    page.close()
    assert any("gap" in excerpt for excerpt in excerpts)
    assert said == []
