"""The corpus of exported tables is read as a careful reader would read it."""

from __future__ import annotations

import pytest

from tests.exports.cases import cases, differences

# Read otherwise than expected, and said in a note: an unnamed first column that numbers the rows is left out.
OTHERWISE = {"exam-duplicate-names.csv"}


@pytest.mark.parametrize("path", cases("open"), ids=lambda path: path.name)
def test_export_is_read_as_a_careful_reader_would(path):
    assert bool(differences(path)) == (path.name in OTHERWISE), differences(path)
