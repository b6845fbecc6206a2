"""Files to read: small ones written on the spot, and the real sets of ``shared/data`` where they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write text or bytes to a file of this name, and give its path."""

    def write_file(content: str | bytes, name: str = "t.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real sets, found by walking up from here; a clone of the project has none."""
    for folder in Path(__file__).resolve().parents:
        if (folder / "shared" / "data").is_dir():
            return folder / "shared" / "data"
    pytest.skip("shared/data is not here: the real sets are not part of the project")
