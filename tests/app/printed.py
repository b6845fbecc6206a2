"""Printed results as the tests of the commands read them."""

from __future__ import annotations

from typer.testing import Result


def said_by(result: Result) -> str:
    """Return what a command that succeeded printed, its lines joined."""
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())
