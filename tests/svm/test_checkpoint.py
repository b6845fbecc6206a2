"""Fits and searches that outlive their process: what was done is not done again, and the result is the same."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import load_file
from sklearn.base import clone
from sklearn.metrics import accuracy_score, fbeta_score, make_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, ShuffleSplit

from margrove import SVC, SVCCV, SVR, SVRCV, Checkpoint, NuSVC, NuSVR, OneClassSVM, Status, certify, load, save
from margrove.engine import Effort, solve
from margrove.errors import (
    ConvergenceWarning,
    EngineError,
    InfeasibleError,
    InputError,
    MargroveWarning,
    ParameterError,
)
from margrove.run import slices
from margrove.run.checkpoint import Record, fingerprint
from margrove.run.progress import watched
from margrove.search.table import ScoreTable
from margrove.svm.checkpointing import solve_fingerprint
from margrove.svm.kernels import Kernel
from margrove.svm.problem import DualProblem, classification, nu_classification
from margrove.svm.training import training_data

OTHER = "belongs to other data or other parameters"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "long.checkpoint"


@pytest.fixture
def noise():
    """Nothing to learn: some ten thousand steps."""
    rng = np.random.default_rng(3)
    return rng.normal(size=(300, 4)), np.arange(300) % 2


@pytest.fixture
def short_slices(monkeypatch):
    """So that there is an occasion to look around in fits that take no time."""
    monkeypatch.setattr(slices, "SLICE", 1e-4)


def break_off(model, *data, steps=400):
    """A fit that ends before its time and leaves its checkpoint."""
    model = clone(model).set_params(max_iter=steps)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        return model.fit(*data)


def dual_objective(model, *data):
    return np.array(certify(model, *data).claim("dual").values)


def total_steps(model):
    return int(np.sum(model.n_iter_))


# ---- a fit goes on

SOLVES = {
    "SVC": SVC(C=100.0, gamma=0.3, tol=1e-4),
    "several machines": SVC(C=100.0, gamma=0.3, tol=1e-4, multiclass="ovr"),
    "hard margin": SVC(C=np.inf, gamma=2.0, tol=1e-4),
    "double": SVC(C=100.0, gamma=0.3, tol=1e-4, precision="double"),
    "linear": SVC(C=1.0, kernel="linear", tol=1e-4),
    "NuSVC": NuSVC(nu=0.3, gamma=0.3, tol=1e-6),
    "SVR": SVR(C=100.0, gamma=0.3, epsilon=0.01, tol=1e-4),
    "NuSVR": NuSVR(C=100.0, gamma=0.3, tol=1e-4),
    "OneClassSVM": OneClassSVM(nu=0.5, gamma=2.0, tol=1e-8),
}


def asked(name, noise):
    X, y = noise
    if name == "OneClassSVM":
        return (X,)
    if name == "several machines":
        return X, np.arange(len(y)) % 3
    return (X, np.random.default_rng(4).normal(size=len(y))) if name.endswith("SVR") else (X, y)


@pytest.mark.parametrize("name", SOLVES)
def test_going_on_is_as_good_as_never_having_stopped(name, noise, path):
    data = asked(name, noise)
    model = clone(SOLVES[name])
    whole = clone(model).fit(*data)
    several = len(np.atleast_1d(whole.n_iter_))
    first = break_off(model.set_params(checkpoint=path), *data, steps=total_steps(whole) // (3 * several))
    assert path.exists()
    second = clone(first).set_params(max_iter=-1).fit(*data)
    assert second.status_ is Status.CONVERGED
    assert not path.exists()
    assert certify(second, *data).holds
    assert total_steps(second) < total_steps(whole)
    np.testing.assert_allclose(dual_objective(second, *data), dual_objective(whole, *data), rtol=1e-6)


def test_a_finished_checkpoint_ends_at_once(noise, path):
    X, y = noise
    X, y = np.vstack([X, X[:100] + 5]), np.concatenate([y, np.full(100, 2)])  # the third class is easy to tell
    first = break_off(SVC(C=100.0, gamma=0.3, multiclass="ovr", checkpoint=path), X, y)
    second = clone(first).set_params(max_iter=-1).fit(X, y)
    assert first.n_iter_[2] > 0
    assert second.n_iter_[2] == 0
    assert second.n_iter_[0] > 0


def test_points_of_every_kind(noise, path):
    X, y = noise
    twice, labels = np.vstack([X, X[:100]]), np.concatenate([y, y[:100]])  # equal rows are one variable of the solver
    gram = rbf_kernel(X, gamma=0.3)
    cases = [
        (SVC(C=100.0, gamma=0.3), twice, labels),
        (SVC(C=100.0, gamma=0.3), sp.csr_array(X), y),
        (SVC(C=100.0, gamma=0.3), X.astype(np.float32), y),
        (SVC(C=100.0, gamma=0.3), np.asfortranarray(X), y),
        (SVC(C=100.0, kernel="precomputed"), gram, y),
        (SVC(C=100.0, kernel=lambda A, B: rbf_kernel(A, B, gamma=0.3)), X, y),
    ]
    for model, points, z in cases:
        first = break_off(model.set_params(checkpoint=path), points, z)
        second = clone(first).set_params(max_iter=-1).fit(points, z)
        assert certify(second, points, z).holds


def test_limits_threads_and_tolerance_may_change(noise, path):
    X, y = noise
    first = break_off(SVC(C=100.0, gamma=0.3, checkpoint=path), X, y)
    other = {"max_iter": -1, "tol": 1e-5, "n_jobs": 1, "time_limit": 60, "shrinking": False, "precision": "double"}
    second = clone(first).set_params(**other, cache_size=1, verbose=True).fit(X, y)
    assert certify(second, X, y).holds


def test_resuming_is_printed(noise, path, capsys):
    X, y = noise
    first = break_off(SVC(C=100.0, gamma=0.3, checkpoint=path, verbose=True), X, y)
    assert "goes on" not in capsys.readouterr().out
    clone(first).set_params(max_iter=-1).fit(X, y)
    assert "[SVC] resuming from its checkpoint" in capsys.readouterr().out


def test_a_checkpoint_goes_before_a_warm_start(noise, path):
    X, y = noise
    model = SVC(C=90.0, gamma=0.3, warm_start=True).fit(X, y)
    model.set_params(C=100.0, checkpoint=path, max_iter=400)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert certify(model.set_params(max_iter=-1).fit(X, y), X, y).holds
    assert not path.exists()


def test_probability_folds_write_no_checkpoint(noise, path):
    X, y = noise
    for model in (SVC(probability=True, checkpoint=path), NuSVC(nu=0.8, probability=True, checkpoint=path)):
        assert model.fit(X, y).predict_proba(X).shape == (300, 2)
        assert not path.exists()


def test_other_learners_of_it_are_undisturbed(noise, path):
    X, y = noise
    model = SVC(checkpoint=Checkpoint(path, interval=0))
    assert len(model.path(X, y, [0.1, 1.0]).models) == 2
    assert model.fit(X, y).leave_one_out(X, y).error <= 1
    found = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    assert repr(found.best_estimator_.checkpoint) == repr(model.checkpoint)
    assert list(path.parent.iterdir()) == []


def test_an_infeasible_problem_leaves_no_checkpoint(path, short_slices):
    X, y = np.zeros((40, 2)), np.arange(40) % 2
    X[:, 0] = np.arange(40)
    with pytest.raises(InfeasibleError):
        SVC(C=np.inf, kernel="linear", checkpoint=Checkpoint(path, interval=0)).fit(X, y)
    assert not path.exists()


def test_a_model_file_contains_no_checkpoint(noise, path, tmp_path):
    models = [SVC(), NuSVC(nu=0.8), SVR(), NuSVR(), OneClassSVM()]
    for model in models:
        model.set_params(checkpoint=Checkpoint(path, 5.0)).fit(*noise)
        save(model, tmp_path / "model.margrove")
        assert str(path).encode() not in (tmp_path / "model.margrove").read_bytes()
        assert load(tmp_path / "model.margrove").checkpoint is None


# ---- when it is written


def test_it_is_written_at_intervals_and_removed_in_the_end(noise, path, short_slices):
    X, y = noise
    sizes = []

    def look(_):
        sizes.append(path.stat().st_size if path.exists() else 0)

    with watched(look):
        SVC(C=100.0, gamma=0.3, tol=1e-4, checkpoint=Checkpoint(path, interval=0)).fit(X, y)
    assert len(sizes) > 1
    assert all(sizes)
    assert not path.exists()
    sizes.clear()
    with watched(look):
        SVC(C=100.0, gamma=0.3, tol=1e-4, checkpoint=path).fit(X, y)
    assert not any(sizes)  # 30 seconds


def test_ctrl_c_and_a_time_limit_leave_one(noise, path, short_slices):
    X, y = noise

    def press(_):
        raise KeyboardInterrupt

    model = SVC(C=100.0, gamma=0.3, tol=1e-4, checkpoint=path)
    with watched(press), pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X, y)
    assert path.exists()
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        clone(model).set_params(time_limit=1e-4).fit(X, y)
    assert path.exists()
    assert certify(model.fit(X, y), X, y).holds
    assert not path.exists()


@pytest.mark.parametrize("precision", ["auto", "double"])
def test_looking_at_alpha_leaves_no_trace(noise, short_slices, precision):
    X, y = noise
    sign = (2 * y - 1).astype(np.int8)
    points = np.vstack([X, X[:50]])
    sign = np.concatenate([sign, sign[:50]])
    for dual in (classification(sign, np.linspace(1, 100, 350)), nu_classification(sign, np.ones(350), 0.4)):
        problem = DualProblem(points, Kernel("rbf", gamma=0.3), (dual,), tol=1e-5, precision=precision)
        seen = []
        (alone,) = solve(problem, "native")
        (watched_,) = solve(problem, "native", Effort(look_around=lambda present, to=seen: to.append(present()[0])))
        np.testing.assert_array_equal(watched_.alpha, alone.alpha)
        assert watched_.n_iter == alone.n_iter
        assert len(seen) > 1
        for alpha in seen:
            assert (alpha >= 0).all()
            assert (alpha <= dual.upper).all()
            assert float(sign @ alpha) == pytest.approx(float(sign @ dual.alpha), abs=1e-9 * alpha.sum())
        assert any(not np.array_equal(alpha, seen[0]) for alpha in seen)


def test_it_is_never_half_written(noise, path, short_slices, monkeypatch):
    """A process that dies in the middle of a write leaves the checkpoint before."""
    X, y = noise
    model = SVC(C=100.0, gamma=0.3, tol=1e-4, checkpoint=Checkpoint(path, interval=0))

    class Killed(BaseException):
        pass

    for name in ("fsync", "replace"):
        calls, real = [], getattr(os, name)

        def die(*given, calls=calls, real=real):
            calls.append(given)
            if len(calls) == 3:
                raise Killed
            return real(*given)

        monkeypatch.setattr(os, name, die)
        with pytest.raises(Killed):
            clone(model).fit(X, y)
        monkeypatch.setattr(os, name, real)
        assert os.listdir(path.parent) == [path.name]
    assert certify(model.fit(X, y), X, y).holds


def test_a_full_disk_does_not_end_the_fit(noise, path, short_slices, monkeypatch):
    X, y = noise

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    model = SVC(C=100.0, gamma=0.3, tol=1e-4, checkpoint=Checkpoint(path, interval=0))
    with pytest.warns(MargroveWarning, match="cannot be written .No space left") as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert model.certificate_.holds
    assert os.listdir(path.parent) == []


# ---- what is refused


def test_other_data_and_other_parameters_are_refused(noise, path):
    X, y = noise
    model = break_off(SVC(C=100.0, gamma=0.3, checkpoint=path), X, y).set_params(max_iter=-1)
    before = path.read_bytes()
    moved, flipped = X.copy(), y.copy()
    moved[17, 2] += 1e-9
    flipped[17] = 1 - flipped[17]
    fits = [
        (model, (moved, y)),
        (model, (X, flipped)),
        (model, (X[:-1], y[:-1])),
        (model, (X[::-1], y[::-1])),
        (model, (X.astype(np.float32), y)),
        (model, (sp.csr_array(X), y)),
        (model, (X, y, np.linspace(1, 2, 300))),
        *((clone(model).set_params(**{name: value}), (X, y)) for name, value in [("C", 101.0), ("gamma", 0.31)]),
        (clone(model).set_params(kernel="laplacian"), (X, y)),
        (clone(model).set_params(class_weight={0: 2.0, 1: 1.0}), (X, y)),
        (NuSVC(checkpoint=path), (X, y)),
        (SVCCV(checkpoint=path), (X, y)),
    ]
    for other, data in fits:
        with pytest.raises(InputError, match=OTHER) as caught:
            other.fit(*data)
        assert str(path) in str(caught.value)
        assert "delete the file to start again" in str(caught.value)
        assert path.read_bytes() == before
    assert certify(model.fit(X, y), X, y).holds


def test_every_number_of_the_dual_counts(noise, path):
    """ν stands in no bound and in no p: it is in the sums of α alone."""
    X, y = noise
    for model, other in [
        (NuSVC(nu=0.3, gamma=0.3), {"nu": 0.31}),
        (OneClassSVM(nu=0.3, gamma=2.0, tol=1e-8), {"nu": 0.31}),
        (NuSVR(nu=0.3, gamma=0.3, C=100.0), {"nu": 0.31}),
        (SVR(gamma=0.3, C=100.0), {"epsilon": 0.11}),
    ]:
        first = break_off(model.set_params(checkpoint=path), X, y, steps=10)
        with pytest.raises(InputError, match=OTHER):
            clone(first).set_params(max_iter=-1, **other).fit(X, y)
        clone(first).set_params(max_iter=-1).fit(X, y)


def test_the_checkpoint_of_another_fit_is_replaced_on_request(noise, path):
    X, y = noise
    first = break_off(SVC(C=100.0, gamma=0.3, checkpoint=path), X, y)
    other = clone(first).set_params(C=50.0, max_iter=-1, checkpoint=Checkpoint(path, replace=True)).fit(X, y)
    assert certify(other, X, y).holds
    assert not path.exists()


def test_damage_is_reported(noise, path):
    X, y = noise
    model = break_off(SVC(C=100.0, gamma=0.3, checkpoint=path), X, y).set_params(max_iter=-1)
    whole = path.read_bytes()
    for content in (b"", b"\0" * 100, b"hello", whole[:-1], whole[:40], whole + b"\0", b"not a checkpoint\n" * 1000):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"is damaged.*Delete the file to start again"):
            model.fit(X, y)
        assert path.read_bytes() == content


def test_every_changed_byte_is_detected(path):
    record = Record(Checkpoint(path), fingerprint("a test"))
    arrays = {"alpha": np.array([0.5, 1.0]), "count": np.array([2])}
    record.write(arrays)
    whole = path.read_bytes()
    for place in range(len(whole)):
        for change in (1, 128):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ change]) + whole[place + 1 :])
            with pytest.raises(InputError):
                record.read()
    path.write_bytes(whole)
    found = record.read()
    assert found.keys() == arrays.keys()
    assert all(np.array_equal(found[name], arrays[name]) for name in arrays)


def test_an_impossible_alpha_is_refused(noise, path):
    X, y = noise
    model = break_off(SVC(C=100.0, gamma=0.3, checkpoint=path), X, y).set_params(max_iter=-1)
    arrays = load_file(path)
    dual = classification((2 * y - 1).astype(np.int8), np.full(300, 100.0))
    data = training_data(model, X)
    record = Record(Checkpoint(path), solve_fingerprint(data.points, data.solver_kernel, [dual]))
    assert record.read() is not None
    alpha = arrays["alpha"]
    for wrong in (alpha * 1e3, -alpha, alpha + np.eye(1, len(alpha))[0], alpha * np.nan):
        record.write({**arrays, "alpha": wrong})
        with pytest.raises(InputError, match="is damaged"):
            model.fit(X, y)


def test_a_later_format_is_refused(path):
    record = Record(Checkpoint(path), fingerprint("a test"))
    record.write({"alpha": np.ones(1)})
    path.write_bytes(path.read_bytes().replace(rb"\"format\": 1", rb"\"format\": 2"))
    with pytest.raises(InputError, match="has format 2; this version reads 1"):
        record.read()


def test_bad_values_are_refused_before_any_work(tmp_path):
    nowhere = [[np.nan]], ["not even looked at"]
    for value, words in [
        (3, "checkpoint is 3; it must be the path of a file"),
        (True, "checkpoint is True"),
        (b"bytes", "checkpoint is b'bytes'"),
        ("", "that is a directory"),
        (tmp_path, "that is a directory"),
        (tmp_path / "missing" / "file", "there is no directory .*missing"),
    ]:
        for model in (SVC, NuSVC, SVR, NuSVR, OneClassSVM, SVCCV, SVRCV):
            with pytest.raises(ParameterError, match=words):
                model(checkpoint=value).fit(*nowhere)
    for given, words in [((3,), "path of a checkpoint is 3"), ((b"x",), "path"), (("x", -1), "interval is -1")]:
        with pytest.raises(ParameterError, match=words):
            Checkpoint(*given)
    with pytest.raises(ParameterError, match="replace is 1"):
        Checkpoint("x", replace=1)
    with pytest.raises(ParameterError, match="interval is nan"):
        Checkpoint("x", np.nan)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="whoever may do everything may write everywhere")
def test_a_read_only_folder_is_refused(tmp_path, noise):
    tmp_path.chmod(0o500)
    with pytest.raises(ParameterError, match="is not writable"):
        SVC(checkpoint=tmp_path / "file").fit(*noise)


def test_the_reference_engine_writes_no_checkpoint(noise, path):
    for model in (SVC, SVR, SVCCV, SVRCV):
        with pytest.raises(EngineError, match="does not support checkpoint"):
            model(engine="reference", checkpoint=path).fit(*noise)
    dual = classification(np.array([1, -1], np.int8), np.ones(2))
    problem = DualProblem(np.eye(2), Kernel("linear"), (dual,))
    with pytest.raises(EngineError, match="does not support checkpoint"):
        solve(problem, "reference", Effort(look_around=print))


def test_fingerprints_of_different_problems_differ():
    X = np.arange(6.0).reshape(2, 3)
    different = [
        (X,),
        (X.T,),
        (X.ravel(),),
        (X.astype(np.float32),),
        (sp.csr_array(X),),
        (X, 1),
        ([X, 1],),
        (X, "1", ""),
        (X, "", "1"),
        (X, None),
        ({"a": X},),
        (np.array(["a", "b"], dtype=object),),
        (np.array("a"),),
        ((),),
        (),
    ]
    assert len({fingerprint(*parts) for parts in different}) == len(different)
    same = [X, np.asfortranarray(X), X[::-1][::-1]]
    assert len({fingerprint(points) for points in same}) == 1
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert fingerprint(wide) == fingerprint(sp.csr_array(X))
    assert fingerprint(0.1 + 0.2, np.float64(3), True) == fingerprint(0.3, 3, 1)


# ---- searches

GRID = {"Cs": [1.0, 10.0, 100.0], "gammas": [0.03, 0.3, 3.0], "cv": 3}


@pytest.fixture
def entered(monkeypatch):
    """The units that are handed over, as (fold, gamma, epsilon)."""
    seen, real = [], ScoreTable.enter

    def enter(table, place, *rest):
        seen.append((place[3], place[2], place[1]))
        real(table, place, *rest)

    monkeypatch.setattr(ScoreTable, "enter", enter)
    return seen


def break_off_search(model, *data, units, monkeypatch):
    """A search that dies after some units. What it had written is left."""

    class Killed(BaseException):
        pass

    real = Record.write

    def write(record, arrays):
        real(record, arrays)
        if np.isfinite(arrays["score"]).all(axis=0).sum() >= units:
            raise Killed

    monkeypatch.setattr(Record, "write", write)
    with pytest.raises(Killed):
        model.fit(*data)
    monkeypatch.setattr(Record, "write", real)


@pytest.mark.parametrize("drop_early", [False, True])
@pytest.mark.parametrize("cache_size", ["auto", 0.2])
def test_units_that_are_done_are_not_solved_again(
    noise, path, short_slices, entered, monkeypatch, drop_early, cache_size
):
    X, y = noise
    model = SVCCV(**GRID, tol=1e-4, drop_early=drop_early, cache_size=cache_size, n_jobs=1)
    whole = clone(model).fit(X, y)
    alone = sorted(entered)
    entered.clear()
    model.set_params(checkpoint=Checkpoint(path, interval=0))
    break_off_search(clone(model), X, y, units=4, monkeypatch=monkeypatch)
    before = entered.copy()
    assert 4 <= len(before) < len(alone)
    entered.clear()
    second = clone(model).fit(X, y)
    assert not set(entered) & set(before)
    assert sorted(entered + before) == alone
    for name in ("mean_test_score", "mean_n_support", "max_violation", "is_converged"):
        np.testing.assert_array_equal(second.cv_results_[name], whole.cv_results_[name])
    assert (second.cv_results_["mean_fit_time"][second.best_index_]) > 0
    assert second.best_params_ == whole.best_params_
    assert second.certificate_.holds
    assert os.listdir(path.parent) == []


def test_a_regression_search_goes_on(values, path, short_slices, entered, monkeypatch):
    X, z = values
    model = SVRCV(Cs=[1.0, 10.0], gammas=[0.1, 1.0], epsilons=[0.01, 0.1], cv=3, n_jobs=1)
    whole = clone(model).fit(X, z)
    alone = sorted(entered)
    entered.clear()
    model.set_params(checkpoint=Checkpoint(path, interval=0))
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        clone(model).set_params(time_limit=1e-3, refit=False).fit(X, z)
    second = clone(model).fit(X, z)
    assert sorted(entered) == alone
    np.testing.assert_array_equal(second.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"])
    assert os.listdir(path.parent) == []


def test_an_interrupted_search_goes_on(noise, path, short_slices, entered, monkeypatch):
    X, y = noise
    alone = SVCCV(**GRID).fit(X, y)
    units = len(entered)
    entered.clear()

    def press(progress):
        if len(entered) >= 3:
            raise KeyboardInterrupt

    model = SVCCV(**GRID, checkpoint=path)
    with watched(press), pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X, y)
    assert path.exists()
    model.fit(X, y)
    assert len(entered) == units
    assert model.best_score_ == alone.best_score_
    assert not path.exists()


def test_a_refit_goes_on_without_a_search(noise, path, entered, monkeypatch):
    """Killed in the refit: the table and the refit's own α are there."""
    X, y = noise
    model = SVCCV(**GRID, checkpoint=path)
    fit = SVC.fit

    def die(self, *given):
        monkeypatch.setattr(SVC, "fit", fit)
        break_off(self, *given, steps=20)
        raise KeyboardInterrupt

    monkeypatch.setattr(SVC, "fit", die)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert sorted(os.listdir(path.parent)) == [path.name, f"{path.name}.refit"]
    entered.clear()
    model.fit(X, y)
    assert entered == []
    assert model.best_estimator_.checkpoint is None
    assert total_steps(model) < total_steps(SVC(gamma=model.best_params_["gamma"], C=model.best_params_["C"]).fit(X, y))
    assert os.listdir(path.parent) == []


def accuracy_by_name(model, X, y):
    return accuracy_score(y, model.predict(X))


def test_another_search_is_refused(noise, path):
    X, y = noise
    model = SVCCV(**GRID, checkpoint=path, time_limit=1e-3, refit=False)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model.fit(X, y)
    before = path.read_bytes()
    model.set_params(time_limit=None)
    weight = np.linspace(1, 2, 300)
    others = [
        ({"Cs": [1.0, 10.0]}, (X, y)),
        ({"gammas": [0.03, 0.3]}, (X, y)),
        ({"cv": 4}, (X, y)),
        ({"cv": ShuffleSplit(3)}, (X, y)),
        ({"tol": 1e-4}, (X, y)),
        ({"precision": "double"}, (X, y)),
        ({"kernel": "laplacian"}, (X, y)),
        ({"break_ties": True}, (X, y)),
        ({"class_weight": "balanced"}, (X[1:], y[1:])),
        ({"scoring": "f1"}, (X, y)),
        ({"scoring": make_scorer(fbeta_score, beta=2)}, (X, y)),
        ({"scoring": accuracy_by_name}, (X, y)),
        ({}, (X, y, weight)),
        ({}, (X, y + 1)),
    ]
    for parameters, data in others:
        with pytest.raises(InputError, match=OTHER):
            clone(model).set_params(**parameters).fit(*data)
        assert path.read_bytes() == before
    model.set_params(n_jobs=1, refit=True, verbose=True).fit(X, y)
    assert model.certificate_.holds


# ---- the process is killed

# Children of one process do the work, are killed at random moments, and begin again; the last one may end. Of each:
# whether it was killed, what it noted, what it found, and the checkpoint that it left.
KILLER = """
import json, os, random, signal, sys, time
import numpy as np
from margrove import SVC, SVCCV, Checkpoint, certify
from margrove.run.progress import watched
from margrove.search.table import ScoreTable
from safetensors.numpy import load_file

folder, chance = sys.argv[1], random.Random(int(sys.argv[2]))
path, log, found = (os.path.join(folder, name) for name in ("checkpoint", "log", "found"))

def note(*words):
    print(time.time(), *words, file=notes, flush=True)

def lines():
    return open(log).read().splitlines() if os.path.exists(log) else []

def left():
    try:
        return {"written": os.stat(path).st_mtime, "kept": kept(load_file(path))}
    except FileNotFoundError:
        return {"written": 0.0, "kept": []}

def child(checkpoint, seconds=None, is_last=False):
    global notes
    for name in (log, found):
        if os.path.exists(name):
            os.unlink(name)
    pid = os.fork()
    if pid == 0:
        notes = open(log, "w")
        note("start")
        with watched(lambda _: note("look")):
            result = work(checkpoint)
        json.dump(result, open(found, "w"))
        os._exit(0)
    if seconds is not None:
        while len(lines()) < 2 and not os.path.exists(found):
            time.sleep(0.002)
        while is_last and not left()["kept"] and not os.path.exists(found):  # there is something to go on from
            time.sleep(0.01)
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return {"result": json.load(open(found)) if os.path.exists(found) else None, "notes": lines()[:-1], **left()}

whole = child(None)
runs = []
for number in range(kills):
    runs.append(child(Checkpoint(path, interval), chance.uniform(0.0, longest), number == kills - 1))
    if runs[-1]["result"]:
        break
if not runs[-1]["result"]:
    runs.append(child(Checkpoint(path, interval)))
print(json.dumps({"whole": whole, "runs": runs, "files": os.listdir(folder)}))
"""

FIT = """
rng = np.random.default_rng(0)
X, y = rng.normal(size=(2500, 10)), np.arange(2500) % 2
kills, longest, interval = 4, 0.3, 0.1

def work(checkpoint):
    model = SVC(C=5000.0, gamma=0.05, tol=1e-4, checkpoint=checkpoint).fit(X, y)  # more than a second
    certificate = certify(model, X, y)
    return {"holds": certificate.holds, "dual": certificate.claim("dual").values[0], "steps": int(model.n_iter_.sum())}

def kept(arrays):
    return arrays["place"].tolist()
"""

SEARCH = """
rng = np.random.default_rng(0)
X, y = rng.normal(size=(1600, 10)), np.arange(1600) % 2
kills, longest, interval = 4, 0.3, 0.0
enter = ScoreTable.enter

def noted(table, place, *rest):
    enter(table, place, *rest)
    note("unit", place[2], place[3])

ScoreTable.enter = noted

def work(checkpoint):
    grid = {"Cs": [10.0, 100.0, 1000.0], "gammas": [0.01, 0.02, 0.04, 0.08], "cv": 4, "tol": 1e-4}
    search = SVCCV(**grid, checkpoint=checkpoint).fit(X, y)
    return {"scores": search.cv_results_["mean_test_score"].tolist(), "holds": search.certificate_.holds}

def kept(arrays):
    return np.argwhere(~np.isnan(arrays["support"][:, 0]).any(axis=0)).tolist()
"""


def killed(work, folder, seed):
    begin, end = KILLER.split("whole = child")
    command = [sys.executable, "-W", "ignore", "-c", begin + work + "\nwhole = child" + end, str(folder), str(seed)]
    caught = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert caught.returncode == 0, caught.stderr
    found = json.loads(caught.stdout)
    assert any(run["result"] is None for run in found["runs"])
    assert "checkpoint" not in found["files"]
    return found["whole"]["result"], found["runs"]


@pytest.mark.skipif(os.name != "posix", reason="fork and SIGKILL")
@pytest.mark.parametrize("seed", [1, 2])
def test_a_fit_that_is_killed_again_and_again(tmp_path, seed):
    whole, runs = killed(FIT, tmp_path, seed)
    assert whole["holds"]
    assert runs[-1]["result"]["holds"]
    assert runs[-1]["result"]["dual"] == pytest.approx(whole["dual"], rel=1e-6)
    if runs[-2]["kept"]:  # where there is none, the fit had ended, and it was its certificate that was cut short
        assert runs[-1]["result"]["steps"] < whole["steps"]
    for run in (run for run in runs[:-1] if run["kept"]):  # not where the certificate was cut short: the file is gone
        # At the last look the file was no older than the interval and what the solver does between two looks.
        times = np.array([float(line.split()[0]) for line in run["notes"]])
        assert times[-1] - max(run["written"], times[0]) <= 0.1 + 2 * np.diff(times).max(initial=0.0) + 0.01


@pytest.mark.skipif(os.name != "posix", reason="fork and SIGKILL")
@pytest.mark.parametrize("seed", [1, 2])
def test_a_search_that_is_killed_again_and_again(tmp_path, seed):
    whole, runs = killed(SEARCH, tmp_path, seed)
    assert runs[-1]["result"] == whole
    done = set()
    for run in runs:
        words = [line.split()[1:] for line in run["notes"]]
        last_look = max((number for number, word in enumerate(words) if word == ["look"]), default=0)
        units = [(number, (int(word[1]), int(word[2]))) for number, word in enumerate(words) if word[0] == "unit"]
        entered, safe = {unit for _, unit in units}, {unit for number, unit in units if number < last_look}
        assert not entered & done
        if run["result"] is None:
            now = {tuple(unit) for unit in run["kept"]}
            assert done | safe <= now
            done = now


def test_a_path_leaves_the_checkpoint_of_a_fit_alone(noise, path):
    X, y = noise
    break_off(SVC(C=100.0, gamma=0.3, checkpoint=path), X, y)
    written = path.read_bytes()
    SVC(gamma=0.3, checkpoint=path).path(X, y, [0.1, 1])
    assert path.read_bytes() == written
