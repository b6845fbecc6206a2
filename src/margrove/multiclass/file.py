"""Schemes for many classes in a model file: the code, the estimator of the machines, and the record of each machine.

A model of several labels per row has no code but a field ``target``; a constant machine is ``{"constant": side}``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from margrove.data.frames import is_frame
from margrove.errors import ParameterError
from margrove.estimator import with_parameters
from margrove.multiclass.codes import check_code, one_vs_one, one_vs_rest
from margrove.multiclass.machines import ONE_KERNEL, FittedMachines, sharing_of
from margrove.multiclass.problem import TARGETS, ConstantMachine, Layout, last_step, takes_gram
from margrove.store.arrays import Array, Arrays, check_entries
from margrove.store.check import check_fields
from margrove.store.codec import codec_named, codec_of, put_together, steps_from_json, steps_to_json, take_apart
from margrove.store.fault import FaultError, shown
from margrove.store.schema import (
    CERTIFICATE,
    LABELS,
    N_FEATURES,
    NAMES,
    NOTHING,
    Draft,
    Part,
    Range,
    Schema,
    read_later,
)
from margrove.svm.layout import code_of

_CODE = Array("code_", "K m", ("int8",), least=-1, most=1)
_FIXED = {"OneVsRestClassifier": one_vs_rest, "OneVsOneClassifier": one_vs_one}


class _CodedFile(Schema):
    def parameters_to_json(self, model: Any, arrays: Arrays) -> dict[str, Any]:
        # The rows of code_ are in the order of the classes, those of a frame need not be.
        code = {"code": model.code_} if is_frame(getattr(model, "code", None)) else {}
        return super().parameters_to_json(with_parameters(model, estimator=None, **code), arrays)

    def build(self, draft: Draft) -> Any:
        model = draft.notes["model"]
        model._keep(draft.notes["machines"], draft.d)
        vars(model).update(draft.fitted)
        return model


def _template(model: Any, schema: Schema, arrays: Arrays) -> dict[str, Any] | None:
    return None if model.estimator is None else _template_to_json(model.estimator, arrays, type(model).__name__)


def _template_to_json(estimator: Any, arrays: Arrays, owner: str) -> dict[str, Any]:
    if type(estimator) is Pipeline:
        steps = steps_to_json(estimator, lambda step, _: _template_to_json(step, arrays, owner))
        return {"class": "Pipeline", "steps": steps}
    kind, codec = type(estimator), codec_of(estimator)
    if not getattr(codec, "is_for_schemes", False):
        raise FaultError(
            f"a model file contains no code, and {owner}'s estimator, {kind.__module__}.{kind.__qualname__}, is not a "
            "class that it supports",
            "Use one of Margrove's estimators, such as SVC, Perceptron or DecisionTreeClassifier.",
        )
    boosted = getattr(estimator, "estimator", None)
    if boosted is not None:
        _template_to_json(boosted, arrays, kind.__name__)  # refuses what a file cannot hold
    return {"class": kind.__name__, "parameters": codec.parameters_to_json(estimator, arrays)}


def _read_template(value: Any, draft: Draft) -> None:
    model = draft.notes["model"] = draft.estimator(**draft.parameters)
    model.estimator = None if value is None else _template_from_json(value)


def _template_from_json(record: Any) -> Any:
    name = record.get("class") if isinstance(record, dict) else None
    if name == "Pipeline":
        check_fields(record, {"class", "steps"}, "the record of the estimator")
        if not isinstance(record["steps"], list) or not record["steps"]:
            raise FaultError("the estimator is a pipeline without steps")
        return Pipeline(
            steps_from_json(record["steps"], "a step of the estimator", lambda step, _: _template_from_json(step))
        )
    codec, estimator = codec_named(name) or (None, type)
    if codec is None or not getattr(codec, "is_for_schemes", False):
        raise FaultError(f"the estimator is a {shown(name)}, which this version of Margrove does not support")
    check_fields(record, {"class", "parameters"}, "the record of the estimator")
    return estimator(**codec.parameters_from_json(estimator, record["parameters"]))


def _machines(model: Any, schema: Schema, arrays: Arrays) -> list[dict[str, Any]]:
    if hasattr(model, "code_"):
        arrays.put(_CODE.name, model.code_)
    for number, rows in enumerate(model._machines.rows):
        if rows is not None:
            arrays.put(f"machines.{number}.rows", rows)
    return [
        {"constant": each.side}
        if isinstance(each, ConstantMachine)
        else take_apart(each, arrays.within(f"machines.{number}"))
        for number, each in enumerate(model._machines.estimators)
    ]


def _read_machines(records: Any, draft: Draft) -> None:
    model, labels, d = draft.notes["model"], draft.labels, draft.d
    target = draft.notes.get("target", TARGETS[0])
    has_code = target == TARGETS[0] and not (draft.name == "OneVsRestClassifier" and len(labels) == 1)
    layout = Layout(labels, _read_code(draft) if has_code else None, target)
    draft.counts = {"m": layout.n_machines}
    template = model._settled_estimator()
    sharing = sharing_of(template, has_code=has_code)
    is_shared = sharing == ONE_KERNEL
    n_records = 1 if is_shared else layout.n_machines
    if not isinstance(records, list) or len(records) != n_records:
        raise FaultError(f"the machines of {draft.name} do not match the {layout.n_machines} columns of its code")
    estimators = [
        _read_machine(each, draft, number, may_be_constant=not has_code) for number, each in enumerate(records)
    ]
    is_pairwise = takes_gram(template)
    rows = _read_rows(draft, n_records, is_allowed=is_pairwise and not is_shared)
    flips = is_shared and model._scheme == "ovo" and len(labels) > 2
    for each, own in zip(estimators, rows, strict=True):
        if not isinstance(each, ConstantMachine):
            _check_machine(each, template, labels if is_shared else None, d if own is None else len(own))
    if is_shared and layout.code is not None:
        solved = code_of(estimators[0])
        if not np.array_equal(-solved if flips else solved, layout.code):
            raise FaultError("the machines that share a kernel do not match the code")
    draft.notes["machines"] = FittedMachines(estimators, layout, sharing, rows, is_pairwise, flips)


def _read_machine(record: Any, draft: Draft, number: int, *, may_be_constant: bool) -> Any:
    if not may_be_constant or not isinstance(record, dict) or "constant" not in record:
        return put_together(record, draft.arrays.within(f"machines.{number}"))
    if record not in ({"constant": 0}, {"constant": 1}) or type(record["constant"]) is not int:
        raise FaultError(f"machine {number} is {shown(record)}; a constant is 0 or 1")
    machine = ConstantMachine(record["constant"])
    machine.n_features_in_ = draft.d
    if "feature_names_in_" in draft.fitted:
        machine.feature_names_in_ = draft.fitted["feature_names_in_"]
    return machine


def _read_target(value: Any, draft: Draft) -> None:
    is_sound = draft.name == "OneVsRestClassifier" and value in TARGETS[1:]
    if not is_sound or len(draft.labels) < 2 or not np.array_equal(draft.labels, np.arange(len(draft.labels))):
        raise FaultError(f"the target of {draft.name} is {shown(value)}, which does not fit its labels")
    draft.notes["target"] = value


def _target(model: Any, schema: Schema, arrays: Arrays) -> str | None:
    return model._machines.layout.target if model._machines.layout.has_several else None


def _read_code(draft: Draft) -> NDArray[np.int8]:
    code = draft.arrays.pop(_CODE.name)
    if len(draft.labels) < 2:
        raise FaultError("a code needs at least two labels, and there is only one")
    check_entries(_CODE, code, {})
    try:
        code = check_code(code, draft.labels)
    except ParameterError as error:
        raise FaultError(str(error).rstrip(".")) from error
    fixed = _FIXED.get(draft.name)
    if fixed is not None and not np.array_equal(fixed(len(code)), code):
        raise FaultError(f"its code is not the code of {draft.name}")
    return np.asarray(code)


def _read_rows(draft: Draft, n_machines: int, *, is_allowed: bool) -> list[NDArray[np.int64] | None]:
    """Return the rows of a Gram matrix that each machine was fitted on."""
    flags, d = draft.record["rows"], draft.d
    if not isinstance(flags, list) or len(flags) != n_machines or not all(type(flag) is bool for flag in flags):
        raise FaultError(f"the rows of the machines are {shown(flags)}; true or false was expected for each machine")
    found: list[NDArray[np.int64] | None] = []
    for number, is_there in enumerate(flags):
        rows: Any = draft.arrays.tensors.pop(f"{draft.arrays.prefix}machines.{number}.rows", None) if is_there else None
        is_sound = is_allowed and rows is not None and rows.dtype == np.int64 and rows.ndim == 1 and rows.size
        if is_there and (not is_sound or rows[0] < 0 or rows[-1] >= d or (rows[:-1] >= rows[1:]).any()):
            raise FaultError(f"the rows of machine {number} are not ascending numbers below {d}")
        found.append(rows)
    return found


def _check_machine(machine: Any, template: Any, labels: NDArray[Any] | None, d: int) -> None:
    """Check that a machine is of the learner that the model names, of as many columns, and separates 0 from 1."""
    same = type(machine) is type(template) and type(last_step(machine)) is type(last_step(template))
    if not same or getattr(machine, "n_features_in_", d) != d:
        raise FaultError(f"a machine is a {type(machine).__name__}, not of the estimator's type or number of columns")
    classes = getattr(last_step(machine), "classes_", None)
    wanted = np.array([0, 1]) if labels is None else labels
    # Older files have the labels −1 and +1.
    is_older = labels is None and classes is not None and np.array_equal(classes, [-1, 1])
    if classes is not None and not is_older and not np.array_equal(classes, wanted):
        labels_found, expected = shown(classes.tolist()), shown(wanted.tolist())
        raise FaultError(f"the labels of a machine are {labels_found}; {expected} was expected")


_PARTS = (
    Part("estimator", _template, _read_template),
    N_FEATURES,
    NAMES,
    LABELS,
    Part("target", _target, _read_target, is_optional=True),
    Part("rows", lambda model, *_: [rows is not None for rows in model._machines.rows], read_later),
    Part("machines", _machines, _read_machines),
    CERTIFICATE,
)
_LIMITS = {"n_jobs": Range(-(2**31), 2**31, (int, type(None))), "estimator": NOTHING}

SCHEME_FILE = _CodedFile(limits=_LIMITS, parts=_PARTS, is_for_schemes=False)
