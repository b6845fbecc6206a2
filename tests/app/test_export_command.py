"""Models in the words of other programs, from the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from libsvm.svmutil import svm_load_model, svm_predict
from typer.testing import Result

import margrove
from margrove.store import onnx_inputs

Run = Callable[..., Result]


@pytest.fixture
def machine(run: Run) -> str:
    assert run("train", "--model", "svm", "--budget", "0", "--folds", "0", "-o", "p.margrove").exit_code == 0
    return "p.margrove"


def test_libsvm_predicts_what_the_exported_machine_does(run: Run, machine: str, folder: Path) -> None:
    result = run("export", machine, "--to", "libsvm", "-o", "p.model")
    assert result.exit_code == 0, result.output
    penguins = margrove.load_penguins()
    model = margrove.load(folder / machine)
    rows = np.asarray(model[:-1].transform(penguins))
    dicts = [{j + 1: float(value) for j, value in enumerate(row) if value} for row in rows]
    theirs = svm_load_model(str(folder / "p.model"))
    said = np.array(svm_predict([], dicts, theirs, "-q")[0]).astype(int)
    assert (model.classes_[said] == model.predict(penguins)).all()


def test_columns_and_labels_are_reported(run: Run, machine: str) -> None:
    result = run("export", machine, "--to", "libsvm", "-o", "p.model")
    words = " ".join(result.output.split())
    assert "written as numbers: Adelie = 0, Chinstrap = 1, Gentoo = 2." in words
    assert "are those of the encoder, scaled" in words
    record = json.loads(run("export", machine, "--to", "libsvm", "-o", "p.model", "--json").stdout)
    assert record["labels"] == ["Adelie", "Chinstrap", "Gentoo"]
    encoder = margrove.load(machine)[0]
    assert record["columns"] == [str(name) for name in encoder.get_feature_names_out()]


def test_standard_output_has_the_file_and_nothing_else(run: Run, machine: str, folder: Path) -> None:
    run("export", machine, "--to", "libsvm", "-o", "p.model")
    assert run("export", machine, "--to", "libsvm").stdout == (folder / "p.model").read_text()


@pytest.mark.parametrize("language", ["python", "sql", "c"])
def test_a_tree_is_exported_as_the_library_writes_it(run: Run, language: str, folder: Path) -> None:
    run("train", "--model", "tree", "--folds", "0", "-o", "t.margrove")
    assert run("export", "t.margrove", "--to", language, "-o", "t.code").exit_code == 0
    code = getattr(margrove.load(folder / "t.margrove"), f"to_{language}")()
    assert (folder / "t.code").read_text() == f"{code}\n"
    assert run("export", "t.margrove", "--to", language).stdout == f"{code}\n"


def test_what_a_program_has_not_is_refused(run: Run, machine: str) -> None:
    run("train", "--model", "tree", "--folds", "0", "-o", "t.margrove")
    for words, told in (
        (
            ["t.margrove", "--to", "libsvm"],
            "t.margrove: LIBSVM supports only kernel support vector machines, not DecisionTreeClassifier. "
            "Train one: --model svm, or export it with --to onnx",
        ),
        ([machine, "--to", "sql"], "--to sql is for decision trees"),
        ([machine, "--to", "fortran"], "--to is 'fortran'"),
        ([machine, "--to", "libsvm", "-o", "no/such/folder"], "no folder"),
    ):
        result = run("export", *words)
        assert result.exit_code == 2, words
        assert told in " ".join(result.output.split()), result.output


def test_onnxruntime_predicts_what_the_exported_pipeline_does(run: Run, machine: str, folder: Path) -> None:
    import onnxruntime

    result = run("export", machine, "--to", "onnx", "-o", "p.onnx")
    assert result.exit_code == 0, result.output
    assert "island (text), bill_length_mm (number)" in " ".join(result.output.split())
    penguins = margrove.load_penguins()
    session = onnxruntime.InferenceSession(str(folder / "p.onnx"))
    label, _ = session.run(None, onnx_inputs(folder / "p.onnx", penguins))
    assert label.tolist() == margrove.load(folder / machine).predict(penguins).tolist()


def test_inputs_and_outputs_of_onnx_are_in_the_document(run: Run, machine: str) -> None:
    record = json.loads(run("export", machine, "--to", "onnx", "-o", "p.onnx", "--json").stdout)
    assert record["inputs"][0] == {"name": "island", "kind": "text", "missing": ""}
    assert record["outputs"] == ["label", "scores"]


def test_standard_output_takes_the_graph_but_no_document(run: Run, machine: str, folder: Path) -> None:
    run("export", machine, "--to", "onnx", "-o", "p.onnx")
    assert run("export", machine, "--to", "onnx").stdout_bytes == (folder / "p.onnx").read_bytes()
    result = run("export", machine, "--to", "onnx", "--json")
    assert result.exit_code == 2
    assert "an ONNX file is binary" in result.output


def test_missing_package_is_reported_in_one_line(run: Run, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    result = run("export", machine, "--to", "onnx", "-o", "p.onnx")
    assert result.exit_code == 2
    assert "pip install 'margrove[onnx]'" in " ".join(result.output.split())


def test_a_model_is_not_overwritten_by_its_own_export(run, model):
    before = Path(model).read_bytes()
    result = run("export", model, "--to", "onnx", "-o", model)
    assert result.exit_code == 2
    assert "is also an input, so it is not overwritten" in result.output
    assert Path(model).read_bytes() == before


def test_a_link_keeps_pointing_to_the_file_that_is_replaced(run: Run, machine: str, folder: Path) -> None:
    (folder / "p.model").write_text("old")
    (folder / "link").symlink_to("p.model")
    assert run("export", machine, "--to", "libsvm", "-o", "link").exit_code == 0
    assert (folder / "link").is_symlink()
    assert (folder / "p.model").read_text().startswith("svm_type")
