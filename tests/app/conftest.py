"""Commands run in this process, each in an empty folder of its own; a table and a model to run them on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from margrove.app.cli import app

Run = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory: empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Run:
    """Type a command in the empty folder; ``train`` writes no report, unless it is asked to."""

    def typed(*words: str, stdin: bytes | None = None) -> Result:
        if words[:1] == ("train",) and "--report" not in words:
            words = (*words, "--no-report")
        return CliRunner().invoke(app, list(words), input=stdin, catch_exceptions=False)

    return typed


_FLOWERS = """petal,colour,height,kind
1.0,red,10,daisy
1.2,red,11,daisy
0.9,white,12,daisy
1.1,white,9,daisy
3.0,red,30,tulip
3.2,yellow,31,tulip
2.9,yellow,28,tulip
3.1,red,33,tulip
"""


@pytest.fixture
def flowers_text() -> str:
    """A small table of two separable classes with numbers and a category, as CSV."""
    return _FLOWERS


@pytest.fixture
def flowers(folder: Path, flowers_text: str) -> str:
    """That table as a file."""
    (folder / "flowers.csv").write_text(flowers_text)
    return "flowers.csv"


@pytest.fixture
def model(run: Run, flowers: str) -> str:
    """A perceptron of the flowers."""
    result = run("train", flowers, "--model", "perceptron", "--folds", "2")
    assert result.exit_code == 0, result.output
    return "flowers.margrove"
