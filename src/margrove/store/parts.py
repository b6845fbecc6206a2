"""A model of any class that a file may hold, taken apart and put together again: pipelines, too."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from margrove.data.encoding import width
from margrove.store.boost_parts import put_boost_together, take_boost_apart
from margrove.store.check import check_fields
from margrove.store.coded_parts import put_coded_together, take_coded_apart
from margrove.store.encoder_parts import put_encoder_together, take_encoder_apart
from margrove.store.fault import FaultError, shown
from margrove.store.learner_parts import Taken, put_learner_together, take_learner_apart
from margrove.store.plain import from_json, to_json
from margrove.store.schema import BOOSTS, CODED, ENCODER, FEATURES, LEARNERS, SELECTOR, TREES, TUNED
from margrove.store.selector_parts import put_selector_together, take_selector_apart
from margrove.store.transfer_parts import (
    put_features_together,
    put_tuned_together,
    take_features_apart,
    take_tuned_apart,
)
from margrove.store.tree_parts import put_tree_together, take_tree_apart
from margrove.store.versions import Tensors

_PIPELINE_FIELDS = {"class", "parameters", "steps"}
# Not "memory": on the next fit joblib would unpickle what it finds in that folder, and a file must not choose the
# folder.
_PIPELINE_PARAMETERS = {"transform_input", "verbose"}
_IDLE = ("passthrough", None)  # steps that do nothing


def take_apart(model: Any, taken: Taken, prefix: str = "") -> dict[str, Any]:
    """The record of a fitted model; its arrays go into ``taken``."""
    # The very class, not its name or a subclass: scikit-learn has a Perceptron too, and a subclass may do anything.
    if any(type(model) is learner.estimator for learner in LEARNERS.values()):
        return take_learner_apart(model, taken, prefix)
    if any(type(model) is learner.estimator for learner in TREES.values()):
        return take_tree_apart(model, taken, prefix)
    if any(type(model) is learner.estimator for learner in BOOSTS.values()):
        return take_boost_apart(model, taken, prefix)
    if any(type(model) is learner.estimator for learner in CODED.values()):
        return take_coded_apart(model, taken, prefix, take_apart)
    if type(model) is ENCODER:
        return take_encoder_apart(model, taken)
    if type(model) is SELECTOR:
        return take_selector_apart(model, taken, prefix)
    if type(model) is FEATURES:
        return take_features_apart(model, taken)
    if type(model) is TUNED:
        return take_tuned_apart(model, taken, prefix)
    if type(model) is Pipeline:
        return _take_pipeline_apart(model, taken, prefix)
    kind = type(model)
    cure = (
        f"Those are Margrove's learners, its {ENCODER.__name__}, {SELECTOR.__name__} and {FEATURES.__name__}, and a "
        "Pipeline of these; prepare data outside of it."
    )
    raise FaultError(
        f"a model file holds no code, so only classes it knows, and {kind.__module__}.{kind.__qualname__} is none",
        "Of a search, save its best_estimator_." if hasattr(model, "best_estimator_") else cure,
    )


def put_together(record: Any, tensors: Tensors, prefix: str = "") -> Any:
    """The model that the record describes; its tensors are taken out of ``tensors``."""
    name = record.get("class") if isinstance(record, dict) else None
    if isinstance(name, str) and name in LEARNERS:
        return put_learner_together(record, tensors, prefix)
    if isinstance(name, str) and name in TREES:
        return put_tree_together(record, tensors, prefix)
    if isinstance(name, str) and name in BOOSTS:
        return put_boost_together(record, tensors, prefix)
    if isinstance(name, str) and name in CODED:
        return put_coded_together(record, tensors, prefix, put_together)
    if name == "TableEncoder":
        return put_encoder_together(record)
    if name == SELECTOR.__name__:
        return put_selector_together(record, tensors, prefix)
    if name == FEATURES.__name__:
        return put_features_together(record)
    if name == TUNED.__name__:
        return put_tuned_together(record, tensors, prefix)
    if name == "Pipeline":
        return _put_pipeline_together(record, tensors, prefix)
    raise FaultError(f"it holds a {shown(name)}, which is not a class that this version of Margrove knows")


def _take_pipeline_apart(pipeline: Any, taken: Taken, prefix: str) -> dict[str, Any]:
    if pipeline.memory is not None:
        taken.left_out.append("Pipeline: memory is a cache for fitting, which is not kept; saved as None.")
    steps = []
    for number, (name, step) in enumerate(pipeline.steps):
        is_idle = step is None or isinstance(step, str)
        steps.append([name, step if is_idle else take_apart(step, taken, f"{prefix}steps.{number}.")])
    given = pipeline.get_params(deep=False)
    parameters = {name: to_json(given[name], f"Pipeline's {name}") for name in sorted(_PIPELINE_PARAMETERS)}
    return {"class": "Pipeline", "parameters": parameters, "steps": steps}


def _put_pipeline_together(record: dict[str, Any], tensors: Tensors, prefix: str) -> Any:
    check_fields(record, _PIPELINE_FIELDS, "the record of Pipeline")
    check_fields(record["parameters"], _PIPELINE_PARAMETERS, "the list of Pipeline's parameters")
    if not isinstance(record["steps"], list) or not record["steps"]:
        raise FaultError("the pipeline has no steps")
    steps: list[tuple[str, Any]] = []
    for number, pair in enumerate(record["steps"]):
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str) or "__" in pair[0]:
            raise FaultError(f"step {number} of the pipeline is {shown(pair)}; a name and a record were expected")
        is_idle = not isinstance(pair[1], dict) and pair[1] in _IDLE
        steps.append((pair[0], pair[1] if is_idle else put_together(pair[1], tensors, f"{prefix}steps.{number}.")))
    if len({name for name, _ in steps}) != len(steps):
        raise FaultError("two steps of the pipeline have the same name")
    _check_chain(steps)
    return Pipeline(steps, **{name: from_json(value) for name, value in record["parameters"].items()})


def _check_chain(steps: list[tuple[str, Any]]) -> None:
    """Each step but the last passes a table on, of as many columns as the next one wants."""
    passed: int | None = None
    for name, step in steps:
        if step in _IDLE:
            continue
        wanted = getattr(step, "n_features_in_", None)
        if passed is not None and wanted != passed:
            raise FaultError(f"step {shown(name)} of the pipeline wants {wanted} columns and gets {passed}")
        passed = _passed_on(step)
    for name, step in steps[:-1]:
        if step not in _IDLE and not hasattr(step, "transform"):
            raise FaultError(f"step {shown(name)} of the pipeline does not transform, and it is not the last")


def _passed_on(step: Any) -> int | None:
    """How many columns come out of a step; None of the last one."""
    if type(step) is ENCODER:
        return sum(map(width, step.columns_))
    if type(step) is FEATURES:
        return int(step.n_features_out_)
    return int(step.support_.sum()) if type(step) is SELECTOR else None
