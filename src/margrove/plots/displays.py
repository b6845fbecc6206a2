"""The base of all displays, which follow scikit-learn's: made from an estimator, drawn again on other axes.

A display keeps the arguments of a function (`plot_boundary`, say), stands beside it in its module, and takes the
function's options by name, in its constructor and in ``plot``. Each call of ``plot`` predicts again: a model that was
fitted again in between is drawn as it is now.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from margrove.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Display:
    """A plot that keeps its arguments.

    Parameters
    ----------
    *drawn_from
        The positional arguments of the function: a fitted model and its rows, a path, a course.
    **options
        The function's options by name.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn last; the first panel if there are several.
    axes_ : array of matplotlib Axes
        Every panel, row by row.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_iris
    >>> from margrove import SVC
    >>> from margrove.plots import BoundaryDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = BoundaryDisplay.from_estimator(SVC().fit(X, y), X, y, features="pca")
    >>> display.ax_.get_title().splitlines()[0]
    'SVC'
    >>> figure, axes = plt.subplots(1, 2)
    >>> display.plot(ax=axes[1], margins=False).figure_ is figure
    True
    """

    _picture: ClassVar[Callable[..., Any]]  # the function that draws
    _place: ClassVar[str]  # the name of its parameter for axes

    ax_: Axes
    axes_: NDArray[Any]
    figure_: Figure

    def __init_subclass__(cls, *, picture: Callable[..., Any] | None = None) -> None:
        if picture is not None:
            cls._picture = staticmethod(picture)
            cls._place = "axes" if "axes" in inspect.signature(picture).parameters else "ax"

    def __init__(self, *drawn_from: object, **options: object) -> None:
        self._check_options(options)
        self.drawn_from = drawn_from
        self.options = options

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(type(each).__name__ for each in self.drawn_from)})"

    def plot(self, *, ax: Axes | Sequence[Axes] | NDArray[Any] | None = None, **options: object) -> Self:
        """Draw on the given axes or on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, or a sequence of them if there are several panels, optional
        **options
            Replace those of the constructor, for this call.

        Returns
        -------
        the display itself
        """
        self._check_options(options)
        drawn = type(self)._picture(*self.drawn_from, **{self._place: ax}, **{**self.options, **options})
        self.axes_ = np.ravel(np.asarray(drawn, dtype=object))
        self.ax_ = self.axes_[0]
        self.figure_ = self.ax_.get_figure(root=True)  # type: ignore[assignment]  # axes that are drawn on have one
        return self

    @classmethod
    def _parameters(cls, *, is_option: bool) -> list[str]:
        """Return the names of the function's options, or of its positional parameters."""
        parameters = inspect.signature(cls._picture).parameters.values()
        names = [each.name for each in parameters if (each.kind is each.KEYWORD_ONLY) is is_option]
        return [name for name in names if name != cls._place]

    @classmethod
    def _check_options(cls, options: Mapping[str, Any]) -> None:
        allowed = cls._parameters(is_option=True)
        for name in options:
            if name not in allowed:
                known = ", ".join(allowed) or "none"
                raise ParameterError(f"{name} is not an option of {cls._picture.__name__}; its options are {known}.")


_D = TypeVar("_D", bound=Display)


def made_from(
    cls: type[_D], /, *drawn_from: object, ax: Axes | Sequence[Axes] | NDArray[Any] | None = None, **options: object
) -> _D:
    """Draw the function's positional arguments, which may be named as well, and return the display."""
    names = cls._parameters(is_option=False)[len(drawn_from) :]
    named = [options.pop(name) for name in names if name in options]
    return cls(*drawn_from, *named, **options).plot(ax=ax)


class EstimatorDisplay(Display):
    """A plot of a fitted estimator, mostly with rows that it predicts."""

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        X: Any = None,
        y: Any = None,
        *,
        ax: Axes | Sequence[Axes] | NDArray[Any] | None = None,
        **options: object,
    ) -> Self:
        """Draw a fitted estimator and return the display.

        Parameters
        ----------
        estimator : the model that the function takes
        X, y : rows and labels, if the function takes them
        ax : matplotlib Axes, or a sequence of them if there are several panels, optional
        **options
            The function's, by name.
        """
        taken, rows = cls._parameters(is_option=False), []
        for name, given in (("X", X), ("y", y)):
            if name in taken:
                rows.append(given)
            elif given is not None:
                words = f"{name} is given, but {cls._picture.__name__} draws only the model; leave it out."
                raise ParameterError(words)
        return cls(estimator, *rows, **options).plot(ax=ax)
