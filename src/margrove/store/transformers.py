"""scikit-learn's transformers in a model file: a schema for each supported class.

A record has the version of scikit-learn that fitted the transformer. Parameters that it lacks take their defaults;
parameters that only that version has are dropped if they are off. Attributes that only some versions have (1.6 to 1.9)
are made from the others. Parameters are checked by scikit-learn's own rules, attributes by the schema. What follows
from them, such as the columns that an encoder returns, is computed and not read.
"""

from __future__ import annotations

import re
from collections import UserList
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.impute import MissingIndicator
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils._missing import is_scalar_nan

from margrove.store.arrays import SINGLE_OR_DOUBLE, Array, Arrays
from margrove.store.check import check_fields, check_integer
from margrove.store.codec import columns_out, put_together, take_apart
from margrove.store.fault import FaultError, shown
from margrove.store.plain import from_json, to_json
from margrove.store.schema import (
    ARRAYS,
    N_FEATURES,
    NAMES,
    OUTPUT,
    SCALARS,
    THREADS,
    Draft,
    Part,
    Scalar,
    Schema,
    check_parameter,
)

_VERSION = re.compile(r"[0-9]{1,4}(\.[0-9a-z+]{1,20}){1,6}")
_NUMBER_TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
# What an attribute that does not fit the others may raise in scikit-learn's own checks.
_FAULTS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class _TransformerFile(Schema):
    """Parameters as scikit-learn has them: a dtype by its name."""

    def given_parameters(self, model: Any) -> dict[str, Any]:
        given: dict[str, Any] = model.get_params(deep=False)
        if "dtype" in given:
            given["dtype"] = np.dtype(given["dtype"]).name
        for name in ("categories", "drop"):
            if name in given and not isinstance(given[name], str | None):
                given[name] = [each.tolist() if hasattr(each, "tolist") else each for each in given[name]]
        return given

    def parameters_from_json(self, estimator: type, record: Any) -> dict[str, Any]:
        known = estimator().get_params(deep=False)
        given = record
        if isinstance(record, dict):  # without parameters of another version that are off
            given = {
                name: value for name, value in record.items() if name in known or not (value is None or value is False)
            }
        own = known.keys() & given if isinstance(given, dict) else known.keys()
        check_fields(given, own, f"the list of {estimator.__name__}'s parameters")
        parameters = {**known, **{name: from_json(value) for name, value in given.items()}}
        if "dtype" in given:
            parameters["dtype"] = _read_dtype(given["dtype"], "dtype", "object").type
        return parameters

    def put_together(self, estimator: type, record: dict[str, Any], arrays: Arrays) -> Any:
        try:
            model = super().put_together(estimator, record, arrays)
            model.get_feature_names_out()
        except _FAULTS as error:
            words = " ".join(str(error).split())
            raise FaultError(f"the record of {estimator.__name__} does not fit together: {words}") from error
        return model

    def build(self, draft: Draft) -> Any:
        draft.fitted = {**{spec.name: None for spec in self.arrays}, **draft.fitted}  # None where there is none
        model = super().build(draft)
        model._validate_params()  # before the schema's `finish`, which relies on them
        return model


def _describe(*parts: Part, kind: type[Schema] = _TransformerFile, **fields: Any) -> Schema:
    """Return the schema of a transformer with these parts besides those that all have."""
    of_all = (N_FEATURES, NAMES, OUTPUT, _SKLEARN, *parts)
    return kind(parts=of_all, is_for_schemes=False, n_out=lambda model: len(model.get_feature_names_out()), **fields)


def _require(condition: bool, words: str) -> None:
    if not condition:
        raise ValueError(words)


def _read_dtype(name: Any, what: str, *allowed: str) -> np.dtype[Any]:
    if not isinstance(name, str) or name not in (*_NUMBER_TYPES, *allowed):
        raise FaultError(f"{what} is {shown(name)}; the name of a type of numbers was expected")
    return np.dtype(name)


def _read_version(value: Any, draft: Draft) -> None:
    if not isinstance(value, str) or not _VERSION.fullmatch(value):
        raise FaultError(f"the version of scikit-learn is {shown(value)}")


_SKLEARN = Part("sklearn", lambda *_: sklearn.__version__, _read_version)


# ------------------------------------------------------------------------------------------------------- numbers


def _rows_seen(model: Any, *_: Any) -> Any:
    seen = model.n_samples_seen_
    return to_json(seen if isinstance(seen, np.ndarray) else np.asarray(seen).item(), "n_samples_seen_")


def _read_rows_seen(value: Any, draft: Draft) -> None:
    seen = np.asarray(from_json(value)) if isinstance(value, int | float | dict) else np.empty(0)
    if seen.dtype.kind not in "iuf" or seen.shape not in ((), (draft.d,)) or not (seen >= 0).all():
        raise FaultError(f"n_samples_seen_ is {shown(value)}; a number of rows, or one for each column, was expected")
    draft.fitted["n_samples_seen_"] = seen if seen.ndim else seen[()]


def _scaler(names: dict[str, str], *parts: Part, finish: Callable[[Any], None] = lambda model: None) -> Schema:
    """Return the schema of a transformer with these numbers for each column. ``names`` maps each attribute to the
    parameter that switches it off: it may be None if that is False."""

    def check(model: Any) -> None:
        for name, parameter in names.items():
            _require(getattr(model, name) is not None or not getattr(model, parameter, True), f"{name} is missing")
        finish(model)

    arrays = tuple(Array(name, "d", SINGLE_OR_DOUBLE, is_optional=True, has_gaps=True) for name in names)
    return _describe(ARRAYS, *parts, arrays=arrays, finish=check)


def _check_range(model: Any) -> None:
    low, high = model.feature_range
    _require(isinstance(low, int | float) and isinstance(high, int | float) and low < high, "feature_range is no range")


_SEEN = Part("n_samples_seen", _rows_seen, _read_rows_seen)
_MIN_MAX = ("min_", "scale_", "data_min_", "data_max_", "data_range_")
STANDARD_SCALER = _scaler({"mean_": "with_mean", "var_": "with_std", "scale_": "with_std"}, _SEEN)
MIN_MAX_SCALER = _scaler(dict.fromkeys(_MIN_MAX, ""), _SEEN, finish=_check_range)
MAX_ABS_SCALER = _scaler({"max_abs_": "", "scale_": ""}, _SEEN)
ROBUST_SCALER = _scaler({"center_": "with_centering", "scale_": "with_scaling"})
VARIANCE_THRESHOLD = _scaler(
    {"variances_": ""}, finish=lambda model: _require(model.get_support().any(), "variances_ chooses no column")
)

PCA = _describe(
    SCALARS,
    ARRAYS,
    arrays=(
        Array("components_", "k d", SINGLE_OR_DOUBLE),
        Array("mean_", "d", SINGLE_OR_DOUBLE),
        Array("explained_variance_", "k", SINGLE_OR_DOUBLE, least=0),
        Array("explained_variance_ratio_", "k", SINGLE_OR_DOUBLE, least=0),
        Array("singular_values_", "k", SINGLE_OR_DOUBLE, least=0),
    ),
    scalars={
        "noise_variance_": Scalar(float, least=-1.0),  # rounding may make it negative
        "n_components_": Scalar(int, least=1),
        "n_samples_": Scalar(int, least=1),
        "_fit_svd_solver": Scalar(str, choices=("full", "covariance_eigh", "arpack", "randomized")),
    },
    finish=lambda pca: _require(pca.n_components_ == len(pca.components_), "n_components_ is not that of components_"),
)


# ---------------------------------------------------------------------------------------- categories and missing cells


def _values_to_json(values: NDArray[Any], what: str) -> dict[str, Any]:
    """Return an array of numbers, text and None, whose floats JSON keeps to the last bit."""
    return {
        "dtype": "text" if values.dtype.kind == "U" else values.dtype.name,
        "values": to_json(values.tolist(), what),
    }


def _values_from_json(record: Any, what: str) -> NDArray[Any]:
    check_fields(record, {"dtype", "values"}, what)
    values = from_json(record["values"])
    if not isinstance(values, list) or not all(isinstance(each, str | int | float | None) for each in values):
        raise FaultError(f"{what} is {shown(values)}; a list of numbers and text was expected")
    if record["dtype"] in ("object", "text"):
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array if record["dtype"] == "object" else array.astype(np.str_)
    try:
        array = np.array(values, dtype=_read_dtype(record["dtype"], f"the type of {what}", "float16"))
        _require(repr(array.tolist()) == repr(values), "")  # nothing rounded, cut off or made a number
    except (TypeError, ValueError, OverflowError) as error:
        raise FaultError(f"{what} is {shown(values)}, which are not all of type {record['dtype']}") from error
    return array


def _categories(model: Any, *_: Any) -> list[Any]:
    return [_values_to_json(each, "a category") for each in model.categories_]


def _read_categories(value: Any, draft: Draft) -> None:
    if not isinstance(value, list) or len(value) != draft.d:
        raise FaultError(f"the categories are {shown(value)}; a list for each of {draft.d} columns was expected")
    found = [_values_from_json(each, f"the list of categories {j}") for j, each in enumerate(value)]
    for j, each in enumerate(found):
        if not len(each) or len({repr(name) for name in each.tolist()}) != len(each):
            raise FaultError(f"the categories of column {j} are {shown(each.tolist())}; distinct ones were expected")
    draft.fitted["categories_"] = found


def _infrequent(model: Any, *_: Any) -> Any:
    if not model._infrequent_enabled:
        return None
    pairs = zip(model._infrequent_indices, model._default_to_infrequent_mappings, strict=True)
    return [None if indices is None else [indices.tolist(), mapping.tolist()] for indices, mapping in pairs]


def _read_infrequent(value: Any, draft: Draft) -> None:
    """Read the numbers of the infrequent categories of each column, and the place of every category among the frequent
    ones. The places follow from the numbers: all infrequent categories share the place after the frequent ones."""
    sizes = [len(each) for each in draft.fitted["categories_"]]
    if not isinstance(value, list) or len(value) != len(sizes):
        raise FaultError(f"the infrequent categories are {shown(value)}; a list for each column was expected")
    found: list[Any] = [(None, None)] * len(sizes)
    for j, pair in enumerate(value):
        if pair is None:
            continue
        n_mapped = sizes[j] - (j in draft.fitted.get("_missing_indices", ()))  # a missing cell keeps its own category
        given = pair[0] if isinstance(pair, list) and pair and isinstance(pair[0], list) else []
        infrequent = np.array([check_integer(k, 0, "a category", n_mapped - 1) for k in given], dtype=np.int64)
        is_frequent = ~np.isin(np.arange(n_mapped), infrequent)
        places = np.where(is_frequent, np.cumsum(is_frequent) - 1, np.count_nonzero(is_frequent))
        if not given or pair != [np.flatnonzero(~is_frequent).tolist(), places.tolist()]:
            raise FaultError(
                f"the infrequent categories of column {j} are {shown(pair)}, which are not among {n_mapped}"
            )
        found[j] = infrequent, places
    draft.fitted["_infrequent_indices"], draft.fitted["_default_to_infrequent_mappings"] = map(
        list, zip(*found, strict=True)
    )


def _finish_encoder(model: Any) -> None:
    model._check_infrequent_enabled()
    _require(model._infrequent_enabled == hasattr(model, "_infrequent_indices"), "infrequent categories are missing")


def _finish_one_hot(model: Any) -> None:
    _finish_encoder(model)
    model._set_drop_idx()
    model._n_features_outs = model._compute_n_features_outs()


def _read_missing(value: Any, draft: Draft) -> None:
    """Read the column and number of each category that stands for missing cells: NaN, which is the last one."""
    categories = draft.fitted["categories_"]
    found = {j: len(each) - 1 for j, each in enumerate(categories) if is_scalar_nan(each[-1])}
    if value != [[j, k] for j, k in found.items()]:
        raise FaultError(f"the missing categories are {shown(value)}; those of NaN were expected")
    draft.fitted["_missing_indices"] = found


_CATEGORIES = Part("categories", _categories, _read_categories)
_INFREQUENT = Part("infrequent", _infrequent, _read_infrequent, is_optional=True)
_MISSING = Part("missing", lambda m, *_: [[int(j), int(k)] for j, k in m._missing_indices.items()], _read_missing)
ONE_HOT_ENCODER = _describe(_CATEGORIES, _INFREQUENT, finish=_finish_one_hot)
ORDINAL_ENCODER = _describe(_CATEGORIES, _MISSING, _INFREQUENT, finish=_finish_encoder)


def _statistics(model: Any, *_: Any) -> dict[str, Any]:
    return {"values": _values_to_json(model.statistics_, "statistics_"), "fitted": model._fit_dtype.name}


def _read_statistics(value: Any, draft: Draft) -> None:
    check_fields(value, {"values", "fitted"}, "the record of statistics_")
    statistics = _values_from_json(value["values"], "statistics_")
    if len(statistics) != draft.d:
        raise FaultError(f"statistics_ has {len(statistics)} values, and there are {draft.d} columns")
    dtype = _read_dtype(value["fitted"], "the type of the fitted cells", "object")
    draft.fitted |= {"statistics_": statistics, "_fit_dtype": dtype, "_fill_dtype": dtype}  # both the same in 1.9


def _read_indicator(value: Any, draft: Draft) -> None:
    draft.fitted["indicator_"] = None
    if (value is not None) != bool(draft.parameters["add_indicator"]) or not isinstance(value, list | None):
        raise FaultError(f"the columns of the indicator are {shown(value)}, which does not fit add_indicator")
    if value is not None:
        columns = [check_integer(j, 0, "a column of the indicator", draft.d - 1) for j in value]
        _require(len(set(columns)) == len(columns), "the indicator has a column twice")
        indicator = MissingIndicator(missing_values=draft.parameters["missing_values"], error_on_new=False)
        indicator.features_, indicator.n_features_in_ = np.array(columns, dtype=np.int64), draft.d
        indicator._n_features, indicator._precomputed = draft.d, True  # the imputer passes it the mask
        draft.fitted["indicator_"] = indicator


SIMPLE_IMPUTER = _describe(
    Part("statistics", _statistics, _read_statistics),
    Part("indicator", lambda m, *_: m.indicator_ and [int(j) for j in m.indicator_.features_], _read_indicator),
)


# ------------------------------------------------------------------------------------------------------- columns

_JOINED = ("sparse_threshold", "n_jobs", "transformer_weights", "verbose", "verbose_feature_names_out")
_IDLE = ("drop", "passthrough")


class _ColumnsFile(_TransformerFile):
    """The parameters of `ColumnTransformer` that are no transformers."""

    def given_parameters(self, model: Any) -> dict[str, Any]:
        return {name: getattr(model, name) for name in _JOINED}

    def parameters_from_json(self, estimator: type, record: Any) -> dict[str, Any]:
        check_fields(record, set(_JOINED), "the list of ColumnTransformer's parameters")
        check_parameter("n_jobs", record["n_jobs"], THREADS)
        return {"transformers": [], **{name: from_json(value) for name, value in record.items()}}


def _columns(model: Any, schema: Schema, arrays: Arrays) -> list[Any]:
    """Return name, record and columns of each transformer, "drop" where it has no columns."""
    given = {**{name: each for name, each, _ in model.transformers}, "remainder": model.remainder}
    steps = []
    for number, (name, step, columns) in enumerate(model.transformers_):
        if isinstance(columns, UserList):  # of scikit-learn 1.6, which warns when it is read
            columns = columns.data
        places: Any = [int(place) for place in model._transformer_to_input_indices[name]]
        kept: Any = "drop" if not places else given[name]
        if not isinstance(kept, str):
            kept = take_apart(step, arrays.within(f"columns.{number}"))
        if isinstance(columns, str) or (np.isscalar(columns) and places):
            places = columns if isinstance(columns, str) else places[0]
        elif not isinstance(columns, slice) and places and all(isinstance(each, str) for each in columns):
            places = [str(each) for each in columns]
        steps.append([name, kept, places])
    return steps


def _read_columns(value: Any, draft: Draft) -> None:
    pairs = enumerate(value if isinstance(value, list) else [value])
    steps = [_read_step(number, each, draft) for number, each in pairs]
    if len({name for name, *_ in steps}) != len(steps):
        raise FaultError("two transformers of ColumnTransformer have the same name")
    asked = [(name, step if isinstance(step, str) else clone(step), columns) for name, step, columns, _ in steps]
    rest = asked.pop() if asked and asked[-1][0] == "remainder" else ("remainder", "drop", [])
    draft.parameters |= {"transformers": asked, "remainder": rest[1]}
    fitted, slices, end = [], {"remainder": slice(0, 0)}, 0
    for name, step, columns, places in steps:
        width = 0 if step == "drop" else len(places) if step == "passthrough" else columns_out(step)
        if width is None:
            raise FaultError(f"the number of columns that {shown(name)} of ColumnTransformer returns is not known")
        slices[name] = slice(end, end + width) if width else slice(0, 0)
        end += width
        fitted.append((name, _passes_on(draft, places) if step == "passthrough" else step, columns))
    draft.fitted |= {
        "transformers_": fitted,
        "output_indices_": slices,
        "_columns": [columns for *_, columns in asked],
        "_remainder": ("remainder", rest[1], rest[2]),
        "_transformer_to_input_indices": {"remainder": [], **{name: places for name, *_, places in steps}},
    }


def _read_step(number: int, record: Any, draft: Draft) -> tuple[str, Any, Any, list[int]]:
    """Return name, transformer, columns, and their numbers."""
    what = f"transformer {number} of ColumnTransformer"
    if not isinstance(record, list) or len(record) != 3 or type(record[0]) is not str:
        raise FaultError(f"{what} is {shown(record)}; name, record and columns were expected")
    name, kept, columns = record
    known = {name: place for place, name in enumerate(draft.fitted.get("feature_names_in_", ()))}
    keys = columns if isinstance(columns, list) else [columns]
    numbers = [known.get(key, key) if isinstance(key, str) else key for key in keys]
    places = [check_integer(number, 0, f"a column of {what}", draft.d - 1) for number in numbers]
    if isinstance(kept, str) and kept in _IDLE:
        return name, kept, columns, places
    step = put_together(kept, draft.arrays.within(f"columns.{number}"))
    if not hasattr(step, "transform") or getattr(step, "n_features_in_", None) != len(places):
        raise FaultError(f"{what} does not transform {len(places)} columns")
    return name, step, columns, places


def _passes_on(draft: Draft, places: list[int]) -> Any:
    """Return the transformer by which scikit-learn replaces "passthrough" in a fit."""
    step = FunctionTransformer(accept_sparse=True, check_inverse=False, feature_names_out="one-to-one")
    step.set_output(transform=draft.fitted.get("_sklearn_output_config", {}).get("transform") or "default")
    step.n_features_in_ = len(places)
    if "feature_names_in_" in draft.fitted:
        step.feature_names_in_ = draft.fitted["feature_names_in_"][places]
    return step


def _read_sparse(value: Any, draft: Draft) -> None:
    _require(type(value) is bool, "is_sparse is not true or false")
    draft.fitted["sparse_output_"] = value


COLUMN_TRANSFORMER = _describe(
    Part("columns", _columns, _read_columns),
    Part("is_sparse", lambda model, *_: bool(model.sparse_output_), _read_sparse),
    kind=_ColumnsFile,
    finish=lambda model: model._validate_transformers(),
)
