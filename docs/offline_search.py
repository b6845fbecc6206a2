"""Excerpts in the results of a search, also where the site is opened from a folder.

Sphinx's search fetches each page that it found to show some of its text. From ``file:`` a browser fetches nothing, so
the texts lie beside the index of the search: ``_static/page_texts.js``, read by ``_static/offline_search.js``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

SILENT = (nodes.comment, nodes.raw, nodes.system_message)


def text_of(node: nodes.Node) -> str:
    """What a reader sees of it, without the sections within it; formulas as their letters."""
    if isinstance(node, nodes.Text):
        return node.astext()
    if isinstance(node, (nodes.math, nodes.math_block)):
        return re.sub(r"<[^>]+>|&\w+;|\s", "", tex2mathml(node.astext()))
    if isinstance(node, (nodes.section, *SILENT)):
        return ""
    between = "" if isinstance(node, (nodes.TextElement, nodes.Inline)) else " "
    return between.join(text_of(child) for child in node.children)


def sections_of(page: nodes.document) -> list[tuple[str, str]]:
    """Each section's id and its own text, from the top of the page to its end."""
    sections = [(each["ids"][0], " ".join(text_of(child) for child in each)) for each in page.findall(nodes.section)]
    return [(name, " ".join(text.split())) for name, text in sections]


def write_texts(app: Any, error: Exception | None) -> None:
    """The texts of all pages, when the site is built."""
    if error is None and app.builder.format == "html":
        texts = {name: sections_of(app.env.get_doctree(name)) for name in sorted(app.env.found_docs)}
        target = Path(app.outdir) / "_static" / "page_texts.js"
        target.write_text(f"const PAGE_TEXTS = {json.dumps(texts, ensure_ascii=False)};\n", encoding="utf-8")


def add_scripts(app: Any, page: str, *_: Any) -> None:
    """Only the page of the search needs them; they run when Sphinx's own scripts are there."""
    if page == "search":
        app.add_js_file("page_texts.js", loading_method="defer")
        app.add_js_file("offline_search.js", loading_method="defer")


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("html-page-context", add_scripts)
    app.connect("build-finished", write_texts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
