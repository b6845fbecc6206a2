"""Decision trees on the command line: tables as they are, rules that can be read, files that certify."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

import margrove
from margrove.progress import Progress
from margrove.surface.meter import in_words

Run = Callable[..., Result]


def said_by(result: Result) -> str:
    """What was printed, its lines joined."""
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


@pytest.fixture
def outings(folder: Path) -> str:
    """Text, truth values, numbers, missing cells, and a column that names the rows."""
    rng = np.random.default_rng(0)
    lines = ["name,sky,is_warm,wind,out"]
    for i in range(120):
        sky, warm, wind = rng.choice(["clear", "cloudy", "wet"]), rng.random() < 0.5, rng.uniform(0, 9)
        goes = sky == "cloudy" or (sky == "clear" and wind < 5)
        goes = goes != (rng.random() < 0.05)
        shown = "" if rng.random() < 0.1 else f"{wind:.2f}"
        lines.append(
            f"day {i},{'' if rng.random() < 0.1 else sky},{str(warm).lower()},{shown},{'go' if goes else 'stay'}"
        )
    (folder / "outings.csv").write_text("\n".join(lines) + "\n")
    return "outings.csv"


@pytest.fixture
def tree(run: Run, outings: str) -> str:
    result = run("train", outings, "--model", "tree", "--folds", "0", "--param", "n_jobs=1")
    assert result.exit_code == 0, result.output
    return "outings.margrove"


def test_a_tree_is_trained_on_the_table_as_it_is_and_says_what_was_chosen(run: Run, outings: str) -> None:
    said = said_by(run("train", outings, "--model", "tree"))
    assert "missing cells in 2 columns, taken as they are" in said
    assert "criterion=entropy, complexity=0.7" in said
    assert "prune=pessimistic" in said
    assert "on 22 real tables" in said
    assert "The certificate HOLDS" in said
    assert "rules, at most" in said
    assert "margrove show outings.margrove --rules" in said
    model = margrove.load("outings.margrove")
    assert isinstance(model, margrove.DecisionTreeClassifier)
    assert model.random_state is None
    assert model.target_ == "out"
    # What names the rows would tell them apart, and nothing else.
    assert model.feature_names_in_.tolist() == ["sky", "is_warm", "wind"]
    assert model.tree_.columns[0].levels == ("clear", "cloudy", "wet")


def test_parameters_of_the_tree_can_be_set_and_then_nothing_is_said_of_the_defaults(run: Run, outings: str) -> None:
    words = ["--param", "prune=null", "--param", "ccp_alpha=cv", "--param", "max_depth=3"]
    said = said_by(run("train", outings, "--model", "tree", "--folds", "0", *words))
    assert "22 real tables" not in said
    model = margrove.load("outings.margrove")
    assert (model.prune, model.ccp_alpha, model.max_depth) == (None, "cv", 3)
    wrong = run("train", outings, "--model", "tree", "--param", "prune=hard")
    assert wrong.exit_code == 2
    assert "prune is 'hard'; it must be one of" in wrong.stderr


def test_rules_are_printed_alone_and_are_those_of_the_tree(run: Run, tree: str) -> None:
    model = margrove.load(tree)
    assert run("show", tree, "--rules").stdout.rstrip("\n") == str(model.rules())
    assert run("show", "--rules", tree).stdout.rstrip("\n") == str(model.rules())
    assert run("show", tree, "--lines").stdout.rstrip("\n") == str(model.rules(style="lines"))
    record = json.loads(run("show", tree, "--rules", "--json").stdout)
    assert record["rules"] == model.rules().data()


def test_show_tells_columns_questions_and_what_each_column_contributes(run: Run, tree: str) -> None:
    model = margrove.load(tree)
    said = said_by(run("show", tree))
    assert "tells apart 'out': go, stay" in said
    assert "sky (category), is_warm (boolean), wind" in said
    set_here = "complexity=0.7, criterion='entropy', n_jobs=1, prune='pessimistic', the others as by default"
    assert f"parameters: {set_here}" in said
    assert f"{model.get_n_leaves()} rules, at most {model.get_depth()} questions deep" in said
    for line in str(model.rules()).splitlines():
        assert " ".join(line.split()) in said
    learned = json.loads(run("show", tree, "--json").stdout)["learned"]
    assert learned["kind"] == "rules"
    assert learned["tree"]["rules"] == model.rules().data()
    assert sum(learned["tree"]["importances"].values()) == pytest.approx(1)


def test_a_large_tree_is_shown_in_part_and_says_so(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(1)
    rows = [f"{u:.3f},{v:.3f},{rng.integers(0, 2)}" for u, v in rng.normal(size=(200, 2))]
    (folder / "noise.csv").write_text("u,v,y\n" + "\n".join(rows) + "\n")
    words = ["--param", "prune=null", "--param", "complexity=0", "--folds", "0"]
    said = run("train", "noise.csv", "--model", "tree", *words).stdout
    learned = said[said.index("What it learned") :]
    assert "nodes below not shown" in learned
    assert "All of it: margrove show --rules MODEL" in learned
    assert len(learned.splitlines()) < 45
    model = margrove.load("noise.margrove")
    assert len(run("show", "noise.margrove", "--rules").stdout.splitlines()) == model.tree_.n_nodes - 1


@pytest.mark.parametrize("language", ["python", "sql", "c"])
def test_code_is_printed_as_the_library_writes_it(run: Run, tree: str, language: str) -> None:
    model = margrove.load(tree)
    assert run("show", tree, "--code", language).stdout == getattr(model, f"to_{language}")() + "\n"


def test_code_that_was_printed_predicts_as_the_tree(run: Run, tree: str, outings: str, folder: Path) -> None:
    namespace: dict[str, Callable[[dict[str, object]], str]] = {}
    exec(run("show", tree, "--code", "python").stdout, namespace)
    answers = run("predict", tree, outings).stdout.splitlines()[1:]
    rows = csv.DictReader(io.StringIO((folder / outings).read_text()))
    for row, answer in zip(rows, answers, strict=True):
        cells = {
            "sky": row["sky"] or None,
            "is_warm": row["is_warm"] == "true",
            "wind": float(row["wind"]) if row["wind"] else None,
        }
        assert namespace["predict"](cells) == answer


def test_rules_and_code_are_for_trees_that_were_trained_on_tables(
    run: Run, model: str, tree: str, folder: Path
) -> None:
    for words in (["--rules"], ["--lines"], ["--code", "c"]):
        refused = run("show", model, *words)
        assert refused.exit_code == 2
        assert "is for decision trees, and this is a Perceptron" in refused.stderr
    unknown = run("show", tree, "--code", "java")
    assert "--code is 'java'; it must be one of python, sql, c" in unknown.stderr
    assert run("show", tree, "--code", "c", "--rules").exit_code == 2


def test_predict_gives_labels_and_the_probability_of_each_class(run: Run, tree: str, outings: str) -> None:
    result = run("predict", tree, outings, "--scores")
    rows = list(csv.reader(io.StringIO(result.stdout)))
    assert rows[0] == ["out", "probability go", "probability stay"]
    model, table = margrove.load(tree), margrove.read_table(outings)
    features = table.select(["sky", "is_warm", "wind"])
    assert [row[0] for row in rows[1:]] == model.predict(features).tolist()
    assert [[float(cell) for cell in row[1:]] for row in rows[1:]] == model.predict_proba(features).tolist()
    assert "of 120 predictions agree with it" in result.stderr


def test_predict_tells_of_levels_that_training_did_not_know(run: Run, tree: str, folder: Path) -> None:
    (folder / "new.csv").write_text("wind,sky,is_warm\n3.5,foggy,true\n,cloudy,\n")
    result = run("predict", tree, "new.csv")
    assert result.exit_code == 0, result.output
    assert "1 cell of categories unseen in training: sky='foggy' (1); each takes the heaviest branch" in result.stderr
    assert len(result.stdout.splitlines()) == 3


def test_certify_recomputes_a_tree_and_sees_what_was_disturbed(run: Run, tree: str, outings: str) -> None:
    holds = run("certify", tree, outings)
    assert holds.exit_code == 0, holds.output
    assert "HOLDS" in holds.stdout
    model = margrove.load(tree)
    model.tree_.value[-1] += 1
    margrove.save(model, tree)
    assert run("certify", tree, outings, "--quiet").exit_code == 1


def test_compare_has_a_line_for_the_tree(run: Run, outings: str) -> None:
    record = json.loads(run("compare", outings, "--folds", "2", "--json").stdout)
    (line,) = [learner for learner in record["learners"] if learner["learner"] == "tree"]
    assert line["failure"] is None
    assert line["certificate"]["holds"] is True
    assert line["size"].endswith("rules")
    assert line["cross_validation"]["mean"] > 0.8


def test_a_tree_of_numbers_that_python_saved_predicts_and_certifies(run: Run, folder: Path) -> None:
    rows = "".join(f"{'ab'[i % 2]},{i},{i + i % 2}\n" for i in range(20))
    (folder / "lengths.csv").write_text("kind,mass,length\n" + rows)
    table = margrove.read_table("lengths.csv", target="length")
    tree = margrove.DecisionTreeRegressor(max_depth=3).fit(table, table.target.values)
    margrove.save(tree, "lengths.margrove")
    predicted = run("predict", "lengths.margrove", "lengths.csv").stdout.splitlines()
    assert predicted[0] == "length"
    assert [float(cell) for cell in predicted[1:]] == tree.predict(table).tolist()
    assert run("certify", "lengths.margrove", "lengths.csv").exit_code == 0
    assert "estimates 'length'" in run("show", "lengths.margrove").stdout
    assert run("show", "lengths.margrove", "--rules").stdout.rstrip("\n") == str(tree.rules())
    assert run("predict", "lengths.margrove", "lengths.csv", "--scores").exit_code == 2


def test_a_target_of_quantities_is_refused_as_before(run: Run, folder: Path) -> None:
    (folder / "lengths.csv").write_text("a,length\n" + "".join(f"{i},{i / 7:.4f}\n" for i in range(60)))
    refused = run("train", "lengths.csv", "--model", "tree")
    assert refused.exit_code == 2
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize("model", ["tree", "perceptron"])
def test_columns_that_are_left_out_are_not_counted_as_learned_from(run: Run, outings: str, model: str) -> None:
    said = said_by(run("train", outings, "--model", model, "--folds", "0"))
    assert "120 rows, 3 columns to learn from: 1 category, 1 yes/no, 1 number; left out: 'name'" in said
    told = json.loads(run("train", outings, "--model", model, "--folds", "0", "--json").stdout)
    assert told["table"]["left_out"] == ["name"]
    assert sum(told["table"]["columns"].values()) == 3


def test_a_table_of_nothing_but_names_is_refused(run: Run, folder: Path) -> None:
    rows = "".join(f"row {i},{'ab'[i % 2]}\n" for i in range(20))
    (folder / "names.csv").write_text("name,y\n" + rows)
    refused = run("train", "names.csv", "--model", "tree")
    assert refused.exit_code == 2
    assert "no column is left to learn from: each names the rows" in refused.stderr


def test_the_bar_of_a_tree_counts_rows_in_leaves() -> None:
    assert in_words(Progress("tree", done=12_000, total=50_000)) == "12,000 of 50,000 rows in leaves"
