"""What benchmarks/results/calibrated_classifier.json says, as a table and sentences. Called by docs/generate.py."""

from __future__ import annotations

from typing import Any

from result_tables import table, verdict

SIDES = {
    "margrove": "Margrove",
    "without_law": "without the law",
    "sklearn": "scikit-learn",
    "sklearn_ensemble": "scikit-learn, ensemble",
    "isotonic": "isotonic, ensemble",
}
PEERS = ("sklearn", "sklearn_ensemble")
ALLOWED = 0.01  # above the better of the two peers


def section(result: dict[str, Any]) -> str:
    """The calibration error of each learner on each set, and the mean of the other measures."""
    cases = result["cases"]
    rows = [
        [f"{case['data']}, {case['learner']}", _own(case), *(f"{case[side]['ece']:.3f}" for side in SIDES)]
        for case in cases
    ]
    means = [[words, "", *(f"{_mean(cases, side, key):.3f}" for side in SIDES)] for key, words in _MEASURES.items()]
    return "\n\n".join(
        [
            "Expected calibration error (ten bins) of `CalibratedClassifier` around four learners of Margrove; the same"
            ' without its law; and `CalibratedClassifierCV(..., method="sigmoid")` of scikit-learn around the same'
            ' learners, with `ensemble=False` and with `ensemble=True`, and with `method="isotonic"`. *Own*: the'
            " probabilities of the learner itself, if it has any. At most 3,000 rows to learn from, scaled columns,"
            " means over five splits. Less is better; at the end the means of all measures over the cases.",
            table(["", "own", *SIDES.values()], [*rows, *means]),
            verdict(
                (
                    f"{case['learner']} on {case['data']} ({case['margrove']['ece']:.3f} against {_best(case):.3f})"
                    for case in cases
                    if case["margrove"]["ece"] > _best(case) + ALLOWED
                ),
                otherwise="The bar is not missed.",
            ),
        ]
    )


_MEASURES = {"ece": "mean", "log_loss": "mean log loss", "brier": "mean Brier score", "at_odds": "mean share at odds"}


def _own(case: dict[str, Any]) -> str:
    return f"{case['own_ece']:.3f}" if "own_ece" in case else ""


def _best(case: dict[str, Any]) -> float:
    return min(case[peer]["ece"] for peer in PEERS)


def _mean(cases: list[dict[str, Any]], side: str, key: str) -> float:
    return float(sum(case[side][key] for case in cases) / len(cases))
