"""`margrove predict`: columns by name in any order, missing ones refused, extra ones told."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from typer.testing import Result

import margrove

Run = Callable[..., Result]


def test_columns_are_matched_by_name_in_any_order(run: Run, model: str, folder: Path) -> None:
    (folder / "new.csv").write_text("height,colour,petal\n10,red,1.0\n31,yellow,3.1\n")
    result = run("predict", model, "new.csv")
    assert result.exit_code == 0
    assert result.stdout == "kind\ndaisy\ntulip\n"
    assert result.stderr == ""


def test_what_is_not_evident_in_the_table_is_said(run: Run, model: str, folder: Path) -> None:
    (folder / "new.csv").write_text("March,,\nheight,colour,petal\n10,red,1.0\n31,k.A.,3.1\nTotal,,4.1\n")
    result = run("predict", model, "new.csv")
    assert result.stdout == "kind\ndaisy\ntulip\n"
    told = " ".join(result.stderr.split())
    assert "1 line above the column names is left out: 1. 1 line with totals, such as 'Total', is left out: 5." in told
    assert "Column 'colour': 'k.A.' is read as missing." in told


def test_a_missing_column_is_named_and_nothing_is_written(run: Run, model: str, folder: Path) -> None:
    (folder / "new.csv").write_text("petal,colour\n1.0,red\n")
    result = run("predict", model, "new.csv", "-o", "out.csv")
    assert result.exit_code == 2
    assert result.stderr.startswith("margrove: error: new.csv: ")
    assert "'height'" in result.stderr
    assert not (folder / "out.csv").exists()


def test_misspelt_column_to_keep_is_guessed(run: Run, model: str, flowers: str) -> None:
    assert (
        "there is no column 'heigth'. Did you mean 'height'?"
        in run("predict", model, flowers, "--keep", "heigth").stderr
    )


def test_extra_columns_are_reported_and_the_target_is_not_one(run: Run, model: str, folder: Path) -> None:
    (folder / "new.csv").write_text("kind,petal,weather,colour,height\ndaisy,1,wet,red,10\ndaisy,3,dry,red,32\n")
    result = run("predict", model, "new.csv")
    assert result.exit_code == 0
    assert "'weather'" in result.stderr
    assert "50.0 % of 2 predictions are correct" in result.stderr
    assert "ignored: 'kind'" not in result.stderr
    (folder / "one.csv").write_text("kind,petal,colour,height\ndaisy,1,red,10\n")
    assert "of 1 prediction is correct" in run("predict", model, "one.csv").stderr


def test_training_rows_are_reported_with_the_expected_score_of_new_rows(run: Run, folder: Path, flowers: str) -> None:
    run("train", flowers, "--model", "basic", "--folds", "2", "-o", "m.margrove")
    told = " ".join(run("predict", "m.margrove", flowers).stderr.split())
    kept = margrove.load("m.margrove").training_record_["estimate"]
    assert f"These are the training rows; on new rows expect {100 * kept['value']:.1f} %, 95 % interval " in told
    assert "on rows held out in training)." in told
    header, *rows = (folder / flowers).read_text().splitlines()
    others = {
        "shorter.csv": rows[:-1],
        "turned.csv": rows[::-1],
        "others.csv": [row.replace("3.0,", "4.0,") for row in rows],  # of the same classes, in the same order
    }
    for name, lines in others.items():
        (folder / name).write_text("\n".join([header, *lines, ""]))
        assert "learned from" not in run("predict", "m.margrove", name).stderr
    assert json.loads(run("predict", "m.margrove", flowers, "--json").stdout)["is_of_training"] is True
    assert json.loads(run("predict", "m.margrove", "others.csv", "--json").stdout)["is_of_training"] is False


def test_training_rows_of_a_regression_are_reported_with_the_expected_error(run: Run, folder: Path) -> None:
    (folder / "line.csv").write_text("x,y\n" + "".join(f"{k},{2.5 * k + k % 3}\n" for k in range(40)))
    run("train", "line.csv", "--model", "tree", "--folds", "2")
    told = " ".join(run("predict", "line.margrove", "line.csv").stderr.split())
    assert "These are the training rows; on new rows expect R² 0." in told
    assert ", mean absolute error " in told


def test_training_rows_of_a_model_without_an_estimate_are_reported(run: Run, flowers: str) -> None:
    run("train", flowers, "--model", "basic", "--folds", "0", "-o", "m.margrove")
    assert "training rows; expect a lower score on new rows." in run("predict", "m.margrove", flowers).stderr


@pytest.mark.parametrize("mark", [None, "abc", {}, {"columns": 3}, {"target": 1, "columns": {"petal": 2}}])
def test_forged_fingerprint_is_ignored(run: Run, model: str, flowers: str, mark: object) -> None:
    saved = margrove.load(model)
    saved.training_record_ = {"fingerprint": mark}
    margrove.save(saved, model)
    result = run("predict", model, flowers)
    assert result.exit_code == 0
    assert "learned from" not in result.stderr


def test_unseen_category_is_reported(run: Run, model: str, folder: Path) -> None:
    (folder / "new.csv").write_text("petal,colour,height\n1,purple,10\n")
    result = run("predict", model, "new.csv")
    assert result.exit_code == 0
    assert "purple" in result.stderr


def test_scores_are_the_decision_values(run: Run, model: str, flowers: str) -> None:
    lines = run("predict", model, flowers, "--scores", "--quiet").stdout.splitlines()
    assert lines[0] == "kind,score tulip vs daisy"
    table = margrove.read_table(flowers, target="kind")
    expected = margrove.load(model).decision_function(table)
    np.testing.assert_array_equal([float(line.split(",")[1]) for line in lines[1:]], expected)


def test_csv_file_is_written_and_reported(run: Run, model: str, flowers: str, folder: Path) -> None:
    result = run("predict", model, flowers, "-o", "out.csv")
    assert result.exit_code == 0
    assert "Wrote 8 predictions of 'kind' to out.csv" in result.stdout
    assert (folder / "out.csv").read_text().splitlines()[:2] == ["kind", "daisy"]
    assert sorted(path.name for path in folder.iterdir()) == ["flowers.csv", "flowers.margrove", "out.csv"]


@pytest.mark.parametrize("victim", ["flowers.csv", "flowers.margrove"])
def test_what_is_read_is_not_overwritten(run: Run, model: str, flowers: str, folder: Path, victim: str) -> None:
    before = (folder / victim).read_bytes()
    result = run("predict", model, flowers, "-o", victim)
    assert result.exit_code == 2
    assert (folder / victim).read_bytes() == before


def test_json_holds_rows_and_accuracy(run: Run, model: str, flowers: str) -> None:
    record = json.loads(run("predict", model, flowers, "--json", "--scores").stdout)
    assert record["columns"] == ["kind", "score tulip vs daisy"]
    assert len(record["rows"]) == 8
    assert record["accuracy"] == 1.0


def test_json_writes_the_file_too_and_names_it(run: Run, model: str, flowers: str, folder: Path) -> None:
    record = json.loads(run("predict", model, flowers, "--json", "-o", "predictions.csv").stdout)
    assert record["output"] == "predictions.csv"
    assert (folder / "predictions.csv").read_text().splitlines() == ["kind", *(label for [label] in record["rows"])]
    assert json.loads(run("predict", model, flowers, "--json").stdout)["output"] is None


@pytest.mark.parametrize(("output", "said"), [("nowhere/x.csv", "there is no folder 'nowhere'"), (".", "is a folder")])
def test_a_place_that_cannot_be_written_to_is_refused_before_any_work(run: Run, output: str, said: str) -> None:
    result = run("predict", "no-such.margrove", "no-such.csv", "-o", output)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"margrove: error: {output}: {said}")


def test_predictions_can_be_written_to_a_device(run: Run, model: str, flowers: str) -> None:
    assert run("predict", model, flowers, "-o", os.devnull).exit_code == 0


def test_a_cell_of_another_kind_is_named_by_its_row_counted_from_1(run: Run, model: str, folder: Path) -> None:
    (folder / "new.csv").write_text("petal,colour,height\nold,red,10\n3,red,11\n")
    result = run("predict", model, "new.csv")
    assert result.exit_code == 2
    assert "'old' in row 1 is not a number" in result.stderr


def test_labels_that_csv_must_quote_survive(run: Run, folder: Path) -> None:
    (folder / "t.csv").write_text('x,y\n1,"a, ""b"""\n2,"a, ""b"""\n8,ü\n9,ü\n')
    run("train", "t.csv", "--folds", "0", "--model", "svm")
    result = run("predict", "t.margrove", "t.csv", "--quiet")
    assert result.stdout_bytes.decode() == 'y\n"a, ""b"""\n"a, ""b"""\nü\nü\n'


def test_a_bare_model_saved_from_python_predicts_too(run: Run, folder: Path) -> None:
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [4.0, 5.0], [5.0, 4.0]]), np.array([0, 0, 1, 1])
    margrove.save(margrove.BasicLinearClassifier().fit(X, y), "bare.margrove")
    (folder / "new.csv").write_text("u,v\n0.5,0.5\n4.5,4.5\n")
    assert run("predict", "bare.margrove", "new.csv").stdout == "prediction\n0\n1\n"
    assert run("show", "bare.margrove").exit_code == 0


def test_model_and_table_cannot_both_come_from_the_pipe(run: Run) -> None:
    for command in ("predict", "certify"):
        result = run(command, "-", "-")
        assert result.exit_code == 2
        assert "both '-'" in result.stderr


def test_columns_are_kept_as_they_are_written(run: Run, model: str, folder: Path) -> None:
    (folder / "new.csv").write_text("id;when;petal;colour;height\n0012;2024-01-02;1,10;red;10\n0013;;3,00;?;30\n")
    result = run("predict", model, "new.csv", "--keep", "id,when,petal")
    assert result.stdout.splitlines() == ["id,when,petal,kind", '0012,2024-01-02,"1,10",daisy', '0013,,"3,00",tulip']


def test_target_column_that_is_kept_keeps_its_name(run: Run, model: str, flowers: str) -> None:
    lines = run("predict", model, flowers, "--keep", "all").stdout.splitlines()
    assert lines[0] == "petal,colour,height,kind,predicted kind"
    assert lines[1] == "1.0,red,10,daisy,daisy"


def test_a_column_to_keep_that_is_not_there_is_named(run: Run, model: str, flowers: str) -> None:
    result = run("predict", model, flowers, "--keep", "petal,nome")
    assert result.exit_code == 2
    assert "'nome'" in result.stderr
    assert result.stdout == ""


def test_cells_with_line_breaks_and_quotes_are_kept(run: Run, model: str, folder: Path) -> None:
    (folder / "new.csv").write_text('note,petal,colour,height\n"two\nlines, ""quoted""",1.1,red,10\nplain,3.0,red,30\n')
    result = run("predict", model, "new.csv", "--keep", "note")
    assert result.stdout == 'note,kind\n"two\nlines, ""quoted""",daisy\nplain,tulip\n'


def test_parquet_keeps_numbers_whole_and_gaps_empty(run: Run, model: str, folder: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    columns = {"id": [7, None], "petal": [1.1, 3.0], "colour": ["red", "red"], "height": [10.0, 30.0]}
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "new.parquet")
    assert run("predict", model, "new.parquet", "--keep", "id").stdout == "id,kind\n7,daisy\n,tulip\n"


def test_json_has_the_kept_columns_too(run: Run, model: str, flowers: str) -> None:
    record = json.loads(run("predict", model, flowers, "--keep", "height", "--json").stdout)
    assert record["columns"] == ["height", "kind"]
    assert record["rows"][0] == ["10", "daisy"]


def test_probabilities_sum_to_one_and_the_largest_is_the_prediction(run: Run, flowers: str) -> None:
    run("train", flowers, "--model", "tree", "--folds", "0", "-o", "tree.margrove")
    lines = run("predict", "tree.margrove", flowers, "--probabilities").stdout.splitlines()
    assert lines[0] == "kind,probability daisy,probability tulip"
    for line in lines[1:]:
        label, daisy, tulip = line.split(",")
        assert float(daisy) + float(tulip) == pytest.approx(1)
        assert (float(daisy) > float(tulip)) == (label == "daisy")


def test_error_for_a_model_without_probabilities_has_a_cure(run: Run, flowers: str) -> None:
    run("train", flowers, "--model", "svm", "--budget", "0", "--folds", "0", "-o", "svm.margrove")
    result = run("predict", "svm.margrove", flowers, "--probabilities")
    assert result.exit_code == 2
    assert "--probabilities: this SVC has none. Train it with --probabilities" in result.stderr
    assert run("predict", "svm.margrove", flowers, "--probabilities", "--scores").exit_code == 2


def _spreadsheet(run: Run, folder: Path) -> str:
    rows = "".join(f"{i},{['=1+2', '-x'][i > 9]}\n" for i in range(20))
    (folder / "t.csv").write_text(f"size,=kind\n{rows}")
    assert run("train", "t.csv", "--model", "tree", "--folds", "0").exit_code == 0
    cells = ["@SUM(A1)", "+49 (30) 1", "\tx", "\n=x", "-3.5", "+1e-5", "-1.234,50", "=A1", "plain", "-"]
    (folder / "new.csv").write_text("size,note\n" + "".join(f'{i},"{cell}"\n' for i, cell in enumerate(cells)))
    return "t.margrove"


def test_text_that_a_spreadsheet_would_run_is_made_inert(run: Run, folder: Path) -> None:
    model = _spreadsheet(run, folder)
    header, *rows = list(csv.reader(io.StringIO(run("predict", model, "new.csv", "--keep", "note").stdout)))
    assert header == ["note", "'=kind"]
    assert {row[1] for row in rows} == {"'=1+2"}
    notes = [row[0] for row in rows]
    assert notes == ["'@SUM(A1)", "'+49 (30) 1", "'\tx", "'\n=x", "-3.5", "+1e-5", "-1.234,50", "'=A1", "plain", "-"]


def test_raw_text_is_written_as_it_is(run: Run, folder: Path) -> None:
    model = _spreadsheet(run, folder)
    header, *rows = list(csv.reader(io.StringIO(run("predict", model, "new.csv", "--keep", "note", "--raw").stdout)))
    assert header == ["note", "=kind"]
    assert [row[0] for row in rows][:3] == ["@SUM(A1)", "+49 (30) 1", "\tx"]
    assert rows[0][1] == "=1+2"


def test_scores_below_zero_stay_numbers(run: Run, model: str, flowers: str) -> None:
    rows = list(csv.reader(io.StringIO(run("predict", model, flowers, "--scores").stdout)))[1:]
    assert min(float(row[1]) for row in rows) < 0


def test_reasons_of_a_tree_are_the_conditions_of_its_rules(run: Run) -> None:
    run("train", "--model", "tree", "--folds", "0", "-o", "t.margrove")
    lines = list(csv.DictReader(io.StringIO(run("predict", "t.margrove", "--explain").stdout)))
    tree, penguins = margrove.load("t.margrove"), margrove.load_penguins()
    rules = {rule.node: rule for rule in tree.rules().rules}
    for line, leaf in zip(lines, tree.apply(penguins).tolist(), strict=True):
        assert line["species"] == rules[leaf].prediction
        assert line["why"].split(" and ") == [
            f"({words})" if " or " in words and len(rules[leaf].conditions) > 1 else words
            for words in (condition.words(most=10) for condition in rules[leaf].conditions)
        ]


def test_reasons_of_numbers_are_amounts_and_new_rows_are_compared_with_training_rows(run: Run, folder: Path) -> None:
    rows = [f"{i} m²;{'ab'[i % 2]};{2000 * i + 30000 * (i % 2)} €" for i in range(40, 100)]
    (folder / "homes.csv").write_text("Area;Side;Price\n" + "\n".join(rows) + "\n")
    run("train", "homes.csv", "--model", "linear", "--folds", "0", "--budget", "0")
    (folder / "one.csv").write_text("Area;Side\n99 m²;b\n")
    record = json.loads(run("predict", "homes.margrove", "one.csv", "--explain", "--json").stdout)
    assert record["columns"] == ["Price", "why"]
    assert re.fullmatch(r"Area = 99 m² \(\+5\d,\d00 €\), Side = b \(\+1\d,\d00 €\)", record["rows"][0][1])


def test_few_rows_are_compared_with_typical_training_rows(run: Run, folder: Path, flowers: str) -> None:
    run("train", flowers, "--model", "perceptron", "--param", "variant=voted", "--folds", "0", "-o", "v.margrove")
    assert margrove.load(folder / "v.margrove").training_record_["typical"].keys() == {"height", "colour", "petal"}
    (folder / "new.csv").write_text("height,colour,petal\n10,red,1.0\n31,yellow,3.1\n")
    lines = run("predict", "v.margrove", "new.csv", "--explain").stdout.splitlines()
    assert len(lines) == 3
    (folder / "one.csv").write_text("height,colour,petal\n10,red,1.0\n")
    assert (
        run("predict", "v.margrove", "one.csv", "--explain").stdout.splitlines() == lines[:2]
    )  # whatever is beside it


def test_few_rows_need_typical_cells(run: Run, folder: Path, flowers: str) -> None:
    run("train", flowers, "--model", "perceptron", "--param", "variant=voted", "--folds", "0", "-o", "v.margrove")
    model = margrove.load(folder / "v.margrove")
    del model.training_record_["typical"]["petal"]
    margrove.save(model, folder / "v.margrove")
    (folder / "new.csv").write_text("height,colour,petal\n10,red,1.0\n31,yellow,3.1\n")
    result = run("predict", "v.margrove", "new.csv", "--explain")
    assert result.exit_code == 2
    assert "new.csv: 2 rows are too few for --explain" in result.stderr
    assert "Give at least 20 rows, or train the model again." in result.stderr


def test_a_model_that_cannot_explain_is_named(run: Run, folder: Path) -> None:
    penguins = margrove.load_penguins()
    novelty = margrove.OneClassSVM()
    margrove.save(make_pipeline(margrove.TableEncoder(), novelty).fit(penguins), "n.margrove")
    result = run("predict", "n.margrove", "--explain")
    assert result.exit_code == 2
    assert "--explain: a one-class support vector machine cannot explain its predictions" in result.stderr


def test_reasons_tell_whether_a_word_is_in_the_text(run: Run, folder: Path) -> None:
    lines = [f"{'good' if i % 2 else 'bad'} tea number {i},{i % 7},{'like' if i % 2 else 'dislike'}" for i in range(60)]
    (folder / "notes.csv").write_text("body,size,verdict\n" + "\n".join(lines) + "\n")
    run("train", "notes.csv", "--text", "body", "--model", "linear", "--folds", "0", "--budget", "0")
    first, second, *_ = csv.DictReader(io.StringIO(run("predict", "notes.margrove", "notes.csv", "--explain").stdout))
    assert (first["verdict"], second["verdict"]) == ("dislike", "like")
    assert "'bad' in body = yes" in first["why"]
    assert "'good' in body = no" in first["why"]
    assert "'good' in body = yes" in second["why"]
