"""Formulas: every one of the pages can be set, and none of the theory is left in code font."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
THEORY = sorted((ROOT / "docs" / "theory").glob("*.md"))
FENCE = re.compile(r"^ *```(?P<language>\S*).*?\n(?P<body>.*?)^ *```", re.M | re.S)
CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
UNICODE_FORMULA = re.compile("[α-ωΣΠ½¼‖√≤≥∈²ᵀ]")


@pytest.fixture(scope="module")
def mathml() -> ModuleType:
    pytest.importorskip("sphinx", reason="the documentation's packages are not installed: make docs installs them")
    spec = importlib.util.spec_from_file_location("docs_mathml", ROOT / "docs" / "mathml.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prose_of(page: Path) -> str:
    return FENCE.sub("", page.read_text("utf-8"))


def formulas_of(page: Path) -> list[str]:
    blocks = [found["body"] for found in FENCE.finditer(page.read_text("utf-8")) if found["language"] == "math"]
    return blocks + re.findall(r"\$([^$]+)\$", CODE.sub("", prose_of(page)))


@pytest.mark.parametrize("page", [p for p in PAGES if formulas_of(p)], ids=lambda p: p.stem)
def test_every_formula_of_a_page_can_be_set(mathml, page):
    for tex in formulas_of(page):
        assert mathml.tex2mathml(tex).startswith("<math"), tex


@pytest.mark.parametrize("page", THEORY, ids=lambda p: p.stem)
def test_a_theory_page_has_formulas_and_none_in_code_font(page):
    assert formulas_of(page)
    assert [code for code in CODE.findall(prose_of(page)) if UNICODE_FORMULA.search(code)] == []


@pytest.mark.parametrize("page", THEORY, ids=lambda p: p.stem)
def test_github_reads_the_same_formulas(page):
    """There a backslash before punctuation is Markdown's within a line, and a bar ends the cell of a table."""
    inline = re.findall(r"\$([^$]+)\$", CODE.sub("", prose_of(page)))
    assert [tex for tex in inline if re.search(r"\\[^A-Za-z]|\|", tex)] == []


def test_bars_hug_what_they_enclose_and_names_of_functions_stand_apart(mathml):
    from docutils import nodes

    said = mathml.written(nodes.math("", r"2 \ln \lVert w\rVert"), as_block=False)
    assert '<mo form="prefix" stretchy="false">‖' in said
    assert '<mo form="postfix" stretchy="false">‖' in said
    assert re.search(r"<mn>2</mn><mspace[^>]*></mspace><mi>ln</mi><mspace", said)
    assert "ApplyFunction" not in mathml.written(nodes.math("", r"\exp(x)"), as_block=False)


def test_a_formula_that_cannot_be_read_is_a_warning_with_its_words(mathml, monkeypatch):
    from docutils import nodes

    said = []
    monkeypatch.setattr(mathml.LOG, "warning", lambda message, *values, location: said.append(message % values))
    assert mathml.written(nodes.math("", r"\nothing < 1"), as_block=False) == r"<code>\nothing &lt; 1</code>"
    assert r"\nothing" in said[0]
