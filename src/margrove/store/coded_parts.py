"""A scheme for many classes taken apart into a record and tensors, and put together again: its code, the learner that
its machines are of, and the record of each machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from margrove.data.frames import is_frame
from margrove.errors import ParameterError
from margrove.multiclass.codes import check_code, one_vs_one, one_vs_rest
from margrove.multiclass.machines import ONE_KERNEL, Machines, last_step, sharing_of
from margrove.store.boost_parts import boost_parameters_from_json, boost_parameters_to_json
from margrove.store.check import check_certificate, check_entries, check_fields, check_parameters, check_whole
from margrove.store.encoder_parts import encoder_parameters_from_json
from margrove.store.fault import FaultError, shown
from margrove.store.labels import labels_from_json, labels_to_json
from margrove.store.learner_parts import Taken, parameters_to_json, put_away, read_names
from margrove.store.schema import (
    BOOSTS,
    CODED,
    ENCODER,
    LEARNERS,
    MOST_COLUMNS,
    TREES,
    Array,
)
from margrove.store.versions import Tensors
from margrove.svm.layout import code_of

_FIELDS = {
    "class",
    "parameters",
    "estimator",
    "n_features_in",
    "feature_names",
    "labels",
    "rows",
    "machines",
    "certificate",
}
_CODE = Array("code_", "K m", ("int8",), least=-1, most=1)
_KNOWN = {**LEARNERS, **TREES, **BOOSTS}  # of which machines may be
_FIXED = {"OneVsRestClassifier": one_vs_rest, "OneVsOneClassifier": one_vs_one}

TakeApart = Callable[[Any, Taken, str], dict[str, Any]]
PutTogether = Callable[[Any, Tensors, str], Any]


# ---- to a file


def take_coded_apart(model: Any, taken: Taken, prefix: str, take_apart: TakeApart) -> dict[str, Any]:
    """The record of a fitted scheme; the arrays of its machines go into ``taken``."""
    check_is_fitted(model)
    name, machines = type(model).__name__, model._machines
    given = model.get_params(deep=False)
    if is_frame(given.get("code")):
        given["code"] = model.code_  # with its rows in the order of the classes
    bare = type(model)(**{**given, "estimator": None})
    record = {
        "class": name,
        "parameters": parameters_to_json(bare, taken),
        "estimator": None if model.estimator is None else _template_to_json(model.estimator, taken, name),
        "n_features_in": int(model.n_features_in_),
        "feature_names": model.feature_names_in_.tolist() if hasattr(model, "feature_names_in_") else None,
        "labels": labels_to_json(model.classes_),
        "rows": [rows is not None for rows in machines.rows],
        "machines": [
            take_apart(each, taken, f"{prefix}machines.{number}.") for number, each in enumerate(machines.estimators)
        ],
        "certificate": model.certificate_.to_dict(),
    }
    put_away(model.code_, taken.tensors, prefix + _CODE.name)
    for number, rows in enumerate(machines.rows):
        if rows is not None:
            put_away(rows, taken.tensors, _place_of_rows(prefix, number))
    return record


def _template_to_json(estimator: Any, taken: Taken, owner: str) -> dict[str, Any]:
    """The learner as it was given, unfitted: its class and its parameters."""
    if type(estimator) is Pipeline:
        steps = [
            [name, step if step is None or isinstance(step, str) else _template_to_json(step, taken, owner)]
            for name, step in estimator.steps
        ]
        return {"class": "Pipeline", "steps": steps}
    kind = type(estimator)
    if any(kind is learner.estimator for learner in BOOSTS.values()):
        if estimator.estimator is not None:
            _template_to_json(estimator.estimator, taken, kind.__name__)  # refuses what a file cannot hold
        return {"class": kind.__name__, "parameters": boost_parameters_to_json(estimator, taken)}
    if kind is not ENCODER and not any(kind is learner.estimator for learner in _KNOWN.values()):
        raise FaultError(
            f"a model file holds no code, so only classes it knows, and {owner}'s estimator, "
            f"{kind.__module__}.{kind.__qualname__}, is none",
            "Use one of Margrove's learners as estimator, such as SVC, Perceptron or DecisionTreeClassifier.",
        )
    return {"class": kind.__name__, "parameters": parameters_to_json(estimator, taken)}


# ---- from a file


def put_coded_together(record: dict[str, Any], tensors: Tensors, prefix: str, put_together: PutTogether) -> Any:
    """The scheme that the record describes; its tensors are taken out of ``tensors``."""
    name = record["class"]
    learner = CODED[name]
    check_fields(record, _FIELDS, f"the record of {name}")
    parameters = check_parameters(record["parameters"], learner.estimator, learner.choices, learner.ranges)
    model = learner.estimator(**parameters)
    model.estimator = None if record["estimator"] is None else _template_from_json(record["estimator"])
    labels = labels_from_json(record["labels"])
    code = _read_code(name, tensors, prefix, labels)
    d = check_whole(record["n_features_in"], 1, "n_features_in", MOST_COLUMNS)
    template = model._settled_estimator()
    sharing = sharing_of(template)
    is_shared = sharing == ONE_KERNEL
    n_records = 1 if is_shared else code.shape[1]
    if not isinstance(record["machines"], list) or len(record["machines"]) != n_records:
        raise FaultError(f"{name} has {code.shape[1]} columns of its code, and other machines")
    estimators = [
        put_together(each, tensors, f"{prefix}machines.{number}.") for number, each in enumerate(record["machines"])
    ]
    is_pairwise = bool(get_tags(template).input_tags.pairwise)
    rows = _read_rows(record["rows"], tensors, prefix, n_records, d, is_allowed=is_pairwise and not is_shared)
    flips = is_shared and model._scheme == "ovo" and len(labels) > 2
    machines = Machines(estimators, rows, sharing, is_shared=is_shared, flips=flips, is_pairwise=is_pairwise)
    for each, own in zip(estimators, rows, strict=True):
        _check_machine(each, template, labels if is_shared else None, d if own is None else len(own))
    if is_shared:
        _check_shared(machines, code)
    model._keep(labels, code, machines, d)
    if record["feature_names"] is not None:
        model.feature_names_in_ = read_names(record["feature_names"], d)
    model.certificate_ = check_certificate(record["certificate"], name, code.shape[1])
    return model


def _template_from_json(record: Any) -> Any:
    name = record.get("class") if isinstance(record, dict) else None
    if name == "Pipeline":
        check_fields(record, {"class", "steps"}, "the record of the estimator")
        if not isinstance(record["steps"], list) or not record["steps"]:
            raise FaultError("the estimator is a pipeline without steps")
        return Pipeline([_step_from_json(pair) for pair in record["steps"]])
    if not isinstance(name, str) or name not in {*_KNOWN, ENCODER.__name__}:
        raise FaultError(f"the estimator is a {shown(name)}, which is not a class that this version of Margrove knows")
    check_fields(record, {"class", "parameters"}, "the record of the estimator")
    if name == ENCODER.__name__:
        return ENCODER(**encoder_parameters_from_json(record["parameters"]))
    learner = _KNOWN[name]
    if name in BOOSTS:
        return learner.estimator(**boost_parameters_from_json(record["parameters"], learner))
    parameters = check_parameters(
        record["parameters"], learner.estimator, learner.choices, learner.ranges, learner.later
    )
    return learner.estimator(**parameters)


def _step_from_json(pair: Any) -> tuple[str, Any]:
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str) or "__" in pair[0]:
        raise FaultError(f"a step of the estimator is {shown(pair)}; a name and a record were expected")
    is_idle = not isinstance(pair[1], dict) and pair[1] in ("passthrough", None)
    return pair[0], pair[1] if is_idle else _template_from_json(pair[1])


def _read_code(name: str, tensors: Tensors, prefix: str, labels: NDArray[Any]) -> NDArray[np.int8]:
    code: Any = tensors.pop(prefix + _CODE.name, None)
    if code is None:
        raise FaultError(f"the array {prefix + _CODE.name!r} is missing")
    if len(labels) < 2:
        raise FaultError("the machines of a code tell labels apart, and there is only one")
    check_entries(_CODE, code, {})
    try:
        code = check_code(code, labels)
    except ParameterError as error:
        raise FaultError(str(error).rstrip(".")) from error
    fixed = _FIXED.get(name)
    if fixed is not None and not np.array_equal(fixed(len(code)), code):
        raise FaultError(f"its code is not that of {name}")
    return np.asarray(code)


def _read_rows(
    told: Any, tensors: Tensors, prefix: str, n_machines: int, d: int, *, is_allowed: bool
) -> list[NDArray[np.int64] | None]:
    """Which rows of a Gram matrix each machine was fitted on."""
    if not isinstance(told, list) or len(told) != n_machines or not all(type(each) is bool for each in told):
        raise FaultError(f"the rows of the machines are {shown(told)}; true or false was expected for each of them")
    found: list[NDArray[np.int64] | None] = []
    for number, is_there in enumerate(told):
        if not is_there:
            found.append(None)
            continue
        rows: Any = tensors.pop(_place_of_rows(prefix, number), None)
        is_sound = is_allowed and rows is not None and rows.dtype == np.int64 and rows.ndim == 1 and rows.size
        if not is_sound or rows[0] < 0 or rows[-1] >= d or (rows[:-1] >= rows[1:]).any():
            raise FaultError(f"the rows of machine {number} are not rising numbers below {d}")
        found.append(rows)
    return found


def _place_of_rows(prefix: str, number: int) -> str:
    return f"{prefix}machines.{number}.rows"


def _check_machine(machine: Any, template: Any, labels: NDArray[Any] | None, d: int) -> None:
    """A machine of the learner that the model names, of as many columns, that tells −1 from +1."""
    same = type(machine) is type(template) and type(last_step(machine)) is type(last_step(template))
    if not same or getattr(machine, "n_features_in_", d) != d:
        raise FaultError(f"a machine is a {type(machine).__name__}, not of the estimator's kind or number of columns")
    classes = getattr(last_step(machine), "classes_", None)
    wanted = np.array([-1, 1]) if labels is None else labels
    if classes is not None and not np.array_equal(classes, wanted):
        told = shown(classes.tolist())
        raise FaultError(f"the labels of a machine are {told}; {shown(wanted.tolist())} was expected")


def _check_shared(machines: Machines, code: NDArray[np.int8]) -> None:
    solved = code_of(machines.estimators[0])
    if not np.array_equal(-solved if machines.flips else solved, code):
        raise FaultError("the machines that share a kernel are not those of the code")
