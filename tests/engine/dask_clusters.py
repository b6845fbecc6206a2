"""Clusters for the tests of the Dask engine, tables for them, and the killing of workers."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from typing import Any

import numpy as np
from distributed import Client, LocalCluster, Status

# Warnings of Dask that are no fault of ours: sockets left to the garbage collector, a slow disk, large tables.
OF_DASK = (
    "ignore:unclosed:ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore:Creating scratch directories:UserWarning",
    "ignore:Sending large graph:UserWarning",
)
SETTINGS: dict[str, Any] = {"dashboard_address": "127.0.0.1:0", "silence_logs": 60}


@contextmanager
def threads(n_workers: int) -> Iterator[Client]:
    """Give a client of a cluster whose workers are threads of this process."""
    with (
        LocalCluster(n_workers=n_workers, processes=False, threads_per_worker=1, **SETTINGS) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def processes(n_workers: int, **settings: Any) -> Iterator[tuple[LocalCluster, Client]]:
    """Give a cluster of processes, of which those that die are replaced."""
    asked = SETTINGS | {"processes": True, "threads_per_worker": 1, "host": "127.0.0.1"} | settings
    with LocalCluster(n_workers=n_workers, **asked) as cluster, Client(cluster) as client:
        yield cluster, client


@contextmanager
def dying(cluster: LocalCluster, rng: np.random.Generator, seconds: float) -> Iterator[list[int]]:
    """Kill some workers at random times within so many seconds; give the list of those killed."""
    ended, killed = threading.Event(), []

    def kill() -> None:
        for wait in np.diff(np.sort(rng.uniform(0, seconds, size=int(rng.integers(1, 5)))), prepend=0.0):
            if ended.wait(float(wait)):
                return
            # Dask gives up a worker that dies while it starts. One that is being replaced has no process.
            alive = [each for each in cluster.workers.values() if each.status == Status.running and each.worker_address]
            pids = [pid for each in alive if (pid := each.pid) is not None]
            if len(pids) < 2:
                continue
            pid = pids[int(rng.integers(len(pids)))]
            with suppress(ProcessLookupError):  # it has ended by itself
                os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


def bits_of_tree(tree: Any) -> dict[str, bytes]:
    """Return the arrays of a tree as bytes, by name."""
    arrays = {each.name: getattr(tree, each.name) for each in fields(tree) if each.name != "columns"}
    return {name: b"" if array is None else array.tobytes() for name, array in arrays.items()}
