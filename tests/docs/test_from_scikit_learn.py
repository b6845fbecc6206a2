"""The page for those who come from scikit-learn names every parameter of its estimators that ours do not take."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import sklearn.ensemble
import sklearn.linear_model
import sklearn.multiclass
import sklearn.svm
import sklearn.tree

import margrove

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "from-scikit-learn.md"
THEIRS = (
    sklearn.svm.SVC,
    sklearn.svm.NuSVC,
    sklearn.svm.SVR,
    sklearn.svm.NuSVR,
    sklearn.svm.OneClassSVM,
    sklearn.svm.LinearSVC,
    sklearn.svm.LinearSVR,
    sklearn.tree.DecisionTreeClassifier,
    sklearn.tree.DecisionTreeRegressor,
    sklearn.ensemble.AdaBoostClassifier,
    sklearn.ensemble.AdaBoostRegressor,
    sklearn.linear_model.Perceptron,
    sklearn.multiclass.OneVsRestClassifier,
    sklearn.multiclass.OneVsOneClassifier,
)


def told_missing() -> set[tuple[str, str]]:
    part = PAGE.read_text(encoding="utf-8").partition("### Parameters that are not there")[2].partition("\n## ")[0]
    lines = [line.split("|")[1:3] for line in part.splitlines() if line.startswith("| `")]
    return {
        (estimator, parameter)
        for estimators, parameters in lines
        for estimator in re.findall(r"`(\w+)`", estimators)
        for parameter in re.findall(r"`(\w+)`", parameters)
    }


def test_the_page_names_exactly_the_parameters_that_ours_do_not_take():
    missing = {
        (theirs.__name__, name)
        for theirs in THEIRS
        for name in inspect.signature(theirs).parameters
        if name not in inspect.signature(getattr(margrove, theirs.__name__)).parameters
    }
    assert told_missing() == missing
