"""What is recorded of a fitted model, and how a present one is compared with the record.

Every public fitted attribute, the certificates and the predictions become digests, which are compared where the
environment is the recorded one. Elsewhere the last bits of floats may differ, so there is also a summary, which is
compared within tolerances, everywhere.
"""

from __future__ import annotations

import hashlib
import math
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_info

from margrove import Certificate, Table, _core

# Attributes and fields that have another name than in the record: {recorded name: present name}.
RENAMED: dict[str, str] = {}
# Attributes that are not recorded, with the reason.
EXCLUDED = {
    "refit_time_": "seconds",
    "scorer_": "an object of scikit-learn's",
    "tree_": "an object of scikit-learn's, made of nodes_",
    "probA_": "deprecated as in scikit-learn; predict_proba has it",
    "probB_": "deprecated as in scikit-learn; predict_proba has it",
}
_SECONDS = "_time"  # how the keys of cv_results_ that hold seconds end

PREDICTIONS = ("predict", "decision_function", "predict_proba", "apply", "score_samples", "transform")
WORDS = "words"  # the part for sentences, so that a sentence can change without hiding a change of a number
PART = 4  # hexadecimal digits for each part of a case

# Claims whose values are compared within a tolerance. The dual is flat at its optimum, the primal is not.
_VALUES = re.compile(r"dual( value| objective)?|leaves|rounds|description length|mean squared residual")
_RTOL = 5e-3  # of such a value; the solvers stop at 1e-3 or 1e-4
_SIZES = {"support_": len, "nodes_": lambda tree: tree.n_nodes, "n_estimators_": int}
_SIZE_RTOL, _SIZE_ATOL = 0.15, 4
_SHOWN = 30  # predictions in a summary
_MOST_WRONG = 3  # of them, that may be other classes
_PREDICTED_RTOL = 0.03  # of a predicted number, relative to the largest one


def fingerprint() -> dict[str, str]:
    """Everything that may change the last bits of a float: instruction sets, libraries, the compiler."""
    flags = _cpu_flags()
    levels = {"v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}, "v3": {"avx2", "fma", "bmi2"}}
    compiler = re.search(rb"(GCC:|clang version) [ -~]+", Path(_core.__file__).read_bytes())
    blas = {each["architecture"] for each in threadpool_info() if each["user_api"] == "blas"}
    return {
        "cpu": f"{platform.machine()} {next((name for name, needed in levels.items() if needed <= flags), '')}".strip(),
        "blas": ", ".join(sorted(blas)),
        "libc": " ".join(platform.libc_ver()),
        "compiler": compiler[0].decode() if compiler else "",
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn", "pandas", "pyarrow")},
    }


def _cpu_flags() -> set[str]:
    info = Path("/proc/cpuinfo")
    found = re.search(r"^flags\s*:(.*)$", info.read_text(), re.MULTILINE) if info.exists() else None
    return set(found[1].split()) if found else set()


def fitted_state(subject: Any) -> dict[str, Any]:
    """Every public attribute of a fitted estimator that ends in an underscore, by its recorded name."""
    state = {}
    for name in dir(subject):
        if not name.endswith("_") or name.startswith("_") or name in EXCLUDED:
            continue
        try:
            state[_recorded(name)] = getattr(subject, name)
        except AttributeError:  # a property that this fit has no value for
            continue
    return state


def _recorded(name: str) -> str:
    return next((old for old, new in RENAMED.items() if new == name), name)


def flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Pairs (name, text) for every leaf of a value: equal for equal values, whatever objects hold them."""
    if isinstance(value, Certificate):
        claims = [(claim.name, claim.values, claim.limits, claim.holds) for claim in value.claims]
        value = [value.learner, value.status, value.source, value.n_rows, value.machines, value.holds, claims]
    if isinstance(value, BaseEstimator):
        value = fitted_state(value)
    elif is_dataclass(value):
        value = {_recorded(each.name): getattr(value, each.name) for each in fields(value) if each.name[0] != "_"}
    if sp.issparse(value):
        value = value.tocsr().sorted_indices()
        value = {"data": value.data, "indices": value.indices, "indptr": value.indptr, "shape": value.shape}
    if isinstance(value, Table):
        value = {column.name: (column.kind, column.values, column.levels) for column in value}
    if isinstance(value, pd.DataFrame):
        value = {str(column): value[column].to_numpy(object) for column in value}
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        value = value.tolist()
    if isinstance(value, Mapping):
        for key in sorted(value, key=str):
            if not str(key).endswith(_SECONDS):
                yield from flat(value[key], f"{name}.{key}")
    elif isinstance(value, list | tuple):
        yield name, f"{len(value)} items"
        for index, item in enumerate(value):
            yield from flat(item, f"{name}.{index}")
    elif isinstance(value, np.ndarray):
        if value.dtype.kind == "f":
            value = np.where(np.isnan(value), value.dtype.type(np.nan), value) + value.dtype.type(0)  # −0.0 is 0.0
        if value.dtype.kind == "M":
            value = value.astype(np.int64)
        yield name, f"{value.dtype.str} {value.shape} {hashlib.sha256(np.ascontiguousarray(value)).hexdigest()}"
    elif isinstance(value, np.generic):
        yield from flat(np.asarray(value), name)
    elif isinstance(value, Enum):
        yield name, str(value.value)
    elif isinstance(value, float):
        yield name, repr(value + 0.0)
    elif value is None or isinstance(value, str | int | bool):
        yield name, repr(value)
    else:
        raise TypeError(f"{name}: a {type(value).__name__} is not recorded; teach `flat` or list it in EXCLUDED")


def digest(value: Any) -> str:
    """The sha256 of all leaves of a value."""
    return hashlib.sha256("\n".join(f"{name}\t{text}" for name, text in flat(value)).encode()).hexdigest()


def parts_of(state: Mapping[str, Any]) -> dict[str, str]:
    """A short digest for each name."""
    return {name: digest(value)[:PART] for name, value in sorted(state.items())}


def digest_of_case(state: Mapping[str, Any]) -> str:
    """One digest for all but the words."""
    return digest({name: value for name, value in state.items() if name != WORDS})[:16]


def masked(text: str) -> str:
    """The text with every number replaced by #."""
    return re.sub(r"[-−+]?\b\d+(,\d{3})*(\.\d+)?(e[-+]?\d+)?", "#", text)


def summary(model: Any, certificate: Certificate | None, predicted: Any) -> dict[str, Any]:
    """What another machine must find too, within tolerances."""
    told: dict[str, Any] = {"status": str(getattr(model, "status_", ""))}
    if certificate is not None:
        told["claims"] = "".join({True: "+", False: "-", None: "."}[claim.holds] for claim in certificate.claims)
        found = {each.name: each.values for each in certificate.claims if _VALUES.fullmatch(each.name)}
        told["values"] = {name: [_short(value) for value in values[:3]] for name, values in found.items()}
    sizes = {name: size(getattr(model, name)) for name, size in _SIZES.items() if hasattr(model, name)}
    if sizes:
        told["sizes"] = sizes
    if predicted is not None:
        predicted = np.asarray(predicted)[:_SHOWN]
        if hasattr(model, "classes_") or predicted.dtype.kind not in "f":
            names = sorted({str(each) for each in getattr(model, "classes_", (-1, 1))})
            told["classes"] = "".join(chr(ord("a") + names.index(str(each))) for each in predicted)
        else:
            told["predictions"] = [_short(value) for value in predicted[:8].ravel().tolist()]
    return told


def _short(value: float) -> float | str:
    return float(f"{value:.5g}") if math.isfinite(value) else str(value)


def summaries_differ(recorded: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """What differs by more than its tolerance; the summaries are JSON values."""
    if recorded.keys() != found.keys():
        return [f"there were {sorted(recorded)}, there are {sorted(found)}"]
    wrong = []
    for name, was in recorded.items():
        now = found[name]
        if name == "classes":
            same = len(was) == len(now) and sum(a != b for a, b in zip(was, now, strict=True)) <= _MOST_WRONG
        elif name == "values":
            same = was.keys() == now.keys() and all(_close(was[key], now[key], _RTOL) for key in was)
        elif name == "sizes":
            same = was.keys() == now.keys() and all(
                abs(was[key] - now[key]) <= _SIZE_ATOL + _SIZE_RTOL * was[key] for key in was
            )
        elif name == "predictions":
            same = _close(was, now, _PREDICTED_RTOL)
        elif name == "message":
            same = masked(was) == masked(now)
        else:
            same = was == now
        if not same:
            wrong.append(f"{name} was {was}, is {now}")
    return wrong


def _close(was: list[Any], now: list[Any], rtol: float) -> bool:
    a, b = np.array(was, float), np.array(now, float)
    scale = np.abs(a[np.isfinite(a)]).max(initial=0.0)
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=rtol, atol=rtol * scale + 1e-12, equal_nan=True))
