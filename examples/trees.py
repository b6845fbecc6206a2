"""Decision trees on the penguins' table as it is: text columns, missing cells, rules and pictures (THEORY T1 – T9).

    python examples/trees.py

prints rules and certificate, and writes three pictures into the current folder.
"""

from __future__ import annotations

from typing import Any

from margrove import DecisionTreeClassifier, certify, load_penguins
from margrove.plots import plot_regions, plot_tree

PENGUINS = load_penguins()
SPECIES = PENGUINS.labels()
PLANE = ["flipper_length_mm", "bill_length_mm"]


def train(**settings: Any) -> DecisionTreeClassifier:
    """Pruned by the pessimistic error, unless told otherwise."""
    return DecisionTreeClassifier(**{"prune": "pessimistic", **settings}).fit(PENGUINS, SPECIES)


def figures() -> dict[str, Any]:
    """Each picture by its name."""
    tree = train(max_depth=3)
    plane = PENGUINS.select(PLANE)
    full, pruned = (DecisionTreeClassifier(prune=rule).fit(plane, SPECIES) for rule in (None, "cost_complexity"))
    return {
        "tree-penguins": plot_tree(tree).figure,
        "tree-regions-full": plot_regions(full, plane, SPECIES).figure,
        "tree-regions": plot_regions(pruned, plane, SPECIES).figure,
    }


if __name__ == "__main__":
    model = train()
    print(model.rules())
    print(certify(model, PENGUINS, SPECIES))
    for name, figure in figures().items():
        figure.savefig(f"{name}.png", dpi=120)
        print(f"{name}.png")
