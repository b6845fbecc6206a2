"""Which engines there are, and which one solves a problem.

Every folder of `margrove.engine` is an engine: its name is the folder's, and its ``__init__`` defines a class of the
same name, capitalised, whose instances are engines. A folder is imported when its engine is first asked for.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import Any, Protocol, TypeVar

import margrove.engine
from margrove.advice import Advice, Setting
from margrove.engine.protocol import Capability, Engine, cannot_solve, check_capability, needs
from margrove.errors import EngineError, MissingExtraError, ParameterError, check_choice, shown
from margrove.problem import Problem
from margrove.run.effort import Effort

S = TypeVar("S")
_ANNOUNCED = {"gpu": "the GPU engine", "dask": "the Dask engine"}
_DEFAULT, _LAST = "native", "reference"
_added: dict[str, Engine] = {}


class Fitted(Protocol):
    """A fitted model that ran on an engine."""

    engine: str | Engine
    engine_: str


@cache
def folders() -> tuple[str, ...]:
    """Return the names of Margrove's own engines."""
    return tuple(sorted(found.name for found in pkgutil.iter_modules(margrove.engine.__path__) if found.ispkg))


def names() -> tuple[str, ...]:
    """Return the names of all engines, those added from outside included."""
    return tuple(dict.fromkeys((*folders(), *_added)))  # one that is added may take the place of another


def add(engine: Engine) -> None:
    """Register an engine under its name, for ``engine="name"`` and ``engine="auto"``; an estimator also takes the
    object itself."""
    if _given(engine) is None or isinstance(engine, str) or engine.name == "auto":
        raise ParameterError(f"engine is {shown(engine)}; an Engine with a name of its own is needed.")
    _added[engine.name] = engine


@cache
def _load(name: str) -> Engine:
    engine: Engine = getattr(import_module(f"margrove.engine.{name}"), name.capitalize())()
    return engine


def named(name: str) -> Engine:
    """Return the engine of this name, with its default values.

    Raises
    ------
    ParameterError
        If no engine has the name.
    MissingExtraError
        If it needs a package that is not installed.
    """
    if name in _added:
        return _added[name]
    if name in folders():
        return _load(name)
    if name in _ANNOUNCED:
        words = f": {_ANNOUNCED[name]} is not part of this version. Use 'auto' or 'native'."
        raise EngineError(Advice(Setting("engine", name), words))
    check_choice("engine", name, ("auto", *names()))
    raise EngineError(Advice(Setting("engine", "auto"), " needs a problem to choose by."))


def check_engine(given: str | Engine, *needs: Capability) -> None:
    """Raise an error unless the parameter ``engine`` names an engine, or is one, that has the capabilities needed."""
    engine = _given(given)
    if engine is not None:
        for capability in needs:
            check_capability(engine, capability)


def _given(given: str | Engine) -> Engine | None:
    """Return the engine that a parameter names or is; None for "auto"."""
    if isinstance(given, str):
        return None if given == "auto" else named(given)
    if isinstance(given, type) or not isinstance(given, Engine):
        known = ", ".join(map(repr, ("auto", *names())))
        raise ParameterError(f"engine is {shown(given)}; it must be one of {known}, or an Engine.")
    return given


def choose(given: str | Engine, problem: Problem[Any], effort: Effort | None = None, *, or_any: bool = False) -> Engine:
    """Return the engine that solves the problem: the one given, or for "auto" the fastest of those that can, with what
    the effort asks for.

    With ``or_any`` an engine that cannot solve the problem leaves it to one that can, as for "auto".

    Raises
    ------
    EngineError
        If the engine that is given cannot solve the problem, or none can.
    """
    engine, kind = _given(given), type(problem).__name__
    wanted = frozenset() if effort is None else needs(effort)
    if engine is not None and engine.solves(problem):
        for capability in wanted:
            check_capability(engine, capability)
        return engine
    if engine is not None and not or_any:
        raise cannot_solve(engine, problem)
    is_known = False
    for group in ([name for name in names() if name != _LAST], [_LAST]):  # the reference is loaded if no other can
        present = [found for name in group if (found := _present(name)) is not None]
        engines = [each for each in present if each.solves(problem)]
        able = [each for each in engines if wanted <= each.can]
        if able:
            return able[0] if len(able) == 1 else min(able, key=lambda each: each.seconds(problem))
        is_known |= bool(engines)
    lack = " with " + " and ".join(each.name.lower() for each in wanted) if is_known else ""
    raise EngineError(f"no engine solves a {kind}{lack}.")


def _present(name: str) -> Engine | None:
    """Return the engine of this name, None if a package that it needs is not installed."""
    try:
        return named(name)
    except MissingExtraError:
        return None


def solve(problem: Problem[S], engine: str | Engine = "auto", effort: Effort | None = None) -> S:
    """Solve the problem on the engine that is given or chosen."""
    effort = effort or Effort()
    return choose(engine, problem, effort).solve(problem, effort)


def fitted_by(model: Fitted) -> Engine:
    """Return the engine that a fitted model predicts with: the one that fitted it if it is here, the native one
    otherwise. All give the same predictions."""
    given = model.engine
    if not isinstance(given, str) and isinstance(given, Engine) and given.name == model.engine_:
        return given
    name = model.engine_
    return (_present(name) if name in folders() or name in _added else None) or named(_DEFAULT)


def name_of(given: str | Engine) -> str:
    """Return the name of the engine that a parameter asks for; "auto" is the native one where there is no problem to
    choose by."""
    if isinstance(given, str):
        return _DEFAULT if given == "auto" else given
    return given.name


def default() -> Engine:
    """Return the engine that is always present: the native one."""
    return named(_DEFAULT)
