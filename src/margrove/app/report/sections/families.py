"""The details of each family: support vector machines and other margins, trees, votes of trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.models import learned
from margrove.app.report.blocks import Bar, Bars, Block, Folded, Grid, Listing, Section, bars_of, note
from margrove.app.report.charts import (
    course_chart,
    digits,
    margins_chart,
    pruning_chart,
    rounds_chart,
    search_chart,
    vote_margins_chart,
)
from margrove.app.report.explain import cell_text
from margrove.app.report.findings import Findings
from margrove.app.report.model_on_table import Subject
from margrove.app.report.plain_words import p_text
from margrove.app.report.sections.forest import forest_blocks
from margrove.app.report.tree_picture import drawn_tree
from margrove.boost.explain import vote_margins
from margrove.data.columns import clip
from margrove.explanation import ModelSummary
from margrove.plots.evaluation import MEANINGS
from margrove.plots.style import GRADE_COLOURS, colour_of
from margrove.svm.margins import margins

_MARGIN_ROWS = 5_000  # whose margins are measured; of more a sample
_EXTREME_ROWS = 5  # most typical, and hardest
_SHOWN_COLUMNS = 8  # of a row
_SHOWN_RULES, _MOST_RULES = 12, 40  # at once, and folded away
_LEVELS_OF_RULE = 6
_SHOWN_ROUNDS = 10
_SHOWN_MACHINES = 12
_MOST_LINES = 60  # of a tree's rules, nested
_WHY_VOTES = (
    "Each tree only needs to be slightly better than chance. Its error is weighted: rows that earlier trees predicted "
    "incorrectly count more."
)
_LOSS_IS_BOUND = " The training error stays below the mean exponential loss, which decreases in every round."
_P_VALUE = "A small p-value means that the rows of a rule are unlikely to be a random draw from all rows."
_OVER_ALL_MACHINES = (
    "Several machines decide together, and each row is counted once, with its smallest margin. So more rows can be on "
    "the wrong side here than are predicted incorrectly: the vote of all machines may still be correct."
)


def machine_section(found: Findings) -> Section | None:
    """Describe the parts of the model: a tree, a vote of trees, or machines with their margins."""
    subject = found.subject
    # Weights are scaled by the deviations of the training rows, and of no others.
    trained_on = subject.sample if subject.is_training and subject.is_training_known else None
    summary = learned(subject.model, trained_on)
    if summary.kind == "rules":
        title, (blocks, data) = "The tree", _tree(subject)
    elif summary.forest is not None:
        title, (blocks, data) = "The forest", forest_blocks(subject, summary, summary.forest)
    elif summary.kind in ("trees", "learners"):
        title, (blocks, data) = "The vote", _vote(subject, summary)
    else:
        known = found.importances  # the most important columns first
        columns = subject.table.names if known is None else [column.name for column in known.columns]
        blocks, data = _margin(subject, summary, columns)
        title = "The margin" if subject.explanation.has_margins else "The model"
    search, course = subject.history.search, subject.history.course
    if len(search) > 1:
        blocks.append(search_chart(search, subject.measure))
        data["search"] = [asdict(cell) for cell in search]
    if len(course) > 1:
        blocks.append(course_chart(course))
        data["course"] = [asdict(step) for step in course]
    return Section("model", title, blocks, data) if blocks else None


def _tree(subject: Subject) -> tuple[list[Block], dict[str, Any]]:
    learner = subject.learner
    rules = learner.rules(style="lines")
    blocks: list[Block] = [drawn_tree(learner)]
    names = [str(label) for label in getattr(learner, "classes_", ())]
    rows = [
        [rule.condition(_LEVELS_OF_RULE), rule.outcome(), f"{rule.support:,}", rule.sure(), p_text(rule.p_value)]
        for rule in rules.rules[:_MOST_RULES]
    ]
    header = ["if", "then", "rows", "share correct", "p-value"]
    if not names:  # of numbers a rule has neither a share nor a p-value
        header, rows = header[:3], [row[:3] for row in rows]
    numeric, long = frozenset(range(2, len(header))), frozenset({0})
    blocks.append(Grid(header, rows[:_SHOWN_RULES], "The rules, largest first", numeric, long=long))
    if len(rows) > _SHOWN_RULES:
        more = len(rules.rules) - len(rows)
        caption = f"and {more:,} more: margrove show MODEL --lines" if more else ""
        others = Grid(header, rows[_SHOWN_RULES:], caption, numeric, long=long)
        blocks.append(Folded(f"{len(rows) - _SHOWN_RULES:,} smaller rules", [others]))
    if names:
        blocks.append(note(_P_VALUE))
    nested = str(learner.rules()).splitlines()
    if len(nested) <= _MOST_LINES:
        blocks.append(Folded("The same rules, nested", [Listing("\n".join(nested))]))
    path = learner.cost_complexity_path()
    if len(path.ccp_alphas) > 2:
        blocks.append(pruning_chart(path.n_leaves, path.impurities, path.ccp_alphas, learner.get_n_leaves()))
    data = {"leaves": learner.get_n_leaves(), "depth": learner.get_depth(), "rules": rules.data()}
    return blocks, data


def _vote(subject: Subject, summary: ModelSummary) -> tuple[list[Block], dict[str, Any]]:
    learner, blocks, vote = subject.learner, list[Block](), summary.vote
    data: dict[str, Any] = {"rounds": summary.size}
    if vote is not None:
        has_alpha = vote.voters[0].alpha is not None
        rows = []
        for v in vote.voters[:_SHOWN_ROUNDS]:
            weight = v.alpha if has_alpha else v.vote
            rows.append([f"{v.round:,}", clip(v.test, 90), f"{v.n_leaves:,}", digits(v.error), digits(weight)])
        header = ["round", "first test", "rules", "error" if has_alpha else "loss", "α" if has_alpha else "vote"]
        more = len(vote.voters) - len(rows)
        caption = f"The first trees, and {more:,} more" if more > 0 else "The trees"
        blocks.append(Grid(header, rows, caption, frozenset({0, 2, 3, 4})))
    rounds = getattr(learner, "rounds_", None)
    if rounds is not None and rounds.n_rounds > 1:
        series = [("training error", rounds.training_error), ("mean exponential loss", rounds.loss)]
        if rounds.n_classes == 2 and not np.allclose(rounds.bound, rounds.loss):  # the same with the best votes
            series.append(("bound on the training error", rounds.bound))
        if rounds.validation_error is not None:
            series.append(("error on held-out rows", rounds.validation_error))
        series.append(("error of the tree itself", rounds.error))
        finite = [(name, values) for name, values in series if np.isfinite(values).all()]
        words = _WHY_VOTES + (_LOSS_IS_BOUND if rounds.n_classes == 2 else "")
        blocks += [rounds_chart(finite, rounds.n_rounds), note(words)]
        data["training_error"] = rounds.training_error.tolist()
    if subject.scored is not None and subject.classes is not None:
        blocks.append(_vote_margins(subject))
    return blocks, data


def _vote_margins(subject: Subject) -> Block:
    scored, learner = subject.scored, subject.learner
    assert scored is not None
    some = np.sort(np.random.default_rng(0).permutation(len(scored.truth))[:2000])
    rows = subject.encoded(subject.scored_places[some])
    wanted = sorted({min(5, learner.n_estimators_), min(20, learner.n_estimators_), learner.n_estimators_})
    staged = islice(learner.staged_decision_function(rows), wanted[-1])
    found = [
        (f"after {t} rounds" if t > 1 else "after 1 round", vote_margins(np.asarray(decision), scored.truth[some]))
        for t, decision in enumerate(staged, start=1)
        if t in wanted
    ]
    return vote_margins_chart(found)


def _margin(subject: Subject, found: ModelSummary, columns: Sequence[str]) -> tuple[list[Block], dict[str, Any]]:
    blocks, data = _machines(found), found.to_dict()
    scored = subject.scored
    if scored is None or scored.rows is None or scored.classes is None or not subject.explanation.has_margins:
        return blocks, data
    some = np.sort(np.random.default_rng(0).permutation(len(scored.truth))[:_MARGIN_ROWS])
    rows, truth = scored.rows[some], scored.truth[some]
    encoded = subject.encoded(subject.scored_places[some])
    labels = subject.learner.classes_[truth]
    distance = margins(subject.learner, encoded, labels).geometric
    if distance.ndim > 1:
        distance = np.fmin.reduce(distance, axis=1)
    if not np.isfinite(distance).all():
        return blocks, data
    grades = _grades(subject, rows)
    is_one = len(scored.classes) == 2
    axis = "distance from the boundary" if is_one else "smallest distance from a boundary"
    blocks.append(margins_chart(distance, _parts(scored.classes, truth, grades), axis))
    if not is_one:
        blocks.append(note(_OVER_ALL_MACHINES))
    if subject.is_training and grades is None:
        was = "was" if subject.is_training_known else "may have been"
        blocks.append(note(f"The model {was} trained on these rows; of new rows, more would be on the wrong side."))
    if grades is not None:
        counts = {grade: int((grades == grade).sum()) for grade in MEANINGS}
        over_all = "" if is_one else ", each graded by the machine for which it is hardest,"
        text = (
            f"Of {len(rows):,} training rows{over_all} {counts['easy']:,} are easy: far on the correct side; the "
            f"model would be the same without them. {counts['marginal']:,} are marginal: on the edge of the margin. "
            f"{counts['hard']:,} are hard: inside the margin or on the wrong side."
        )
        blocks.append(note(text))
        data["points"] = counts
    blocks += _extremes(subject, distance, some, columns)
    data["margins"] = {"smallest": float(distance.min()), "median": float(np.median(distance))}
    return blocks, data


def _grades(subject: Subject, rows: NDArray[np.intp]) -> NDArray[np.str_] | None:
    """Return easy, marginal or hard for each training row; None where the rows are others."""
    learner, grades = subject.learner, subject.explanation.grades()
    if not subject.is_training or grades is None or callable(learner.kernel):
        return None
    # Else they are the same rows in another order.
    return grades[rows] if subject.has_at(learner.support_, learner.support_vectors_) else None


def _parts(
    classes: list[str], codes: NDArray[np.intp], grades: NDArray[np.str_] | None
) -> list[tuple[str, str, NDArray[np.bool_]]]:
    if grades is not None:
        found = [(f"{name} ({MEANINGS[name]})", GRADE_COLOURS[name], grades == name) for name in reversed(MEANINGS)]
    elif len(classes) <= 7:
        found = [(name, colour_of(code), codes == code) for code, name in enumerate(classes)]
    else:
        found = [("all classes", colour_of(0), np.ones(len(codes), bool))]
    return [part for part in found if part[2].any()]


def _extremes(
    subject: Subject, distance: NDArray[np.float64], places: NDArray[np.intp], columns: Sequence[str]
) -> list[Block]:
    """Return tables of the rows with the largest and the smallest margins. ``places`` are those of the measured rows
    among the scored ones."""
    table, scored, classes = subject.table, subject.scored, subject.classes
    if table.sparse is not None or scored is None or scored.rows is None or classes is None:
        return []
    shown = [table[name] for name in columns if name in table][:_SHOWN_COLUMNS]
    header = ["row", subject.target, "predicted", "margin", *(column.name for column in shown)]
    order = np.argsort(distance, kind="stable")
    found: list[Block] = []
    for title, chosen in (("The most typical rows", order[::-1]), ("The hardest rows", order)):
        lines = []
        for at in chosen[:_EXTREME_ROWS].tolist():
            place = int(places[at])
            row = int(scored.rows[place])
            codes = int(scored.truth[place]), int(scored.predicted[place])
            named = [classes[code] for code in codes]
            lines.append([f"{row + 1:,}", *named, f"{distance[at]:.3g}", *(cell_text(c, row) for c in shown)])
        found.append(Folded(title, [Grid(header, lines, "", frozenset({0, 3}))]))
    return found


def _machines(found: ModelSummary) -> list[Block]:
    blocks: list[Block] = []
    if found.kind == "weights":
        for machine in found.machines[:_SHOWN_MACHINES]:
            shares = {fact.description: (-1) ** fact.is_against * abs(fact.weight) for fact in machine.evidence}
            bars = [Bar(name, share, f"{abs(share):.2f}") for name, share in shares.items()]
            rather = "" if machine.negative == "the rest" else f" rather than {machine.negative!r}"
            sides = ("against it", "for it") if any(fact.is_against for fact in machine.evidence) else ("", "")
            if bars:
                blocks.append(Bars(bars, f"Evidence for {machine.positive!r}{rather}", *sides))
        more = len(found.machines) - _SHOWN_MACHINES
        if more > 0:
            blocks.append(note(f"… and {more:,} more machines."))
        strongest = "1 is the strongest. Correlated columns share their weight or cancel out."
        blocks.append(note(f"Weights{found.unit}; {strongest}"))
    if found.support is not None:
        counts = dict(sorted(found.support.items(), key=lambda pair: -pair[1])[:_MOST_RULES])
        n_support = f"{sum(found.support.values()):,} of {found.n_training_rows or 0:,}"
        caption = f"Training rows that define the boundary (support vectors): {n_support}"
        support = Bars(bars_of(counts, "{:,}".format), caption)
        blocks.append(support if len(counts) <= _SHOWN_MACHINES else Folded(caption, [support]))
    if found.kind == "votes":
        rows = [[one.positive, one.negative, f"{one.n_voters or 0:,}"] for one in found.machines[:_MOST_RULES]]
        blocks.append(Grid(["class", "against", "weight vectors that vote"], rows, "", frozenset({2})))
    if found.kind == "machines":
        rows = [[machine.positive, machine.negative] for machine in found.machines[:30]]
        more = len(found.machines) - len(rows)
        caption = f"The machines; each is a {found.unit}" + (f"; and {more:,} more" if more else "")
        blocks.append(Grid(["classes", "against"], rows, caption))
    return blocks
