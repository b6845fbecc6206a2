"""The pictures that the pages show are kept in git, and small; to check what is generated compares no picture."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
MOST_BYTES = 120_000
PICTURES = sorted(
    {
        (page.parent / link).resolve()
        for page in DOCS.rglob("*.md")
        for link in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text("utf-8"))
    }
)


def test_the_pages_show_pictures() -> None:
    assert len(PICTURES) >= 6


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_a_picture_of_a_page_is_kept_and_small(picture: Path) -> None:
    assert picture.is_relative_to(DOCS / "images")  # docs/_build is not in git
    assert 0 < picture.stat().st_size < MOST_BYTES


def _generate() -> Any:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pictures_are_drawn_where_the_pages_look_and_not_by_a_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate = _generate()
    assert generate.FIGURES == DOCS / "images"
    drawn = []
    monkeypatch.setattr(generate, "FIGURES", tmp_path)  # no picture is there, and none is missed
    monkeypatch.setattr(generate, "generated", lambda: iter(()))
    monkeypatch.setattr(generate, "draw_figures", lambda: drawn.append("all"))
    assert generate.main(["--check"]) == 0
    assert drawn == []
    assert generate.main([]) == 0
    assert drawn == ["all"]
