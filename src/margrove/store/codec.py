"""A model of any class that a file may hold, taken apart and put together again by its codec: pipelines, too.

Which codec a class has is for the registry (`margrove.learner`). A file names a class and causes no import: classes are
found among those that are described.
"""

from __future__ import annotations

from typing import Any, Protocol

from sklearn.pipeline import Pipeline

from margrove.learner import description_of, learner_named, loaded
from margrove.store.arrays import Arrays
from margrove.store.check import check_fields, check_step
from margrove.store.fault import FaultError, shown
from margrove.store.plain import from_json, to_json

# Not "memory": on the next fit joblib would unpickle what it finds in that folder, and a file must not choose the
# folder.
_PIPELINE_PARAMETERS = {"transform_input", "verbose"}
IDLE = ("passthrough", None)  # steps that do nothing


class Codec(Protocol):
    """What the field ``file`` of a description is. `margrove.store.schema.Schema` is one for most estimators."""

    def take_apart(self, model: Any, arrays: Arrays) -> dict[str, Any]:
        """Return the record of a fitted model, JSON values with its ``class``; put its arrays into ``arrays``."""
        ...

    def put_together(self, estimator: type, record: dict[str, Any], arrays: Arrays) -> Any:
        """Return the model of that class that the record describes, or raise `FaultError`; take its arrays out of
        ``arrays``."""
        ...


def codec_of(model: Any) -> Any:
    """The codec of a model, None if it has none."""
    learner = description_of(model)  # not of a class of that name: scikit-learn has a Perceptron, too
    if learner is None or learner.file is None:
        return None
    if learner_named(learner.name) is not learner:
        raise FaultError(
            f"a model file names its classes, and {learner.name} is the name of another", "Give the class another name."
        )
    return loaded(learner.file)


def codec_named(name: Any) -> tuple[Any, type] | None:
    """The codec and the class of that name, None if there is none."""
    learner = learner_named(name) if isinstance(name, str) else None
    if learner is None or learner.file is None:
        return None
    return loaded(learner.file), loaded(learner.estimator)


def take_apart(model: Any, arrays: Arrays) -> dict[str, Any]:
    """Return the record of a fitted model; its arrays go into ``arrays``."""
    if type(model) is Pipeline:
        return _take_pipeline_apart(model, arrays)
    codec = codec_of(model)
    if codec is not None:
        record: dict[str, Any] = codec.take_apart(model, arrays)
        return record
    kind = type(model)
    cure = (
        "Those are Margrove's learners, its TableEncoder, ImpuritySelector and ConvFeatures, and a Pipeline of these; "
        "prepare data outside of it."
    )
    raise FaultError(
        f"a model file holds no code, so only classes it knows, and {kind.__module__}.{kind.__qualname__} is none",
        "Of a search, save its best_estimator_." if hasattr(model, "best_estimator_") else cure,
    )


def put_together(record: Any, arrays: Arrays) -> Any:
    """Return the model that the record describes; its arrays are taken out of ``arrays``."""
    name = record.get("class") if isinstance(record, dict) else None
    if name == "Pipeline":
        return _put_pipeline_together(record, arrays)
    found = codec_named(name)
    if found is None:
        raise FaultError(f"it holds a {shown(name)}, which is not a class that this version of Margrove knows")
    codec, estimator = found
    return codec.put_together(estimator, record, arrays)


def _take_pipeline_apart(pipeline: Any, arrays: Arrays) -> dict[str, Any]:
    if pipeline.memory is not None:
        arrays.left_out.append("Pipeline: memory is a cache for fitting, which is not kept; saved as None.")
    steps = []
    for number, (name, step) in enumerate(pipeline.steps):
        is_idle = step is None or isinstance(step, str)
        steps.append([name, step if is_idle else take_apart(step, arrays.within(f"steps.{number}"))])
    given = pipeline.get_params(deep=False)
    parameters = {name: to_json(given[name], f"Pipeline's {name}") for name in sorted(_PIPELINE_PARAMETERS)}
    return {"class": "Pipeline", "parameters": parameters, "steps": steps}


def _put_pipeline_together(record: dict[str, Any], arrays: Arrays) -> Any:
    check_fields(record, {"class", "parameters", "steps"}, "the record of Pipeline")
    check_fields(record["parameters"], _PIPELINE_PARAMETERS, "the list of Pipeline's parameters")
    if not isinstance(record["steps"], list) or not record["steps"]:
        raise FaultError("the pipeline has no steps")
    steps: list[tuple[str, Any]] = []
    for number, pair in enumerate(record["steps"]):
        name, step = check_step(pair, f"step {number} of the pipeline")
        is_idle = not isinstance(step, dict) and step in IDLE
        steps.append((name, step if is_idle else put_together(step, arrays.within(f"steps.{number}"))))
    if len({name for name, _ in steps}) != len(steps):
        raise FaultError("two steps of the pipeline have the same name")
    _check_chain(steps)
    return Pipeline(steps, **{name: from_json(value) for name, value in record["parameters"].items()})


def _check_chain(steps: list[tuple[str, Any]]) -> None:
    """Each step but the last passes a table on, of as many columns as the next one wants."""
    passed: int | None = None
    for name, step in steps:
        if step in IDLE:
            continue
        wanted = getattr(step, "n_features_in_", None)
        if passed is not None and wanted != passed:
            raise FaultError(f"step {shown(name)} of the pipeline wants {wanted} columns and gets {passed}")
        n_out = getattr(codec_of(step), "n_out", None)
        passed = None if n_out is None else n_out(step)
    for name, step in steps[:-1]:
        if step not in IDLE and not hasattr(step, "transform"):
            raise FaultError(f"step {shown(name)} of the pipeline does not transform, and it is not the last")
