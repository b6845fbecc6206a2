"""Rows in batches; a thread prepares the next one while the last is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]


def parts_of(rows: Rows, size: int, *, least: int = 1) -> list[Rows]:
    """Return the rows in batches of ``size``; a last one of fewer than ``least`` joins the one before."""
    parts = [rows[start : start + size] for start in range(0, len(rows), size)]
    if len(parts) > 1 and len(parts[-1]) < least:
        parts[-2:] = [np.concatenate(parts[-2:])]
    return parts


@contextmanager
def ahead(prepare: Callable[[Rows], Any], parts: Sequence[Rows]) -> Iterator[Iterator[tuple[Rows, Any]]]:
    """Iterate over the parts, each with the result of ``prepare``; at most two are in memory."""
    with ThreadPoolExecutor(max_workers=1) as pool:

        def pairs() -> Iterator[tuple[Rows, Any]]:
            waiting = pool.submit(prepare, parts[0])
            for number, part in enumerate(parts):
                prepared = waiting.result()
                if number + 1 < len(parts):
                    waiting = pool.submit(prepare, parts[number + 1])
                yield part, prepared

        yield pairs()
