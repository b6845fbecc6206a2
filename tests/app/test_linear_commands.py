"""Linear support vector machines on the command line: C searched along its path; dense, sparse, numbers estimated."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.app.printed import said_by
from typer.testing import Result

import margrove
from margrove.app.choose import search as searching
from margrove.app.estimate.classes import CLASSES
from margrove.app.estimate.numbers import NUMBERS
from margrove.app.options.table import TablePreparation
from margrove.explanation import InputColumn, Inputs, Weights

Run = Callable[..., Result]


@pytest.fixture
def people(folder: Path) -> str:
    """Numbers, a category and gaps, with noise; the pay follows age and trade."""
    rng = np.random.default_rng(0)
    lines = ["age,trade,noise,pay,is_rich"]
    for _ in range(200):
        age, trade = rng.uniform(20, 60), rng.choice(["baker", "smith", "clerk"])
        pay = 500_000 + 10_000 * age + (200_000 if trade == "smith" else 0) + rng.normal(0, 30_000)
        is_rich = "yes" if pay > 950_000 else "no"
        shown = "" if rng.random() < 0.05 else f"{age:.1f}"
        lines.append(f"{shown},{trade},{rng.normal():.3f},{pay:.0f},{is_rich}")
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    return "people.csv"


@pytest.fixture
def sparse(folder: Path) -> str:
    """A LIBSVM file: many columns, few of them in a row; the first ones tell, on scales far apart."""
    rng = np.random.default_rng(1)
    lines = []
    for _ in range(150):
        columns = np.sort(rng.choice(np.arange(1, 301), 12, replace=False))
        values = rng.uniform(0.5, 1.5, 12)
        label = 1 if values[columns % 2 == 0].sum() > values[columns % 2 == 1].sum() else -1
        lines.append(f"{label} " + " ".join(f"{j}:{v:.4f}" for j, v in zip(columns, values, strict=True)))
    (folder / "rows.libsvm").write_text("\n".join(lines) + "\n")
    return "rows.libsvm"


def test_c_is_searched_along_its_path_and_estimated_on_other_rows(run: Run, people: str) -> None:
    result = run("train", people, "--target", "is_rich", "--without", "pay", "--model", "linear")
    said = said_by(result)
    assert "Learner: linear (the widest margin, with a flat boundary)" in said
    assert "Searching C by accuracy for at most 1 min" in said
    assert "11 cells, each scored on 5 folds of 200 rows: C 0.001 … 100 (11 values)" in said
    assert "gamma" not in said
    assert "(nested cross-validation, 5 rounds: each searches and trains on the other rows" in said
    assert "Certificate holds" in said
    assert "yes rather than no: high age (" in said
    model = margrove.load("people.margrove")
    assert isinstance(model[-1], margrove.LinearSVC)
    assert run("certify", "people.margrove", people).exit_code == 0


def test_the_best_c_is_that_of_the_library(run: Run, people: str) -> None:
    words = ["--target", "is_rich", "--without", "pay", "--model", "linear", "--folds", "0", "--json"]
    record = json.loads(run("train", people, *words).stdout)
    table = margrove.read_table(people, target="is_rich").without("pay")
    X, y = margrove.TableEncoder().fit_transform(table), table.labels()
    splits = CLASSES.split(y, 5, 0)
    search = margrove.LinearSVCCV(cv=splits, random_state=0).fit(X, y)
    scores = {cell["C"]: cell["score"] for cell in record["search"]["cells"]}
    wanted = dict(zip(search.cv_results_["param_C"].tolist(), search.cv_results_["mean_test_score"], strict=True))
    assert scores.keys() == wanted.keys()
    assert list(scores.values()) == pytest.approx(list(wanted.values()))
    assert record["search"]["searched"] == ["C"]
    assert record["search"]["gammas"] == []
    assert record["parameters"]["C"] == record["search"]["best"]["C"]


@pytest.mark.parametrize(("words", "C"), [(["--param", "C=0.5"], 0.5), (["--budget", "0"], 1.0)])
def test_without_a_search_c_is_as_typed_or_as_by_default(run: Run, people: str, words: list[str], C: float) -> None:
    said = said_by(run("train", people, "--target", "is_rich", "--model", "linear", "--folds", "2", *words))
    assert "Searching" not in said
    assert margrove.load("people.margrove")[-1].get_params()["C"] == C


@pytest.mark.parametrize(
    "params",
    [
        ["loss=hinge"],
        ["penalty=l1"],
        ["regularize_intercept=false"],
        ["fit_intercept=false"],
        ["class_weight=balanced"],
        ["solver=newton", "tol=1e-08"],
    ],
)
def test_parameters_hold_in_the_search_and_in_the_fit(run: Run, people: str, params: list[str]) -> None:
    words = [word for param in params for word in ("--param", param)]
    result = run("train", people, "--target", "is_rich", "--model", "linear", "--folds", "2", *words)
    assert "Certificate holds" in said_by(result)
    assert "cells were scored in" not in result.stdout
    name, _, value = params[0].partition("=")
    assert str(margrove.load("people.margrove")[-1].get_params()[name]).lower() == value


def test_show_prints_solver_gap_weights_and_margin(run: Run, people: str) -> None:
    run("train", people, "--target", "is_rich", "--without", "pay", "--model", "linear", "--param", "C=0.1")
    said = said_by(run("show", "people.margrove"))
    learner = margrove.load("people.margrove")[-1]
    assert f"solved by {learner.solver_}: the objective is within " in said
    assert f"width of the margin: {2 / np.linalg.norm(learner.coef_):.4g} (2/‖w‖" in said
    assert "yes rather than no: " in said
    assert "trade is smith (" in said
    record = json.loads(run("show", "people.margrove", "--json").stdout)["solve"]
    assert record["solver"] == learner.solver_
    assert record["gap"] <= learner.tol
    assert record["margins"] == pytest.approx([2 / np.linalg.norm(learner.coef_)])


def test_show_prints_the_weights_that_train_printed(run: Run, people: str) -> None:
    words = ["--target", "is_rich", "--without", "pay", "--model", "linear", "--param", "C=1", "--folds", "0"]
    trained = said_by(run("train", people, *words)).partition("What the model learned")[2].partition("Certificate ")[0]
    shown = said_by(run("show", "people.margrove")).partition("What the model learned")[2].partition("Certificate ")[0]
    assert "In parentheses: the weight per standard deviation" in trained
    assert shown.strip() == trained.strip()


def test_show_has_no_solve_of_other_learners(run: Run, model: str) -> None:
    assert json.loads(run("show", model, "--json").stdout)["solve"] is None


def test_several_classes_have_several_margins(run: Run) -> None:
    assert run("train", "--model", "linear", "--param", "C=1", "--folds", "0").exit_code == 0
    said = said_by(run("show", "penguins.margrove"))
    assert "width of the 3 margins: " in said
    assert "Gentoo: " in said


def test_one_machine_for_all_classes_has_a_score_for_each(run: Run) -> None:
    words = ["--param", "multi_class=crammer_singer", "--param", "C=0.1", "--folds", "0"]
    assert run("train", "--model", "linear", *words).exit_code == 0
    rows = list(csv.reader(run("predict", "penguins.margrove", "--scores").stdout.splitlines()))
    assert rows[0] == ["species", "score Adelie", "score Chinstrap", "score Gentoo"]
    assert all(len(row) == 4 for row in rows)
    scores = np.array([row[1:] for row in rows[1:]], dtype=float)
    assert [rows[0][1 + j].removeprefix("score ") for j in scores.argmax(axis=1)] == [row[0] for row in rows[1:]]


def test_sparse_file_is_not_scaled(run: Run, sparse: str) -> None:
    said = said_by(run("train", sparse, "--model", "linear", "--folds", "3"))
    assert "The columns are sparse and are not scaled." in said
    assert "Certificate holds" in said
    model = margrove.load("rows.margrove")
    table = margrove.read_table(sparse)
    encoded = model[0].transform(table)
    kept = table.select([column["name"] for column in model[0].columns_])
    assert abs(encoded - kept.sparse).max() == 0
    assert run("certify", "rows.margrove", sparse).exit_code == 0
    assert "Wrote 150 predictions" in said_by(run("predict", "rows.margrove", sparse, "-o", "out.csv"))
    assert "In parentheses: the weight per standard deviation, relative to the largest" in said_by(
        run("show", "rows.margrove")
    )


def test_other_learners_scale_a_sparse_file(run: Run, sparse: str) -> None:
    said = said_by(run("train", sparse, "--model", "basic", "--folds", "0"))
    assert "not scaled" not in said
    assert margrove.load("rows.margrove")[0].standardise is True
    assert TablePreparation().is_scaled


@pytest.mark.parametrize("words", [[], ["--task", "regress"]])
def test_numbers_are_predicted_whatever_their_unit(run: Run, people: str, words: list[str]) -> None:
    result = run("train", people, "--target", "pay", "--without", "is_rich", "--model", "linear", *words)
    said = said_by(result)
    assert "(regression)" in said
    assert "do not depend on the unit of the target." in said
    assert "The prediction is higher with: high age (1.00)" in said
    assert "11 cells, each scored on 5 folds of 200 rows: C 0.001 … 100 (11 values)" in said
    assert "These scores were used to choose the cell, so they are too optimistic; the errors below are not." in said
    assert "(nested cross-validation, 5 rounds: each searches and trains on the other rows" in said
    assert ", 95 % interval " in said
    assert "Certificate holds" in said
    learner = margrove.load("people.margrove")[-1]
    assert type(learner) is margrove.LinearSVR
    record = json.loads(run("predict", "people.margrove", people, "--json").stdout)
    assert record["r2"] > 0.9
    assert run("certify", "people.margrove", people).exit_code == 0
    said = said_by(run("show", "people.margrove"))
    assert "solved by " in said
    assert "margin" not in said.partition("Certificate")[0]


def test_the_best_c_of_a_regression_is_that_of_the_library(run: Run, people: str) -> None:
    words = ["--target", "pay", "--without", "is_rich", "--model", "linear", "--folds", "0", "--json"]
    record = json.loads(run("train", people, *words).stdout)
    table = margrove.read_table(people, target="pay").without("is_rich")
    X, y = margrove.TableEncoder().fit_transform(table), table.labels()
    splits = NUMBERS.split(y, 5, 0)
    search = margrove.LinearSVRCV(
        cv=splits, loss="squared_epsilon_insensitive", regularize_intercept=False, random_state=0
    ).fit(X, y)
    assert [cell["C"] for cell in record["search"]["cells"]][:11] == pytest.approx(search.cv_results_["param_C"])
    np.testing.assert_allclose(
        [cell["score"] for cell in record["search"]["cells"]][:11], search.cv_results_["mean_test_score"], atol=1e-6
    )
    assert record["parameters"]["C"] == record["search"]["best"]["C"]
    assert record["search"]["best"]["score"] >= search.best_score_ - 5e-4  # those that read the same are equal
    assert record["estimate"]["method"] == "none"


def test_a_c_that_was_typed_and_no_budget_are_not_searched(run: Run, people: str) -> None:
    words = ["--target", "pay", "--without", "is_rich", "--model", "linear", "--folds", "2"]
    for more in (["--param", "C=1"], ["--budget", "0"]):
        said = said_by(run("train", people, *words, *more))
        assert "Searching" not in said
        assert "(2-fold cross-validation: each round trains on the other rows" in said
        assert margrove.load("people.margrove")[-1].C == 1


def test_a_regression_short_of_time_is_held_out(run: Run, people: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("margrove.app.choose.nested_search._SPARE", 1e9)
    words = ["--target", "pay", "--without", "is_rich", "--model", "linear", "--json"]
    record = json.loads(run("train", people, *words).stdout)
    assert record["estimate"]["method"] == "hold-out"
    assert record["estimate"]["mean_absolute_error"] < record["estimate"]["baseline_mean_absolute_error"]
    assert "a final hold-out of 40 rows" in said_by(run("train", people, *words[:-1]))


def test_regression_worse_than_the_median_is_reported(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(5)
    lines = ["a,b,pay"]
    for row in range(150):
        a, b = rng.normal(size=2)
        lines.append(f"{a:.3f},{b:.3f},{np.exp(3 * rng.normal()) if row % 3 else 0.0:.4f}")
    (folder / "skewed.csv").write_text("\n".join(lines) + "\n")
    said = said_by(run("train", "skewed.csv", "--target", "pay", "--model", "linear", "--budget", "0"))
    assert "It is no better than predicting the mean." in said


def test_compare_compares_what_estimates_numbers(run: Run, people: str) -> None:
    words = ["compare", people, "--target", "pay", "--without", "is_rich", "--folds", "3"]
    said = said_by(run(*words))
    assert "(regression)" in said
    assert "Best: linear, R² 0.9" in said
    assert "always predicting the median has error" in said
    record = json.loads(run(*words, "--task", "regress", "--json").stdout)
    assert [each["learner"] for each in record["learners"]] == ["linear", "tree", "adaboost", "forest"]
    assert record["best"] == "linear"
    for each in record["learners"]:
        assert each["certificate"]["holds"]
        assert each["cross_validation"]["folds"] == 3
    assert "Errors: not estimated" in said_by(run(*words[:-1], "0"))


def test_compare_treats_numbers_as_classes_on_request(run: Run, folder: Path) -> None:
    lines = ["a,stars", *(f"{row / 7:.3f},{row % 2}" for row in range(40))]
    (folder / "stars.csv").write_text("\n".join(lines) + "\n")
    record = json.loads(run("compare", "stars.csv", "--task", "classify", "--folds", "2", "--json").stdout)
    assert "svm" in [each["learner"] for each in record["learners"]]
    refused = run("compare", "stars.csv", "--task", "guess")
    assert "--task is 'guess'; it must be one of classify, regress" in " ".join(refused.output.split())


def test_unsquared_loss_can_be_requested(run: Run, people: str) -> None:
    words = ["--param", "loss=epsilon_insensitive", "--param", "epsilon=1000", "--param", "C=100000", "--folds", "0"]
    result = run("train", people, "--target", "pay", "--without", "is_rich", "--model", "linear", *words)
    assert "unit and the zero" not in said_by(result)
    learner = margrove.load("people.margrove")[-1]
    assert (learner.loss, learner.regularize_intercept) == ("epsilon_insensitive", False)


def test_weights_of_a_category_are_compared_with_each_other() -> None:
    inputs = [InputColumn("x"), InputColumn("two", "u"), InputColumn("two", "v"), *(InputColumn("k", c) for c in "abc")]
    coef = [[1.0, -5.0, -4.0, 7.0, 7.0, 10.0], [1.0, 3.0, 2.5, -6.0, -6.0, -6.0], [0.0, 2.0, 2.0, 1.0, 1.0, 1.0]]
    model = SimpleNamespace(coef_=np.array(coef), classes_=np.array(["p", "q", "r"]))
    first, second, third = Weights(model).data(lambda: Inputs(inputs)).machines
    assert [(fact.description, fact.weight) for fact in first.evidence] == [
        ("k is c", 1.0),
        ("high x", 0.5),
        ("two is v", 0.5),
        ("k is a", -0.5),
        ("k is b", -0.5),
    ]
    assert [(fact.description, fact.weight) for fact in second.evidence] == [("high x", 1.0), ("two is u", 0.5)]
    assert third.evidence == ()  # intercepts only


def test_text_of_a_review_is_estimated(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(2)
    lines = ["body,stars"]
    for _ in range(120):
        good, bad = rng.integers(0, 4), rng.integers(0, 4)
        words = rng.permutation(["good"] * good + ["bad"] * bad + list(rng.choice(["tea", "pot", "cup"], 4)))
        lines.append(f"{' '.join(words)},{3 + 0.5 * (good - bad) + rng.normal(0, 0.1):.2f}")
    (folder / "stars.csv").write_text("\n".join(lines) + "\n")
    said = said_by(run("train", "stars.csv", "--text", "body", "--model", "linear"))
    assert "'good' in body (" in said
    assert "; lower with: 'bad' in body (" in said


def test_compare_has_the_linear_machine_and_mentions_the_search_of_train(run: Run, people: str) -> None:
    said = said_by(run("compare", people, "--target", "is_rich", "--without", "pay", "--folds", "2"))
    assert (
        "linear and svm are compared with default parameters; `margrove train` searches C, and gamma for svm." in said
    )


def test_many_rows_are_searched_on_a_sample(run: Run, people: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MOST_ROWS_LINEAR", 80)
    said = said_by(run("train", people, "--target", "is_rich", "--model", "linear", "--folds", "0"))
    assert "on a sample of 80 rows, stratified by class" in said
    assert "rows drawn from 200" in said
