"""A report as one HTML file that needs nothing else: style, script, charts and data inside.

Nothing that a user typed is markup: the template escapes every text, the figures stand as JSON in which no tag can end,
and the page's own policy (Content-Security-Policy) runs the two scripts whose digests it names, and no others, and
fetches nothing from anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from margrove.app.report.blocks import Report, charts_of
from margrove.plots.style import OKABE_ITO
from margrove.visible import visible

_DEEP = 0.55  # of a row: from here on a cell of a matrix is dark, and its number light


def to_html(report: Report) -> str:
    charts = [chart for section in report.sections for chart in charts_of(section.blocks)]
    plotly = [_text("plotly", "package_data", "plotly.min.js")] if charts else []
    scripts = [*plotly, _text("margrove.app.report", "draw.js")]
    page: str = _template().render(
        report=report,
        style=Markup(_text("margrove.app.report", "style.css")),
        policy=_policy(scripts),
        scripts=[Markup(script) for script in scripts],
        figures=Markup(in_script({chart.name: chart.figure for chart in charts})),
        has_charts=bool(charts),
    )
    return page.lstrip()  # what the macros leave above it


def in_script(value: Any) -> str:
    """Return JSON for the inside of a ``script`` element, where nothing in it can be read as a tag or a comment."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _policy(scripts: list[str]) -> str:
    """Return a policy that allows these scripts, and nothing from outside."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'"


@cache
def _text(package: str, *path: str) -> str:
    """Return a text file of a package."""
    return files(package).joinpath(*path).read_text("utf-8").replace("\r\n", "\n").strip()


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.finalize = lambda value: visible(value, keep="\n") if type(value) is str else value  # Markup is our own
    environment.filters["kind"] = lambda block: type(block).__name__
    environment.filters["markup"] = Markup  # of our own drawings, whose texts are escaped already
    environment.filters["png"] = lambda content: f"data:image/png;base64,{base64.b64encode(content).decode()}"
    environment.globals["shade"] = _shade
    environment.globals["colours"] = OKABE_ITO
    return environment.from_string(_text("margrove.app.report", "template.html.j2"))


def _shade(counts: list[int], place: int) -> tuple[str, bool]:
    """Return the share of a cell in its row, and whether the cell is dark."""
    share = counts[place] / (sum(counts) or 1)
    return f"{share:.3f}", share > _DEEP
