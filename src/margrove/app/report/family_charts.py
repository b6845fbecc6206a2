"""Charts of single families: the progress of a solve, margins, searches, pruning paths, rounds, residuals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.history import Cell, Step
from margrove.app.report.blocks import Chart, Grid
from margrove.app.report.charts import (
    BLUE,
    GREY,
    LINES,
    RED,
    TABLE_ROWS,
    axis,
    capital,
    diagonal,
    digits,
    figure_of,
    label,
    line_of,
    marked,
    numbers,
    percent,
    plain,
    share_axis,
    some_of,
    ticks,
)

_AT_ZERO = {"type": "line", "x0": 0, "x1": 0, "yref": "paper", "y0": 0, "y1": 1, "line": {"width": 2, "color": GREY}}


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
    figure = figure_of(data, axis("seconds", rangemode="tozero"), y)
    rows = [[digits(steps[i].seconds), steps[i].name, digits(steps[i].value)] for i in some_of(len(steps))]
    return Chart(
        "course",
        "How the solve went",
        figure,
        f"{capital(what)} over time: from {digits(steps[0].value)} to {digits(steps[-1].value)} after "
        f"{digits(steps[-1].seconds)} seconds.",
        numbers(["seconds", "what", "value"], rows, texts=(1,)),
    )


def margins_chart(
    name: str, title: str, values: NDArray[np.float64], parts: Sequence[tuple[str, str, NDArray[np.bool_]]], across: str
) -> Chart:
    """Draw a histogram of margins, each part in its colour; no bar straddles 0."""
    width = float(np.ptp(values)) / 40 or 1.0
    first, last = np.floor(values.min() / width), np.floor(values.max() / width) + 1
    edges = width * np.arange(first, last + 1)
    middles = (edges[:-1] + edges[1:]) / 2
    data = []
    for part, colour, is_of_it in parts:
        counts = np.histogram(values[is_of_it], edges)[0]
        bars = {"type": "bar", "x": plain(middles), "y": counts.tolist(), "name": label(part), "width": width}
        data.append({**bars, "marker": {"color": colour, "line": {"width": 0.5, "color": GREY}}})
    look = {"barmode": "stack", "bargap": 0, "shapes": [_AT_ZERO], "showlegend": True}
    figure = figure_of(data, axis(across), axis("rows"), **look)
    table = []
    for part, _colour, is_of_it in parts:
        some = values[is_of_it]
        ends = [digits(float(np.median(some))), digits(float(some.min()))]
        table.append([part, f"{len(some):,}", f"{int((some <= 0).sum()):,}", *ends])
    wrong = int((values <= 0).sum())
    return Chart(
        name,
        title,
        figure,
        f"How many of {len(values):,} rows have which margin: {wrong:,} are at most 0, on the wrong side; the median "
        f"is {digits(float(np.median(values)))}.",
        numbers(["rows", "how many", "on the wrong side", "median", "smallest"], table, texts=(0,)),
    )


def search_chart(cells: Sequence[Cell], measure: str) -> Chart:
    """Draw the score at each C, or each C and γ."""
    best = max(cells, key=lambda cell: cell.score)
    rows = [[digits(c.C), digits(c.gamma), digits(c.score)] for c in sorted(cells, key=lambda c: -c.score)]
    table = numbers(["C", "gamma", measure], rows[:TABLE_ROWS], caption="The best")
    gammas = sorted({cell.gamma for cell in cells if cell.gamma is not None})
    words = f"{capital(measure)} over the cells of the search; the best is {digits(best.score)} at C = {digits(best.C)}"
    if not gammas:
        line = sorted(cells, key=lambda cell: cell.C)
        trace = line_of([c.C for c in line], [c.score for c in line], measure, mode="lines+markers")
        figure = figure_of([trace], axis("C", type="log"), axis(measure))
        return Chart("search", "What was searched", figure, f"{words}.", table)
    Cs = sorted({cell.C for cell in cells})
    score = {(cell.C, cell.gamma): cell.score for cell in cells}
    z = [[score.get((C, gamma)) for C in Cs] for gamma in gammas]
    trace = {
        "type": "heatmap",
        "z": z,
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
    mark = marked(**at, marker=star, name="best", hoverinfo="skip")
    x, y = (ticks([f"{float(f'{value:.2g}'):g}" for value in values]) for values in (Cs, gammas))
    gamma_axis = {"title": {"text": "gamma", "standoff": 16}, **y}
    figure = figure_of([trace, mark], axis("C", **x), gamma_axis, showlegend=False)
    return Chart("search", "What was searched", figure, f"{words}, gamma = {digits(best.gamma)}.", table)


def pruning_chart(n_leaves: NDArray[Any], impurities: NDArray[Any], alphas: NDArray[Any], kept: int) -> Chart:
    """Draw the impurity against the number of leaves, from the whole tree to the root alone."""
    trace = line_of(
        n_leaves, impurities, "grown, then cut back", mode="lines+markers", line={"color": BLUE, "shape": "hv"}
    )
    trace["marker"] = {"size": 5}
    nearest = int(np.abs(np.asarray(n_leaves) - kept).argmin())
    diamond = {"size": 14, "symbol": "diamond", "color": RED}
    name = f"this tree, {kept:,} leaves"
    mark = marked([int(kept)], plain([impurities[nearest]]), name=name, marker=diamond)
    x = axis("leaves", **({"type": "log"} if int(np.max(n_leaves)) > 50 else {}))
    figure = figure_of([trace, mark], x, axis("impurity left", rangemode="tozero"))
    places = some_of(len(alphas))
    rows = [[f"{int(n_leaves[i]):,}", digits(float(impurities[i])), digits(float(alphas[i]), 3)] for i in places]
    return Chart(
        "pruning",
        "Large trees and small ones (pruning path)",
        figure,
        f"The impurity that is left, by the number of leaves, from {int(n_leaves[0]):,} down to {int(n_leaves[-1]):,}; "
        f"this tree has {kept:,}.",
        numbers(["leaves", "impurity left", "α from which on it is best"], rows),
    )


def rounds_chart(series: Sequence[tuple[str, NDArray[np.float64]]], n_rounds: int) -> Chart:
    """Draw errors and bounds by round."""
    at = np.unique(np.linspace(0, n_rounds - 1, min(n_rounds, 200)).round().astype(int))
    data = [line_of(at + 1, values[at], label(name, 40), place) for place, (name, values) in enumerate(series)]
    figure = figure_of(data, axis("round"), axis("share", rangemode="tozero"))
    rows = [[f"{i + 1:,}", *(digits(float(values[i])) for _, values in series)] for i in some_of(n_rounds)]
    last = ", ".join(f"{name} {digits(float(values[-1]))}" for name, values in series)
    table = numbers(["round", *(name for name, _ in series)], rows)
    return Chart("rounds", "Round by round", figure, f"After {n_rounds:,} rounds: {last}.", table)


def vote_margins_chart(margins: Sequence[tuple[str, NDArray[np.float64]]]) -> Chart:
    """Draw the cumulative distribution of vote margins after some rounds."""
    at = np.linspace(-1, 1, 81)
    shares = [(name, np.searchsorted(np.sort(values), at, side="right") / len(values)) for name, values in margins]
    data = [line_of(at, share, name, place) for place, (name, share) in enumerate(reversed(shares))]
    x, y = axis("margin of the vote", range=[-1.02, 1.02]), share_axis("rows with at most this margin")
    figure = figure_of(data, x, y, shapes=[_AT_ZERO], showlegend=True)
    rows = [[digits(float(at[i]), 2), *(percent(float(share[i])) for _, share in shares)] for i in range(0, 81, 8)]
    wrong = ", ".join(f"{name} {percent(float((values <= 0).mean()))}" for name, values in margins)
    return Chart(
        "vote-margins",
        "How surely the trees vote",
        figure,
        f"The share of rows with at most a certain margin of votes. At most 0, which is wrong: {wrong}.",
        numbers(["margin", *(name for name, _ in shares)], rows),
    )


def truth_chart(truth: NDArray[np.float64], predicted: NDArray[np.float64], target: str) -> Chart:
    """Draw the truth against the predictions, a point for each row."""
    generator = np.random.default_rng(0)
    some = np.sort(generator.permutation(len(truth))[:1500])
    points = marked(
        plain(predicted[some]),
        plain(truth[some]),
        name="rows",
        marker={"color": BLUE, "size": 6, "opacity": 0.55},
        hovertemplate="estimated %{x}, true %{y}<extra></extra>",
    )
    ends = float(min(truth.min(), predicted.min())), float(max(truth.max(), predicted.max()))
    data = [points, diagonal("perfect", *ends)]
    figure = figure_of(data, axis("estimated"), axis(f"true {label(target)}"), height=400)
    words = f"Points of {len(some):,} rows; on the dotted line the estimate is exact."
    return Chart("estimates", "Estimates against the truth", figure, words, _by_estimate(truth, predicted))


def _by_estimate(truth: NDArray[np.float64], predicted: NDArray[np.float64]) -> Grid:
    rows = []
    for places in np.array_split(np.argsort(predicted, kind="stable"), min(8, len(truth))):
        off = truth[places] - predicted[places]
        estimate, true, error = predicted[places].mean(), truth[places].mean(), np.abs(off).mean()
        rows.append([digits(float(estimate)), digits(float(true)), digits(float(error)), f"{len(places):,}"])
    return numbers(["estimated, on average", "true, on average", "mean error", "rows"], rows)


def residual_chart(truth: NDArray[np.float64], predicted: NDArray[np.float64]) -> Chart:
    """Draw a histogram of residuals."""
    off, title = truth - predicted, "How far off it is (residuals)"
    chart = margins_chart("residuals", title, off, [("rows", BLUE, np.ones(len(off), bool))], "true less estimated")
    chart.figure["layout"]["showlegend"] = False
    ends = [float(end) for end in np.quantile(off, [0.05, 0.25, 0.5, 0.75, 0.95])]
    rows = [[name, digits(end)] for name, end in zip(("5 %", "25 %", "50 %", "75 %", "95 %"), ends, strict=True)]
    alt = f"How far the truth is from the estimate: half of the rows between {digits(ends[1])} and {digits(ends[3])}."
    table = numbers(["of the rows", "true less estimated is at most"], rows, texts=(0,))
    return Chart(chart.name, chart.title, chart.figure, alt, table)
