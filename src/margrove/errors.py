"""Errors and warnings, as a tree.

::

    MargroveError
    ├── InputError (ValueError)                 the data is not what was asked for: file, line, column, value, cure
    │   └── InputTypeError (TypeError)          it has a type that cannot be converted to numbers
    ├── ParameterError (ValueError, TypeError)  a parameter is out of its range or of a wrong type
    ├── EngineError (RuntimeError)              the chosen engine cannot do this job
    ├── InfeasibleError (ValueError)            the problem asked has no solution, with the reason and the evidence
    ├── ModelFileError (ValueError)             a model file is damaged, foreign, or from a newer version
    └── MissingExtraError (ImportError)         an optional dependency is absent; names the line that installs it

    MargroveWarning (UserWarning)
    ├── DataWarning                             something in the table that will surprise its owner
    │   └── UnseenCategoryWarning               prediction met a category that training did not
    └── ConvergenceWarning                      a solve ended before it was done; also scikit-learn's ConvergenceWarning
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from margrove.advice import Advice, Parameter, Value
from margrove.status import Status

if TYPE_CHECKING:
    from margrove.convergence import ConvergenceWarning as ConvergenceWarning

P = ParamSpec("P")
R = TypeVar("R")


class MargroveError(Exception):
    """The root of every error Margrove raises on purpose."""


class InputError(MargroveError, ValueError):
    """Bad data, in one line: where it is, what was found, what to do.

    Parameters
    ----------
    problem : str
        What was found and what was wanted.
    file, line, column : optional
        Where. ``line`` counts from 1 and includes the header.
    cure : str, optional
        What to do about it.

    Examples
    --------
    >>> from margrove.errors import InputError
    >>> print(InputError("'abc' is not a number", file="t.csv", line=3, column="age", cure="Fix the cell."))
    t.csv, line 3, column 'age': 'abc' is not a number. Fix the cell.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        line: int | None = None,
        column: str | None = None,
        cure: str | None = None,
    ) -> None:
        self.problem, self.file, self.line, self.column, self.cure = problem, file, line, column, cure
        named = [("", file), ("line ", line), ("column ", None if column is None else repr(column))]
        place = ", ".join(f"{word}{value}" for word, value in named if value is not None)
        super().__init__(_with_cure(Advice(f"{place}: ", problem) if place else problem, cure))


def _with_cure(problem: str, cure: str | None) -> str:
    if not cure:
        return problem
    *rest, last = Advice(problem).parts
    return Advice(*rest, str(last).rstrip("."), ". ", cure)


class InputTypeError(InputError, TypeError):
    """An `InputError` for data of a type that cannot be converted to numbers, where scikit-learn has a TypeError."""


class ParameterError(MargroveError, ValueError, TypeError):
    """A parameter is out of its range or of a wrong type; the message says which, what it was and what it may be. As
    scikit-learn's ``InvalidParameterError``, it is a ValueError and a TypeError."""


class EngineError(MargroveError, RuntimeError):
    """The chosen engine does not exist here or cannot do this job."""


class InfeasibleError(MargroveError, ValueError):
    """The problem asked has no solution; the message gives the reason, ``evidence`` shows it.

    Parameters
    ----------
    problem : str
        What was asked, and why it cannot be.
    cure : str, optional
        What to do about it.
    evidence : mapping, optional
        What a stranger can check. A hard margin that does not exist: ``machine``, ``rows`` and ``weights`` (for each of
        the two sides, convex combinations that meet) and ``distance`` (between them, in the feature space). A ν that is
        too large: ``machine`` and ``largest_nu``.

    Examples
    --------
    >>> from margrove.errors import InfeasibleError
    >>> error = InfeasibleError("nu is 0.9; it can be 0.5 at most", cure="Use less.", evidence={"largest_nu": 0.5})
    >>> print(error, error.evidence["largest_nu"])
    nu is 0.9; it can be 0.5 at most. Use less. 0.5
    """

    def __init__(self, problem: str, *, cure: str | None = None, evidence: Mapping[str, Any] | None = None) -> None:
        self.problem, self.cure, self.evidence = problem, cure, dict(evidence or {})
        super().__init__(_with_cure(problem, cure))


class ModelFileError(MargroveError, ValueError):
    """A model file is truncated, tampered with, foreign, or written by a newer Margrove."""


class MissingExtraError(MargroveError, ImportError):
    """An optional dependency is absent; the message is the line that installs it."""


class MargroveWarning(UserWarning):
    """The root of every warning Margrove gives."""


class DataWarning(MargroveWarning):
    """Something in the table that will surprise its owner."""


class UnseenCategoryWarning(DataWarning):
    """Prediction met a category that training did not."""


def __getattr__(name: str) -> Any:
    if name == "ConvergenceWarning":  # a subclass of scikit-learn's, which a program that only predicts does not load
        from margrove.convergence import ConvergenceWarning

        return ConvergenceWarning
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def as_input_error(read: Callable[P, R]) -> Callable[P, R]:
    """Make a function that reads data raise `InputError` for every exception of another library."""

    @wraps(read)
    def reader(*given: P.args, **named: P.kwargs) -> R:
        try:
            return read(*given, **named)
        except MargroveError:
            raise
        except TypeError as error:
            raise InputTypeError(str(error)) from error
        except ValueError as error:
            if type(error).__name__ == "NotFittedError":  # scikit-learn's
                raise
            raise InputError(str(error)) from error
        except (ArithmeticError, LookupError, RuntimeError) as error:
            problem = (
                f"a value in X, y or sample_weight cannot be converted to a number ({type(error).__name__}: {error})"
            )
            raise InputError(problem, cure="Use numbers that fit into a float64.") from error

    return reader


def level_of_caller() -> int:
    """Return the ``stacklevel`` of a warning that points at the first line outside Margrove."""
    level, frame = 1, inspect.currentframe()
    frame = frame.f_back if frame is not None else None
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("margrove."):
        level, frame = level + 1, frame.f_back
    return level


def warn_early(subject: str, status: Status, what: str = "", advice: str = "") -> None:
    """Warn of a solve that stopped early: ``what`` follows its status; ``advice`` defaults to the status's."""
    from margrove.convergence import ConvergenceWarning

    message = Advice(f"{subject} ended with status {str(status)!r}{what}; ", advice or status.advice, ".")
    warnings.warn(message, ConvergenceWarning, stacklevel=level_of_caller())


def shown(value: Any) -> str:
    """Return a value as a message shows it: ``'a'`` and not ``np.str_('a')``."""
    if getattr(value, "ndim", 0) or getattr(value, "shape", ()):  # an array, a frame: as its owner would type it
        value = value.tolist() if hasattr(value, "tolist") else value
        return _cut(" ".join(repr(value).split()))
    return repr(value.item() if hasattr(value, "item") else value)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question that names the known names most like this one, and a space; empty if there are none."""
    import difflib  # 13 ms

    by_letters = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_letters, n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(repr(by_letters[each]) for each in near)}? " if near else ""


def listed(values: Iterable[Any]) -> str:
    """Return values as a message lists them."""
    return ", ".join(shown(value) for value in values)


def check_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    cure: str = "",
    beyond: str = "",
    verb: str = "is",
) -> None:
    """Raise `ParameterError` unless the parameter is a finite number in its range. ``beyond`` is the cure for a number
    that is too large, infinity too; ``verb`` is what a list does with a value: it "holds" it."""
    is_number = not isinstance(value, bool) and isinstance(value, Real)
    is_finite = is_number and _is_finite(value)
    is_inside = is_finite and (above is None or value > above) and (least is None or value >= least)
    if is_inside and (most is None or value <= most):
        return
    wanted = "a number" + (f" > {above:g}" if above is not None else f" ≥ {least:g}" if least is not None else "")
    found = Advice(Parameter(name), f" {verb} {_cut(shown(value))}; it must be ")
    if is_finite and most is not None and value > most:
        raise ParameterError(_with_cure(Advice(found, f"at most {most:g}."), beyond or cure))
    is_beyond = is_number and not is_finite and value > 0
    raise ParameterError(_with_cure(Advice(found, f"{wanted}."), (beyond if is_beyond else "") or cure))


def _is_finite(value: Real) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


def _cut(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def check_whole(name: str, value: Any, *, least: int, cure: str = "") -> None:
    """Raise `ParameterError` unless the parameter is a whole number, small enough for the core to count."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) < 2**63:
        found = f" is {shown(value)}; it must be a whole number ≥ {least}."
        raise ParameterError(_with_cure(Advice(Parameter(name), found), cure))


def check_choice(name: str, value: Any, allowed: Iterable[Any], *, also: str = "") -> None:
    """Raise `ParameterError` unless the parameter is one of these. ``also`` names another allowed kind that the caller
    has checked: "a callable". The choices of an option of the command line are shown as they are typed there."""
    choices = tuple(allowed)
    plain = value.item() if getattr(value, "shape", None) == () else value  # a scalar of numpy's
    if not any(isinstance(plain, type(choice)) and plain == choice for choice in choices):
        names = ", ".join(map(str if name.startswith("--") else repr, choices))
        wanted = f"one of {names}" if len(choices) > 1 else names
        found = f" is {_cut(shown(value))}; it must be {wanted}{also and f', or {also}'}."
        raise ParameterError(Advice(Parameter(name), found))


def check_share(name: str, value: float) -> None:
    """Raise `ParameterError` unless the parameter is a number from 0 to 1."""
    check_number(name, value, least=0, cure="It is a probability, such as 0.05 for five percent.")
    if value > 1:
        raise ParameterError(f"{name} is {shown(value)}; it must be from 0 to 1, such as 0.05 for five percent.")


def check_flag(name: str, value: Any) -> None:
    """Raise `ParameterError` unless the parameter is True or False."""
    if not (isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b"):
        wanted = (Value(True), " or ", Value(False), ".")
        raise ParameterError(Advice(Parameter(name), f" is {shown(value)}; it must be ", *wanted))


def check_seed(name: str, value: Any) -> None:
    """Raise `ParameterError` unless the parameter is a ``random_state`` as scikit-learn takes it."""
    from sklearn.utils import check_random_state

    try:
        check_random_state(value)
    except ValueError as error:
        wanted = "it must be None, a whole number from 0 to 2³² − 1, or a RandomState."
        raise ParameterError(f"{name} is {shown(value)}; {wanted}") from error
