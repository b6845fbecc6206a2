"""The details of a forest: its size, its out-of-bag score, its error by the number of trees, the importances."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from margrove.app.models import last_step_of
from margrove.app.report.blocks import Block, Chart, Figure, Headline, note
from margrove.app.report.charts import (
    BLUE,
    GREY,
    axis,
    capital,
    chart_of,
    digits,
    label,
    line_of,
    marked,
    numbers,
    percent,
    plain,
    some_of,
    ticks,
)
from margrove.app.report.model_on_table import MOST_ROWS, Subject
from margrove.explanation import ForestSummary, ModelSummary
from margrove.forest.course import ForestCourse, out_of_bag_course

_SHOWN_COLUMNS = 15
_OUT_OF_BAG = (
    "Out of bag: each tree is grown from rows drawn with replacement, so it has not seen some of them, usually about a "
    "third. Each row is predicted by the trees that have not seen it, so this score needs no rows set aside. It should "
    "be close to the score on held-out rows; it is often a little lower, as fewer trees predict each row."
)
_SPREAD = (
    "The share of each column in the gain of all tests: the mean over the trees and, as a line, where nine of ten "
    "trees lie. A long line means that the trees use different columns, which often replace each other."
)


def forest_blocks(subject: Subject, summary: ModelSummary, forest: ForestSummary) -> tuple[list[Block], dict[str, Any]]:
    """Return the blocks and the data of the section about a forest."""
    figures = [
        Figure("trees", f"{summary.size:,}"),
        Figure("leaves of a tree, on average", f"{forest.n_leaves:,.0f}", f"depth {forest.depth:.0f}"),
    ]
    if forest.out_of_bag is not None:
        value = percent(forest.out_of_bag) if forest.measure == "accuracy" else f"{forest.out_of_bag:.3f}"
        figures.append(Figure(f"out-of-bag {forest.measure}", value))
    blocks: list[Block] = [Headline(figures)]
    data: dict[str, Any] = {**asdict(forest), "trees": summary.size}
    if forest.out_of_bag is not None:
        blocks.append(note(_OUT_OF_BAG))
    course = _course(subject)
    if course is not None:
        blocks.append(_course_chart(course))
        data["out_of_bag_error"] = {"trees": course.n_trees.tolist(), "error": course.error.tolist()}
    if forest.importances:
        blocks += [_importance_chart(forest), note(_SPREAD)]
    return blocks, data


def _course(subject: Subject) -> ForestCourse | None:
    """Return the out-of-bag error by the number of trees; None if the table is not that of the training."""
    learner, target = subject.learner, subject.table.target
    is_own = subject.is_training and subject.is_training_known and last_step_of(subject.model) is learner
    if not is_own or not learner.bootstrap or target is None or learner.n_rows_ != subject.table.n_rows:
        return None
    labels = subject.table.labels() if subject.classes is not None else target.values
    rows = subject.encode(subject.table.with_target(None))
    course = out_of_bag_course(learner, rows, labels, most_rows=MOST_ROWS)
    return course if len(course.error) > 1 else None


def _course_chart(course: ForestCourse) -> Chart:
    is_share = course.measure == "error rate"
    text = percent if is_share else digits
    trace = line_of(course.n_trees, course.error, f"out-of-bag {course.measure}")
    rows = [[f"{course.n_trees[i]:,}", text(float(course.error[i]))] for i in some_of(len(course.error))]
    table = numbers(["trees", f"out-of-bag {course.measure}"], rows)
    y = axis(f"out-of-bag {course.measure}", rangemode="tozero", **({"tickformat": ".1%"} if is_share else {}))
    half = int((course.n_trees <= max(1, int(course.n_trees[-1]) // 2)).nonzero()[0][-1])
    alt = (
        f"{capital(course.measure)} of the first trees: {text(float(course.error[0]))} with {course.n_trees[0]:,}, "
        f"{text(float(course.error[half]))} with {course.n_trees[half]:,}, {text(float(course.error[-1]))} with "
        f"{course.n_trees[-1]:,}. Where the line is flat, more trees would not help."
    )
    return chart_of("forest-error", "Would more trees help?", [trace], axis("trees"), y, alt, table)


def _importance_chart(forest: ForestSummary) -> Chart:
    shown = list(forest.importances.items())[:_SHOWN_COLUMNS]
    ends = [forest.spread[name] for name, _ in shown]
    names, means = [label(name) for name, _ in shown][::-1], [share for _, share in shown][::-1]
    trace = marked(
        plain(means),
        list(range(len(names))),
        marker={"size": 10, "color": BLUE},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": plain([max(0.0, high - share) for (_, share), (_, high) in zip(shown, ends, strict=True)][::-1]),
            "arrayminus": plain(
                [max(0.0, share - low) for (_, share), (low, _) in zip(shown, ends, strict=True)][::-1]
            ),
            "color": GREY,
        },
        text=names,
        hovertemplate="%{text}: %{x:.1%}<extra></extra>",
    )
    between = [f"{percent(low)} – {percent(high)}" for low, high in ends]
    rows = [[name, percent(share), text] for (name, share), text in zip(shown, between, strict=True)]
    table = numbers(["column", "mean share", "nine of ten trees"], rows, texts=(0,))
    first, share = shown[0]
    on_average = f"{percent(share)} of the gain on average, {between[0]} in nine of ten trees"
    alt = f"The most important column is {first!r}: {on_average}."
    x, y = axis("share of the gain", tickformat=".0%", rangemode="tozero"), {**ticks(names), "automargin": True}
    height = 120 + 26 * len(names)
    return chart_of(
        "importance-by-tree", "Importance of columns, tree by tree", [trace], x, y, alt, table, height=height
    )
