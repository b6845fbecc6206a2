"""Limits on the threads of NumPy and BLAS, for code with threads of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_MOST_PER_CORE = 4  # threads: more only take turns

_holding = Lock()
_holders = 0
_held: Any = None


def _note_fork() -> None:
    """Reset the lock in a child process, which may have inherited it from a thread that it lacks."""
    global _holding, _holders, _held
    _holding, _holders, _held = Lock(), 0, None


os.register_at_fork(after_in_child=_note_fork)


@cache
def _blas() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def blas_held_back() -> Iterator[None]:
    """Limit BLAS to one thread while threads of ours call it. The first block entered sets the limit and the last one
    left restores it: overlapping limits of several Python threads would otherwise restore each other's."""
    global _holders, _held
    with _holding:
        if _holders == 0:
            _held = _blas().limit(limits=1, user_api="blas")
        _holders += 1
    try:
        yield
    finally:
        with _holding:
            _holders -= 1
            if _holders == 0:
                _held.restore_original_limits()


def threads_allowed() -> int:
    """Return the number of cores of this process, or OMP_NUM_THREADS, which a pool of workers sets for each."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(int(wanted), available) if wanted.isdecimal() and int(wanted) > 0 else available


def threads_for(n_jobs: int | None) -> int:
    """Return the number of threads: all that `threads_allowed` counts, or ``n_jobs`` as scikit-learn has it."""
    available = threads_allowed()
    if n_jobs is None:
        return available
    wanted = n_jobs if n_jobs > 0 else max(1, available + 1 + n_jobs)
    return min(wanted, _MOST_PER_CORE * (os.cpu_count() or 1))
