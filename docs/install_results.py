"""What benchmarks/results/install.json says, as tables and sentences. Called by docs/generate.py."""

from __future__ import annotations

from typing import Any

from result_tables import table, verdict


def section(result: dict[str, Any]) -> str:
    """Sizes, the weight of an import, the seconds to a first model."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for case in result["cases"]:
        parts.setdefault(case["part"], []).append(case)
    weight = parts.get("weight", [])
    waits = [case for name in ("wheel", "run") for case in parts.get(name, [])]
    texts = [sizes(result)]
    if weight:
        texts.append("A fresh process after `import numpy`; the least of nine.")
        rows = [[c["name"], f"{c['seconds']:.3f}", f"{c['cpu_s']:.3f}", f"{c['megabytes']:.1f}"] for c in weight]
        texts.append(table(["import", "seconds", "computing", "MB more"], rows))
    if waits:
        rows = [[c["name"], f"{c['seconds']:.0f}", f"{c['cpu_s']:.0f}", f"{c['load']:.1f}"] for c in waits]
        texts.append("Other work on the machine counts too: the load average at the end is the last column.")
        texts.append(table(["", "seconds", "computed by all cores", "load"], rows))
    return "\n\n".join([*texts, verdict(_misses(result["cases"]))])


def sizes(result: dict[str, Any]) -> str:
    """The table of the sizes of wheels."""
    rows = [[f"`{case['name']}`", f"{case['megabytes']:.1f}"] for case in result["cases"] if case["part"] == "sizes"]
    return table(["wheel", "MB"], rows)


def _misses(cases: list[dict[str, Any]]) -> list[str]:
    found = []
    for case in cases:
        for bar, key, unit in (("bar_s", "seconds", "s"), ("bar_mb", "megabytes", "MB"), ("bar", "", "")):
            measured = case.get(key or ("megabytes" if case["part"] == "sizes" else "seconds"))
            if case.get(bar) is not None and measured > case[bar]:
                found.append(f"{case['name']}: {measured:.3g} {unit or 's'} of {case[bar]:g}")
    return found
