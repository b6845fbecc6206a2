"""The first line holds names, or it does not; the delimiter is what cuts the lines alike."""

from __future__ import annotations

import pytest

from margrove.data import read_table
from margrove.data.dialect import TextOptions, sniff
from margrove.data.source import Content


def dialect(text: str, extension: str = "", **options):
    content = Content("t", extension, held=text.encode())
    return sniff(content, TextOptions(**options))


@pytest.mark.parametrize(
    ("text", "has_names"),
    [
        ("a,b\n1,2\n3,4\n", True),
        ("1,2\n3,4\n", False),
        ("a,b\n1,x\n2,y\n", True),
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n6.1,2.9,virginica\n", False),
        ("class,shape,odor\np,x,s\ne,x,s\np,b,y\n", True),  # all text, with names
        ("p,x,s\ne,x,s\np,b,y\n", False),  # all text: what stands in the first line comes again
        ("id,2007,2008\n1,5,6\n2,7,8\n", True),  # years are names too, beside a word above numbers
        ("NA,x\n1,y\n2,x\n", False),  # a missing number in the first line is no name
        ("a,b\n?,?\n", True),
        ("flag,when\nTrue,2020-01-01\nFalse,2020-01-02\n", True),
        ("True,x\nFalse,y\nTrue,x\n", False),
        ("name\nbob\nalice\n", True),
        ("1\n2\n3\n", False),
        ("a,b,c\n", True),
        ("1,2,3\n", False),
        ("x,y\nx1,1,5\n", True),
        (",a\n0,1\n1,2\n", True),
    ],
)
def test_column_names_are_distinguished_from_rows(text, has_names):
    assert dialect(text).has_names is has_names


@pytest.mark.parametrize("header", [True, False])
def test_the_header_may_be_stated(header):
    assert dialect("1,2\n3,4\n", header=header).has_names is header
    assert dialect("a,b\n3,4\n", header=header).has_names is header


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2\n", ";"),
        ("1,5;2,5\n3,5;4,5\n", ";"),
        ("a\tb c\n1\td e\n", "\t"),
        ("a|b\n1|2,3\n", "|"),
        ("a b\n1 2\n", " "),
        ('a,b\n"x;y",2\n"z;w",3\n', ","),
        ("a,b\n1,2\n1,2,3\n4,5\n", ","),  # one ragged row does not hide it
        ("one of many words\nand some more\n", ","),
        ("word\n", ","),
    ],
)
def test_the_delimiter_cuts_lines_alike(text, delimiter):
    assert dialect(text).delimiter == delimiter


def test_the_ending_tsv_is_a_hint():
    assert dialect("a\tb\nx, y\tz, w\nu, v\tq, r\n", ".tsv").delimiter == "\t"


def test_columns_without_names_are_called_by_their_place(write):
    table = read_table(write("1,2,x\n3,4,y\n"))
    assert table.names == ("column_1", "column_2")
    assert table.target.name == "column_3"
    assert table.notes[0] == "There are no column names: the columns are called column_1 to column_3."


def test_a_line_break_in_a_name_becomes_a_blank(write):
    table = read_table(write('"a \r\nb",y\n1,u\n2,v\n'))
    assert table.names == ("a b",)
    assert table.n_rows == 2


def test_the_dialect_found_is_noted(write):
    assert read_table(write("\n\na;y\n1;u\n2;v\n")).notes[:2] == (
        "Line 3 holds the column names.",
        "The delimiter is the semicolon.",
    )
