"""The corpus of exported tables is read as a careful reader would read it."""

from __future__ import annotations

import pytest

from tests.exports.cases import cases, differences

# Read otherwise than expected. Of the first two an unnamed column that numbers the rows is left out, which a note says.
# The last has the expected cells but lacks a note on #DIV/0!, which the reader of workbooks gives as an empty cell.
OTHERWISE = {"exam-duplicate-names.csv", "ledger-codes.csv", "crop-yield-formulas.xlsx"}


FILES = [path for part in ("open", "sealed", "fresh", "blind") for path in cases(part)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_export_is_read_as_a_careful_reader_would(path):
    assert bool(differences(path)) == (path.name in OTHERWISE), differences(path)
