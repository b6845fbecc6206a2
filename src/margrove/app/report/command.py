"""``margrove report``: the report of a saved model on a table."""

from __future__ import annotations

import warnings
import webbrowser
from pathlib import Path

from margrove.app.files import check_output, report_path, write_content
from margrove.app.images.models import opened
from margrove.app.images.page import report_of_pictures
from margrove.app.options.table import STANDARD_STREAM, Reading
from margrove.app.report.writing import check_format, in_format, report_of
from margrove.app.screen.advice import warnings_in_shell
from margrove.app.screen.console import Screen, put
from margrove.app.screen.progress import metered
from margrove.errors import ParameterError

_SMALL = 100_000  # bytes: smaller reports are given in kilobytes


def report(
    screen: Screen,
    model_path: str,
    reading: Reading,
    output: str | None,
    format: str,
    metric: str | None,
    *,
    is_opened: bool,
) -> None:
    """Read a model and a table, write the report of both, and perhaps open it."""
    check_format(format)
    destination = output or report_path(model_path, format) or f"model.report.{format}"
    if is_opened and (destination == STANDARD_STREAM or format != "html"):
        raise ParameterError("--open needs an HTML page in a file: leave out -o - and --format.")
    check_output(destination, f"report.{format}", model_path, reading.file)
    model, pictures, reading = opened(model_path, reading)
    with metered(screen, "preparing the report"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if pictures is None:
            found = report_of(model, reading.unlabelled(), metric)
        elif metric is not None:
            raise ParameterError("--metric: a report of pictures is by accuracy. Leave it out.")
        else:
            found = report_of_pictures(model, pictures)
        content = in_format(found, format)
    for message in warnings_in_shell(caught):
        screen.warn(message)
    if destination == STANDARD_STREAM:
        put(content)
        return
    write_content(content, destination)
    screen.essential(f"Wrote {destination} ({size_words(len(content))})")
    if is_opened:
        webbrowser.open(Path(destination).resolve().as_uri())
    screen.document(
        {"command": "report", "model": model_path, "format": format, "output": destination, "bytes": len(content)}
    )


def size_words(n_bytes: int) -> str:
    """Return the size of a file in words."""
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= _SMALL else f"{max(1, round(n_bytes / 1e3))} kB"
