"""`margrove train` that chooses the learner itself: what is tried, taken and said, and that its estimate is honest."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.app.printed import said_by
from typer.testing import Result

import margrove
import margrove.errors
from margrove.app.choose import contest as auto
from margrove.app.choose import held_out as auto_estimate
from margrove.app.choose import trial as auto_trial
from margrove.app.choose.candidates import CANDIDATES, Candidate
from margrove.app.choose.contest import Contest, meets_on_sample, ranked
from margrove.app.choose.trial import Trial, TrialData
from margrove.app.choose.words import choice_words, subsample_words, tell_plan
from margrove.app.estimate.classes import CLASSES
from margrove.app.estimate.intervals import wilson
from margrove.app.estimate.numbers import NUMBERS
from margrove.app.estimate.task import Estimate
from margrove.app.options.budget import Budget
from margrove.app.options.training import Training
from margrove.app.provenance import leaderboard_of
from margrove.app.screen.console import Screen
from margrove.app.screen.progress import Countdown

Run = Callable[..., Result]
NAMES = {candidate.name: candidate for candidate in CANDIDATES["classify"]}
FEW = ("basic", "perceptron", "tree")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three quick candidates only."""
    monkeypatch.setitem(CANDIDATES, "classify", tuple(NAMES[name] for name in FEW))


def document(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def table_of(kinds: list[str], n: int = 120, apart: float = 3.0) -> margrove.Table:
    rng = np.random.default_rng(0)
    labels = np.array(kinds)[np.arange(n) % len(kinds)]
    X = rng.normal(size=(n, 2)) + apart * (np.arange(n) % len(kinds))[:, None]
    import pyarrow

    return margrove.as_table(pyarrow.table({"u": X[:, 0], "v": X[:, 1], "kind": labels}), target="kind")


# ------------------------------------------------------------------------------------------------------- the candidates


@pytest.mark.parametrize("candidates", CANDIDATES.values(), ids=CANDIDATES)
def test_every_candidate_can_be_built_and_follows_one_before_it(candidates: tuple[Candidate, ...]) -> None:
    names = [candidate.name for candidate in candidates]
    assert len(set(names)) == len(names)
    for place, candidate in enumerate(candidates):
        params = {**candidate.params, **({"n_estimators": candidate.rounds[0]} if candidate.rounds else {})}
        candidate.learner.estimator(params, seed=0, time_limit=1.0)
        assert not candidate.after or candidate.after in names[:place]
        assert list(candidate.rounds) == sorted(candidate.rounds)
        assert "{" not in candidate.titled({})


def test_titles_name_what_was_found() -> None:
    assert NAMES["adaboost-3"].titled({"n_estimators": 400}) == "AdaBoost of 400 trees of depth 3"
    assert NAMES["adaboost-3"].titled({}) == "AdaBoost of trees of depth 3"
    assert NAMES["svm"].titled({"C": 3.16228, "gamma": 0.04}) == "support vector machine (C=3.16, gamma=0.04)"


# --------------------------------------------------------------------------------------------------- choosing by scores


def trial(name: str, scores: list[float], n_rows: int = 1000, **more: Any) -> Trial:
    return Trial(NAMES[name], {}, tuple(scores), n_rows, **more)


def result_of(trials: list[Trial], prefer: str = "best") -> auto.Result:
    return auto.Result(CLASSES, ranked(trials), prefer, 1000, 1000, True)


def test_best_mean_is_chosen_and_the_simplest_of_equals() -> None:
    trials = [trial("svm", [0.9, 0.92]), trial("basic", [0.8, 0.8]), trial("tree", [0.91, 0.9102])]
    assert result_of(trials).chosen is trials[2]  # within half a row of the machine, and simpler
    assert result_of(trials[:2]).chosen is trials[0]


def test_prefer_simple_chooses_the_simplest_within_one_standard_error() -> None:
    trials = [trial("svm", [0.88, 0.92]), trial("basic", [0.885, 0.885]), trial("perceptron", [0.87, 0.87])]
    assert trials[0].error == pytest.approx(0.02)
    assert result_of(trials, "simple").chosen is trials[1]
    assert result_of(trials[:1] + trials[2:], "simple").chosen is trials[0]


def test_a_better_score_on_a_sample_ranks_above_a_worse_one_on_all_rows() -> None:
    trials = [trial("tree", [0.8, 0.8], 1000), trial("svm", [0.99, 0.99], 500), trial("basic", [])]
    assert [t.candidate.name for t in ranked(trials)] == ["svm", "tree", "basic"]
    assert result_of(trials, "simple").rivals == (trials[1],)


def test_candidate_that_takes_too_long_is_not_chosen() -> None:
    trials = [trial("svm", [0.99, 0.99], is_too_slow=True), trial("tree", [0.8, 0.8])]
    assert result_of(trials).chosen is trials[1]


def test_choice_is_explained() -> None:
    def words(trials: list[Trial], prefer: str = "best") -> str:
        return choice_words(auto_estimate.Chosen(result_of(trials, prefer), Estimate(CLASSES)))

    clear = [trial("svm", [0.9, 0.902]), trial("basic", [0.7, 0.7])]
    assert words(clear).endswith("because its score is the best, by more than one standard error.")
    near = [trial("svm", [0.88, 0.92]), trial("tree", [0.89, 0.89])]
    assert "Simpler and within one standard error: decision tree (--prefer simple)." in words(near)
    assert words(near, "simple").startswith("Chosen: decision tree. It is the simplest within one standard error")
    ties = [trial("tree", [1.0, 1.0]), trial("svm", [1.0, 1.0])]
    assert "the simplest of those with the best score" in words(ties)
    close = [trial("tree", [0.912, 0.912], 250), trial("svm", [0.913, 0.913], 250)]
    why = "because its score equals the best (91.3 %) to within 0.2 points, and it is simpler."
    assert words(close) == f"Chosen: decision tree, {why}"
    lower = [trial("tree", [0.913, 0.913], 250), trial("svm", [0.912, 0.912], 250)]
    assert words(lower) == "Chosen: decision tree, because its score is the best."
    as_numbers = auto_estimate.Chosen(replace(result_of(close), task=NUMBERS), Estimate(NUMBERS))
    assert "its score equals the best (R² 0.913) to within 0.002, and it is simpler." in choice_words(as_numbers)
    assert "no other learner was scored" in words(clear[:1])
    slow = [trial("svm", [0.99, 0.99], is_too_slow=True), trial("tree", [0.8, 0.8])]
    assert "because its score is the best that the budget allows. A larger --budget would allow" in words(slow)
    assert words([trial("svm", [])]).startswith("No learner could be scored")


def test_numbers_of_rows_and_folds_are_printed() -> None:
    def words(*trials: Trial, n_rows: int = 1000) -> str:
        return subsample_words(auto.Result(CLASSES, ranked(trials), "best", n_rows, 500, True, n_folds=2))

    on_sample, on_all = trial("basic", [0.7, 0.7], 500), trial("svm", [0.9, 0.9], 1000)
    assert words(on_all, trial("tree", [0.8, 0.8])) == "Each scored on the same 2 folds of 1,000 rows:"
    assert words(on_all, on_sample) == (
        "Each scored on the same 2 folds of a sample of 500 of 1,000 rows, 1 of them then on all 1,000:"
    )
    assert words(on_sample, trial("tree", [0.8], 500)) == (
        "Each scored on the same 2 folds of a sample of 500 of 1,000 rows, and none on more rows "
        "(decision tree on fewer folds, for lack of time):"
    )
    assert words(on_all, on_sample, n_rows=3000).endswith("of 3,000 rows, 1 of them then on 1,000:")
    assert words(trial("tree", [0.8])) == "Scored on 1 of 2 folds of 1,000 rows:"
    assert words(trial("tree", [])) == "No learner was scored."


def test_choice_by_fewer_folds_than_requested_is_reported() -> None:
    result = auto.Result(CLASSES, ranked([trial("svm", [0.9, 0.9]), trial("basic", [0.5] * 5)]), "best", 9, 9, False)
    chosen = auto_estimate.Chosen(replace(result, n_folds=5), Estimate(CLASSES))
    assert choice_words(chosen).endswith("by more than one standard error (on 2 of 5 folds).")


@pytest.mark.parametrize(("n_rows", "n_columns", "is_said"), [(8124, 22, False), (16_000, 22, True), (4000, 900, True)])
def test_plan_mentions_a_sample_only_if_there_will_be_one(
    capsys: pytest.CaptureFixture[str], n_rows: int, n_columns: int, is_said: bool
) -> None:
    tell_plan(Screen(), Training(), 60.0, is_sampled=meets_on_sample(n_rows, n_columns))
    assert ("scored on a sample first" in " ".join(capsys.readouterr().out.split())) == is_said


def test_record_describes_the_status() -> None:
    stopped = trial("perceptron", [0.9, 0.9], status="max_iter")
    line = leaderboard_of(result_of([stopped]))[0]
    assert (line["status"], line["note"]) == ("max_iter", "")  # the report has words for it


# --------------------------------------------------------------------------------------------------------- the contest


def test_a_perfect_simple_candidate_ends_the_contest() -> None:
    table = table_of(["a", "b"], apart=20.0)
    result = Contest(Training(), table, Budget(600), table.n_rows, Countdown(Budget(600))).run()
    assert result.chosen is not None
    assert [t.candidate.name for t in result.trials if t.is_scored] == ["basic"]
    assert result.is_whole
    assert all(t.note == "a simpler learner makes no errors" for t in result.trials if not t.is_scored)


def test_large_tables_are_scored_on_a_sample_first_and_the_best_on_all_rows(
    monkeypatch: pytest.MonkeyPatch, few: None
) -> None:
    monkeypatch.setattr(auto, "FIRST_ROWS", 100)
    monkeypatch.setattr(auto, "LEAST_FIRST_ROWS", 100)
    table = table_of(["a", "b", "c"], n=400, apart=1.5)
    result = Contest(Training(), table, Budget(600), 400, Countdown(Budget(600))).run()
    assert abs(result.n_first - 100) <= 2
    assert result.n_rows == 400
    assert result.best is not None
    assert result.best.n_rows == 400
    assert {t.n_rows for t in result.trials if t.note.startswith("too far behind")} <= {result.n_first}


def test_clear_winner_on_the_sample_is_not_scored_again(monkeypatch: pytest.MonkeyPatch, few: None) -> None:
    monkeypatch.setattr(auto, "FIRST_ROWS", 100)
    monkeypatch.setattr(auto, "LEAST_FIRST_ROWS", 100)

    def scored(data: Any, candidate: Candidate, *_: Any, **__: Any) -> Trial:
        return Trial(candidate, {}, (0.9 if candidate.name == "tree" else 0.5,) * 2, data.table.n_rows)

    monkeypatch.setattr(auto, "tried", scored)
    result = Contest(Training(), table_of(["a", "b"], 400), Budget(600), 400, Countdown(Budget(600))).run()
    assert {t.n_rows for t in result.trials} == {result.n_first}
    assert result.chosen is not None
    assert result.chosen.candidate.name == "tree"
    assert result.is_whole


def test_a_budget_that_is_spent_leaves_the_rest_untried(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget(600)
    seen: list[str] = []

    def spent(data: Any, candidate: Candidate, seconds: float, *_: Any, **__: Any) -> Trial:
        seen.append(candidate.name)
        budget.seconds = 0.0
        return Trial(candidate, {}, (0.5, 0.5), data.table.n_rows, status="converged")

    monkeypatch.setattr(auto, "tried", spent)
    result = Contest(Training(), table_of(["a", "b"]), budget, 120, Countdown(Budget(600))).run()
    assert seen == ["basic"]
    assert not result.is_whole
    assert {t.note for t in result.trials if not t.is_scored} == {"the budget was used up"}


def test_out_of_time_two_folds_are_a_score_and_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    data = TrialData.of(Training(), table_of(["a", "b"]))
    for n_done, n_scored in ((1, 0), (2, 2), (3, 3)):
        left = iter([9.0] * (2 * n_done - 1) + [0.0] * 9)  # asked for each limit, and before all folds but the first
        monkeypatch.setattr(Budget, "left", property(lambda _, left=left: next(left)))
        found = auto_trial.tried(data, NAMES["basic"], 9.0, Countdown(Budget(9.0)))
        assert len(found.scores) == n_scored
        assert found.status == "time_limit"
        assert "of the budget" in found.note


def test_a_vote_that_cannot_catch_up_stops_growing() -> None:
    reach = auto_trial._is_within_reach
    assert not reach({50: (0.5, 0.5), 100: (0.52, 0.52)}, goal=0.9)
    assert reach({50: (0.5, 0.5), 100: (0.7, 0.7)}, goal=0.9)
    assert reach({50: (0.5, 0.5)}, goal=0.9)


def test_a_vote_is_scored_as_it_would_be_if_fitted_at_that_size() -> None:
    table = margrove.load_penguins()
    data = TrialData.of(Training(folds=3), table)
    found = auto_trial.tried(data, NAMES["adaboost-1"], 600.0, Countdown(Budget(600)))
    scores = []
    for train, learned, test, rows in data.rounds(NAMES["adaboost-1"]):
        model = NAMES["adaboost-1"].build(data.training, table, found.params).fit(train, learned)
        scores.append(float(np.mean(model.predict(test) == data.labels[rows])))
    assert found.scores == pytest.approx(scores)
    assert found.params["n_estimators"] in NAMES["adaboost-1"].rounds


def test_a_candidate_that_is_refused_is_noted_and_the_others_go_on(run: Run, folder: Path) -> None:
    rows = "".join(f"7,{'ab'[i % 2]}{i % 3},{'pq'[i % 2]}\n" for i in range(40))
    (folder / "t.csv").write_text(f"same,code,kind\n{rows}")
    record = document(run("train", "t.csv", "--json"))
    assert record["leaderboard"][0]["score"] == 1.0


def test_first_error_is_raised_if_all_candidates_fail(
    run: Run, flowers: str, folder: Path, few: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(candidate: Candidate, *_: Any, **__: Any) -> Any:
        raise margrove.errors.InputError(f"{candidate.name} cannot", file="flowers.csv", cure="Do otherwise.")

    monkeypatch.setattr(Candidate, "build", refused)
    result = run("train", flowers)
    assert result.exit_code == 2
    assert result.stderr == "margrove: error: flowers.csv: basic cannot. Do otherwise.\n"
    assert [path.name for path in folder.iterdir()] == [flowers]


# -------------------------------------------------------------------------------------------------------- the estimate


def test_wilson_holds_the_share_in_95_of_100_samples() -> None:
    rng = np.random.default_rng(0)
    for p in (0.5, 0.9, 0.99):
        ends = [wilson(int(k), 80) for k in rng.binomial(80, p, 2000)]
        assert 0.93 <= np.mean([low <= p <= high for low, high in ends]) <= 0.98


def test_small_tables_are_estimated_by_nested_rounds_that_test_every_row_once(run: Run, few: None) -> None:
    record = document(run("train", "--json"))
    estimate = record["estimate"]
    assert (estimate["method"], estimate["rows_tested"], len(estimate["picks"])) == ("nested", 344, 5)
    assert estimate["low"] < estimate["value"] < estimate["high"]
    kept = margrove.load("penguins.margrove").training_record_["estimate"]
    assert kept["rows"] == list(range(344))
    assert kept["rows_tested"] == 344
    right = np.mean(np.array(kept["truth"]) == np.array(kept["predicted"]))
    assert right == pytest.approx(estimate["value"])
    assert len(kept["scores"]) == 344
    assert len(kept["scores"][0]) == len(kept["classes"]) == 3
    assert record["certificate"]["n_rows"] == 344


def test_large_tables_are_estimated_by_a_final_hold_out(run: Run, few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_estimate, "NESTED_ROWS", 100)
    record = document(run("train", "--json"))
    estimate = record["estimate"]
    assert (estimate["method"], estimate["rows_tested"]) == ("hold-out", 69)
    assert estimate["low"], estimate["high"] == wilson(round(69 * estimate["value"]), 69)
    # The model, fitted by its settings on the other rows, answers as the record says.
    table = margrove.load_penguins()
    model = margrove.load("penguins.margrove")
    kept = model.training_record_["estimate"]
    rest = np.setdiff1d(np.arange(344), kept["rows"])
    line = next(line for line in record["leaderboard"] if line["is_chosen"])
    candidate = NAMES[line["candidate"]]
    again = candidate.build(Training(), table, line["parameters"])
    again.fit(table.take(rest), table.labels()[rest])
    answers = again.predict(table.take(np.array(kept["rows"])))
    assert [kept["classes"][k] for k in kept["predicted"]] == answers.tolist()
    assert "a final hold-out of 69 rows, set aside before any learner was tried" in said_by(run("train"))


def test_no_contest_sees_its_test_rows(few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    table = margrove.load_penguins()
    monkeypatch.setattr(auto_estimate, "NESTED_ROWS", 100)
    met: list[int] = []

    class Watched(Contest):
        def __init__(self, asked: Any, rows: margrove.Table, *more: Any) -> None:
            met.append(rows.n_rows)
            super().__init__(asked, rows, *more)

    monkeypatch.setattr(auto_estimate, "Contest", Watched)
    chosen = auto_estimate.NestedChoice(Training(), table, Budget(600), Countdown(Budget(600))).run()
    assert met == [275]
    assert chosen.estimate.n_tested == 69


def test_random_labels_are_estimated_as_not_learnable(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(5)
    rows = "".join(f"{u:.3f},{v:.3f},{'ab'[k]}\n" for (u, v), k in zip(
        rng.normal(size=(100, 2)), rng.permutation(np.arange(100) % 2), strict=True))  # fmt: skip
    (folder / "noise.csv").write_text(f"u,v,kind\n{rows}")
    record = document(run("train", "noise.csv", "--json"))
    estimate = record["estimate"]
    assert record["leaderboard"][0]["score"] > estimate["value"]  # the largest of many flatters
    assert estimate["low"] < 0.5
    assert abs(estimate["value"] - 0.5) < 0.15


def test_too_few_rows_to_set_any_aside_are_reported(run: Run, folder: Path) -> None:
    (folder / "few.csv").write_text("x,y\n1,a\n2,a\n3,a\n7,b\n8,b\n9,c\n")
    record = document(run("train", "few.csv", "--json"))
    assert record["estimate"]["method"] == "cross-validation"
    assert "too optimistic" in record["estimate"]["words"]
    (folder / "one.csv").write_text("x,y\n1,a\n2,a\n3,a\n7,b\n")
    said = said_by(run("train", "one.csv"))
    assert "No learner could be scored, so the simplest is chosen." in said
    assert "not estimated: at least two classes need two or more rows each" in said
    assert "learner score" not in said  # no empty leaderboard
    assert "No learner was scored" not in said


@pytest.mark.parametrize("model", ["auto", "adaboost"])
def test_many_numbers_that_cannot_be_told_apart_as_classes_are_advised_to_be_regressed(
    run: Run, few: None, folder: Path, model: str
) -> None:
    rng = np.random.default_rng(0)
    rows = "".join(f"{rng.normal():.3f},{k % 12}\n{rng.normal():.3f},0\n" for k in range(60))
    (folder / "ages.csv").write_text(f"x,age\n{rows}")
    words = ("--model", model, "--folds", "2", "--budget", "5s")
    said = said_by(run("train", "ages.csv", *words))
    assert "No better than the baseline as 12 classes; try --task regress." in said
    assert "finds no" not in said
    (folder / "coin.csv").write_text("x,side\n" + "".join(f"{rng.normal():.3f},{k % 2}\n" for k in range(40)))
    assert "--task regress." not in said_by(run("train", "coin.csv", *words))


def test_the_learning_curve_ends_at_the_estimate(run: Run, few: None) -> None:
    record = document(run("train", "--json"))
    curve = record["learning_curve"]
    assert [point["rows"] for point in curve] == sorted(point["rows"] for point in curve)
    assert curve[-1]["score"] == record["estimate"]["value"]


# --------------------------------------------------------------------------------------------------- Ctrl-C, and words


def test_ctrl_c_keeps_the_best_so_far(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = auto.tried

    def interrupted(data: Any, candidate: Candidate, *more: Any, **named: Any) -> Trial:
        if candidate.name == "linear":
            raise KeyboardInterrupt
        return real(data, candidate, *more, **named)

    monkeypatch.setattr(auto, "tried", interrupted)
    record = document(run("train", "--json"))
    assert record["is_interrupted"] is True
    assert margrove.load("penguins.margrove").training_record_["is_interrupted"] is True
    assert {line["candidate"] for line in record["leaderboard"]} == {"basic", "perceptron"}
    assert record["estimate"]["method"] == "hold-out"
    assert record["certificate"]["holds"] is True
    assert "Interrupted: the best learner so far is chosen and fitted." in run("train").stdout


def test_ctrl_c_before_anything_was_scored_writes_nothing(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> Trial:
        raise KeyboardInterrupt

    monkeypatch.setattr(auto, "tried", interrupted)
    assert run("train").exit_code == 130
    assert list(folder.iterdir()) == []


def test_output_lists_the_trials_and_explains_the_choice(run: Run, few: None) -> None:
    said = said_by(run("train"))
    assert "Trying 3 learners in at most 1 min (--budget)" in said
    assert "Each scored on the same 5 folds of 344 rows:" in said
    assert "Chosen: perceptron, because its score is the best" in said
    assert "These scores were used to choose it, so they are too optimistic" in said
    quiet = run("train", "--quiet").stdout.splitlines()
    assert len(quiet) == 2
    assert quiet[1].startswith("perceptron: ")


def test_the_document_has_the_leaderboard(run: Run, few: None) -> None:
    record = document(run("train", "--json", "--prefer", "simple"))
    lines = record["leaderboard"]
    assert {line["candidate"] for line in lines} == set(FEW)
    assert [line["score"] for line in lines] == sorted((line["score"] for line in lines), reverse=True)
    taken = next(line for line in lines if line["is_chosen"])
    assert (record["choice"]["prefer"], taken["learner"]) == ("simple", record["learner"])
    for line in lines:
        assert len(line["fold_scores"]) == 5
        assert line["score"] == pytest.approx(np.mean(line["fold_scores"]))
        assert line["error"] == pytest.approx(np.std(line["fold_scores"], ddof=1) / math.sqrt(5))


def test_show_prints_the_leaderboard_and_the_estimate(run: Run, few: None) -> None:
    run("train", "--quiet")
    said = said_by(run("show", "penguins.margrove"))
    assert "Learners tried, as saved after training" in said
    assert "Chosen: perceptron" in said
    assert "(nested)" in said
    assert "R²" not in said
    record = json.loads(run("show", "penguins.margrove", "--json").stdout)["record"]
    assert record["target"] == "species"
    assert "scores" not in record["estimate"]


def test_what_the_model_is_fitted_with_is_what_was_chosen(run: Run) -> None:
    record = document(run("train", "--json"))
    taken = next(line for line in record["leaderboard"] if line["is_chosen"])
    for name, value in taken["parameters"].items():
        if "__" not in name:
            assert record["parameters"][name] == value
    assert record["parameters"].get("time_limit") is None


# ----------------------------------------------------------------------------------------------------- numbers and text


@pytest.mark.slow
def test_a_quantity_is_estimated_by_the_best_of_its_learners(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, size=(150, 2))
    y = 3 * x[:, 0] - x[:, 1] + 0.05 * rng.normal(size=150)
    rows = "".join(f"{u:.4f},{v:.4f},{z:.4f}\n" for (u, v), z in zip(x, y, strict=True))
    (folder / "line.csv").write_text(f"u,v,z\n{rows}")
    budget = ("--budget", "10m")  # many times what is needed, so that no clock decides
    record = document(run("train", "line.csv", "--json", *budget))
    assert record["estimate"]["measure"] == "R²"
    assert record["estimate"]["value"] > 0.99
    assert record["learner"] == "linear"
    assert record["estimate"]["low"] <= record["estimate"]["value"] <= record["estimate"]["high"]
    kept = margrove.load("line.margrove").training_record_["estimate"]
    assert kept["truth"] == [float(f"{y[row]:.4f}") for row in kept["rows"]]
    said = said_by(run("train", "line.csv", "--task", "regress", *budget))
    assert "R²" in said
    assert "mean absolute error" in said
    shown = said_by(run("show", "line.margrove"))
    assert "learner R² " in shown
    assert "→ linear model 1.000 ± 0.000" in shown
    assert f"unseen rows, as saved after training R² {kept['value']:.3f}, 95 % interval " in shown
    assert f"; mean absolute error {kept['mean_absolute_error']:.3g} ({kept['method']})" in shown


def test_text_is_for_those_that_take_it(run: Run, folder: Path) -> None:
    good, bad = ["good tea", "fine tea today", "good day"], ["bad tea", "a sad day", "bad bad pot"]
    rows = "".join(f"{i % 5},{(good if i % 2 else bad)[i % 3]},{i % 2}\n" for i in range(60))
    (folder / "t.csv").write_text(f"n,body,kind\n{rows}")
    record = document(run("train", "t.csv", "--text", "body", "--json"))
    notes = {line["candidate"]: line["note"] for line in record["leaderboard"]}
    assert notes["tree"] in ("it does not take text", "a simpler learner makes no errors")
    assert record["estimate"]["value"] > 0.9


def test_countdown_shows_the_current_step_the_best_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("margrove.app.options.budget.time.monotonic", lambda: 140.0)
    meter = Countdown(Budget(60.0, began=100.0))
    meter.enter("round 2 of 5")
    meter.begin("decision tree, fold 1 of 5")
    meter.best("perceptron, 91.2 %")
    assert meter.lines == ("20 s left", "round 2 of 5; best so far: perceptron, 91.2 %")
    assert Countdown(Budget(60.0, began=0.0)).lines[0] == "finishing"


# ----------------------------------------------------------------------------------------------------------- the report


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """A writer of reports that only notes what it was asked for, and makes a page that says whose it is."""
    written: list[tuple[str, str]] = []

    def write_report(model: Any, table: margrove.Table, path: str) -> None:
        written.append((model.training_record_["target"], path))
        Path(path).write_text('<html><meta name="generator" content="Margrove">')

    monkeypatch.setattr("margrove.app.report.write_report", write_report)
    return written


def test_report_of_a_training_describes_it(run: Run, flowers: str, folder: Path) -> None:
    assert run("train", flowers, "--model", "tree", "--folds", "2", "--report").exit_code == 0
    page = (folder / "flowers.report.html").read_text(encoding="utf-8")
    assert "How &#39;kind&#39; is predicted" in page
    assert run("train", flowers, "--model", "tree", "--folds", "2", "--report").exit_code == 0  # replaces its own


def test_a_report_is_written_beside_the_model_and_replaced(
    run: Run, flowers: str, reports: list[tuple[str, str]]
) -> None:
    words = ["train", flowers, "--model", "basic", "-o", "my.margrove", "--report"]
    assert "Report: my.report.html" in run(*words).stdout
    assert document(run(*words, "--json"))["report"] == "my.report.html"
    assert reports == [("kind", "my.report.html")] * 2
    assert document(run("train", flowers, "--model", "basic", "--no-report", "--json"))["report"] is None
    assert len(reports) == 2


def test_a_page_that_is_no_report_is_not_overwritten(
    run: Run, flowers: str, folder: Path, reports: list[tuple[str, str]]
) -> None:
    (folder / "flowers.report.html").write_text("<html>my flowers</html>")
    result = run("train", flowers, "--report")
    assert result.exit_code == 2
    assert "not a Margrove report, so it is not overwritten" in result.stderr
    assert "--no-report" in result.stderr
    assert (folder / "flowers.report.html").read_text() == "<html>my flowers</html>"
    assert run("train", flowers, "--model", "basic").exit_code == 0
    assert reports == []


def test_a_model_in_a_pipe_has_no_report(run: Run, flowers: str, folder: Path, reports: list[tuple[str, str]]) -> None:
    assert run("train", flowers, "--model", "basic", "--report", "-o", "-").exit_code == 0
    assert reports == []
    assert [path.name for path in folder.iterdir()] == [flowers]


# ----------------------------------------------------------------------------------------------------------- the record


def test_a_learner_that_was_named_leaves_a_record_too(run: Run) -> None:
    run("train", "--model", "svm", "--folds", "3", "--quiet")
    model = margrove.load("penguins.margrove")
    record = model.training_record_
    assert (record["version"], record["target"], record["table"]["rows"]) == (1, "species", 344)
    assert record["search"]["learner"] == "svm"
    assert record["search"]["best"]["C"] == model[-1].C
    estimate = record["estimate"]
    assert estimate["method"] == "nested"
    assert sorted(estimate["rows"]) == list(range(344))
    assert {moment["stage"] for moment in record["course"]} <= {"svm"}
    json.dumps(record, allow_nan=False)


def test_show_ignores_forged_entries_of_a_record(run: Run, model: str) -> None:
    saved = margrove.load(model)
    saved.training_record_ = {
        "leaderboard": [7, {"score": "high"}, {"score": 0.5, "title": "[red]\x1b[2Jtree\n" + "x" * 999}],
        "estimate": {"value": True, "method": ["nested"]},
        "choice": "mine",
    }
    margrove.save(saved, model)
    result = run("show", model)
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "[red]" in result.stdout
    assert "x" * 500 not in result.stdout


def test_a_model_that_is_called_a_page_keeps_its_place(run: Run, flowers: str, folder: Path) -> None:
    assert run("train", flowers, "--model", "basic", "-o", "x.html", "--report").exit_code == 0
    assert margrove.load("x.html").predict(margrove.read_table(flowers, target="kind")).shape == (8,)
    assert (folder / "x.report.html").exists()


def test_numbers_too_large_for_their_squares_are_refused(run: Run) -> None:
    Path("huge.csv").write_text("x,y\n" + "".join(f"{k},{k}e200\n" for k in range(1, 40)))
    result = run("train", "huge.csv", "--budget", "2s", "--folds", "2")
    assert result.exit_code == 2
    assert "Divide the target by a power of ten" in result.stderr


@pytest.mark.parametrize("command", [("train", "--budget", "2s"), ("train", "--model", "tree"), ("compare",)])
def test_a_target_that_never_changes_is_refused_before_any_work(run: Run, command: tuple[str, ...]) -> None:
    Path("same.csv").write_text("x,y\n" + "".join(f"{k},3.5\n" for k in range(40)))
    result = run(command[0], "same.csv", "--task", "regress", *command[1:])
    assert result.exit_code == 2
    assert "column 'y': the target is 3.5 in every row: there is nothing to learn" in result.stderr
    assert result.stdout == ""


def test_numbers_too_close_for_their_squares_are_refused(run: Run) -> None:
    Path("tiny.csv").write_text("x,y\n" + "".join(f"{k},{k}.5e-200\n" for k in range(40)))
    result = run("train", "tiny.csv", "--budget", "2s")
    assert result.exit_code == 2
    assert "Multiply the target by a power of ten" in result.stderr
