"""Dask collections and sets of files: what they are called, where they are refused, and predictions of their rows.

These are collections themselves. Dask is loaded only for a collection, so it is there."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from margrove.errors import InputError

_WORDS = {"Array": "a dask array", "DataFrame": "a dask data frame", "Series": "a dask series"}


def kind_of_collection(X: Any) -> str | None:
    """Return the kind of a Dask collection or a `FileSet` in words; None for anything else."""
    if (words := getattr(type(X), "kind_of_collection", None)) is not None:
        return str(words)
    if not hasattr(type(X), "__dask_graph__"):
        return None
    name = type(X).__name__
    return _WORDS.get(name, f"a dask {name}")


def is_files(X: Any) -> bool:
    """Return whether X names files: a path, a pattern, a list of paths, or a `FileSet`."""
    if isinstance(X, str | os.PathLike) or hasattr(X, "pieces"):
        return True
    return isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(each, str | os.PathLike) for each in X)


def refuse_collection(learner: str, **given: Any) -> None:
    """Raise `InputError` if an argument is a Dask collection: its rows are not in memory."""
    for name, X in given.items():
        kind = kind_of_collection(X)
        if kind is not None:
            raise InputError(
                f"{name} is {kind}, and this method of {learner} reads rows that are in memory",
                cure=f"Use {name}.compute() if it fits into memory.",
            )


def predicted_lazily(model: Any, method: str, X: Any, dtype: Any, *tail: int, meta: Any = None) -> Any:
    """Return ``model.method`` of each partition of a collection as a dask array, which computes nothing yet. ``tail``
    is the shape of the result of a row; ``meta`` is an empty result where that is not a NumPy array."""
    import dask
    import dask.array as da

    if hasattr(X, "pieces"):  # a set of files
        files = dask.delayed(X)
        parts = [files.part(place, None).X for place in range(len(X.pieces))]
        sizes = (np.nan,) * len(parts)
    elif type(X).__name__ not in ("Array", "DataFrame"):
        raise InputError(f"X is {kind_of_collection(X)}", cure="Use a dask array or data frame.")
    elif type(X).__name__ == "Array":
        X = X.rechunk({1: -1})
        parts, sizes = X.to_delayed().ravel().tolist(), X.chunks[0]
    else:
        parts = X.to_delayed()
        sizes = (np.nan,) * len(parts)
    one = dask.delayed(model)
    blocks = [
        da.from_delayed(dask.delayed(_predicted)(one, method, part), shape=(size, *tail), dtype=dtype, meta=meta)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _predicted(model: Any, method: str, X: Any) -> Any:
    return getattr(model, method)(X)
