"""``margrove train --cluster``: training on a Dask cluster from a shell. The workers are threads of this process."""

from __future__ import annotations

import json
import signal

import numpy as np
import pandas as pd
import pytest
from tests.engine.dask_clusters import OF_DASK, threads
from typer.testing import CliRunner

from margrove import TableEncoder, load, read_table
from margrove.app.cli import app
from margrove.run.progress import overheard

pytestmark = pytest.mark.filterwarnings(*OF_DASK)


@pytest.fixture(scope="module")
def address():
    with threads(2) as client:
        yield client.scheduler.address


@pytest.fixture
def files(rng, tmp_path, monkeypatch):
    """Three files with numbers, categories, dates, missing cells and a column of names; and all of it in one."""
    n = 300
    size, colour = rng.normal(size=n), rng.choice(["red", "green"], n)
    ripe = size + (colour == "red") + 0.3 * rng.normal(size=n) > 0.5
    table = pd.DataFrame({"size": size.round(3), "colour": colour, "name": [f"fruit {i}" for i in range(n)]})
    table["picked"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 100, n), "D")
    table["ripe"] = np.where(ripe, "yes", "no")
    table.loc[rng.random(n) < 0.05, "size"] = np.nan
    table.to_csv(tmp_path / "whole.txt", index=False)
    for number, rows in enumerate(np.array_split(np.arange(n), 3)):
        table.iloc[rows].to_csv(tmp_path / f"fruit-{number}.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, ["train", *map(str, words)], catch_exceptions=False)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::margrove.errors.DataWarning")
def test_a_linear_machine_is_trained_over_files(files, address):
    done = run("fruit-*.csv", "--model", "linear", "--cluster", address, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    model = load(found["model"])
    assert found["model"] == "fruit.margrove"
    assert found["table"]["rows"] == 300
    assert {each["label"]: each["rows"] for each in found["table"]["classes"]} == dict(
        zip(*np.unique(read_table(files / "whole.txt").labels(), return_counts=True), strict=True)
    )
    assert found["engine"] == "dask"
    assert found["certificate"]["holds"] is True
    assert found["certificate"]["n_rows"] == 300
    assert found["estimate"]["method"] == "hold-out"
    assert found["estimate"]["accuracy"] > 0.8
    assert (files / "fruit.report.html").exists()
    whole = read_table(files / "whole.txt").with_date_parts()
    assert model[0].columns_ == TableEncoder().fit(whole.with_target(None)).columns_
    assert model[0].target_ == "ripe"
    predicted = model.predict(read_table(files / "whole.txt").with_target(None))
    assert (predicted == whole.labels()).mean() > 0.85

    again = CliRunner().invoke(app, ["certify", found["model"], "fruit-*.csv", "--cluster", address])
    assert again.exit_code == 0, again.output
    assert "300 rows" in again.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "params"), [("tree", ["--param", "max_depth=4"]), ("forest", ["--param", "n_estimators=5"])]
)
def test_trees_are_trained_over_files(files, address, learner, params):
    done = run("fruit-*.csv", "--model", learner, *params, "--cluster", address, "--json", "-o", "model.margrove")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["certificate"]["holds"] is True
    assert found["certificate"]["source"] == "recomputed"
    assert CliRunner().invoke(app, ["certify", "model.margrove", "fruit-*.csv", "--cluster", address]).exit_code == 0
    assert found["estimate"]["accuracy"] > 0.8
    assert "name" not in load("model.margrove").feature_names_in_
    assert (files / "model.report.html").exists()


@pytest.mark.slow
def test_numbers_are_predicted_over_files(files, address):
    done = run(
        "fruit-*.csv", "--target", "size", "--drop-unlabelled", "--model", "linear", "--cluster", address, "--json"
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    whole = read_table(files / "whole.txt", target="size", drop_unlabelled=True)
    numbers = whole.target.values
    expected = {"least": numbers.min(), "mean": numbers.mean(), "largest": numbers.max()}
    assert found["table"]["numbers"] == pytest.approx(expected)
    assert found["estimate"]["r2"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--model", "svm"],
            "--model svm does not do so from the command line. Learners that can: --model linear, --model tree",
        ),
        ([], "--model auto tries several learners"),
        (["--model", "linear", "--probabilities"], "--probabilities needs a fit in memory"),
        (["--model", "linear", "--param", "penalty=l1"], "penalty is 'l1', which engine='dask' does not support"),
        (["--model", "tree", "--param", "complexity=0.5"], "complexity is 0.5"),
        (["--model", "linear", "--folds", "1"], "--folds is 1"),
    ],
)
def test_what_is_not_done_over_partitions_is_refused_before_any_work(files, words, message):
    done = CliRunner().invoke(app, ["train", "nothing-*.csv", "--cluster", "tcp://127.0.0.1:1", *words])
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())


def test_what_is_missing_is_named(files, address, monkeypatch):
    for words, message in [
        (["nothing-*.csv"], "no file matches 'nothing-*.csv'"),
        (["fruit-*.csv", "--target", "taste"], "the target 'taste' is not a column"),
        (["fruit-*.csv", "--without", "taste"], "'taste'"),
    ]:
        done = CliRunner().invoke(app, ["train", *words, "--model", "linear", "--cluster", address])
        assert done.exit_code == 2, done.output
        assert message in " ".join(done.output.split())
    monkeypatch.setattr("margrove.data.dask_partitions._CONNECT", 0.3)
    done = CliRunner().invoke(app, ["train", "fruit-*.csv", "--model", "linear", "--cluster", "tcp://127.0.0.1:1"])
    assert done.exit_code == 2
    assert "there is no Dask scheduler at 'tcp://127.0.0.1:1'" in " ".join(done.output.split())
    done = CliRunner().invoke(app, ["train", "fruit-*.csv", "--model", "linear", "--cluster", "everywhere"])
    assert done.exit_code == 2
    assert "is 'everywhere'; it must be like 'tcp://10.0.0.5:8786', or 'local'" in " ".join(done.output.split())
    monkeypatch.setattr("margrove.data.dask_partitions.find_spec", lambda name: None)
    done = CliRunner().invoke(app, ["train", "fruit-*.csv", "--model", "linear", "--cluster", address])
    assert done.exit_code == 2
    assert "pip install 'margrove[dask]'" in done.output


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::margrove.errors.DataWarning")
def test_an_interrupt_keeps_the_model_so_far(files, address):
    sent = []

    def interrupt(report):
        if report.objective is not None and not sent:
            sent.append(report)
            signal.raise_signal(signal.SIGINT)

    with overheard(interrupt):
        done = run("fruit-*.csv", "--model", "linear", "--cluster", address, "--param", "tol=1e-12", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert sent
    assert found["status"] == "interrupted"
    assert found["estimate"]["method"] == "none"
    assert load(found["model"])[-1].status_ == "interrupted"
