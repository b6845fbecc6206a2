"""``margrove train --cluster``: training on a Dask cluster from a shell. The workers are threads of this process."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from tests.engine.dask_clusters import OF_DASK, threads
from typer.testing import CliRunner

from margrove import TableEncoder, load, read_table
from margrove.app.cli import app

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
    assert found["estimate"]["value"] > 0.8
    assert (files / "fruit.report.html").exists()
    whole = read_table(files / "whole.txt").with_date_parts()
    assert model[0].columns_ == TableEncoder().fit(whole.with_target(None)).columns_
    assert model[0].target_ == "ripe"
    predicted = model.predict(read_table(files / "whole.txt").with_target(None))
    assert (predicted == whole.labels()).mean() > 0.85
