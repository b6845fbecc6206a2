"""AdaBoost on handwritten digits, odd or even: its rounds, its margins, its certificate (THEORY B1 – B3).

    python examples/boosting.py

prints the first rounds and the certificate, and writes two pictures into the current folder.
"""

from __future__ import annotations

from typing import Any

from sklearn.datasets import load_digits

from margrove import AdaBoostClassifier, certify
from margrove.plots import plot_rounds, plot_vote_margins

DIGITS = load_digits()
X, ODD = DIGITS.data, DIGITS.target % 2


def train(**settings: Any) -> AdaBoostClassifier:
    """Stumps, each of which asks for one pixel."""
    return AdaBoostClassifier(**settings).fit(X, ODD)


def figures() -> dict[str, Any]:
    """Each picture by its name."""
    watched = train(n_estimators=400, early_stopping=True, n_iter_no_change=100, random_state=0)
    return {
        "boost-rounds": plot_rounds(watched)[0].figure,
        "boost-margins": plot_vote_margins(train(n_estimators=400), X, ODD).figure,
    }


if __name__ == "__main__":
    model = train(n_estimators=100)
    for t, stump in enumerate(model.estimators_[:3]):
        print(f"round {t + 1}, error {model.estimator_errors_[t]:.3f}, α {model.alphas_[t]:.3f}")
        print(stump.rules())
    print(certify(model, X, ODD))
    for name, figure in figures().items():
        figure.savefig(f"{name}.png", dpi=120)
        print(f"{name}.png")
