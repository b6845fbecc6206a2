"""Charts: plotly figures as plain JSON, each with its numbers as a table.

plotly reads some HTML in its texts, so every text of a user goes through `label`. Axes of labels have numbers as
places and the labels as ``ticktext``: otherwise plotly would take "1" for a number and "2020-01-01" for a date.
Colours of ink, lines and paper are set by the style sheet, for light, dark and paper alike.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np

from margrove.app.estimate.learning_curve import Point, verdict_on_rows
from margrove.app.history import Contender
from margrove.app.report.blocks import Chart, Grid
from margrove.app.report.measures import Bin, Ranking
from margrove.plots.style import OKABE_ITO

BLUE, ORANGE, GREEN, PINK, SKY, RED, _ = OKABE_ITO
LINES = (BLUE, RED, GREEN, PINK, ORANGE, SKY)  # all but yellow, which is hard to see as a line
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")  # beside the colours
_LONGEST = 28  # letters of a label
_LINE, _MOST_LINES = 18, 4  # letters of a line of a label that is wrapped, and its lines
_HEIGHT = 340  # pixels
TABLE_ROWS = 12  # of the table behind a curve
GREY = "#888888"  # of what is only for comparison


def label(text: str, most: int = _LONGEST) -> str:
    """Shorten and escape a user's text for plotly."""
    line = " ".join(text.split())
    return escape(line if len(line) <= most else f"{line[: most - 1]}…", quote=False)


def wrapped(text: str) -> str:
    """Wrap a user's text into a few short lines, so that it leaves room for the drawing on a phone."""
    lines = textwrap.wrap(text, _LINE, max_lines=_MOST_LINES, placeholder="…")
    return "<br>".join(escape(line, quote=False) for line in lines)


def digits(value: float | None, most: int = 4) -> str:
    """Return a number for a table."""
    return "" if value is None or np.isnan(value) else f"{value:.{most}g}"


def capital(text: str) -> str:
    """Return a text with a capital first."""
    return text[:1].upper() + text[1:]


def percent(share: float | None) -> str:
    """Return a share for a table."""
    return "" if share is None else f"{100 * share:.1f} %"


def figure_of(data: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any], **layout: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "height": _HEIGHT,
        "margin": {"l": 64, "r": 16, "t": 12, "b": 52},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "hovermode": "closest",
        "showlegend": len([trace for trace in data if trace.get("showlegend", True)]) > 1,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "xaxis": {"automargin": True, "zeroline": False, **x},
        "yaxis": {"automargin": True, "zeroline": False, **y},
    }
    return {"data": data, "layout": {**base, **layout}}


def line_of(x: Any, y: Any, name: str, place: int = 0, **look: Any) -> dict[str, Any]:
    trace = {
        "type": "scatter",
        "mode": "lines",
        "x": plain(x),
        "y": plain(y),
        "name": name,
        "line": {"color": LINES[place % len(LINES)], "dash": DASHES[place % len(DASHES)], "width": 2.5},
    }
    return {**trace, **look}


def diagonal(name: str, low: float = 0, high: float = 1) -> dict[str, Any]:
    look = {"line": {"color": GREY, "dash": "dot", "width": 1.5}, "hoverinfo": "skip"}
    return {"type": "scatter", "mode": "lines", "x": [low, high], "y": [low, high], "name": name, **look}


def marked(x: Any, y: Any, **look: Any) -> dict[str, Any]:
    return {"type": "scatter", "mode": "markers", "x": x, "y": y, **look}


def axis(title: str, **look: Any) -> dict[str, Any]:
    return {"title": {"text": title}, **look}


def ticks(labels: list[str]) -> dict[str, Any]:
    return {"tickvals": list(range(len(labels))), "ticktext": labels}


def numbers(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, texts: Sequence[int] = (), caption: str = ""
) -> Grid:
    """Return a table of numbers but for the columns of texts."""
    return Grid(header, rows, caption, frozenset(range(len(header))) - set(texts))


def plain(numbers: Any) -> list[Any]:
    return [float(f"{value:.6g}") for value in np.asarray(numbers, np.float64).tolist()]


def some_of(n: int) -> list[int]:
    """Return the places of a few of n rows, with the first and the last."""
    return [int(place) for place in np.unique(np.linspace(0, n - 1, min(n, TABLE_ROWS)).round())]


def share_axis(title: str) -> dict[str, Any]:
    return axis(title, tickformat=".0%", range=[-0.02, 1.02])


def score_axis(measure: str, **look: Any) -> dict[str, Any]:
    return axis(measure, **look, **({"tickformat": ".1%"} if measure == "accuracy" else {}))


def score_text(measure: str) -> Callable[[float | None], str]:
    """Return the format of a score in a table: R² and its error have three decimals, as on the command line."""
    return percent if measure == "accuracy" else lambda value: "" if value is None else f"{value:.3f}"


def roc_chart(found: Sequence[Ranking], n_classes: int) -> Chart:
    """Draw ROC curves."""
    shown, remark = _hardest(found, "auc")
    data = [diagonal("by chance")]
    data += [line_of(*r.roc, f"‘{label(r.name)}’: area {r.auc:.3f}", i) for i, r in enumerate(shown)]
    figure = figure_of(data, share_axis("others wrongly called so"), share_axis("of the class found"))
    header = ["class", "area below the curve"]
    rows = [[r.name, f"{r.auc:.4f}"] for r in found]
    if n_classes == 2:
        false_alarms, hits = found[0].roc
        header = ["others wrongly called so", f"of {found[0].name} found"]
        rows = [[percent(false_alarms[i]), percent(hits[i])] for i in some_of(len(hits))]
    areas = ", ".join(f"{r.auc:.3f} of {r.name!r}" for r in shown)
    return Chart(
        "roc",
        "Found against false alarms (ROC)",
        figure,
        f"Curves of the share found against the share of false alarms. Areas below them: {areas}; 1 is perfect, 0.5 "
        f"is chance.{remark}",
        numbers(header, rows, texts=() if n_classes == 2 else (0,)),
    )


def pr_chart(found: Sequence[Ranking], n_classes: int) -> Chart:
    """Draw precision-recall curves."""
    shown, remark = _hardest(found, "average_precision")
    data = [line_of(*r.pr, f"‘{label(r.name)}’: mean {r.average_precision:.3f}", i) for i, r in enumerate(shown)]
    figure = figure_of(data, share_axis("of the class found"), share_axis("right when it says so"), showlegend=True)
    rows = [[r.name, percent(r.share), f"{r.average_precision:.4f}"] for r in found]
    means = ", ".join(f"{r.average_precision:.3f} of {r.name!r}" for r in shown)
    return Chart(
        "precision-recall",
        "Right against found (precision and recall)",
        figure,
        f"Curves of how often the model is right when it names the class, against how many of the class it finds. Mean "
        f"precision: {means}.{remark}",
        numbers(["class", "share of rows", "mean precision"], rows, texts=(0,)),
    )


def _hardest(found: Sequence[Ranking], by: str) -> tuple[list[Ranking], str]:
    """Return the classes with the lowest score, as many as there are colours, in their order; and a remark if these are
    not all."""
    hardest = {id(ranking) for ranking in sorted(found, key=lambda ranking: getattr(ranking, by))[: len(LINES)]}
    shown = [ranking for ranking in found if id(ranking) in hardest]
    is_all = len(found) == len(shown)
    remark = f" Drawn are the {len(shown)} of {len(found)} classes that are told apart worst."
    return shown, "" if is_all else remark


def calibration_chart(bins: Sequence[Bin]) -> Chart:
    """Draw the share of correct predictions against their probability."""
    errors = {
        "type": "data",
        "symmetric": False,
        "array": plain([b.high - b.was for b in bins]),
        "arrayminus": plain([b.was - b.low for b in bins]),
        "color": BLUE,
    }
    points = line_of([b.said for b in bins], [b.was for b in bins], "the model", mode="lines+markers", error_y=errors)
    data = [diagonal("perfectly honest"), points]
    figure = figure_of(data, share_axis("how sure it said it was"), share_axis("how often right"))
    rows = [[percent(b.said), percent(b.was), f"{percent(b.low)} – {percent(b.high)}", f"{b.n_rows:,}"] for b in bins]
    worst = max(bins, key=lambda b: abs(b.said - b.was))
    return Chart(
        "calibration",
        "Does it know how sure it is? (calibration)",
        figure,
        f"How often answers are right against how sure the model was of them. The largest difference: sure "
        f"{percent(worst.said)}, right {percent(worst.was)}.",
        numbers(["said", "was right", "95 % interval", "rows"], rows),
    )


def learning_chart(points: Sequence[Point], measure: str) -> Chart:
    """Draw the score against the number of training rows."""
    errors = {"type": "data", "array": plain([p.error or 0.0 for p in points]), "color": BLUE}
    trace = line_of([p.rows for p in points], [p.score for p in points], measure, mode="lines+markers", error_y=errors)
    figure = figure_of([trace], axis("rows learned from", rangemode="tozero"), score_axis(measure))
    score = score_text(measure)
    rows = [[f"{p.rows:,}", score(p.score), score(p.error)] for p in points]
    return Chart(
        "learning-curve",
        "Would more rows help? (learning curve)",
        figure,
        f"{capital(measure)} on rows not seen, from {score(points[0].score)} with {points[0].rows:,} rows to "
        f"{score(points[-1].score)} with {points[-1].rows:,}: {verdict_on_rows(points)}.",
        numbers(["rows learned from", measure, "standard error"], rows),
    )


def leaderboard_chart(contenders: Sequence[Contender], measure: str) -> Chart:
    """Draw the score of each learner with its standard error."""
    scored = [c for c in contenders if c.score is not None][::-1]  # the best on top
    titles = [wrapped(c.title) for c in scored]
    n_lines = max(1 + title.count("<br>") for title in titles)
    looks = [(RED, "diamond") if c.is_chosen else (BLUE, "circle") for c in scored]
    trace = marked(
        plain([c.score for c in scored]),
        list(range(len(scored))),
        text=[label(c.title, 80) for c in scored],
        hovertemplate=f"%{{text}}: %{{x:{'.1%' if measure == 'accuracy' else '.3f'}}}<extra></extra>",
        marker={"size": 12, "color": [colour for colour, _ in looks], "symbol": [symbol for _, symbol in looks]},
        error_x={"type": "data", "array": plain([c.error or 0.0 for c in scored]), "color": GREY},
    )
    y = {**ticks(titles), "range": [-0.6, len(scored) - 0.4]}
    height = 90 + max(34, 12 + 17 * n_lines) * len(scored)
    figure = figure_of([trace], score_axis(measure, nticks=5), y, height=height)
    score = score_text(measure)
    rows = [[c.title, score(c.score), score(c.error)] for c in scored[::-1]]
    best = max(scored, key=lambda c: c.score or 0.0)
    return Chart(
        "leaderboard",
        "The learners side by side",
        figure,
        f"Cross-validated {measure} of {len(scored)} learners with standard errors; best is {best.title} with "
        f"{score(best.score)}.",
        numbers(["learner", measure, "standard error"], rows, texts=(0,)),
    )
