"""`margrove show` and `margrove certify`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

import margrove

Run = Callable[..., Result]


def test_show_prints_the_contents_of_the_file(run: Run, model: str) -> None:
    result = run("show", model)
    assert result.exit_code == 0
    for said in (
        "Perceptron",
        "converged",
        "engine native",
        "'kind': daisy, tulip",
        "colour (category)",
        "max_iter=100",
    ):
        assert said in result.stdout
    assert "tulip rather than daisy" in result.stdout
    record = json.loads(run("show", model, "--json").stdout)
    assert record["target"] == "kind"
    assert record["classes"] == ["daisy", "tulip"]
    assert [column["name"] for column in record["columns"]] == ["petal", "colour", "height"]
    assert record["certificate_is"].startswith("as saved")


@pytest.mark.parametrize("options", [[], ["--quiet"]])
def test_show_does_not_speak_as_if_it_had_verified(run: Run, model: str, options: list[str]) -> None:
    pipeline = margrove.load(model)
    pipeline[-1].coef_[0, 0] += 0.1  # the saved certificate is no longer true, and `show` cannot know
    margrove.save(pipeline, model)
    said = run("show", model, *options).stdout
    assert "Certificate held when it was saved: " in said
    assert "(margrove certify MODEL TABLE recomputes each)" in said
    assert "holds" not in said


def test_saved_certificate_that_did_not_hold_is_reported_in_the_past_tense(run: Run, folder: Path) -> None:
    (folder / "mixed.csv").write_text("x,y\n1,a\n1,b\n2,a\n2,b\n")
    run("train", "mixed.csv", "--folds", "0", "--model", "perceptron", "--param", "variant=last")
    lines = run("show", "mixed.margrove", "--quiet").stdout.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith(
        "Certificate did NOT hold when it was saved: 1 of 3 claims recomputed on 4 rows is not true"
    )


def test_show_counts_the_rows_of_a_kernel_model(run: Run, flowers: str) -> None:
    run("train", flowers, "--model", "kernel-perceptron", "--folds", "0")
    assert "training rows; the others have weight 0" in run("show", "flowers.margrove").stdout


def test_a_model_from_the_pipe_can_be_shown(run: Run, flowers: str) -> None:
    trained = run("train", flowers, "--model", "svm", "--folds", "0", "-o", "-")
    assert "Certificate holds" in trained.stderr
    shown = run("show", "-", stdin=trained.stdout_bytes)
    assert shown.exit_code == 0
    assert "-: SVC, converged" in shown.stdout


def test_certify_exits_with_0_if_it_holds_and_1_otherwise(
    run: Run, model: str, flowers: str, folder: Path, flowers_text: str
) -> None:
    holds = run("certify", model, flowers)
    assert holds.exit_code == 0
    assert "Certificate holds" in holds.stdout
    (folder / "other.csv").write_text(
        flowers_text.replace("daisy", "rose").replace("tulip", "daisy").replace("rose", "tulip")
    )
    other = run("certify", model, "other.csv", "--json")
    assert other.exit_code == 1
    assert json.loads(other.stdout)["holds"] is False


def test_certify_sees_a_disturbed_model(run: Run, model: str, flowers: str) -> None:
    pipeline = margrove.load(model)
    pipeline[-1].coef_[0, 0] += 0.1
    margrove.save(pipeline, model)
    assert run("certify", model, flowers, "--quiet").exit_code == 1


def test_certify_takes_another_target(run: Run, model: str, folder: Path, flowers_text: str) -> None:
    (folder / "renamed.csv").write_text(flowers_text.replace("kind", "sort"))
    assert run("certify", model, "renamed.csv").exit_code == 2
    assert run("certify", model, "renamed.csv", "--target", "sort").exit_code == 0


def test_certify_without_a_file_means_the_penguins(run: Run, model: str) -> None:
    run("train", "--model", "svm", "--folds", "0", "--quiet")
    assert run("certify", "penguins.margrove").exit_code == 0
    for command in ("certify", "predict", "report"):
        assert run(command, "penguins.margrove").exit_code == 0
        wrong = run(command, model)
        assert wrong.exit_code == 2
        assert (
            "no FILE was given, and the target of the embedded Palmer penguins is 'species', not 'kind'" in wrong.stderr
        )


def test_wrong_table_is_named_once(run: Run, folder: Path, flowers: str, flowers_text: str) -> None:
    run("train", flowers, "--model", "svm", "--folds", "0")
    (folder / "other.csv").write_text(flowers_text.replace("1.0,red", "1.5,red").replace("3.0,red", "2.5,red"))
    result = run("certify", "flowers.margrove", "other.csv")
    assert result.exit_code == 1
    assert result.stdout.count("this is not the table the model was trained on; give that table") == 1
    assert "The model still predicts" not in result.stdout


@pytest.mark.parametrize("content", [b"", b"not a model", bytes(range(256)) * 8])
def test_what_is_not_a_model_is_refused_in_one_line(run: Run, folder: Path, flowers: str, content: bytes) -> None:
    (folder / "fake.margrove").write_bytes(content)
    for words in (
        ("show", "fake.margrove"),
        ("predict", "fake.margrove", flowers),
        ("certify", "fake.margrove", flowers),
    ):
        result = run(*words)
        assert result.exit_code == 2
        assert result.stderr.startswith("margrove: error: fake.margrove: ")
        assert len(result.stderr.splitlines()) == 1
