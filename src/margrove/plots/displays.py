"""The pictures as scikit-learn's displays: made from an estimator, drawn again on other axes.

    display = BoundaryDisplay.from_estimator(model, X, y)      # drawn at once
    display.ax_, display.figure_                               # where
    display.plot(ax=other_axes, margins=False)                 # once more, elsewhere, a little differently

Every display is one of the plain functions (`plot_boundary` and its sisters) with what it was given kept, and takes
that function's options by name, in its constructor and again in ``plot``. What is drawn is judged anew each time: a
model that was fitted again in between is drawn as it is now.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrove.errors import ParameterError
from margrove.plots.boundary import plot_boundary
from margrove.plots.code import plot_code
from margrove.plots.compare import compare_linear
from margrove.plots.convergence import plot_convergence
from margrove.plots.feature_maps import plot_feature_maps
from margrove.plots.impurities import plot_impurities
from margrove.plots.margins import plot_margins
from margrove.plots.path import plot_path
from margrove.plots.regions import plot_regions
from margrove.plots.rounds import plot_rounds
from margrove.plots.search import plot_search
from margrove.plots.tree import plot_tree
from margrove.plots.vote_margins import plot_vote_margins

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from margrove.multiclass.coded import CodedClassifier
    from margrove.run.progress import Course
    from margrove.svm.path import SupportVectorPath
    from margrove.tree.problem import Criterion


class Display:
    """A picture that keeps what it was made from.

    Parameters
    ----------
    *drawn_from
        What the plain function takes first: a fitted model and its rows, a path, a course.
    **options
        The plain function's options by name.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn last; of a picture of several panels the first.
    axes_ : array of matplotlib Axes
        Every panel, row by row.
    figure_ : matplotlib Figure
    """

    _picture: ClassVar[Callable[..., Any]]  # the plain function
    _place: ClassVar[str] = "ax"  # what it calls its axes

    ax_: Axes
    axes_: NDArray[Any]
    figure_: Figure

    def __init__(self, *drawn_from: object, **options: object) -> None:
        self._check_options(options)
        self.drawn_from = drawn_from
        self.options = options

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(type(each).__name__ for each in self.drawn_from)})"

    def plot(self, *, ax: Axes | Sequence[Axes] | NDArray[Any] | None = None, **options: object) -> Self:
        """Draw it, on axes of one's own or on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, or a sequence of them where the picture has several panels, optional
        **options
            In place of those it was made with, for this time.

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
    def _check_options(cls, options: Mapping[str, Any]) -> None:
        parameters = inspect.signature(cls._picture).parameters.values()
        allowed = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.name != cls._place]
        for name in options:
            if name not in allowed:
                known = ", ".join(allowed) or "none"
                raise ParameterError(f"{name} is no option of {cls._picture.__name__}; its options are {known}.")


class _EstimatorDisplay(Display):
    """A picture of a fitted estimator, of most with the rows that it judges."""

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
        """Draw a fitted estimator, and give the display.

        Parameters
        ----------
        estimator : what the plain function takes as its model
        X, y : rows and labels, where the plain function takes them
        ax : matplotlib Axes, or a sequence of them where the picture has several panels, optional
        **options
            The plain function's, by name.
        """
        parameters = inspect.signature(cls._picture).parameters.values()
        taken = [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY]
        for name, given in (("X", X), ("y", y)):
            if given is not None and name not in taken:
                raise ParameterError(
                    f"{name} is given, and {cls._picture.__name__} draws the model alone; leave it out."
                )
        rows = (given for name, given in (("X", X), ("y", y)) if name in taken)
        return cls(estimator, *rows, **options).plot(ax=ax)


class BoundaryDisplay(_EstimatorDisplay):
    """Regions, boundary, margins and support vectors in a plane: `plot_boundary`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margrove import SVC
    >>> from margrove.plots import BoundaryDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = BoundaryDisplay.from_estimator(SVC().fit(X, y), X, y, features="pca")
    >>> display.ax_.get_title().splitlines()[0]
    'SVC'
    """

    _picture = staticmethod(plot_boundary)


class MarginsDisplay(_EstimatorDisplay):
    """How far on the right side the points lie, easy, marginal and hard: `plot_margins`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from margrove import LinearSVC
    >>> from margrove.plots import MarginsDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> MarginsDisplay.from_estimator(LinearSVC().fit(X, y), X, y).ax_.get_ylabel()
    'points'
    """

    _picture = staticmethod(plot_margins)


class RegionsDisplay(_EstimatorDisplay):
    """The rectangles into which a tree cuts a plane: `plot_regions`.

    Examples
    --------
    >>> from margrove import DecisionTreeClassifier, load_penguins
    >>> from margrove.plots import RegionsDisplay
    >>> penguins = load_penguins()
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(penguins, penguins.labels())
    >>> axes = ["bill_length_mm", "flipper_length_mm"]
    >>> RegionsDisplay.from_estimator(tree, penguins, penguins.labels(), features=axes).ax_.get_title().splitlines()[2]
    'at island = Biscoe'
    """

    _picture = staticmethod(plot_regions)


class TreeDisplay(_EstimatorDisplay):
    """A tree, box by box: `plot_tree`.

    Examples
    --------
    >>> from margrove import DecisionTreeClassifier, load_penguins
    >>> from margrove.plots import TreeDisplay
    >>> penguins = load_penguins()
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(penguins, penguins.labels())
    >>> TreeDisplay.from_estimator(tree, legend=False).ax_.get_title()
    'DecisionTreeClassifier: 4 leaves, depth 2'
    """

    _picture = staticmethod(plot_tree)


class SearchDisplay(_EstimatorDisplay):
    """The scores of a search over C and γ: `plot_search`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margrove import SVCCV
    >>> from margrove.plots import SearchDisplay
    >>> search = SVCCV(Cs=[0.1, 1, 10], gammas=[0.1, 1]).fit(*load_iris(return_X_y=True))
    >>> SearchDisplay.from_estimator(search).ax_.get_title().splitlines()[1]
    'best 0.98 at C = 1, γ = 0.1'
    """

    _picture = staticmethod(plot_search)


class RoundsDisplay(_EstimatorDisplay):
    """The rounds of AdaBoost, three panels: `plot_rounds`.

    Examples
    --------
    >>> from margrove import AdaBoostClassifier, load_penguins
    >>> from margrove.plots import RoundsDisplay
    >>> penguins = load_penguins()
    >>> model = AdaBoostClassifier(n_estimators=10).fit(penguins, penguins.labels())
    >>> len(RoundsDisplay.from_estimator(model).axes_)
    3
    """

    _picture = staticmethod(plot_rounds)
    _place = "axes"


class VoteMarginsDisplay(_EstimatorDisplay):
    """How surely a vote judges: `plot_vote_margins`.

    Examples
    --------
    >>> from margrove import AdaBoostClassifier, load_penguins
    >>> from margrove.plots import VoteMarginsDisplay
    >>> penguins = load_penguins()
    >>> model = AdaBoostClassifier(n_estimators=10).fit(penguins, penguins.labels())
    >>> VoteMarginsDisplay.from_estimator(model, penguins, penguins.labels(), rounds=[10]).ax_.get_title()
    'AdaBoostClassifier, 344 rows'
    """

    _picture = staticmethod(plot_vote_margins)


class FeatureMapsDisplay(_EstimatorDisplay):
    """The pictures that fire each map of a network most, a panel for each: `plot_feature_maps`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from margrove import ConvFeatures, DecisionTreeClassifier
    >>> from margrove.plots import FeatureMapsDisplay
    >>> from margrove.transfer.tiny import write_tiny_network
    >>> write_tiny_network("edges.onnx")
    >>> pictures, y = np.zeros((6, 8, 8, 3), np.uint8), ["edge"] * 3 + ["none"] * 3
    >>> pictures[:3, :, 4:] = 255
    >>> model = make_pipeline(ConvFeatures("edges.onnx", size=8, named=True), DecisionTreeClassifier())
    >>> FeatureMapsDisplay.from_estimator(model.fit(pictures, y), pictures, y).ax_.get_ylabel()
    'map_0'
    """

    _picture = staticmethod(plot_feature_maps)
    _place = "axes"


class CodeDisplay(_EstimatorDisplay):
    """A code matrix, of a fitted scheme or by itself: `plot_code`.

    Examples
    --------
    >>> from margrove.multiclass.codes import hadamard
    >>> from margrove.plots import CodeDisplay
    >>> CodeDisplay.from_code(hadamard(4), ["north", "east", "south", "west"]).ax_.get_title(loc="left")
    '3 machines, minimum distance 2, corrects 0'
    """

    _picture = staticmethod(plot_code)

    @classmethod
    def from_code(
        cls, code: CodedClassifier | ArrayLike, labels: Sequence[Any] | None = None, *, ax: Axes | None = None
    ) -> Self:
        """Draw a matrix of +1, −1 and 0."""
        return cls(code, labels).plot(ax=ax)


class PathDisplay(Display):
    """Margin, support vectors and coefficients along C, two panels and more: `plot_path`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margrove import SVC
    >>> from margrove.plots import PathDisplay
    >>> path = SVC().path(*load_iris(return_X_y=True), [0.1, 1, 10])
    >>> [ax.get_ylabel() for ax in PathDisplay.from_path(path).axes_]
    ['margin 2/‖w‖', 'support vectors']
    """

    _picture = staticmethod(plot_path)
    _place = "axes"

    @classmethod
    def from_path(
        cls, path: SupportVectorPath, *, ax: Sequence[Axes] | NDArray[Any] | None = None, **options: object
    ) -> Self:
        """Draw what ``SVC.path`` gave."""
        return cls(path, **options).plot(ax=ax)


class ConvergenceDisplay(Display):
    """Gap, violation or loss over time: `plot_convergence`.

    Examples
    --------
    >>> from margrove.plots import ConvergenceDisplay
    >>> course = [{"seconds": 0.1, "value": 0.2, "name": "gap"}, {"seconds": 0.3, "value": 0.001, "name": "gap"}]
    >>> ConvergenceDisplay.from_course(course).ax_.get_title()
    'gap from 0.2 to 0.001 in 0.3 s'
    """

    _picture = staticmethod(plot_convergence)

    @classmethod
    def from_course(
        cls, course: Course | Sequence[Mapping[str, Any]], *, ax: Axes | None = None, **options: object
    ) -> Self:
        """Draw what a `margrove.run.progress.Course` heard, or its points."""
        return cls(course, **options).plot(ax=ax)


class ImpuritiesDisplay(Display):
    """Entropy, Gini's index and error of two classes: `plot_impurities`.

    Examples
    --------
    >>> from margrove.plots import ImpuritiesDisplay
    >>> display = ImpuritiesDisplay.from_criteria(["gini"])
    >>> display.ax_.lines[0].get_label()
    'Gini, Σ p (1 − p)'
    """

    _picture = staticmethod(plot_impurities)

    @classmethod
    def from_criteria(
        cls, criteria: Sequence[Criterion] = ("entropy", "gini", "error"), *, ax: Axes | None = None, **options: object
    ) -> Self:
        """Draw these impurities."""
        return cls(criteria, **options).plot(ax=ax)


class LinearComparisonDisplay(Display):
    """The linear classifiers side by side, fitted to the same points: `compare_linear`.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.plots import LinearComparisonDisplay
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [3.0, 1.0], [4.0, 2.0]])
    >>> len(LinearComparisonDisplay.from_points(X, [0, 0, 1, 1]).axes_)
    4
    """

    _picture = staticmethod(compare_linear)
    _place = "axes"

    @classmethod
    def from_points(cls, X: Any, y: Any, *, ax: Sequence[Axes] | NDArray[Any] | None = None, **options: object) -> Self:
        """Fit and draw each."""
        return cls(X, y, **options).plot(ax=ax)
