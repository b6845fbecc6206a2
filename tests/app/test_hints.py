"""Columns that are too good, or too scattered: what is said of them before anything is learned."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import Result

import margrove
from margrove.app.options.facts import hints_of, leaks_of, share_wrong

Run = Callable[..., Result]


def table_of(**columns: object) -> margrove.Table:
    return margrove.as_table(pd.DataFrame({**columns, "kind": np.array(["a", "b"])[np.arange(200) % 2]}), target="kind")


def test_column_that_alone_predicts_the_classes_gives_a_hint() -> None:
    rng = np.random.default_rng(0)
    is_b = np.arange(200) % 2
    table = table_of(noise=rng.normal(size=200), number=is_b + 0.1 * rng.normal(size=200))
    assert leaks_of(table) == (
        "'number' alone predicts 'kind' in 100.0 % of the rows. Is it known at prediction time? "
        "If not, leave it out: --without number",
    )
    assert leaks_of(table, without=("number",)) == ()


def test_column_that_is_present_only_for_one_class_predicts_it() -> None:
    boats = [None if k % 2 else f"boat {k % 7}" for k in range(200)]
    boats[1], boats[2] = "boat 3", None  # one of each against the rule
    (hint,) = leaks_of(table_of(boat=boats))
    assert hint.startswith("'boat' alone predicts 'kind' in 99.0 % of the rows")


def test_unique_values_predict_nothing_and_are_reported() -> None:
    tickets = [f"ticket {k if k % 3 else 0}" for k in range(200)]
    assert hints_of(table_of(ticket=tickets)) == (
        "Columns with so many distinct values rarely help on new rows: 'ticket' (134 in 200 rows)",
    )
    assert share_wrong(np.arange(200), np.arange(200) % 2) == 1.0


@pytest.mark.parametrize("n_wrong", [8, 14])
def test_good_column_that_is_not_too_good_gives_no_hint(n_wrong: int) -> None:
    said = np.array(["u", "v"])[np.arange(200) % 2]
    said[:n_wrong] = said[1 : n_wrong + 1].copy()
    n_left = int(np.sum(said != np.array(["u", "v"])[np.arange(200) % 2]))
    assert bool(leaks_of(table_of(good=said))) == (n_left <= 10)


def test_few_rows_and_the_penguins_give_no_hint() -> None:
    assert leaks_of(table_of(same=np.arange(200) % 2).take(slice(0, 80))) == ()
    assert hints_of(margrove.load_penguins()) == leaks_of(margrove.load_penguins()) == ()


def test_leak_is_a_warning_also_when_quiet_and_kept_in_the_document_and_the_record(run: Run, folder: Path) -> None:
    rows = "".join(f"{k % 2},{k % 10},{'ab'[k % 2]}\n" for k in range(120))
    (folder / "t.csv").write_text(f"x,y,kind\n{rows}")
    for quiet in ([], ["-q"]):
        result = run("train", "t.csv", "--model", "basic", "--folds", "2", *quiet)
        told = " ".join(result.stderr.split())
        assert "warning: 'x' alone predicts 'kind' in 100.0 % of the rows. Is it known" in told
    facts = json.loads(run("train", "t.csv", "--model", "basic", "--folds", "2", "--json").stdout)["table"]
    assert len(facts["warnings"]) == 2  # y is even where x is 0
    assert margrove.load("t.margrove").training_record_["warnings"] == facts["warnings"]
