"""Dates are shown as dates, kept in models, and give their month, weekday and hour."""

from __future__ import annotations

import datetime
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline

from margrove import DecisionTreeClassifier, LinearSVC, TableEncoder, load, save
from margrove.data import Column, Table, as_table, read_table
from margrove.data.dates import MOST_DAYS, date_part
from margrove.data.formats import DateFormat, EmptyFormat, NumberFormat, format_from_json, format_to_json
from margrove.errors import InputError, MissingExtraError
from margrove.tree.words import amount_text

N = 400


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    day = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 900, N), unit="D")
    login = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 30 * 86_400, N), unit="s")
    cells = {"day": day, "login": login, "size": rng.normal(size=N), "number": pd.Categorical(rng.integers(0, 3, N))}
    found = pd.DataFrame({**cells, "ripe": pd.array(rng.random(N) > 0.5), "kind": rng.choice(["a", "b"], N)})
    found.loc[3, ["day", "login", "size", "number", "ripe"]] = None
    return found


def assert_same(one: Table, other: Table) -> None:
    assert one.names == other.names
    for a, b in zip([*one, one.target], [*other, other.target], strict=True):
        assert (a.name, a.kind, a.levels, a.format) == (b.name, b.kind, b.levels, b.format)
        np.testing.assert_array_equal(a.values, b.values)


def test_a_table_comes_back_from_pandas(frame):
    table = as_table(frame, target="kind")
    again = table.to_pandas()
    assert [str(kind) for kind in again.dtypes][:5] == ["datetime64[us]"] * 2 + ["float64", "category", "boolean"]
    assert_same(as_table(again, target="kind"), table)


def test_a_table_comes_back_from_polars_but_for_categories_of_numbers(frame):
    table = as_table(frame.drop(columns="number"), target="kind")
    assert_same(as_table(table.to_polars(), target="kind"), table)
    assert as_table(as_table(frame).to_polars())["number"].kind == "numeric"


def test_blocks_and_sparse_tables_become_frames():
    block = as_table(np.array([[1.0, np.nan]], dtype=np.float32))
    assert block.to_pandas().dtypes.astype(str).tolist() == ["float32"] * 2
    assert block.to_polars()["x1"].null_count() == 1
    assert as_table(read_table(io.BytesIO(b"1 2:3\n0 1:1\n")).to_pandas(), target="label").block.shape == (2, 2)


def test_a_frame_that_cannot_be_is_refused(monkeypatch):
    column = Column("day", "numeric", np.array([0.0, 10 * MOST_DAYS]), format=DateFormat())
    with pytest.raises(InputError, match="1e\\+09 days since 1970-01-01, in row 1"):
        Table([column]).to_pandas()
    with pytest.raises(InputError, match="'day' occurs 2 times"):
        Table([column], target=column).to_pandas()
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(MissingExtraError, match="pip install polars"):
        Table([column]).to_polars()


def test_short_texts(frame):
    table = as_table(frame, target="kind")
    assert repr(table.head(2)) == "Table(2 × 5 from 'pandas table', target='kind': day, login, size, number and 1 more)"
    assert repr(table["ripe"]) == "Column('ripe', boolean, 400 rows, 1 missing: False, True)"
    many = Column("id", "category", np.arange(5000, dtype=np.int32), tuple(f"{k:05}" for k in range(5000)))
    assert repr(many) == "Column('id', category, 5,000 rows: 00000, 00001, 00002, …)"
    assert repr(Column("x", "numeric", np.array([np.nan]))) == "Column('x', numeric, 1 rows, 1 missing)"
    price = Column("price", "numeric", np.array([1.5, 2345.0]), format=NumberFormat(unit="€"))
    assert repr(price).endswith("1.5 € … 2,345 €)")


def test_dates_keep_their_format_through_a_table(frame, tmp_path):
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    tables = [as_table(frame), read_table(tmp_path / "t.parquet"), read_table(tmp_path / "t.csv")]
    for table in (*tables, tables[0].take(np.arange(9)), tables[0].select(["login", "day"])):
        assert (table["day"].format, table["login"].format) == (DateFormat(), DateFormat(has_time=True))
    assert tables[0]["day"].summary()["example"] == "2022-01-03 … 2024-06-16"
    assert tables[0].head(1)["day"].cells() == [f"{frame['day'][0]:%Y-%m-%d}"]
    days = [datetime.date(2024, 1, 1), None]
    for table in (pa.table({"d": days}), pd.DataFrame({"d": days}), np.array([["2024-01-01"]], "datetime64[D]")):
        assert as_table(table).columns[0].format == DateFormat()
    assert as_table(pa.table({"t": [datetime.time(12)]}))["t"].format == NumberFormat(unit="h")


def test_dates_are_shown_within_the_calendar():
    times = DateFormat(has_time=True)
    assert [DateFormat().show(value) for value in (19724.9, -719162, -719163)] == [
        "2024-01-02",
        "0001-01-01",
        "-719163 days",
    ]
    assert [times.show(19724 + s / 86_400) for s in (0, 60, 61.5)] == [
        f"2024-01-02 00:0{s}" for s in ("0", "1", "1:01")
    ]


@pytest.mark.parametrize(
    ("unit", "shown"), [("$", "-$1,234.5"), ("€", "-1,234.5 €"), ("%", "-1,234.5 %"), ("", "-1,234.5")]
)
def test_numbers_have_their_unit_where_english_puts_it(unit, shown):
    form = NumberFormat(unit=unit)
    assert form.show(-1234.5) == shown
    assert amount_text(-1234.0, form, digits=4) == shown.replace(".5", "")
    assert NumberFormat(thousands=",", unit=unit).parse(form.show(1234.5)) == 1234.5


@pytest.mark.parametrize(
    "form", [None, DateFormat("dmy", True), NumberFormat(",", ".", "€"), NumberFormat(), EmptyFormat()]
)
def test_formats_come_back_from_json(form):
    assert format_from_json(format_to_json(form)) == form


NO_FORMATS = [1, {}, {"kind": []}, {"kind": "date", "unit": "€"}, {"kind": "date", "has_time": 1}]
NO_FORMATS += [{"kind": "date", "order": "xyz"}, {"kind": "number", "unit": "\x1b[1m"}, {"kind": "empty", "unit": ""}]
NO_FORMATS += [{"kind": "number", "decimal": "x"}, {"kind": "number", "thousands": "_"}]
NO_FORMATS += [{"kind": "number", "decimal": ",", "thousands": ","}]


@pytest.mark.parametrize("record", NO_FORMATS)
def test_what_is_no_format_is_refused(record):
    with pytest.raises(ValueError, match="is not the format"):
        format_from_json(record)


def test_parts_are_those_of_pandas(frame):
    table = as_table(frame).with_date_parts()
    assert table.names[6:] == ("day month", "day weekday", "login weekday", "login hour")
    assert table.notes[-1] == "Added from 'login': 'login weekday', 'login hour'."
    assert table.with_date_parts() is table
    months, weekdays, hours = frame["day"].dt.month_name(), frame["day"].dt.day_name(), frame["login"].dt.hour
    assert table["day month"].cells() == [None if row == 3 else name for row, name in enumerate(months)]
    assert table["day weekday"].cells() == [None if row == 3 else name for row, name in enumerate(weekdays)]
    np.testing.assert_array_equal(table["login hour"].values, hours)
    far = Column("day", "numeric", np.array([-1 / 24, -1.0, 2 * MOST_DAYS]), format=DateFormat())
    np.testing.assert_array_equal(date_part(far, "hour").values, [23, 0, np.nan])
    assert date_part(far, "weekday").cells() == ["Wednesday", "Wednesday", None]


def test_parts_that_do_not_repeat_are_left_out():
    def names(days, **options):
        return (
            Table([Column("d", "numeric", np.asarray(days, float), format=DateFormat())], **options)
            .with_date_parts()
            .names[1:]
        )

    assert names([]) == names([np.nan]) == names([5.0]) == names(np.arange(8)) == ()
    assert names(np.arange(9)) == names(np.arange(367)) == ("d weekday",)
    assert names(np.arange(0, 700, 7)) == ("d month",)
    assert names(np.arange(368)) == ("d month", "d weekday")
    assert names(np.linspace(0, 2, 9)) == ("d hour",)
    assert names(np.arange(9), target=Column("d weekday", "boolean", np.zeros(9, np.int8))) == ()


@pytest.mark.parametrize("learner", [DecisionTreeClassifier(max_depth=4), make_pipeline(TableEncoder(), LinearSVC())])
def test_a_model_derives_the_parts_of_a_plain_table(frame, learner, tmp_path):
    frame = frame.drop(index=3)
    table = as_table(frame.drop(columns="kind")).with_date_parts()
    y = np.where(frame["day"].dt.day_name().isin(["Saturday", "Sunday"]), "closed", "open")
    model = learner.fit(table, y)
    save(model, tmp_path / "m.margrove")
    model = load(tmp_path / "m.margrove")
    plain = frame[["login", "size", "number", "ripe", "day"]]
    assert (model.predict(plain) == y).mean() == 1
    np.testing.assert_array_equal(model.predict(table), model.predict(plain))
    with pytest.raises(InputError, match="are missing: 'day', 'day month', 'day weekday'"):
        model.predict(plain.drop(columns="day"))


def test_a_date_that_gives_only_its_parts_is_no_extra_column(frame):
    table = as_table(frame[["day", "size"]]).with_date_parts().without("day")
    tree = DecisionTreeClassifier(max_depth=2).fit(table, frame["kind"])
    np.testing.assert_array_equal(tree.predict(frame[["size", "day"]]), tree.predict(table))  # warnings are errors


def test_a_renamed_part_is_no_part(frame):
    part = as_table(frame).with_date_parts()["day month"]
    assert part.renamed("day month").date_part == ("day", "month")
    assert part.renamed("m").date_part == ()
