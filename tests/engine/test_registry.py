"""Which engines there are, which one is chosen, and what becomes of a model whose engine is gone."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import clone

import margrove
from margrove import (
    SVC,
    SVR,
    AdaBoostClassifier,
    BasicLinearClassifier,
    DecisionTreeClassifier,
    KernelPerceptron,
    LinearSVC,
    Perceptron,
)
from margrove.engine import (
    Capability,
    Effort,
    Engine,
    Native,
    Reference,
    add,
    check_engine,
    choose,
    default,
    fitted_by,
    name_of,
    names,
    register,
    registry,
    solve,
)
from margrove.engine.registry import named
from margrove.errors import EngineError, MargroveError, MissingExtraError, ParameterError
from margrove.linear_svm.problem import LinearSvmProblem
from margrove.problem import Problem
from margrove.svm.kernels import Kernel
from margrove.svm.problem import DualProblem, classification


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    """What a test adds or registers is gone after it."""
    for name in names():
        named(name)  # registers its solvers
    monkeypatch.setattr(registry, "_added", {})
    monkeypatch.setattr(registry, "_solvers", {name: dict(solvers) for name, solvers in registry._solvers.items()})


@dataclass(frozen=True)
class Acme(Engine):
    """An engine from elsewhere with the native engine behind it."""

    device: int = 0
    name: ClassVar[str] = "acme"
    can: ClassVar[frozenset[Capability]] = frozenset()
    solved: ClassVar[list[tuple[int, str]]] = []  # (device, problem)

    def solves(self, problem: Problem[Any]) -> bool:
        return Native().solves(problem)

    def seconds(self, problem: Problem[Any]) -> float:
        return 1e-9

    def plan(self, problem: Problem[Any]) -> str:
        return ""

    def solve(self, problem: Problem[Any], effort: Effort) -> Any:
        self.solved.append((self.device, type(problem).__name__))
        return Native().solve(problem, effort)

    def kernel_sums(self, *asked: Any) -> Any:
        return Native().kernel_sums(*asked)

    def apply_trees(self, *asked: Any) -> Any:
        return Native().apply_trees(*asked)

    def sum_votes(self, *asked: Any) -> Any:
        return Native().sum_votes(*asked)

    def memory(self) -> int:
        return 1 << 30


@dataclass(frozen=True)
class Mean(Problem[float]):
    """The mean of some numbers."""

    values: tuple[float, ...]


@dataclass(frozen=True)
class MeanOfLogarithms(Mean):
    """The same of their logarithms."""


@dataclass(frozen=True)
class Abacus(Engine):
    """An engine whose solvers are registered."""

    name = "abacus"
    pace: float = 1.0

    def seconds(self, problem: Problem[Any]) -> float:
        return self.pace


@dataclass(frozen=True)
class Calculator(Abacus):
    name = "calculator"


def mean(engine: Engine, problem: Mean, effort: Effort) -> float:
    return float(np.mean(problem.values))


def mean_of_logarithms(engine: Engine, problem: MeanOfLogarithms, effort: Effort) -> float:
    return float(np.mean(np.log(problem.values)))


NUMBERS = Mean((1.0, 2.0, 6.0))


@pytest.fixture
def acme(monkeypatch) -> Acme:
    monkeypatch.setattr(Acme, "solved", [])
    return Acme(device=3)


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, np.where(X[:, 0] + X[:, 1] ** 2 > 1, "yes", "no")


# ------------------------------------------------------------------------------------------------------------- names


def test_the_folders_are_the_engines():
    assert names() == ("dask", "native", "reference", "stream")
    assert [named(name).name for name in names()] == list(names())
    assert default() == Native()


def test_classes_of_engines_are_attributes():
    assert margrove.engine.Native is type(named("native"))
    for name in ("Nonsense", "native_", "NATIVE"):
        with pytest.raises(AttributeError, match=name):
            getattr(margrove.engine, name)


def test_engines_of_equal_values_are_equal():
    assert Native() == Native() == named("native")
    assert hash(Native()) == hash(named("native"))
    assert Native() != Reference()
    assert Acme(1) != Acme(2)


def test_an_unknown_name_is_refused_with_the_known_ones():
    for ask in (named, check_engine, lambda name: choose(name, NUMBERS), lambda name: solve(NUMBERS, name)):
        with pytest.raises(ParameterError, match=r"engine is 'nativ'.*'native', 'reference', 'stream'"):
            ask("nativ")


def test_a_planned_engine_is_refused():
    for name in ("gpu",):
        with pytest.raises(EngineError, match=f"engine='{name}': the .* engine is not part of this version"):
            check_engine(name)


@pytest.mark.parametrize("given", [Native, object(), None, 3, ["native"]])
def test_objects_that_are_not_engines_are_refused(given):
    with pytest.raises(ParameterError, match=r"engine is .*; it must be one of 'auto', .*, or an Engine"):
        check_engine(given)


def test_missing_capabilities_are_refused(acme):
    check_engine("native", Capability.TIME_LIMIT, Capability.CHECKPOINT)
    check_engine("auto", Capability.CHECKPOINT)
    for given in ("reference", acme):
        with pytest.raises(
            EngineError, match=f"engine='{name_of(given)}' does not support time_limit. Omit time_limit"
        ):
            check_engine(given, Capability.TIME_LIMIT)


def test_auto_is_no_engine_by_itself():
    with pytest.raises(EngineError, match="needs a problem to choose an engine for"):
        named("auto")


def test_an_engine_that_is_added_has_its_name(acme):
    add(acme)
    assert names() == ("dask", "native", "reference", "stream", "acme")
    assert named("acme") is acme
    assert name_of(acme) == name_of("acme") == "acme"


def test_an_engine_that_is_added_may_take_the_place_of_another():
    @dataclass(frozen=True)
    class Patched(type(Native())):
        pass

    add(Patched())
    assert names() == ("dask", "native", "reference", "stream")
    assert named("native") == Patched()


# -------------------------------------------------------------------------------------------------- which one is chosen


def test_a_problem_without_a_solver_is_refused():
    with pytest.raises(EngineError, match="no engine solves a Mean"):
        choose("auto", NUMBERS)
    with pytest.raises(EngineError, match=r"engine='native' cannot solve a Mean\. Use engine='auto'"):
        choose("native", NUMBERS)
    with pytest.raises(EngineError, match="engine='native' cannot solve a Mean"):
        Native().solve(NUMBERS, Effort())


def test_a_solver_is_registered_from_outside():
    register("reference", Mean)(mean)
    assert choose("auto", NUMBERS) == Reference()
    assert solve(NUMBERS) == solve(NUMBERS, "reference") == solve(NUMBERS, Reference()) == 3.0
    with pytest.raises(EngineError, match="engine='native' cannot solve a Mean"):
        solve(NUMBERS, "native")


def test_a_solver_is_registered_for_an_engine_of_ones_own():
    register(Abacus(), Mean)(mean)
    assert solve(NUMBERS, Abacus()) == 3.0
    with pytest.raises(EngineError, match="no engine solves a Mean"):
        solve(NUMBERS)
    add(Abacus())
    assert solve(NUMBERS) == solve(NUMBERS, "abacus") == 3.0
    with pytest.raises(EngineError, match="does not support time_limit"):
        solve(NUMBERS, "abacus", Effort(time_limit=1.0))


def test_a_problem_is_solved_as_its_base_unless_it_has_its_own_solver():
    register("reference", Mean)(mean)
    logarithms = MeanOfLogarithms((1.0, np.e))
    assert solve(logarithms) == (1 + np.e) / 2
    register("reference", MeanOfLogarithms)(mean_of_logarithms)
    assert solve(logarithms) == 0.5
    assert solve(NUMBERS) == 3.0


def test_auto_takes_the_fastest_and_the_reference_last():
    for engine in ("reference", "abacus", "calculator"):
        register(engine, Mean)(mean)
    assert choose("auto", NUMBERS).name == "reference"
    add(Abacus(pace=9.0))
    assert choose("auto", NUMBERS).name == "abacus"
    add(Calculator(pace=1.0))
    assert choose("auto", NUMBERS).name == "calculator"
    add(Calculator(pace=10.0))
    assert choose("auto", NUMBERS).name == "abacus"
    assert choose("reference", NUMBERS).name == "reference"
    assert choose(Calculator(pace=10.0), NUMBERS) == Calculator(pace=10.0)


def test_or_any_leaves_a_problem_to_an_engine_that_can_solve_it():
    register("reference", Mean)(mean)
    assert choose("native", NUMBERS, or_any=True) == Reference()
    assert choose("reference", NUMBERS, or_any=True) == Reference()
    with pytest.raises(ParameterError):
        choose("nativ", NUMBERS, or_any=True)


def test_an_object_that_only_has_the_protocol_is_an_engine(acme):
    assert isinstance(acme, Engine)
    check_engine(acme)
    assert not isinstance(object(), Engine)


# ------------------------------------------------------------------------------------------------ engines of estimators


def test_an_estimator_takes_an_engine_object(acme, points):
    X, y = points
    model = SVC(engine=acme).fit(X, y)
    assert Acme.solved == [(3, "DualProblem")]
    assert model.engine_ == "acme"
    assert fitted_by(model) is acme
    np.testing.assert_array_equal(model.decision_function(X), SVC(engine="native").fit(X, y).decision_function(X))
    assert margrove.certify(model, X, y).holds


def test_an_engine_object_is_a_parameter_like_others(acme, points):
    X, y = points
    model = SVC(C=2.0, engine=acme)
    assert model.get_params()["engine"] is acme
    assert repr(model) == "SVC(C=2.0, engine=Acme(device=3))"
    for copy in (clone(model), pickle.loads(pickle.dumps(model))):
        assert copy.engine == acme
        assert copy.fit(X, y).engine_ == "acme"
    fitted = pickle.loads(pickle.dumps(model.fit(X, y)))
    np.testing.assert_array_equal(fitted.predict(X), model.predict(X))
    assert model.set_params(engine="native").fit(X, y).engine_ == "native"


LEARNERS = [
    SVC(),
    SVC(kernel="linear"),
    KernelPerceptron(max_iter=5, random_state=0),
    LinearSVC(),
    DecisionTreeClassifier(max_depth=3),
    AdaBoostClassifier(n_estimators=3),
]


@pytest.mark.filterwarnings("ignore:.*ended with status 'max_iter'")
@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@pytest.mark.parametrize("is_saved", [False, True])
def test_a_model_predicts_where_its_engine_is_gone(learner, is_saved, acme, points, tmp_path, monkeypatch):
    X, y = points
    add(acme)
    model = clone(learner).set_params(engine="acme").fit(X, y)
    assert model.engine_ == "acme"
    margrove.save(model, tmp_path / "model.margrove")
    monkeypatch.setattr(registry, "_added", {})
    if is_saved:
        model = margrove.load(tmp_path / "model.margrove")
    assert model.engine_ == "acme"
    native = clone(learner).set_params(engine="native").fit(X, y)
    np.testing.assert_array_equal(model.predict(X), native.predict(X))
    ask = "decision_function" if hasattr(native, "decision_function") else "predict_proba"
    np.testing.assert_array_equal(getattr(model, ask)(X), getattr(native, ask)(X))
    with pytest.raises(ParameterError, match="engine is 'acme'"):
        model.fit(X, y)


@pytest.mark.parametrize("learner", [*LEARNERS, Perceptron(), SVR(), BasicLinearClassifier()], ids=repr)
@pytest.mark.parametrize("engine", ["acme", "gpu", Native, object()], ids=["name", "to come", "class", "object"])
def test_no_fit_falls_back_on_another_engine(learner, engine, points):
    X, y = points
    with pytest.raises(MargroveError, match="engine"):
        clone(learner).set_params(engine=engine).fit(X, (y == "yes").astype(float))


def test_a_fit_keeps_the_name_of_the_chosen_engine(points):
    X, y = points
    assert SVC().fit(X, y).engine_ == "native"
    assert SVC(engine="reference").fit(X, y).engine_ == "reference"
    assert LinearSVC().fit_stream([(X, y)]).engine_ == "stream"


@dataclass(frozen=True)
class DualsOnly(Engine):
    """What a first GPU engine would be: it solves duals, and nothing else."""

    name: ClassVar[str] = "duals"


def test_an_engine_that_solves_duals_gets_paths_and_searches(points):
    register("duals", DualProblem)(lambda engine, problem, effort: Native().solve(problem, effort))
    X, y = points
    model = SVC(engine=DualsOnly(), probability=True).fit(X, y)
    assert model.engine_ == "duals"
    assert np.array_equal(model.predict(X), SVC().fit(X, y).predict(X))
    for ours, native in zip(model.path(X, y, [0.1, 1, 10]).models, SVC().path(X, y, [0.1, 1, 10]).models, strict=True):
        assert ours.certificate_.holds
        assert ours.certificate_["dual"] == pytest.approx(native.certificate_["dual"], rel=1e-3)
    search = margrove.SVCCV(Cs=[0.1, 1], gammas=[0.1, 1], engine=DualsOnly()).fit(X, y)
    assert search.engine_ == "duals"
    assert search.best_params_ == margrove.SVCCV(Cs=[0.1, 1], gammas=[0.1, 1]).fit(X, y).best_params_
    with pytest.raises(EngineError, match="engine='duals' cannot solve a LeaveOneOutProblem"):
        model.leave_one_out(X, y)


def test_an_engine_that_solves_linear_svms_gets_paths_and_searches(points):
    register("lines", LinearSvmProblem)(lambda engine, problem, effort: Native().solve(problem, effort))

    @dataclass(frozen=True)
    class Lines(Engine):
        name: ClassVar[str] = "lines"

    X, y = points
    path = LinearSVC(engine=Lines()).path(X, y, [0.1, 1, 10])
    assert all(model.certificate_.holds and model.engine_ == "lines" for model in path.models)
    search = margrove.LinearSVCCV(Cs=[0.1, 1, 10], engine=Lines()).fit(X, y)
    assert search.best_params_ == margrove.LinearSVCCV(Cs=[0.1, 1, 10]).fit(X, y).best_params_


def test_an_engine_whose_package_is_missing_is_skipped(points, monkeypatch):
    X, y = points
    model = SVC().fit(X, y)
    named_before = registry.named

    def named(name):
        if name == "stream":
            raise MissingExtraError("pip install margrove[stream]")
        return named_before(name)

    monkeypatch.setattr(registry, "named", named)
    assert SVC().fit(X, y).engine_ == "native"
    model.engine_ = "stream"
    assert np.array_equal(model.predict(X), SVC().fit(X, y).predict(X))
    with pytest.raises(MissingExtraError):
        SVC(engine="stream").fit(X, y)


def test_a_given_engine_must_support_the_effort(points):
    register("duals", DualProblem)(lambda engine, problem, effort: Native().solve(problem, effort))
    with pytest.raises(EngineError, match="engine='duals' does not support time_limit"):
        SVC(engine=DualsOnly(), time_limit=5.0).fit(*points)


@pytest.mark.parametrize("engine", ["native", Native, 3])
def test_only_engines_are_added(engine):
    with pytest.raises(ParameterError):
        add(engine)


@pytest.mark.parametrize("name", [None, 5, ""])
def test_an_engine_without_a_name_is_refused(name, points):
    engine = type("Nameless", (Engine,), {} if name is None else {"name": name})()
    for use in (
        add,
        check_engine,
        lambda engine: register(engine, Mean),
        lambda engine: SVC(engine=engine).fit(*points),
    ):
        with pytest.raises(
            ParameterError, match=rf"the name of the engine .*Nameless.* is {name!r}; it must be a word"
        ):
            use(engine)


def test_auto_skips_engines_that_do_not_support_the_effort():
    @dataclass(frozen=True)
    class WithoutClock(Engine):
        name: ClassVar[str] = "hasty"

        def seconds(self, problem: Problem[Any]) -> float:
            return 1e-9

    register("hasty", DualProblem)(lambda engine, problem, effort: Native().solve(problem, effort))
    add(WithoutClock())
    problem = DualProblem(np.eye(2), Kernel("linear"), (classification(np.array([1, -1], np.int8), np.ones(2)),))
    assert choose("auto", problem).name == "hasty"
    assert choose("auto", problem, Effort(time_limit=5.0)).name == "native"


def test_a_solver_from_outside_stays_though_ours_is_registered_later():
    outside = register("native", DualProblem)(lambda engine, problem, effort: "outside")

    def inside(engine, problem, effort):
        return "inside"

    inside.__module__ = "margrove.engine.native.svm"
    register("native", DualProblem)(inside)
    assert registry._solvers["native"][DualProblem] is outside


def test_an_added_engine_has_no_class_among_ours(acme):
    add(acme)
    assert not hasattr(margrove.engine, "Acme")


def test_auto_prefers_an_engine_with_an_estimate():
    @dataclass(frozen=True)
    class WithoutEstimate(Engine):
        name: ClassVar[str] = "aardvark"  # the first by name

        def solves(self, problem: Problem[Any]) -> bool:
            return True

    add(WithoutEstimate())
    problem = DualProblem(np.eye(2), Kernel("linear"), (classification(np.array([1, -1], np.int8), np.ones(2)),))
    assert WithoutEstimate().seconds(problem) == float("inf")
    assert choose("auto", problem).name == "native"
