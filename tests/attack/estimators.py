"""A seeded fuzz of every estimator: hostile tables and parameters, in child processes.

    python -m tests.attack.estimators --cases 10000 --seed 1 --only SVR
    python -m tests.attack.estimators --seed 1 --case 137

A case is a table, y, weights and parameters drawn from (seed, number of the case). It is fitted, used for prediction,
certified, and sometimes copied, pickled, saved and loaded. Verdicts:

======== =============================================================================================== ======
sound    the fit converged and its certificate holds; an independent recomputation agrees
open     a model that says of itself that it did not converge
refused  a MargroveError, or the type of exception that scikit-learn raises for the same call
crash    the process died                                                                                  fault
hang     a phase took longer than `children.SILENCE`, or a fit longer than its time limit + GRACE           fault
raw      any other exception                                                                               fault
denied   status_ is "converged", and the model's certificate does not hold                                  fault
false    the certificate holds, and the independent recomputation denies it                                 fault
changed  a copy of the model predicts otherwise, or cannot be made                                          fault
nonsense predictions of the wrong number, or of labels that are not classes                                 fault
======== =============================================================================================== ======
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import pickle
import sys
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.validation import has_fit_parameter
from tests.attack import children, tables
from tests.attack.independent import complaints
from tests.attack.parameters import PARAMETERS, parameters

GRACE = 5.0  # seconds that a fit may take beyond its time limit, on a busy machine
FAULTS = ("crash", "hang", "raw", "denied", "false", "changed", "nonsense")

# The machines that solve something come twice.
NAMES = (
    *("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR"),
    *("SVCCV", "SVRCV", "LinearSVCCV", "LinearSVRCV"),
    *("SVC", "SVR", "LinearSVC", "LinearSVR"),
    *("BasicLinearClassifier", "LeastSquaresClassifier", "Perceptron", "KernelPerceptron"),
    *("DecisionTreeClassifier", "DecisionTreeRegressor", "DecisionStump", "AdaBoostClassifier", "AdaBoostRegressor"),
    *("OneVsRestClassifier", "OneVsOneClassifier", "BitStringClassifier", "ImpuritySelector", "TableEncoder"),
    "CalibratedClassifier",
    *("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor"),
)
_REGRESSORS = ("SVR", "NuSVR", "LinearSVR", "SVRCV", "LinearSVRCV", "DecisionTreeRegressor", "AdaBoostRegressor")
_REGRESSORS += ("RandomForestRegressor", "ExtraTreesRegressor")
_UNWEIGHTED = ("TableEncoder", "ImpuritySelector")


@dataclass
class Case:
    """What is given to an estimator."""

    name: str
    given: dict[str, Any]
    kinds: str
    X: Any
    y: Any
    weight: Any
    strange: Any  # another table, to predict
    rng: np.random.Generator

    def __str__(self) -> str:
        words = ", ".join(f"{key}={_short(value)}" for key, value in self.given.items())
        return f"{self.name}({words}) on {self.kinds}"


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 200 else f"{text[:200]}…"


def drawn(seed: int, number: int) -> Case:
    """The case of that number."""
    rng = np.random.default_rng([seed, number])
    name = NAMES[number % len(NAMES)]
    sober = bool(rng.random() < 0.6)
    given = parameters(name, rng, nonsense=0.0 if sober else 0.1)
    kernel = given.get("kernel")
    x_kind, X, n = tables.table(rng, sober, kernel if isinstance(kernel, str) else None)
    y_kind, y = (tables.values if name in _REGRESSORS else tables.labels)(rng, n, sober)
    w_kind, weight = tables.weights(rng, n, sober)
    if name in _UNWEIGHTED:
        w_kind, weight = "none", None
    if name == "OneClassSVM" and rng.random() < 0.8:
        y_kind, y = "none at all", None
    shape = getattr(X, "shape", "")
    kinds = f"X {x_kind} {shape}, y {y_kind}, weights {w_kind}"
    strange = tables.table(rng, False)
    return Case(name, given, f"{kinds}; then {strange[0]}", X, y, weight, strange[1], rng)


# ---- the peer: what scikit-learn raises for the same call


def _peer(case: Case, is_plain: bool) -> Any:
    """scikit-learn's estimator that is nearest to the one under test: plain, or with the parameters that it knows."""
    from sklearn import (
        calibration,
        ensemble,
        feature_selection,
        linear_model,
        multiclass,
        neighbors,
        preprocessing,
        svm,
        tree,
    )

    peers: dict[str, Any] = {
        **dict.fromkeys(("SVC", "SVCCV", "KernelPerceptron"), svm.SVC),
        **dict.fromkeys(("LinearSVC", "LinearSVCCV"), svm.LinearSVC),
        **dict.fromkeys(("SVR", "SVRCV"), svm.SVR),
        **dict.fromkeys(("LinearSVR", "LinearSVRCV"), svm.LinearSVR),
        "NuSVC": svm.NuSVC,
        "NuSVR": svm.NuSVR,
        "OneClassSVM": svm.OneClassSVM,
        "BasicLinearClassifier": neighbors.NearestCentroid,
        "LeastSquaresClassifier": linear_model.RidgeClassifier,
        "Perceptron": linear_model.Perceptron,
        **dict.fromkeys(("DecisionTreeClassifier", "DecisionStump"), tree.DecisionTreeClassifier),
        "DecisionTreeRegressor": tree.DecisionTreeRegressor,
        "AdaBoostClassifier": ensemble.AdaBoostClassifier,
        "AdaBoostRegressor": ensemble.AdaBoostRegressor,
        **{name: getattr(ensemble, name) for name in NAMES if "Forest" in name or "ExtraTrees" in name},
        "OneVsRestClassifier": lambda: multiclass.OneVsRestClassifier(svm.LinearSVC()),
        "OneVsOneClassifier": lambda: multiclass.OneVsOneClassifier(svm.LinearSVC()),
        "BitStringClassifier": lambda: multiclass.OutputCodeClassifier(svm.LinearSVC()),
        "CalibratedClassifier": calibration.CalibratedClassifierCV,
        "ImpuritySelector": feature_selection.SelectKBest,
        "TableEncoder": preprocessing.OneHotEncoder,
    }
    model = peers[case.name]()
    known = model.get_params()
    if not is_plain:
        model.set_params(**{key: value for key, value in case.given.items() if key in known and key != "estimator"})
    return model.set_params(max_iter=1000) if known.get("max_iter") == -1 else model  # it keeps no clock


def _peer_errors(case: Case, call: str, points: Any = None) -> tuple[type[BaseException], ...]:
    """What scikit-learn raises for fitting the case, or for calling the fitted model's method on X or on other points:
    with the same parameters, and with its own, because it does not know all of ours."""
    found = []
    for is_plain in (False, True):
        try:
            peer = _peer(case, is_plain)
            is_weighted = case.weight is not None and has_fit_parameter(peer, "sample_weight")
            peer.fit(case.X, case.y, sample_weight=case.weight) if is_weighted else peer.fit(case.X, case.y)
            if call != "fit":
                getattr(peer, call)(case.X if points is None else points)
        except Exception as error:
            # Its errors of parameters are ValueErrors and TypeErrors at once; whoever calls it catches ValueError.
            found.append(ValueError if isinstance(error, InvalidParameterError) else type(error))
    return tuple(found)


def is_malformed(X: Any) -> bool:
    """Whether X is a sparse matrix whose arrays contradict each other: scikit-learn crashes on some of them."""
    if not sp.issparse(X) or X.format not in ("csr", "csc", "coo"):
        return False
    stored = len(X.data)
    if X.format == "coo":
        places = [(each, size) for each, size in zip(X.coords, X.shape, strict=True)]
    else:
        outer, inner = X.shape if X.format == "csr" else X.shape[::-1]
        start = np.asarray(X.indptr, np.int64)
        if len(start) != outer + 1 or start[0] != 0 or (np.diff(start) < 0).any() or start[-1] > stored:
            return True
        stored, places = int(start[-1]), [(X.indices, inner)]
    return any(
        len(each) < stored or (stored > 0 and (each[:stored].min() < 0 or each[:stored].max() >= size))
        for each, size in places
    )


# ---- one case


class FaultError(Exception):
    """A verdict against the library."""

    def __init__(self, verdict: str, detail: str) -> None:
        super().__init__(verdict, detail)


def attack(seed: int, number: int, tell: children.Tell) -> dict[str, Any]:
    """Run a case and return its verdict."""
    tell("drawing")
    case = drawn(seed, number)
    try:
        verdict, detail = _attacked(case, tell)
    except FaultError as fault:
        verdict, detail = fault.args
    return {"verdict": verdict, "detail": detail, "about": f"{case}"}


def _attacked(case: Case, tell: children.Tell) -> tuple[str, str]:
    import margrove
    from margrove.errors import MargroveError

    def called(call: str, function: Any, peer: bool = True, points: Any = None) -> Any:
        """Call the library; a MargroveError passes, other exceptions must be scikit-learn's own."""
        tell(call)
        try:
            return function()
        except MargroveError:
            raise
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)
            ours = [frame for frame in where if "margrove" in frame.filename] or where
            place = f"{ours[-1].filename.rsplit('/margrove/')[-1]}:{ours[-1].lineno}"
            if peer and children.is_of_scikit_learns_checks(error):
                raise _PeerTypeError(error) from error
            tell(f"{children.PEER} {call}")
            is_safe = not is_malformed(case.X) and not is_malformed(points)
            others = _peer_errors(case, call, points) if peer and is_safe else ()
            if isinstance(error, others):
                raise _PeerTypeError(error) from error
            theirs = " or ".join(other.__name__ for other in others) or "nothing"
            raise FaultError("raw", f"in {call}, at {place}: {_named(error)}; scikit-learn raises {theirs}") from error

    try:
        model = called("fit", lambda: getattr(margrove, case.name)(**case.given))
        started = time.monotonic()
        fitted = (
            (lambda: model.fit(case.X, case.y))
            if case.weight is None
            else (lambda: model.fit(case.X, case.y, sample_weight=case.weight))
        )
        called("fit", fitted)
        took, limit = time.monotonic() - started, case.given.get("time_limit")
        if isinstance(limit, float) and limit >= 0 and took > limit + GRACE:
            raise FaultError("hang", f"the fit took {took:.1f} s, its time limit is {limit:g} s")
    except MargroveError as error:
        return "refused", _named(error)
    except _PeerTypeError as error:
        return "refused", f"as scikit-learn: {error}"
    return _used(case, model, called)


class _PeerTypeError(Exception):
    """An exception of the type that scikit-learn raises for the same call."""


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0][:300] if str(error) else ''}"


def _used(case: Case, model: Any, called: Any) -> tuple[str, str]:
    """Predict, certify, copy."""
    import margrove
    from margrove.errors import MargroveError

    answer = None
    method = next((name for name in ("predict", "transform") if hasattr(model, name)), None)
    if case.name.endswith("CV") and not hasattr(model, "best_estimator_"):
        return "open", "a search without a model"
    if method is not None:
        try:
            answer = called(method, lambda: getattr(model, method)(case.X))
        except MargroveError as error:
            if not any(issubclass(ValueError, other) for other in _peer_errors(case, method)):
                raise FaultError("nonsense", f"{method} refuses the rows it was fitted on: {_named(error)}") from error
            return "refused", f"{method}, as scikit-learn: {error}"
        except _PeerTypeError as error:
            return "refused", f"{method}, as scikit-learn: {error}"
        _check_answer(model, method, answer, case)
        for name in ("decision_function", "predict_proba"):
            if hasattr(model, name) and answer is not None:
                with contextlib.suppress(MargroveError, _PeerTypeError):
                    called(name, lambda name=name: getattr(model, name)(case.X))
    status = str(getattr(model, "status_", "none"))
    certificate = None
    if hasattr(model, "status_") and answer is not None:
        try:
            certificate = called("certify", lambda: margrove.certify(model, case.X, case.y, case.weight), peer=False)
        except MargroveError as error:
            if status == "converged" and "partial_fit" not in str(error):
                raise FaultError("denied", f"certify refuses: {_named(error)}") from error
    is_recomputed = certificate is not None and _check_certificate(case, model, certificate, status, called)
    if answer is not None:
        _check_copies(case, model, method, answer, called)
        with contextlib.suppress(MargroveError, _PeerTypeError):
            called(method, lambda: getattr(model, method)(case.strange), points=case.strange)
    words = f"{status}, recomputed" if is_recomputed else status
    return ("sound" if status in ("converged", "none") else "open"), words


def _check_answer(model: Any, method: str | None, answer: Any, case: Case) -> None:
    if answer is None or method != "predict":
        return
    n = case.X.shape[0] if hasattr(case.X, "shape") else len(case.X)
    outputs = np.shape(case.y)[1:] if getattr(model, "n_outputs_", 1) > 1 else ()
    if getattr(answer, "shape", None) != (n, *outputs):
        raise FaultError("nonsense", f"predict returns shape {getattr(answer, 'shape', None)} for {n} rows")
    if hasattr(model, "classes_") and not np.isin(answer, model.classes_).all():
        raise FaultError("nonsense", "predict returns labels that are not classes")
    is_number = answer.dtype.kind == "f" and not hasattr(model, "classes_")
    if is_number and str(getattr(model, "status_", "")) == "converged" and not np.isfinite(answer).all():
        raise FaultError("nonsense", "predict returns NaN or infinity for rows of a converged fit")


def _check_certificate(case: Case, model: Any, certificate: Any, status: str, called: Any) -> bool:
    """Return whether the certificate holds and was recomputed independently."""
    if not certificate.holds:
        if status == "converged":
            failed = [
                f"{claim.name} {claim.values} limits {claim.limits}"
                for claim in certificate.claims
                if claim.holds is False
            ]
            raise FaultError("denied", "; ".join(failed)[:600])
        return False
    X, y = _plain_numbers(case.X), _plain_labels(case.y, case.name in _REGRESSORS)
    if X is None or (case.y is not None and y is None):
        return False
    model = getattr(model, "best_estimator_", model)
    found = called(
        "the independent recomputation", lambda: complaints(model, X, y, case.weight, certificate), peer=False
    )
    if found:
        raise FaultError("false", f"status {status}; " + "; ".join(found)[:600])
    return found is not None


def _plain_numbers(X: Any) -> Any:
    """X in float64, as estimators read it; None where it is not plainly numbers."""
    try:
        values = X.toarray() if sp.issparse(X) else np.asarray(X)
        return values.astype(np.float64) if values.dtype.kind in "fiub" and values.ndim == 2 else None
    except Exception:
        return None


def _plain_labels(y: Any, are_numbers: bool) -> Any:
    """y as an array, of float64 where it is to be predicted as a number; None where that is not plainly it."""
    try:
        return None if y is None or sp.issparse(y) else np.asarray(y, np.float64 if are_numbers else None).ravel()
    except Exception:
        return None


def _check_copies(case: Case, model: Any, method: str, answer: Any, called: Any) -> None:
    """A copy of each kind predicts the same."""
    import margrove
    from margrove.errors import MargroveError

    def saved() -> Any:
        stream = io.BytesIO()
        margrove.save(model, stream)
        stream.seek(0)
        return margrove.load(stream)

    ways = {"copy": lambda: copy.deepcopy(model), "pickle": lambda: pickle.loads(pickle.dumps(model)), "save": saved}
    way = list(ways)[case.rng.integers(len(ways))]
    try:
        again = called(way, ways[way], peer=False)
        same = called(f"{method} after {way}", lambda: getattr(again, method)(case.X), peer=False)
    except MargroveError as error:
        is_known = (
            any(
                words in str(error)
                for words in ("a model file contains", "a model file can only hold", "cannot be saved")
            )
            or str(getattr(model, "status_", "")) != "converged"
        )
        if way == "save" and isinstance(error, margrove.errors.ModelFileError) and is_known:
            return
        if way == "save" and "a model file takes one target" in str(error) and model.n_outputs_ > 1:
            return
        raise FaultError("changed", f"{way}: {_named(error)}") from error
    if not _is_same(answer, same):
        raise FaultError("changed", f"{way}: another answer of {method}")


def _is_same(one: Any, other: Any) -> bool:
    """Whether two arrays, matrices or frames hold the same."""
    if sp.issparse(one):
        one, other = one.toarray(), other.toarray()
    if isinstance(one, np.ndarray) and one.dtype.kind != "O":
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return type(one) is type(other) and str(one) == str(other)  # cells of any kind


# ---- the run


def cases_of(count: int, only: str | None = None) -> list[int]:
    """The numbers of the first ``count`` cases, of one estimator alone if it is named."""
    if only is None:
        return list(range(count))
    places = [place for place, name in enumerate(NAMES) if name == only]
    return [round_ * len(NAMES) + place for round_ in range(-(-count // len(places))) for place in places][:count]


def fuzz(cases: list[int], seed: int, workers: int = 2) -> list[children.Outcome]:
    """Run the cases in child processes."""
    return children.run("tests.attack.estimators", cases, ["--seed", str(seed)], workers=workers)


def reproducer(outcome: children.Outcome, seed: int) -> str:
    """The command that runs one case again."""
    return f"python -m tests.attack.estimators --seed {seed} --case {outcome.case}"


def report(outcomes: list[children.Outcome], seed: int) -> str:
    """Counts of each verdict, and a paragraph for each fault."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    lines = [
        f"{len(outcomes)} cases, seed {seed}: " + ", ".join(f"{count} {key}" for key, count in counts.most_common()),
        f"{sum('recomputed' in outcome.detail for outcome in outcomes)} certificates recomputed independently",
    ]
    for outcome in outcomes:
        if outcome.verdict in FAULTS:
            about = outcome.about or str(drawn(seed, outcome.case))
            lines.append(f"{outcome.verdict}: {outcome.detail}\n    {about}\n    {reproducer(outcome, seed)}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--from", dest="start", type=int, default=0, help="skip this many cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=sorted(PARAMETERS))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--case", type=int, help="run this one case, in this process")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        import margrove.app.models  # noqa: F401 imports most of the library before the first case

        warnings.simplefilter("ignore")
        children.serve(lambda number, tell: attack(asked.seed, number, tell))
        return 0
    if asked.case is not None:
        case = drawn(asked.seed, asked.case)
        print(case, f"X = {case.X!r}", f"y = {case.y!r}", f"sample_weight = {case.weight!r}", sep="\n", flush=True)
        warnings.simplefilter("ignore")
        print(attack(asked.seed, asked.case, lambda phase: print(f"({phase})", flush=True)))
        return 0
    cases = cases_of(asked.start + asked.cases, asked.only)[asked.start :]
    outcomes = fuzz(cases, asked.seed, asked.workers)
    print(report(outcomes, asked.seed))
    return int(any(outcome.verdict in FAULTS for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
