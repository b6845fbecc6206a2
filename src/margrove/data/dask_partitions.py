"""Partitions on the workers of a Dask cluster: `margrove.data.partitions` by Dask's keyed data.

Scheduling, transport and recomputation are Dask's. A partition is a key on the cluster, made by a function of what it
is read from, so Dask makes it again when the worker that held it dies. What Dask cannot make again is sent again:
rows that came from the memory of this process, and tasks that Dask gave up because several workers died under them.
Results come back in the order of the partitions, whichever worker they come from, and however often they were computed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from functools import cache, partial
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse as sp

from margrove.data.frames import as_array, is_frame
from margrove.data.lazy import is_files, kind_of_collection
from margrove.data.partitions import Part
from margrove.data.table import Table
from margrove.errors import EngineError, InputError, MissingExtraError, ParameterError, shown
from margrove.run.threads import blas_held_back

if TYPE_CHECKING:
    from distributed import Client, Future

# Ctrl-C in a terminal reaches all processes that were started there. It is for this one to handle.
_DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
_WAIT = 0.05  # seconds between two looks at Ctrl-C and the time limit
_MOST_LOSSES = 5  # of one partition: each time Dask has given it up, by default after the death of four workers
_CONNECT = 10.0  # seconds to wait for a scheduler, at most
_PAUSE = 0.2  # seconds before what Dask has given up is submitted again
_PATIENCE = 60  # seconds without a worker, before the fit ends
_LOOK = 2.0  # seconds between two looks at whether there are workers
_CELLS = 1 << 21  # numbers of a partition of rows from memory: 16 MB of float64
_LEAST_PARTITIONS = 8  # of rows from memory, so that a few workers have something to do

Start = Callable[[int], "Future"]  # submits the making of a partition


def check_extra() -> None:
    """Raise `MissingExtraError` unless Dask is installed."""
    if find_spec("distributed") is None:
        raise MissingExtraError("engine='dask' needs dask and distributed: pip install 'margrove[dask]'")


@contextmanager
def connected(address: str | None) -> Iterator[Client]:
    """Give a client of a cluster: the current one, one of the scheduler at ``address``, or for ``"local"`` one of a
    cluster of this machine's cores, which is closed at the end of the block."""
    check_extra()
    import distributed

    if address is None:
        try:
            client = distributed.get_client()
        except ValueError as error:
            raise EngineError(
                "engine='dask' needs a Dask client, and there is none. Create one first: client = "
                "dask.distributed.Client(address), or name the cluster: engine=margrove.engine.Dask(address='local')."
            ) from error
        check_workers(client)
        with client.as_current():
            yield client
    elif address == "local":
        # Only this machine can connect, and the workers end with this process.
        how = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "threads_per_worker": 1, "processes": True}
        # What fails on a worker is raised here: its log would repeat that in the middle of a display.
        local = distributed.LocalCluster(**how, preload=_DEAF, silence_logs=logging.CRITICAL)
        with local, distributed.Client(local, set_as_default=False) as client:
            workers = len(local.workers)
            local.adapt(minimum=workers, maximum=workers)  # a worker that dies while it starts is replaced, too
            check_workers(client)
            with client.as_current():
                yield client
    elif ":" not in address:
        raise ParameterError(
            f"the address of the Dask scheduler is {address!r}; it must be like 'tcp://10.0.0.5:8786', or 'local'."
        )
    else:
        try:
            client = distributed.Client(address, set_as_default=False, timeout=_connect_seconds())
        except (OSError, ValueError) as error:
            raise EngineError(
                f"there is no Dask scheduler at {address!r} ({error}). Start one, or correct the address."
            ) from error
        with client:
            check_workers(client)
            with client.as_current():
                yield client


def _connect_seconds() -> float:
    """Return how long to wait for a scheduler: what Dask is configured for, but its default of half a minute is long
    for an address with a mistake in it."""
    import dask

    configured = dask.config.get("distributed.comm.timeouts.connect")
    return min(_CONNECT, float(dask.utils.parse_timedelta(configured)))


def check_workers(client: Client) -> None:
    """Raise `EngineError` unless there are workers, and all have this version of Margrove."""
    import margrove

    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError as error:
        raise _no_workers() from error
    # By a function of the standard library, which a worker can load without Margrove.
    found = client.run(eval, "__import__('margrove').__version__", on_error="return")
    for worker, version in sorted(found.items()):
        if isinstance(version, ImportError):
            raise _cannot_import(f"the worker {worker}", version)
        if isinstance(version, str) and version != margrove.__version__:  # otherwise the worker is gone
            raise EngineError(
                f"the worker {worker} has margrove {version}, and this process has {margrove.__version__}. "
                "Install the same version everywhere."
            )


def _cannot_import(subject: str, error: BaseException) -> EngineError:
    return EngineError(f"{subject} cannot import margrove ({error}). Install it there: pip install 'margrove[dask]'.")


class Key:
    """A result on the cluster, and how it is made: ``make`` submits it, at once and again whenever Dask has lost it.
    ``below`` are the keys that it is made of."""

    def __init__(self, name: str, make: Callable[[], Future], below: Sequence[Key] = ()) -> None:
        self.name, self._make, self._below = name, make, below
        self._future: Future | None = make()

    def future(self) -> Future:
        """Return the future, submitted again if Dask has lost it."""
        self.release_lost()
        if self._future is None:
            self._future = self._make()
        return self._future

    @property
    def is_there(self) -> bool:
        """True if the result has been computed and is not lost."""
        return self._future is not None and self._future.status == "finished"

    def release(self) -> None:
        """Let Dask forget the result. What needs it later makes it again."""
        if self._future is not None:
            self._future.release()  # also where the traceback of an error still holds it
            self._future = None

    def release_lost(self) -> None:
        """Release it, if Dask has lost it, and what it is made of: while anybody wants a key, Dask keeps its errors."""
        if self._future is not None and _is_lost(self._future):
            self.release()
            for key in self._below:
                key.release_lost()


class Tasks:
    """Tasks on a cluster, which are computed again as long as workers die."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def submit(self, name: str, function: Callable[..., Any], *given: Any) -> Key:
        """Return the key of ``function(*given)``, where keys, also those in lists, stand for their results."""

        def make() -> Future:
            return self.client.submit(_applied, function, *map(_futures_of, given), pure=False)

        return Key(name, make, _keys_in(given))

    def results(self, keys: Sequence[Key]) -> Iterator[list[Any] | None]:
        """Yield None, about twenty times a second, until all results are there, then these, in the order of the keys.
        Raise the error of the first key that has one."""
        from distributed import wait

        losses, seen = [0] * len(keys), time.monotonic()
        while True:
            futures = [key.future() for key in keys]
            try:
                wait(futures, timeout=_WAIT)
                found = self.client.gather(futures)
            except TimeoutError:
                seen = self._check_workers(seen)
                yield None
            except Exception:
                check_connection(self.client)
                lost = [place for place, future in enumerate(futures) if _is_lost(future)]
                for place in lost:
                    losses[place] += 1
                    if losses[place] > _MOST_LOSSES:
                        raise _given_up(keys[place].name, futures[place]) from None
                if not lost:
                    _raise_first(keys, futures)
                    raise
                self._retry([futures[place] for place in lost])
                futures.clear()
                for place in lost:
                    keys[place].release_lost()
                time.sleep(_PAUSE)  # until the scheduler has heard of it
            else:
                yield found
                return

    def _retry(self, lost: Sequence[Future]) -> None:
        """Have Dask forget that it has given these up, and what they are made of: chunks of a collection have a name
        that other fits ask for, too."""
        with suppress(KeyError):  # once that is done, Dask looks for futures of all of them, and may find none
            self.client.retry([future for future in lost if future.status == "error"])

    def _check_workers(self, seen: float) -> float:
        """Raise `EngineError` if there have been no workers for too long; ``seen`` is when there were some."""
        now = time.monotonic()
        if now - seen < _LOOK or self.client.nthreads():
            return seen if now - seen < _LOOK else now
        if now - seen > _PATIENCE:
            raise _no_workers()
        return seen


def _futures_of(given: Any) -> Any:
    if isinstance(given, Key):
        return given.future()
    return [_futures_of(each) for each in given] if isinstance(given, list) else given


def _keys_in(given: Any) -> list[Key]:
    if isinstance(given, Key):
        return [given]
    return [key for each in given for key in _keys_in(each)] if isinstance(given, list | tuple) else []


def check_connection(client: Client) -> None:
    """Raise `EngineError` if the scheduler is gone."""
    if client.status != "running":
        address = client.scheduler.address if client.scheduler else "its address is unknown"
        raise EngineError(f"the connection to the Dask scheduler ({address}) is lost. Start the cluster and fit again.")


def _no_workers() -> EngineError:
    return EngineError(f"the Dask cluster has had no worker for {_PATIENCE} seconds. Start some, and fit again.")


def _given_up(name: str, future: Future) -> EngineError:
    why = future.exception() if future.status == "error" else "it was lost with the worker that held it"
    return EngineError(
        f"{name} cannot be computed: Dask has given it up {_MOST_LOSSES + 1} times ({why}). If workers ran out of "
        "memory, use smaller partitions, or give the workers more."
    )


def _raise_first(keys: Sequence[Key], futures: Sequence[Future]) -> None:
    for key, future in zip(keys, futures, strict=True):
        if future.status != "error":
            continue
        error = future.exception()
        if isinstance(error, ModuleNotFoundError):
            raise _cannot_import("a worker", error) from error
        if isinstance(error, OSError):
            problem = f"{key.name} cannot be read ({error})"
            raise InputError(problem, cure="Every worker must be able to read every partition.") from error
        raise error


def _is_lost(future: Future) -> bool:
    """Return whether Dask has given a key up, other than for an error of the function."""
    from distributed import KilledWorker

    if future.status in ("cancelled", "lost"):
        return True
    return future.status == "error" and isinstance(future.exception(), KilledWorker)


def _applied(function: Callable[..., Any], *given: Any) -> Any:
    # One thread of BLAS: sums then have the same bits on every worker.
    with blas_held_back():
        found = function(*given)
    kind: type = type(found)
    if is_dataclass(kind):
        _tell_size(kind)
    return found


@cache
def _tell_size(kind: type) -> None:
    """Tell Dask how large results of a kind are, by which it decides what to move to disk."""
    from dask.sizeof import sizeof

    def size_of(found: Any) -> int:
        if is_dataclass(found):
            return sum(size_of(getattr(found, each.name)) for each in fields(found))
        return sum(map(size_of, found)) if isinstance(found, tuple | list) else int(sizeof(found))

    sizeof.register(kind)(size_of)


class DaskPartitions:
    """Partitions as keys on a cluster."""

    def __init__(self, tasks: Tasks, keys: Sequence[Key], bounds: Sequence[tuple[int, int]] = ()) -> None:
        self.tasks, self.keys = tasks, list(keys)
        self.bounds = tuple(bounds)  # the first row of each, and one past the last, where they come from memory

    @property
    def names(self) -> tuple[str, ...]:
        """What messages call each partition."""
        return tuple(key.name for key in self.keys)

    def run(self, function: Callable[..., Any], *shared: Any) -> Iterator[list[Any] | None]:
        """Yield None until all results are there, then these, in the order of the partitions."""
        return self.tasks.results([self.tasks.submit(key.name, function, key, *shared) for key in self.keys])

    def map(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Return ``function(partition, *shared)`` of every partition, in their order."""
        return last_of(self.run(function, *shared))

    def derive(self, function: Callable[..., Any], *shared: Any) -> Self:
        """Return new partitions, which stay on the workers. Those they are made of are forgotten."""
        made = type(self)(self.tasks, [self.tasks.submit(key.name, function, key, *shared) for key in self.keys])
        for key in self.keys:
            key.release()
        return made


def last_of(results: Iterator[list[Any] | None]) -> list[Any]:
    """Return the results when all are there."""
    found = None
    for found in results:  # noqa: B007
        pass
    assert found is not None
    return found


# Where partitions come from


def partitions_of(client: Client, X: Any, y: Any, sample_weight: Any, *, needs_target: bool = True) -> DaskPartitions:
    """Return the partitions of a table.

    X is a Dask array or data frame with y and sample_weight partitioned alike; a list of files or a pattern; or rows in
    memory. Of a frame and of files y and sample_weight may be the names of columns.
    """
    bounds: list[tuple[int, int]] = []
    if is_files(X):
        names, start = _from_files(client, X, y, sample_weight, needs_target=needs_target)
    elif kind_of_collection(X) is not None:
        names, start = _from_collection(client, X, y, sample_weight)
    else:
        names, start, bounds = _from_memory(client, X, y, sample_weight)
    return DaskPartitions(Tasks(client), [Key(name, partial(start, p)) for p, name in enumerate(names)], bounds)


def _from_collection(client: Client, X: Any, y: Any, weight: Any) -> tuple[list[str], Start]:
    if not hasattr(X, "to_delayed") or type(X).__name__ not in ("Array", "DataFrame"):
        found = f"X is {kind_of_collection(X)}"
        raise InputError(f"{found}; a dask array or data frame was expected", cure="Use dask.array or dask.dataframe.")
    is_array = type(X).__name__ == "Array"
    if is_array:
        if X.ndim != 2:
            raise InputError(f"X is a dask array of shape {X.shape}; a table has two dimensions")
        X = X.rechunk({1: -1})  # a partition has all columns
    parts = X.to_delayed().ravel().tolist() if is_array else X.to_delayed()
    columns = {"y": y, "sample_weight": weight}
    beside = {name: _beside(name, given, X, len(parts)) for name, given in columns.items()}
    names = [f"partition {p} of X" for p in range(len(parts))]

    def start(p: int) -> Future:
        own = {name: each[p] if isinstance(each, list) else each for name, each in beside.items()}
        given = [each for each in (parts[p], *own.values()) if hasattr(each, "key")]
        ready = iter(client.compute(given))
        taken = [next(ready) if hasattr(each, "key") else each for each in (parts[p], *own.values())]
        return client.submit(_applied, _part_of_collection, *taken, names[p], pure=False)

    return names, start


def _beside(name: str, given: Any, X: Any, n_partitions: int) -> Any:
    """Return y or the weights for each partition of X; or the name of a column of X, or None, as it is."""
    if given is None or isinstance(given, str):
        if isinstance(given, str) and given not in getattr(X, "columns", ()):
            known = "X has no names of columns" if not hasattr(X, "columns") else f"there are: {shown(list(X.columns))}"
            raise InputError(f"{name} is {given!r}, which is not a column of X", cure=f"Pass a collection; {known}.")
        return given
    kind = kind_of_collection(given)
    if kind is None:
        raise InputError(
            f"X is {kind_of_collection(X)} and {name} is of type {type(given).__name__}",
            cure=f"Pass {name} as a Dask collection partitioned as X is, or as the name of a column of a data frame.",
        )
    if getattr(given, "ndim", 1) != 1:
        raise InputError(
            f"{name} has shape {given.shape}", cure="Pass one column: several targets need rows in memory."
        )
    if hasattr(given, "chunks") and hasattr(X, "chunks") and not _has_unknown_sizes(given, X):
        if given.shape[0] != X.shape[0]:
            raise InputError(f"X has {X.shape[0]} rows and {name} has {given.shape[0]}", cure="Each row needs one.")
        given = given.rechunk((X.chunks[0],))
    parts = given.to_delayed()
    parts = parts.ravel().tolist() if hasattr(parts, "ravel") else list(parts)
    if len(parts) != n_partitions:
        raise InputError(
            f"X has {n_partitions} partitions and {name} has {len(parts)}", cure=f"Partition {name} as X is."
        )
    return parts


def _has_unknown_sizes(*arrays: Any) -> bool:
    return any(array.shape[0] != array.shape[0] for array in arrays)


def _part_of_collection(X: Any, y: Any, weight: Any, name: str) -> Part:
    X, y = _taken_out(X, y)
    X, weight = _taken_out(X, weight)
    for what, each in (("y", y), ("sample_weight", weight)):
        if each is not None and len(each) != X.shape[0]:
            raise InputError(
                f"{name} has {X.shape[0]} rows, and that of {what} has {len(each)}", cure="Each row needs one."
            )
    return Part(X, y, weight, name)


def _taken_out(X: Any, column: Any) -> tuple[Any, Any]:
    """Return X without the column of this name, and that column."""
    return (X.drop(columns=column), X[column].to_numpy()) if isinstance(column, str) else (X, column)


def _from_files(client: Client, X: Any, target: Any, weight: Any, *, needs_target: bool) -> tuple[list[str], Start]:
    from margrove.data.file_set import FileSet

    for name, given, is_needed in (("y", target, needs_target), ("sample_weight", weight, False)):
        if not (isinstance(given, str) or (given is None and not is_needed)):
            raise InputError(
                f"X names files and {name} is of type {type(given).__name__}",
                cure=f"Pass the name of a column as {name}.",
            )
    files = FileSet.of(X)
    sent = Key("the names of the files", partial(scattered, client, files))

    def start(p: int) -> Future:
        return client.submit(_applied, FileSet.part, sent.future(), p, target, weight, pure=False)

    return files.names, start


def _from_memory(client: Client, X: Any, y: Any, weight: Any) -> tuple[list[str], Start, list[tuple[int, int]]]:
    """Rows of this process, which it keeps: Dask cannot make them again."""
    if isinstance(X, Table):
        if y is None:
            y = X.labels()
        X = X.block if X.block is not None else X.sparse
        if X is None:
            raise ParameterError("X is a Table with columns of several types. Pass a data frame, or files.")
    if sp.issparse(X):
        X = X.tocsr()
    elif not is_frame(X):
        X = as_array(X)
    n, d = X.shape
    beside = [None if each is None else np.asarray(each) for each in (y, weight)]
    for name, each in zip(("y", "sample_weight"), beside, strict=True):
        if each is not None and each.shape[:1] != (n,):
            raise InputError(f"X has {n} rows and {name} has shape {each.shape}", cure="Each row needs one.")
    width = X.nnz // max(1, n) if sp.issparse(X) else d
    n_partitions = min(max(_LEAST_PARTITIONS, n * max(1, width) // _CELLS), max(1, n))
    bounds = list(pairwise(np.linspace(0, n, n_partitions + 1).astype(np.int64).tolist()))
    names = [f"rows {first} to {stop - 1}" for first, stop in bounds]

    def start(p: int) -> Future:
        rows = slice(*bounds[p])
        own = nw.from_native(X)[rows].to_native() if is_frame(X) else X[rows]
        own_y, own_weight = (None if each is None else each[rows] for each in beside)
        part = Part(own, own_y, own_weight, names[p])
        return scattered(client, part)

    return names, start, bounds


def scattered(client: Client, part: Any) -> Future:
    """Send what only this process has to a worker, to another one if it dies meanwhile."""
    begun = time.monotonic()
    while True:
        try:
            (future,) = client.scatter([part], hash=False, timeout=_PATIENCE)  # a list would be taken apart
            return future
        except OSError as error:  # TimeoutError and Dask's CommClosedError are of this kind
            check_connection(client)
            if time.monotonic() - begun > _PATIENCE:
                raise _no_workers() from error
