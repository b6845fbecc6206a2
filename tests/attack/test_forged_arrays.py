"""Change any public array of a fitted model, and its certificate fails: of every learner that has one.

An array is changed in five ways: negated, one entry changed, one entry NaN, moved by one place, its last entry dropped.
Then `certify` must deny the model or refuse it with a `MargroveError`. An array that cannot be changed passes.
"""

from __future__ import annotations

import copy
import dataclasses
import warnings

import numpy as np
import pytest

import margrove
from margrove import certify
from margrove.errors import MargroveError
from margrove.learner import learners

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
LETTERS = np.array(list("abc"))[np.argmax(X + 0.3 * rng.normal(size=X.shape), axis=1)]
TRUTHS = X[:, 0] + 0.4 * rng.normal(size=40) > 0
NUMBERS = X[:, 0] + 0.3 * rng.normal(size=40)
APART = X + np.where(X[:, :1] > 0, 1.0, -1.0) * np.array([1.0, 0.0, 0.0])  # rows that a plane separates
SIDES = np.where(X[:, 0] > 0, "up", "down")
HOLED = np.where(rng.random(X.shape) < 0.1, np.nan, X)

m = margrove
MODELS = {
    "BasicLinearClassifier": (m.BasicLinearClassifier(), X, LETTERS),
    "LeastSquaresClassifier": (m.LeastSquaresClassifier(), X, LETTERS),
    "Perceptron": (m.Perceptron(random_state=0), APART, SIDES),
    "Perceptron, averaged": (m.Perceptron(random_state=0, variant="averaged", max_iter=5), X, LETTERS),
    "Perceptron, voted": (m.Perceptron(random_state=0, variant="voted", max_iter=5), X, LETTERS),
    "KernelPerceptron": (m.KernelPerceptron(random_state=0), APART, SIDES),
    "SVC": (m.SVC(), X, LETTERS),
    "SVC, probabilities": (m.SVC(probability=True), X, TRUTHS),
    "SVC, one against the rest": (m.SVC(kernel="linear", multiclass="ovr", class_weight="balanced"), X, LETTERS),
    "NuSVC": (m.NuSVC(nu=0.3), X, LETTERS),
    "SVR": (m.SVR(), X, NUMBERS),
    "NuSVR": (m.NuSVR(), X, NUMBERS),
    "OneClassSVM": (m.OneClassSVM(nu=0.3), X, None),
    "LinearSVC": (m.LinearSVC(), X, LETTERS),
    "LinearSVC, hinge": (m.LinearSVC(loss="hinge"), X, TRUTHS),
    "LinearSVC, l1": (m.LinearSVC(penalty="l1"), X, LETTERS),
    "LinearSVC, Crammer and Singer": (m.LinearSVC(multi_class="crammer_singer"), X, LETTERS),
    "LinearSVR": (m.LinearSVR(), X, NUMBERS),
    "LinearSVR, squared": (m.LinearSVR(loss="squared_epsilon_insensitive"), X, NUMBERS),
    "DecisionTreeClassifier": (m.DecisionTreeClassifier(max_depth=3), HOLED, LETTERS),
    "DecisionTreeClassifier, pruned": (m.DecisionTreeClassifier(prune="pessimistic"), X, LETTERS),
    "DecisionTreeRegressor": (m.DecisionTreeRegressor(max_depth=2), X, NUMBERS),
    "DecisionStump": (m.DecisionStump(), X, LETTERS),
    "RandomForestClassifier": (m.RandomForestClassifier(n_estimators=4, oob_score=True), X, LETTERS),
    "RandomForestClassifier, of a table": (m.RandomForestClassifier(n_estimators=3), HOLED, LETTERS),
    "RandomForestRegressor": (m.RandomForestRegressor(n_estimators=3), X, NUMBERS),
    "ExtraTreesClassifier": (m.ExtraTreesClassifier(n_estimators=3), X, LETTERS),
    "ExtraTreesRegressor": (m.ExtraTreesRegressor(n_estimators=3), X, NUMBERS),
    "AdaBoostClassifier": (m.AdaBoostClassifier(n_estimators=3), X, TRUTHS),
    "AdaBoostClassifier, early": (
        m.AdaBoostClassifier(n_estimators=6, early_stopping=True, validation_fraction=0.3),
        X,
        LETTERS,
    ),
    "AdaBoostClassifier, pruned": (
        m.AdaBoostClassifier(m.DecisionTreeClassifier(max_depth=2, prune="pessimistic"), n_estimators=3),
        X,
        LETTERS,
    ),
    "AdaBoostClassifier, linear": (m.AdaBoostClassifier(m.BasicLinearClassifier(), n_estimators=3), X, TRUTHS),
    "AdaBoostRegressor": (m.AdaBoostRegressor(n_estimators=3), X, NUMBERS),
    "AdaBoostRegressor, linear": (m.AdaBoostRegressor(m.LinearSVR(), n_estimators=3), X, NUMBERS),
    "OneVsRestClassifier": (m.OneVsRestClassifier(m.LinearSVC()), X, LETTERS),
    "OneVsOneClassifier": (m.OneVsOneClassifier(), X, LETTERS),
    "BitStringClassifier": (m.BitStringClassifier(m.BasicLinearClassifier(), code="hadamard"), X, LETTERS),
    "CalibratedClassifier": (m.CalibratedClassifier(), X, LETTERS),
    "CalibratedClassifier, tuned": (
        m.CalibratedClassifier(m.AdaBoostClassifier(n_estimators=3), tuned_for="f1"),
        X,
        TRUTHS,
    ),
    "SoftmaxClassifier": (m.SoftmaxClassifier(tol=1e-6), X, LETTERS),
}
# What no prediction uses and nobody can recompute from the model and the data.
INFORMATIONAL = {
    "n_iter_": "how many steps the solver took",
    "n_kernel_rows_": "how many kernel rows it computed",
    "probA_": "of decisions on folds, which are not kept; certificates are of decisions, not of probabilities",
    "probB_": "as probA_",
}
WITHOUT_A_TEST = {"FineTuned"}  # needs torch: tests/transfer


def test_every_learner_with_a_certificate_is_here():
    certified = {learner.name for learner in learners() if learner.certify}
    assert {name.partition(",")[0] for name in MODELS} | WITHOUT_A_TEST == certified


def arrays_in(value, path=()):
    """The path and the array of every public array that is fitted, those of trees, rounds and learners within too."""
    if isinstance(value, np.ndarray):
        if value.size and not any(name in INFORMATIONAL for name in path):
            yield path, value
    elif isinstance(value, list) and value and hasattr(value[0], "get_params"):
        yield from arrays_in(value[0], (*path, 0))
    elif hasattr(value, "get_params"):
        names = {name for name in (*vars(value), *dir(type(value))) if name.endswith("_") and not name.startswith("_")}
        for name in sorted(names - {"certificate_"}):
            yield from arrays_in(getattr(value, name, None), (*path, name))
    elif dataclasses.is_dataclass(value):
        for part in dataclasses.fields(value):
            yield from arrays_in(getattr(value, part.name), (*path, part.name))


def followed(value, path):
    for key in path:
        value = value[key] if isinstance(key, int) else getattr(value, key)
    return value


def changes_of(array):
    """Other arrays, by what was done."""
    one = array.copy()
    first = int(np.argmax(np.isfinite(one.ravel()))) if one.dtype.kind == "f" else 0
    entry = one.reshape(-1)[first]
    gap = one.copy()
    if one.dtype.kind == "f":
        one.reshape(-1)[first] = entry * 1.5 + 0.1
        gap.reshape(-1)[first] = np.nan if gap.size > 1 else entry  # all NaN means that it is not known
    else:
        one.reshape(-1)[first] = {"b": lambda: not entry, "U": lambda: "z"}.get(one.dtype.kind, lambda: entry + 1)()
    found = {"one entry": one, "one NaN": gap, "moved": np.roll(array, 1, axis=0), "dropped": array[:-1]}
    if array.dtype.kind in "fi":
        found["negated"] = -array
    return {what: other for what, other in found.items() if not same(other, array)}


def same(one, other):
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def forged(model, path, array):
    """A copy of the model with this array in that place; None where it cannot be put there."""
    forgery = copy.deepcopy(model)
    owner = followed(forgery, path[:-1])
    try:
        if dataclasses.is_dataclass(owner) and not hasattr(owner, "get_params"):
            object.__setattr__(owner, path[-1], array)
        else:
            setattr(owner, path[-1], array)
    except AttributeError:  # a property: perhaps its array can be written to
        if array.shape != followed(model, path).shape or not followed(model, path).flags.writeable:
            return None
        followed(forgery, path)[...] = array
    return forgery if same(followed(forgery, path), array) else None


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.filterwarnings("ignore:Attribute `prob[AB]_`:FutureWarning")
@pytest.mark.parametrize("name", MODELS)
def test_a_certificate_fails_as_soon_as_one_array_is_another(name):
    learner, points, target = MODELS[name]
    data = (points,) if target is None else (points, target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", margrove.errors.ConvergenceWarning)
        model = learner.fit(*data)
    assert certify(model, *data).holds
    accepted, n_tried = [], 0
    for path, array in arrays_in(model):
        for what, other in changes_of(array).items():
            forgery = forged(model, path, other)
            if forgery is None:
                continue
            n_tried += 1
            try:
                is_accepted = certify(forgery, *data).holds
            except MargroveError:
                continue
            if is_accepted:
                accepted.append(f"{'.'.join(map(str, path))} {what}")
    assert accepted == []
    assert n_tried > 0
