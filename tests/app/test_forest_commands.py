"""Forests on the command line: any table, the out-of-bag score, explanations, reports and code in C."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.app.printed import said_by
from typer.testing import Result

import margrove
from margrove.app.choose.candidates import CANDIDATES
from margrove.app.choose.trial import ENOUGH_TREES, Trial
from margrove.app.models import learned
from margrove.app.options.menu import choices
from margrove.app.report.writing import report_of

Run = Callable[..., Result]
FEW = ["--model", "forest", "--folds", "0", "--param", "n_jobs=1", "--param", "n_estimators=20"]


@pytest.fixture
def outings(folder: Path) -> str:
    """Text, truth values, numbers, dates, missing cells, and noise."""
    rng = np.random.default_rng(0)
    lines = ["sky,is_warm,wind,day,length,out"]
    for _ in range(120):
        sky, warm, wind = rng.choice(["clear", "cloudy", "wet"]), rng.random() < 0.5, rng.uniform(0, 9)
        goes = (sky == "cloudy" or (sky == "clear" and wind < 5)) != (rng.random() < 0.1)
        shown = "" if rng.random() < 0.1 else f"{wind:.1f}"
        day = f"2023-{rng.integers(1, 13):02d}-{rng.integers(1, 28):02d}"
        cells = "" if rng.random() < 0.1 else sky, str(warm).lower(), shown, day, f"{10 * goes + wind:.2f}"
        lines.append(",".join([*cells, "go" if goes else "stay"]))
    (folder / "outings.csv").write_text("\n".join(lines) + "\n")
    return "outings.csv"


@pytest.fixture
def forest(run: Run, outings: str) -> str:
    said_by(run("train", outings, "--without", "length", *FEW))
    return "outings.margrove"


def test_a_forest_grows_on_the_table_itself_and_tells_its_size_and_its_score(run: Run, outings: str) -> None:
    said = said_by(run("train", outings, "--without", "length", "--model", "forest", "--folds", "2"))
    assert "missing cells in 2 columns, handled directly" in said
    assert choices()["forest"].remark in said
    model = margrove.load("outings.margrove")
    assert isinstance(model, margrove.RandomForestClassifier)
    for name, value in choices()["forest"].defaults.items():
        assert model.get_params()[name] == value
    assert f"{model.n_estimators} trees, on average with" in said
    assert f"Out-of-bag accuracy {100 * model.oob_score_:.1f} %: each training row" in said
    assert "Certificate holds" in said
    assert "margrove show outings.margrove\n" in run("train", outings, *FEW).stdout, "nobody reads 300 trees"


def test_a_seed_gives_another_forest(run: Run, outings: str, forest: str) -> None:
    before = margrove.load(forest)
    said_by(run("train", outings, "--without", "length", *FEW, "--seed", "7"))
    after, table = margrove.load(forest), margrove.read_table(outings).without("length")
    assert (before.random_state, after.random_state) == (0, 7)
    assert (before.predict_proba(table) != after.predict_proba(table)).any()


def test_show_certify_and_rules(run: Run, outings: str, forest: str) -> None:
    model = margrove.load(forest)
    said = said_by(run("show", forest))
    assert "20 trees, on average with" in said
    assert "Contribution of each column to separating the classes: " in said
    assert "n_estimators=20" in said
    assert "Certificate holds" in said_by(run("certify", forest, outings))
    printed = run("show", forest, "--rules").stdout
    assert printed.count("tree ") == 20
    record = json.loads(run("show", forest, "--rules", "--json").stdout)
    assert [each["rules"] for each in record["trees"]] == [tree.rules().data() for tree in model.estimators_]
    told = json.loads(run("show", forest, "--json").stdout)["learned"]["forest"]
    assert told["out_of_bag"] == model.oob_score_
    assert sum(told["importances"].values()) == pytest.approx(1)
    assert all(low <= high for low, high in told["spread"].values())


def test_predictions_have_reasons_and_probabilities(run: Run, outings: str, forest: str) -> None:
    said_by(run("predict", forest, outings, "--explain", "-o", "reasons.csv"))
    with open("reasons.csv", newline="") as stream:
        reasons = [row["why"] for row in csv.DictReader(stream)]
    assert any("sky = " in reason for reason in reasons)
    said_by(run("predict", forest, outings, "--probabilities", "-o", "shares.csv"))
    with open("shares.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    shares = margrove.load(forest).predict_proba(margrove.read_table(outings).without("length"))
    assert [float(row["probability go"]) for row in rows] == pytest.approx(shares[:, 0].tolist())


def test_numbers(run: Run, outings: str) -> None:
    said = said_by(run("train", outings, "--target", "length", "--without", "out", *FEW[:2], *FEW[4:], "--folds", "2"))
    assert "Out-of-bag R² 0." in said
    assert "Contribution of each column to the estimate: " in said
    model = margrove.load("outings.margrove")
    assert isinstance(model, margrove.RandomForestRegressor)
    said_by(run("predict", "outings.margrove", outings, "--explain", "-o", "reasons.csv"))
    said_by(run("export", "outings.margrove", "--to", "c", "-o", "forest.c"))
    assert "double predict(const double *x)" in Path("forest.c").read_text()


def test_code_is_refused_but_c(run: Run, forest: str) -> None:
    for language in ("sql", "python"):
        refused = run("export", forest, "--to", language)
        assert refused.exit_code == 2
        words = f"--to {language} is for a single tree, and RandomForestClassifier has 20. Use --to onnx, or --to c."
        assert words in " ".join(refused.stderr.split())
    said_by(run("export", forest, "--to", "c", "-o", "forest.c"))
    assert "int predict(const double *x)" in Path("forest.c").read_text()


def test_the_report_describes_the_forest(run: Run, outings: str, forest: str) -> None:
    model, table = margrove.load(forest), margrove.read_table(outings, target="out").without("length")
    sections = {section.key: section for section in report_of(model, table).sections}
    section = sections["model"]
    assert section.title == "The forest"
    assert section.data["trees"] == 20
    assert section.data["out_of_bag_error"]["error"][-1] == pytest.approx(1 - model.oob_score_)
    first = sections["examples"].data["examples"][0]
    assert sum(first["shares"].values()) == pytest.approx(1)
    other = report_of(
        model, table.take(np.arange(100))
    )  # not the training rows: no tree is known to have left them out
    assert "out_of_bag_error" not in {section.key: section for section in other.sections}["model"].data


def test_auto_tries_forests(run: Run, outings: str) -> None:
    record = json.loads(run("train", outings, "--without", "length", "--budget", "20s", "--json").stdout)
    titles = " ".join(line["title"] for line in record["leaderboard"])
    assert "random forest of" in titles
    assert "extremely random forest of" in titles


def test_a_forest_has_as_many_trees_as_there_is_time_for() -> None:
    candidate = next(each for each in CANDIDATES["classify"] if each.name == "forest")
    trial = Trial(candidate, scores=(0.9, 0.9), n_rows=1000, fit_seconds=3.0)
    assert trial.n_trees == 300
    in_all = trial.finish_seconds(500)
    assert in_all == pytest.approx(2 * 1.0 + candidate.proof_seconds(1.0)), "of the 100 trees that it needs"
    assert trial.within(1000, 500) is trial
    some = trial.within(2 * 2.0 + candidate.proof_seconds(3.0), 500)
    assert some.n_trees == 200
    assert "leaves time for 200 of 300 trees" in some.note
    assert trial.within(0.1, 500).n_trees == ENOUGH_TREES


def test_what_was_learned_is_plain_data(run: Run, forest: str) -> None:
    summary = learned(margrove.load(forest))
    assert json.loads(json.dumps(summary.to_dict()))["forest"]["measure"] == "accuracy"
    assert summary.size_words == "20 trees"
