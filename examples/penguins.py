"""From a table to a certified model in a file, end to end, on the embedded penguins.

python examples/penguins.py
"""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import make_pipeline

from margrove import SVC, LeastSquaresClassifier, Perceptron, TableEncoder, certify, load, load_penguins, save
from margrove.plots import plot_boundary, plot_margins

penguins = load_penguins()  # 344 rows: numbers, categories, missing cells
y = penguins.labels()


def train() -> Any:
    """Encode what is not a number, then correct mistakes until there is none."""
    return make_pipeline(TableEncoder(), Perceptron(random_state=0)).fit(penguins, y)


def figures() -> dict[str, Any]:
    """Each picture by its name."""
    two = ["bill_length_mm", "flipper_length_mm"]
    planar = make_pipeline(TableEncoder(), LeastSquaresClassifier()).fit(penguins.select(two), y)
    bent = make_pipeline(TableEncoder(), SVC(C=10)).fit(penguins.select(two), y)
    return {
        "penguins-boundary": plot_boundary(planar, penguins, y, features=two).figure,
        "penguins-svm": plot_boundary(bent, penguins, y, features=two).figure,
        "penguins-margins": plot_margins(train(), penguins, y).figure,
    }


if __name__ == "__main__":
    model = train()
    certificate = certify(model, penguins, y)  # recomputed from model and data, in float64
    print(certificate)

    save(model, "penguins.margrove")  # safetensors: loading it runs no code
    again = load("penguins.margrove")
    assert (again.predict(penguins) == model.predict(penguins)).all()

    for name, figure in figures().items():
        figure.savefig(f"{name}.png", dpi=120)
        print(f"{name}.png")
