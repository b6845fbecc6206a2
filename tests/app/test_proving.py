"""The certificate at the end of ``train``: watched, said where it is beyond the budget, left out at Ctrl-C."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

import margrove
from margrove.app import proving
from margrove.app.choose.candidates import CANDIDATES
from margrove.app.models import last_step_of
from margrove.app.options.budget import Budget
from margrove.app.proving import Proof, prove, warning_words
from margrove.app.screen.console import Screen
from margrove.certificate import certify
from margrove.data import as_table
from margrove.run.progress import Progress, watched

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
    assert "Certificate: not checked yet; its numbers are the solver's own" in result.output
    assert "not checked (Ctrl-C" in " ".join(result.output.split())
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
    assert "not checked (Ctrl-C" in next(folder.glob("m*.html")).read_text(encoding="utf-8")


def test_certificate_beyond_the_budget_is_announced(capsys: pytest.CaptureFixture[str]) -> None:
    table = as_table([[0.0, 0], [1.0, 0], [5.0, 1], [6.0, 1]], target=1)
    model = margrove.DecisionTreeClassifier().fit(table, table.labels())
    proof = prove(Screen(), model, table, Budget(0.0), predicted=20.0)
    assert "takes about 20 s, and the budget is used up" in capsys.readouterr().out
    assert proof.certificate.holds is True
    assert proof.beyond > 0


def test_certificate_within_the_budget_is_not_announced() -> None:
    certificate = certify(*_tree())
    assert Proof(certificate, 2.0).words == ""
    assert Proof(certificate, 2.0, beyond=0.1).words == ""
    assert warning_words(3.0, 3.0) == ""


def test_time_beyond_the_budget_is_reported() -> None:
    certificate = certify(*_tree())
    assert Proof(certificate, 5.0, beyond=2.0).words.endswith("took 5 s, 2 s of it beyond the budget.")
    assert Proof(certificate, 5.0, beyond=5.0).words.endswith("all of it beyond the budget.")


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


def _tree() -> tuple[object, list[list[float]], list[int]]:
    X, y = [[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1]
    return margrove.DecisionTreeClassifier().fit(X, y), X, y
