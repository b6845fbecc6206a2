"""The learners from outside are registered for these tests alone: others look at all that there are."""

from __future__ import annotations

import pytest

from margrove import learner as registry
from tests.learner.test_outside import OUTSIDERS


@pytest.fixture(autouse=True)
def _outsiders():
    registry.register(*OUTSIDERS)
    yield
    for learner in OUTSIDERS:
        del registry._registered[learner.key]
