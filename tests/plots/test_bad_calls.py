"""Wrong arguments of every picture: an error names the argument, its value and the cure before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import margrove
from margrove import plots
from margrove.errors import InputError, ParameterError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
WIDE = RNG.normal(size=(40, 4))
SVM = margrove.SVC(kernel="linear").fit(X, Y)
WIDE_SVM = margrove.SVC(kernel="linear").fit(WIDE, Y)
TREE = margrove.DecisionTreeClassifier(max_depth=2).fit(X, Y)
NUMBERS = margrove.DecisionTreeRegressor(max_depth=2).fit(X, X[:, 0])
BOOST = margrove.AdaBoostClassifier(n_estimators=3).fit(X, Y)
SEARCH = margrove.SVCCV(Cs=[0.1, 1.0], gammas=[0.1, 1.0], cv=2).fit(X, Y)
PATH = margrove.SVC(kernel="linear").path(X, Y, [0.1, 1.0])
COURSE = [{"seconds": 0.1, "value": 0.2}, {"seconds": 0.2, "value": 0.1}]
CODE = np.array([[1, -1], [-1, 1], [1, 1]])
NO_AXES = ["here", 3, plt, [1, 2]]


class Case:
    """A call that must fail, and words that its message must have."""

    def __init__(self, call: Callable[..., Any], *args: Any, words: str, **kwargs: Any) -> None:
        self.call, self.args, self.kwargs, self.words = call, args, kwargs, words

    def __repr__(self) -> str:
        name = getattr(self.call, "__qualname__", str(self.call))
        given = [_short(each) for each in self.args] + [f"{key}={_short(v)}" for key, v in self.kwargs.items()]
        return f"{name}({', '.join(given)})"


def _short(value: Any) -> str:
    return repr(value)[:20] if isinstance(value, (str, int, float, dict, type(None))) else type(value).__name__


b, m, r = plots.plot_boundary, plots.plot_margins, plots.plot_regions
MODELS = [
    *(Case(draw, None, X, Y, words="model is None") for draw in (b, m, r, plots.plot_vote_margins)),
    *(Case(draw, "svc", X, Y, words="model is 'svc'") for draw in (b, m, r, plots.plot_vote_margins)),
    *(Case(draw, margrove.SVC, X, Y, words="is the class SVC") for draw in (b, m, r, plots.plot_vote_margins)),
    *(Case(draw, margrove.SVC(), X, Y, words="SVC instance is not fitted") for draw in (b, m)),
    Case(b, make_pipeline(StandardScaler(), margrove.SVC()), X, Y, words="not fitted"),
    Case(b, LinearRegression().fit(X, Y), X, Y, words="LinearRegression is not a classifier"),
    Case(b, NUMBERS, X, Y, words="DecisionTreeRegressor is not a classifier"),
    Case(b, KMeans(2, n_init=1).fit(X), X, Y, words="KMeans is not a classifier"),
    Case(b, StandardScaler().fit(X), X, Y, words="StandardScaler is not a classifier"),
    Case(m, LinearRegression().fit(X, Y), X, Y, words="LinearRegression has no margins"),
    Case(m, TREE, X, Y, words="DecisionTreeClassifier has no margins"),
    Case(r, margrove.DecisionTreeClassifier(), X, Y, words="DecisionTreeClassifier instance is not fitted"),
    Case(r, SVM, X, Y, words="SVC is not one of Margrove's trees"),
    Case(plots.plot_tree, None, words="model is None"),
    Case(plots.plot_tree, "tree", words="model is 'tree'"),
    Case(plots.plot_tree, margrove.DecisionTreeClassifier, words="is the class DecisionTreeClassifier"),
    Case(plots.plot_tree, margrove.DecisionTreeClassifier(), words="DecisionTreeClassifier instance is not fitted"),
    Case(plots.plot_tree, SVM, words="SVC is not one of Margrove's trees"),
    Case(plots.plot_rounds, None, words="model is None"),
    Case(plots.plot_rounds, 7, words="model is 7"),
    Case(plots.plot_rounds, margrove.AdaBoostClassifier(), words="AdaBoostClassifier instance is not fitted"),
    Case(plots.plot_rounds, SVM, words="SVC of margrove keeps no record of its rounds"),
    Case(
        plots.plot_vote_margins, margrove.AdaBoostClassifier(), X, Y, words="AdaBoostClassifier instance is not fitted"
    ),
    Case(plots.plot_vote_margins, SVM, X, Y, words="SVC has no votes"),
    Case(plots.plot_search, None, words="search is None"),
    Case(plots.plot_search, "search", words="search is 'search'"),
    Case(plots.plot_search, margrove.SVCCV, words="search is the class SVCCV"),
    Case(plots.plot_search, margrove.SVCCV(), words="SVCCV instance is not fitted"),
    Case(plots.plot_search, SVM, words="SVC is not a search"),
    Case(plots.plot_path, None, words="plot_path draws the result of SVC.path"),
    Case(plots.plot_path, SVM, words="plot_path draws the result of SVC.path"),
    Case(plots.plot_path, [1, 2], words="plot_path draws the result of SVC.path"),
    Case(plots.plot_code, None, words="code is None"),
    Case(plots.plot_code, "code", words="code is 'code'"),
    Case(
        plots.plot_code, margrove.OneVsOneClassifier(margrove.SVC()), words="OneVsOneClassifier instance is not fitted"
    ),
    Case(plots.plot_code, SVM, words="SVC has no code matrix"),
    Case(plots.plot_code, margrove.OneVsOneClassifier, words="code is the class OneVsOneClassifier"),
    Case(plots.plot_code, [[1, "a"], [2, 3]], words="code"),
    Case(plots.plot_code, [[1, 2], [3, 4]], words="code"),
    Case(plots.plot_code, [[1, -1], [1]], words="code"),
    Case(plots.plot_convergence, None, words="course is None"),
    Case(plots.plot_convergence, 3, words="course is 3"),
    Case(plots.plot_convergence, "gap", words="course is 'gap'"),
    Case(plots.plot_convergence, {"seconds": 1, "value": 2}, words="course is"),
    Case(plots.plot_convergence, SVM, words="course is of type SVC"),
    Case(plots.plot_convergence, [None], words="point 0 of the course is None"),
    Case(plots.plot_convergence, [{"seconds": 1}], words="point 0 of the course"),
    Case(plots.plot_convergence, [{"seconds": 1, "value": "x"}], words="'value'"),
    Case(plots.plot_convergence, [{"seconds": None, "value": 1}], words="'seconds'"),
    Case(plots.plot_convergence, [{"seconds": float("nan"), "value": 1}], words="'seconds'"),
    Case(plots.plot_convergence, [], words="no point above 0"),
    Case(plots.plot_impurities, None, words="criteria is None"),
    Case(plots.plot_impurities, 3, words="criteria is 3"),
    Case(plots.plot_impurities, "gini", words="criteria is 'gini'"),
    Case(plots.plot_impurities, [], words=r"criteria is \[\]"),
    Case(plots.plot_impurities, ["gain"], words=r"criteria is \['gain'\]"),
    Case(plots.plot_impurities, [["gini"]], words="criteria is"),
]
ROWS = [
    *(Case(draw, SVM, None, Y, words="X is None") for draw in (b, m)),
    *(Case(draw, SVM, "rows", Y, words="X") for draw in (b, m)),
    *(Case(draw, SVM, X[:, 0], Y, words="X is 1-dimensional|1D|columns") for draw in (b, m)),
    *(Case(draw, SVM, X, None, words="y is None") for draw in (b, m)),
    *(Case(draw, SVM, X, Y[:5], words="X has 40 rows and y has 5") for draw in (b, m)),
    *(Case(draw, SVM, X, Y + 7, words="label 8 is not one of") for draw in (b, m)),
    *(Case(draw, SVM, X, "labels", words="y") for draw in (b, m)),
    *(Case(draw, SVM, X, 3, words="y") for draw in (b, m)),
    *(Case(draw, SVM, X, X, words="y") for draw in (b, m)),
    *(Case(draw, SVM, WIDE, Y, words="columns") for draw in (b,)),
    Case(m, SVM, WIDE, Y, words="features|columns"),
    Case(b, WIDE_SVM, X, Y, words="columns"),
    Case(b, SVM, np.full((4, 2), np.nan), Y[:4], words="no row has both"),
    Case(b, SVM, np.empty((0, 2)), Y[:0], words="row"),
    Case(m, SVM, np.empty((0, 2)), Y[:0], words="row|sample"),
    Case(b, SVM, [["a", "b"]], [0], words="text"),
    Case(r, TREE, None, Y, words="X is None"),
    Case(r, TREE, "rows", Y, words="X"),
    Case(r, TREE, X, None, words="y is None"),
    Case(r, TREE, X, Y[:5], words="X has 40 rows and y has 5"),
    Case(r, NUMBERS, X, None, words="y is None"),
    Case(r, NUMBERS, X, ["a"] * 40, words="y"),
    Case(r, NUMBERS, X, Y[:5], words="X has 40 rows and y has 5"),
    Case(r, NUMBERS, X, np.full(40, np.nan), words="y"),
    Case(r, NUMBERS, X, X, words="y"),
    Case(plots.plot_vote_margins, BOOST, None, Y, words="X is None"),
    Case(plots.plot_vote_margins, BOOST, X, None, words="y is None"),
    Case(plots.plot_vote_margins, BOOST, X, Y[:5], words="X has 40 rows and y has 5"),
    Case(plots.plot_vote_margins, BOOST, WIDE, Y, words="columns|features"),
    Case(plots.compare_linear, None, Y, words="X is None"),
    Case(plots.compare_linear, X, None, words="y is None"),
    Case(plots.compare_linear, X, Y[:5], words="X has 40 rows and y has 5"),
    Case(plots.compare_linear, X[:, :1], Y, words="X has one column"),
    Case(plots.compare_linear, X, np.zeros(40), words="class"),
]
OPTIONS = [
    *(Case(b, SVM, X, Y, resolution=v, words="resolution is") for v in ("x", None, 1, 2.5, True, [100], 10**9)),
    *(Case(b, SVM, X, Y, margins=v, words="margins is") for v in ("yes", None, -1.0, float("nan"), [1], 0.0)),
    *(Case(b, SVM, X, Y, regions=v, words="regions is") for v in ("yes", None, 2)),
    *(Case(b, SVM, X, Y, legend=v, words="legend is") for v in ("right", None, 2)),
    *(Case(b, SVM, X, Y, features=v, words="features|no column") for v in (3, "pcs", ["a", "b"], [0], [0, 0], [0, 9])),
    *(Case(b, SVM, X, Y, features=v, words="features|no column") for v in ([None, 1], {0: 1, 1: 2}, [[0], [1]])),
    *(Case(b, WIDE_SVM, WIDE, Y, features=[0, 1], at=v, words="at") for v in ([1], "x3", 3, {"x9": 1}, {"x3": "a"})),
    *(Case(b, WIDE_SVM, WIDE, Y, features=[0, 1], at=v, words="at") for v in ({3: 1.0}, {"x3": [1]})),
    *(Case(m, SVM, X, Y, bins=v, words="bins is") for v in (0, -1, 2.5, None, "many", True, [], ["a"], 10**9)),
    *(Case(m, SVM, X, Y, legend=v, words="legend is") for v in ("right", None)),
    *(Case(r, TREE, X, Y, legend=v, words="legend is") for v in ("right", None)),
    *(Case(r, TREE, X, Y, features=v, words="features|no column") for v in (3, "pca", ["a", "b"], [0], [0, 0])),
    *(Case(r, TREE, X, Y, at=v, words="at") for v in ([1], "x3", {"x9": 1})),
    *(Case(plots.plot_tree, TREE, max_depth=v, words="max_depth is") for v in (-1, "x", 2.5, True)),
    *(Case(plots.plot_tree, TREE, max_levels=v, words="max_levels is") for v in (0, "x", 2.5)),
    *(Case(plots.plot_tree, TREE, legend=v, words="legend is") for v in ("x", None)),
    *(Case(plots.plot_tree, TREE, p_values=v, words="p_values") for v in ("x", 3, [0.1], ["a"] * TREE.nodes_.n_nodes)),
    *(Case(plots.plot_tree, TREE, p_values=v, words="p_values") for v in (np.full(TREE.nodes_.n_nodes, 7.0),)),
    Case(plots.plot_tree, TREE, classes=["a", "b"], words="classes is given"),
    *(Case(plots.plot_tree, TREE.nodes_, classes=v, words="classes") for v in (["a"], 3, "ab")),
    *(
        Case(plots.plot_vote_margins, BOOST, X, Y, rounds=v, words="rounds is")
        for v in (3, None, [], ["x"], [0], [2.5])
    ),
    *(Case(plots.plot_convergence, COURSE, goal=v, words="goal is") for v in ("x", -1.0, 0.0, float("nan"), True)),
    *(Case(plots.plot_impurities, ["gini"], scaled=v, words="scaled is") for v in ("x", None, 2)),
    *(Case(plots.plot_code, CODE, labels=v, words="labels") for v in (["a"], 3, "abc", [1, 2, 3, 4])),
    *(Case(plots.plot_path, PATH, names=v, words="names") for v in (["a"], 3, "ab", {"a": 1, "b": 2})),
    *(Case(plots.compare_linear, X, Y, models=v, words="models") for v in ({}, [SVM], SVM, 3, {"a": None}, {"a": 3})),
    *(
        Case(plots.compare_linear, X, Y, models=v, words="models")
        for v in ({"a": margrove.SVC}, {"a": StandardScaler()})
    ),
    *(Case(plots.compare_linear, X, Y, models=v, words="models") for v in ({"a": margrove.SVR()},)),
    *(Case(plots.compare_linear, X, Y, features=v, words="features|no column") for v in (3, "ab", [0])),
]
PLACES = [
    *(Case(b, SVM, X, Y, ax=ax, words="ax is") for ax in NO_AXES),
    *(Case(m, SVM, X, Y, ax=ax, words="ax is") for ax in NO_AXES),
    *(Case(r, TREE, X, Y, ax=ax, words="ax is") for ax in NO_AXES),
    *(Case(plots.plot_tree, TREE, ax=ax, words="ax is") for ax in NO_AXES),
    *(Case(plots.plot_search, SEARCH, ax=ax, words="ax is") for ax in NO_AXES),
    *(Case(plots.plot_code, CODE, ax=ax, words="ax is") for ax in NO_AXES),
    *(Case(plots.plot_convergence, COURSE, ax=ax, words="ax is") for ax in NO_AXES),
    *(Case(plots.plot_impurities, ax=ax, words="ax is") for ax in NO_AXES),
    *(Case(plots.plot_vote_margins, BOOST, X, Y, ax=ax, words="ax is") for ax in NO_AXES),
    *(Case(plots.plot_rounds, BOOST, axes=axes, words="axes") for axes in (*NO_AXES, [1, 2, 3])),
    *(Case(plots.plot_path, PATH, axes=axes, words="axes") for axes in (*NO_AXES, [1, 2, 3])),
    *(Case(plots.compare_linear, X, Y, axes=axes, words="axes") for axes in (*NO_AXES, [1, 2, 3, 4])),
]
DISPLAYS = [
    Case(plots.BoundaryDisplay.from_estimator, SVM, X, Y, ax="here", words="ax is 'here'"),
    Case(plots.BoundaryDisplay.from_estimator, SVM, words="X is None"),
    Case(plots.BoundaryDisplay.from_estimator, SVM, X, words="y is None"),
    Case(plots.BoundaryDisplay.from_estimator, SVM, X, Y, colour="red", words="colour"),
    Case(plots.BoundaryDisplay.from_estimator, None, X, Y, words="model is None"),
    Case(plots.MarginsDisplay.from_estimator, SVM, X, words="y is None"),
    Case(plots.RegionsDisplay.from_estimator, TREE, X, words="y is None"),
    Case(plots.TreeDisplay.from_estimator, None, words="model is None"),
    Case(plots.TreeDisplay.from_estimator, TREE, X, Y, words="X"),
    Case(plots.SearchDisplay.from_estimator, None, words="search is None"),
    Case(plots.SearchDisplay.from_estimator, SEARCH, X, Y, words="X"),
    Case(plots.RoundsDisplay.from_estimator, BOOST, ax="here", words="axes is 'here'"),
    Case(plots.RoundsDisplay.from_estimator, BOOST, X, Y, words="X"),
    Case(plots.VoteMarginsDisplay.from_estimator, BOOST, words="X is None"),
    Case(plots.CodeDisplay.from_estimator, SVM, words="SVC has no code matrix"),
    Case(plots.CodeDisplay.from_code, None, words="code is None"),
    Case(plots.PathDisplay.from_path, None, words="plot_path draws"),
    Case(plots.ConvergenceDisplay.from_course, None, words="course is None"),
    Case(plots.ConvergenceDisplay.from_course, COURSE, gaol=1, words="gaol"),
    Case(plots.ImpuritiesDisplay.from_criteria, None, words="criteria is None"),
    Case(plots.LinearComparisonDisplay.from_points, X, None, words="y is None"),
    Case(plots.LinearComparisonDisplay.from_points, X, Y, ax=[1, 2], words="ax"),
]


@pytest.mark.parametrize("case", [*MODELS, *ROWS, *OPTIONS, *PLACES, *DISPLAYS], ids=repr)
def test_a_bad_call_raises_a_one_line_error_and_draws_nothing(case):
    before = plt.get_fignums()
    wanted = NotFittedError if "not fitted" in case.words else (ParameterError, InputError)
    with pytest.raises(wanted, match=case.words) as caught:
        case.call(*case.args, **case.kwargs)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300
    assert plt.get_fignums() == before
