"""Dates on the command line: their parts are features, and people read them as dates."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.app.printed import said_by
from typer.testing import Result

import margrove

Run = Callable[..., Result]
DAY_NUMBER = re.compile(r"\b19[0-9]{3}\b")  # 2022-01-08 to 2024-10-04


@pytest.fixture
def visits(folder: Path) -> str:
    """Visits of a shop that is closed on Sundays, and was so on Saturdays until March 2023."""
    rng = np.random.default_rng(0)
    lines = ["day,size,open"]
    for day in rng.integers(19_000, 19_800, 300):
        weekday = (day + 3) % 7
        is_open = weekday < 5 or (weekday == 5 and day >= 19_417)
        lines.append(f"{np.datetime64(int(day), 'D')},{rng.normal():.2f},{'yes' if is_open else 'no'}")
    (folder / "visits.csv").write_text("\n".join(lines) + "\n")
    return "visits.csv"


@pytest.mark.parametrize("learner", ["tree", "linear", "adaboost"])
def test_parts_of_dates_are_learned_and_derived_again(run: Run, visits: str, folder: Path, learner: str) -> None:
    said = said_by(run("train", visits, "--model", learner, "--folds", "2", "--budget", "1", "--report"))
    assert "4 feature columns: 1 date, 1 numeric, 2 categorical" in said
    assert "Added from 'day': 'day month', 'day weekday'." in said
    assert "Certificate holds" in said_by(run("certify", "visits.margrove", visits))
    predicted = said_by(run("predict", "visits.margrove", visits, "-o", "p.csv"))
    assert "These are the training rows" in predicted
    assert "day (date)" in said_by(run("show", "visits.margrove"))
    assert run("report", "visits.margrove", visits, "--format", "json", "-o", "r.json").exit_code == 0
    report = json.loads((folder / "r.json").read_text())
    texts = [text for text in _texts(report) if DAY_NUMBER.search(text)]
    assert texts == []


def _texts(value: object) -> list[str]:
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return [text for part in parts for text in _texts(part)]
    return [value] if isinstance(value, str) else []


def test_rules_name_dates_and_weekdays(run: Run, visits: str) -> None:
    run("train", visits, "--model", "tree", "--folds", "0")
    rules = said_by(run("show", "visits.margrove", "--rules"))
    assert "day weekday = Sunday" in rules or "day weekday in {Saturday, Sunday}" in rules
    assert re.search(r"day ≤ 2023-02-\d\d", rules)
    assert not DAY_NUMBER.search(rules)


def test_a_date_is_left_out_with_its_parts_and_a_part_alone(run: Run, visits: str) -> None:
    for words, names in ((("day",), ["size"]), (("day month",), ["day", "size", "day weekday"])):
        options = [word for name in words for word in ("--without", name)]
        said = said_by(run("train", visits, "--model", "tree", "--folds", "0", *options))
        assert "day month" not in said
        assert margrove.load("visits.margrove").feature_names_in_.tolist() == names
