"""What benchmarks/results/onnx_parity.json says, as two tables and a sentence. Called by docs/generate.py."""

from __future__ import annotations

from typing import Any

from result_tables import table

LIMIT = 1e-5  # the bar: relative


def section(result: dict[str, Any]) -> str:
    """How far ONNX files are from us, whether the bar is missed, and how long both take."""
    cases = result["cases"]
    lines = [
        "What `margrove.write_onnx` has written, run by onnxruntime on rows held out, text and missing cells as they"
        " are: the largest difference of scores and probabilities, relative to the value itself, or to a thousandth of"
        " the largest where it is smaller.",
        _table(cases, _difference),
        _verdict(cases),
        "Milliseconds for the labels of these rows, onnxruntime / Margrove, the least of nine, sides interleaved."
        " onnxruntime computes all outputs, probabilities too; Margrove reads the table anew each time:",
        _table(cases, lambda case: f"{1e3 * case['onnx_s']:.3g} / {1e3 * case['ours_s']:.3g}"),
    ]
    return "\n\n".join(lines)


def _difference(case: dict[str, Any]) -> str:
    return f"{_worst(case):.0e}" if _worst(case) else "0"


def _worst(case: dict[str, Any]) -> float:
    return max(float(case.get(key, 0.0)) for key in ("scores", "probabilities"))


def _table(cases: list[dict[str, Any]], shown: Any) -> str:
    """A row for each set, a column for each model."""
    models = list(dict.fromkeys(case["model"] for case in cases))
    rows = []
    for name in dict.fromkeys(case["data"] for case in cases):
        own = {case["model"]: case for case in cases if case["data"] == name}
        count = next(iter(own.values()))["rows"]
        cells = [shown(own[model]) if model in own else "" for model in models]
        rows.append([f"{name}, {count:,} rows", *cells])
    return table(["", *models], rows)


def _verdict(cases: list[dict[str, Any]]) -> str:
    off = [case for case in cases if _worst(case) > LIMIT or case["labels_that_differ"]]
    predicted = sum(case["rows"] for case in cases)
    sets = len({case["data"] for case in cases})
    if not off:
        largest = max(map(_worst, cases))
        return (
            f"Of {predicted:,} labels on {sets} sets none differs, and no number by more than {largest:.0e}: the bar is"
            " not missed."
        )
    told = "; ".join(
        f"{case['model']} on {case['data']} ({_difference(case)}, {case['labels_that_differ']} labels)" for case in off
    )
    return f"Missed: {told}."
