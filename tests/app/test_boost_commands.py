"""AdaBoost on the command line: tables as they are, rounds that can be read, files that certify."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.app.printed import said_by
from typer.testing import Result

import margrove
from margrove.app.models import learned
from margrove.app.options.menu import choices
from margrove.app.screen.progress import in_words
from margrove.run.progress import Progress

Run = Callable[..., Result]
FEW = ["--folds", "0", "--param", "n_jobs=1", "--param", "n_estimators=12"]
STUMPS = [*FEW, "--param", "estimator__max_depth=1"]


@pytest.fixture
def outings(folder: Path) -> str:
    """Text, truth values, numbers, missing cells, and noise, so that no tree is perfect."""
    rng = np.random.default_rng(0)
    lines = ["sky,is_warm,wind,out"]
    for _ in range(150):
        sky, warm, wind = rng.choice(["clear", "cloudy", "wet"]), rng.random() < 0.5, rng.uniform(0, 9)
        goes = (sky == "cloudy" or (sky == "clear" and wind < 5)) != (rng.random() < 0.1)
        shown = "" if rng.random() < 0.1 else f"{wind:.1f}"
        lines.append(f"{'' if rng.random() < 0.1 else sky},{str(warm).lower()},{shown},{'go' if goes else 'stay'}")
    (folder / "outings.csv").write_text("\n".join(lines) + "\n")
    return "outings.csv"


@pytest.fixture
def stumps(run: Run, outings: str) -> str:
    said_by(run("train", outings, "--model", "adaboost", *STUMPS))
    return "outings.margrove"


def test_trees_are_boosted_on_the_table_itself_and_defaults_are_printed(run: Run, outings: str) -> None:
    said = said_by(run("train", outings, "--model", "adaboost", "--folds", "2"))
    assert "missing cells in 2 columns, handled directly" in said
    assert choices()["adaboost"].remark in said
    assert "Certificate holds" in said
    assert "trees vote, each of at most" in said
    assert "margrove show outings.margrove --rules" in said
    model = margrove.load("outings.margrove")
    assert isinstance(model, margrove.AdaBoostClassifier)
    assert model.target_ == "out"
    assert model.model_.grove.columns[0].levels == ("clear", "cloudy", "wet")
    for name, value in choices()["adaboost"].boosted.items():
        assert model.estimator.get_params()[name] == value
    for name, value in choices()["adaboost"].defaults.items():
        assert model.get_params()[name] == value


def test_parameters_of_the_vote_and_of_its_trees_can_be_set(run: Run, outings: str) -> None:
    settings = ["--param", "learning_rate=0.5", "--param", "early_stopping=true", "--seed", "3"]
    said_by(run("train", outings, "--model", "adaboost", *STUMPS, *settings))
    model = margrove.load("outings.margrove")
    assert (model.n_estimators, model.learning_rate, model.early_stopping, model.random_state) == (12, 0.5, True, 3)
    assert model.estimator.max_depth == 1
    for words in ("estimator__max_depth=2", "early_stopping=true", "n_estimators=5"):
        said = said_by(run("train", outings, "--model", "adaboost", "--folds", "0", "--param", words))
        assert choices()["adaboost"].remark not in said
    for words, message in (
        ("estimator__max_depth=-1", "max_depth is -1"),
        ("n_estimators=0", "n_estimators is 0"),
        ("depth=2", "adaboost has no parameter 'depth'"),
        ("estimator=tree", "estimator is 'tree'; it must be a learner"),
    ):
        refused = run("train", outings, "--model", "adaboost", "--param", words)
        assert refused.exit_code == 2
        assert message in refused.stderr


def test_the_rounds_are_a_table_of_tests_errors_and_alphas(run: Run, stumps: str) -> None:
    model = margrove.load(stumps)
    lines = [" ".join(line.split()) for line in run("show", stumps).stdout.splitlines()]
    told = learned(model).vote
    assert told is not None
    for t, voter in enumerate(told.voters[:10]):
        stump = model.estimators_[t].rules()
        assert voter.test.partition(":")[0] == str(stump).partition("\n")[0].removeprefix("if ").rpartition(":")[0]
        line = f"{t + 1} {voter.test} {model.estimator_errors_[t]:.3g} {model.alphas_[t]:.3g}"
        assert line in lines
    assert f"… and {model.n_estimators_ - 10} more" in lines
    said = " ".join(lines)
    assert "predicts 'out': go, stay" in said
    assert "sky (category), is_warm (boolean), wind" in said
    assert "estimator=DecisionTreeClassifier(" in said
    assert "n_estimators=12" in said
    assert "estimator__" not in said
    assert "All rules: margrove show --rules MODEL" in said


def test_stump_is_printed_with_both_predictions(run: Run, stumps: str) -> None:
    model = margrove.load(stumps)
    table = margrove.read_table("outings.csv")
    first = learned(model).vote.voters[0].test  # type: ignore[union-attr]
    answers = model.estimators_[0].nodes_.value.argmax(axis=1)[1:]
    assert first.endswith(f": {model.classes_[answers[0]]}, else {model.classes_[answers[1]]}")
    assert set(model.estimators_[0].predict(table)) == set(model.classes_[answers])


def test_the_document_has_every_round(run: Run, stumps: str) -> None:
    model = margrove.load(stumps)
    record = json.loads(run("show", stumps, "--json").stdout)
    vote = record["learned"]["vote"]
    assert [voter["alpha"] for voter in vote["voters"]] == model.alphas_.tolist()
    assert [voter["vote"] for voter in vote["voters"]] == model.estimator_weights_.tolist()
    assert [voter["error"] for voter in vote["voters"]] == model.estimator_errors_.tolist()
    assert sum(vote["importances"].values()) == pytest.approx(1)
    assert "max_depth=1" in record["parameters"]["estimator"]
    assert "\n" not in record["parameters"]["estimator"]
    trained = json.loads(run("train", "outings.csv", "--model", "adaboost", *STUMPS, "--json").stdout)
    assert trained["learned"]["vote"] == vote
    assert trained["status"] == str(model.status_)


def test_rules_are_those_of_every_tree(run: Run, outings: str) -> None:
    said_by(run("train", outings, "--model", "adaboost", *FEW))
    model = margrove.load("outings.margrove")
    for option, style in (("--rules", "nested"), ("--lines", "lines")):
        printed = run("show", "outings.margrove", option).stdout
        for tree in model.estimators_:
            rules = str(tree.rules(style=style)).splitlines()
            assert "\n".join(f"    {line}" for line in rules) in printed
        assert sum(line.startswith("round ") for line in printed.splitlines()) == model.n_estimators_
        record = json.loads(run("show", "outings.margrove", option, "--json").stdout)
        assert [each["rules"] for each in record["rounds"]] == [tree.rules().data() for tree in model.estimators_]
    refused = run("export", "outings.margrove", "--to", "sql")
    assert refused.exit_code == 2
    assert "--to sql is for a single tree, and AdaBoostClassifier has" in refused.stderr


def test_removed_rounds_are_reported(run: Run, outings: str) -> None:
    words = ["--param", "early_stopping=true", "--param", "n_estimators=60", "--param", "n_iter_no_change=5"]
    said = said_by(run("train", outings, "--model", "adaboost", "--folds", "0", *words))
    model = margrove.load("outings.margrove")
    given_up = model.rounds_.n_rounds - model.n_estimators_
    assert given_up == 5
    assert "5 later rounds did not improve the score on rows held out and were removed" in said
    assert "status 'early_stopped': nothing to do" in said


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_are_shares_of_the_votes_and_the_largest_is_predicted(run: Run, folder: Path, classes: int) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 2))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=90), [0.0, 0.8][: classes - 1])
    rows = "".join(f"{u:.3f},{v:.3f},{'abc'[k]}\n" for (u, v), k in zip(X, y, strict=True))
    (folder / "points.csv").write_text("u,v,kind\n" + rows)
    said_by(run("train", "points.csv", "--model", "adaboost", *STUMPS))
    result = run("predict", "points.margrove", "points.csv", "--scores")
    head, *lines = csv.reader(io.StringIO(result.stdout))
    assert head == ["kind", *(f"votes {label}" for label in "abc"[:classes])]
    shares = np.array([[float(cell) for cell in line[1:]] for line in lines])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    model, table = margrove.load("points.margrove"), margrove.read_table("points.csv")
    trees = np.array([tree.predict(table) for tree in model.estimators_])
    expected = [
        model.estimator_weights_ @ (trees == label) / model.estimator_weights_.sum() for label in model.classes_
    ]
    np.testing.assert_allclose(shares, np.transpose(expected), atol=1e-12)
    assert [line[0] for line in lines] == model.predict(table).tolist()


def test_certify_goes_through_the_rounds_again_and_sees_what_was_disturbed(run: Run, stumps: str, outings: str) -> None:
    assert run("certify", stumps, outings).exit_code == 0
    model = margrove.load(stumps)
    model.rounds_.error[0] *= 1.01
    margrove.save(model, stumps)
    disturbed = run("certify", stumps, outings)
    assert disturbed.exit_code == 1
    assert "weighted error of each learner" in disturbed.stdout


def test_rows_held_out_are_drawn_again_to_certify(run: Run, outings: str) -> None:
    said_by(run("train", outings, "--model", "adaboost", *STUMPS, "--param", "early_stopping=true", "--seed", "7"))
    assert run("certify", "outings.margrove", outings).exit_code == 0


def test_compare_has_a_line_for_the_vote(run: Run, outings: str) -> None:
    record = json.loads(run("compare", outings, "--folds", "2", "--json").stdout)
    (line,) = [learner for learner in record["learners"] if learner["learner"] == "adaboost"]
    assert line["failure"] is None
    assert line["certificate"]["holds"] is True
    assert line["size"].endswith("trees")
    assert line["cross_validation"]["mean"] > 0.75


def test_a_table_of_a_few_rows_can_be_boosted(run: Run, flowers: str) -> None:
    said = said_by(run("train", flowers, "--model", "adaboost", "--folds", "2"))
    assert "perfect_learner" in said
    assert "1 tree votes" in said


def test_trees_of_numbers_that_python_saved_are_shown_predict_and_certify(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(0)
    rows = "".join(f"{'ab'[i % 2]},{i},{i + 3 * rng.normal():.2f}\n" for i in range(40))
    (folder / "lengths.csv").write_text("kind,mass,length\n" + rows)
    table = margrove.read_table("lengths.csv", target="length")
    model = margrove.AdaBoostRegressor(n_estimators=5, random_state=0).fit(table, table.target.values)
    margrove.save(model, "lengths.margrove")
    predicted = run("predict", "lengths.margrove", "lengths.csv").stdout.splitlines()
    assert [float(cell) for cell in predicted[1:]] == model.predict(table).tolist()
    assert run("certify", "lengths.margrove", "lengths.csv").exit_code == 0
    said = said_by(run("show", "lengths.margrove"))
    assert "predicts the number 'length'" in said
    assert "5 trees vote" in said
    assert run("show", "lengths.margrove", "--rules").stdout.count("round ") == 5
    assert run("predict", "lengths.margrove", "lengths.csv", "--scores").exit_code == 2


@pytest.fixture
def lengths(folder: Path) -> str:
    """A quantity, a category, missing cells, and a count that repeats."""
    rng = np.random.default_rng(0)
    lines = ["kind,mass,legs,length"]
    for i in range(120):
        kind, mass = "abcdefgh"[i % 8], rng.uniform(1, 9)
        lines.append(
            f"{'' if i % 11 == 0 else kind},{mass:.2f},{i % 3},{mass**2 + 5 * (kind > 'd') + rng.normal():.2f}"
        )
    (folder / "lengths.csv").write_text("\n".join(lines) + "\n")
    return "lengths.csv"


def test_a_quantity_is_estimated_by_a_vote_of_regression_trees(run: Run, lengths: str) -> None:
    said = said_by(run("train", lengths, "--model", "adaboost", "--folds", "3"))
    numbers = choices()["adaboost"].regression
    assert numbers is not None
    assert "(regression)" in said
    assert numbers.remark in said
    assert "R² 0.9" in said
    assert "Certificate holds" in said
    assert "50 trees vote" in said
    model, table = margrove.load("lengths.margrove"), margrove.read_table(lengths, target="length")
    assert isinstance(model, margrove.AdaBoostRegressor)
    assert isinstance(model.estimator, margrove.DecisionTreeRegressor)
    assert (model.n_estimators, model.estimator.max_depth, model.random_state) == (50, 6, 0)
    predicted = run("predict", "lengths.margrove", lengths).stdout.splitlines()
    assert [float(cell) for cell in predicted[1:]] == model.predict(table).tolist()
    assert "R² 1.000" in said_by(run("predict", "lengths.margrove", lengths, "-o", "estimates.csv"))
    assert "predicts the number 'length'" in said_by(run("show", "lengths.margrove"))
    assert run("show", "lengths.margrove", "--rules").stdout.count("round ") == 50
    assert run("certify", "lengths.margrove", lengths).exit_code == 0


def test_a_vote_of_numbers_takes_its_task_its_seed_and_its_parameters(run: Run, lengths: str) -> None:
    options = ("--model", "adaboost", "--target", "legs", "--task", "regress", "--folds", "0", "--seed", "3")
    settings = ("--param", "n_estimators=4", "--param", "loss=square", "--param", "estimator__max_depth=2")
    record = json.loads(run("train", lengths, *options, *settings, "--json").stdout)
    assert record["table"]["task"] == "regress"
    assert record["estimate"]["method"] == "none"
    assert record["learned"]["size"] <= 4
    model = margrove.load("lengths.margrove")
    assert (model.loss, model.random_state, model.estimator.max_depth) == ("square", 3, 2)
    assert isinstance(model, margrove.AdaBoostRegressor)
    said_by(run("train", lengths, "--model", "adaboost", "--target", "legs", *FEW))
    assert isinstance(margrove.load("lengths.margrove"), margrove.AdaBoostClassifier)


@pytest.mark.parametrize(
    ("param", "words"),
    [
        ("early_stopping=true", "adaboost has no parameter 'early_stopping'"),
        ("learning_rate=-7", "learning_rate is -7; it must be a number > 0"),
        ("estimator__significance=0.05", "--param estimator__significance: .* may lack levels of the category 'kind'"),
    ],
)
def test_what_a_vote_of_numbers_cannot_do_is_refused_before_any_work(
    run: Run, lengths: str, param: str, words: str
) -> None:
    refused = run("train", lengths, "--model", "adaboost", "--task", "regress", "--param", param)
    assert refused.exit_code == 2
    assert re.search(words, " ".join(refused.stderr.split()))
    assert not Path("lengths.margrove").exists()


def test_without_categories_the_trees_of_a_vote_of_numbers_may_be_tested(run: Run, lengths: str) -> None:
    options = (
        "--folds",
        "0",
        "--without",
        "kind",
        "--param",
        "n_estimators=5",
        "--param",
        "estimator__significance=0.05",
    )
    said_by(run("train", lengths, "--model", "adaboost", *options))
    assert run("certify", "lengths.margrove", lengths).exit_code == 0


def test_the_bar_of_a_vote_counts_rounds() -> None:
    report = Progress("boost", done=12, total=200, objective=0.41234, objective_name="exponential loss")
    assert in_words(report) == "12 of 200 rounds, exponential loss 0.412"
