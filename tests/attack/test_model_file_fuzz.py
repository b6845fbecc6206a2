"""A damaged model file is refused; a forged one is refused or harmless. None crashes, hangs or escapes as an error."""

from __future__ import annotations

import pytest
from tests.attack.model_files import FAULTS, fuzz, report

SEED = 20261116
QUICK, ALL = 300, 5_000


def assert_no_faults(cases: list[int]) -> None:
    outcomes = fuzz(cases, SEED, workers=1)
    assert [outcome.case for outcome in outcomes] == cases
    assert not any(outcome.verdict in FAULTS for outcome in outcomes), report(outcomes, SEED)
    assert {"refused", "harmless"} <= {outcome.verdict for outcome in outcomes}


def test_mutated_model_files_are_refused_or_harmless():
    assert_no_faults(list(range(QUICK)))


@pytest.mark.slow
def test_more_mutated_model_files_are_refused_or_harmless():
    assert_no_faults(list(range(QUICK, ALL)))
