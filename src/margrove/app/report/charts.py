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
from numpy.typing import NDArray

from margrove.app.estimate.learning_curve import Point, verdict_on_rows
from margrove.app.history import Cell, Contender, Step
from margrove.app.report.blocks import Chart, Grid
from margrove.app.report.measures import Bin, Ranking
from margrove.plots.style import OKABE_ITO

BLUE, ORANGE, GREEN, PINK, SKY, RED, _ = OKABE_ITO
LINES = (BLUE, RED, GREEN, PINK, ORANGE, SKY)  # all but yellow, which is hard to see as a line
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")  # beside the colours
_LONGEST = 28  # letters of a label
_LINE, _MOST_LINES = 18, 4  # letters of a line of a label that is wrapped, and its lines
_HEIGHT = 340  # pixels
_TABLE_ROWS = 12  # of the table behind a curve
GREY = "#888888"  # of what is only for comparison
_AT_ZERO = {"type": "line", "x0": 0, "x1": 0, "yref": "paper", "y0": 0, "y1": 1, "line": {"width": 2, "color": GREY}}


def label(text: str, most: int = _LONGEST) -> str:
    """Shorten and escape a user's text for plotly."""
    line = " ".join(text.split())
    return escape(line if len(line) <= most else f"{line[: most - 1]}…", quote=False)


def wrapped(text: str) -> str:
    """Wrap a user's text into a few short lines, so that it leaves room for the drawing on a phone."""
    lines = textwrap.wrap(text, _LINE, max_lines=_MOST_LINES, placeholder="…")
    return "<br>".join(escape(line, quote=False) for line in lines)


def digits(value: float | None, most: int = 4) -> str:
    """Return a number for a table, without an exponent below 10¹⁵."""
    if value is None or np.isnan(value):
        return ""
    text = f"{value:.{most}g}"
    return f"{float(text):,.0f}" if 10**most <= abs(float(text)) < 1e15 else text


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def chart_of(
    name: str,
    title: str,
    data: list[dict[str, Any]],
    x: dict[str, Any],
    y: dict[str, Any],
    alt: str,
    table: Grid,
    **layout: Any,
) -> Chart:
    """Return a chart with the axes and the layout that all have in common."""
    base: dict[str, Any] = {
        "height": _HEIGHT,
        "margin": {"l": 64, "r": 16, "t": 12, "b": 52},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "hovermode": "closest",
        "showlegend": len(data) > 1,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "xaxis": {"automargin": True, "zeroline": False, **x},
        "yaxis": {"automargin": True, "zeroline": False, **y},
    }
    return Chart(name, title, {"data": data, "layout": {**base, **layout}}, alt, table)


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
    return [int(place) for place in np.unique(np.linspace(0, n - 1, min(n, _TABLE_ROWS)).round())]


def share_axis(title: str) -> dict[str, Any]:
    return axis(title, tickformat=".0%", range=[-0.02, 1.02])


def score_axis(measure: str, **look: Any) -> dict[str, Any]:
    return axis(measure, **look, **({"tickformat": ".1%"} if measure.endswith("accuracy") else {}))


def score_text(measure: str) -> Callable[[float | None], str]:
    """Return the format of a score in a table: R² and its error have three decimals, as on the command line."""
    return percent if measure.endswith("accuracy") else lambda value: "" if value is None else f"{value:.3f}"


def roc_chart(found: Sequence[Ranking], n_classes: int) -> Chart:
    shown, remark = _hardest(found, "auc")
    curves = [line_of(*r.roc, f"‘{label(r.name)}’: area {r.auc:.3f}", i) for i, r in enumerate(shown)]
    table = numbers(["class", "area under the curve (AUC)"], [[r.name, f"{r.auc:.4f}"] for r in found], texts=(0,))
    if n_classes == 2:
        false_alarms, hits = found[0].roc
        rows = [[percent(false_alarms[i]), percent(hits[i])] for i in some_of(len(hits))]
        table = numbers(["false alarms", f"{found[0].name} found"], rows)
    areas = ", ".join(f"{r.auc:.3f} for {r.name!r}" for r in shown)
    alt = (
        f"The share of a class that is found against the share of false alarms. Areas under the curves: {areas}; 1 is "
        f"perfect, 0.5 is chance.{remark}"
    )
    title, x, y = "Rows found against false alarms (ROC)", share_axis("false alarms"), share_axis("found (recall)")
    return chart_of("roc", title, [diagonal("by chance"), *curves], x, y, alt, table)


def pr_chart(found: Sequence[Ranking]) -> Chart:
    shown, remark = _hardest(found, "average_precision")
    data = [line_of(*r.pr, f"‘{label(r.name)}’: average {r.average_precision:.3f}", i) for i, r in enumerate(shown)]
    rows = [[r.name, percent(r.share), f"{r.average_precision:.4f}"] for r in found]
    table = numbers(["class", "share of rows", "average precision"], rows, texts=(0,))
    means = ", ".join(f"{r.average_precision:.3f} for {r.name!r}" for r in shown)
    alt = (
        "How often a prediction of the class is correct (precision), against the share of the class that is found "
        f"(recall). Average precision: {means}.{remark}"
    )
    title = "Correct predictions against rows found (precision and recall)"
    x, y = share_axis("found (recall)"), share_axis("correct (precision)")
    return chart_of("precision-recall", title, data, x, y, alt, table, showlegend=True)


def _hardest(found: Sequence[Ranking], by: str) -> tuple[list[Ranking], str]:
    """Return the classes with the lowest score, as many as there are colours, in their order; and a remark if these are
    not all."""
    hardest = {id(ranking) for ranking in sorted(found, key=lambda ranking: getattr(ranking, by))[: len(LINES)]}
    shown = [ranking for ranking in found if id(ranking) in hardest]
    remark = f" Only the {len(shown)} of {len(found)} classes with the lowest scores are drawn."
    return shown, "" if len(found) == len(shown) else remark


def calibration_chart(bins: Sequence[Bin]) -> Chart:
    """Draw the share of correct predictions against their probability."""
    errors = {
        "type": "data",
        "symmetric": False,
        "array": plain([b.high - b.observed for b in bins]),
        "arrayminus": plain([b.observed - b.low for b in bins]),
        "color": BLUE,
    }
    points = line_of(
        [b.predicted for b in bins], [b.observed for b in bins], "the model", mode="lines+markers", error_y=errors
    )
    rows = [
        [percent(b.predicted), percent(b.observed), f"{percent(b.low)} – {percent(b.high)}", f"{b.n_rows:,}"]
        for b in bins
    ]
    table = numbers(["predicted probability", "share correct", "95 % interval", "rows"], rows)
    worst = max(bins, key=lambda b: abs(b.predicted - b.observed))
    alt = (
        "The share of correct predictions against their predicted probability. The largest difference: predicted "
        f"{percent(worst.predicted)}, correct {percent(worst.observed)}."
    )
    title = "Do its probabilities match reality? (calibration)"
    data = [diagonal("perfectly calibrated"), points]
    x, y = share_axis("predicted probability"), share_axis("share correct")
    return chart_of("calibration", title, data, x, y, alt, table)


def learning_chart(points: Sequence[Point], measure: str) -> Chart:
    """Draw the score against the number of training rows."""
    errors = {"type": "data", "array": plain([p.error or 0.0 for p in points]), "color": BLUE}
    trace = line_of([p.rows for p in points], [p.score for p in points], measure, mode="lines+markers", error_y=errors)
    score, first, last = score_text(measure), points[0], points[-1]
    rows = [[f"{p.rows:,}", score(p.score), score(p.error)] for p in points]
    table = numbers(["training rows", measure, "standard error"], rows)
    alt = (
        f"{capital(measure)} on held-out rows, from {score(first.score)} with {first.rows:,} rows to "
        f"{score(last.score)} with {last.rows:,}: {verdict_on_rows(points)}."
    )
    x, y = axis("training rows", rangemode="tozero"), score_axis(measure)
    return chart_of("learning-curve", "Would more rows help? (learning curve)", [trace], x, y, alt, table)


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
        hovertemplate=f"%{{text}}: %{{x:{'.1%' if measure.endswith('accuracy') else '.3f'}}}<extra></extra>",
        marker={"size": 12, "color": [colour for colour, _ in looks], "symbol": [symbol for _, symbol in looks]},
        error_x={"type": "data", "array": plain([c.error or 0.0 for c in scored]), "color": GREY},
    )
    x, y = score_axis(measure, nticks=5), {**ticks(titles), "range": [-0.6, len(scored) - 0.4]}
    score, best = score_text(measure), max(scored, key=lambda c: c.score or 0.0)
    rows = [[c.title, score(c.score), score(c.error)] for c in scored[::-1]]
    table = numbers(["learner", measure, "standard error"], rows, texts=(0,))
    alt = (
        f"Cross-validated {measure} of {len(scored)} learners with standard errors; the best is {best.title} with "
        f"{score(best.score)}."
    )
    height = 90 + max(34, 12 + 17 * n_lines) * len(scored)
    return chart_of("leaderboard", "Comparison of the learners", [trace], x, y, alt, table, height=height)


def course_chart(steps: Sequence[Step]) -> Chart:
    """Draw the reports of the solver over time; on a logarithmic axis where all are above 0."""
    names = list(dict.fromkeys(step.name for step in steps))[: len(LINES)]
    data = []
    for place, name in enumerate(names):
        of_it = [step for step in steps if step.name == name]
        data.append(line_of([s.seconds for s in of_it], [s.value for s in of_it], label(name), place))
    is_log = all(step.value > 0 for step in steps)
    what = names[0] if len(names) == 1 else "value"
    y = axis(label(what), **({"type": "log", "exponentformat": "power"} if is_log else {}))
    rows = [[digits(steps[i].seconds), steps[i].name, digits(steps[i].value)] for i in some_of(len(steps))]
    table = numbers(["seconds", "quantity", "value"], rows, texts=(1,))
    alt = (
        f"{capital(what)} over time: from {digits(steps[0].value)} to {digits(steps[-1].value)} after "
        f"{digits(steps[-1].seconds)} seconds."
    )
    return chart_of("course", "Progress of the training", data, axis("seconds", rangemode="tozero"), y, alt, table)


def _histogram(
    values: NDArray[np.float64], parts: Sequence[tuple[str, str, NDArray[np.bool_]]]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the bars of each part in its colour, and their layout; no bar straddles 0."""
    width = float(np.ptp(values)) / 40 or 1.0
    first, last = np.floor(values.min() / width), np.floor(values.max() / width) + 1
    edges = width * np.arange(first, last + 1)
    middles = (edges[:-1] + edges[1:]) / 2
    data = []
    for part, colour, is_of_it in parts:
        counts = np.histogram(values[is_of_it], edges)[0]
        bars = {"type": "bar", "x": plain(middles), "y": counts.tolist(), "name": label(part), "width": width}
        data.append({**bars, "marker": {"color": colour, "line": {"width": 0.5, "color": GREY}}})
    return data, {"barmode": "stack", "bargap": 0, "shapes": [_AT_ZERO]}


def margins_chart(
    values: NDArray[np.float64], parts: Sequence[tuple[str, str, NDArray[np.bool_]]], across: str
) -> Chart:
    """Draw a histogram of margins, each part of the rows in its colour."""
    data, look = _histogram(values, parts)
    rows = []
    for part, _colour, is_of_it in parts:
        some = values[is_of_it]
        ends = [digits(float(np.median(some))), digits(float(some.min()))]
        rows.append([part, f"{len(some):,}", f"{int((some <= 0).sum()):,}", *ends])
    table = numbers(["group", "rows", "on the wrong side", "median", "smallest"], rows, texts=(0,))
    alt = (
        f"Margins of {len(values):,} rows. On the wrong side of the boundary (0 or less): "
        f"{int((values <= 0).sum()):,}. Median: {digits(float(np.median(values)))}."
    )
    title, x, y = "Distance from the boundary (margins)", axis(across), axis("rows")
    return chart_of("margins", title, data, x, y, alt, table, **look, showlegend=True)


def search_chart(cells: Sequence[Cell], measure: str) -> Chart:
    """Draw the score at each C, or each C and γ."""
    best = max(cells, key=lambda cell: cell.score)
    rows = [[digits(c.C), digits(c.gamma), digits(c.score)] for c in sorted(cells, key=lambda c: -c.score)]
    table = numbers(["C", "gamma", measure], rows[:_TABLE_ROWS], caption="The best settings")
    gammas = sorted({cell.gamma for cell in cells if cell.gamma is not None})
    alt = f"{capital(measure)} of each setting that was tried; the best is {digits(best.score)} at C = {digits(best.C)}"
    title = "Search for the best settings"
    if not gammas:
        line = sorted(cells, key=lambda cell: cell.C)
        trace = line_of([c.C for c in line], [c.score for c in line], measure, mode="lines+markers")
        return chart_of("search", title, [trace], axis("C", type="log"), axis(measure), f"{alt}.", table)
    Cs = sorted({cell.C for cell in cells})
    score = {(cell.C, cell.gamma): cell.score for cell in cells}
    trace = {
        "type": "heatmap",
        "z": [[score.get((C, gamma)) for C in Cs] for gamma in gammas],
        "x": list(range(len(Cs))),
        "y": list(range(len(gammas))),
        "colorscale": "Cividis",  # made to look alike to everybody, colour-blind or not
        "xgap": 1,
        "ygap": 1,
        "customdata": [[[digits(C), digits(gamma)] for C in Cs] for gamma in gammas],
        "hovertemplate": "C %{customdata[0]}, gamma %{customdata[1]}: %{z:.4f}<extra></extra>",
        "colorbar": {"thickness": 12, "title": {"text": measure}},
    }
    at = {"x": [Cs.index(best.C)], "y": [gammas.index(best.gamma)] if best.gamma in gammas else [0]}
    star = {"symbol": "star", "size": 16, "color": RED, "line": {"color": "white", "width": 1.5}}
    data = [trace, marked(**at, marker=star, name="best", hoverinfo="skip")]
    x, y = (ticks([f"{float(f'{value:.2g}'):g}" for value in values]) for values in (Cs, gammas))
    x, y = axis("C", **x), {"title": {"text": "gamma", "standoff": 16}, **y}
    return chart_of("search", title, data, x, y, f"{alt}, gamma = {digits(best.gamma)}.", table, showlegend=False)


def pruning_chart(n_leaves: NDArray[Any], impurities: NDArray[Any], alphas: NDArray[Any], kept: int) -> Chart:
    """Draw the impurity against the number of leaves, from the whole tree to the root alone."""
    look: dict[str, Any] = {"mode": "lines+markers", "line": {"color": BLUE, "shape": "hv"}, "marker": {"size": 5}}
    trace = line_of(n_leaves, impurities, "grown, then pruned", **look)
    nearest = int(np.abs(np.asarray(n_leaves) - kept).argmin())
    diamond = {"size": 14, "symbol": "diamond", "color": RED}
    mark = marked([int(kept)], plain([impurities[nearest]]), name=f"this tree, {kept:,} leaves", marker=diamond)
    x = axis("leaves", **({"type": "log"} if int(np.max(n_leaves)) > 50 else {}))
    numbers_of = zip(n_leaves.tolist(), impurities.tolist(), alphas.tolist(), strict=True)
    rows = [[f"{int(n):,}", digits(impurity), digits(alpha, 3)] for n, impurity, alpha in numbers_of]
    table = numbers(["leaves", "remaining impurity", "best from α"], [rows[i] for i in some_of(len(rows))])
    alt = (
        f"The remaining impurity, by the number of leaves, from {int(n_leaves[0]):,} down to {int(n_leaves[-1]):,}; "
        f"this tree has {kept:,}."
    )
    title, y = "Size and impurity of the tree (pruning path)", axis("remaining impurity", rangemode="tozero")
    return chart_of("pruning", title, [trace, mark], x, y, alt, table)


def rounds_chart(series: Sequence[tuple[str, NDArray[np.float64]]], n_rounds: int) -> Chart:
    """Draw errors and bounds by round."""
    at = np.unique(np.linspace(0, n_rounds - 1, min(n_rounds, 200)).round().astype(int))
    data = [line_of(at + 1, values[at], label(name, 40), place) for place, (name, values) in enumerate(series)]
    rows = [[f"{i + 1:,}", *(digits(float(values[i])) for _, values in series)] for i in some_of(n_rounds)]
    table = numbers(["round", *(name for name, _ in series)], rows)
    last = ", ".join(f"{name} {digits(float(values[-1]))}" for name, values in series)
    alt, y = f"After {n_rounds:,} rounds: {last}.", axis("error or loss", rangemode="tozero")
    return chart_of("rounds", "Round by round", data, axis("round"), y, alt, table)


def vote_margins_chart(margins: Sequence[tuple[str, NDArray[np.float64]]]) -> Chart:
    """Draw the cumulative distribution of vote margins after some rounds."""
    at = np.linspace(-1, 1, 81)
    shares = [(name, np.searchsorted(np.sort(values), at, side="right") / len(values)) for name, values in margins]
    data = [line_of(at, share, name, place) for place, (name, share) in enumerate(reversed(shares))]
    x, y = axis("margin of the vote", range=[-1.02, 1.02]), share_axis("share of rows up to this margin")
    rows = [[digits(float(at[i]), 2), *(percent(float(share[i])) for _, share in shares)] for i in range(0, 81, 8)]
    table = numbers(["margin", *(name for name, _ in shares)], rows)
    wrong = ", ".join(f"{name} {percent(float((values <= 0).mean()))}" for name, values in margins)
    alt = f"The share of rows up to each margin of votes. Rows at 0 or below are predicted incorrectly: {wrong}."
    look = {"shapes": [_AT_ZERO], "showlegend": True}
    return chart_of("vote-margins", "How clear the vote is (margins)", data, x, y, alt, table, **look)


def truth_chart(truth: NDArray[np.float64], predicted: NDArray[np.float64], target: str) -> Chart:
    """Draw the truth against the predictions, a point for each row."""
    some = np.sort(np.random.default_rng(0).permutation(len(truth))[:1500])
    points = marked(
        plain(predicted[some]),
        plain(truth[some]),
        name="rows",
        marker={"color": BLUE, "size": 6, "opacity": 0.55},
        hovertemplate="estimated %{x}, true %{y}<extra></extra>",
    )
    ends = float(min(truth.min(), predicted.min())), float(max(truth.max(), predicted.max()))
    rows = []
    for places in np.array_split(np.argsort(predicted, kind="stable"), min(8, len(truth))):
        estimate, true = predicted[places], truth[places]
        means = [digits(float(each.mean())) for each in (estimate, true, np.abs(true - estimate))]
        rows.append([*means, f"{len(places):,}"])
    table = numbers(["mean estimate", "mean true value", "mean absolute error", "rows"], rows)
    title, data = "Estimates against true values", [points, diagonal("perfect", *ends)]
    alt = f"One point for each of {len(some):,} rows; on the dotted line the estimate is exact."
    return chart_of("estimates", title, data, axis("estimated"), axis(f"true {label(target)}"), alt, table, height=400)


def residual_chart(truth: NDArray[np.float64], predicted: NDArray[np.float64]) -> Chart:
    off = truth - predicted
    data, look = _histogram(off, [("rows", BLUE, np.ones(len(off), bool))])
    ends = [digits(float(end)) for end in np.quantile(off, [0.05, 0.25, 0.5, 0.75, 0.95])]
    rows = [list(pair) for pair in zip(("5 %", "25 %", "50 %", "75 %", "95 %"), ends, strict=True)]
    table = numbers(["share of rows", "true minus estimated is at most"], rows, texts=(0,))
    alt = f"True value minus estimate: half of the rows are between {ends[1]} and {ends[3]}."
    title, x, y = "Errors of the estimates (residuals)", axis("true minus estimated"), axis("rows")
    return chart_of("residuals", title, data, x, y, alt, table, **look, showlegend=False)
