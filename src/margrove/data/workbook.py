"""Sheets of Excel (.xlsx, .xlsm, .xlsb, .xls) and OpenDocument (.ods) workbooks, as delimited text, so that one reader
knows about titles, totals and numbers that are written in words. Row N of a sheet is line N of the text."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from datetime import timedelta
from functools import reduce
from typing import Any
from xml.etree import ElementTree

from margrove.data.columns import named, number_text
from margrove.data.memory import check_memory
from margrove.data.source import HEAD, Content, binary_file, choose_part, damage_refused
from margrove.errors import MissingExtraError

_ROWS = 3  # the fewest of a sheet that looks like a table: names and two rows
_CELL = 32  # bytes of a cell in calamine

_WITH_COMMA = re.compile(r"-?\d{1,3}(?:[. ']?\d{3})*,\d{1,2}(?:\s?\D{1,3})?")

Grid = list[list[Any]]
Range = tuple[tuple[int, int], tuple[int, int]]  # the first and the last cell, each as row and column


def sheet_as_text(content: Content) -> Content:
    """Return the sheet that was named, or the only visible one that looks like a table, as delimited text. Raise
    `InputError` if the workbook is damaged, or the sheet is empty or not clear."""
    if content.head(2) == b"PK":
        _check_archive(content)
    try:
        from python_calamine import CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum
    except ImportError as error:
        raise MissingExtraError("Workbooks need python-calamine: pip install 'margrove[excel]'") from error
    with damage_refused(content.name, "workbook"):
        book = CalamineWorkbook.from_filelike(io.BytesIO(content.data))
        sheets = [sheet for sheet in book.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
        names = [sheet.name for sheet in sheets]
        likely = [sheet.name for sheet in sheets if sheet.visible == SheetVisibleEnum.Visible] or names
        if content.part is None and len(likely) > 1:
            shown = [book.get_sheet_by_name(name) for name in likely]
            tables = [sheet.name for sheet in shown if sheet.height >= _ROWS and sheet.width > 1]
            likely = tables or [sheet.name for sheet in shown if sheet.height]
        sheet = book.get_sheet_by_name(choose_part(content, "workbook", names, likely))
        if sheet.height == 0:
            cure = f"There are: {named(names)}." if len(names) > 1 else "Was it fully written?"
            raise content.error(f"the sheet {sheet.name!r} is empty", cure=cure)
        grid = sheet.to_python(skip_empty_area=False)
        ranges = sheet.merged_cell_ranges
        _fill_merged(grid, _ranges_of_ods(content, sheet.name) if ranges is None else ranges)
    if content.part is not None or len(names) == 1:
        return Content(content.name, ".csv", held=_as_csv(grid))
    note = f"The sheet {sheet.name!r} is read; there are {named(names)}."
    return Content(f"{content.name}::{sheet.name}", ".csv", held=_as_csv(grid), note=note)


def _check_archive(content: Content) -> None:
    """Refuse an archive that is no workbook, or has a sheet that does not fit in memory. calamine holds the rectangle
    of all cells, and where a single cell at XFD1048576 makes that too large, it ends the process."""
    with damage_refused(content.name, "workbook"), zipfile.ZipFile(io.BytesIO(content.data)) as archive:
        sizes = {member.filename: member.file_size for member in archive.infolist()}
        if not sizes.keys() & {"xl/workbook.xml", "xl/workbook.bin", "content.xml"}:
            raise binary_file(content, "a ZIP archive, but no workbook and no .npz")
        check_memory(sum(sizes.values()), content.name)
        for name in sizes:
            if name.startswith("xl/worksheets/sheet"):
                with archive.open(name) as file:
                    last = re.search(rb'dimension ref="[A-Z]+\d+:([A-Z]+)(\d+)"', file.read(HEAD))
                if last:
                    width = reduce(lambda number, letter: 26 * number + letter - ord("@"), last[1], 0)
                    check_memory(_CELL * width * int(last[2]), content.name)


def _ranges_of_ods(content: Content, name: str) -> list[Range]:
    """Return the merged cells of a sheet of OpenDocument, which calamine does not report."""
    table, ranges = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}", []
    with zipfile.ZipFile(io.BytesIO(content.data)) as archive:
        text = archive.read("content.xml") if "content.xml" in archive.namelist() else b""
    if b"-spanned=" not in text:
        return []
    for sheet in ElementTree.fromstring(text).iter(f"{table}table"):
        top = 0
        for row in sheet.iter(f"{table}table-row") if sheet.get(f"{table}name") == name else ():
            left = 0
            for cell in row:
                height, width = (int(cell.get(f"{table}number-{what}-spanned", 1)) for what in ("rows", "columns"))
                ranges.append(((top, left), (top + height - 1, left + width - 1)))
                left += int(cell.get(f"{table}number-columns-repeated", 1))
            top += int(row.get(f"{table}number-rows-repeated", 1))
    return ranges


def _fill_merged(grid: Grid, ranges: list[Range]) -> None:
    """Write the value of merged cells into all of their rows; of a header above several columns, into all of these."""
    height, width = len(grid), len(grid[0])
    inside = [found for found in ranges if found[0] != found[1] and found[0][0] < height and found[0][1] < width]
    for (top, left), (bottom, right) in inside:
        below = grid[bottom + 1][left : right + 1] if right > left and bottom + 1 < height else [""]
        others = any(cell != "" for cell in grid[top][:left] + grid[top][right + 1 :])
        if others and "" not in below:
            grid[top][left : right + 1] = [grid[top][left]] * len(below)
    for (top, left), (bottom, _) in inside:
        for row in grid[top : bottom + 1]:
            row[left] = grid[top][left]


def _as_csv(grid: Grid) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    with_comma = {j for j in range(len(grid[0])) if _has_decimal_comma([row[j] for row in grid])}
    for row in grid:
        cells = [_written(cell) for cell in row]
        for j in with_comma:
            if isinstance(row[j], float):
                cells[j] = cells[j].replace(".", ",")
        writer.writerow(cells if any(cells) else [])  # an empty line
    return text.getvalue().encode()


def _has_decimal_comma(cells: list[Any]) -> bool:
    """Return whether typed numbers stand beside text with a decimal comma, as "1.250,00", which was not recognised."""
    texts = [cell for cell in cells if isinstance(cell, str) and _WITH_COMMA.fullmatch(cell)]
    return len(texts) > 0 and any(isinstance(cell, float) for cell in cells)


def _written(cell: object) -> str:
    """Return a cell as text in one line; dates and times as ISO 8601 has them, but for a blank between the two."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, (int, float)):
        return number_text(cell)
    if isinstance(cell, timedelta):
        minutes, seconds = divmod(round(cell.total_seconds()), 60)
        return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
    return " ".join(str(cell).splitlines())
