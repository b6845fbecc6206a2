"""What benchmarks/results/images.json says, as tables and sentences. Called by docs/generate.py."""

from __future__ import annotations

from typing import Any

from result_tables import table, times, verdict

LEAST, LEAD = 0.70, 0.25  # of the SVM on codes: accuracy, and how far above raw pixels


def is_there(result: dict[str, Any]) -> bool:
    """Whether a result is one of this kind: it comes in parts."""
    return result.get("benchmark") == "images" and bool(result.get("parts"))


def section(result: dict[str, Any]) -> str:
    """How often each learner is right; the speed and the memory of codes; and every bar missed."""
    parts = {name: part["cases"] for name, part in result["parts"].items()}
    lines = [
        "cifar10_small: 2,000 training and 600 test pictures of 32 × 32 pixels, ten classes, enlarged to 224 × 224 (for"
        " fine-tuning as `size` says); codes of EfficientNet-Lite0, averaged over mirror images. Scale, price and"
        " thresholds are chosen by 3-fold cross-validation on the training pictures. Of fine-tuning nothing is"
        " searched; in the place of cross-validation stands its accuracy on the training pictures that it held out.",
    ]
    rows = [_row(case) for name in ("accuracy", "finetune") for case in parts.get(name, [])]
    if rows:
        lines.append(table(["", "model", "codes", "cross-validated", "test", "certificate"], rows))
    lines += [_speed(case) for case in parts.get("speed", [])]
    if parts.get("memory"):
        words = "; ".join(f"{case['pictures']} pictures: {case['peak_mb']:.0f} MB" for case in parts["memory"])
        lines.append(f"The largest memory of a process that computes codes of files in batches of 16: {words}.")
    lines.append(verdict(_misses(parts)))
    return "\n\n".join(lines)


def summary(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """The speed of codes, where it was measured."""
    return [
        (
            f"{case['pictures']} codes of EfficientNet-Lite0",
            "a plain torch loop",
            f"{case['margrove']:.3g} s",
            f"{case['plain_loop']:.3g} s",
            times(case["times_as_fast"]),
        )
        for case in result["parts"].get("speed", {"cases": []})["cases"]
    ]


def _speed(case: dict[str, Any]) -> str:
    return (
        f"{case['pictures']} codes in batches of {case['batch']}, {case['threads']} threads, the sides in turns:"
        f" {case['margrove']:.3g} s by `ConvFeatures`, {case['plain_loop']:.3g} s by a plain torch loop,"
        f" {case['times_as_fast']:.2g} times as fast; the largest difference is {case['largest_difference']:.1g} of"
        " the largest code."
    )


def _row(case: dict[str, Any]) -> list[str]:
    holds = "holds" if case["holds"] else "does NOT hold"
    model = f"`{case['model']}`"
    return [case["case"], model, case["codes"], f"{case['cross_validated']:.3f}", f"{case['test']:.3f}", holds]


def _misses(parts: dict[str, list[dict[str, Any]]]) -> Any:
    test = {case["case"]: case["test"] for case in parts.get("accuracy", [])}
    if test and test["svm"] < LEAST:
        yield f"the SVM on codes is right on {test['svm']:.3f} of the test pictures, and {LEAST} was wanted"
    if test and test["svm"] - test["svm, raw pixels"] < LEAD:
        yield f"that is {test['svm'] - test['svm, raw pixels']:.3f} above raw pixels, and {LEAD} was wanted"
    for case in parts.get("speed", []):
        if case["times_as_fast"] < 1:
            yield f"codes are made {case['times_as_fast']:.2f} times as fast as by a plain loop"
