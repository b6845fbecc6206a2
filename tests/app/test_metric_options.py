"""``--metric``, ``--balanced`` and ``--probabilities`` on the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import margrove
from margrove.app.estimate.classes import CLASSES
from margrove.app.estimate.task import Estimate, Predicted
from margrove.app.options.training import Training
from margrove.app.train import _never_predicted
from margrove.data import as_table
from margrove.errors import ParameterError

Run = Callable[..., Any]


@pytest.fixture
def rare(folder: Path) -> str:
    """300 rows, of which 18 are Yes: they lie together, among twice as many others."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    odds = 2.5 * x[:, 0] - 4.5
    answer = np.where(rng.random(300) < 1 / (1 + np.exp(-odds)), "Yes", "No")
    lines = [f"{a:.3f},{b:.3f},{c}" for (a, b), c in zip(x, answer, strict=True)]
    (folder / "rare.csv").write_text("\n".join(["u,v,answer", *lines]) + "\n")
    return "rare.csv"


def document(result: Any) -> dict[str, Any]:
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_rare_class_is_judged_by_balanced_accuracy(run: Run, rare: str) -> None:
    result = run("train", rare, "--model", "linear", "--no-report")
    assert "of the rows are 'Yes': models are judged by balanced accuracy" in " ".join(result.stdout.split())
    assert "Balanced accuracy on unseen rows" in result.stdout
    assert "Accuracy: " in result.stdout
    model = margrove.load("rare.margrove")
    assert model[-1].class_weight == "balanced"
    assert (model.predict(margrove.read_table(rare, target="answer")) == "Yes").sum() > 18


def test_a_class_that_is_never_predicted_is_named_first(run: Run, rare: str) -> None:
    result = run("train", rare, "--model", "basic", "--metric", "accuracy")
    assert "never predicts" not in result.stderr
    result = run(
        "train",
        rare,
        "--model",
        "tree",
        "--metric",
        "accuracy",
        "--param",
        "max_depth=1",
        "--param",
        "min_samples_leaf=140",
    )
    assert "This model never predicts 'Yes'" in result.stderr
    page = run("report", "rare.margrove", rare, "--format", "md", "-o", "-").stdout
    first = page.index("This model never predicts 'Yes'")
    assert first < page.index("It predicts")


@pytest.mark.parametrize("metric", ["f1", "roc_auc", "average_precision", "log_loss", "cost:Yes>No=20"])
def test_every_metric_trains_compares_and_reports(run: Run, rare: str, metric: str) -> None:
    options = ["--metric", metric, "--folds", "3"]
    record = document(run("train", rare, "--model", "linear", *options, "--json"))["estimate"]
    assert record["metric"] == metric
    assert record["mean"] == pytest.approx(np.mean(record["scores"]))
    assert record["low"] <= record["mean"] <= record["high"]
    entries = document(run("compare", rare, *options, "--json"))["learners"]
    shown = run("show", "rare.margrove").stdout
    words = {"f1": "F1", "roc_auc": "ROC AUC", "log_loss": "log loss"}.get(metric, metric.partition(":")[0])
    assert words.replace("_", " ") in shown
    assert any(entry["cross_validation"] for entry in entries)
    assert run("report", "rare.margrove", rare, "--format", "md", "-o", "-").exit_code == 0


def test_auto_chooses_by_the_metric(run: Run, rare: str) -> None:
    record = document(run("train", rare, "--metric", "roc_auc", "--budget", "4s", "--json", "--no-report"))
    scores = [line["score"] for line in record["leaderboard"] if line["score"] is not None]
    assert scores == sorted(scores, reverse=True)
    assert record["estimate"]["measure"] == "ROC AUC"


def test_costs_move_the_boundary(run: Run, rare: str) -> None:
    table = margrove.read_table(rare, target="answer")
    counts = []
    for metric in ("cost:Yes>No=1", "cost:Yes>No=50"):
        run("train", rare, "--model", "linear", "--metric", metric, "--no-report", "--param", "C=1")
        counts.append(int((margrove.load("rare.margrove").predict(table) == "Yes").sum()))
    assert counts[0] < counts[1]


def test_probabilities_are_calibrated_on_request(run: Run, rare: str) -> None:
    refused = run("train", rare, "--model", "adaboost", "--metric", "accuracy", "--no-report")
    assert refused.exit_code == 0
    result = run("predict", "rare.margrove", rare, "--probabilities")
    assert result.exit_code == 2
    assert "has only shares of votes, not calibrated. Train it with --probabilities" in result.stderr
    run("train", rare, "--model", "adaboost", "--metric", "accuracy", "--no-report", "--probabilities")
    lines = run("predict", "rare.margrove", rare, "--probabilities", "--quiet").stdout.splitlines()
    assert lines[0] == "answer,probability No,probability Yes"
    mean = np.mean([float(line.split(",")[2]) for line in lines[1:]])
    share = np.mean(margrove.read_table(rare, target="answer").labels() == "Yes")
    assert mean == pytest.approx(share, abs=0.03)
    assert run("certify", "rare.margrove", rare).exit_code == 0


def test_f1_tunes_the_threshold(run: Run, rare: str) -> None:
    run("train", rare, "--model", "linear", "--metric", "f1", "--no-report", "--param", "C=1")
    learner = margrove.load("rare.margrove")[-1]
    assert learner.tuned_for == "f1:Yes"
    assert learner.held_out_score_[1] >= learner.held_out_score_[0]
    assert run("certify", "rare.margrove", rare).exit_code == 0


def test_numbers_are_judged_by_their_metrics(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    lines = [f"{a:.3f},{3 * a + rng.normal():.3f}" for a in x]
    (folder / "n.csv").write_text("\n".join(["u,size", *lines]) + "\n")
    result = run("train", "n.csv", "--model", "linear", "--metric", "rmse", "--no-report")
    assert "root mean squared error" in result.stdout
    result = run("train", "n.csv", "--model", "linear", "--balanced", "--task", "regress")
    assert "--balanced is about classes, and a number is predicted" in result.stderr


def test_importance_is_measured_by_the_metric(run: Run, rare: str) -> None:
    costs = ["--metric", "cost:Yes>No=20"]
    run("train", rare, "--model", "linear", "--param", "C=1", "--no-report", *costs)
    page = run("report", "rare.margrove", rare, "--format", "md", "-o", "-").stdout
    assert "Without 'u' cost per row rises by" in page
    assert "How much cost per row rises without each column" in page
    run("train", rare, "--model", "linear", "--param", "C=1", "--no-report")
    page = run("report", "rare.margrove", rare, "--format", "md", "-o", "-").stdout
    assert "Without 'u' balanced accuracy falls by" in page
    fell = float(page.partition("Without 'u' balanced accuracy falls by ")[2].partition(" points")[0])
    assert fell > 15  # accuracy falls by less: most rows are No


def test_show_has_the_metric_once(run: Run, rare: str) -> None:
    run("train", rare, "--budget", "3s", "--no-report")
    shown = run("show", "rare.margrove").stdout
    assert shown.count("balanced accuracy") == 2  # above the scores, and before the estimate
    assert "balanced accuracy" in shown.partition("learner")[2].splitlines()[0]


def test_free_text_that_is_left_out_is_not_called_an_identifier(run: Run, folder: Path) -> None:
    lines = [f"a sentence of six words {k},{k % 7},{'yes' if k % 3 else 'no'}" for k in range(40)]
    (folder / "text.csv").write_text("\n".join(["body,size,answer", *lines]) + "\n")
    said = " ".join(run("train", "text.csv", "--model", "basic", "--no-report").stdout.split())
    assert "free text left out: 'body'" in said
    assert "identifier" not in said


def test_small_tables_have_no_learning_curve(run: Run, folder: Path) -> None:
    (folder / "tiny.csv").write_text("\n".join(["x,y", *(f"{k},{'ab'[k % 2]}" for k in range(6))]) + "\n")
    assert "Learning curve" not in run("train", "tiny.csv", "--budget", "5s", "--no-report").stdout


def test_shares_by_class_weight_are_not_called_probabilities(run: Run, rare: str) -> None:
    run("train", rare, "--model", "tree", "--param", "max_depth=2")
    refused = run("predict", "rare.margrove", rare, "--probabilities")
    assert refused.exit_code == 2
    assert "has only shares of rows by class weight, not calibrated. Train it with --probabilities" in refused.stderr
    scores = run("predict", "rare.margrove", rare, "--scores", "--quiet").stdout
    assert scores.startswith("answer,share by weight No,share by weight Yes")
    page = run("report", "rare.margrove", rare, "--format", "md", "-o", "-").stdout
    assert "% 'Yes' by weight" in page
    assert "of the training rows in the same leaf" not in page
    run("train", rare, "--model", "tree", "--param", "max_depth=2", "--probabilities")
    lines = run("predict", "rare.margrove", rare, "--probabilities", "--quiet").stdout.splitlines()
    share = np.mean(margrove.read_table(rare, target="answer").labels() == "Yes")
    assert np.mean([float(line.split(",")[2]) for line in lines[1:]]) == pytest.approx(share, abs=0.03)


def test_training_rows_are_known_although_an_identifier_was_left_out(run: Run, rare: str, folder: Path) -> None:
    lines = (folder / rare).read_text().splitlines()
    names = ["id", *(f"R{i}" for i in range(1, len(lines)))]
    (folder / "named.csv").write_text("\n".join(map(",".join, zip(names, lines, strict=True))))
    run("train", "named.csv", "--model", "tree")
    said = run("predict", "named.margrove", "named.csv", "-o", "out.csv").stdout
    assert "Compared with 'answer' in the table: balanced accuracy" in said
    assert "These are the training rows; on new rows expect balanced accuracy" in said
    (folder / "others.csv").write_text("\n".join([lines[0], *lines[:0:-1]]))
    said = run("predict", "named.margrove", "others.csv", "-o", "out.csv").stdout
    assert "balanced accuracy" in said
    assert "These are the training rows" not in said


def test_a_class_is_named_that_only_the_final_model_never_predicts() -> None:
    labels = np.array(["No"] * 50 + ["Yes"] * 50)
    table = as_table(pd.DataFrame({"x": np.arange(100.0), "y": labels}))
    table = table.with_target(table["y"]).without("y")
    values = np.array(["No"] * 99 + ["Yes"])
    estimate = Estimate(CLASSES, predicted=Predicted(np.arange(100), values, "", None))

    class Constant:
        def predict(self, rows: Any) -> Any:
            return np.full(rows.n_rows, "No")

    class Alike(Constant):
        def predict(self, rows: Any) -> Any:
            return np.where(np.arange(rows.n_rows) == 0, "Yes", "No")

    training = Training("tree", {}, 0, task="classify")
    (warning,) = _never_predicted(training, Constant(), table, estimate)
    assert warning == "This model never predicts 'Yes': it assigns all training rows of this class to others."
    assert _never_predicted(training, Alike(), table, estimate) == []
    often = replace(estimate, predicted=Predicted(np.arange(100), labels, "", None))
    assert _never_predicted(training, Constant(), table, often) == []


def test_a_report_is_judged_by_the_metric_asked_for(run: Run, rare: str) -> None:
    run("train", rare, "--model", "basic", "--metric", "accuracy")
    own, other = (
        run("report", "rare.margrove", rare, "--format", "md", "-o", "-", *more).stdout
        for more in ([], ["--metric", "roc_auc"])
    )
    assert "of rows correctly" in own
    assert "Its ROC AUC is 0." in other
    assert "ROC AUC falls by 0." in other
    refused = run("report", "rare.margrove", rare, "--metric", "mae", "-o", "page.html")
    assert refused.exit_code == 2
    assert "--metric is 'mae', which is of numbers, and the model predicts no numbers" in refused.stderr


def test_a_report_of_a_model_without_a_record_notices_rare_classes(rare: str) -> None:
    table = margrove.read_table(rare, target="answer")
    model = margrove.DecisionTreeClassifier(max_depth=1).fit(table, table.labels())
    page = margrove.report(model, table, format="md")
    assert "Its balanced accuracy is" in page
    assert "so a rare class counts as much as a frequent one" in page
    assert "of rows correctly" in margrove.report(model, table, format="md", metric="accuracy")
    with pytest.raises(ParameterError, match=r"^metric is 'acc'; it must be"):
        margrove.report(model, table, metric="acc")


def test_a_report_and_a_comparison_show_the_metric_of_numbers(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.random(120)
    lines = [f"{a:.3f};{1000 * a + 50 * rng.random():.2f} €".replace(".", ",") for a in x]
    (folder / "paid.csv").write_text("\n".join(["size;price", *lines]))
    run("train", "paid.csv", "--model", "linear", "--metric", "rmse")
    page = run("report", "paid.margrove", "paid.csv", "--format", "md", "-o", "-").stdout
    assert re.search(r"Its root mean squared error is \d\d\.\d €", page)
    assert re.search(r"Without 'size' root mean squared error rises by \d\d\d €", page)
    compared = run("compare", "paid.csv", "--metric", "rmse", "--folds", "2").stdout
    assert "squared" in compared.partition("linear")[0]
    assert "absolute" not in compared.partition("linear")[0]


def test_the_threshold_of_a_forest_is_tuned_where_all_classes_count_the_same(run: Run, rare: str) -> None:
    table = margrove.read_table(rare, target="answer")
    found = []
    for given in (["--metric", "accuracy", "--balanced"], []):
        run("train", rare, "--model", "forest", "--param", "n_estimators=30", *given)
        found.append((margrove.load("rare.margrove"), run("show", "rare.margrove").stdout))
    plain, tuned = (model for model, _ in found)
    assert not hasattr(plain, "tuned_for")
    assert tuned.tuned_for == "balanced_accuracy"
    assert (tuned.predict(table) == "Yes").sum() > (plain.predict(table) == "Yes").sum()
    assert run("certify", "rare.margrove", rare).exit_code == 0
