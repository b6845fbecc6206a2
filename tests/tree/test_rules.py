"""Rules as text: each states what the tree does, as briefly as possible."""

from __future__ import annotations

import json
import re
from decimal import ROUND_HALF_EVEN, Context
from html import unescape

import numpy as np
import pytest
from scipy.stats import chisquare
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.tree.trees_at_hand import Node, from_sklearn, random_cells, random_tree, tree_of

import margrove
from margrove.data.formats import DateFormat, NumberFormat
from margrove.errors import ParameterError
from margrove.tree.problem import TreeColumn
from margrove.tree.rules import root_p_values, tree_rules
from margrove.tree.words import Allowed, amount_text, anything, narrowed, number_text, places, rounded

IRIS = load_iris()
NAMES = ["sepal length", "sepal width", "petal length", "petal width"]


def iris(depth: int | None = 2):
    return from_sklearn(DecisionTreeClassifier(max_depth=depth, random_state=0).fit(IRIS.data, IRIS.target), NAMES)


ISLAND = TreeColumn("island", "multiway", ("Biscoe", "Dream", "Torgersen"))
COUNT = TreeColumn("x", "intervals", cuts=(1.0, 3.0, 5.0))
AGE = TreeColumn("age")


def split(*values, **test):
    total = np.sum(values, axis=0)
    return Node(total, [Node(value) for value in values], **test)


def branches(model):
    return [place.branch.words() for place in places(model) if place.branch is not None]


def test_a_tree_is_written_as_nested_rules():
    assert str(tree_rules(iris(), IRIS.target_names)) == (
        "if petal width ≤ 0.8: setosa (50 rows, 100 %)\n"
        "else (petal width > 0.8):\n"
        "    if petal width ≤ 1.75: versicolor (54 rows, 90.7 %)\n"
        "    else (petal width > 1.75): virginica (46 rows, 97.8 %)"
    )


def test_repr_of_rules_equals_their_text():
    for style in ("nested", "lines"):
        rules = tree_rules(iris(), IRIS.target_names, style=style)
        assert repr(rules) == str(rules)
        assert repr(rules.rules[0]) == str(rules.rules[0])
    assert repr(iris()) == "<TreeModel: 5 nodes, 3 leaves, depth 2>"


def test_shares_of_rows_of_different_weights_are_marked_by_weight():
    X, y = IRIS.data[50:, 2:3], IRIS.target[50:]
    plain, doubled, unequal = (
        margrove.DecisionStump(class_weight=weight).fit(X, y).rules() for weight in (None, {1: 2, 2: 2}, {1: 1, 2: 5})
    )
    assert str(plain) == str(doubled)  # all rows weigh the same
    assert "by weight" not in str(plain)
    assert re.search(r"\(\d+ rows, [\d.]+ % by weight\)", str(unequal))
    assert "% by weight, confidence" in str(unequal.rules[0])


@pytest.mark.parametrize("criterion", ["squared_error", "gaussian_entropy", "absolute_error"])
def test_rules_of_regression_give_the_spread_of_each_leaf(criterion):
    X, y = IRIS.data[:, :3], IRIS.data[:, 3]
    tree = margrove.DecisionTreeRegressor(criterion=criterion, max_depth=2, min_samples_leaf=5).fit(X, y)
    leaf = tree.apply(X)
    for rule in tree.rules().rules:
        rows = y[leaf == rule.node]
        expected = np.abs(rows - np.median(rows)).mean() if criterion == "absolute_error" else rows.std()
        assert rule.spread == pytest.approx(expected)
        assert rule.outcome() == f"{rounded(rule.prediction)} ± {rounded(float(f'{expected:.3g}'))}"
        assert rule.outcome() in str(tree.rules())
        assert rule.data()["spread"] == rule.spread


def test_a_leaf_of_equal_numbers_has_spread_zero_and_one_of_a_single_row_has_none():
    tree = margrove.DecisionTreeRegressor().fit([[0.0], [0.0], [1.0]], [0.1 + 0.2, 0.3, 7.0])
    assert str(tree.rules()) == "if x0 ≤ 0.5: 0.3 ± 0 (2 rows)\nelse (x0 > 0.5): 7 (1 row)"


def test_a_wide_spread_has_no_exponent():
    tree = margrove.DecisionTreeRegressor().fit([[0.0], [0.0], [1.0]], [100_000.0, 200_000.0, 7.0])
    assert str(tree.rules()).startswith("if x0 ≤ 0.5: 150,000 ± 50,000 (2 rows)")


def test_lines_merge_the_tests_of_one_column_and_are_sorted_by_support():
    first, second, third = tree_rules(iris(), IRIS.target_names, style="lines").text.splitlines()
    assert first.startswith(
        "IF 0.8 < petal width ≤ 1.75 THEN versicolor (support 54, share 36 %, confidence 90.7 %, p ="
    )
    assert second.startswith(
        "IF petal width ≤ 0.8 THEN setosa (support 50, share 33.3 %, confidence 100 %, p = 1.9e-22)"
    )
    assert third.startswith("IF petal width > 1.75 THEN virginica (support 46")  # not: > 0.8 AND > 1.75


def test_rules_of_categories_intervals_and_missing_cells():
    threshold = split([1, 0], [0, 1], feature=0, threshold=2.45, missing=1, default=0)
    assert branches(tree_of(threshold, [AGE])) == ["age ≤ 2.45", "age > 2.45 or missing"]
    assert branches(tree_of(threshold, [TreeColumn("age", has_missing=False)])) == ["age ≤ 2.45", "age > 2.45"]
    present = split([1, 0], [0, 1], feature=0, threshold=np.inf, missing=1, default=0)
    assert branches(tree_of(present, [AGE])) == ["age is present", "age is missing"]
    multiway = split([1, 0], [0, 1], [1, 1], feature=0, levels=[0, 1, 1], missing=2, default=1)
    assert branches(tree_of(multiway, [ISLAND])) == [
        "island = Biscoe",
        "island in {Dream, Torgersen}",
        "island is missing",
    ]
    intervals = split([1, 0], [0, 1], [2, 1], feature=0, levels=[0, 1, -1, 2], missing=0, default=2)
    assert branches(tree_of(intervals, [COUNT])) == ["x < 1 or missing", "1 ≤ x < 3", "x ≥ 3"]
    apart = split([1, 0], [0, 1], feature=0, levels=[0, 1, 0, 1], missing=0, default=1)
    assert branches(tree_of(apart, [COUNT])) == ["x < 1 or 3 ≤ x < 5 or missing", "1 ≤ x < 3 or x ≥ 5"]


def test_dates_and_units_are_written_as_people_write_them():
    threshold = split([1, 0], [0, 1], feature=0, threshold=19724.5, missing=1, default=0)
    day, time = (TreeColumn("day", format=DateFormat(has_time=given), has_missing=False) for given in (False, True))
    assert branches(tree_of(threshold, [day])) == ["day ≤ 2024-01-02", "day > 2024-01-02"]
    assert branches(tree_of(threshold, [time])) == ["day ≤ 2024-01-02 12:00", "day > 2024-01-02 12:00"]
    assert Allowed(day, low=19723.5, high=19724.5).words() == "2024-01-01 < day ≤ 2024-01-02"
    price = TreeColumn("price", format=NumberFormat(unit="€"), has_missing=False)
    assert branches(tree_of(threshold, [price])) == ["price ≤ 19,724.5 €", "price > 19,724.5 €"]
    above = split([1, 0], [0, 1], feature=0, threshold=1.23456789, missing=1, default=0)
    assert branches(tree_of(above, [price])) == ["price < 1.23457 €", "price ≥ 1.23457 €"]
    cuts = TreeColumn("day", "intervals", cuts=(19723.0, 19724.5), format=DateFormat(), has_missing=False)
    three = split([1, 0], [0, 1], [2, 1], feature=0, levels=[0, 1, 2], missing=0, default=2)
    assert branches(tree_of(three, [cuts])) == [
        "day < 2024-01-01",
        "2024-01-01 ≤ day < 2024-01-03",
        "day ≥ 2024-01-03",
    ]


def test_parts_of_dates_are_listed_in_the_order_of_the_calendar():
    levels = ("Friday", "Monday", "Sunday", "Tuesday")
    weekday = TreeColumn("day weekday", "subset", levels, has_missing=False, date_part=("day", "weekday"))
    subset = split([1, 0], [0, 1], feature=0, levels=[0, 0, 1, 0], missing=1, default=1)
    assert branches(tree_of(subset, [weekday]))[0] == "day weekday in {Monday, Tuesday, Friday}"


def test_other_levels_are_named_only_where_they_can_arrive():
    # Torgersen is known, and did not occur at the root's test: with the unseen it goes where most rows went.
    inner = Node([3, 1], [Node([2, 0]), Node([1, 1])], feature=0, levels=[0, 1, -1], missing=0, default=0)
    assert branches(tree_of(inner, [ISLAND]))[0] == "island = Biscoe or other or missing"
    above = Node([3, 5], [inner, Node([0, 4])], feature=0, levels=[0, 0, 1], missing=1, default=1)
    assert branches(tree_of(above, [ISLAND])) == [
        "island in {Biscoe, Dream}",
        "island = Biscoe",
        "island = Dream",
        "island = Torgersen or missing",
    ]


def test_long_lists_are_written_by_the_levels_they_exclude():
    city = TreeColumn("city", "subset", tuple("abcdefgh"), has_missing=False)
    test = split([1, 0], [0, 9], feature=0, levels=[1, 0, 1, 1, 1, 1, 0, 1], missing=1, default=1)
    left, right = (place.branch for place in places(tree_of(test, [city])) if place.branch)
    assert (left.words(), right.words()) == ("city in {b, g}", "city not in {b, g}")
    assert right.words(name=False) == "not b, g"
    test = split([9, 0], [0, 1], feature=0, levels=[1, 0, 1, 1, 1, 1, 0, 1], missing=1, default=0)
    right = list(places(tree_of(test, [city])))[-1].branch
    assert right.words(most=3) == "city in {a, c, d, … 3 more}"  # an unseen city is not among them


def test_conditions_with_or_are_in_brackets_between_ands():
    below = Node([2, 1], [Node([2, 0]), Node([0, 1])], feature=1, levels=[0, 1, 1], missing=0, default=0)
    root = Node([2, 5], [below, Node([0, 4])], feature=0, threshold=1.5, missing=0, default=1)
    lines = tree_rules(tree_of(root, [AGE, ISLAND]), ["no", "yes"], style="lines").text.splitlines()
    assert "IF (age ≤ 1.5 or missing) AND (island = Biscoe or missing) THEN no" in lines[1]


def test_ambiguous_levels_are_quoted():
    odd = TreeColumn("c", "multiway", ("a, b", "", " x", "plain word"))
    test = split([1, 0], [0, 1], feature=0, levels=[0, 0, 0, 1], missing=1, default=1)
    assert branches(tree_of(test, [odd])) == ["c in {'a, b', '', ' x'}", "c = plain word or missing"]


@pytest.mark.parametrize("seed", range(6))
def test_every_row_satisfies_the_conditions_of_its_leaf_and_of_no_other(seed):
    model = random_tree(seed)
    cells, _ = random_cells(model, 200, seed)
    leaf = model.apply(cells)
    met = 0
    for place in places(model):
        if model.feature[place.node] >= 0:
            continue
        is_met = np.ones(cells.n_rows, bool)
        for j, allowed in place.path.items():
            is_met &= belongs(allowed, cells.column(j) if allowed.column.test == "threshold" else cells.codes(j))
        np.testing.assert_array_equal(is_met, leaf == place.node)
        met += is_met.sum()
    assert met == cells.n_rows


def belongs(allowed: Allowed, cells):
    if allowed.column.test == "threshold":
        is_in = (allowed.low < cells) & (cells <= allowed.high)
        return np.where(np.isnan(cells), allowed.missing, is_in)
    is_known = (cells >= 0) & (cells < allowed.column.n_codes)
    return np.where(
        cells == -1, allowed.missing, np.where(is_known, np.isin(cells, list(allowed.codes)), allowed.unseen)
    )


def test_a_value_of_six_digits_is_on_the_side_that_the_rule_states(rng):
    six = Context(prec=6, rounding=ROUND_HALF_EVEN)
    for theta in [*rng.normal(size=200), *rng.normal(size=200) * 1e4, 2.4499999, 0.79999999, 1 / 3, -2.5000001]:
        model = tree_of(split([1, 0], [0, 1], feature=0, threshold=theta, missing=0, default=0), [AGE])
        left, right = (narrowed(model, 0, branch, anything(AGE)).words() for branch in (0, 1))
        side, number = re.fullmatch(r"age ([≤<]) (\S+) or missing", left).groups()
        assert right == f"age {'>' if side == '≤' else '≥'} {number}"
        number = number.replace(",", "")
        assert len(number.lstrip("-0.").replace(".", "").split("e")[0]) <= 6
        for x in {float(six.create_decimal_from_float(theta * (1 + step))) for step in (0, 1e-9, -1e-9, 1e-5, -1e-5)}:
            assert (x <= theta) == (x <= float(number) if side == "≤" else x < float(number))


def test_both_ends_of_a_merged_interval_are_rounded_correctly(rng):
    for theta in rng.normal(size=200):
        words = Allowed(AGE, low=theta, high=theta + 10, missing=False).words()
        low, left, right, high = re.fullmatch(r"(\S+) ([<≤]) age ([<≤]) (\S+)", words).groups()
        assert left == ("<" if float(low) <= theta else "≤")
        assert right == ("≤" if float(high) <= theta + 10 else "<")


def test_large_whole_numbers_keep_their_digits():
    assert [rounded(x) for x in (1234567.0, 0.5, 123456.5, 1e12, -0.0)] == ["1234567", "0.5", "123456", "1e+12", "0"]


def test_rules_cut_at_a_depth_count_the_nodes_below():
    text = str(tree_rules(iris(None), IRIS.target_names, max_depth=1))
    assert (
        text.splitlines()[1]
        == f"else (petal width > 0.8): versicolor (100 rows, 50 %) … {iris(None).n_nodes - 3} nodes below not shown"
    )
    rules = tree_rules(iris(None), IRIS.target_names, max_depth=0)
    assert [rule["nodes_below"] for rule in rules.data()] == [iris(None).n_nodes - 1]
    assert str(tree_rules(iris(None), IRIS.target_names, max_depth=0, style="lines")).startswith(
        "ALWAYS setosa (support 150"
    )


def test_p_values_are_those_of_a_chi_square_test_against_the_root():
    model = iris(3)
    found = root_p_values(model)
    for node in range(model.n_nodes):
        root = model.value[0] / model.weight[0] * model.weight[node]
        assert found[node] == pytest.approx(chisquare(model.value[node], root).pvalue)
    assert found[0] == 1.0


def test_a_class_that_never_occurs_and_a_lone_class_have_p_values():
    model = tree_of(split([3, 0, 0], [0, 3, 0], feature=0, threshold=0.0, missing=0, default=0), [AGE])
    assert root_p_values(model)[1] == pytest.approx(chisquare([3, 0], [1.5, 1.5]).pvalue)
    assert root_p_values(tree_of(Node([5, 0]), [AGE]))[0] == 1.0


def test_data_is_plain_and_equal_in_both_styles():
    nested, lines = (tree_rules(iris(), IRIS.target_names, style=style) for style in ("nested", "lines"))
    assert json.loads(json.dumps(nested.data())) == lines.data()
    assert lines.data()[0]["conditions"] == [
        {"column": "petal width", "words": "0.8 < petal width ≤ 1.75", "missing": True}
        | {"above": pytest.approx(0.8), "at_most": 1.75}
    ]
    assert sum(rule["support"] for rule in lines.data()) == 150
    assert sum(rule["share"] for rule in lines.data()) == pytest.approx(1)
    assert len(lines) == 3
    for seed in range(3):
        json.dumps(tree_rules(random_tree(seed), ["a", "b", "c"]).data())


def test_rules_of_regression_have_a_value_and_no_confidence():
    fitted = DecisionTreeRegressor(max_depth=1).fit(IRIS.data, IRIS.data[:, 0] * 100)
    model = from_sklearn(fitted, NAMES)
    left, right = (f"{value:.6g}" for value in model.value[1:, 0])
    lines = tree_rules(model).text.splitlines()
    assert lines[0].endswith(f": {left} ({model.n_rows[1]} rows)")
    assert lines[1].endswith(f": {right} ({model.n_rows[2]} rows)")
    assert tree_rules(model).data()[0]["confidence"] is None


def test_html_escapes_names_and_shows_every_rule():
    evil = TreeColumn("<script>")
    model = tree_of(split([1, 0], [0, 1], feature=0, threshold=0.5, missing=0, default=0), [evil])
    for style in ("nested", "lines"):
        html = tree_rules(model, ["<b>", "&"], style=style)._repr_html_()
        assert "<script>" not in html
        assert "<b>" not in html
        assert "<script> > 0.5" in unescape(html)


def test_a_tree_a_thousand_deep_needs_no_recursion():
    node = Node([1, 1])
    for level in range(1_500):
        node = Node([1, 1], [node, Node([1, 1])], feature=0, threshold=level + 1.0, missing=0, default=0)
    lines = tree_rules(tree_of(node, [AGE]), ["a", "b"], style="lines").text.splitlines()
    assert len(lines) == 1_501
    assert "IF 1 < age ≤ 2 THEN a" in "\n".join(lines)
    assert len(tree_rules(tree_of(node, [AGE]), ["a", "b"]).text.splitlines()) == 3_000


def test_bad_options_are_named():
    with pytest.raises(ParameterError, match="style is 'prolog'"):
        tree_rules(iris(), IRIS.target_names, style="prolog")
    with pytest.raises(ParameterError, match="max_depth is -1"):
        tree_rules(iris(), IRIS.target_names, max_depth=-1)


def test_large_numbers_are_separated_and_amounts_rounded():
    euros = NumberFormat(",", ".", "€")
    assert [number_text(x, None) for x in (2010.0, 12345.5, -98765.4, 2e9)] == [
        "2010",
        "12,345.5",
        "-98,765.4",
        "2e+09",
    ]
    assert number_text(1234.5, euros) == "1,234.5 €"
    assert [amount_text(x) for x in (21_912.0, -0.012345, 999.6)] == ["21,900", "-0.0123", "1,000"]
    assert amount_text(21_912.0, euros) == "21,900 €"
    assert amount_text(12.3, DateFormat()) == "12.3 days"
