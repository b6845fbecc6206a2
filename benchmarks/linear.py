"""Linear SVMs against scikit-learn's LinearSVC and LIBLINEAR's own program, at the same accuracy of the answer.

    python benchmarks/linear.py [names of cases]

Each side gets the loosest tolerance of a grid whose answer has a primal value within 1e-4 of the best, relative to it.
The best is bounded from below by a certified dual value (gap 1e-9). Times are of whole fits, one thread, but for news20
(20 classes, two threads allowed to both) and the searches over C. LIBLINEAR's time is that of training alone, without
making its problem of the array. The intercept is penalised on all sides, as LIBLINEAR's is.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from liblinear.liblinear import parameter, problem
from liblinear.liblinearutil import train
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import LinearSVC as Peer
from threadpoolctl import threadpool_limits

from margrove import LinearSVC, LinearSVCCV
from margrove.linear_svm.problem import losses
from measure import interleaved, keep, machine, shown

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SUBOPTIMALITY = 1e-4
OUR_GRID = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
PEER_GRID = (3.0, 1.0, 3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6)
BARS = {
    ("synthetic", "squared_hinge"): 20,
    ("a9a", "squared_hinge"): 4,
    ("ijcnn1", "squared_hinge"): 5,
    ("w8a", "squared_hinge"): 1.5,
    ("reuters_moneyfx", "squared_hinge"): 1.5,
    ("news20", "squared_hinge"): 1.5,
    ("synthetic", "hinge"): 8,
    ("ijcnn1", "hinge"): 3,
    ("a9a", "hinge"): 1.2,
    ("w8a", "hinge"): 1.2,
    ("reuters_moneyfx", "hinge"): 1.2,
    ("news20", "hinge"): 1.2,
}
PATH_SETS = ("ijcnn1", "a9a", "reuters_moneyfx")
PATH_BAR = 10


def points(name: str) -> tuple[Any, NDArray[Any]]:
    """The training part of a set; labels as they are."""
    if name == "synthetic":
        X, y = make_classification(100_000, 50, n_informative=20, random_state=0)
        return np.ascontiguousarray(X, dtype=np.float32), y
    stored = np.load(DATA / f"{'news20_counts' if name == 'news20' else name}.npz", allow_pickle=False)
    if "X_train_data" not in stored.files:
        return np.ascontiguousarray(stored["X_train"]), stored["y_train"]
    parts = (stored["X_train_data"], stored["X_train_indices"], stored["X_train_indptr"])
    X = sp.csr_matrix(parts, shape=tuple(stored["X_train_shape"]))
    if name == "news20":
        X = TfidfTransformer(sublinear_tf=True).fit_transform(X.astype(np.float64))
    return X, stored["y_train"]


def signs(y: NDArray[Any]) -> NDArray[np.float64]:
    """One line per machine."""
    classes = np.unique(y)
    chosen = classes[1:] if len(classes) == 2 else classes
    return np.where(y[None, :] == chosen[:, None], 1.0, -1.0)


def primal(X: Any, y: NDArray[Any], loss: Any, coef: NDArray[Any], intercept: NDArray[Any]) -> NDArray[np.float64]:
    """P of each machine, C = 1, the intercept penalised."""
    values = np.asarray(X @ np.asarray(coef, dtype=np.float64).T) + intercept
    lost = np.array([losses(loss, z, f, 0.0).sum() for z, f in zip(signs(y), values.T, strict=True)])
    return 0.5 * (np.square(coef).sum(axis=1) + np.square(intercept)) + lost


def loosest(fit: Callable[[float], Any], grid: tuple[float, ...], judge: Callable[[Any], float]) -> tuple[float, float]:
    """The first of the grid that is good enough, and how good it is; the last if none is."""
    found = float("inf")
    for tol in grid:
        found = judge(fit(tol))
        if found <= SUBOPTIMALITY:
            return tol, found
    return grid[-1], found


class Liblinear:
    """LIBLINEAR itself, with the attributes of an estimator."""

    def __init__(self, prepared: Any, tol: float, first_label: Any) -> None:
        model = train(prepared, parameter(f"-s 3 -c 1 -B 1 -e {tol} -q"))
        size = model.nr_feature + 1
        w = np.ctypeslib.as_array(model.w, (size,)).copy()
        if model.get_labels()[0] != first_label:
            w = -w
        self.coef_, self.intercept_ = w[None, :-1], w[-1:]


def case(name: str, loss: Any) -> dict[str, Any]:
    X, y = points(name)
    threads = 2 if name == "news20" else 1
    best = LinearSVC(loss=loss, tol=1e-9, max_iter=100_000).fit(X, y)
    floor = best.dual_

    def judge(model: Any) -> float:
        return float(np.max((primal(X, y, loss, model.coef_, model.intercept_) - floor) / floor))

    def ours(tol: float) -> Any:
        return LinearSVC(loss=loss, tol=tol, n_jobs=threads, max_iter=100_000).fit(X, y)

    is_liblinear = loss == "hinge" and len(np.unique(y)) == 2
    if is_liblinear:
        prepared = problem(np.where(signs(y)[0] > 0, 1, -1), X)

        def theirs(tol: float) -> Any:
            return Liblinear(prepared, tol, 1)
    else:

        def theirs(tol: float) -> Any:
            return Peer(loss=loss, tol=tol, max_iter=1_000_000, random_state=0).fit(X, y)

    our_tol, our_miss = loosest(ours, OUR_GRID, judge)
    peer_tol, peer_miss = loosest(theirs, PEER_GRID, judge)
    sides = {"ours": lambda: ours(our_tol), "peer": lambda: theirs(peer_tol)}
    seconds = interleaved(sides, runs=3 if name in ("synthetic", "news20") else 7)
    model = ours(our_tol)
    return {
        "name": f"{name}, {loss}",
        "peer": "LIBLINEAR -s 3" if is_liblinear else "scikit-learn LinearSVC",
        "threads": threads,
        "ours_s": seconds["ours"],
        "peer_s": seconds["peer"],
        "ratio": seconds["peer"] / seconds["ours"],
        "bar": BARS[name, loss],
        "our_tol": our_tol,
        "our_suboptimality": our_miss,
        "our_gap": float(np.max(model.gap_)),
        "our_solver": model.solver_,
        "peer_tol": peer_tol,
        "peer_suboptimality": peer_miss,
    }


def path(name: str) -> dict[str, Any]:
    X, y = points(name)
    Cs, folds = np.logspace(-3, 2, 20), StratifiedKFold(5)
    found: dict[str, Any] = {}

    def ours() -> None:
        found["ours"] = LinearSVCCV(Cs=Cs, cv=folds, n_jobs=1).fit(X, y)

    def theirs() -> None:
        found["peer"] = GridSearchCV(Peer(random_state=0), {"C": Cs}, cv=folds).fit(X, y)

    seconds = interleaved({"ours": ours, "peer": theirs}, runs=2)
    ours_scores = np.asarray(found["ours"].cv_results_["mean_test_score"])
    peer_scores = np.asarray(found["peer"].cv_results_["mean_test_score"])
    return {
        "name": f"{name}, 20 values of C, 5 folds",
        "peer": "GridSearchCV(LinearSVC)",
        "threads": 1,
        "ours_s": seconds["ours"],
        "peer_s": seconds["peer"],
        "ratio": seconds["peer"] / seconds["ours"],
        "bar": PATH_BAR,
        "our_best_score": float(found["ours"].best_score_),
        "peer_best_score": float(found["peer"].best_score_),
        "largest_difference_of_scores": float(np.abs(ours_scores - peer_scores).max()),
    }


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    wanted = sys.argv[1:]
    work: list[tuple[str, Callable[[], dict[str, Any]]]] = [
        (f"{name}, {loss}", lambda name=name, loss=loss: case(name, loss)) for name, loss in BARS
    ]
    work += [(f"{name}, path", lambda name=name: path(name)) for name in PATH_SETS]
    cases = []
    for title, measured in work:
        if wanted and not any(word in title for word in wanted):
            continue
        with threadpool_limits(2 if "news20" in title else 1):
            found = measured()
        print(shown(found), flush=True)
        cases.append(found)
        if not wanted:
            bar = "each side at the loosest tolerance that reaches a relative primal suboptimality of 1e-4"
            record = {"benchmark": "linear", "bar": bar, "machine": machine("liblinear-official"), "cases": cases}
            keep(record)


if __name__ == "__main__":
    main()
