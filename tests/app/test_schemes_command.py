"""The commands on models of several machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

from margrove import (
    SVC,
    BasicLinearClassifier,
    BitStringClassifier,
    DecisionTreeClassifier,
    OneVsOneClassifier,
    TableEncoder,
    load_penguins,
    save,
)
from margrove.app.screen.progress import in_words
from margrove.run.progress import Progress

Run = Callable[..., Result]


def test_a_saved_scheme_is_shown_certified_and_predicts(run: Run, folder: Path) -> None:
    from sklearn.pipeline import make_pipeline

    penguins = load_penguins()
    y = penguins.labels()
    models = {
        "shared": make_pipeline(TableEncoder(), BitStringClassifier(SVC(), code="hadamard")),
        "trees": OneVsOneClassifier(DecisionTreeClassifier(max_depth=2)),
        "pipes": OneVsOneClassifier(make_pipeline(TableEncoder(), BasicLinearClassifier())),
    }
    for name, model in models.items():
        save(model.fit(penguins, y), folder / f"{name}.margrove")
        shown = run("show", f"{name}.margrove")
        assert shown.exit_code == 0, shown.output
        assert "3 machines, each a " in shown.stdout
        assert json.loads(run("show", f"{name}.margrove", "--json").stdout)["learned"]["kind"] == "machines"
        certified = run("certify", f"{name}.margrove")
        assert "Certificate holds" in certified.stdout, certified.output
        assert "minimum distance" in certified.stdout
        predicted = run("predict", f"{name}.margrove", "--scores")
        assert predicted.exit_code == 0, predicted.output
        lines = predicted.stdout.splitlines()
        assert len(lines) == 345
        assert lines[0].count("score ") == 3


def test_the_meter_counts_machines() -> None:
    assert in_words(Progress("machines", 7.4, 26)) == "7 of 26 machines"
