"""`margrove train`: a table goes in, a certified model comes out."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

import margrove
from margrove.app.estimate.intervals import share_interval
from margrove.app.options.menu import choices

Run = Callable[..., Result]


def test_without_a_file_the_penguins_are_trained_certified_explained_and_saved(run: Run, folder: Path) -> None:
    result = run("train", "--model", "svm")
    assert result.exit_code == 0
    for said in ("Palmer penguins", "344 rows", "19 missing cells", "'species'", "Adelie (152)", "Learner: svm"):
        assert said in result.stdout
    for said in (" %, 95 % interval ", "always predicting 'Adelie'", "Certificate holds", "rows are support vectors"):
        assert said in result.stdout
    assert "margrove certify penguins.margrove" in result.stdout
    assert [path.name for path in folder.iterdir()] == ["penguins.margrove"]


def test_accuracy_of_a_single_learner_has_an_interval(run: Run) -> None:
    record = json.loads(run("train", "--model", "basic", "--json").stdout)
    kept = margrove.load("penguins.margrove").training_record_["estimate"]
    n_right = sum(truth == said for truth, said in zip(kept["truth"], kept["predicted"], strict=True))
    assert (record["estimate"]["low"], record["estimate"]["high"]) == share_interval(n_right, 344, 5, 344)
    assert (kept["low"], kept["high"]) == share_interval(n_right, 344, 5, 344)
    low, high = (f"{100 * end:.1f}" for end in share_interval(n_right, 344, 5, 344))
    said = " ".join(run("train", "--model", "basic").stdout.split())
    assert f" %, 95 % interval {low} … {high} % (5-fold cross-validation: each round trains on the other rows" in said


def test_the_saved_model_is_a_pipeline_that_predicts_in_python(run: Run, model: str, flowers: str) -> None:
    pipeline = margrove.load(model)
    assert [name for name, _ in pipeline.steps] == ["encode", "learn"]
    table = margrove.read_table(flowers, target="kind")
    assert (pipeline.predict(table) == table.labels()).all()
    assert pipeline[-1].certificate_.source == "recomputed"


@pytest.mark.parametrize("name", choices())
def test_every_learner_trains_and_its_saved_certificate_can_be_recomputed(run: Run, flowers: str, name: str) -> None:
    trained = run("train", flowers, "--model", name, "--folds", "2", "--json")
    assert trained.exit_code == 0
    record = json.loads(trained.stdout)
    assert record["learner"] == name
    assert record["certificate"]["source"] == "recomputed"
    assert record["certificate"]["holds"] is True
    again = run("certify", "flowers.margrove", flowers, "--json")
    assert again.exit_code == 0
    assert json.loads(again.stdout)["claims"] == record["certificate"]["claims"]


def test_json_is_one_document_and_nothing_else(run: Run, flowers: str) -> None:
    result = run("train", flowers, "--model", "svm", "--folds", "2", "--json")
    record = json.loads(result.stdout)
    assert result.stderr == ""
    assert record["learner"] == "svm"
    assert record["table"]["target"] == "kind"
    assert record["table"]["columns"] == {"numeric": 2, "category": 1}
    assert len(record["estimate"]["scores"]) == 2
    assert record["learned"]["machines"][0]["positive"] == "tulip"
    assert record["model"] == "flowers.margrove"


def test_quiet_prints_only_the_essential(run: Run, flowers: str) -> None:
    lines = run("train", flowers, "--folds", "2", "--quiet").stdout.splitlines()
    assert len(lines) == 2
    assert "Certificate holds" in lines[0]
    assert "flowers.margrove" in lines[1]


def test_the_same_seed_gives_the_same_bytes_but_for_times(run: Run, flowers: str, folder: Path) -> None:
    contents = []
    for name in ("a.margrove", "b.margrove"):
        run("train", flowers, "--model", "svm", "-o", name, "--seed", "7", "--folds", "0")
        model = margrove.load(name)
        record = model.training_record_
        assert record.pop("seconds") > 0
        assert record["certifying"].pop("seconds") >= 0
        for moment in record["course"]:
            moment.pop("seconds")
        margrove.save(model, name)
        contents.append((folder / name).read_bytes())
    assert contents[0] == contents[1]


def test_replaced_model_is_reported(run: Run, model: str, flowers: str) -> None:
    result = run("train", flowers, "--model", "svm", "--folds", "0")
    assert result.exit_code == 0
    assert "replacing" in result.stdout


def test_a_file_that_is_not_a_model_is_not_overwritten(run: Run, flowers: str, folder: Path, flowers_text: str) -> None:
    result = run("train", flowers, "-o", flowers)
    assert result.exit_code == 2
    assert "not a Margrove model" in result.stderr
    assert (folder / flowers).read_text() == flowers_text


def test_a_device_may_take_the_model(run: Run, flowers: str, folder: Path) -> None:
    assert run("train", flowers, "--model", "svm", "--folds", "0", "-o", os.devnull).exit_code == 0
    assert [path.name for path in folder.iterdir()] == [flowers]


def test_accuracy_no_better_than_the_baseline_is_reported(run: Run, folder: Path) -> None:
    (folder / "noise.csv").write_text("x,y\n" + "1,a\n1,b\n2,a\n2,b\n" * 5)
    assert (
        "Its accuracy is no better than the baseline. A permutation test finds no relation"
        in run("train", "noise.csv", "--model", "basic").stdout
    )


def test_options_of_the_table_are_passed_on_and_repeated_in_the_next_commands(run: Run, folder: Path) -> None:
    text = "1;red;x;a\n2;;y;a\n?;blue;z;b\n4;blue;w;b\n5;red;v;-\n"
    (folder / "my table.txt").write_text(text)
    options = ["--no-header", "--delimiter", ";", "--missing", "-", "--drop-unlabelled", "--folds", "2"]
    result = run("train", "my table.txt", *options, "--without", "column_3")
    assert result.exit_code == 0, result.stderr
    assert "1 row without a target left out" in result.stdout
    assert "column_3" not in json.dumps(json.loads(run("show", "my table.margrove", "--json").stdout)["columns"])
    command = next(line for line in result.stdout.splitlines() if "margrove certify '" in line)
    assert "'my table.margrove' 'my table.txt' --missing - --no-header --delimiter ';' --drop-unlabelled" in command
    command = next(line for line in result.stdout.splitlines() if "margrove predict" in line)
    assert command.strip() == "margrove predict 'my table.margrove' NEW.txt --missing - --no-header --delimiter ';'"


def test_odd_columns_are_named_once(run: Run, folder: Path) -> None:
    rows = "\n".join(f"name{i},{i},7,{'ab'[i % 2]}" for i in range(20))
    (folder / "odd.csv").write_text(f"who,size,same,kind\n{rows}\n")
    result = run("train", "odd.csv", "--folds", "2")
    assert result.exit_code == 0
    assert "'who'" not in result.stderr  # harmless: it is no warning
    assert result.stdout.count("; identifier left out: 'who'") == 1
    assert result.stderr.count("'same'") == 1


def test_params_reach_the_learner(run: Run, flowers: str) -> None:
    params = ["--model", "perceptron", "--param", "variant=voted", "--param", "max_iter=50"]
    record = json.loads(run("train", flowers, "--folds", "0", "--json", *params).stdout)
    assert record["parameters"]["variant"] == "voted"
    assert record["parameters"]["max_iter"] == 50
    assert record["learned"]["kind"] == "votes"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "svm", "--param", "colour=red"], "svm has no parameter 'colour'. It has"),
        (["--model", "svm", "--param", "max_iter=many"], "must be a number"),
        (["--model", "svm", "--param", "shrinking=1"], "must be true or false"),
        (["--param", "max_iter"], "must be name=value"),
        (["--param", "C=1", "--param", "C=2"], "given twice"),
        (["--param", "C=inf", "--param", "C=2"], "given twice"),
        (["--model", "svm", "--param", "C=much"], "must be a number"),
        (["--model", "svm", "--param", "C=-1"], "C is -1; it must be a number > 0. inf is the hard margin."),
        (
            ["--model", "svm", "--param", "gamma=big"],
            "gamma is 'big'; it must be 'scale', 'auto', 'median' or a number",
        ),
        (["--model", "svm", "--param", 'class_weight={"rose": 2}'], "are not in class_weight, which has 'rose'"),
        (["--model", "svm", "--param", "tol=0"], "tol is 0"),
        (["--model", "perceptron", "--param", "max_iter=0"], "max_iter is 0"),
        (["--model", "woods"], "must be one of auto, basic"),
        (["--folds", "1"], "--folds is 1"),
        (["--folds", "-3"], "--folds is -3"),
        (["--model", "svm", "--folds", "1"], "--folds is 1"),
        (["--folds", "0"], "--folds is 0, and --model auto chooses by cross-validation"),
        (["--budget", "0"], "--budget is 0, and --model auto needs time to try learners"),
        (["--param", "C=1"], "--param C is a parameter of one learner, and --model auto tries many"),
        (["--prefer", "fast"], "--prefer is 'fast'; it must be one of best, simple"),
        (["--prefer", "simple", "--model", "svm"], "--prefer simple requires --model auto, and --model is svm"),
        (["--without", "kind"], "--without kind: this column is the target"),
        (["--without", "kin"], "no column 'kin'"),
        (["--target", "kin"], "Did you mean 'kind'"),
        (["-o", "nowhere/model.margrove"], "no folder 'nowhere'"),
        (["-o", "."], "is a folder"),
        (["-o", ""], "-o is ''; it must name a file"),
        (
            ["--without", "petal", "--without", "colour", "--without", "height"],
            "flowers.csv: --without names every column. Leave one to learn from.",
        ),
        (["--model", "linear", "--param", "engine=reference"], "cannot search within a --budget. Use --budget 0."),
        (["--model", "tree", "--param", "n_jobs=99999"], "n_jobs is 99999; it must be a number of threads up to 1024"),
        (["-o", "-", "--json"], "both write to standard output"),
        (["--time-limit", "-1"], "error: --time-limit is -1"),
        (["--without", "heigth"], "there is no column 'heigth'. Did you mean 'height'?"),
        (["--text", "color"], "there is no column 'color' to read text from. Did you mean 'colour'?"),
        (["--model", "svm", "--param", "c=10"], "svm has no parameter 'c'. Did you mean 'C'? It has C, "),
        (["--model", "svm", "--param", "C=-1"], "C is -1; it must be a number > 0"),
        (["--model", "adaboost", "--param", "estimator__max_depth=0"], "max_depth is 0"),
        (["--model", "svm", "--budget", "0", "--param", "colour=red"], "svm has no parameter"),
        (["--budget", "soon"], "--budget is 'soon'; it must be a time such as 90, 60s, 5m or 1h. 0 means"),
        (["--budget", "-5s"], "--budget is '-5s'"),
        (["--budget", "nan"], "--budget is 'nan'"),
        (["--budget", ""], "--budget is ''"),
    ],
)
def test_a_wrong_option_is_one_line_and_nothing_is_written(
    run: Run, flowers: str, folder: Path, words: list[str], said: str
) -> None:
    result = run("train", flowers, *words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.startswith("margrove: error: ")
    assert len(result.stderr.splitlines()) == 1
    assert [path.name for path in folder.iterdir()] == [flowers]


def test_small_classes_reduce_or_cancel_the_folds_with_a_note(run: Run, folder: Path) -> None:
    (folder / "few.csv").write_text("x,y\n1,a\n2,a\n3,a\n7,b\n8,b\n9,c\n")
    record = json.loads(run("train", "few.csv", "--model", "svm", "--json").stdout)
    assert record["estimate"]["folds"] == 2
    assert len(record["estimate"]["notes"]) == 3
    (folder / "one.csv").write_text("x,y\n1,a\n2,a\n3,a\n7,b\n")
    result = run("train", "one.csv", "--model", "svm")
    assert result.exit_code == 0
    assert "not estimated: at least two classes need two or more rows each" in result.stdout


def test_what_cannot_be_separated_is_saved_with_a_certificate_that_does_not_hold(run: Run, folder: Path) -> None:
    (folder / "mixed.csv").write_text("x,y\n1,a\n1,b\n2,a\n2,b\n")
    result = run("train", "mixed.csv", "--folds", "0", "--model", "perceptron", "--param", "variant=last")
    assert result.exit_code == 0
    assert "does NOT hold" in result.stdout
    assert "status 'max_iter'" in result.stdout
    assert run("certify", "mixed.margrove", "mixed.csv").exit_code == 1


def test_many_classes_are_shown_in_one_column(run: Run, folder: Path) -> None:
    rows = "\n".join(f"{c + 0.1 * i},{c * c - 0.1 * i},k{c}" for c in range(6) for i in range(4))
    (folder / "six.csv").write_text(f"u,v,kind\n{rows}\n")
    result = run("train", "six.csv", "--model", "least-squares", "--folds", "2")
    assert result.exit_code == 0
    assert "all 6 classes" in run("certify", "six.margrove", "six.csv").stdout


@pytest.mark.parametrize(
    "words", [("--model", "adaboost"), ("--model", "svm", "--budget", "0", "--param", "probability=true")]
)
def test_probabilities_of_unseen_rows_are_kept(run: Run, words: tuple[str, ...]) -> None:
    assert run("train", *words, "--folds", "2").exit_code == 0
    kept = margrove.load("penguins.margrove").training_record_["estimate"]
    for scores, predicted in zip(kept["scores"], kept["predicted"], strict=True):
        assert sum(scores) == pytest.approx(1, abs=1e-4)
        assert scores[predicted] == max(scores)


def test_a_seed_beyond_the_range_of_numpy_is_refused(run: Run, flowers: str, folder: Path) -> None:
    result = run("train", flowers, "--seed", str(2**32))
    assert result.exit_code == 2
    assert "--seed" in result.stderr
    assert [path.name for path in folder.iterdir()] == [flowers]
    assert run("train", flowers, "--seed", str(2**32 - 1), "--model", "tree").exit_code == 0


def test_a_table_without_a_name_is_refused(run: Run, folder: Path) -> None:
    result = run("train", "")
    assert (result.exit_code, result.stderr) == (
        2,
        "margrove: error: the name of the table is ''; it must be that of a file, or '-'.\n",
    )


def test_without_a_search_any_engine_fits(run: Run, flowers: str) -> None:
    words = ("--model", "linear", "--param", "engine=reference", "--budget", "0", "--folds", "2")
    assert run("train", flowers, *words).exit_code == 0
