"""Bad input is refused first of all, in one line that names file, line, column, value and cure."""

from __future__ import annotations

import gzip
import io
import os
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from margrove.data import read_table
from margrove.errors import InputError, ParameterError

MIB = 1 << 20
ARFF = "@relation t\n@attribute a numeric\n@attribute y {u, v}\n@data\n"


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def npz(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def parquet(**columns: list) -> bytes:
    file = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), file)
    return file.getvalue()


BAD_FILES = {
    "empty": (b"", "{file}: the file is empty. Was it fully written?"),
    "white": (b" \n\n", "{file}: the file is empty."),
    "names only": (
        b"a,b\n",
        "{file}, line 1: the file has column names but no rows. "
        "If the first line is a row of data and not column names, set header=False.",
    ),
    "short row": (
        b"a,b,c\n1,2,3\n\nx,5\n6,7,8\n",
        "{file}, line 4: 2 cells where the first line has 3 ('x,5'). Fix the row.",
    ),
    "long row": (
        b"a,b\n1,2\n3,4,5\n",
        "{file}, line 3: 3 cells where the first line has 2 ('3,4,5'). "
        "Fix the row: put quotes around a cell that contains the delimiter.",
    ),
    "ragged after a line break": (b'a,b\n"x\ny",2\n3\n', "{file}, line 4: 1 cell where the first line has 2"),
    "ragged far down": (
        b"a,b,c\n" + b"1,2,3\n" * 400_000 + b"x,5\n1,2,3\n",
        "{file}, line 400002: 2 cells where the first line has 3 ('x,5')",
    ),
    "no known encoding": (
        b"a,b\n1,th\xf7y\n",
        "{file}, line 2: the text is not UTF-8 (byte 0xf7, near 'a,b 1,th÷y'). "
        "Name its encoding, such as encoding='cp1252'.",
    ),
    "no known encoding of the names": (b"x\xf7y,b\n1,2\n", "{file}, line 1: the text is not UTF-8 (byte 0xf7"),
    "no known encoding far down": (
        b"a,b\n" + b"1,text\n" * 200_000 + b"1,x\xf7y\n",
        "{file}, line 200002: the text is not UTF-8 (byte 0xf7",
    ),
    "infinite": (
        b"a,b\n1,x\n\n-inf,y\n",
        "{file}, line 4, column 'a': the number is infinite (-inf); every cell must be finite or missing. "
        "Leave the cell empty if it is unknown, or write a finite number.",
    ),
    "too large a number": (
        b"a,b\n1,x\n1e999,y\n",
        "{file}, line 3, column 'a': the number is infinite (inf)",
    ),
    "endless cell": (
        b"a,b\n1,x\n2," + b"z" * 10 * MIB + b"\n3,y\n",
        "{file}, line 3, column 'b': a cell of 10.0 MiB ('zzzzzzzzzzzzzzzzzzz…'); the limit is 1 MiB. "
        "Shorten the cell, or leave the column out.",
    ),
    "long cell": (
        b"a,b\n1,x\n2," + b"z" * (MIB + 9) + b"\n",
        "{file}, line 3, column 'b': a cell of 1.0 MiB",
    ),
    "endless name": (
        b"z" * 10 * MIB + b",b\n1,2\n",
        "{file}, line 1: a cell of the first row is longer than 1 MiB",
    ),
    "open quote": (
        b'a,b\n1,x\n2,"y\n3,z\n',
        "{file}, line 3, column 'b': a quote is never closed, "
        "so the lines after it form one cell. "
        "Close the quote, or double it if it is part of the text.",
    ),
    "open quote in front": (b'a,b\n1,x\n"2,y\n3,z\n', "{file}, line 3: a quote is never closed"),
    "long last row with a line end in a cell": (
        b'a,b\n1,2\n3,4\n"x\ny",2,extra\n',
        "{file}, line 4: 3 cells where the first line has 2 ('x y,2,extra')",
    ),
    "open quote over blocks": (
        b'a,b\n1,x\n2,"y\n' + b"3,z\n" * 500_000,
        "{file}, line 3: a quote is never closed",
    ),
    "binary": (
        b"\x01\x02\x00\x03" * 100,
        "{file}: the file is a binary file, not text; no table can be read from it. "
        "Save the table as CSV, Parquet, Arrow, Excel, JSON lines, ARFF, LIBSVM or .npz.",
    ),
    "picture": (b"\x89PNG\r\n\x1a\n\x00", "{file}: the file is a PNG image; no table can be read from it."),
    "archive": (
        None,  # made below: a ZIP archive
        "{file}: the file is a ZIP archive, but no workbook and no .npz; no table can be read from it.",
    ),
    "old feather": (b"FEA1\x00\x00", "{file}: the file is in the old Feather format (version 1); no table"),
    "json of lists": (b"[[1, 2]]", "{file}: an object was expected, not [1, 2]. Write one object per line"),
    "web page": (b"<!DOCTYPE html>\n<p>", "{file}: the file is a web page or XML; no table"),
    "cut gzip": (
        gzip.compress(bytes(range(256)) * 4)[:-20],
        "{file}: the gzip data cannot be read (Compressed file ended before the end-of-stream marker was reached). "
        "If it is damaged or cut short, write or download it again.",
    ),
    "damaged gzip": (gzip.compress(b"a,b\n")[:10] + b"\xff" * 20, "{file}: the gzip data cannot be read (Error -3"),
    "only column": (
        b"a\n1\n2\n",
        "{file}: the only column is the target 'a', so there are no features to learn from. "
        "If it should be several columns, name the delimiter; to read it alone, set target=False.",
    ),
    "parquet cut short": (
        parquet(a=[1, 2])[:-40],
        "{file}: the Parquet data cannot be read (",
    ),
    "parquet without rows": (parquet(a=pa.array([], pa.int8())), "{file}: the file has columns but no rows."),
    "parquet with lists alone": (parquet(a=[[1]]), "{file}, column 'a': the cells are of type list"),
    "parquet with infinity": (
        parquet(a=[np.inf], y=["u"]),
        "{file}, column 'a': the number in row 0 is infinite",
    ),
    "arrow cut short": (b"ARROW1\x00\x00junk", "{file}: the Arrow data cannot be read ("),
    "libsvm value": (
        b"+1 1:0.5\n-1 2:abc\n",
        "{file}, line 2: the value in '2:abc' is not a number. "
        "Each line of a LIBSVM file is a label and pairs, such as +1 3:0.5 7:1.",
    ),
    "libsvm label": (b"+1 1:0.5\nfoo 2:1\n", "{file}, line 2: the label 'foo' is not a number."),
    "libsvm infinite label": (b"+1 1:0.5\n1e999 2:1\n", "{file}, line 2, column 'label': the number is infinite (inf)"),
    "libsvm pair": (b"+1 1:0.5\n-1 2=1\n", "{file}, line 2: '2=1' is not a pair index:value."),
    "libsvm order": (
        b"+1 1:0.5\n-1 3:1 2:1\n",
        "{file}, line 2: the index in '2:1' does not increase: it follows 3",
    ),
    "libsvm index": (
        b"+1 99999999:1\n-1 1:1\n",
        "{file}, line 1: the index in '99999999:1' is above 20,000,000.",
    ),
    "libsvm infinite": (
        b"# r\n+1 1:1\n\n-1 2:inf\n",
        "{file}, line 4, column 'feature_2': the number is infinite",
    ),
    "arff number": (f"{ARFF}1,u\nx,v\n", "{file}, line 6: Invalid numerical value: 'x,v'. Fix the line."),
    "arff level": (
        f"{ARFF}1,u\n2,w\n",
        "{file}, line 6: Data value w not found in nominal declaration: '2,w'.",
    ),
    "arff ragged": (f"{ARFF}1,u\n2\n", "{file}, line 6: Bad @DATA instance format: '2'."),
    "arff cut short": ("@relation", "{file}: the ARFF data cannot be read (not enough values to unpack"),
    "arff without rows": (ARFF, "{file}: the file has attributes but no rows."),
    "arff infinite": (f"{ARFF}% r\n\ninf,u\n", "{file}, line 7, column 'a': the number is infinite (inf)"),
    "arff encoding": (
        f"{ARFF}1,u % é\n".encode("latin-1"),
        "{file}, line 5: the text is not UTF-8 (byte 0xe9",
    ),
    "npy of objects": (
        npy(np.array([[{}]])),
        "{file}: the NumPy data cannot be read (Object arrays cannot be loaded",
    ),
    "npy of one dimension": (
        npy(np.zeros(3)),
        "{file}: the array 'array' has 1 dimensions (3); a table has rows",
    ),
    "npz of objects": (
        npz(X=np.array([[{}]])),
        "{file}: the array 'X' cannot be read without running code it contains",
    ),
    "npz without features": (
        npz(foo=np.zeros(2)),
        "{file}: no features among the arrays 'foo'. Call them X and y",
    ),
    "npz of images": (
        npz(X=np.zeros((2, 3, 4))),
        "has 3 dimensions (2 × 3 × 4); a table has rows and columns.",
    ),
    "npz without cells": (npz(X=np.zeros((0, 4))), "{file}: the array 'X' has no cells."),
    "npz labels": (npz(X=np.zeros((2, 2)), y=np.zeros(3)), "the target 'y' has shape (3,) for 2 rows."),
    "npz classes": (
        npz(X=np.zeros((2, 2)), y=np.array([0, 2]), classes=np.array(["a", "b"])),
        "{file}: the target 'y' runs from 0 to 2 over 2 classes.",
    ),
    "npz sparse": (
        npz(X_data=np.ones(1), X_indices=np.array([9]), X_indptr=np.array([0, 1]), X_shape=np.array([1, 2])),
        "{file}: the parts of the sparse matrix 'X' do not fit together",
    ),
    "npz sparse without numbers": (
        npz(X_data=np.ones(0), X_indices=np.ones(0, int), X_indptr=np.array([0, 5, 0]), X_shape=np.array([2, 2])),
        "{file}: the parts of the sparse matrix 'X' do not fit together",
    ),
    "npz cut short": (npz(X=np.zeros((2, 2)))[:-10], "{file}: the NumPy data cannot be read"),
    "npz infinite label": (npz(X=np.eye(2), y=np.array([1.0, -np.inf])), "column 'y': the number in row 1 is infinite"),
    "npz infinite": (npz(X=np.array([[1.0, np.inf]])), "column 'x1': the number in row 0 is infinite (inf)"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_refused_in_one_line(write, case):
    content, words = BAD_FILES[case]
    path = write(content if content is not None else _archive())
    with pytest.raises(InputError, match=re.escape(words.format(file=path))) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500 + len(str(path))


def _archive() -> bytes:
    import zipfile

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("notes/read me.txt", "<workbook/>")
    return file.getvalue()


def test_a_missing_file_names_its_nearest_neighbour(write):
    path = write("a,b\n1,2\n", "penguins.csv")
    typed = path.with_name("pengiuns.csv")
    with pytest.raises(InputError, match=re.escape(f"{typed}: there is no such file. Did you mean '{path}'?")):
        read_table(typed)
    with pytest.raises(InputError, match=r"there is no such file\. Check the path"):
        read_table(path.parent / "nowhere" / "t.csv")


def test_a_directory_is_no_file(tmp_path):
    with pytest.raises(InputError, match=re.escape(f"{tmp_path}: is a directory; a file was expected.")):
        read_table(tmp_path)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_file_is_named(write):
    path = write("a,b\n1,2\n")
    path.chmod(0)
    with pytest.raises(InputError, match=r"cannot be read: Permission denied\. Check its permissions"):
        read_table(path)


def test_the_wrong_encoding_names_the_line(write):
    with pytest.raises(InputError, match=r"line 2: the text is not ascii: .* Name the right encoding"):
        read_table(write("a,y\né,x\n"), encoding="ascii")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"encoding": "klingon"}, "encoding is 'klingon', which Python does not support"),
        ({"delimiter": ",,"}, "delimiter is ',,'; it must be one character"),
        ({"delimiter": "é"}, "delimiter is 'é'; it must be one character"),
        ({"header": "maybe"}, "header is 'maybe'; it must be one of True, False, 'auto'"),
        ({"missing": "NA"}, r"missing is 'NA'; it must be a list of strings, such as \['NA'\]"),
    ],
)
def test_bad_options_are_refused(write, options, words):
    with pytest.raises(ParameterError, match=words):
        read_table(write("a,y\n1,x\n"), **options)


@pytest.mark.parametrize("source", [b"a,b", 3, None])
def test_a_source_of_another_type_is_refused(source):
    with pytest.raises(ParameterError, match="it must be a path, '-' or a binary file object"):
        read_table(source)


def test_the_target_of_a_libsvm_file_is_its_label(write):
    with pytest.raises(InputError, match="the target of a LIBSVM file is the label that begins each line"):
        read_table(write("+1 1:1\n-1 2:1\n"), target="feature_1")


def test_the_target_of_an_npz_is_its_array(write):
    with pytest.raises(InputError, match=r"the target of this file is its array 'y'\. Leave target out"):
        read_table(write(npz(X=np.zeros((2, 2)), y=np.zeros(2))), target="x0")
