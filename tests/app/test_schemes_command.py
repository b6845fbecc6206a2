"""`margrove compare --schemes`, and the other commands on models of several machines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from margrove import (
    SVC,
    BasicLinearClassifier,
    BitStringClassifier,
    DecisionTreeClassifier,
    OneVsOneClassifier,
    TableEncoder,
    load_penguins,
    save,
)
from margrove.app.compare import Entry, best_of, schemes_for
from margrove.app.estimate.classes import CLASSES
from margrove.app.estimate.task import Estimate
from margrove.app.options.menu import choices
from margrove.app.screen.progress import in_words
from margrove.run.progress import Progress

Run = Callable[..., Result]


def test_every_scheme_has_its_line(run: Run, folder: Path) -> None:
    result = run("compare", "--schemes", "--folds", "2")
    assert result.exit_code == 0
    for name in ("svm itself", "one-vs-rest", "one-vs-one", "2-bit", "3-bit hadamard"):
        assert f"\n{name} " in result.stdout
    assert result.stdout.count("holds") == 5
    assert "certificate" in result.stdout
    assert re.search(r"Best: (svm itself|\S.* of svm), ", result.stdout)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("name", "machines"), [("tree", 1), ("basic", 3), ("perceptron", 3)])
def test_the_learner_can_be_chosen_and_json_has_every_number(run: Run, name: str, machines: int) -> None:
    record = json.loads(run("compare", "--schemes", "--model", name, "--folds", "2", "--json").stdout)
    assert record["learner"] == name
    assert [entry["machines"] for entry in record["schemes"]] == [machines, 3, 3, 2, 3]
    assert [entry["min_distance"] for entry in record["schemes"]] == [None, 2, 2, 1, 2]
    assert [entry["errors_corrected"] for entry in record["schemes"]] == [None, 0, 0, 0, 0]
    assert record["best"] in {entry["scheme"] for entry in record["schemes"]}
    for entry in record["schemes"]:
        assert entry["failure"] is None
        assert entry["seconds"] > 0
        assert entry["certificate"]["source"] == "recomputed"


@pytest.mark.parametrize("name", ["tree", "svm"])
def test_the_line_of_the_learner_itself_is_what_train_says(run: Run, folder: Path, name: str) -> None:
    record = json.loads(run("compare", "--schemes", "--model", name, "--folds", "2", "--json").stdout)
    own = record["schemes"][0]
    trained = json.loads(run("train", "--model", name, "--budget", "0", "--folds", "2", "--json").stdout)
    assert own["scheme"] == f"{name} itself"
    assert own["cross_validation"] == trained["estimate"]
    assert own["certificate"] == trained["certificate"]


def test_two_classes_need_no_scheme(run: Run, flowers: str) -> None:
    result = run("compare", flowers, "--schemes")
    assert result.exit_code != 0
    assert "there are 2. Leave --schemes out." in " ".join(result.stderr.split())


def test_a_learner_without_schemes_is_refused(run: Run, flowers: str) -> None:
    result = run("compare", flowers, "--model", "tree")
    assert result.exit_code != 0
    assert "goes with --schemes" in " ".join(result.stderr.split())
    unknown = run("compare", "--schemes", "--model", "forest")
    assert "must be one of" in " ".join(unknown.stderr.split())
    assert all(name in unknown.stderr for name in choices())


@pytest.mark.parametrize(
    ("classes", "names"),
    [
        (3, ["one-vs-rest", "one-vs-one", "2-bit", "3-bit hadamard"]),
        (4, ["one-vs-rest", "one-vs-one", "2-bit", "3-bit hadamard", "7-bit exhaustive"]),
        (26, ["one-vs-rest", "one-vs-one", "5-bit", "31-bit hadamard", "15-bit max-min"]),
    ],
)
def test_no_two_bit_strings_are_the_same_code(classes: int, names: list[str]) -> None:
    assert list(schemes_for(np.arange(classes), seed=0)) == names


def test_a_saved_scheme_is_shown_certified_and_predicts(run: Run, folder: Path) -> None:
    from sklearn.pipeline import make_pipeline

    penguins = load_penguins()
    y = penguins.labels()
    models = {
        "shared": make_pipeline(TableEncoder(), BitStringClassifier(SVC(), code="hadamard")),
        "trees": OneVsOneClassifier(DecisionTreeClassifier(max_depth=2)),
        "pipes": OneVsOneClassifier(make_pipeline(TableEncoder(), BasicLinearClassifier())),
    }
    for name, model in models.items():
        save(model.fit(penguins, y), folder / f"{name}.margrove")
        shown = run("show", f"{name}.margrove")
        assert shown.exit_code == 0, shown.output
        assert "3 machines, each a " in shown.stdout
        assert "minimum distance" in shown.stdout
        assert json.loads(run("show", f"{name}.margrove", "--json").stdout)["learned"]["kind"] == "machines"
        certified = run("certify", f"{name}.margrove")
        assert "HOLDS" in certified.stdout, certified.output
        predicted = run("predict", f"{name}.margrove", "--scores")
        assert predicted.exit_code == 0, predicted.output
        lines = predicted.stdout.splitlines()
        assert len(lines) == 345
        assert lines[0].count("score ") == 3


def test_the_meter_counts_machines() -> None:
    assert in_words(Progress("machines", 7.4, 26)) == "7 of 26 machines"


def test_of_schemes_that_do_equally_well_the_one_with_fewest_machines_is_best() -> None:
    def did(name: str, n_machines: int, *accuracies: float) -> Entry:
        estimate = Estimate(CLASSES, accuracies, float(np.mean(accuracies)))
        return Entry(name, {"machines": n_machines}, estimate)

    showings = [did("long", 63, 0.9, 1.0), did("short", 15, 1.0, 0.9), did("worse", 3, 0.8, 0.9)]
    best = best_of([Entry("none", failure="no"), *showings])
    assert best is not None
    assert best.name == "short"
    assert best_of([Entry("none", failure="no")]) is None
