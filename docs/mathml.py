"""Formulas as MathML, written when the pages are built: a browser sets them without a script and without a network.

The pages have TeX between dollars and in ``math`` blocks, which GitHub reads as well. Docutils, on which Sphinx stands,
turns it into MathML; what it cannot read is a warning that names the page, and with ``-W`` an error.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

LOG = logging.getLogger(__name__)

# What docutils leaves to the browser, and what browsers then set otherwise than TeX does.
OPERAND = "(</mi>|</mn>|</msub>|</msup>|</mfrac>|</msubsup>)"
NAME = r"<mi>(exp|ln|log|tanh|det)</mi>"
THIN = "0.17em"
TOUCHES = (
    (r">\s+<", "><"),  # indented, it would be twice as long
    # Without its form a bar is taken for a relation, with space around it; and bars grow only where TeX is told so.
    (r'<mo class="mathopen">([|‖])', r'<mo form="prefix" stretchy="false">\1'),
    (r"<mo>([|‖])", r'<mo form="postfix" stretchy="false">\1'),
    (r"<mo>([{}⌈⌉⌊⌋])", r'<mo stretchy="false">\1'),
    (r'<mo stretchy="false">/', '<mo lspace="0" rspace="0" stretchy="false">/'),
    # A thin space before the name of a function, and after it where no bracket follows.
    (r"<mo>&ApplyFunction;</mo>(?=<mo[^>]*>[(\[])", ""),
    (r"<mo>&ApplyFunction;</mo>", f'<mspace width="{THIN}"></mspace>'),
    (rf"(<msub>{NAME}<mn>\d</mn></msub>)(?!<mo[^>]*>\()", rf'\1<mspace width="{THIN}"></mspace>'),
    (rf"{OPERAND}(?=(<msub>)?{NAME})", rf'\1<mspace width="{THIN}"></mspace>'),
    (r"<mo>(max|min)</mo>(?=<mo[^>]*>\()", rf'<mo lspace="{THIN}" rspace="0">\1</mo>'),
    (r"<mo>(max|min)</mo>", rf'<mo lspace="0" rspace="{THIN}">\1</mo>'),
    (r'<mtable class="ams-align"', '<mtable class="ams-align" displaystyle="true"'),
)
PUNCTUATION = tuple(".,;:)?")
WORD_JOINER = "&#8288;"  # else a line may end between a formula and the comma after it


def written(node: nodes.Element, *, as_block: bool) -> str:
    """The formula of a node."""
    tex = node.astext()
    try:
        mathml = tex2mathml(tex, as_block=as_block)
    except MathError as error:
        LOG.warning("no formula: %s in %s", error, tex, location=node)
        return f"<code>{escape(tex)}</code>"
    for pattern, better in TOUCHES:
        mathml = re.sub(pattern, better, mathml)
    return mathml


def visit_inline(writer: Any, node: nodes.Element) -> None:
    """A formula in a line."""
    following = node.next_node(nodes.Text, descend=False, siblings=True)
    is_glued = following is not None and following.astext()[:1] in PUNCTUATION
    writer.body.append(written(node, as_block=False) + (WORD_JOINER if is_glued else ""))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.Element) -> None:
    """A formula on lines of its own; one that is wider than the page scrolls by itself."""
    writer.body.append(f'<div class="formula" tabindex="0">{written(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx calls."""
    app.add_html_math_renderer("mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None))
    app.add_css_file("math.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
