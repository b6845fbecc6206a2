"""AdaBoost in a model file: the arrays of `margrove.boost.model.Grove` (``grove.start``, ``grove.feature``, …) and what
was seen in each round (``error``, ``vote``, …). Learners that are not trees of ours are not for a file.

Of the symbols of shapes, T is the number of trees, q of rounds that were done, of which T are kept, h of rows held out.
"""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from margrove.boost.base import settle_learner
from margrove.boost.model import BoostModel, Rounds
from margrove.estimator import with_parameters
from margrove.store.arrays import WHOLE, Array, Arrays
from margrove.store.check import check_fields
from margrove.store.codec import codec_named, codec_of
from margrove.store.fault import FaultError, shown
from margrove.store.schema import CERTIFICATE, ENDED, ROWS, SCALARS, Draft, Part, Schema, fitted_attribute, single
from margrove.tree.file import (
    CLASSIFIER_FILE,
    GROVE_ARRAYS,
    REGRESSOR_FILE,
    put_trees,
    read_grove,
    table_parts,
)

_ROUNDS = ("error", "vote", "training_error", "validation_error")
_HELD_OUT = "validation_rows"


class _BoostFile(Schema):
    """The tree that is boosted is a record among the parameters."""

    def take_apart(self, model: Any, arrays: Arrays) -> dict[str, Any]:
        check_is_fitted(model)
        fitted_attribute(model, "certificate_")
        name, kind = type(model).__name__, type(model.estimator_)
        if codec_of(model.estimator_) not in (CLASSIFIER_FILE, REGRESSOR_FILE):
            raise FaultError(
                f"{name} boosts a {kind.__module__}.{kind.__qualname__}; a model file can only hold Margrove's trees",
                "Boost a DecisionStump or a DecisionTreeClassifier (for regression, a DecisionTreeRegressor).",
            )
        if model.model_ is None:
            raise FaultError(
                f"the trees of this {name} were fitted on rows with different levels or missing cells, so they cannot "
                "be stored together",
                "Boost trees without pruning or randomness, which are all fitted with the same levels.",
            )
        return super().take_apart(model, arrays)

    def parameters_to_json(self, model: Any, arrays: Arrays) -> dict[str, Any]:
        tree, changes = model.estimator, {"estimator": None}
        if hasattr(model, "_drawn_seed"):
            words = "random_state is a generator, whose state is not saved; the seed drawn from it is saved instead."
            arrays.left_out.append(f"{type(model).__name__}: {words}")
            changes["random_state"] = model._drawn_seed
        record = super().parameters_to_json(with_parameters(model, **changes), arrays)
        if tree is not None:
            of_tree = super().parameters_to_json(tree, arrays)
            record["estimator"] = {"class": type(tree).__name__, "parameters": of_tree}
        return record

    def parameters_from_json(self, estimator: type, record: Any) -> dict[str, Any]:
        given = record.get("estimator") if isinstance(record, dict) else None
        parameters = super().parameters_from_json(estimator, record if given is None else {**record, "estimator": None})
        if given is not None:
            check_fields(given, {"class", "parameters"}, "the learner")
            codec, tree = codec_named(given["class"]) or (None, type)
            if codec is not (CLASSIFIER_FILE if self.is_classifier else REGRESSOR_FILE):
                named = shown(given["class"])
                raise FaultError(f"the learner is a {named}, which {estimator.__name__} cannot boost")
            parameters["estimator"] = tree(**codec.parameters_from_json(tree, given["parameters"]))
        return parameters

    def build(self, draft: Draft) -> Any:
        model = super().build(draft)
        model.estimator_ = settle_learner(model.estimator, model._default_learner, draft.name)
        return model


def _rounds(model: Any, schema: Schema, arrays: Arrays) -> dict[str, str]:
    if schema.is_classifier:
        seen = {**{name: getattr(model.rounds_, name) for name in _ROUNDS}, _HELD_OUT: model.validation_rows_}
    else:
        seen = {"error": model.estimator_errors_, "vote": model.estimator_weights_}
    return {name: arrays.put(name, array) for name, array in seen.items() if array is not None}


def _read_rounds(layouts: Any, draft: Draft) -> None:
    grove, k, schema = draft.notes["grove"], len(draft.labels), draft.schema
    seen = draft.arrays.take_all(schema.arrays, layouts, {"d": draft.d})
    n_trees, n_votes = grove.n_trees, len(seen["vote"])
    if n_votes < n_trees or (n_votes > n_trees and not schema.is_classifier):
        raise FaultError(f"there are {n_trees} trees and {n_votes} votes")
    draft.fitted |= {"n_estimators_": n_trees, "model_": BoostModel(grove, seen["vote"][:n_trees], k)}
    if schema.is_classifier:
        of_rounds: dict[str, Any] = {name: seen.get(name) for name in _ROUNDS}
        draft.fitted |= {"n_classes_": k, "rounds_": Rounds(**of_rounds, n_classes=k)}
        draft.fitted["validation_rows_"] = seen.get(_HELD_OUT)
    else:
        draft.fitted |= {"estimator_weights_": seen["vote"], "estimator_errors_": seen["error"]}


_PARTS = (
    *table_parts(lambda model: model.model_.grove.columns),
    SCALARS,
    Part(
        "grove",
        lambda model, _, arrays: put_trees(GROVE_ARRAYS, model.model_.grove, arrays.within("grove")),
        read_grove,
    ),
    Part("arrays", _rounds, _read_rounds),
    CERTIFICATE,
)
_SEEN = (Array("error", "q", least=0, most=1), Array("vote", "q", least=0))
_SCALARS = {**ENDED, **ROWS}

CLASSES_FILE = _BoostFile(
    (
        *_SEEN,
        Array("training_error", "q", least=0),
        Array("validation_error", "q", is_optional=True, least=0),
        Array(_HELD_OUT, "h", WHOLE, is_optional=True, least=0),
    ),
    _SCALARS,
    machines=single,
    later={"class_weight": None},
    parts=_PARTS,
)
NUMBERS_FILE = _BoostFile(_SEEN, _SCALARS, machines=single, is_classifier=False, parts=_PARTS)
