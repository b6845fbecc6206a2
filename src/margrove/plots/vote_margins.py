"""How surely a vote judges: the margins of AdaBoost, and how they grow with the rounds (THEORY B2)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margrove.boost.explain import vote_margins
from margrove.data.sample import codes_of
from margrove.errors import InputError, ParameterError, check_whole
from margrove.plots.arguments import check_axes, check_columns, check_labels, check_model, check_rows
from margrove.plots.judgement import Predictor, last_step
from margrove.plots.style import OKABE_ITO, as_typed, ink, legend_outside, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINES = ("solid", "dashed", "dotted", "dashdot")  # beside the colours, from the last of the rounds back
_COLOURS = OKABE_ITO[:-1]  # all but yellow, which is hard to see as a line


@as_typed
def plot_vote_margins(
    model: Predictor, X: Any, y: Any, *, rounds: Sequence[int | None] = (5, 20, None), ax: Axes | None = None
) -> Axes:
    """Draw the cumulative distribution of the margins of a vote, after some of its rounds.

    The margin of a row is the share of votes for its class less that for the strongest other class, from −1 to 1. A
    row that is judged wrongly has a margin ≤ 0. Further rounds push the curve to the right, often long after the
    training error has come to 0: the vote gets surer, and that is why boosting may go on to help.

    Parameters
    ----------
    model : a fitted `AdaBoostClassifier`, or a ``Pipeline`` that ends in one
        scikit-learn's of that name will do as well.
    X : data frame, Table, array or sparse matrix
    y : labels of shape (n,)
    rounds : sequence of int or None, default=(5, 20, None)
        After how many rounds; None, and more than there are, mean all.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if left out.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If the model's learners do not vote for classes.

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
    check_axes("ax", ax)
    check_rows(X)
    check_columns(model, X)
    check_labels(y)
    learner, rows = last_step(model, X)
    if not hasattr(learner, "staged_decision_function") or not hasattr(learner, "estimator_weights_"):
        raise InputError(f"{type(learner).__name__} has no votes for classes", cure="Give an AdaBoostClassifier.")
    wanted = _settled(rounds, len(learner.estimators_))
    codes = codes_of(y, learner.classes_)
    stages = islice(learner.staged_decision_function(rows), max(wanted))
    found = {t: _margins(decision, codes) for t, decision in enumerate(stages, start=1) if t in wanted}
    ax = new_axes(7.2, 3.8) if ax is None else ax
    for place, t in enumerate(wanted):
        _draw(ax, found[t], t, place, len(wanted))
    ax.axvline(0.0, color=ink(), linewidth=1.2)
    ax.axvspan(-1.05, 0.0, facecolor=ink(), alpha=0.07, zorder=0, label="wrong")
    ax.set_xlim(-1.05, 1.05)
    ax.set_ylim(0, 1.02)
    ax.grid(color=ink(), alpha=0.12, linewidth=0.6)
    ax.set_xlabel("margin of the vote")
    ax.set_ylabel("share of rows\nwith at most this margin")
    ax.set_title(f"{type(learner).__name__}, {len(codes):,} rows")
    legend_outside(ax)
    return ax


def _settled(rounds: Sequence[int | None], n_rounds: int) -> list[int]:
    """After how many rounds, each number once, in ascending order."""
    if not isinstance(rounds, (list, tuple)) or not rounds:
        raise ParameterError(f"rounds is {rounds!r}; it must be a list of numbers of rounds, such as [5, 20, None].")
    for number in rounds:
        if number is not None:
            check_whole("rounds", number, least=1)
    return sorted({n_rounds if number is None else min(int(number), n_rounds) for number in rounds})


def _margins(decision: NDArray[np.float64], codes: NDArray[np.intp]) -> NDArray[np.float64]:
    if len(decision) != len(codes):
        raise InputError(f"X has {len(decision)} rows and y has {len(codes)}")
    return vote_margins(np.asarray(decision), codes)


def _draw(ax: Axes, margins: NDArray[np.float64], n_rounds: int, place: int, n_places: int) -> None:
    values, counts = np.unique(margins, return_counts=True)
    share = np.cumsum(counts) / len(margins)
    wrong = float(np.mean(margins <= 0))
    counted = f"{n_rounds:,} round{'' if n_rounds == 1 else 's'}"
    ax.step(
        np.concatenate([[-1.05], values, [1.05]]),
        np.concatenate([[0.0], share, [1.0]]),
        where="post",
        color=_COLOURS[place % len(_COLOURS)],
        linestyle=_LINES[(n_places - 1 - place) % len(_LINES)],
        linewidth=1.6,
        label=f"after {counted}:\n{100 * wrong:.1f} % at most 0",
    )
