"""Many rounds on rows that are soon classified correctly: nearly all weight lies on a few of them."""

from __future__ import annotations

import numpy as np
import pytest

from margrove import AdaBoostClassifier, DecisionTreeClassifier, certify, load_penguins
from margrove.boost import certificate

PENGUINS = load_penguins()


@pytest.mark.parametrize("classes", [2, 3])
def test_the_splits_of_nodes_that_are_almost_pure_are_the_best_to_many_digits(monkeypatch, classes):
    monkeypatch.setattr(certificate, "_PER_SEARCH", 0)  # every tree is searched again
    species = PENGUINS.labels()
    rows = np.flatnonzero(np.isin(species, np.unique(species)[:classes]))
    table, labels = PENGUINS.take(rows), species[rows]
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=3 if classes == 3 else 2), n_estimators=100)
    model.fit(table, labels)
    found = certify(model, table, labels)
    assert found.holds, str(found)
    assert found["trees searched again"] == model.n_estimators_ > 20


def test_many_small_trees_are_searched_in_part_and_the_claim_counts_them():
    labels = PENGUINS.labels()
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=200).fit(PENGUINS, labels)
    found = certify(model, PENGUINS, labels)
    assert found.holds
    assert 2 <= found["trees searched again"] < 200
    assert found.claim("trees searched again").words.startswith("of 200")
