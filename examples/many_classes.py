"""Ten digits by one-vs-rest, one-vs-one and bit strings, side by side (THEORY C1 – C3).

    python examples/many_classes.py

prints a table, and writes a picture of two codes into the current folder.
"""

from __future__ import annotations

from typing import Any

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from margrove import SVC, BitStringClassifier, DecisionTreeClassifier, OneVsOneClassifier, OneVsRestClassifier
from margrove.multiclass.codes import binary, hadamard
from margrove.plots import plot_code

SCHEMES: dict[str, Any] = {
    "one-vs-rest": OneVsRestClassifier(),
    "one-vs-one": OneVsOneClassifier(),
    "4-bit": BitStringClassifier(code="binary"),
    "15-bit max-min": BitStringClassifier(code="max_min", n_bits=15, random_state=0),
    "15-bit hadamard": BitStringClassifier(code="hadamard"),
}


def table() -> list[tuple[str, int, float, int, float, float]]:
    """For each scheme: machines, minimum distance, errors corrected, and the accuracy of support vector machines and of
    trees on rows held out."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, stratify=y, random_state=0)
    rows = []
    for name, scheme in SCHEMES.items():
        scores = [
            scheme.set_params(estimator=estimator).fit(X_train, y_train).score(X_test, y_test)
            for estimator in (SVC(gamma=0.1), DecisionTreeClassifier())
        ]
        rows.append((name, scheme.code_.shape[1], scheme.min_distance_, scheme.errors_corrected_, *scores))
    return rows


def figures() -> dict[str, Any]:
    """Each picture by its name."""
    import matplotlib.pyplot as plt

    figure, (short, long) = plt.subplots(1, 2, figsize=(9, 3.4), width_ratios=[4, 15], layout="constrained")
    plot_code(binary(10), ax=short).legend_.remove()
    short.set_title("4 bits: distance 1", loc="left", fontsize="medium")
    plot_code(hadamard(10), ax=long)
    long.set_title("15 bits: distance 8, corrects 3", loc="left", fontsize="medium")
    short.set_ylabel("digit")
    return {"codes": figure}


if __name__ == "__main__":
    print(f"{'scheme':16} {'machines':>8} {'distance':>8} {'corrects':>8} {'SVC':>7} {'tree':>7}")
    for name, machines, distance, corrected, svc, tree in table():
        print(f"{name:16} {machines:8} {distance:8g} {corrected:8} {svc:7.1%} {tree:7.1%}")
    for name, figure in figures().items():
        figure.savefig(f"{name}.png", dpi=120)
        print(f"{name}.png")
