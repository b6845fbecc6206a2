"""Long solves: progress, time limits, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import cross_val_score

import margrove
from margrove import (
    SVC,
    SVCCV,
    SVR,
    DecisionTreeClassifier,
    KernelPerceptron,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    NuSVC,
    OneClassSVM,
    OneVsRestClassifier,
    Perceptron,
)
from margrove.errors import ConvergenceWarning, ParameterError
from margrove.estimator import Interruptible
from margrove.run import slices
from margrove.run.effort import Effort, on_interrupt
from margrove.run.progress import watched
from margrove.run.slices import run_in_slices
from margrove.status import Status, worst


@pytest.fixture
def endless(rng):
    """Rows nobody can separate: a perceptron goes on for as long as it may."""
    return rng.normal(size=(4000, 20)), rng.integers(0, 2, size=4000)


LONG = [
    Perceptron(max_iter=10**7),
    Perceptron(max_iter=10**7, penalty="elasticnet"),
    KernelPerceptron(max_iter=10**7, kernel="linear"),
    Perceptron(max_iter=10**7, variant="averaged"),
]


@pytest.mark.parametrize("learner", LONG, ids=repr)
def test_a_time_limit_ends_the_solve_with_the_model_it_has(learner, endless):
    started = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = learner.set_params(time_limit=0.3).fit(*endless)
    learner.set_params(time_limit=None)
    assert time.monotonic() - started < 30  # not a measurement: only that it ended
    assert model.status_ == "time_limit"
    assert np.isfinite(model.decision_function(endless[0])).all()


@contextmanager
def interrupted_soon():
    """Ctrl-C after a moment, and again should that be lost: what a callback of the garbage collector raises is dropped,
    and Hypothesis has one."""
    is_over = threading.Event()

    def press():
        time.sleep(0.4)
        while True:
            os.kill(os.getpid(), signal.SIGINT)
            if is_over.wait(10):
                return

    thread = threading.Thread(target=press, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def press_once(seconds):
    """A solve in which Ctrl-C is pressed at once."""
    raise KeyboardInterrupt


def test_keep_ends_a_solve_with_its_status():
    assert Effort().on_interrupt == "keep"
    assert run_in_slices(press_once, Effort(on_interrupt="keep")) is Status.INTERRUPTED


def test_raise_lets_ctrl_c_through():
    with pytest.raises(KeyboardInterrupt):
        run_in_slices(press_once, Effort(on_interrupt="raise"))


def test_a_block_sets_the_policy_and_gives_it_back():
    with on_interrupt("raise"):
        with on_interrupt("keep"):
            assert run_in_slices(press_once, Effort()) is Status.INTERRUPTED
        with pytest.raises(KeyboardInterrupt):
            run_in_slices(press_once, Effort())
    assert Effort().on_interrupt == "keep"


@pytest.mark.parametrize("wrong", ["stop", None, 1])
def test_other_policies_are_refused(wrong):
    with pytest.raises(ParameterError, match=r"on_interrupt is .*; it must be one of 'keep', 'raise'"):
        Effort(on_interrupt=wrong)
    with pytest.raises(ParameterError, match=r"policy is .*; it must be one of 'keep', 'raise'"), on_interrupt(wrong):
        pass


def test_ctrl_c_ends_a_search_too(endless):
    """An interrupted fold must not be scored as if it were whole."""
    started = time.monotonic()
    with interrupted_soon(), pytest.raises(KeyboardInterrupt):
        cross_val_score(Perceptron(max_iter=10**7, time_limit=60), *endless, cv=5)
    assert time.monotonic() - started < 50


def test_ctrl_c_ends_a_loop_of_fits_on_request(endless):
    begun = []

    def fit(learner):
        begun.append(learner)
        return learner.fit(*endless)

    with interrupted_soon(), pytest.raises(KeyboardInterrupt), on_interrupt("raise"):
        list(map(fit, LONG))
    assert len(begun) == 1


def test_a_fit_after_an_interrupted_one_is_begun(endless):
    learner = Perceptron(max_iter=10**7, time_limit=60)
    with interrupted_soon(), pytest.warns(ConvergenceWarning, match="interrupted"):
        learner.fit(*endless)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        assert learner.set_params(max_iter=2).fit(*endless).status_ == "max_iter"


def at_first_report(progress):
    raise KeyboardInterrupt


INTERRUPTED = [
    Perceptron(max_iter=10**7),
    Perceptron(max_iter=10**7, penalty="elasticnet"),
    KernelPerceptron(max_iter=10**7, kernel="linear"),
    SVC(tol=1e-9),
    NuSVC(nu=0.3, tol=1e-9),
    SVR(tol=1e-9),
    OneClassSVM(tol=1e-9),
    LinearSVC(tol=1e-12),
    LinearSVR(tol=1e-12),
    SVCCV(Cs=[1.0, 10.0], refit=False),
    LinearSVCCV(Cs=[1.0, 10.0], refit=False),
    DecisionTreeClassifier(),
    OneVsRestClassifier(SVC(tol=1e-9)),
]


@pytest.mark.parametrize("learner", INTERRUPTED, ids=lambda learner: type(learner).__name__)
def test_ctrl_c_ends_the_fit_of_a_clone_by_an_exception(learner, endless, monkeypatch):
    """A clone is fitted by a search or an ensemble."""
    monkeypatch.setattr(slices, "SLICE", 1e-9)  # every pause is taken, whatever the clock says
    X, y = endless[0][:1000], endless[1][:1000]
    with watched(at_first_report), pytest.warns(ConvergenceWarning, match="interrupted"):
        assert learner.fit(X, y).status_ == "interrupted"
    with watched(at_first_report), pytest.raises(KeyboardInterrupt):
        clone(learner).fit(X, y)
    with watched(at_first_report), on_interrupt("keep"), pytest.warns(ConvergenceWarning, match="interrupted"):
        assert clone(learner).fit(X, y).status_ == "interrupted"


def test_every_estimator_detects_that_it_is_a_clone():
    """Or Ctrl-C in a search of scikit-learn would end one of its fits only."""
    public = [getattr(margrove, name) for name in margrove.__all__]
    learners = [each for each in public if isinstance(each, type) and issubclass(each, BaseEstimator)]
    with_time_limit = [each for each in learners if "time_limit" in each._get_param_names()]
    assert len(with_time_limit) > 10
    assert [cls.__name__ for cls in with_time_limit if not issubclass(cls, Interruptible)] == []


@pytest.mark.parametrize("learner", LONG, ids=repr)
def test_ctrl_c_keeps_the_model(learner, endless):
    with interrupted_soon(), pytest.warns(ConvergenceWarning, match="interrupted"):
        model = learner.fit(*endless)
    assert model.status_ == "interrupted"
    assert model.certificate_.status == "interrupted"
    assert np.isfinite(model.decision_function(endless[0])).all()


def test_progress_reaches_a_listener(endless):
    seen = []
    with watched(seen.append), pytest.warns(ConvergenceWarning, match="time_limit"):
        Perceptron(max_iter=10**7, time_limit=0.4).fit(*endless)
    assert seen
    assert all(report.stage == "perceptron" and report.objective > 0 for report in seen)
    assert [report.done for report in seen] == sorted(report.done for report in seen)


def test_without_a_listener_nothing_is_printed(endless, capfd):
    with pytest.warns(ConvergenceWarning):
        Perceptron(max_iter=50).fit(*endless)
    assert capfd.readouterr() == ("", "")


def test_the_reference_refuses_a_time_limit(endless):
    from margrove.errors import EngineError

    with pytest.raises(EngineError, match="does not support time_limit"):
        Perceptron(engine="reference", time_limit=1.0).fit(*endless)


def test_slices_end_on_the_first_status():
    calls = []

    def advance(seconds):
        calls.append(seconds)
        return Status.CONVERGED if len(calls) == 3 else None

    assert run_in_slices(advance, Effort()) is Status.CONVERGED
    assert len(calls) == 3


def test_several_machines_have_converged_only_if_each_has():
    assert worst([Status.CONVERGED, Status.CONVERGED]) is Status.CONVERGED
    assert worst([Status.CONVERGED, Status.STALLED, Status.MAX_ITER]) is Status.STALLED


def test_voted_out_of_memory_is_named(endless, monkeypatch):
    from margrove.engine.native import linear

    monkeypatch.setattr(linear, "free_memory", lambda: 100_000)
    with pytest.raises(MemoryError, match="variant='averaged'"):
        Perceptron(variant="voted").fit(*endless)


SEARCH = """
import os, signal, threading, warnings
import numpy as np
from sklearn.model_selection import GridSearchCV
from margrove import SVC

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X, y = rng.normal(size=(6000, 20)), np.arange(6000) % 2  # nothing to learn: it would take minutes
SVC().fit(X[:50], y[:50])
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    GridSearchCV(SVC(kernel="linear", max_iter=10**9), {"C": [1e5, 1e6]}, cv=2, refit=False).fit(X, y)  # by pairs
except KeyboardInterrupt:
    print("stopped")
"""


def test_ctrl_c_ends_a_search_of_scikit_learn():
    """A fold that was interrupted must not be scored as if it were whole."""
    process = subprocess.run([sys.executable, "-c", SEARCH], capture_output=True, text=True, timeout=120, check=False)
    assert process.stdout.strip() == "stopped", process.stderr
