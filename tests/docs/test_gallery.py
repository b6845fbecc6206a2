"""The gallery shows every picture there is, each drawn by the code above it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import margrove.plots

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def gallery() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_gallery", DOCS / "gallery.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_picture_and_every_display_is_shown(gallery):
    text = gallery.PAGE.read_text("utf-8")
    drawn = "".join(code for code, name in gallery.blocks(text) if name is not None)
    for name in margrove.plots.__all__:
        if name.startswith("plot_") or name == "compare_linear":
            assert f"{name}(" in drawn, f"no picture of {name} in {gallery.PAGE.name}"
        elif name.endswith("Display"):
            assert f"`{name}`" in text, f"{name} is not in {gallery.PAGE.name}"


def test_every_picture_of_the_page_has_its_code_and_its_words(gallery):
    text = gallery.PAGE.read_text("utf-8")
    shown = re.findall(r"^!\[([^\]]*)\]\(\.\./images/([\w-]+)\.png\)$", text, re.M)
    assert [name for _, name in shown] == [name for _, name in gallery.blocks(text) if name is not None]
    assert {path.stem for path in (DOCS / "images").glob("gallery-*.png")} == {name for _, name in shown}
    assert min(len(alt) for alt, _ in shown) > 60
    assert set(gallery.TIMED) <= {name for _, name in shown}


def test_pictures_are_drawn_in_order_and_timed_ones_only_once(gallery, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nimport matplotlib.pyplot as plt\n```\n\n"
        "```python\nax = plt.subplots()[1]\nax.set_title('one')\n```\n\n![words](../images/gallery-one.png)\n\n"
        "```python\nfigure, axes = plt.subplots(1, 2)\n```\n\n![words](../images/gallery-two.png)\n"
    )
    monkeypatch.setattr(gallery, "PAGE", page)
    monkeypatch.setattr(gallery, "TIMED", ("gallery-one",))
    drawn = dict(gallery.figures(tmp_path))
    assert list(drawn) == ["gallery-one", "gallery-two"]
    assert drawn["gallery-one"].axes[0].get_title() == "one"
    assert len(drawn["gallery-two"].axes) == 2
    (tmp_path / "gallery-one.png").touch()
    assert list(dict(gallery.figures(tmp_path))) == ["gallery-two"]


def test_code_that_draws_nothing_is_noticed(gallery, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n\n![words](../images/gallery-none.png)\n")
    monkeypatch.setattr(gallery, "PAGE", page)
    with pytest.raises(AssertionError, match="drew nothing"):
        list(gallery.figures(tmp_path))
