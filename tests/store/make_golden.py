"""Write the golden files of today's format: ``python tests/store/make_golden.py``.

Run it when the format number is new, or a learner is. A file that is there is never written again: it stands for what
people have on their disks.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from margrove import (
    SVC,
    SVR,
    AdaBoostClassifier,
    AdaBoostRegressor,
    BasicLinearClassifier,
    BitStringClassifier,
    CalibratedClassifier,
    DecisionStump,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    KernelPerceptron,
    LeastSquaresClassifier,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OneVsOneClassifier,
    OneVsRestClassifier,
    Perceptron,
    RandomForestClassifier,
    RandomForestRegressor,
    Table,
    TableEncoder,
    as_table,
    save,
)
from margrove.errors import ConvergenceWarning
from margrove.store.container import FORMAT

GOLDEN = Path(__file__).parent / "golden"

X = np.array([[0.0, 0.5], [1.0, 0.0], [0.5, 3.0], [1.5, 4.0], [4.0, 1.0], [5.0, 0.5]])
LETTERS = np.array(["a", "a", "b", "b", "c", "c"])
TRUTHS = np.array([False, False, False, False, True, True])
TABLE: dict[str, list[Any]] = {
    "island": ["Biscoe", "Dream", None, "Dream", "Torgersen", "Biscoe"],
    "mass": [3.5, 4.0, None, 5.25, 4.5, 3.0],
    "is_old": [True, False, True, True, False, False],
}
REVIEWS: dict[str, list[Any]] = {
    "stars": [5.0, 1.0, 4.0, None, 2.0, 3.0],
    "body": ["Good tea, good pot", "bad tea", "Good pot!", "bad pot", None, "good tea"],
}


def table(cells: dict[str, list[Any]] = TABLE) -> Table:
    """These rows."""
    import pyarrow

    return as_table(pyarrow.table(cells))


def models() -> dict[str, tuple[Any, Any]]:
    """Name → a fitted model and what it predicts on."""
    single = X.astype(np.float32)
    sparse = sp.csr_matrix(X)
    balanced = Perceptron(variant="averaged", class_weight={"a": 1.0, "b": 2.0, "c": 1.5}, random_state=0)
    pipeline = make_pipeline(TableEncoder(), Perceptron(variant="voted", max_iter=20, random_state=0))
    code = SVC(kernel="linear", multiclass=np.array([[1, 1, 0], [-1, 1, 1], [0, -1, -1]]))
    hard = make_pipeline(TableEncoder(), SVC(C=float("inf"), gamma="median"))
    columns = make_column_transformer((PCA(1), [0, 1]), (OneHotEncoder(), [0]), remainder="passthrough")
    scaled = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), columns, SVC())
    pruned = DecisionTreeClassifier(prune="cost_complexity", ccp_alpha=0.2, smoothing=1.0)
    pairs = OneVsOneClassifier(DecisionTreeClassifier(max_depth=1))
    bits = BitStringClassifier(BasicLinearClassifier(), code="hadamard", decoding="hamming")
    zeros = BitStringClassifier(
        KernelPerceptron(kernel="precomputed", random_state=0), code=np.array([[1, 1, 0], [-1, 1, 1], [0, -1, -1]])
    )
    rest = OneVsRestClassifier(SVC(gamma=0.5, probability=True))
    encoded = OneVsRestClassifier(make_pipeline(TableEncoder(), LeastSquaresClassifier()))
    intervals = DecisionTreeClassifier(categorical="multiway", split_values={"mass": [3.25, 4.25]})
    boosted = AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=2, criterion="entropy", min_samples_leaf=2), n_estimators=3
    )
    words = make_pipeline(TableEncoder(text=["body"]), BasicLinearClassifier())
    hashes = make_pipeline(TableEncoder(text="body", text_features="hashing", max_features=16), SVC(kernel="linear"))
    tuned = CalibratedClassifier(AdaBoostClassifier(n_estimators=3), tuned_for="balanced_accuracy")
    recorded = BasicLinearClassifier().fit(X, LETTERS)
    recorded.training_record_ = {"version": 1, "source": "golden", "leaderboard": [{"learner": "basic", "score": 1.0}]}
    return {
        "training-record": (recorded, X),
        "basic": (BasicLinearClassifier().fit(X, TRUTHS), X),
        "least-squares": (LeastSquaresClassifier().fit(X, LETTERS), X),
        "perceptron": (Perceptron(max_iter=50, random_state=0).fit(X, LETTERS), X),
        "averaged": (balanced.fit(X, LETTERS), X),
        "kernel-float32": (KernelPerceptron(gamma=0.5, random_state=0).fit(single, LETTERS), X),
        "kernel-sparse": (KernelPerceptron(kernel="poly", degree=2, random_state=0).fit(sparse, TRUTHS), X),
        "kernel-precomputed": (KernelPerceptron(kernel="precomputed", random_state=0).fit(X @ X.T, LETTERS), X @ X.T),
        "pipeline": (pipeline.fit(table(), LETTERS), table()),
        "svc": (SVC(gamma=0.5, class_weight="balanced").fit(X, LETTERS), X),
        "svc-float32": (SVC(kernel="linear", multiclass="ovr").fit(single, LETTERS), X),
        "svc-sparse": (SVC(kernel="poly", degree=2).fit(sparse, TRUTHS), X),
        "svc-precomputed": (SVC(kernel="precomputed", decision_function_shape="ovo").fit(X @ X.T, LETTERS), X @ X.T),
        "svc-code": (code.fit(X, LETTERS), X),
        "svc-pipeline": (hard.fit(table(), LETTERS), table()),
        "svc-scaled": (scaled.fit(X, LETTERS), X),
        "svc-probability": (SVC(gamma=0.5, probability=True).fit(X, LETTERS), X),
        "nu-svc": (NuSVC(nu=0.5, sigma=1.0).fit(X, TRUTHS), X),
        "svr": (SVR(kernel="linear", C=10.0).fit(X, X[:, 0]), X),
        "linear-svc": (LinearSVC(class_weight="balanced").fit(sparse, LETTERS), X),
        "linear-svc-hinge": (LinearSVC(loss="hinge", regularize_intercept=False).fit(single, TRUTHS), X),
        "linear-svr": (LinearSVR(epsilon=0.1, C=10.0).fit(X, X[:, 0]), X),
        "nu-svr": (NuSVR(gamma=0.5).fit(sparse, X[:, 1]), X),
        "one-class": (OneClassSVM(nu=0.4, gamma=0.5).fit(X), X),
        "tree": (pruned.fit(table(), LETTERS), table()),
        "tree-multiway": (intervals.fit(table(), LETTERS), table()),
        "tree-sparse": (DecisionTreeClassifier(criterion="entropy").fit(sparse, TRUTHS), X),
        "tree-regressor": (DecisionTreeRegressor(max_depth=2).fit(single, X[:, 0]), X),
        "stump": (DecisionStump(class_weight="balanced").fit(X, LETTERS), X),
        "adaboost": (AdaBoostClassifier(n_estimators=5).fit(table(), LETTERS), table()),
        "adaboost-trees": (boosted.fit(sparse, LETTERS[[0, 2, 1, 4, 3, 5]]), X),
        "adaboost-regressor": (AdaBoostRegressor(n_estimators=4, random_state=0).fit(X, X[:, 0]), X),
        "forest": (RandomForestClassifier(n_estimators=3, oob_score=True).fit(X, LETTERS), X),
        "forest-table": (RandomForestClassifier(n_estimators=3).fit(table(), LETTERS), table()),
        "forest-regressor": (RandomForestRegressor(n_estimators=3).fit(single, X[:, 0]), X),
        "extra-trees": (ExtraTreesClassifier(n_estimators=3).fit(X, LETTERS), X),
        "extra-trees-regressor": (ExtraTreesRegressor(n_estimators=3).fit(X, X[:, 0]), X),
        "one-vs-rest": (rest.fit(X, LETTERS), X),
        "one-vs-rest-pipeline": (encoded.fit(table(), LETTERS), table()),
        "one-vs-one": (pairs.fit(table(), LETTERS), table()),
        "one-vs-one-svc": (OneVsOneClassifier().fit(single, LETTERS), X),
        "bit-string": (bits.fit(X, LETTERS), X),
        "bit-string-precomputed": (zeros.fit(X @ X.T, LETTERS), X @ X.T),
        "calibrated": (CalibratedClassifier(LinearSVC()).fit(X, LETTERS), X),
        "calibrated-tuned": (tuned.fit(table(), TRUTHS), table()),
        "text-tfidf": (words.fit(table(REVIEWS), TRUTHS), table(REVIEWS)),
        "text-hashing": (hashes.fit(table(REVIEWS), TRUTHS), table(REVIEWS)),
        "tree-pipeline": (make_pipeline(TableEncoder(), DecisionTreeClassifier()).fit(table(), LETTERS), table()),
    }


def _cells(points: Table) -> dict[str, list[Any]]:
    return REVIEWS if "body" in points else TABLE


def main() -> None:
    """Write each model that is not there, and beside it what it predicts."""
    GOLDEN.mkdir(exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = models()
    for name, (model, points) in fitted.items():
        file = GOLDEN / f"format{FORMAT}-{name}.margrove"
        if file.exists():
            continue
        save(model, file)
        last = model[-1] if hasattr(model, "steps") else model
        told = {
            "points": _cells(points) if isinstance(points, Table) else points.tolist(),
            "predictions": model.predict(points).tolist(),
            "holds": last.certificate_.holds,
        }
        if hasattr(model, "decision_function"):
            told["decisions"] = model.decision_function(points).tolist()
        elif hasattr(model, "predict_proba"):
            told["probabilities"] = model.predict_proba(points).tolist()
        if hasattr(last, "kkt_"):
            told["words"] = last.kkt_.tolist()
        file.with_suffix(".json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
