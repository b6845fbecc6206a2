"""Support vector machines on the command line: what is trained, shown, predicted, certified and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.app.printed import said_by
from typer.testing import Result

import margrove
from margrove.app.screen.console import make_streams_safe

Run = Callable[..., Result]


@pytest.fixture
def clouds(folder: Path) -> Callable[[int], str]:
    """Some rows of each of K classes, on a circle; the classes touch."""

    def write(classes: int) -> str:
        rng = np.random.default_rng(0)
        rows = []
        for k in range(classes):
            angle = 2 * np.pi * k / classes
            points = rng.normal([3 * np.cos(angle), 3 * np.sin(angle)], 0.8, size=(12, 2))
            rows += [f"{u:.4f},{v:.4f},k{k}\n" for u, v in points]
        (folder / "clouds.csv").write_text("u,v,kind\n" + "".join(rows))
        return "clouds.csv"

    return write


def test_show_prints_support_vectors_and_bounds(run: Run, clouds: Callable[[int], str]) -> None:
    run("train", clouds(3), "--model", "svm", "--folds", "0")
    model = margrove.load("clouds.margrove")[-1]
    said = said_by(run("show", "clouds.margrove"))
    counts = ", ".join(
        f"class {label}: {count} rows" for label, count in zip(model.classes_, model.n_support_, strict=True)
    )
    assert f"{len(model.support_)} of 36 training rows are support vectors" in said
    assert counts in said
    assert f"at most {100 * model.loo_bound_:.1f} %" in said
    assert f"kernel: rbf, gamma {model.gamma_:.4g}" in said
    said = said_by(run("certify", "clouds.margrove", "clouds.csv"))
    for claim in ("margin width", "easy points", "marginal points", "hard points", "leave-one-out bound: "):
        assert claim in said
    record = json.loads(run("show", "clouds.margrove", "--json").stdout)
    assert record["gamma"] == model.gamma_
    learned = record["learned"]
    assert learned["kind"] == "rows"
    assert learned["support"] == dict(zip(model.classes_.tolist(), model.n_support_.tolist(), strict=True))
    assert (learned["loo_bound"], learned["xi_alpha_bound"]) == (model.loo_bound_, model.xi_alpha_bound_)
    assert [(machine["positive"], machine["negative"]) for machine in learned["machines"]] == [
        ("k0", "k1"),
        ("k0", "k2"),
        ("k1", "k2"),
    ]


def test_linear_machine_shows_which_columns_matter(run: Run, flowers: str) -> None:
    result = run("train", flowers, "--model", "svm", "--param", "kernel=linear", "--folds", "0", "--budget", "0")
    assert "tulip rather than daisy: high height (1.00)" in said_by(result)
    assert "rows are support vectors" in result.stdout
    assert "straight learner" not in result.stdout


def test_pairs_of_classes_have_weights_of_their_own(run: Run, clouds: Callable[[int], str]) -> None:
    words = ["train", clouds(3), "--model", "svm", "--param", "kernel=linear", "--folds", "0"]
    said = said_by(run(*words))
    for pair in ("k0 rather than k1: ", "k0 rather than k2: ", "k1 rather than k2: "):
        assert pair in said
    assert "k1: " in said_by(run(*words, "--param", "multiclass=ovr"))
    assert "claim (each class against the rest)" in said_by(run("certify", "clouds.margrove", "clouds.csv"))


def test_more_pairs_than_anybody_reads_are_cut_and_counted(run: Run, clouds: Callable[[int], str]) -> None:
    result = run("train", clouds(9), "--model", "svm", "--param", "kernel=linear", "--folds", "0")
    assert "… and 6 more; --json has them all" in said_by(result)
    assert "all 36 machines" in said_by(run("certify", "clouds.margrove", "clouds.csv"))
    assert len(json.loads(run("show", "clouds.margrove", "--json").stdout)["learned"]["machines"]) == 36


def test_scores_are_those_of_the_machines(run: Run, clouds: Callable[[int], str]) -> None:
    run("train", clouds(4), "--model", "svm", "--folds", "0")
    lines = run("predict", "clouds.margrove", "clouds.csv", "--scores", "--quiet").stdout.splitlines()
    pairs = ["k0 vs k1", "k0 vs k2", "k0 vs k3", "k1 vs k2", "k1 vs k3", "k2 vs k3"]
    assert lines[0] == ",".join(["kind", *(f"score {pair}" for pair in pairs)])
    pipeline, table = margrove.load("clouds.margrove"), margrove.read_table("clouds.csv", target="kind")
    expected = pipeline[-1].machine_decision(pipeline[:-1].transform(table))
    np.testing.assert_array_equal([[float(x) for x in line.split(",")[1:]] for line in lines[1:]], expected)


@pytest.mark.parametrize("params", [["C=10"], ["gamma=median"], ["sigma=2"], ["kernel=poly", "degree=2", "coef0=1"]])
def test_parameters_reach_the_machine_and_its_certificate(run: Run, flowers: str, params: list[str]) -> None:
    given = [word for param in params for word in ("--param", param)]
    record = json.loads(run("train", flowers, "--model", "svm", "--folds", "2", "--json", *given).stdout)
    name, _, value = params[0].partition("=")
    assert str(record["parameters"][name]) == value
    assert record["certificate"]["holds"] is True
    assert run("certify", "flowers.margrove", flowers).exit_code == 0


def test_hard_margin_is_requested_by_inf(run: Run, flowers: str) -> None:
    record = json.loads(run("train", flowers, "--model", "svm", "--param", "C=inf", "--folds", "2", "--json").stdout)
    assert record["parameters"]["C"] == "inf"
    assert record["certificate"]["holds"] is True
    assert margrove.load("flowers.margrove")[-1].get_params()["C"] == float("inf")
    assert "C='inf'" in said_by(run("show", "flowers.margrove"))
    assert run("certify", "flowers.margrove", flowers).exit_code == 0


def test_a_code_matrix_may_be_typed(run: Run, clouds: Callable[[int], str]) -> None:
    code = "[[1, 1], [1, -1], [-1, 0]]"
    said = said_by(run("train", clouds(3), "--model", "svm", "--param", f"multiclass={code}", "--folds", "0"))
    assert "Certificate holds" in said
    assert margrove.load("clouds.margrove")[-1].multiclass == json.loads(code)


def test_a_hard_margin_that_is_not_there_is_one_line_that_names_the_rows(run: Run, folder: Path) -> None:
    (folder / "mixed.csv").write_text("x,y\n" + "1,a\n2,b\n3,a\n" * 4)
    for folds in ("0", "2"):
        words = ["--model", "svm", "--param", "C=inf", "--param", "kernel=linear", "--folds", folds]
        result = run("train", "mixed.csv", *words)
        assert result.exit_code == 2
        assert result.stderr.startswith("margrove: error: no hard margin for b vs a: the convex hulls")
        assert result.stderr.endswith("Use a finite --param C=…, or another --param kernel=….\n")
        assert len(result.stderr.splitlines()) == 1
        assert "row 0" not in result.stderr  # the rows of a table are counted from 1
        assert "·row 2" in result.stderr
        assert [path.name for path in folder.iterdir()] == ["mixed.csv"]
    assert "not estimated: without fold 1 the problem has no solution" in result.stdout


def test_a_solve_that_ended_early_bounds_nothing(run: Run, folder: Path) -> None:
    rows = "".join(f"{(i * 7919) % 1009 / 1009},{'ab'[i * i % 7 % 2]}\n" for i in range(300))
    (folder / "noise.csv").write_text(f"x,y\n{rows}")
    words = ["--model", "svm", "--param", "C=1e9", "--param", "max_iter=1000", "--folds", "0"]
    said = said_by(run("train", "noise.csv", *words))
    assert "does NOT hold" in said
    assert "train with more: --param max_iter=…" in said
    assert "rows are support vectors:" in said
    assert "Leave-one-out" not in said


def test_a_terminal_without_unicode_can_spell_every_claim() -> None:
    make_streams_safe()
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    learners = (margrove.SVC(), margrove.NuSVC(nu=0.3), margrove.SVR(), margrove.NuSVR(), margrove.OneClassSVM())
    for learner in learners:
        text = str(learner.fit(X, y).certificate_)
        assert "?" not in text.encode("ascii", errors="margrove-plain").decode()


@pytest.fixture
def line_of_numbers(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """A table of two columns and a number, beside the arrays it is made of; the columns alone are in points.csv."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2)).round(3)
    z = (X @ [1.0, 2.0]).round(3)
    (folder / "numbers.csv").write_text("u,v,z\n" + "".join(f"{u},{v},{w}\n" for (u, v), w in zip(X, z, strict=True)))
    (folder / "points.csv").write_text("u,v\n" + "".join(f"{u},{v}\n" for u, v in X))
    return X, z


def test_a_regression_from_python_is_shown_predicted_and_certified(
    run: Run, line_of_numbers: tuple[np.ndarray, np.ndarray]
) -> None:
    X, z = line_of_numbers
    model = margrove.SVR(kernel="linear").fit(X, z)
    margrove.save(model, "line.margrove")
    said = said_by(run("show", "line.margrove"))
    assert "predicts a number" in said
    assert "The prediction is higher with: high x1 (1.00)" in said
    assert json.loads(run("show", "line.margrove", "--json").stdout)["classes"] is None
    lines = run("predict", "line.margrove", "points.csv").stdout.splitlines()
    np.testing.assert_array_equal([float(line) for line in lines[1:]], model.predict(X))
    assert run("certify", "line.margrove", "numbers.csv").exit_code == 0
    scores = run("predict", "line.margrove", "points.csv", "--scores")
    assert scores.exit_code == 2
    assert "SVR predicts numbers and has no scores" in scores.stderr
    assert "predicts numbers" in run("certify", "line.margrove").stderr  # the penguins' species are none


def test_a_regression_on_a_table_compares_no_labels(run: Run, line_of_numbers: tuple[np.ndarray, np.ndarray]) -> None:
    from sklearn.pipeline import make_pipeline

    table = margrove.read_table("numbers.csv", target="z")
    pipeline = make_pipeline(margrove.TableEncoder(), margrove.NuSVR()).fit(table, table.labels())
    margrove.save(pipeline, "numbers.margrove")
    result = run("predict", "numbers.margrove", "numbers.csv", "--json")
    assert json.loads(result.stdout)["accuracy"] is None
    assert run("certify", "numbers.margrove", "numbers.csv").exit_code == 0


def test_a_one_class_machine_from_python_is_shown_predicted_and_certified(
    run: Run, line_of_numbers: tuple[np.ndarray, np.ndarray]
) -> None:
    X, _ = line_of_numbers
    model = margrove.OneClassSVM(nu=0.3).fit(X)
    margrove.save(model, "cloud.margrove")
    said = said_by(run("show", "cloud.margrove"))
    assert "distinguishes rows like its training rows (1) from others (-1)" in said
    assert f"{len(model.support_)} of 20 training rows" in said
    lines = run("predict", "cloud.margrove", "points.csv", "--scores").stdout.splitlines()
    assert lines[0] == "prediction,score one class"
    assert [int(line.split(",")[0]) for line in lines[1:]] == model.predict(X).tolist()
    assert run("certify", "cloud.margrove", "points.csv").exit_code == 0


def test_a_table_of_other_columns_is_refused_by_a_bare_model(
    run: Run, line_of_numbers: tuple[np.ndarray, np.ndarray]
) -> None:
    margrove.save(margrove.OneClassSVM().fit(line_of_numbers[0]), "cloud.margrove")
    for command in ("certify", "predict"):
        result = run(command, "cloud.margrove", "numbers.csv")
        assert result.exit_code == 2
        assert "numbers.csv: has 3 columns, and the model takes 2" in result.stderr
