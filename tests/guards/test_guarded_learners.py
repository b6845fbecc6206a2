"""Every learner gives what it gave when `record` was last run: errors, attributes, certificates, predictions."""

from __future__ import annotations

import inspect
import json

import pytest
from sklearn.base import BaseEstimator
from tests.guards.learners import LEARNERS, observed
from tests.guards.record import differences, read, unpacked
from tests.guards.state import fingerprint

import margrove

RECORD = read("learners")
NEEDS_TORCH = {"FineTuned"}


@pytest.mark.parametrize("name", LEARNERS)
def test_learner_gives_what_it_gave(name):
    is_exact = RECORD["fingerprint"] == fingerprint()
    recorded = unpacked(RECORD[name])
    found = json.loads(json.dumps(observed(name)))
    assert found.keys() == recorded.keys()
    compared = [case for case in recorded if is_exact or case.split(",")[0] not in LEARNERS[name].chaotic]
    wrong = {case: differences(recorded[case], found[case], is_exact=is_exact) for case in compared}
    assert not (wrong := {case: told for case, told in wrong.items() if told}), "\n".join(
        f"{case}: {'; '.join(told)}" for case, told in wrong.items()
    )


def test_every_public_estimator_is_guarded():
    public = {name: getattr(margrove, name) for name in margrove.__all__}
    estimators = {name for name, each in public.items() if inspect.isclass(each) and issubclass(each, BaseEstimator)}
    assert estimators - {name.split()[0].split(".")[0] for name in LEARNERS} == NEEDS_TORCH


def test_record_holds_no_other_learners():
    assert RECORD.keys() - {"fingerprint"} == LEARNERS.keys()
