"""A pytest plugin: scikit-learn's own tests with Margrove's classes in the place of its own.

``python -m pytest -p tests.peers.sklearn_suites.swap --pyargs sklearn.svm.tests.test_svm``

scikit-learn is imported first and then patched, so that only the tests see the other classes. The outcome of every
test, and whether it constructed one of our classes, is written as JSON to the file ``$MARGROVE_OUTCOMES``.
"""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

import margrove

SWAPPED = {
    "sklearn.svm": ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR"),
    "sklearn.tree": ("DecisionTreeClassifier", "DecisionTreeRegressor"),
    "sklearn.ensemble": (
        "AdaBoostClassifier",
        "AdaBoostRegressor",
        "RandomForestClassifier",
        "RandomForestRegressor",
        "ExtraTreesClassifier",
        "ExtraTreesRegressor",
    ),
    "sklearn.linear_model": ("Perceptron",),
    "sklearn.multiclass": ("OneVsRestClassifier", "OneVsOneClassifier"),
}
_constructed: list[str] = []
_outcomes: dict[str, dict[str, Any]] = {}


def _record(cls: type) -> None:
    """Let every construction of an instance of the class be noted."""

    def new(kind: type, *args: object, **kwargs: object) -> Any:
        _constructed.append(kind.__name__)
        return object.__new__(kind)

    cls.__new__ = staticmethod(new)  # type: ignore[assignment]


def pytest_configure() -> None:
    """Put Margrove's classes into scikit-learn's modules."""
    for module in SWAPPED:
        importlib.import_module(module)
    for module, names in SWAPPED.items():
        for name in names:
            ours = getattr(margrove, name)
            _record(ours)
            setattr(importlib.import_module(module), name, ours)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    """Note which of our classes a test constructs."""
    _constructed.clear()
    yield
    place = _outcomes.setdefault(item.nodeid, {})
    place["ours"] = sorted(set(_constructed))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how a test ended."""
    place = _outcomes.setdefault(report.nodeid, {"outcome": "passed", "message": ""})
    if report.failed or (report.skipped and place["outcome"] == "passed"):
        place["outcome"] = "failed" if report.failed else "skipped"
        place["message"] = str(report.longrepr)[-2000:]


def pytest_sessionfinish() -> None:
    """Write the outcomes."""
    Path(os.environ["MARGROVE_OUTCOMES"]).write_text(json.dumps(_outcomes), encoding="utf-8")
