"""The place of a report, beside its model."""

from __future__ import annotations

from pathlib import Path

from margrove.app.files import check_folder
from margrove.app.options.table import STANDARD_STREAM
from margrove.errors import InputError

_SUFFIX = ".report"
# What tells a report of ours from another page, within its first bytes.
_MARK = b'name="generator" content="Margrove"'
_HEAD = 4096


def report_path(model: str, ending: str = "html") -> str | None:
    """Return the usual place of a model's report, beside it; None if the model is in no file."""
    is_file = model != STANDARD_STREAM and (not Path(model).exists() or Path(model).is_file())
    return str(Path(model).with_suffix(f"{_SUFFIX}.{ending}")) if is_file else None


def check_report(
    path: str, *, option: str = "-o", cure: str = "Choose another name for the model: -o; or say --no-report."
) -> None:
    """Refuse, before any work, to write over a page that is no report of ours. ``option`` names another place."""
    check_folder(path, "model.report.html", option)
    if not Path(path).is_file():
        return
    with Path(path).open("rb") as stream:
        is_ours = _MARK in stream.read(_HEAD)
    if not is_ours:
        problem = "there is such a page already and it is no Margrove report, so it is not overwritten"
        raise InputError(problem, file=path, cure=cure)
