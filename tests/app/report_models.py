"""Models, tables and a training record for the tests of reports."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from margrove import (
    SVC,
    AdaBoostClassifier,
    AdaBoostRegressor,
    BasicLinearClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    KernelPerceptron,
    LinearSVC,
    LinearSVR,
    OneClassSVM,
    OneVsOneClassifier,
    Perceptron,
    TableEncoder,
    certify,
    load_penguins,
)
from margrove.data import Column, Table

CLASSIFIERS: dict[str, Any] = {
    "svm": lambda: Pipeline([("encode", TableEncoder()), ("learn", SVC(C=1.0))]),
    "svm of one against the rest": lambda: Pipeline([("encode", TableEncoder()), ("learn", SVC(multiclass="ovr"))]),
    "svm with a flat boundary": lambda: Pipeline([("encode", TableEncoder()), ("learn", SVC(kernel="linear"))]),
    "linear": lambda: Pipeline([("encode", TableEncoder()), ("learn", LinearSVC())]),
    "linear with dual coefficients": lambda: Pipeline([("encode", TableEncoder()), ("learn", LinearSVC(loss="hinge"))]),
    "basic": lambda: Pipeline([("encode", TableEncoder()), ("learn", BasicLinearClassifier())]),
    "perceptron": lambda: Pipeline(
        [("encode", TableEncoder()), ("learn", Perceptron(max_iter=20, variant="voted", random_state=0))]
    ),
    "kernel-perceptron": lambda: Pipeline([("encode", TableEncoder()), ("learn", KernelPerceptron(max_iter=5))]),
    "tree": lambda: DecisionTreeClassifier(min_samples_leaf=5),
    "adaboost": lambda: AdaBoostClassifier(n_estimators=8, random_state=0),
    "scheme": lambda: OneVsOneClassifier(DecisionTreeClassifier(max_depth=2)),
}
REGRESSORS: dict[str, Any] = {
    "linear": lambda: Pipeline([("encode", TableEncoder()), ("learn", LinearSVR(regularize_intercept=False))]),
    "tree": lambda: DecisionTreeRegressor(max_depth=4),
    "adaboost": lambda: AdaBoostRegressor(n_estimators=5, random_state=0),
}


def fitted(model: Any, table: Table) -> Any:
    """Fitted and certified, as `margrove train` leaves it."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a perceptron of few passes has not converged, and says so
        model.fit(table, table.labels())
        learner = model[-1] if hasattr(model, "steps") else model
        learner.certificate_ = certify(model, table, table.labels())
    return model


def of_two_classes() -> Table:
    """The penguins less one species, and less the columns that give it away."""
    penguins = load_penguins()
    kept = penguins.take(penguins.labels() != "Gentoo").select(["bill_depth_mm", "body_mass_g", "sex", "year"])
    return kept


def with_numbers() -> Table:
    """The penguins with their mass as what is estimated."""
    penguins = load_penguins()
    mass = penguins["body_mass_g"]
    kept = penguins.without("body_mass_g").with_target(mass)
    return kept.take(~mass.is_missing)


def one_class_model(table: Table) -> Any:
    """A machine that knows the rows of one table."""
    return Pipeline([("encode", TableEncoder()), ("learn", OneClassSVM(nu=0.1))]).fit(table.with_target(None))


HOSTILE = "<script>alert(1)</script>"
HOSTILE_CLASS = '</script><img src=x onerror="window.hacked=1">'


def hostile_table(n: int = 120) -> Table:
    """A table whose every name is a trap: for HTML, for JSON in a script, for plotly's own tags and templates."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=n), rng.integers(0, 3, n).astype(np.int32)
    codes = ((first + 0.3 * rng.normal(size=n)) > 0).astype(np.int32)
    columns = [
        Column(HOSTILE, "numeric", first),
        Column(
            "%{x} <b>bold</b> $\\alpha$ & co",
            "category",
            second,
            ("<i>one</i>", "<a href='javascript:0'>two</a>", "three|`"),
        ),
        Column("<img src=x onerror=window.hacked=2>", "numeric", rng.normal(size=n)),
    ]
    target = Column("<svg onload=window.hacked=3>", "category", codes, (HOSTILE_CLASS, "<b>good</b>"))
    return Table(columns, target=target, source="<img src=x onerror=window.hacked=4>.csv")


def training_record(table: Table, *, n: int = 200) -> dict[str, Any]:
    """All that the training of a classifier may note."""
    rng = np.random.default_rng(1)
    labels = table.labels()
    classes = [str(label) for label in np.unique(labels)]
    rows = np.sort(rng.permutation(len(labels))[:n])
    truth = np.searchsorted(classes, labels[rows].astype(str))
    predicted = np.where(rng.random(len(rows)) < 0.9, truth, (truth + 1) % len(classes))
    scores = np.eye(len(classes))[predicted] + 0.1 * rng.normal(size=(len(rows), len(classes)))
    return {
        "version": 1,
        "source": table.source,
        "seconds": 57.1,
        "subsample": {"rows": 200, "of": 344, "words": "The search looked at 200 of 344 rows."},
        "leaderboard": [
            {"learner": "svm", "title": "Support vector machine", "score": 0.91, "error": 0.01, "seconds": 2.0,
             "status": "converged", "note": "", "is_chosen": True},
            {"learner": "tree", "title": "Decision tree", "score": 0.88, "error": 0.02, "seconds": 0.4,
             "status": "converged", "note": "", "is_chosen": False},
            {"learner": "adaboost", "title": "AdaBoost", "score": None, "error": None, "seconds": None,
             "status": "not tried", "note": "no time was left", "is_chosen": False},
        ],
        "choice": {"prefer": "best", "words": "The support vector machine has the best accuracy."},
        "estimate": {
            "method": "hold-out", "words": "A final hold-out of 200 rows.", "measure": "accuracy",
            "value": float((truth == predicted).mean()), "low": 0.85, "high": 0.94, "baseline": 0.44,
            "baseline_class": classes[0], "classes": classes, "rows": rows.tolist(), "truth": truth.tolist(),
            "predicted": predicted.tolist(), "scores": scores.tolist(),
        },
        "search": {"learner": "svm", "cells": [
            {"C": C, "gamma": gamma, "score": 0.8 + 0.01 * C * gamma, "status": "converged"}
            for C in (0.1, 1.0, 10.0) for gamma in (0.01, 0.1)
        ]},
        "learning_curve": [{"rows": 50, "score": 0.8, "error": 0.02}, {"rows": 200, "score": 0.9, "error": 0.01}],
        "course": [{"seconds": 0.1 * i, "value": 0.5**i, "name": "gap", "stage": "svm"} for i in range(1, 9)],
        "warnings": ["A column is constant."],
    }  # fmt: skip
