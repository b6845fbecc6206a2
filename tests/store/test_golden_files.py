"""Files written by earlier versions load and predict what they predicted then, for ever."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from sklearn.base import is_regressor

from margrove import as_table, load
from margrove.store.container import FORMAT

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*.margrove"))


def test_every_format_has_golden_files():
    assert {file.name.partition("-")[0] for file in FILES} == {f"format{number}" for number in range(1, FORMAT + 1)}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_old_files_give_the_same_predictions(file):
    told = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
    model = load(file)
    points = told["points"]
    points = as_table(pyarrow.table(points)) if isinstance(points, dict) else np.array(points)
    last = model[-1] if hasattr(model, "steps") else model
    # Not to the last bit: another machine's BLAS may add in another order.
    if is_regressor(last):
        np.testing.assert_allclose(model.predict(points), told["predictions"], rtol=1e-12, atol=1e-12)
    else:
        assert model.predict(points).tolist() == told["predictions"]
        if "probabilities" in told:
            np.testing.assert_allclose(model.predict_proba(points), told["probabilities"], rtol=1e-12, atol=1e-12)
        else:
            np.testing.assert_allclose(model.decision_function(points), told["decisions"], rtol=1e-12, atol=1e-12)
    assert last.certificate_.holds is told["holds"]
    if "words" in told:
        assert last.kkt_.tolist() == told["words"]


def test_old_files_without_a_training_record_have_none_and_the_golden_one_has_its_own():
    recorded = {file.stem for file in FILES if hasattr(load(file), "training_record_")}
    assert recorded == {"format1-training-record"}
    record = load(GOLDEN / "format1-training-record.margrove").training_record_
    assert record == {"version": 1, "source": "golden", "leaderboard": [{"learner": "basic", "score": 1.0}]}
