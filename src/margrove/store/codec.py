"""Models of any class that a file may hold, pipelines too, taken apart and put together again by their codecs.

The registry (`margrove.learner`) has the codec of each class. A file names a class and causes no import: classes are
found among those that are described.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from sklearn.pipeline import Pipeline

from margrove.learner import description_of, learner_named, loaded
from margrove.store.arrays import Arrays
from margrove.store.check import check_fields
from margrove.store.fault import FaultError, shown
from margrove.store.plain import from_json, to_json

# Not "memory": on the next fit joblib would unpickle what it finds in that folder, and a file must not choose the
# folder.
_PIPELINE_PARAMETERS = {"transform_input", "verbose"}
_IDLE = ("passthrough", None)  # steps that do nothing


class Codec(Protocol):
    """The field ``file`` of a description. `margrove.store.schema.Schema` is one for most estimators."""

    def take_apart(self, model: Any, arrays: Arrays) -> dict[str, Any]:
        """Return the record of a fitted model, JSON values with its ``class``; put its arrays into ``arrays``."""
        ...

    def put_together(self, estimator: type, record: dict[str, Any], arrays: Arrays) -> Any:
        """Return the model of that class that the record describes, or raise `FaultError`; take its arrays out of
        ``arrays``."""
        ...


def codec_of(model: Any) -> Any:
    """Return the codec of a model, None if it has none."""
    learner = description_of(model)  # not of a class of that name: scikit-learn has a Perceptron, too
    if learner is None or learner.file is None:
        return None
    if learner_named(learner.name) is not learner:
        raise FaultError(
            f"a model file stores class names, and {learner.name} is the name of another class", "Rename the class."
        )
    return loaded(learner.file)


def codec_named(name: Any) -> tuple[Any, type] | None:
    """Return the codec and the class of that name, None if there is none."""
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
        "Supported are Margrove's learners and TableEncoder, scikit-learn's scalers, encoders, SimpleImputer, PCA, "
        "ColumnTransformer, and pipelines of these."
    )
    raise FaultError(
        f"a model file contains no code, and {kind.__module__}.{kind.__qualname__} is not a class that it supports",
        "Save the best_estimator_ of the search." if hasattr(model, "best_estimator_") else cure,
    )


def put_together(record: Any, arrays: Arrays) -> Any:
    """Return the model that the record describes; its arrays are taken out of ``arrays``."""
    name = record.get("class") if isinstance(record, dict) else None
    if name == "Pipeline":
        return _put_pipeline_together(record, arrays)
    found = codec_named(name)
    if found is None:
        raise FaultError(f"it holds a {shown(name)}, which is not a class that this version of Margrove supports")
    codec, estimator = found
    return codec.put_together(estimator, record, arrays)


def steps_to_json(pipeline: Any, take: Callable[[Any, int], Any]) -> list[Any]:
    """Return the steps of a pipeline as pairs, each made by ``take`` unless it does nothing."""
    steps = enumerate(pipeline.steps)
    return [[n, step if step is None or isinstance(step, str) else take(step, number)] for number, (n, step) in steps]


def steps_from_json(pairs: list[Any], what: str, put: Callable[[Any, int], Any]) -> list[tuple[str, Any]]:
    """Return the steps of these pairs."""
    steps = []
    for number, pair in enumerate(pairs):
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str) or "__" in pair[0]:
            raise FaultError(f"{what.format(number)} is {shown(pair)}; a name and a record were expected")
        is_idle = not isinstance(pair[1], dict) and pair[1] in _IDLE
        steps.append((pair[0], pair[1] if is_idle else put(pair[1], number)))
    return steps


def _take_pipeline_apart(pipeline: Any, arrays: Arrays) -> dict[str, Any]:
    if pipeline.memory is not None:
        arrays.left_out.append("Pipeline: memory is a cache for fitting and is not saved; None is saved instead.")
    steps = steps_to_json(pipeline, lambda step, number: take_apart(step, arrays.within(f"steps.{number}")))
    given = pipeline.get_params(deep=False)
    parameters = {name: to_json(given[name], f"Pipeline's {name}") for name in sorted(_PIPELINE_PARAMETERS)}
    return {"class": "Pipeline", "parameters": parameters, "steps": steps}


def _put_pipeline_together(record: dict[str, Any], arrays: Arrays) -> Any:
    check_fields(record, {"class", "parameters", "steps"}, "the record of Pipeline")
    check_fields(record["parameters"], _PIPELINE_PARAMETERS, "the list of Pipeline's parameters")
    if not isinstance(record["steps"], list) or not record["steps"]:
        raise FaultError("the pipeline has no steps")
    steps = steps_from_json(
        record["steps"],
        "step {} of the pipeline",
        lambda step, number: put_together(step, arrays.within(f"steps.{number}")),
    )
    if len({name for name, _ in steps}) != len(steps):
        raise FaultError("two steps of the pipeline have the same name")
    _check_chain(steps)
    return Pipeline(steps, **{name: from_json(value) for name, value in record["parameters"].items()})


def columns_out(step: Any) -> int | None:
    """Return the number of columns that a fitted transformer returns; None if that is not known."""
    if type(step) is Pipeline:
        working = [each for _, each in step.steps if each not in _IDLE]
        return columns_out(working[-1]) if working else None
    n_out = getattr(codec_of(step), "n_out", None)
    return None if n_out is None else int(n_out(step))


def _check_chain(steps: list[tuple[str, Any]]) -> None:
    """Check that each step but the last transforms, and passes as many columns on as the next one wants."""
    passed: int | None = None
    for name, step in steps:
        if step in _IDLE:
            continue
        wanted = getattr(step, "n_features_in_", None)
        if passed is not None and wanted != passed:
            raise FaultError(f"step {shown(name)} of the pipeline expects {wanted} columns, but gets {passed}")
        passed = columns_out(step)
    for name, step in steps[:-1]:
        if step not in _IDLE and not hasattr(step, "transform"):
            raise FaultError(f"step {shown(name)} of the pipeline is not the last, but has no transform")
