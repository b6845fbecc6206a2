"""Metrics: values solved by hand, scikit-learn's, and the choice of a metric where a class is rare."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics as theirs

from margrove.app.choose.candidates import CANDIDATES
from margrove.app.choose.contest import Result, fairly_judged
from margrove.app.choose.held_out import Chosen
from margrove.app.choose.trial import Trial, TrialData, tried
from margrove.app.choose.words import choice_words
from margrove.app.estimate.classes import CLASSES, classes_by
from margrove.app.estimate.metrics import BALANCED, OF_CLASSES, Judged, metric_named
from margrove.app.estimate.numbers import numbers_by
from margrove.app.estimate.relation import relation_of_classes, relation_of_numbers
from margrove.app.estimate.task import Predicted
from margrove.app.options.training import Training
from margrove.app.provenance import leaderboard_of
from margrove.app.report.explain import Contribution, _phrase
from margrove.data import Table, as_table
from margrove.errors import ParameterError


def judged(n: int = 60, k: int = 2, seed: int = 0) -> Judged:
    rng = np.random.default_rng(seed)
    classes = np.array(["a", "b", "c", "d"])[:k]
    truth, values = (rng.choice(classes, n, p=np.arange(k, 0, -1) / (k * (k + 1) / 2)) for _ in range(2))
    scores = rng.random((n, k))
    scores /= scores.sum(axis=1, keepdims=True)
    return Judged.of(truth, truth, values, scores)


@pytest.mark.parametrize("k", [2, 4])
def test_scores_are_those_of_scikit_learn(k):
    found = judged(k=k)
    truth, values, scores, classes, rare = found.truth, found.values, found.scores, range(k), found.rare
    is_it = truth == rare
    expected = {
        "accuracy": theirs.accuracy_score(truth, values),
        "balanced_accuracy": theirs.balanced_accuracy_score(truth, values),
        "f1": theirs.f1_score(is_it, values == rare) if k == 2 else theirs.f1_score(truth, values, average="macro"),
        "roc_auc": theirs.roc_auc_score(is_it, scores[:, found.rare])
        if k == 2
        else theirs.roc_auc_score(truth, scores, multi_class="ovr"),
        "average_precision": theirs.average_precision_score(is_it, scores[:, found.rare])
        if k == 2
        else np.mean([theirs.average_precision_score(truth == c, s) for c, s in zip(classes, scores.T, strict=True)]),
        "log_loss": -theirs.log_loss(truth, scores, labels=classes),
    }
    assert {metric.name: metric.score(found) for metric in OF_CLASSES} == pytest.approx(expected)


def test_average_precision_of_equal_scores_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    for _ in range(50):
        truth, scores = rng.integers(0, 2, 30), rng.integers(0, 5, (30, 2)) / 5
        found = Judged.of(np.array([0, 1]), truth, truth, scores)
        expected = theirs.average_precision_score(truth == found.rare, scores[:, found.rare])
        assert metric_named("average_precision").score(found) == pytest.approx(expected)


@pytest.mark.parametrize("name", [metric.name for metric in OF_CLASSES])
def test_a_constant_is_the_best_of_all_constants(name):
    found = judged(k=3)
    constant, label = metric_named(name).constant(found)
    expected = {"accuracy": np.mean(found.truth == 0), "balanced_accuracy": 1 / 3, "roc_auc": 0.5}
    assert label in found.classes
    assert constant == pytest.approx(expected.get(name, constant))
    if name == "log_loss":
        shares = np.unique(found.truth, return_counts=True)[1] / len(found.truth)
        assert constant == pytest.approx(np.sum(shares * np.log(shares)))


def test_costs_by_hand():
    metric = metric_named("cost: Yes>No = 10, No>Yes=0.5")
    truth = np.array(["Yes", "Yes", "No", "No"])
    found = Judged.of(truth, truth, np.array(["No", "Yes", "Yes", "No"]))
    assert metric.score(found) == -(10 + 0.5) / 4
    assert metric.show(metric.score(found)) == "2.625"
    assert metric.class_weights(np.array(["No", "Yes"])) == {"No": 0.5, "Yes": 10.0}


def test_pinball_is_scikit_learns():
    truth, values = np.random.default_rng(0).normal(size=(2, 30))
    assert metric_named("pinball:0.9").score(Judged(truth, values)) == pytest.approx(
        -theirs.mean_pinball_loss(truth, values, alpha=0.9)
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("acuracy", "^--metric is 'acuracy'; it must be one of .* Did you mean 'accuracy'"),
        ("foo", r"^--metric is 'foo'; it must be one of .*QUANTILE\.$"),
        ("cost:Yes=3", "cost:TRUE>PREDICTED=COST"),
        ("pinball:2", "between 0 and 1"),
        ("f1:3", "must be one of"),
    ],
)
def test_unknown_metrics_are_refused(text, words):
    with pytest.raises(ParameterError, match=words):
        metric_named(text)


def test_metric_and_task_must_fit():
    with pytest.raises(ParameterError, match="requires --task regress"):
        Training(metric="mae", task="classify")
    assert Training(metric="mae").task == "regress"
    assert Training(metric="balanced-accuracy").kind.metric is BALANCED


def test_probabilities_are_needed_for_log_loss():
    found = judged()
    with pytest.raises(ParameterError, match="no probabilities, and log loss needs them"):
        metric_named("log_loss").score(Judged(found.truth, found.values, 3 * found.scores, found.classes))
    with pytest.raises(ParameterError, match="no scores, and ROC AUC needs them"):
        metric_named("roc_auc").score(Judged(found.truth, found.values, None, found.classes))


@pytest.mark.parametrize(("n_rare", "is_balanced"), [(9, True), (10, False)])
def test_a_class_is_rare_below_a_tenth(n_rare, is_balanced):
    labels = np.array(["Yes"] * n_rare + ["No"] * (100 - n_rare))
    training = Training("tree").judged(labels)
    assert training.kind.metric.is_balanced == is_balanced
    assert ("Yes" in training.reason) == is_balanced
    assert (training.build().class_weight == "balanced") == is_balanced
    assert Training("tree", metric="accuracy").judged(labels).build().class_weight is None


def test_a_typed_class_weight_stays():
    training = Training("tree", params={"class_weight": None}, is_balanced=True)
    assert training.judged(np.array([0, 1])).build().class_weight is None


def test_costs_name_classes_that_exist():
    with pytest.raises(ParameterError, match=r"there is no class 'Maybe'. The classes are 'No', 'Yes'\.$"):
        Training("tree", metric="cost:Maybe>No=3").judged(np.array(["No", "Yes"]))


def test_an_interval_of_balanced_accuracy_holds_its_value():
    labels = np.array(["No"] * 90 + ["Yes"] * 10)
    values = np.where(np.arange(100) % 7 == 0, "Yes", labels)
    estimate = classes_by("balanced_accuracy").estimate(labels, [Predicted(np.arange(100), values, "Any")])
    low, high = estimate.interval
    assert low < estimate.value < high <= 1
    assert estimate.value == theirs.balanced_accuracy_score(labels, values)
    assert estimate.accuracy == np.mean(labels == values)
    assert estimate.baseline == 0.5


def test_classes_that_are_never_predicted_are_named():
    labels = np.array(["a"] * 8 + ["b"] * 2)
    estimate = classes_by("accuracy").estimate(labels, [Predicted(np.arange(10), np.full(10, "a"), "Any")])
    assert estimate.never == ("b",)


def test_related_scores_are_found_although_accuracy_is_no_better():
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(300) < 0.1, "Yes", "No")
    signal, noise = np.where(truth == "Yes", 1.0, 0.0) + rng.normal(size=300), rng.normal(size=300)
    values = np.full(300, "No")
    related, unrelated = (
        relation_of_classes([Judged.of(truth, truth, values, np.column_stack([-f, f]))], 0) for f in (signal, noise)
    )
    assert "are related to the target" in related
    assert f"{theirs.roc_auc_score(truth == 'Yes', signal):.2f}" in related
    assert "finds no relation" in unrelated


def test_related_numbers_are_found():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=100)
    assert "are correlated" in relation_of_numbers(truth, truth + rng.normal(size=100), 0)
    assert "finds no correlation" in relation_of_numbers(truth, rng.normal(size=100), 0)
    assert "same number" in relation_of_numbers(truth, np.zeros(100), 0)


def test_scores_of_numbers_follow_the_metric():
    labels, values = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0, 8.0])
    part = Predicted(np.arange(4), values, "Any", means=np.full(4, 2.5), medians=np.full(4, 2.5))
    assert numbers_by("mae").score(labels, part) == -1.0
    assert numbers_by("rmse").score(labels, part) == -2.0
    estimate = numbers_by("rmse").estimate(labels, [part])
    assert "root mean squared error 2" in numbers_by("rmse").words(estimate)
    assert estimate.value == pytest.approx(1 - 16 / 5)


@pytest.fixture
def rare_table() -> Table:
    """600 rows, of which 60 are Yes: they have larger u, among many others."""
    rng = np.random.default_rng(1)
    u = rng.normal(size=600)
    answer = np.where(u + 0.7 * rng.normal(size=600) > 1.6, "Yes", "No")
    return as_table(pd.DataFrame({"u": u, "v": rng.normal(size=600), "answer": answer}), target="answer")


def scored(table: Table, metric: str, name: str) -> float:
    """Return the natural mean score of a candidate of ``--model auto``."""
    training = Training(metric=metric).judged(table.labels())
    candidate = next(each for each in CANDIDATES["classify"] if each.name == name)
    trial = tried(TrialData.of(training, table), candidate, 60.0, MagicMock())
    return training.kind.natural(trial.mean)


def test_auto_compares_votes_by_calibrated_probabilities(rare_table):
    share = np.mean(rare_table.labels() == "Yes")
    constant = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    assert scored(rare_table, "log_loss", "adaboost-1") < 0.8 * constant
    assert scored(rare_table, "log_loss", "tree") < constant


def test_auto_compares_by_tuned_thresholds(rare_table):
    assert scored(rare_table, "f1", "linear") > 0.4  # its own threshold: 0.3


@pytest.mark.parametrize("is_signal", [True, False])
def test_classes_that_quick_learners_never_predict_are_judged_by_balanced_accuracy(is_signal):
    rng = np.random.default_rng(0)
    u = rng.normal(size=400)
    answer = np.where((u if is_signal else rng.normal(size=400)) > 0.7, "yes", "no")
    table = as_table(pd.DataFrame({"u": u, "answer": answer}), target="answer")
    training = fairly_judged(Training(task="classify"), table)
    assert training.kind.metric.is_balanced is not is_signal
    assert training.reason == ("" if is_signal else "By accuracy 'yes' would never be predicted")
    asked = Training(task="classify", metric="accuracy")
    assert fairly_judged(asked, table) is asked


def test_all_candidates_are_scored_on_the_same_rows(rare_table):
    data = TrialData.of(Training(task="classify"), rare_table)
    places = [[rows.tolist() for *_, rows in data.rounds(candidate)] for candidate in CANDIDATES["classify"]]
    assert all(each == places[0] for each in places)
    assert sorted(row for rows in places[0] for row in rows) == list(range(600))


def test_a_leaderboard_is_ordered_by_scores_although_a_slow_learner_is_not_taken():
    first, second = (next(c for c in CANDIDATES["classify"] if c.name == name) for name in ("basic", "adaboost-3"))
    slow = Trial(second, scores=(0.9, 0.9), n_rows=100, is_too_slow=True)
    taken = Trial(first, scores=(0.8, 0.8), n_rows=100)
    result = Result(classes_by("accuracy"), (slow, taken), "best", 100, 100, is_whole=True)
    assert result.best is result.chosen is taken
    assert [line["learner"] for line in leaderboard_of(result)] == ["adaboost", "basic"]
    assert "A larger --budget would allow AdaBoost" in choice_words(Chosen(result, CLASSES.estimate(np.arange(2), [])))


def test_a_prediction_that_no_column_speaks_for_is_that_of_a_typical_row():
    subject = SimpleNamespace(classes=["a", "b"])
    against, in_favour = Contribution("size", "3", -1.0), Contribution("colour", "red", 0.8)
    assert _phrase(subject, (against,)) == "as for a typical row, despite size = 3"
    assert _phrase(subject, (against, in_favour)) == "colour = red; despite size = 3"
