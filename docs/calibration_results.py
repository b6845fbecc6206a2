"""What benchmarks/results/calibration.json says, as tables, a sentence and a picture. Called by docs/generate.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from result_tables import table, verdict

SIDES = {
    "margrove": "Margrove",
    "without_law": "without the law",
    "sklearn": "scikit-learn",
    "sklearn_ensemble": "scikit-learn, ensemble",
}
PEERS = ("sklearn", "sklearn_ensemble")
NOISE = 2.0  # standard errors of the difference over the splits
LEAST_ROWS = 50  # of a bin that is drawn: how often something is so in fewer says little
STYLES = {
    "margrove": ("#0072B2", "o"),
    "without_law": ("#56B4E9", "x"),
    "sklearn": ("#D55E00", "s"),
    "sklearn_ensemble": ("#009E73", "^"),
}


def section(result: dict[str, Any]) -> str:
    """The three measures, who is at odds with himself, whether the bar is missed, and the reliability curves."""
    cases = result["cases"]
    lines = [
        "How far probabilities can be believed, on held-out rows: `SVC(probability=True)`; the same without its law;"
        ' and `CalibratedClassifierCV(SVC(), method="sigmoid", cv=5)` of scikit-learn, with `ensemble=False` and with'
        " `ensemble=True`. At most 3,000 rows to learn from, scaled columns, C = 1, γ = 1/d, means over ten splits."
        " Of many classes Margrove couples the pairs, and `CalibratedClassifierCV` calibrates a score for each class;"
        " with `ensemble=True` it averages five machines. Less is better in all three measures.",
        "Brier score (of two classes halved):",
        _measure(cases, "brier"),
        "Log loss:",
        _measure(cases, "log_loss"),
        "Expected calibration error, ten bins: of two classes the second's probability, of more that of the most"
        " probable one:",
        _measure(cases, "ece"),
        _verdict(cases),
        _law(cases),
        "Rows of which the most probable class is not the one that the machine itself, fitted on all rows, predicts."
        " For Margrove there are none, by the law; the column *without the law* says how many it had to move:",
        _at_odds(cases),
        f"What is said against what is so, all sets added up, bins of {LEAST_ROWS} rows or more. The step of Margrove's"
        " curve at ½ is the law: rows that it had to move are there.",
        "![Reliability: how often what was said with a probability came true](images/calibration.png)",
    ]
    return "\n\n".join(lines)


def draw_reliability(result: dict[str, Any], path: Path, dpi: int) -> None:
    """How often it is so against how probable it was said to be; sets of two classes, and of more."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
    for axis, is_two, words in zip(
        axes,
        (True, False),
        ("two classes: probability of the second", "more: probability of the most probable"),
        strict=True,
    ):
        cases = [case for case in result["cases"] if (case["classes"] == 2) == is_two]
        axis.plot([0, 1], [0, 1], color="#999999", linewidth=1, zorder=0)
        for side, (colour, marker) in STYLES.items():
            rows, said, true = (_added([case[side]["bins"][key] for case in cases]) for key in ("rows", "said", "true"))
            filled = [k for k, count in enumerate(rows) if count >= LEAST_ROWS]
            axis.plot(
                [said[k] / rows[k] for k in filled],
                [true[k] / rows[k] for k in filled],
                color=colour,
                marker=marker,
                linewidth=1,
                label=SIDES[side],
            )
        axis.set_xlabel(words)
        axis.set_aspect("equal")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("how often it is so")
    axes[0].legend()
    figure.savefig(path, dpi=dpi, metadata={"Software": None})
    plt.close(figure)


def _measure(cases: list[dict[str, Any]], key: str) -> str:
    """A row for each set; behind each number whether ours is better or worse by more than noise."""
    rows = [[_name(case), *(f"{case[side][key]:.4f}{_mark(case, side, key)}" for side in SIDES)] for case in cases]
    means = [f"{_mean(cases, side, key):.4f}" for side in SIDES]
    return table(["", *SIDES.values()], [*rows, ["mean", *means]])


def _mark(case: dict[str, Any], side: str, key: str) -> str:
    """+ where ours is better than this side by more than noise, − where it is worse."""
    excess = case.get(f"excess_over_{side}", {}).get(key)
    if excess is None or abs(excess["mean"]) <= NOISE * excess["standard_error"]:
        return ""
    return " (−)" if excess["mean"] > 0 else " (+)"


def _verdict(cases: list[dict[str, Any]]) -> str:
    words = [
        "Noise is two standard errors of the difference over the splits, whose rows overlap. Behind a number: (+) where"
        " Margrove is better than this side by more than that, (−) where it is worse."
    ]
    missed = [
        f"{_words(key)} on {case['data']} ({case['margrove'][key]:.4f} against {case[peer][key]:.4f} of {SIDES[peer]})"
        for key in ("brier", "log_loss")
        for case in cases
        for peer in PEERS
        if _mark(case, peer, key) == " (−)"
    ]
    words.append(verdict(missed, otherwise="The bar is not missed."))
    return " ".join(words)


def _law(cases: list[dict[str, Any]]) -> str:
    """What the law alone costs, in the Brier score and in right answers."""
    dear = [
        f"{case['data']} ({case['margrove']['brier']:.4f} against {case['without_law']['brier']:.4f})"
        for case in cases
        if _mark(case, "without_law", "brier") == " (−)"
    ]
    means = (f"{name} {_mean(cases, side, 'accuracy'):.1%}" for side, name in SIDES.items())
    most = max(cases, key=lambda case: abs(case["margrove"]["accuracy"] - case["without_law"]["accuracy"]))
    with_law, without = (most[side]["accuracy"] for side in ("margrove", "without_law"))
    return (
        f"The law by itself, ours against ours without it, costs more than noise in the Brier score on:"
        f" {', '.join(dear) or 'no set'}. The most probable class is right, mean over the sets: {', '.join(means)}; the"
        f" law matters most on {most['data']}, {with_law:.1%} with it and {without:.1%} without."
    )


def _at_odds(cases: list[dict[str, Any]]) -> str:
    rows = [[_name(case), *(f"{case[side]['at_odds']:.2%}" for side in SIDES)] for case in cases]
    return table(["", *SIDES.values()], rows)


def _mean(cases: list[dict[str, Any]], side: str, key: str) -> float:
    return float(sum(case[side][key] for case in cases) / len(cases))


def _name(case: dict[str, Any]) -> str:
    return f"{case['data']}, {case['n_train']:,.0f} rows"


def _words(key: str) -> str:
    return {"brier": "Brier score", "log_loss": "log loss"}[key]


def _added(rows: list[list[float]]) -> list[float]:
    return [sum(column) for column in zip(*rows, strict=True)]
