"""What benchmarks/results/dask_scale.json says, as tables and sentences. Called by docs/generate.py."""

from __future__ import annotations

from typing import Any

from result_tables import in_print, table

_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def section(result: dict[str, Any]) -> str:
    """The simulator against real fits, and the steps of each learner on large clusters."""
    checks, cases, here, assumed = (result[name] for name in ("checks", "cases", "here", "assumed"))
    rows = [
        [
            check["data"],
            str(check["workers"]),
            in_print(check["seconds"]),
            in_print(check["simulated_seconds"]),
            f"{check['simulated_seconds'] / check['seconds']:.2f}",
        ]
        for check in checks
    ]
    first = (
        f"Whole fits on {checks[0]['cores']} cores, and the simulation of the same rounds. Measured here: "
        f"{in_print(here['per_task'])} for each task, {in_print(here['latency'])} for each message, "
        f"{_bytes(here['bandwidth'])} per second. More workers than cores are simulated as so many as there are cores."
    )
    second = (
        f"One step, simulated with {in_print(assumed['latency'])} for each message and "
        f"{_bytes(assumed['bandwidth'])} per second for each machine; the seconds of a task are those measured here, "
        "by rows and columns. The guide to Dask has the assumptions."
    )
    steps = [
        [
            case["data"],
            f"{case['rows']:,}",
            str(case["columns"]),
            str(case["workers"]),
            _bytes(case["bytes_to_workers"]),
            _bytes(case["bytes_from_workers"]),
            in_print(case["seconds"]),
        ]
        for case in sorted(cases, key=lambda case: str(case["data"]))
    ]
    return "\n\n".join(
        [
            first,
            table(["", "workers", "measured", "simulated", "ratio"], rows),
            second,
            table(["", "rows", "columns", "workers", "to the workers", "from the workers", "time"], steps),
        ]
    )


def _bytes(count: float) -> str:
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} B"


def summary(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Nothing: the table of all benchmarks compares with others."""
    return []
