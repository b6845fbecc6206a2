"""The rounds of AdaBoost: errors, loss and bound, ε and α of each round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margrove.errors import InputError
from margrove.plots.arguments import check_model
from margrove.plots.displays import EstimatorDisplay
from margrove.plots.evaluation import last_step_of
from margrove.plots.style import (
    as_typed,
    colour_of,
    dot_of,
    draw_grid,
    ink,
    legend_outside,
    stacked_axes,
    use_integers,
    write_plainly,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.pipeline import Pipeline

    from margrove.boost.classifier import AdaBoostClassifier
    from margrove.boost.model import Rounds

_WIDTH = 8.6
_HEIGHTS = (2.2, 1.0, 1.0)  # inches of the panels: four curves in the first
_LEAST_SHOWN = 1e-4  # of an error or loss: the axis does not go below
_TRAINING, _HELD_OUT, _LOSS, _LEARNER = colour_of(0), colour_of(5), colour_of(2), colour_of(3)


@as_typed
def plot_rounds(
    model: AdaBoostClassifier | Pipeline, *, axes: Sequence[Axes] | NDArray[Any] | None = None
) -> NDArray[Any]:
    """Draw the errors, the loss and the learners of AdaBoost, round by round.

    The upper panel is logarithmic: the training error of the vote so far, its error on rows held out, if any, and the
    mean exponential loss. With two classes that loss bounds the training error; with ``learning_rate=1`` it is
    Π 2 √(ε (1 − ε)), drawn dotted on top of it. The other panels have the weighted error ε_t of each learner, below the
    line of chance 1 − 1/K, and its weight α_t. With early stopping the rounds that were not kept are shaded.

    Parameters
    ----------
    model : a fitted `AdaBoostClassifier`, or a ``Pipeline`` that ends in one
        A regression has no such rounds, nor has another library's model.
    axes : sequence of three matplotlib Axes, default: a new figure
        From top to bottom.

    Returns
    -------
    array of matplotlib Axes
        Errors and loss, ε_t, α_t; ``axes[0].figure`` is the figure.

    Examples
    --------
    >>> from margrove import AdaBoostClassifier, load_penguins
    >>> from margrove.plots import plot_rounds
    >>> penguins = load_penguins()
    >>> axes = plot_rounds(AdaBoostClassifier(n_estimators=10).fit(penguins, penguins.labels()))
    >>> [ax.get_ylabel().replace("\\n", " ") for ax in axes]
    ['error, loss', 'weighted error ε', 'α']
    """
    learner = last_step_of(model)
    check_model("model", learner, wanted="a fitted AdaBoostClassifier")
    rounds: Rounds | None = getattr(learner, "rounds_", None)
    if rounds is None:
        raise InputError(
            f"{type(learner).__name__} of {type(learner).__module__.split('.')[0]} keeps no record of its rounds",
            cure="Use Margrove's AdaBoostClassifier.",
        )
    places = stacked_axes(axes, _WIDTH, _HEIGHTS, 1.4, "errors, ε and α", "panels: errors, ε and α.")
    _draw_errors(places[0], rounds, is_plain_rate=learner.learning_rate == 1)
    _draw_learners(places[1], rounds.error, "weighted\nerror ε")
    chance = 1 - 1 / rounds.n_classes
    places[1].axhline(chance, color=ink(), linewidth=1.0, linestyle="dotted", label=f"chance, {chance:.3g}")
    places[1].set_ylim(0, 1.15 * chance)
    _draw_learners(places[2], rounds.alpha, "α")
    places[2].set_ylim(bottom=0)
    for ax in places:
        ax.set_xlim(0.5, rounds.n_rounds + 0.5)
        draw_grid(ax)
        _mark_kept(ax, rounds, is_named=ax is places[0])
    for ax in places[:2]:
        legend_outside(ax)
    use_integers(places[-1].xaxis, min_n_ticks=1)
    places[-1].set_xlabel("round")
    counted = f"{rounds.n_rounds:,} round{'' if rounds.n_rounds == 1 else 's'}, {learner.status_}"
    places[0].set_title(f"{type(learner).__name__} of {type(learner.estimator_).__name__}\n{counted}")
    return places


class RoundsDisplay(EstimatorDisplay, picture=plot_rounds):
    """The rounds of AdaBoost, three panels: `plot_rounds`."""


def _draw_errors(ax: Axes, rounds: Rounds, *, is_plain_rate: bool) -> None:
    number = np.arange(1, rounds.n_rounds + 1)
    is_two = rounds.n_classes == 2
    meaning = "bounds the training error" if is_two else f"no bound: {rounds.n_classes} classes"
    look: dict[str, Any] = {"linewidth": 1.6, "marker": dot_of(rounds.n_rounds), "markersize": 2.5}
    ax.plot(number, rounds.loss, color=_LOSS, label=f"exponential loss\n({meaning})", **look)
    if is_two and is_plain_rate:
        ax.plot(number, rounds.bound, color=ink(), linestyle="dotted", linewidth=1.6, label="Π 2 √(ε (1 − ε))")
    if rounds.validation_error is not None:
        ax.plot(number, rounds.validation_error, color=_HELD_OUT, label="error, rows held out", **look)
    ax.plot(number, rounds.training_error, color=_TRAINING, label="error, training rows", **look)
    ax.set_yscale("log", nonpositive="clip")
    errors = [rounds.training_error, *([] if rounds.validation_error is None else [rounds.validation_error])]
    seen = np.concatenate([*errors, rounds.loss[-1:] if is_two else []])
    seen = seen[seen >= _LEAST_SHOWN]
    ax.set_ylim(0.8 * float(seen.min(initial=rounds.loss[0])), 1.1 * max(1.0, float(rounds.loss.max())))
    write_plainly(ax.yaxis)
    ax.set_ylabel("error, loss")


def _draw_learners(ax: Axes, values: NDArray[np.float64], name: str) -> None:
    number = np.arange(1, len(values) + 1)
    ax.plot(number, values, color=_LEARNER, linewidth=1.2, marker=dot_of(len(values)), markersize=2.5)
    ax.set_ylabel(name)


def _mark_kept(ax: Axes, rounds: Rounds, *, is_named: bool) -> None:
    """Mark the last round in the model if rows held out have chosen it."""
    if rounds.validation_error is None:
        return
    kept = rounds.best_round
    name = f"kept: rounds 1 … {kept}" if is_named else None
    ax.axvline(kept, color=ink(), linewidth=1.2, linestyle="dashed", label=name)
    if kept < rounds.n_rounds:
        ax.axvspan(kept, rounds.n_rounds + 0.5, facecolor=ink(), alpha=0.07, zorder=0)
