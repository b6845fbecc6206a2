"""Reports of odd tables: sparse, wide, tiny, of many classes, of text, of cells that training did not know."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from tests.app.report_models import CLASSIFIERS, fitted, one_class_model

from margrove import SVC, AdaBoostClassifier, DecisionTreeClassifier, LinearSVC, TableEncoder, load_penguins
from margrove.app.report.html import to_html
from margrove.app.report.markdown import to_markdown
from margrove.app.report.writing import plain, report_of
from margrove.data import Column, Table

Case = Callable[[], tuple[Any, Table]]


def of_arrays(X: Any, y: Any, **options: Any) -> Table:
    names = [f"x{j}" for j in range(X.shape[1])]
    return Table(block=X, names=names, target=Column("y", "numeric", np.asarray(y, np.float64)), **options)


def clouds(n: int = 120, d: int = 4, k: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    return rng.normal(size=(n, d)) + y[:, None] * np.linspace(1, 0, d), y


def of_an_array() -> tuple[Any, Table]:
    X, y = clouds()
    return SVC().fit(X, y), of_arrays(X, y)


def sparse(learner: Any) -> Case:
    def make() -> tuple[Any, Table]:
        X = sp.random(150, 800, density=0.02, format="csr", random_state=0)
        y = (np.asarray(X[:, :60].sum(axis=1)).ravel() > 0.3).astype(int)
        return learner.fit(X, y), of_arrays(X, y, absent_is_zero=True)

    return make


def wide() -> tuple[Any, Table]:
    X, y = clouds(60, 300, 2)
    return SVC().fit(X, y), of_arrays(X, y)


def of_forty_classes() -> tuple[Any, Table]:
    X, y = clouds(400, 3, 40)
    return DecisionTreeClassifier(max_depth=5).fit(X, y), of_arrays(X, y)


def of_three_rows() -> tuple[Any, Table]:
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 1])
    return DecisionTreeClassifier().fit(X, y), of_arrays(X, y)


def of_one_row() -> tuple[Any, Table]:
    X, y = clouds()
    return SVC().fit(X, y), of_arrays(X[:1], y[:1])


def of_one_class() -> tuple[Any, Table]:
    X, y = clouds()
    return SVC().fit(X, y), of_arrays(X[y == 1], y[y == 1])


def of_text() -> tuple[Any, Table]:
    texts = ("awful bad", "bad bad", "bad pot", "good good pot", "good tea", "really good")
    codes = np.arange(60, dtype=np.int32) % 6
    table = Table([Column("body", "category", codes, texts), Column("stars", "numeric", np.sin(np.arange(60.0)))])
    table = table.with_target(Column("liked", "boolean", (codes >= 3).astype(np.int8)))
    return make_pipeline(TableEncoder(text="body"), LinearSVC()).fit(table, table.labels()), table


def of_nothing_but_gaps() -> tuple[Any, Table]:
    penguins = load_penguins()
    empty = [
        Column(c.name, c.kind, np.full(len(c), np.nan if c.kind == "numeric" else -1, c.values.dtype), c.levels)
        for c in penguins.columns
    ]
    return fitted(CLASSIFIERS["svm"](), penguins), Table(empty, target=penguins.target)


def a_vote_of_machines() -> tuple[Any, Table]:
    X, y = clouds()
    return AdaBoostClassifier(SVC(), n_estimators=2).fit(X, y), of_arrays(X, y)


CASES: list[Case] = [
    of_an_array,
    sparse(LinearSVC()),
    sparse(SVC()),
    sparse(DecisionTreeClassifier(max_depth=3)),
    wide,
    of_forty_classes,
    of_three_rows,
    of_one_row,
    of_one_class,
    of_text,
    of_nothing_but_gaps,
    a_vote_of_machines,
]


@pytest.mark.parametrize("case", CASES)
def test_every_format_can_be_written_of_an_odd_table(case):
    model, table = case()
    report = report_of(model, table)
    page, text = to_html(report), to_markdown(report)
    assert json.loads(json.dumps(plain(report.to_dict()), allow_nan=False))["summary"]["table_rows"] == table.n_rows
    for section in report.sections:
        assert f'id="{section.key}"' in page
        assert f"## {section.title}" in text


def test_words_of_a_text_have_importances_and_effects():
    record = report_of(*of_text()).to_dict()
    assert {"'bad' in body", "'good' in body"} & {
        each["column"] for each in record["examples"]["examples"][0]["contributions"]
    }


def test_unknown_levels_are_warned_of_in_the_report():
    penguins = load_penguins()
    strange = [Column(c.name, c.kind, c.values, tuple(f"{level}!" for level in c.levels)) for c in penguins.columns]
    report = report_of(fitted(CLASSIFIERS["tree"](), penguins), Table(strange, target=penguins.target))
    data = next(section for section in report.details if section.key == "data").data
    assert any("unseen in training: island='Biscoe!'" in words for words in data["warnings"])


def test_a_machine_of_one_class_counts_the_unusual_rows():
    penguins = load_penguins()
    model = one_class_model(penguins)
    n = int((model.predict(penguins.with_target(None)) < 0).sum())
    sentences = [block.text for block in report_of(model, penguins.with_target(None)).first[0].blocks]
    assert f"Of 344 rows {n:,} are unusual." in sentences
