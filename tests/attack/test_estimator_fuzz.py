"""No hostile table and no hostile parameter crashes, hangs, escapes as a raw exception or gets a false certificate."""

from __future__ import annotations

import pytest
from tests.attack.estimators import FAULTS, cases_of, fuzz, report

SEED = 20261116
QUICK, ALL, PART = 500, 10_000, 250


def assert_no_faults(part: int) -> None:
    cases = cases_of(ALL)[part * PART : (part + 1) * PART]
    outcomes = fuzz(cases, SEED, workers=1)
    assert [outcome.case for outcome in outcomes] == cases
    assert not any(outcome.verdict in FAULTS for outcome in outcomes), report(outcomes, SEED)


@pytest.mark.parametrize("part", range(QUICK // PART))
def test_hostile_input_is_refused_or_gets_a_true_certificate(part):
    assert_no_faults(part)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(QUICK // PART, ALL // PART))
def test_more_hostile_input_is_refused_or_gets_a_true_certificate(part):
    assert_no_faults(part)
