"""A training record is untrusted: valid parts are read, invalid parts are left out, and nothing raises."""

from __future__ import annotations

import copy
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.app.report_models import training_record

from margrove import load_penguins
from margrove.app.history import History

RECORD = training_record(load_penguins())
PARTS = (
    "source",
    "seconds",
    "subsample",
    "choice",
    "warnings",
    "leaderboard",
    "estimate",
    "search",
    "learning_curve",
    "course",
)


def read_all(record: object) -> dict[str, object]:
    history = History(record)
    return {part: getattr(history, part) for part in PARTS}


def test_every_part_of_a_complete_record_is_read():
    found = read_all(RECORD)
    assert all(found.values())
    estimate = found["estimate"]
    assert estimate.value == RECORD["estimate"]["value"]
    assert estimate.held_out.scores.shape == (200, 3)


@pytest.mark.parametrize("record", [None, 3, "text", [], {}, {"estimate": [1]}, {"leaderboard": {"a": 1}}])
def test_invalid_record_is_empty(record):
    assert not any(read_all(record).values())


@pytest.mark.parametrize(("given", "found"), [(True, True), (False, False), (None, False), ("yes", False), (1, False)])
def test_only_true_is_an_interruption(given, found):
    assert History({"is_interrupted": given}).is_interrupted is found


def test_two_classes_may_have_one_score_for_the_second():
    held_out = {"classes": ["a", "b"], "truth": [0, 1], "predicted": [0, 1], "scores": [[-1.0], [2.0]]}
    record = {"estimate": {"method": "hold-out", "value": 1.0, **held_out}}
    assert History(record).estimate.held_out.scores.tolist() == [[1.0, -1.0], [-2.0, 2.0]]


@pytest.mark.parametrize(
    "change",
    [
        {"truth": [0, 1]},
        {"truth": "abc"},
        {"predicted": [9] * 200},
        {"truth": [0.5] * 200},
        {"truth": [-1] * 200},
        {"predicted": [[0]] * 200},
        {"truth": [math.inf] * 200},
    ],
)
def test_invalid_held_out_rows_are_left_out_and_the_estimate_is_kept(change):
    record = copy.deepcopy(RECORD)
    record["estimate"].update(change)
    estimate = History(record).estimate
    assert estimate.value == RECORD["estimate"]["value"]
    assert estimate.held_out is None


def test_scores_of_a_wrong_shape_are_left_out_and_the_rows_are_kept():
    record = copy.deepcopy(RECORD)
    record["estimate"]["scores"] = [[1.0]] * 200
    held_out = History(record).estimate.held_out
    assert held_out.scores is None
    assert len(held_out.truth) == 200


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@given(part=st.sampled_from(sorted(RECORD)), junk=anything)
def test_junk_in_any_part_does_not_affect_the_others(part, junk):
    found = read_all({**RECORD, part: junk})
    whole = read_all(RECORD)
    for name in PARTS:
        if name != part:
            assert repr(found[name]) == repr(whole[name])


@given(key=st.sampled_from(sorted(RECORD["estimate"])), junk=anything)
def test_junk_in_the_estimate_raises_nothing(key, junk):
    found = History({"estimate": {**RECORD["estimate"], key: junk}}).estimate
    assert found is None or type(found) is type(History(RECORD).estimate)


def test_a_record_survives_json():
    assert repr(read_all(json.loads(json.dumps(RECORD)))) == repr(read_all(RECORD))


def test_huge_numbers_are_ignored():
    assert History({"seconds": 10**400}).seconds is None
    assert History({"seconds": float("nan")}).seconds is None
    assert History({"seconds": np.pi}).seconds == np.pi
