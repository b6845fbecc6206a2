"""JSON lines and arrays of objects: one table, whichever way it is written, and the line of a fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from margrove.data import read_chunks, read_table
from margrove.errors import InputError

ROWS = [
    {"n": 1, "word": "wren", "ok": True, "at": {"x": 1.5, "y": {"deep": "u"}}},
    {"n": None, "word": "n/a", "ok": False, "later": 'a "quoted", word'},
    {"n": 2.5, "word": "robin", "ok": None, "at": {"x": 2}},
]
CELLS = {
    "n": [1, None, 2.5],
    "word": ["wren", None, "robin"],
    "ok": [True, False, None],
    "at.x": [1.5, None, 2],
    "at.y.deep": ["u", None, None],
    "later": [None, 'a "quoted", word', None],
}


def cells(source: object, **how: object) -> dict[str, list[object]]:
    return {column.name: column.cells() for column in read_table(source, target=False, **how)}


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(map(json.dumps, ROWS)),
        "\r\n\r\n".join(map(json.dumps, ROWS)) + "\r\n",
        json.dumps(ROWS),
        f"  {json.dumps(ROWS, indent=1)}\n",
    ],
    ids=["lines", "blank lines", "array", "array over lines"],
)
def test_all_ways_to_write_the_rows_are_one_table(write: Callable[..., Path], text: str) -> None:
    assert cells(write(text, "t.json")) == CELLS
    assert cells(write(text.encode("utf-16"), "t.json")) == CELLS


def test_cells_of_several_types_are_text(write: Callable[..., Path]) -> None:
    path = write('{"a": 1, "b": "true", "c": 1}\n{"a": "x", "b": "False", "c": true}\n', "t.jsonl")
    assert cells(path) == {"a": ["1", "x"], "b": [True, False], "c": ["1", "true"]}


def test_other_words_for_missing_cells_can_be_named(write: Callable[..., Path]) -> None:
    path = write('{"a": "none", "y": 1}\n{"a": "x", "y": 2}\n', "t.jsonl")
    assert cells(path, missing=["none"])["a"] == [None, "x"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a": 2\n', r"t\.json, line \d: the text is not valid JSON \(Expecting ',' delimiter\)"),
        ('{"a": 1}\n{"a": x}\n', r"line 2: the text is not valid JSON \(Expecting value\)\. Write one object per line"),
        ('{"a": 1}\n\n7\n', r"line 3: an object was expected, not 7\."),
        ('[{"a": 1},\n{"a": 2}', r"line 2: the text is not valid JSON \(Expecting ',' delimiter\)"),
        ('[{"a": 1}] x', r"line 1: the text is not valid JSON \(Extra data\)"),
        ('{"a": 1}\n{"a": 1, "a": 2}\n', r"line 2: .*a key occurs twice in an object: 'a', 'a'"),
        ('{"a.b": 1, "a": {"b": 2}}\n', r"the column name 'a\.b' occurs 2 times"),
        ('{"a": [1, 2]}\n', r"the table has no rows"),
        ('{"a": "\\ud800"}\n', r"column 'a': the text data cannot be read"),
        ('{"a": 1, "y": 1}\n{"a": Infinity, "y": 1}\n', r"line 2, column 'a': the number is infinite"),
        ('{"a": 1, "y": 1}\n\n{"a": 1}\n', r"line 3, column 'y'"),
        ("[{}]", r"the table has no rows"),
        ('{"rows": [\n{"a": 1}\n]}', r"line 1: the text is not valid JSON.*Write one object per line"),
        ('{"a": ' + "[" * 100_000, r"line 1: the text is not valid JSON"),
    ],
)
def test_faults_are_named_with_their_line(write: Callable[..., Path], text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_table(write(text, "t.json"))


def test_text_that_is_not_utf8_is_named(write: Callable[..., Path]) -> None:
    path = write('{"a": 1}\n{"a": "é"}\n'.encode("latin-1"), "t.jsonl")
    with pytest.raises(InputError, match=r"line 2: the text is not UTF-8"):
        read_table(path)
    assert cells(path, encoding="latin-1") == {"a": ["1", "é"]}


def test_chunks_refuse_json_and_it_has_no_parts(write: Callable[..., Path]) -> None:
    path = write('{"a": 1, "y": 1}\n', "t.jsonl")
    with pytest.raises(InputError, match="the format 'json' cannot be read in chunks"):
        read_chunks(path)
    for reader in (read_table, read_chunks):
        with pytest.raises(InputError, match=r"only workbooks and databases have sheets or tables.*Leave out '::a'"):
            reader(f"{path}::a")


def test_lists_are_left_out_and_objects_may_be_mixed_with_cells(write) -> None:
    table = read_table(
        write(b'{"a": 1, "b": {"c": "12"}, "t": [1]}\n{"a": {"d": 2}, "b": {"c": 38}}\n', "t.jsonl"), target=False
    )
    assert {column.name: column.cells() for column in table} == {"a": [1, None], "b.c": [12, 38], "a.d": [None, 2]}
    assert "Column 't' holds lists and is left out." in table.notes
