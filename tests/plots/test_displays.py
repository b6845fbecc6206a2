"""Displays, scikit-learn's way: made from an estimator, drawn again on other axes."""

from __future__ import annotations

import inspect
import pickle
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.calibration import CalibrationDisplay
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.metrics import ConfusionMatrixDisplay, PrecisionRecallDisplay, RocCurveDisplay
from sklearn.model_selection import LearningCurveDisplay

import margrove.plots
from margrove import (
    SVC,
    SVCCV,
    AdaBoostClassifier,
    ConvFeatures,
    DecisionTreeClassifier,
    LinearSVC,
    OneVsRestClassifier,
    RandomForestClassifier,
)
from margrove.errors import ParameterError
from margrove.plots import (
    BoundaryDisplay,
    CodeDisplay,
    ConvergenceDisplay,
    FeatureMapsDisplay,
    ForestErrorDisplay,
    ImportancesDisplay,
    ImpuritiesDisplay,
    LinearComparisonDisplay,
    MarginsDisplay,
    PathDisplay,
    RegionsDisplay,
    RoundsDisplay,
    SearchDisplay,
    TreeDisplay,
    VoteMarginsDisplay,
)
from margrove.plots.displays import Display
from margrove.transfer.tiny import write_tiny_network

RANDOM = np.random.default_rng(1)
X = np.vstack([RANDOM.normal(0, 1, (30, 2)), RANDOM.normal(2, 1, (30, 2))])
Y = np.repeat([0, 1], 30)
COURSE = [{"seconds": 0.1, "value": 1.0}, {"seconds": 0.2, "value": 0.1}]


def feature_maps(**options):
    """Two pictures for each of two maps."""
    pictures = np.zeros((4, 8, 8, 3), np.uint8)
    pictures[:2, :, 4:] = 255
    with TemporaryDirectory() as folder:
        write_tiny_network(f"{folder}/edges.onnx")
        maps = ConvFeatures(f"{folder}/edges.onnx", size=8).fit(pictures)
    return FeatureMapsDisplay.from_estimator(maps, pictures, which=[0, 1], n_pictures=2, **options)


DRAWN = {
    FeatureMapsDisplay: feature_maps,
    BoundaryDisplay: lambda **o: BoundaryDisplay.from_estimator(SVC().fit(X, Y), X, Y, **o),
    MarginsDisplay: lambda **o: MarginsDisplay.from_estimator(SVC().fit(X, Y), X, Y, **o),
    RegionsDisplay: lambda **o: RegionsDisplay.from_estimator(DecisionTreeClassifier().fit(X, Y), X, Y, **o),
    TreeDisplay: lambda **o: TreeDisplay.from_estimator(DecisionTreeClassifier(max_depth=2).fit(X, Y), **o),
    SearchDisplay: lambda **o: SearchDisplay.from_estimator(SVCCV(Cs=[1, 10], gammas=[0.1, 1]).fit(X, Y), **o),
    RoundsDisplay: lambda **o: RoundsDisplay.from_estimator(AdaBoostClassifier(n_estimators=4).fit(X, Y), **o),
    VoteMarginsDisplay: lambda **o: VoteMarginsDisplay.from_estimator(
        AdaBoostClassifier(n_estimators=4).fit(X, Y), X, Y, **o
    ),
    ForestErrorDisplay: lambda **o: ForestErrorDisplay.from_estimator(
        RandomForestClassifier(n_estimators=4).fit(X, Y), X, Y, **o
    ),
    ImportancesDisplay: lambda **o: ImportancesDisplay.from_estimator(
        RandomForestClassifier(n_estimators=4).fit(X, Y), **o
    ),
    CodeDisplay: lambda **o: CodeDisplay.from_estimator(
        OneVsRestClassifier(LinearSVC()).fit(X, np.arange(60) % 3), **o
    ),
    PathDisplay: lambda **o: PathDisplay.from_path(SVC().path(X, Y, [0.1, 1, 10]), **o),
    ConvergenceDisplay: lambda **o: ConvergenceDisplay.from_course(COURSE, **o),
    ImpuritiesDisplay: lambda **o: ImpuritiesDisplay.from_criteria(**o),
    LinearComparisonDisplay: lambda **o: LinearComparisonDisplay.from_points(X, Y, **o),
}


def test_every_picture_has_its_display():
    public = [getattr(margrove.plots, name) for name in margrove.plots.__all__]
    displays = {each for each in public if inspect.isclass(each) and issubclass(each, Display)}
    pictures = {each for each in public if inspect.isfunction(each)}
    assert displays == set(DRAWN)
    assert {display._picture for display in displays} == pictures


@pytest.mark.parametrize("display", DRAWN, ids=lambda each: each.__name__)
def test_a_display_is_drawn_at_once_and_again_on_other_axes(display):
    drawn = DRAWN[display]()
    assert isinstance(drawn, display)
    assert drawn.ax_ is drawn.axes_[0]
    assert drawn.figure_ is drawn.ax_.figure
    first, title = drawn.ax_, (drawn.ax_.get_title() or drawn.ax_.get_title(loc="left"))
    figure, axes = plt.subplots(1, len(drawn.axes_))
    assert drawn.plot(ax=axes) is drawn
    assert drawn.figure_ is figure
    assert drawn.ax_ is not first
    assert (drawn.ax_.get_title() or drawn.ax_.get_title(loc="left")) == title


def test_options_are_kept_and_can_be_changed_for_once():
    display = BoundaryDisplay.from_estimator(SVC().fit(X, Y), X, Y, legend=False)
    assert display.plot().ax_.get_legend() is None
    assert display.plot(legend=True).ax_.get_legend() is not None
    assert display.plot().ax_.get_legend() is None


def test_errors_are_those_of_the_plain_function():
    with pytest.raises(ParameterError, match="resolution is 1"):
        BoundaryDisplay.from_estimator(SVC().fit(X, Y), X, Y, resolution=1)


def test_a_code_alone_is_drawn_with_its_labels():
    ax = CodeDisplay.from_code([[1, 1], [-1, 1], [1, -1]], ["up", "down", "here"]).ax_
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["up", "down", "here"]


def test_the_arguments_of_the_function_may_be_named():
    assert len(LinearComparisonDisplay.from_points(X=X, y=Y).axes_) == 4
    labels = ["up", "down", "here"]
    ax = CodeDisplay.from_code(code=[[1, 1], [-1, 1], [1, -1]], labels=labels).ax_
    assert [tick.get_text() for tick in ax.get_yticklabels()] == labels


def test_a_display_can_be_pickled():
    display = pickle.loads(pickle.dumps(ConvergenceDisplay(COURSE, goal=0.1)))
    assert display.plot().ax_.get_title() == ConvergenceDisplay.from_course(COURSE, goal=0.1).ax_.get_title()


def test_scikit_learns_own_displays_take_our_estimators():
    machine = SVC(probability=True).fit(X, Y)
    tree = DecisionTreeClassifier(max_depth=2).fit(X, Y)
    boosted = AdaBoostClassifier(n_estimators=5).fit(X, Y)
    for model in (machine, tree, boosted):
        ConfusionMatrixDisplay.from_estimator(model, X, Y)
        RocCurveDisplay.from_estimator(model, X, Y)
        PrecisionRecallDisplay.from_estimator(model, X, Y)
        CalibrationDisplay.from_estimator(model, X, Y, n_bins=3)
    DecisionBoundaryDisplay.from_estimator(machine, X, grid_resolution=10)
    LearningCurveDisplay.from_estimator(LinearSVC(), X, Y, train_sizes=[0.5, 1.0], cv=2, shuffle=True)
