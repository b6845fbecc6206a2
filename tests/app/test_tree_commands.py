"""Decision trees on the command line: tables as they are, rules that can be read, files that certify."""

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
from margrove.app.screen.progress import in_words
from margrove.run.progress import Progress

Run = Callable[..., Result]


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


def test_tree_is_trained_on_the_table_itself_and_defaults_are_printed(run: Run, outings: str) -> None:
    said = said_by(run("train", outings, "--model", "tree"))
    assert "missing cells in 2 columns, handled directly" in said
    assert "criterion=entropy, complexity=0.7" in said
    assert "prune=pessimistic" in said
    assert "on 22 benchmark tables" in said
    assert "Certificate holds" in said
    assert "rules, depth " in said
    assert "margrove show outings.margrove --rules" in said
    model = margrove.load("outings.margrove")
    assert isinstance(model, margrove.DecisionTreeClassifier)
    assert model.random_state is None
    assert model.target_ == "out"
    # What names the rows would tell them apart, and nothing else.
    assert model.feature_names_in_.tolist() == ["sky", "is_warm", "wind"]
    assert model.nodes_.columns[0].levels == ("clear", "cloudy", "wet")


def test_remark_on_defaults_is_omitted_if_parameters_are_set(run: Run, outings: str) -> None:
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


def test_show_prints_columns_tests_and_the_contribution_of_each_column(run: Run, tree: str) -> None:
    model = margrove.load(tree)
    said = said_by(run("show", tree))
    assert "predicts 'out': go, stay" in said
    assert "sky (category), is_warm (boolean), wind" in said
    set_here = "complexity=0.7, criterion='entropy', n_jobs=1, prune='pessimistic', the others at their defaults"
    assert f"parameters: {set_here}" in said
    assert f"{model.get_n_leaves()} rules, depth {model.get_depth()}" in said
    for line in str(model.rules()).splitlines():
        assert " ".join(line.split()) in said
    learned = json.loads(run("show", tree, "--json").stdout)["learned"]
    assert learned["kind"] == "rules"
    assert learned["tree"]["rules"] == model.rules().data()
    assert sum(learned["tree"]["importances"].values()) == pytest.approx(1)


def test_large_tree_is_shown_in_part_with_a_note(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(1)
    rows = [f"{u:.3f},{v:.3f},{rng.integers(0, 2)}" for u, v in rng.normal(size=(200, 2))]
    (folder / "noise.csv").write_text("u,v,y\n" + "\n".join(rows) + "\n")
    words = ["--param", "prune=null", "--param", "complexity=0", "--folds", "0"]
    said = run("train", "noise.csv", "--model", "tree", *words).stdout
    learned = said[said.index("What the model learned") :]
    assert "nodes below not shown" in learned
    assert "All rules: margrove show --rules MODEL" in learned
    assert len(learned.splitlines()) < 45
    model = margrove.load("noise.margrove")
    assert len(run("show", "noise.margrove", "--rules").stdout.splitlines()) == model.nodes_.n_nodes - 1


@pytest.mark.parametrize("language", ["python", "sql", "c"])
def test_code_is_printed_as_the_library_writes_it(run: Run, tree: str, language: str) -> None:
    model = margrove.load(tree)
    assert run("export", tree, "--to", language).stdout == getattr(model, f"to_{language}")() + "\n"


def test_code_that_was_printed_predicts_as_the_tree(run: Run, tree: str, outings: str, folder: Path) -> None:
    namespace: dict[str, Callable[[dict[str, object]], str]] = {}
    exec(run("export", tree, "--to", "python").stdout, namespace)
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
    for words in (["show", "--rules"], ["show", "--lines"], ["export", "--to", "c"]):
        refused = run(words[0], model, *words[1:])
        assert refused.exit_code == 2
        assert "is for decision trees, and this model is a perceptron" in refused.stderr
    unknown = run("export", tree, "--to", "java")
    assert "--to is 'java'; it must be one of python, sql, c" in unknown.stderr


def test_predict_gives_labels_and_the_probability_of_each_class(run: Run, tree: str, outings: str) -> None:
    result = run("predict", tree, outings, "--scores")
    rows = list(csv.reader(io.StringIO(result.stdout)))
    assert rows[0] == ["out", "probability go", "probability stay"]
    model, table = margrove.load(tree), margrove.read_table(outings)
    features = table.select(["sky", "is_warm", "wind"])
    assert [row[0] for row in rows[1:]] == model.predict(features).tolist()
    assert [[float(cell) for cell in row[1:]] for row in rows[1:]] == model.predict_proba(features).tolist()
    assert "of 120 predictions are correct" in result.stderr


def test_predict_reports_levels_that_training_did_not_have(run: Run, tree: str, folder: Path) -> None:
    (folder / "new.csv").write_text("wind,sky,is_warm\n3.5,foggy,true\n,cloudy,\n")
    result = run("predict", tree, "new.csv")
    assert result.exit_code == 0, result.output
    assert "1 cell of categories unseen in training: sky='foggy' (1); each takes the heaviest branch" in result.stderr
    assert len(result.stdout.splitlines()) == 3


def test_certify_recomputes_a_tree_and_sees_what_was_disturbed(run: Run, tree: str, outings: str) -> None:
    holds = run("certify", tree, outings)
    assert holds.exit_code == 0, holds.output
    assert "Certificate holds" in holds.stdout
    model = margrove.load(tree)
    model.nodes_.value[-1] += 1
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
    assert "predicts the number 'length'" in run("show", "lengths.margrove").stdout
    assert run("show", "lengths.margrove", "--rules").stdout.rstrip("\n") == str(tree.rules())
    assert run("predict", "lengths.margrove", "lengths.csv", "--scores").exit_code == 2


@pytest.mark.parametrize("model", ["tree", "perceptron"])
def test_columns_that_are_left_out_are_not_counted_as_learned_from(run: Run, outings: str, model: str) -> None:
    said = said_by(run("train", outings, "--model", model, "--folds", "0"))
    assert "120 rows, 3 feature columns: 1 categorical, 1 yes/no, 1 numeric; identifier left out: 'name'" in said
    told = json.loads(run("train", outings, "--model", model, "--folds", "0", "--json").stdout)
    assert told["table"]["left_out"] == ["name"]
    assert sum(told["table"]["columns"].values()) == 3


def test_a_table_of_nothing_but_names_is_refused(run: Run, folder: Path) -> None:
    rows = "".join(f"row {i},{'ab'[i % 2]}\n" for i in range(20))
    (folder / "names.csv").write_text("name,y\n" + rows)
    refused = run("train", "names.csv", "--model", "tree")
    assert refused.exit_code == 2
    assert "no column is left to learn from: each is an identifier" in refused.stderr


def test_the_bar_of_a_tree_counts_rows_in_leaves() -> None:
    assert in_words(Progress("tree", done=12_000, total=50_000)) == "12,000 of 50,000 rows in leaves"


@pytest.fixture
def houses(folder: Path) -> str:
    """A price that depends on the size and the town; the rooms are integers that repeat."""
    rng = np.random.default_rng(1)
    lines = ["size,town,rooms,price"]
    for _ in range(150):
        size, town = rng.uniform(40, 200), rng.choice(["north", "south", ""])
        price = 2.5 * size + (80 if town == "south" else 0) + rng.normal(0, 10)
        lines.append(f"{size:.1f},{town},{round(size / 40)},{price:.2f}")
    (folder / "houses.csv").write_text("\n".join(lines) + "\n")
    return "houses.csv"


def test_a_target_that_is_a_quantity_grows_a_regression_tree(run: Run, houses: str) -> None:
    said = said_by(run("train", houses, "--model", "tree"))
    assert "target 'price', a number from" in said
    assert "(regression)" in said
    assert "significance=0.05" in said
    assert "R² 0.9" in said
    assert "by always predicting the median" in said
    assert "Certificate holds" in said
    assert "Contribution of each column to the estimate: size" in said
    assert isinstance(margrove.load("houses.margrove"), margrove.DecisionTreeRegressor)
    assert "predicts the number 'price'" in said_by(run("show", "houses.margrove"))
    assert run("certify", "houses.margrove", houses).exit_code == 0
    assert "R² 0.9" in said_by(run("predict", "houses.margrove", houses, "-o", "prices.csv"))


def test_document_of_a_regression(run: Run, houses: str) -> None:
    record = json.loads(run("train", houses, "--model", "tree", "--folds", "3", "--json").stdout)
    assert record["table"]["task"] == "regress"
    assert record["table"]["classes"] == []
    numbers = record["table"]["numbers"]
    assert numbers["least"] < numbers["mean"] < numbers["largest"]
    estimate = record["estimate"]
    assert estimate["folds"] == len(estimate["mean_absolute_errors"]) == 3
    assert 0.9 < estimate["r2"] < 1
    assert estimate["mean_absolute_error"] < estimate["baseline_mean_absolute_error"] / 3
    predicted = json.loads(run("predict", "houses.margrove", houses, "--json").stdout)
    assert predicted["accuracy"] is None
    assert estimate["r2"] < predicted["r2"] <= 1  # these rows it has seen
    assert "R² 0.9" in run("train", houses, "--model", "tree", "-q").stdout


def test_task_overrides_the_inferred_one(run: Run, houses: str) -> None:
    as_it_looks = said_by(run("train", houses, "--model", "tree", "--target", "rooms"))
    assert "treated as classes; --task regress predicts them as numbers" in as_it_looks
    assert isinstance(margrove.load("houses.margrove"), margrove.DecisionTreeClassifier)
    said = said_by(run("train", houses, "--model", "tree", "--target", "rooms", "--task", "regress"))
    assert "(regression)" in said
    assert isinstance(margrove.load("houses.margrove"), margrove.DecisionTreeRegressor)
    said = said_by(run("train", houses, "--model", "tree", "--target", "rooms", "--task", "classify"))
    assert "treated as classes;" not in said


def test_many_integers_are_classes_only_on_request(run: Run, folder: Path) -> None:
    (folder / "counts.csv").write_text("x,n\n" + "".join(f"{i / 7:.3f},{i // 2 + i % 2}\n" for i in range(60)))
    assert "(regression)" in said_by(run("train", "counts.csv", "--model", "tree", "--folds", "0"))
    result = run("train", "counts.csv", "--model", "tree", "--task", "classify", "--folds", "0")
    assert "31 classes" in said_by(result)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ("--model", "svm", "--task", "regress"),
            "svm is a classifier. Learners that predict numbers: --model linear, --model tree, --model adaboost, "
            "--model forest.",
        ),
        (("--model", "svm"), "Estimate it with `margrove train --model tree`"),
        (("--model", "tree", "--task", "guess"), "--task is 'guess'; it must be one of classify, regress"),
        (("--model", "tree", "--task", "classify"), "is not a whole number), not a class"),
        (("--task", "regress", "--model", "tree", "--target", "town", "--drop-unlabelled"), "targets are not numbers"),
        (("--model", "tree", "--param", "colour=red"), "has no parameter 'colour'"),
        (("--model", "tree", "--param", "smoothing=1"), "has no parameter 'smoothing'"),
        (("--model", "tree", "--folds", "1"), "--folds is 1"),
    ],
)
def test_what_cannot_be_estimated_is_refused_with_a_cure(
    run: Run, houses: str, options: tuple[str, ...], words: str
) -> None:
    result = run("train", houses, *options)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert not Path("houses.margrove").exists()


def test_missing_folds_and_few_rows_are_reported(run: Run, folder: Path) -> None:
    (folder / "three.csv").write_text("x,y\n1,0.5\n2,1.5\n3,2.5\n")
    assert "3 folds, because there are only 3 rows" in said_by(run("train", "three.csv", "--model", "tree"))
    assert "not estimated, as requested" in said_by(run("train", "three.csv", "--model", "tree", "--folds", "0"))


def test_long_lists_of_levels_are_clipped_by_default(run: Run, folder: Path) -> None:
    rows = [f"s{c:02},{'ab'[c % 2]}" for c in range(40) for _ in range(8)]
    (folder / "shops.csv").write_text("\n".join(["shop,kind", *rows]) + "\n")
    options = ("--model", "tree", "--folds", "0", "--param", "complexity=0")
    assert "more}" in said_by(run("train", "shops.csv", *options))
    assert "… 10 more}" in said_by(run("show", "shops.margrove", "--rules"))
    assert "… 17 more}" in said_by(run("show", "shops.margrove", "--lines", "--max-levels", "3"))
    whole = said_by(run("show", "shops.margrove", "--rules", "--max-levels", "0"))
    assert all(f"s{c:02}" in whole for c in range(40))
    assert "--max-levels is -1" in run("show", "shops.margrove", "--rules", "--max-levels", "-1").stderr
    assert "more" not in run("export", "shops.margrove", "--to", "python").stdout


def test_estimates_are_shown_with_the_unit_of_the_target(run: Run, folder: Path) -> None:
    lines = [
        f"{20 + 2 * i} m²;{'Süd' if i % 3 else 'West'};{2 * i + 50 * (i % 3)}.5{i % 10}0,00 €" for i in range(5, 105)
    ]
    (folder / "homes.csv").write_text("Area;Region;Price\n" + "\n".join(lines) + "\n")
    said = said_by(run("train", "homes.csv", "--model", "tree", "--folds", "3"))
    assert re.search(r"mean absolute error [\d,]+ € ", said)
    assert re.search(r"Baseline: error [\d,]+ € by", said)
    assert re.search(r": \d+,[\d.]+ € ± [\d,]+ € \(\d+ rows\)", said)
    form = margrove.load("homes.margrove").target_format_
    assert (form.unit, form.decimal) == ("€", ",")
    assert re.search(r"mean absolute error [\d,]+ € \(cross-validation\)", said_by(run("show", "homes.margrove")))
    assert "€ ± " in said_by(run("show", "homes.margrove", "--lines"))
    compared = run("predict", "homes.margrove", "homes.csv").stderr
    assert re.search(r"Compared with 'Price' in the table: R² [\d.]+, mean absolute error [\d,]+ € over 100", compared)
    report = run("report", "homes.margrove", "homes.csv", "--format", "md", "-o", "-").stdout
    for words in (
        r"Its mean absolute error is [\d,]+ €; ",
        r"estimated [\d,]+ €, true value [\d,]+ €",
        "Without 'Area' R² falls by",
    ):
        assert re.search(words, report), words
    assert "e+0" not in report.partition("Certificate")[0]
    assert "€" in run("report", "homes.margrove", "homes.csv", "-o", "-").stdout.partition("Diagram of the tree")[2]
