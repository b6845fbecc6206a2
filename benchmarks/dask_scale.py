"""A simulator of the rounds of the Dask engine, checked against real fits, and what it says of large clusters.

    python benchmarks/dask_scale.py

A fit is a list of rounds: this process submits tasks, waits for some of them, and goes on with their results. A real
fit on one worker is recorded: the tasks of each round, what each needs, the seconds that it computes, the bytes of its
arguments and of its result, and the seconds that this process takes between two rounds. `simulated` plays it again on
any number of workers:

- this process and the scheduler submit one task after the other, ``per_task`` seconds each, and send the arguments;
- a task starts when its worker is free and what it needs has arrived: ``latency``, and bytes over ``bandwidth``. It
  goes to the worker where it can start first;
- the results that are waited for come back over the one link of this process.

Then the same simulator plays a step of each learner on tables and clusters that cannot be had here, of tasks whose
seconds per row were measured. It takes about two minutes.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, get_task_stream, wait

from margrove import SVC, DecisionTreeClassifier, LinearSVC
from margrove.data import dask_partitions
from margrove.data.dask_partitions import Key, Tasks
from margrove.data.regrouped import FEWEST_GROUPS, GROUP_CELLS
from measure import keep, machine, shown

WORKERS = (1, 2, 3, 4)
RUNS = 3
PIECES = 12
NETWORK = {"latency": 0.5e-3, "bandwidth": 1.25e9}  # assumed of a cluster: 10 Gbit/s for each machine
PARTITION = 64e6  # bytes
ADD = 2e-9  # seconds that this process takes to add a number to a sum
FITS = {
    "linear machine": (LinearSVC(engine="dask"), 600_000, 30),
    "tree": (DecisionTreeClassifier(max_depth=6, engine="dask"), 400_000, 30),
    "kernel machine": (SVC(C=10, gamma=0.02, engine="dask"), 8_000, 30),
}
SCALES = [(rows, d, workers) for rows in (10**7, 10**8) for d in (30, 100) for workers in (1, 10, 100)]


@dataclass(frozen=True)
class Network:
    """What tasks and bytes cost."""

    per_task: float  # seconds of this process and the scheduler
    latency: float  # seconds of a message
    bandwidth: float  # bytes per second of the link of each machine


@dataclass
class Task:
    """A task of a round; keys are those of Dask, or any others."""

    key: str
    function: str
    needs: tuple[str, ...]
    seconds: float = 0.0
    bytes_in: float = 0.0  # of the arguments, from this process
    bytes_out: float = 0.0  # of the result


@dataclass
class Round:
    """Tasks in the order in which they are submitted, those that are waited for, and the seconds that follow."""

    tasks: list[Task]
    waited: tuple[str, ...]
    after: float = 0.0


@dataclass
class _Done:
    at: float
    bytes_out: float
    on: set[int] = field(default_factory=set)  # the workers that have it


def simulated(rounds: Sequence[Round], workers: int, network: Network) -> float:
    """Return the seconds that the rounds take on so many workers."""
    clock, free, done = 0.0, [0.0] * workers, dict[str, _Done]()
    for each in rounds:
        for task in each.tasks:
            clock += network.per_task + task.bytes_in / network.bandwidth
            needs = [done[key] for key in task.needs if key in done]

            def ready(worker: int, needs: list[_Done] = needs, sent: float = clock + network.latency) -> float:
                fetched = [need.bytes_out for need in needs if worker not in need.on]
                wire = network.latency * bool(fetched) + sum(fetched) / network.bandwidth
                return max([free[worker], sent, *(need.at for need in needs)]) + wire

            worker = min(range(workers), key=ready)
            end = ready(worker) + task.seconds
            for need in needs:
                need.on.add(worker)
            free[worker], done[task.key] = end, _Done(end, task.bytes_out, {worker})
        for key in sorted((key for key in each.waited if key in done), key=lambda key: done[key].at):
            clock = max(clock, done[key].at + network.latency) + done[key].bytes_out / network.bandwidth
        clock += each.after
    return clock


@contextmanager
def recorded(client: Client) -> Iterator[list[Round]]:
    """Record the rounds of the fits in this block."""
    rounds, pending = list[Round](), list[Task]()
    seen = [time.perf_counter()]  # when the last results came; the seconds of submitting count for themselves
    submit, results = Tasks.submit, Tasks.results

    def keys_in(given: Any) -> Iterator[Key]:
        if isinstance(given, Key):
            yield given
        elif isinstance(given, list | tuple):
            for each in given:
                yield from keys_in(each)

    def submitting(self: Tasks, name: str, function: Any, *given: Any) -> Key:
        started = time.perf_counter()
        key = submit(self, name, function, *given)
        needs = tuple(need.future().key for need in keys_in(list(given)))
        size = sum(len(pickle.dumps(each)) for each in given if not any(keys_in(each)))
        pending.append(Task(key.future().key, function.__name__, needs, bytes_in=size))
        seen[0] += time.perf_counter() - started
        return key

    def resulting(self: Tasks, keys: Sequence[Key]) -> Iterator[Any]:
        if rounds:
            rounds[-1].after = max(0.0, time.perf_counter() - seen[0])
        rounds.append(Round(pending[:], tuple(key.future().key for key in keys)))
        pending.clear()
        for found in results(self, keys):
            seen[0] = time.perf_counter()
            yield found

    Tasks.submit, Tasks.results = submitting, resulting  # type: ignore[method-assign, assignment]
    try:
        with get_task_stream(client) as stream:
            yield rounds
            time.sleep(0.5)  # the last records arrive late
    finally:
        Tasks.submit, Tasks.results = submit, results  # type: ignore[method-assign]
    measured = {each["key"]: each for each in stream.data if each["status"] == "OK"}
    for task in (task for each in rounds for task in each.tasks):
        if task.key in measured:
            spans = measured[task.key]["startstops"]
            task.seconds = sum(each["stop"] - each["start"] for each in spans if each["action"] == "compute")
            task.bytes_out = float(measured[task.key]["nbytes"])


@contextmanager
def cluster(workers: int) -> Iterator[Client]:
    """Give a client of workers of one thread on the loopback interface."""
    how = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "memory_limit": 0}
    with LocalCluster(n_workers=workers, **how) as local, Client(local) as client:
        yield client


def network_here(client: Client) -> Network:
    """Measure the seconds of a task and of a message, and the bandwidth."""
    tasks = Tasks(client)
    n, size = 300, 50_000_000

    def least(work: Any) -> float:
        times = []
        for _ in range(5):
            started = time.perf_counter()
            work()
            times.append(time.perf_counter() - started)
        return min(times)

    def many() -> None:
        dask_partitions.last_of(tasks.results([tasks.submit("a task", _nothing) for _ in range(n)]))

    one = least(lambda: dask_partitions.last_of(tasks.results([tasks.submit("a task", _nothing)])))
    per_task = least(many) / n
    block = client.submit(np.ones, size // 8)
    wait(block)
    return Network(per_task, max(1e-5, (one - per_task) / 2), size / least(block.result))


def _nothing() -> None:
    return None


def made(rows: int, d: int) -> tuple[Any, Any]:
    """Return Gaussian rows in twelve partitions, and labels by a few columns and noise."""
    X = da.random.default_rng(0).standard_normal((rows, d), chunks=(-(-rows // PIECES), d))
    noise = da.random.default_rng(1).standard_normal(rows, chunks=-(-rows // PIECES))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + noise > 0).astype(np.int8)


def checked() -> tuple[list[dict[str, Any]], dict[str, list[Round]], Network]:
    """Fit on one to four workers, and simulate the same."""
    cores = len(os.sched_getaffinity(0))
    cases, traces, network = list[dict[str, Any]](), dict[str, list[Round]](), None
    for workers in WORKERS:
        with cluster(workers) as client:
            if network is None:
                network = network_here(client)
            for name, (model, rows, d) in FITS.items():
                X, y = made(rows, d)
                X, y = (X.compute(), y.compute()) if name == "kernel machine" else client.persist([X, y])
                wait([X, y])
                model.fit(X, y)  # workers import
                times = []
                for _ in range(RUNS):
                    started = time.perf_counter()
                    model.fit(X, y)
                    times.append(time.perf_counter() - started)
                if workers == 1:
                    with recorded(client) as traces[name]:
                        model.fit(X, y)
                real, told = min(times), simulated(traces[name], min(workers, cores), network)
                data = f"{name} {rows:,} × {d}"
                cases.append(
                    {"data": data, "workers": workers, "cores": cores, "seconds": real, "simulated_seconds": told}
                )
                print(shown(cases[-1]), flush=True)
    assert network is not None
    return cases, traces, network


def per_row(rounds: Sequence[Round], functions: Sequence[str], share: float) -> float:
    """Return the median of the seconds of some kinds of tasks, over ``share``: the rows, or cells, of each."""
    found = [task.seconds for each in rounds for task in each.tasks if task.function in functions]
    if not found:
        raise ValueError(f"no task of the recorded fit is one of {', '.join(functions)}; the engine has renamed them")
    return median(found) / share


def steps(rows: int, d: int, workers: int, cost: dict[str, float]) -> dict[str, list[Round]]:
    """Return a step of each learner as rounds of tasks, with two classes."""
    n_parts = max(workers, round(rows * d * 8 / PARTITION))
    share = rows / n_parts
    passes = [
        Task(f"sums {p}", "_pass_over", (), cost["pass"] * share * (d / 30) ** 2, 4 * d * 8, 2 * (d + 1) ** 2 * 8)
        for p in range(n_parts)
    ]
    n_groups = min(d, max(FEWEST_GROUPS, rows * d // GROUP_CELLS))
    place = Task("place", "_moved", (), 0.0, 0, 2 * rows)  # of the level above
    searches = [
        Task(f"tests {g}", "_best_tests", ("place",), cost["tests"] * rows * d / n_groups, 200, 2000)
        for g in range(n_groups)
    ]
    branches = Task("branches", "_branches", ("place",), cost["branches"] * rows, 2000, 2 * rows)
    moved = Task("moved", "_moved", ("place", "branches"), cost["moved"] * rows, 100, 2 * rows)
    changed = 1024 * (d + 1) * 8
    given = Task("rows", "_given", (), 0.0, changed, changed)
    sums = [
        Task(f"kernel {p}", "_sums", ("rows",), cost["kernel"] * share * d / 30, 100, 8 * share) for p in range(n_parts)
    ]
    return {
        "pass of a linear machine": [
            Round(passes, tuple(task.key for task in passes), n_parts * 2 * (d + 1) ** 2 * ADD)
        ],
        "level of a tree": [
            Round([place], ("",)),
            Round([*searches, branches, moved], tuple(task.key for task in searches)),
        ],
        "round of a kernel machine": [
            Round([given, *sums], tuple(task.key for task in sums), cost["set"] + 4 * rows * ADD)
        ],
    }


def scaled(traces: dict[str, list[Round]], per_task: float) -> list[dict[str, Any]]:
    """Simulate a step of each learner on large tables and clusters."""
    network = Network(per_task, **NETWORK)
    linear, tree, kernel = (FITS[name][1:] for name in FITS)
    groups = sum(task.function == "_cells_of" for each in traces["tree"] for task in each.tasks)
    of_kernel = traces["kernel machine"]
    cost = {
        "pass": per_row(traces["linear machine"], ("_pass_over",), linear[0] / PIECES),
        "tests": per_row(traces["tree"], ("_best_tests",), tree[0] * tree[1] / groups),
        "branches": per_row(traces["tree"], ("_branches",), tree[0]),
        "moved": per_row(traces["tree"], ("_moved",), tree[0]),
        "kernel": per_row(of_kernel, ("_sums", "_values"), kernel[0] / 8),
        "set": median(each.after for each in of_kernel),
    }
    cases = []
    for rows, d, workers in SCALES:
        for step, rounds in steps(rows, d, workers, cost).items():
            tasks = [task for each in rounds for task in each.tasks]
            waited = {key for each in rounds for key in each.waited}
            cases.append(
                {
                    "data": step,
                    "rows": rows,
                    "columns": d,
                    "workers": workers,
                    "bytes_to_workers": sum(task.bytes_in for task in tasks),
                    "bytes_from_workers": sum(task.bytes_out for task in tasks if task.key in waited),
                    "seconds": simulated(rounds, workers, network),
                }
            )
    return cases


def main() -> None:
    checks, traces, network = checked()
    cases = scaled(traces, network.per_task)
    keep(
        {
            "benchmark": "dask_scale",
            "bar": None,
            "machine": machine("dask", "distributed"),
            "here": vars(network),
            "assumed": NETWORK,
            "checks": checks,
            "cases": cases,
        }
    )


if __name__ == "__main__":
    main()
