"""The golden model files stay as they were written, byte for byte; `tests/store/test_golden_files.py` predicts with
them. A new file is added to the list: ``cd tests/store/golden && sha256sum * > ../../guards/golden.sha256``."""

from __future__ import annotations

import hashlib
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "store" / "golden"
LISTED = dict(line.split()[::-1] for line in (Path(__file__).parent / "golden.sha256").read_text().splitlines())


def test_golden_files_are_unchanged():
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in GOLDEN.iterdir()}
    assert found == LISTED


def test_every_golden_model_has_its_predictions():
    models = {Path(name).stem for name in LISTED if name.endswith(".margrove")}
    assert models == {Path(name).stem for name in LISTED if name.endswith(".json")}
    assert models
