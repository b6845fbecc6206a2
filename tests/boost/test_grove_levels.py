"""A grove keeps the level statistics of its subset tests, as each of its trees does."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import margrove
from margrove import AdaBoostClassifier, DecisionTreeClassifier
from margrove.tree.grove import Grove

LEVELS = ("n_levels", "association", "inverse_weight")


def boosted(engine: str) -> AdaBoostClassifier:
    rng = np.random.default_rng(3)
    X = pl.DataFrame({"town": rng.choice(list("abcdefgh"), 300), "age": rng.normal(size=300).round(2)})
    y = (X["town"].is_in(["a", "c", "d"]).to_numpy() ^ (X["age"].to_numpy() > 0.5) ^ (rng.random(300) < 0.2)).astype(
        int
    )
    return AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=4, engine=engine).fit(X, y)


def test_both_engines_keep_the_same_level_statistics():
    one, other = (boosted(engine).model_.grove for engine in ("reference", "native"))
    assert (one.n_levels > 2).any()
    for name in LEVELS:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, err_msg=name)


def test_parts_of_a_grove_keep_the_levels_of_their_trees():
    grove = boosted("native").model_.grove
    trees = [grove.tree(t) for t in range(grove.n_trees)]
    again = Grove.joined([grove.first(2), Grove.of(grove.columns, trees[2:])])
    for name in LEVELS:
        np.testing.assert_array_equal(getattr(again, name), getattr(grove, name), name)
    bare = [replace(tree, **dict.fromkeys(LEVELS)) for tree in trees[:1]]
    assert Grove.of(grove.columns, bare + trees[1:]).n_levels is None


@pytest.mark.parametrize("engine", ["reference", "native"])
def test_a_model_file_keeps_the_levels_of_a_grove(engine, tmp_path):
    model = boosted(engine)
    margrove.save(model, tmp_path / "boosted.margrove")
    again = margrove.load(tmp_path / "boosted.margrove").model_.grove
    for name in LEVELS:
        np.testing.assert_array_equal(getattr(again, name), getattr(model.model_.grove, name), name)
