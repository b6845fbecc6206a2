"""Descriptions of what a file holds of an estimator, from which reading, writing and checking follow.

A record is a JSON object: the class, its parameters, and parts, each of which is taken from a fitted model and read
back by a `Part`. Most learners have the parts of `LEARNER`, and a `Schema` lists their arrays and scalars. What a
parameter may be follows from the rules of the estimator's fields (`margrove.estimator.checked`)::

    register(Learner(MyClassifier, file=Schema((Array("means_", "K d"),))))
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from margrove.advice import Advice, Setting
from margrove.errors import InputError, check_choice, check_flag, check_number, check_share, check_whole
from margrove.run.effort import MOST_THREADS
from margrove.status import Status
from margrove.store.arrays import Array, Arrays
from margrove.store.check import MOST_COLUMNS, check_certificate, check_fields, check_integer
from margrove.store.fault import FaultError, shown
from margrove.store.plain import from_json, labels_from_json, labels_to_json, to_json

# Parameters and the number of labels → the symbols of `Array` that follow from them. Machines are counted, never built:
# the labels of a small file may ask for more than there is memory for.
Counting: TypeAlias = Callable[[Mapping[str, Any], int], dict[str, int]]


def one_vs_rest(parameters: Mapping[str, Any], labels: int) -> dict[str, int]:
    """One machine for two labels, otherwise one for each."""
    return {"m": 1 if labels == 2 else labels}


def single(parameters: Mapping[str, Any], labels: int) -> dict[str, int]:
    """One machine."""
    return {"m": 1, "r": 1}


@dataclass(frozen=True)
class Range:
    """Numbers that a parameter may have."""

    least: float = -sys.float_info.max
    most: float = sys.float_info.max
    types: tuple[type, ...] = (int, float)
    has_zero: bool = True


THREADS = Range(-MOST_THREADS, MOST_THREADS, (int, NoneType), has_zero=False)  # a prediction starts them
NUMBER = Range()
NOT_NEGATIVE = Range(least=0)
COUNT = Range(1, types=(int,))
SHARE = Range(0, 1)
PENALTY = Range(0, math.inf)  # C
NOTHING = Range(types=(NoneType,))  # such as a path, which the next fit would write to

Limits: TypeAlias = tuple[Any, ...] | Range  # the values that a parameter may have, or their range


def limits_of(estimator: type, parameters: Mapping[str, Any]) -> dict[str, Limits]:
    """Return what the rules of an estimator say of these parameters, with the ends of an open interval; a value that is
    right whatever its rule says has no limits."""
    found: dict[str, Limits] = {}
    for name, rule, also in getattr(estimator, "_rules", ()):
        given, kind = rule.keywords, rule.func
        if _is_one_of(parameters[name], also):
            continue
        if kind is check_choice:
            found[name] = tuple(given["allowed"])
        elif kind is check_flag:
            found[name] = (True, False)
        elif kind is check_share:
            found[name] = SHARE
        elif kind in (check_number, check_whole):
            least, most = given.get("least", given.get("above", NUMBER.least)), given.get("most", NUMBER.most)
            found[name] = Range(least, most, (int,) if kind is check_whole else NUMBER.types)
    return found


def _is_one_of(value: Any, choices: tuple[Any, ...]) -> bool:
    return any(type(value) is type(choice) and value == choice for choice in choices)


def check_parameter(name: str, value: Any, limits: Limits) -> None:
    """Check a parameter against its limits."""
    if isinstance(limits, tuple):
        if not _is_one_of(value, limits):
            raise FaultError(f"{name} is {shown(value)}; it must be one of {', '.join(map(str, limits))}")
        return
    is_of_type = isinstance(value, limits.types) and not isinstance(value, bool)
    is_inside = limits.least <= value <= limits.most if is_of_type and value is not None else is_of_type
    if not is_inside or (value == 0 and not limits.has_zero):
        wanted = f"a number from {limits.least:g} to {limits.most:g}"
        raise FaultError(f"{name} is {shown(value)}; {'nothing' if limits is NOTHING else wanted} was expected")


@dataclass(frozen=True)
class Scalar:
    """One number, word or truth value of a fitted model."""

    type: type
    least: float | None = None  # of a number; None is 0
    most: float = math.inf
    choices: tuple[Any, ...] = ()
    is_optional: bool = False
    is_word: bool = False  # of a text: lower-case letters, digits and underscores, at most 40

    def read(self, name: str, value: Any) -> Any:
        """Return the value, in the type it had before."""
        if self.choices:
            if not isinstance(value, str) or value not in self.choices:
                raise FaultError(f"{name} is {shown(value)}; it must be one of {', '.join(map(str, self.choices))}")
            return self.type(value)
        if self.type is int:
            return check_integer(value, int(self.least or 0), name)
        if type(value) is not self.type:
            raise FaultError(f"{name} is {shown(value)}; a {self.type.__name__} was expected")
        if self.is_word and not _WORD.fullmatch(str(value)):
            raise FaultError(f"{name} is {shown(value)}; it must be an identifier of at most 40 lower-case characters")
        least = self.least or 0.0
        if isinstance(value, float) and not (least <= value <= self.most and math.isfinite(value)):
            limit = "" if self.most == math.inf else f", at most {self.most:g}"
            raise FaultError(f"{name} is {shown(value)}; it must be at least {least:g}{limit} and finite")
        return value


_WORD = re.compile(r"[a-z][a-z0-9_]{0,39}")
# Any engine may have fitted a model, also one that is not here: every engine predicts the same.
ENGINE_NAME = Scalar(str, is_word=True)
ENDED = {"status_": Scalar(Status, choices=tuple(Status)), "engine_": ENGINE_NAME}
SOLVE = {"n_iter_": Scalar(int, least=0), **ENDED}
ROWS = {"n_rows_": Scalar(int, least=1)}
PLANE = (Array("coef_", "m d"), Array("intercept_", "m"))


@dataclass
class Draft:
    """A model while its record is read: what is known of it so far."""

    schema: Schema
    estimator: type
    record: dict[str, Any]
    arrays: Arrays
    parameters: dict[str, Any]
    fitted: dict[str, Any] = field(default_factory=dict)  # its attributes
    labels: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    counts: dict[str, int] = field(default_factory=dict)  # see `Counting`
    n_splits: int = 1
    notes: dict[str, Any] = field(default_factory=dict)  # what one part leaves for those after it

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.estimator.__name__

    @property
    def d(self) -> int:
        """The number of columns."""
        return int(self.fitted["n_features_in_"])

    @property
    def symbols(self) -> dict[str, int]:
        """The sizes that the symbols in the shapes of arrays stand for."""
        of_labels = {"K": len(self.labels), **self.counts} if self.counts else {}
        return {**of_labels, "d": self.d, **({"n": self.fitted["n_rows_"]} if "n_rows_" in self.fitted else {})}


@dataclass(frozen=True)
class Part:
    """One field of a record."""

    name: str
    take: Callable[[Any, Schema, Arrays], Any]  # the model → a JSON value; arrays go into the `Arrays`
    read: Callable[[Any, Draft], None]  # the JSON value → attributes of the draft
    is_optional: bool = False  # left out where it is None


def fitted_attribute(model: Any, name: str) -> Any:
    """Return the attribute that a complete fit leaves."""
    if not hasattr(model, name):
        raise FaultError(f"{type(model).__name__} has no {name}: its fit did not finish")
    return getattr(model, name)


def column_count(name: str) -> Part:
    """Return the part for a number of columns."""

    def read(value: Any, draft: Draft) -> None:
        draft.fitted[f"{name}_"] = check_integer(value, 1, name, MOST_COLUMNS)

    return Part(name, lambda model, *_: int(fitted_attribute(model, f"{name}_")), read)


def _names(model: Any, schema: Schema, arrays: Arrays) -> list[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else list(names.tolist())


def _read_names(value: Any, draft: Draft) -> None:
    if value is None:
        return
    is_list = isinstance(value, list) and len(value) == draft.d
    if not is_list or not all(type(name) is str for name in value) or len(set(value)) != draft.d:
        raise FaultError(f"the names of the columns are {shown(value)}; {draft.d} distinct strings were expected")
    draft.fitted["feature_names_in_"] = np.array(value, dtype=object)


def _labels(model: Any, schema: Schema, arrays: Arrays) -> dict[str, Any] | None:
    if not schema.is_classifier:
        return None
    labels = fitted_attribute(model, "classes_")
    if isinstance(labels, list):
        problem = f"a model file takes one target, and this {type(model).__name__} has {len(labels)}"
        raise InputError(problem, cure="Fit one model for each target.")
    return labels_to_json(labels)


def _read_labels(value: Any, draft: Draft) -> None:
    if draft.schema.is_classifier:
        draft.labels = draft.fitted["classes_"] = labels_from_json(value)
    elif value is not None:
        raise FaultError(f"the labels are {shown(value)}; {draft.name} has none")
    draft.counts = draft.schema.machines(draft.parameters, len(draft.labels))


def _scalars(model: Any, schema: Schema, arrays: Arrays) -> dict[str, Any]:
    there = [name for name, scalar in schema.scalars.items() if not scalar.is_optional or hasattr(model, name)]
    found = {name: fitted_attribute(model, name) for name in there}
    # Status is text that knows its name; the file keeps the text.
    return {n: str(v) if isinstance(v, str) else to_json(v, "a fitted number") for n, v in found.items()}


def _read_scalars(value: Any, draft: Draft) -> None:
    given = value if isinstance(value, dict) else {}
    wanted = {n: scalar for n, scalar in draft.schema.scalars.items() if n in given or not scalar.is_optional}
    check_fields(value, set(wanted), f"the list of {draft.name}'s scalars")
    draft.fitted |= {name: scalar.read(name, value[name]) for name, scalar in wanted.items()}


def _arrays(model: Any, schema: Schema, arrays: Arrays) -> dict[str, str]:
    return arrays.put_all(schema.arrays_of(model.get_params(deep=False)), model)


def _read_arrays(value: Any, draft: Draft) -> None:
    specs = draft.schema.arrays_of(draft.parameters)
    draft.fitted |= draft.arrays.take_all(specs, value, draft.symbols)


def _read_certificate(value: Any, draft: Draft) -> None:
    draft.fitted["certificate_"] = check_certificate(value, draft.name, draft.counts["m"], draft.n_splits)


def read_later(value: Any, draft: Draft) -> None:
    """Leave a field to a part after it, which looks it up in the record."""


N_FEATURES = column_count("n_features_in")
NAMES = Part("feature_names", _names, _read_names)
LABELS = Part("labels", _labels, _read_labels)
SCALARS = Part("scalars", _scalars, _read_scalars)
ARRAYS = Part("arrays", _arrays, _read_arrays)
CERTIFICATE = Part(
    "certificate", lambda model, *_: fitted_attribute(model, "certificate_").to_dict(), _read_certificate
)
LEARNER = (N_FEATURES, NAMES, LABELS, SCALARS, ARRAYS, CERTIFICATE)

TRANSFORM_OUTPUTS = (None, "default", "pandas", "polars")  # of scikit-learn's set_output


def _read_output(value: Any, draft: Draft) -> None:
    if value not in TRANSFORM_OUTPUTS:
        raise FaultError(f"the record of {draft.name} does not state its output type")
    if value is not None:
        draft.fitted["_sklearn_output_config"] = {"transform": value}


# The setting of scikit-learn's set_output; a learner fitted on named columns expects them again.
OUTPUT = Part("output", lambda model, *_: getattr(model, "_sklearn_output_config", {}).get("transform"), _read_output)


@dataclass(frozen=True, eq=False)
class Schema:
    """The description of what a file holds of an estimator, and its codec."""

    arrays: tuple[Array, ...] = ()  # that `fit` leaves
    scalars: Mapping[str, Scalar] = field(default_factory=dict)  # that `fit` leaves
    limits: Mapping[str, Limits] = field(default_factory=dict)  # of parameters without a rule, or with another
    machines: Counting = one_vs_rest
    is_classifier: bool = True
    later: Mapping[str, Any] = field(default_factory=dict)  # parameters that older files lack, and their values
    parts: tuple[Part, ...] = LEARNER  # the fields of a record behind the class and its parameters
    is_for_schemes: bool = True  # a scheme for many classes may name it as its estimator
    n_out: Callable[[Any], int] | None = None  # of a transformer: the number of columns that it returns
    finish: Callable[[Any], None] | None = None  # called for a loaded model in the end

    def take_apart(self, model: Any, arrays: Arrays) -> dict[str, Any]:
        """Return the record of a fitted model; its arrays go into ``arrays``."""
        check_is_fitted(model)
        record = {"class": type(model).__name__, "parameters": self.parameters_to_json(model, arrays)}
        for part in self.parts:
            value = part.take(model, self, arrays)
            if value is not None or not part.is_optional:
                record[part.name] = value
        return record

    def put_together(self, estimator: type, record: dict[str, Any], arrays: Arrays) -> Any:
        """Return the model that the record describes; its arrays are taken out of ``arrays``."""
        there = [part for part in self.parts if not part.is_optional or part.name in record]
        names = {"class", "parameters", *(part.name for part in there)}
        check_fields(record, names, f"the record of {estimator.__name__}")
        parameters = self.parameters_from_json(estimator, record["parameters"])
        draft = Draft(self, estimator, record, arrays, parameters)
        for part in there:
            part.read(record[part.name], draft)
        model = self.build(draft)
        if self.finish is not None:
            self.finish(model)
        return model

    def build(self, draft: Draft) -> Any:
        """Return the model of a draft that is complete."""
        model = draft.estimator(**draft.parameters)
        vars(model).update(draft.fitted)
        return model

    def arrays_of(self, parameters: Mapping[str, Any]) -> list[Array]:
        """Return the arrays of a model with these parameters."""
        return [spec for spec in self.arrays if spec.given is None or parameters[spec.given[0]] in spec.given[1]]

    def given_parameters(self, model: Any) -> dict[str, Any]:
        """Return the parameters as a file keeps them."""
        given: dict[str, Any] = model.get_params(deep=False)
        if hasattr(model, "_drawn_seed") and "random_state" in given:
            given["random_state"] = model._drawn_seed  # what the fit drew: the same tree again, the same certificate
        if "engine" in given:  # an object has a name; where it was fitted says nothing of where it is loaded
            given["engine"] = getattr(given["engine"], "name", given["engine"])
        if "checkpoint" in given:
            given["checkpoint"] = None  # of the fit, not of the model
        return given

    def parameters_to_json(self, model: Any, arrays: Arrays) -> dict[str, Any]:
        """Return the parameters; refuse what cannot be in a file."""
        owner, given = type(model).__name__, self.given_parameters(model)
        if isinstance(given.get("random_state"), np.random.RandomState):
            arrays.left_out.append(f"{owner}: random_state is a generator, which is not saved; None is saved instead.")
            given["random_state"] = None
        for name in (name for name, value in given.items() if callable(value)):
            words = f"{owner}'s {name} is the function {shown(given[name])}, and a model file contains no code"
            if name == "kernel":
                by_name = "Use a kernel by name, or "
                raise FaultError(words, Advice(by_name, Setting("kernel", "precomputed"), " with the Gram matrix."))
            raise FaultError(words, f"Use a {name} given by its name.")
        return {name: to_json(value, f"{owner}'s {name}") for name, value in given.items()}

    def parameters_from_json(self, estimator: type, record: Any) -> dict[str, Any]:
        """Return the parameters: all that the constructor has, and no others."""
        known = estimator().get_params(deep=False)
        if isinstance(record, dict):
            record = {**{name: value for name, value in self.later.items() if name in known}, **record}
        check_fields(record, set(known), f"the list of {estimator.__name__}'s parameters")
        parameters = {name: from_json(value) for name, value in record.items()}
        limits = {
            **limits_of(estimator, parameters),
            **({"n_jobs": THREADS} if "n_jobs" in known else {}),
            **self.limits,
        }
        for name, limit in limits.items():
            check_parameter(name, parameters[name], limit)
        return parameters
