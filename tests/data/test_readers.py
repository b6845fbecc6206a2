"""Every format is told by its content and read by the library made for it."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file

from margrove.advice import Setting
from margrove.data import Table, load_penguins, read_table
from margrove.data.readers import DEFAULT_MISSING
from margrove.errors import InputError

CSV = "size,colour,ripe\n1.5,red,yes\n0.5,,no\n2,blue,yes\n"


def check_fruit(table: Table) -> None:
    assert table.names == ("size", "colour")
    assert table["size"].values.tolist() == [1.5, 0.5, 2.0]
    assert table["colour"].levels == ("blue", "red")
    assert table["colour"].values.tolist() == [1, -1, 0]
    assert table.labels().tolist() == ["yes", "no", "yes"]


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("name", ["t.csv", "t", "t.parquet"])
def test_csv_is_read_whatever_its_compression_and_name(write, compress, name):
    check_fruit(read_table(write(compress(CSV.encode()), name)))


@pytest.mark.parametrize(
    "text",
    [
        CSV.replace(",", "\t"),
        CSV.replace(",", ";"),
        CSV.replace(",", "|"),
        CSV.replace("\n", "\r\n"),
        CSV.replace("\n", "\r"),
        CSV.replace("\n", "\n\n"),
        "\n" + CSV,
        CSV.rstrip(),
        CSV.replace(",", ", "),
        CSV.replace(",,", ", ?, "),
        CSV.replace("red", '"red"'),
        CSV.replace("size", '"size"'),
        CSV.replace("size,colour,ripe", " size , colour , ripe "),
    ],
)
def test_dialects_of_the_same_table_are_the_same_table(write, text):
    check_fruit(read_table(write(text)))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_marks_determine_the_encoding(write, encoding):
    table = read_table(write("größe,y\nmaß,a\nfuß,b\n".encode(encoding)))
    assert table.names == ("größe",)
    assert table["größe"].levels == ("fuß", "maß")


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16-le", "utf-8"])
def test_the_encoding_may_be_named(write, encoding):
    table = read_table(write("café,y\nthé,a\neau,b\n".encode(encoding)), encoding=encoding)
    assert table["café"].levels == ("eau", "thé")


def test_the_advised_encoding_reads_what_windows_writes(write):
    path = write("price;y\n1.099,10 €;a\n12,50 €;ö\n".encode("cp1252"))
    with pytest.raises(InputError) as caught:
        read_table(path, encoding="utf-8")
    setting = next(part for part in caught.value.cure.parts if isinstance(part, Setting))
    assert read_table(path, encoding=setting.value)["price"].values.tolist() == [1099.1, 12.5]


def test_streams_and_standard_input_are_read(monkeypatch):
    check_fruit(read_table(io.BytesIO(CSV.encode())))
    check_fruit(read_table(io.StringIO(CSV)))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CSV.encode())))
    table = read_table("-")
    check_fruit(table)
    assert table.source == "standard input"


def test_all_missing_markers_are_missing_and_may_be_replaced(write):
    rows = "".join(f"{marker},{marker},x\n" for marker in DEFAULT_MISSING if marker)
    path = write(f"n,t,y\n1,a,x\n{rows}")
    table = read_table(path)
    assert table["n"].kind == "numeric"
    assert table["n"].n_missing == table["t"].n_missing == len(DEFAULT_MISSING) - 1
    table = read_table(write("n,t,y\n1,NA,x\n-9,b,x\n"), missing=["-9"])
    assert table["n"].n_missing == 1
    assert table["t"].levels == ("NA", "b")


def test_kinds_are_inferred(write):
    table = read_table(write("i,f,b,d,t,s,y\n1,1e3,True,1970-01-02,06:00,x,0\n2,-.5,false,1970-01-03,12:00,y,1\n"))
    assert [column.kind for column in table] == [
        "numeric",
        "numeric",
        "boolean",
        "numeric",
        "numeric",
        "category",
    ]
    assert table["d"].values.tolist() == [1.0, 2.0]
    assert table["t"].values.tolist() == [6, 12]
    assert "Column 'd' holds dates." in table.notes


def test_zeros_and_ones_are_numbers_and_not_truth(write):
    assert read_table(write("a,b,y\n0,true,x\n1,0,y\n"))["a"].kind == "numeric"
    assert read_table(write("a,b,y\n0,true,x\n1,0,y\n"))["b"].kind == "category"


def test_a_column_may_change_its_kind_after_the_first_block(write):
    table = read_table(write("a,y\n" + "1,x\n" * 400_000 + "word,z\n"))
    assert table["a"].levels == ("1", "word")
    assert table.n_rows == 400_001


@pytest.mark.parametrize("cell", ['"a\nb"', '"a,b"', '"say ""hi"""'])
def test_quoted_cells_are_whole_even_across_blocks(write, cell):
    n = 150_000  # some megabytes, and a block is one
    table = read_table(write("k,c,y\n" + "".join(f"{i},{cell},{i % 2}\n" for i in range(n))))
    assert table.n_rows == n
    assert table["c"].levels == (cell[1:-1].replace('""', '"'),)


def test_rows_wider_than_a_block_are_read(write):
    cells = ",".join(["1.25"] * 30_000)
    wide = ",".join(f"column_with_a_long_name_number_{j}" for j in range(30_000))
    table = read_table(write(f"{wide}\n{cells}\n{cells}\n"), target=False)
    assert table.shape == (2, 30_000)


def test_a_decimal_comma_is_understood(write):
    table = read_table(write("a;b;y\n1,5;2;x\n-0,25;3;y\n"))
    assert table["a"].values.tolist() == [1.5, -0.25]
    assert "Numbers are written with a decimal comma." in table.notes


def test_a_row_number_without_a_name_is_left_out(write):
    pandas_file = io.BytesIO()
    pd.DataFrame({"a": [5.0, 6.0], "y": ["u", "v"]}).to_csv(pandas_file)
    table = read_table(write(pandas_file.getvalue()))
    assert table.names == ("a",)
    assert "only numbers the rows" in table.notes[1]
    assert read_table(write('"a" "y"\n"1" 5 "u"\n"2" 6 "v"\n', "r.txt")).names == ("a",)
    assert read_table(write(",a,y\nq,1,u\nr,2,v\n")).names == ("column_1", "a")


def test_an_empty_last_column_without_a_name_is_left_out(write):
    table = read_table(write("a,y,\n1,u,\n2,v,\n"))
    assert table.target.name == "y"


def test_columns_set_with_runs_of_spaces_are_read(write):
    table = read_table(write("  a    b  y\n 1.5   2  u \n 10  -3  v\n", "t.dat"))
    assert table.names == ("a", "b")
    assert table["b"].values.tolist() == [2.0, -3.0]


def test_arrow_formats_are_read(tmp_path):
    table = pa.table({"size": [1.5, 0.5, 2.0], "colour": ["red", None, "blue"], "ripe": ["yes", "no", "yes"]})
    pa.parquet.write_table(table, tmp_path / "parquet")
    pa.feather.write_feather(table, tmp_path / "feather")
    with pa.ipc.new_file(str(tmp_path / "arrow"), table.schema) as sink:
        sink.write_table(table)
    with pa.ipc.new_stream(str(tmp_path / "stream"), table.schema) as sink:
        sink.write_table(table)
    for name in ("parquet", "feather", "arrow", "stream"):
        check_fruit(read_table(tmp_path / name))


def test_float32_of_parquet_stays_float32(tmp_path):
    frame = pd.DataFrame({"a": np.ones(2, np.float32), "b": np.zeros(2, np.float32), "y": ["u", "v"]}, index=[7, 9])
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table.names == ("a", "b")  # and not the index
    assert table["a"].values.dtype == np.float32


ARFF = """% a remark
@RELATION fruit
@ATTRIBUTE size NUMERIC
@ATTRIBUTE 'the colour' {red, blue, green}
@ATTRIBUTE note STRING
@ATTRIBUTE ripe {yes, no}
@DATA
1.5, red, 'x y', yes
?, blue, ?, no
"""


def test_arff_keeps_declared_levels(write):
    table = read_table(write(ARFF, "t.arff"))
    assert table["the colour"].levels == ("blue", "green", "red")
    assert table["the colour"].values.tolist() == [2, 0]
    np.testing.assert_array_equal(table["size"].values, [1.5, np.nan])
    assert table["note"].levels == ("x y",)
    assert table.labels().tolist() == ["yes", "no"]


def test_sparse_rows_of_arff_are_read(write):
    head = "@relation t\n@attribute a numeric\n@attribute b numeric\n"
    table = read_table(write(f"{head}@attribute y numeric\n@data\n{{0 1.5, 2 1}}\n{{1 ?}}\n"))
    np.testing.assert_array_equal(np.column_stack([column.values for column in table]), [[1.5, 0], [0, np.nan]])
    table = read_table(write(f"{head}@attribute y {{no, yes}}\n@data\n{{0 1.5, 2 yes}}\n{{1 2}}\n"))
    assert table.labels().tolist() == ["yes", "no"]
    assert table["b"].values.tolist() == [0.0, 2.0]


@pytest.mark.parametrize("zero_based", [True, False])
def test_libsvm_files_come_back_as_they_were_written(tmp_path, zero_based):
    X = scipy.sparse.random(20, 7, 0.5, format="csr", random_state=3)
    y = np.where(np.arange(20) % 3, 1, -1)
    dump_svmlight_file(X, y, str(tmp_path / "t.svm"), zero_based=zero_based)
    table = read_table(tmp_path / "t.svm")
    assert table.names == tuple(f"feature_{j}" for j in range(1 - zero_based, 8 - zero_based))
    np.testing.assert_allclose(table.sparse.toarray(), X.toarray())
    assert table.labels().tolist() == y.tolist()
    assert read_table(tmp_path / "t.svm", target=False).target is None


def test_libsvm_is_recognised_by_its_content(write):
    for text in ("+1 3:0.5 7:1\n-1 1:2\n", "# remark\n0 2:1 # remark\n1\n", "1.5e0 qid:1 1:1\n2 qid:1 2:1\n"):
        assert read_table(write(text, "t.txt")).sparse is not None


def test_npz_pairs_are_read(tmp_path):
    X, y = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([1, 0, 1], dtype=np.uint8)
    for names in (("X", "y"), ("X_train", "y_train"), ("data", "target")):
        np.savez(tmp_path / "t.npz", **dict(zip(names, (X, y), strict=True)))
        table = read_table(tmp_path / "t.npz")
        assert table.block.dtype == np.float32
        assert table.block.tolist() == X.tolist()
        assert table.labels().tolist() == [1, 0, 1]
        assert table.target.name == names[1]
        assert read_table(tmp_path / "t.npz", target=False).target is None


def test_npz_classes_and_feature_names_are_used(tmp_path):
    np.savez(
        tmp_path / "t.npz",
        X_train=np.zeros((2, 2)),
        y_train=np.array([0, 1]),
        X_test=np.zeros((1, 2)),
        classes=np.array(["zebra", "ape"]),
        feature_names=np.array(["a", "b"]),
    )
    table = read_table(tmp_path / "t.npz")
    assert table.names == ("a", "b")
    assert table.labels().tolist() == ["zebra", "ape"]
    assert table.target.levels == ("ape", "zebra")
    assert table.notes[-1] == "The test part of the file is not read."


@pytest.mark.parametrize("y", [np.array(["u", "v"]), np.array([True, False]), np.array([[1], [2]])])
def test_npz_labels_may_be_of_any_kind(tmp_path, y):
    np.savez_compressed(tmp_path / "t.npz", X=np.zeros((2, 2)), y=y)
    assert read_table(tmp_path / "t.npz").labels().tolist() == y.ravel().tolist()


def test_npz_csr_parts_are_put_together(tmp_path):
    matrix = scipy.sparse.random(5, 4, 0.5, format="csr", random_state=0, dtype=np.float32)
    parts = {part: getattr(matrix, part) for part in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "t.npz", y_train=np.arange(5), **{f"X_train_{name}": part for name, part in parts.items()})
    table = read_table(tmp_path / "t.npz")
    assert table.sparse.dtype == np.float32
    assert (table.sparse != matrix).nnz == 0


def test_npy_takes_its_last_column_as_target(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[0.5, 1], [1.5, 0]]))
    table = read_table(tmp_path / "t.npy")
    assert table.names == ("x0",)
    assert table.labels().tolist() == [1, 0]


def test_penguins_are_at_hand():
    table = load_penguins()
    assert table.shape == (344, 7)
    assert sorted(set(table.labels())) == ["Adelie", "Chinstrap", "Gentoo"]
    assert table["sex"].n_missing == 11
    assert table.source == "Palmer penguins"
