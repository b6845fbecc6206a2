"""The certificate at the end of ``train``: watched, left out at Ctrl-C and where the budget ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

import margrove
from margrove.app import proving
from margrove.app.choose.candidates import CANDIDATES
from margrove.app.models import last_step_of
from margrove.app.options.budget import Budget
from margrove.app.proving import BudgetOverError, prove, within
from margrove.app.screen.console import Screen
from margrove.certificate import certify
from margrove.data import as_table
from margrove.run.progress import Progress, report, watched

Run = Callable[..., Result]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two quick candidates."""
    monkeypatch.setitem(CANDIDATES, "classify", tuple(c for c in CANDIDATES["classify"] if c.name in ("basic", "tree")))


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C as soon as the certificate is begun."""

    def interrupt(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(proving, "certify", interrupt)


def test_ctrl_c_leaves_the_certificate_out_and_saves_the_model(
    run: Run, flowers: str, folder: Path, interrupted: None
) -> None:
    result = run("train", flowers, "--model", "tree", "--folds", "0", "-o", "m.margrove")
    assert result.exit_code == 0
    assert "Certificate not checked: the check was interrupted by Ctrl-C" in result.output
    model = margrove.load(folder / "m.margrove")
    assert last_step_of(model).certificate_.holds is None
    assert model.training_record_["certifying"]["is_left_out"] is True


@pytest.mark.usefixtures("few", "interrupted")
def test_ctrl_c_leaves_the_certificate_of_auto_out(run: Run) -> None:
    told = json.loads(run("train", "--json", "-o", "m.margrove").stdout)
    assert told["certifying"]["is_left_out"] is True
    assert told["certificate"]["source"] == "solver"


def test_report_mentions_that_the_certificate_was_not_checked(
    run: Run, flowers: str, folder: Path, interrupted: None
) -> None:
    run("train", flowers, "--model", "tree", "--folds", "0", "-o", "m.margrove", "--report")
    assert "The check of the certificate was interrupted by Ctrl-C" in next(folder.glob("m*.html")).read_text(
        encoding="utf-8"
    )


def test_a_certificate_that_does_not_fit_into_the_budget_is_left_out() -> None:
    generator = np.random.default_rng(0)
    table = as_table(np.column_stack([generator.normal(size=(50, 2)), generator.integers(0, 2, 50)]), target=2)
    model = margrove.AdaBoostClassifier(n_estimators=5).fit(table, table.labels())
    proof = prove(Screen(), model, table, Budget(0.0))
    assert proof.certificate.source == "solver"
    assert proof.words.startswith("The check of the certificate did not fit into the budget")
    assert "`margrove certify MODEL FILE`" in proof.words
    assert proof.to_dict()["is_left_out"] is True
    whole = prove(Screen(), model, table, Budget(1e6))
    assert (whole.certificate.holds, whole.words, whole.is_left_out) == (True, "", False)


def test_work_ends_at_the_first_report_after_the_budget() -> None:
    seen: list[Progress] = []
    with watched(seen.append):
        with within(Budget(1e6)), within(None):
            report(Progress("anything", 1))
        with pytest.raises(BudgetOverError), within(Budget(0.0)):
            report(Progress("anything", 2))
        report(Progress("anything", 3))
    assert [each.done for each in seen] == [1, 3]


def test_columns_of_a_large_node_are_reported_one_by_one() -> None:
    X = np.random.default_rng(0).normal(size=(30, 6))
    model = margrove.DecisionStump().fit(X, X[:, 0] > 0)
    seen: list[Progress] = []
    with watched(seen.append):
        certify(model, X, X[:, 0] > 0)
    assert len([each for each in seen if each.done == 0]) > 0


@pytest.mark.usefixtures("few")
def test_any_budget_gives_a_model(run: Run, folder: Path) -> None:
    result = run("train", "--budget", "0.001s", "-o", "m.margrove", "--report")
    assert result.exit_code == 0
    assert margrove.load(folder / "m.margrove").predict(margrove.load_penguins()).shape == (344,)


def test_a_report_that_does_not_fit_into_the_budget_is_announced(
    run: Run, folder: Path, few: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_long(*given: object) -> None:
        raise BudgetOverError

    monkeypatch.setattr(import_module("margrove.app.report"), "write_report", too_long)
    result = run("train", "-o", "m.margrove", "--report")
    assert result.exit_code == 0
    words = " ".join(result.output.split())
    assert "the budget is used up: the model is saved, its report is not. Write it: margrove report m.margrove" in words


@pytest.mark.parametrize(
    "learner",
    [
        margrove.DecisionTreeClassifier(),
        margrove.AdaBoostClassifier(n_estimators=3),
        margrove.SVC(),
        margrove.OneVsOneClassifier(margrove.SVC()),
        margrove.OneVsRestClassifier(margrove.DecisionTreeClassifier()),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_progress_of_a_certificate_never_decreases(learner: object) -> None:
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    model = learner.fit(X, y)  # type: ignore[attr-defined]
    seen: list[Progress] = []
    with watched(seen.append):
        certify(model, X, y)
    shares = [report.done / report.total for report in seen if report.stage == "certificate" and report.total]
    assert len(shares) > 1
    assert shares == sorted(shares)
    assert 0.9 < shares[-1] <= 1
