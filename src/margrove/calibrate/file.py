"""A calibrated classifier in a model file: the record of its estimator, and the arrays of the calibration.

The parameter ``estimator`` is read back from the fitted one: its class and its parameters.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from margrove.calibrate.probability import check_estimator
from margrove.errors import ParameterError
from margrove.estimator import with_parameters
from margrove.status import Status
from margrove.store.arrays import Array, Arrays
from margrove.store.codec import put_together, take_apart
from margrove.store.fault import FaultError, shown
from margrove.store.schema import ARRAYS, NOTHING, SCALARS, Draft, Part, Scalar, Schema, one_vs_rest


class _CalibratedFile(Schema):
    def parameters_to_json(self, model: Any, arrays: Arrays) -> dict[str, Any]:
        return super().parameters_to_json(with_parameters(model, estimator=None), arrays)

    def build(self, draft: Draft) -> Any:
        fitted = draft.fitted
        del fitted["n_features_in_"]  # the estimator's
        is_tuned = {"class_factors_", "held_out_score_"} & fitted.keys()
        if len(is_tuned) == 1 or (is_tuned and (fitted["class_factors_"] <= 0).any()):
            raise FaultError("class_factors_ must be above 0, and come with held_out_score_")
        model = draft.estimator(**draft.parameters)
        vars(model).update(fitted)
        return model


def _read_model(record: Any, draft: Draft) -> None:
    model = put_together(record, draft.arrays.within("model"))
    try:
        check_estimator(model)
    except ParameterError as error:
        raise FaultError(str(error).rstrip(".")) from error
    draft.fitted |= {"estimator_": model, "n_features_in_": getattr(model, "n_features_in_", 0)}
    draft.labels, draft.counts = model.classes_, one_vs_rest({}, len(model.classes_))


def _read_default(value: Any, draft: Draft) -> None:
    if type(value) is not bool:
        raise FaultError(f"is_default is {shown(value)}; true or false was expected")
    draft.parameters["estimator"] = None if value else clone(draft.fitted["estimator_"])


CALIBRATED_FILE = _CalibratedFile(
    (
        Array("slopes_", "m", least=0),
        Array("intercepts_", "m"),
        Array("class_factors_", "K", is_optional=True),
        Array("held_out_score_", "2", is_optional=True),
    ),
    {"status_": Scalar(Status, choices=tuple(Status))},
    limits={"estimator": NOTHING},
    parts=(
        Part("model", lambda model, _, arrays: take_apart(model.estimator_, arrays.within("model")), _read_model),
        Part("is_default", lambda model, *_: model.estimator is None, _read_default),
        SCALARS,
        ARRAYS,
    ),
    is_for_schemes=False,
)
