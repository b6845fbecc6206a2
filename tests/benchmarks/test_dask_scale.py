"""The simulator of Dask's rounds: cases solved by hand."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def scale(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    spec = importlib.util.spec_from_file_location("dask_scale", BENCHMARKS / "dask_scale.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "dask_scale", module)
    spec.loader.exec_module(module)
    return module


def test_equal_tasks_share_the_workers(scale):
    free = scale.Network(per_task=0.0, latency=0.0, bandwidth=1e30)
    tasks = [scale.Task(str(k), "f", (), seconds=1.0) for k in range(6)]
    rounds = [scale.Round(tasks, tuple(task.key for task in tasks), after=0.5)]
    assert [scale.simulated(rounds * 2, workers, free) for workers in (1, 2, 3, 4, 6, 100)] == [13, 7, 5, 5, 3, 3]


def test_submission_latency_and_bytes_cost_what_they_should(scale):
    network = scale.Network(per_task=0.1, latency=1.0, bandwidth=100.0)
    tasks = [scale.Task(str(k), "f", (), seconds=10.0, bytes_in=200.0, bytes_out=300.0) for k in range(2)]
    # Submitted at 2.1 and 4.2, ended at 13.1 and 15.2, received from 14.1 to 17.1 and to 20.1.
    assert scale.simulated([scale.Round(tasks, ("0", "1"))], 2, network) == pytest.approx(20.1)


def test_what_a_task_needs_is_fetched_unless_its_worker_has_it(scale):
    network = scale.Network(per_task=0.0, latency=1.0, bandwidth=100.0)
    first = scale.Task("first", "f", (), seconds=2.0, bytes_out=400.0)
    others = [scale.Task(name, "f", ("first",), seconds=20.0) for name in ("here", "there")]
    # The first ends at 3; one goes on there until 23, the other fetches for 1 + 4 and ends at 28.
    assert scale.simulated([scale.Round([first, *others], ("here",))], 2, network) == pytest.approx(24.0)
    assert scale.simulated([scale.Round([first, *others], ("here", "there"))], 2, network) == pytest.approx(29.0)
    assert scale.simulated([scale.Round([first, *others], ("here", "there"))], 1, network) == pytest.approx(44.0)


def test_a_step_of_each_learner_shares_the_rows(scale):
    cost = dict.fromkeys(("pass", "tests", "branches", "moved", "kernel", "set"), 1e-8) | {"kernel": 1e-6}
    network = scale.Network(per_task=1e-4, latency=1e-4, bandwidth=1e9)
    for name in ("pass of a linear machine", "level of a tree", "round of a kernel machine"):
        one, ten = (
            scale.simulated(scale.steps(10**7, 30, workers, cost)[name], workers, network) for workers in (1, 10)
        )
        assert 2 < one / ten <= 10.5, name
