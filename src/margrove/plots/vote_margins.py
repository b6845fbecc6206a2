"""The margins of AdaBoost's vote, after some of its rounds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.boost.explain import vote_margins
from margrove.data.sample import codes_of
from margrove.errors import InputError, ParameterError, check_whole
from margrove.plots.arguments import check_labels, check_model, check_rows
from margrove.plots.displays import EstimatorDisplay
from margrove.plots.evaluation import Predictor, last_step
from margrove.plots.style import LINE_COLOURS, as_typed, axes_for, draw_grid, ink, legend_outside

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINES = ("solid", "dashed", "dotted", "dashdot")  # beside the colours; the last round is solid


@as_typed
def plot_vote_margins(
    model: Predictor, X: Any, y: Any, *, rounds: Sequence[int | None] = (5, 20, None), ax: Axes | None = None
) -> Axes:
    """Draw the cumulative distribution of the margins of a vote, after some of its rounds.

    The margin of a row is the share of votes for its class minus that for the strongest other class, from −1 to 1. A
    misclassified row has a margin ≤ 0. Further rounds often move the curve to the right after the training error has
    reached 0, and may still lower the error on new rows.

    Parameters
    ----------
    model : a fitted `AdaBoostClassifier`, or a ``Pipeline`` that ends in one
        Margrove's or scikit-learn's.
    X : data frame, Table, array or sparse matrix
    y : labels of shape (n,)
    rounds : sequence of int or None, default=(5, 20, None)
        Numbers of rounds; None, and more than there are, mean all.
    ax : matplotlib Axes, default: a new figure

    Examples
    --------
    >>> from margrove import AdaBoostClassifier, load_penguins
    >>> from margrove.plots import plot_vote_margins
    >>> penguins = load_penguins()
    >>> model = AdaBoostClassifier(n_estimators=10).fit(penguins, penguins.labels())
    >>> ax = plot_vote_margins(model, penguins, penguins.labels())
    >>> [text.get_text() for text in ax.get_legend().get_texts()][:2]
    ['after 5 rounds:\\n4.4 % at most 0', 'after 10 rounds:\\n2.0 % at most 0']
    """
    check_model("model", model, wanted="a fitted AdaBoostClassifier")
    check_rows(X, model)
    check_labels(y)
    learner, rows = last_step(model, X)
    if not hasattr(learner, "staged_decision_function") or not hasattr(learner, "estimator_weights_"):
        raise InputError(f"{type(learner).__name__} has no votes for classes", cure="Use an AdaBoostClassifier.")
    wanted = _settled(rounds, len(learner.estimators_))
    codes = codes_of(y, learner.classes_)
    found = {}
    for t, decision in enumerate(islice(learner.staged_decision_function(rows), max(wanted)), start=1):
        if len(decision) != len(codes):
            raise InputError(f"X has {len(decision)} rows and y has {len(codes)}")
        if t in wanted:
            found[t] = vote_margins(np.asarray(decision), codes)
    ax = axes_for(ax, 7.2, 3.8)
    for place, t in enumerate(wanted):
        line = {"color": LINE_COLOURS[place % len(LINE_COLOURS)], "linestyle": _LINES[(len(wanted) - 1 - place) % 4]}
        label = f"after {t:,} round{'' if t == 1 else 's'}:\n{100 * float(np.mean(found[t] <= 0)):.1f} % at most 0"
        values, counts = np.unique(found[t], return_counts=True)
        share = np.cumsum(counts) / len(codes)
        ax.step([-1.05, *values, 1.05], [0.0, *share, 1.0], where="post", linewidth=1.6, label=label, **line)
    ax.axvline(0.0, color=ink(), linewidth=1.2)
    ax.axvspan(-1.05, 0.0, facecolor=ink(), alpha=0.07, zorder=0, label="misclassified")
    draw_grid(ax)
    ax.set(xlim=(-1.05, 1.05), xlabel="margin of the vote", title=f"{type(learner).__name__}, {len(codes):,} rows")
    ax.set(ylim=(0, 1.02), ylabel="share of rows\nwith at most this margin")
    legend_outside(ax)
    return ax


class VoteMarginsDisplay(EstimatorDisplay, picture=plot_vote_margins):
    """The distribution of the margins of a vote: `plot_vote_margins`."""


def _settled(rounds: Sequence[int | None], n_rounds: int) -> list[int]:
    """Return the numbers of rounds, each once, in ascending order."""
    if not isinstance(rounds, (list, tuple)) or not rounds:
        raise ParameterError(f"rounds is {rounds!r}; it must be a list of round numbers, such as [5, 20, None].")
    for number in rounds:
        if number is not None:
            check_whole("rounds", number, least=1)
    return sorted({n_rounds if number is None else min(int(number), n_rounds) for number in rounds})
