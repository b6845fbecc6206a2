"""Categories of very many levels: how "auto" tests them, and how rules and pictures write them."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from margrove import AdaBoostClassifier, DecisionStump, DecisionTreeClassifier, DecisionTreeRegressor, certify
from margrove.errors import ParameterError, UnseenCategoryWarning
from margrove.plots import plot_tree


@pytest.fixture
def passengers(rng):
    """A column that names the rows, one of few rows a level and mostly missing, one of many rows a level."""
    n = 400
    table = pd.DataFrame(
        {
            "ticket": [f"T{i:04}" for i in range(n)],
            "cabin": pd.Series([f"C{i // 2:03}" for i in range(n)]).where(rng.random(n) < 0.3),
            "port": rng.choice(list("abcdefghijklmn"), n),
            "age": rng.integers(1, 80, n),
        }
    )
    is_saved = (table["age"] < 30) ^ (rng.random(n) < 0.1)
    return table, np.where(is_saved, "saved", "lost")


def test_auto_tests_thin_categories_one_level_against_the_rest_and_records_the_reason(passengers):
    table, target = passengers
    tree = DecisionTreeClassifier().fit(table, target)
    kinds = {column.name: column.test for column in tree.nodes_.columns}
    assert kinds == {"ticket": "one_vs_rest", "cabin": "one_vs_rest", "port": "subset", "age": "threshold"}
    assert "fewer than 5 rows" in tree.categorical_["ticket"]
    assert tree.categorical_["port"].startswith("subset: ")
    assert tree.nodes_.columns[tree.nodes_.feature[0]].name == "age"
    assert certify(tree, table, target).holds


def test_with_a_complexity_penalty_only_columns_that_name_the_rows_are_tested_one_vs_rest(passengers):
    table, target = passengers
    tree = DecisionTreeClassifier(criterion="entropy", complexity=0.7).fit(table, target)
    kinds = {column.name: column.test for column in tree.nodes_.columns}
    assert kinds == {"ticket": "one_vs_rest", "cabin": "subset", "port": "subset", "age": "threshold"}
    assert "nearly every cell differs" in tree.categorical_["ticket"]
    assert certify(tree, table, target).holds


@pytest.mark.parametrize("categorical", ["subset", "multiway", "one_vs_rest"])
def test_a_requested_test_is_used_for_thin_categories_too(passengers, categorical):
    table, target = passengers
    tree = DecisionTreeClassifier(categorical=categorical).fit(table, target)
    assert {column.test for column in tree.nodes_.columns if column.levels} == {categorical}
    assert set(tree.categorical_.values()) == {f"{categorical}: as requested"}


def test_the_gain_ratio_keeps_its_branches(passengers):
    tree = DecisionTreeClassifier(split_score="gain_ratio").fit(*passengers)
    assert {column.test for column in tree.nodes_.columns if column.levels} == {"multiway"}


def test_a_column_that_names_the_rows_does_not_win(passengers):
    table, target = passengers
    rows = np.arange(len(table)) % 2 == 0
    trees = [DecisionTreeClassifier(categorical=kind).fit(table[rows], target[rows]) for kind in ("auto", "subset")]
    with pytest.warns(UnseenCategoryWarning):
        auto, subset = (tree.score(table[~rows], target[~rows]) for tree in trees)
    assert trees[1].get_n_leaves() == 2  # all tickets of those saved against all others
    assert auto > 0.75 > subset


def test_few_levels_and_enough_rows_are_subsets_as_ever():
    few = pd.DataFrame({"c": list("abcdefghij") * 2})  # ten levels, two rows each: a small table, not a thin column
    enough = pd.DataFrame({"c": [f"l{i % 20:02}" for i in range(100)]})  # five rows each
    thin = enough[:99]
    for table, kind in ((few, "subset"), (enough, "subset"), (thin, "one_vs_rest")):
        tree = DecisionTreeRegressor().fit(table, np.arange(len(table), dtype=float))
        assert tree.nodes_.columns[0].test == kind


@pytest.fixture
def shops(rng):
    """A tree whose root asks for thirty of sixty levels."""
    codes = rng.permutation(np.arange(600) % 60)
    return DecisionTreeClassifier(max_depth=1).fit(pd.DataFrame({"shop": [f"s{c:02}" for c in codes]}), codes % 2)


@pytest.mark.parametrize("style", ["nested", "lines"])
def test_rules_count_the_levels_they_do_not_name(shops, style):
    text = str(shops.rules(style=style))
    assert "shop in {s00, s02, s04, s06, s08, s10, s12, s14, s16, s18, … 20 more}" in text
    assert "{s00, s02, … 28 more}" in str(shops.rules(style=style, max_levels=2))
    whole = str(shops.rules(style=style, max_levels=None))
    assert "more" not in whole
    assert set(re.findall(r"s\d\d", whole)) == {f"s{c:02}" for c in range(60)}
    assert "… 20 more" in shops.rules(style=style)._repr_html_()
    assert "… 20 more" not in shops.rules(style=style, max_levels=None)._repr_html_()


def test_data_and_exports_name_every_level(shops):
    found = [condition["levels"] for rule in shops.rules().data() for condition in rule["conditions"]]
    assert sorted(map(len, found)) == [30, 30]
    for text in (shops.to_python(), shops.to_sql(), shops.to_c(), "".join(shops.to_dataframe()["branch"].dropna())):
        assert len(set(re.findall(r"s\d\d", text))) >= 30  # one side; the other is the rest
        assert "… " not in text


def test_plots_name_as_many_levels_as_requested(shops):
    drawn = {most: " ".join(t.get_text() for t in plot_tree(shops, max_levels=most).texts) for most in (2, 6, 20, None)}
    plt.close("all")
    assert "s00, s02, … 28" in drawn[2].replace("\n", " ")
    assert {most: len(re.findall(r"s\d\d", text)) for most, text in drawn.items()} == {2: 4, 6: 12, 20: 40, None: 60}
    assert " ".join(t.get_text() for t in plot_tree(shops).texts) == drawn[6]
    plt.close("all")


@pytest.mark.parametrize(
    "write", [lambda tree, n: tree.rules(max_levels=n), lambda tree, n: plot_tree(tree, max_levels=n)]
)
def test_a_number_of_levels_below_one_is_refused(shops, write):
    with pytest.raises(ParameterError, match=r"max_levels is 0.*None means all"):
        write(shops, 0)


def test_boosted_trees_test_thin_categories_as_a_tree_alone_does(rng):
    names = [f"row {i}" for i in range(200)]
    X = pd.DataFrame({"name": names, "x": rng.normal(size=200)})
    y = (X["x"] + 0.3 * rng.normal(size=200) > 0).astype(int)
    boosted, alone = AdaBoostClassifier(n_estimators=5).fit(X, y), DecisionStump().fit(X, y)
    assert boosted.categorical_ == alone.categorical_
    assert [column.test for column in boosted.model_.grove.columns] == ["one_vs_rest", "threshold"]
