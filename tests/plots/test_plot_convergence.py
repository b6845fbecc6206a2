"""`plot_convergence` and the `Course` that it draws."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest
from matplotlib.axes import Axes

from margrove import SVC
from margrove.errors import InputError, ParameterError
from margrove.plots import ConvergenceDisplay, plot_convergence
from margrove.run.progress import Course, Progress, report, watched


def told(values: list[float], **more: object) -> Course:
    with Course(**more) as course:
        for value in values:
            report(Progress("svm", 0.0, 1.0, value, "violation", goal=0.5))
    return course


def test_a_course_keeps_what_was_reported_in_order_and_as_plain_json():
    points = told([4.0, 2.0, 1.0]).points
    assert [point["value"] for point in points] == [4, 2, 1]
    assert sorted(point["seconds"] for point in points) == [point["seconds"] for point in points]
    assert json.loads(json.dumps(points)) == points
    assert set(points[0]) == {"seconds", "value", "name", "stage"}


def test_who_watches_already_goes_on_watching():
    seen: list[Progress] = []
    with watched(seen.append):
        told([1.0])
        report(Progress("tree", 1.0))
    assert [progress.stage for progress in seen] == ["svm", "tree"]


def test_reports_outside_the_block_and_without_a_number_are_not_kept():
    course = told([1.0])
    report(Progress("svm", 0.0, 1.0, 9.0))
    with course:
        report(Progress("tree", 3.0))
    assert course.points == []


@pytest.mark.parametrize("n", [19, 20, 21, 400, 5000])
def test_a_long_course_is_thinned_and_keeps_its_ends(n):
    course = told([float(k) for k in range(n)], most=20)
    values = [point["value"] for point in course.points]
    assert len(values) == min(n, 20)
    assert values == sorted(values)
    assert values[0] == 0
    assert values[-1] >= n - 1 - n // 100  # dropping every other one may cost the very last


def test_an_error_inside_the_block_ends_the_listening():
    course = Course()
    with contextlib.suppress(ZeroDivisionError), course:
        report(Progress("svm", 0.0, 1.0, 9.0))
        raise ZeroDivisionError
    report(Progress("svm", 0.0, 1.0, 8.0))
    assert [point["value"] for point in course.points] == [9.0]


def test_a_real_fit_is_heard_and_drawn_down_to_its_tol(monkeypatch):
    monkeypatch.setattr("margrove.run.slices.SLICE", 1e-5)  # many slices, and so reports, of a small fit
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, 2))
    y = X[:, 0] ** 2 + X[:, 1] ** 2 + random.normal(size=1500) > 2
    with Course() as course:
        SVC(C=100.0, gamma=1.0).fit(X, y)
    ax = plot_convergence(course)
    assert ax.get_ylabel() == "violation"
    assert [line.get_ydata()[0] for line in ax.lines if str(line.get_label()).startswith("goal")] == [1e-3]


def test_it_draws_on_the_axes_it_is_given_by_logarithms_and_without_zeros():
    import matplotlib.pyplot as plt

    ax: Axes = plt.subplots()[1]
    assert plot_convergence(told([1.0, 0.1, 0.0]), ax=ax) is ax
    assert ax.get_yscale() == "log"
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [1.0, 0.1])


def test_each_thing_that_was_reported_has_its_line():
    points = [{"seconds": k, "value": 1.0 / (k + 1), "stage": stage} for stage in ("one", "two") for k in range(3)]
    ax = plot_convergence(points)
    assert [line.get_label() for line in ax.lines] == ["one", "two"]
    assert len({line.get_linestyle() for line in ax.lines}) == 2
    assert ax.get_title() == "2 courses, 2 s"


def test_the_goal_may_be_given():
    points = [{"seconds": 0.0, "value": 1.0}]
    ax = ConvergenceDisplay.from_course(points, goal=0.25).ax_
    assert ax.lines[-1].get_ydata()[0] == 0.25


def test_input_that_cannot_be_drawn_is_refused():
    with pytest.raises(InputError, match="no point above 0 to draw"):
        plot_convergence(Course())
    with pytest.raises(InputError, match=r"point 0 of the course is 3\.0"):
        plot_convergence([3.0])  # type: ignore[list-item]
    with pytest.raises(ParameterError, match="most is 1"):
        Course(most=1)
