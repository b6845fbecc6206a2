"""Dask collections: what they are called, where they are refused, and predictions of their rows, which are collections
themselves. Dask is loaded only for a collection, so it is there."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.errors import InputError

_WORDS = {"Array": "a dask array", "DataFrame": "a dask data frame", "Series": "a dask series"}


def kind_of_collection(X: Any) -> str | None:
    """Return the kind of a Dask collection in words; None for anything else."""
    if not hasattr(type(X), "__dask_graph__"):
        return None
    name = type(X).__name__
    return _WORDS.get(name, f"a dask {name}")


def refuse_collection(learner: str, **given: Any) -> None:
    """Raise `InputError` if an argument is a Dask collection: its rows are not in memory."""
    for name, X in given.items():
        kind = kind_of_collection(X)
        if kind is not None:
            raise InputError(
                f"{name} is {kind}, and this method of {learner} reads rows that are in memory",
                cure=f"Use {name}.compute() if it fits into memory.",
            )


def predicted_lazily(model: Any, method: str, X: Any, dtype: Any, *tail: int) -> Any:
    """Return ``model.method`` of each partition of a collection as a dask array, which computes nothing yet. ``tail``
    is the shape of the result of a row."""
    import dask
    import dask.array as da

    if type(X).__name__ not in ("Array", "DataFrame"):
        raise InputError(f"X is {kind_of_collection(X)}", cure="Use a dask array or data frame.")
    if type(X).__name__ == "Array":
        X = X.rechunk({1: -1})
        parts, sizes = X.to_delayed().ravel().tolist(), X.chunks[0]
    else:
        parts = X.to_delayed()
        sizes = (np.nan,) * len(parts)
    one = dask.delayed(model)
    blocks = [
        da.from_delayed(dask.delayed(_predicted)(one, method, part), shape=(size, *tail), dtype=dtype)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _predicted(model: Any, method: str, X: Any) -> Any:
    return getattr(model, method)(X)
