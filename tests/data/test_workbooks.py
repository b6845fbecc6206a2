"""Excel and OpenDocument workbooks: the right sheet, its cells as they are, merged cells filled, faults named."""

from __future__ import annotations

import builtins
import datetime
import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pytest

from margrove.data import memory, read_chunks, read_table
from margrove.data.readers import read_with_cells
from margrove.errors import InputError, MissingExtraError

EXPORTS = Path(__file__).parents[1] / "exports" / "open"
FRUIT = [["fruit", "size"], ["apple", 7], ["pear", 6.5], ["plum", 3]]


def workbook(sheets: dict[str, list[list[object]]], hidden: str = "", merged: tuple[str, ...] = ()) -> bytes:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        sheet.sheet_state = "hidden" if name == hidden else "visible"
        for cells in merged:
            sheet.merge_cells(cells)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def cells(source: object, **how: object) -> dict[str, list[object]]:
    return {column.name: column.cells() for column in read_table(source, target=False, **how)}


def test_cells_are_written_as_their_kinds(write: Callable[..., Path]) -> None:
    rows = [
        ["day", "at", "from", "lasts", "n", "share", "ok", "word", "fault"],
        [
            datetime.date(2024, 3, 4),
            datetime.datetime(2024, 3, 4, 7, 58, 30),
            datetime.time(6, 30),
            datetime.timedelta(hours=26, minutes=5),
            2101,
            0.125,
            True,
            'two\nlines, "quoted"',
            "#DIV/0!",
        ],
        [None, None, None, None, -3, 1e-7, False, "x", "y"],
    ]
    path = write(workbook({"A": rows}), "t.xlsx")
    _, written = read_with_cells(path, None)
    assert [column[0] for column in written.values()] == [
        "2024-03-04",
        "2024-03-04 07:58:30",
        "06:30:00",
        "26:05:00",
        "2101",
        "0.125",
        "true",
        'two lines, "quoted"',
        "",
    ]
    found = cells(path)
    assert found["n"] == [2101, -3]
    assert found["share"] == [0.125, 1e-7]
    assert found["ok"] == [True, False]
    assert found["fault"] == [None, "y"]


@pytest.mark.parametrize("name", ["birds-plain.xlsx", "boats-plain.ods"])
def test_a_stream_and_a_compressed_file_are_the_same_table(name: str, write: Callable[..., Path]) -> None:
    data = (EXPORTS / name).read_bytes()
    table = cells(EXPORTS / name)
    assert cells(io.BytesIO(data)) == table
    assert cells(write(gzip.compress(data), f"{name}.gz")) == table
    assert cells(EXPORTS / name, delimiter=";", encoding="latin-1") == table  # these are about text files


def test_lines_count_the_rows_of_the_sheet(write: Callable[..., Path]) -> None:
    path = write(workbook({"A": [[], [None, "a", "y"], [], [None, 1, "u"], [None, 2, None]]}), "t.xlsx")
    with pytest.raises(InputError, match=r"t\.xlsx, line 5, column 'y'"):
        read_table(path)


def test_the_only_sheet_with_a_table_is_read_and_named(write: Callable[..., Path]) -> None:
    sheets = {"Read me": [["How to read this"], ["and more"], ["and more"]], "Data": FRUIT, "Sheet3": []}
    path = write(workbook(sheets), "t.xlsx")
    table = read_table(path, target=False)
    assert table.names == ("fruit", "size")
    assert table.source == f"{path}::Data"
    only = EXPORTS / "birds-plain.xlsx"
    assert read_table(only, target=False).source == str(only)


def test_visible_sheets_come_first_and_hidden_ones_can_be_named(write: Callable[..., Path]) -> None:
    other = [["a", "b"], [1, 2], [3, 4]]
    path = write(workbook({"old": other, "new": FRUIT}, hidden="old"), "t.xlsx")
    assert read_table(path, target=False).names == ("fruit", "size")
    assert read_table(f"{path}::old", target=False).names == ("a", "b")
    assert read_table(f"{path}::OLD", target=False).source == f"{path}::OLD"


def test_sheets_that_are_not_clear_are_listed(write: Callable[..., Path]) -> None:
    data = workbook({"2023": FRUIT, "2024": FRUIT})
    path = write(data, "t.xlsx")
    with pytest.raises(InputError, match=r"several sheets: '2023', '2024'\. Name one of them: '.*t\.xlsx::2023'\."):
        read_table(path)
    with pytest.raises(InputError, match=r"^stream: there are several sheets.*\. Save it as a file and name one"):
        read_table(io.BytesIO(data))
    with pytest.raises(InputError, match=r"there is no sheet '2004'\. There are: '2023', '2024'\."):
        read_table(f"{path}::2004")
    with pytest.raises(InputError, match="there is no such file"):
        read_table(f"{path}x::2023")


def test_empty_sheets_are_refused(write: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match=r"the sheet 'A' is empty\. Was it fully written\?"):
        read_table(write(workbook({"A": []}), "t.xlsx"))
    path = write(workbook({"A": [], "B": FRUIT}), "t.xlsx")
    with pytest.raises(InputError, match=r"the sheet 'A' is empty\. There are: 'A', 'B'\."):
        read_table(f"{path}::A")


def merged_ods(rows: str) -> bytes:
    with zipfile.ZipFile(EXPORTS / "boats-plain.ods") as source:
        files = {name: source.read(name) for name in source.namelist()}
    text = files["content.xml"].decode()
    start = text.index("<table:table-row")
    files["content.xml"] = (text[:start] + rows + text[text.index("</table:table>") :]).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def test_merged_cells_hold_for_all_of_their_rows(write: Callable[..., Path]) -> None:
    rows = [["ward", "week", "beds"], ["A", 1, 24], [None, 2, 26], ["B", 3, 40], [None, 4, 41]]
    found = cells(write(workbook({"S": rows}, merged=("A2:A3", "A4:A5", "A9:B12")), "t.xlsx"))
    assert found["ward"] == ["A", "A", "B", "B"]

    def row(*texts: str) -> str:
        return f"<table:table-row>{''.join(texts)}</table:table-row>"

    def cell(text: str, span: str = "") -> str:
        return f'<table:table-cell office:value-type="string"{span}><text:p>{text}</text:p></table:table-cell>'

    down = ' table:number-rows-spanned="2" table:number-columns-spanned="1"'
    ods = row(cell("ward"), cell("week")) + row(cell("A", down), cell("w1"))
    ods += row("<table:covered-table-cell/>", cell("w2")) + row(cell("B"), cell("w3"))
    assert cells(write(merged_ods(ods), "t.ods")) == {"ward": ["A", "A", "B"], "week": ["w1", "w2", "w3"]}


def test_merged_titles_stay_one_cell_and_merged_headers_are_repeated() -> None:
    from margrove.data.workbook import _as_csv, _fill_merged

    grid = [["Sales", "", ""], ["Region", 2023.0, ""], ["", "in", "out"], ["A", 1.0, 2.0], ["Sum", "", 3.0]]
    _fill_merged(grid, [((0, 0), (0, 2)), ((1, 1), (1, 2)), ((1, 0), (2, 0)), ((4, 0), (4, 1))])
    assert _as_csv(grid).decode().splitlines() == ["Sales,,", "Region,2023,2023", "Region,in,out", "A,1,2", "Sum,,3"]


def test_headers_of_merged_cells(write: Callable[..., Path]) -> None:
    book = openpyxl.Workbook()
    book.active.append(["Region", "First half", None, "Second half", None, "Bonus"])
    book.active.append([None, "Q1", "Q2", "Q3", "Q4", None])
    for cells in ("A1:A2", "B1:C1", "D1:E1", "F1:F2"):
        book.active.merge_cells(cells)
    for row in range(8):
        book.active.append([f"R{row}", row, 2 * row, 3 * row, 4 * row, row % 3])
    stream = io.BytesIO()
    book.save(stream)
    table = read_table(write(stream.getvalue(), "t.xlsx"), target=False)
    assert table.names == ("Region", "First half Q1", "First half Q2", "Second half Q3", "Second half Q4", "Bonus")
    assert table.n_rows == 8


def test_damaged_workbooks_are_refused(write: Callable[..., Path]) -> None:
    whole = workbook({"A": FRUIT})
    with pytest.raises(InputError, match=r"t\.xlsx: the workbook data cannot be read \(.*write or download it again"):
        read_table(write(whole[:-400], "t.xlsx"))
    with pytest.raises(InputError, match=r"t\.xls: the workbook data cannot be read"):
        read_table(write(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "t.xls"))


def test_a_cell_far_away_is_refused_before_it_takes_all_memory(write: Callable[..., Path], monkeypatch) -> None:
    """calamine would end the process."""
    book = openpyxl.Workbook()
    book.active["A1"] = book.active["XFD1048576"] = 1
    stream = io.BytesIO()
    book.save(stream)
    monkeypatch.setattr(memory, "free_memory", lambda: 10**9)
    with pytest.raises(InputError, match=r"t\.xlsx: reading it takes about 549\.8 GB of memory"):
        read_table(write(stream.getvalue(), "t.xlsx"))


def test_chunks_refuse_workbooks(write: Callable[..., Path]) -> None:
    path = write(workbook({"A": FRUIT}), "t.xlsx")
    for source in (path, f"{path}::A"):
        with pytest.raises(InputError, match=r"format 'workbook' cannot be read in chunks.*as a whole with read_table"):
            read_chunks(source)


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *rest: object) -> object:
        if name == "python_calamine":
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"pip install 'margrove\[excel\]'"):
        read_table(EXPORTS / "birds-plain.xlsx")
