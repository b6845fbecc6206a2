"""Words on any terminal, help and completion."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

import margrove
from margrove.app.cli import app
from margrove.app.options.menu import choices, completed_choices

Run = Callable[..., Result]


@pytest.mark.parametrize("command", ["train", "predict", "show", "certify", "compare"])
def test_every_command_shows_an_example(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"Example:  margrove {command}" in result.stdout


@pytest.mark.parametrize("words", [[], ["train"], ["compare"]])
def test_flags_name_no_type_of_a_value(words: list[str]) -> None:
    said = CliRunner().invoke(app, [*words, "--help"]).stdout
    assert "--help" in said
    assert "bool" not in said.lower()


def test_the_version_is_the_library_s() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"margrove {margrove.__version__}\n"


def test_an_unknown_option_is_a_usage_error() -> None:
    assert CliRunner().invoke(app, ["train", "--colour"]).exit_code == 2


def test_learners_are_completed() -> None:
    assert completed_choices("") == ["auto", *choices()]
    assert completed_choices("kern") == ["kernel-perceptron"]


def test_markup_in_labels_is_only_text(run: Run, flowers: str, flowers_text: str) -> None:

    result = run(
        "train", "-", "--folds", "0", "--model", "svm", stdin=flowers_text.replace("daisy", "[red]daisy[/]").encode()
    )
    assert result.exit_code == 0
    assert "[red]daisy[/] (4)" in result.stdout
