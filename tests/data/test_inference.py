"""Numbers and dates as people write them, by column; kinds that are given; formats that a model keeps."""

from __future__ import annotations

import contextlib
import datetime
import sqlite3

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from margrove import SVC, DecisionTreeClassifier, DecisionTreeRegressor, load, save
from margrove.data import TableEncoder, read_chunks, read_table
from margrove.data.formats import DateFormat, EmptyFormat, NumberFormat
from margrove.data.inspection import is_identifier
from margrove.data.written import written_date, written_number
from margrove.errors import InputError, ParameterError, UnseenCategoryWarning


def column_of(tmp_path, cells, *, name="x", **how):
    """Return a column of a file with these cells, and what was said about it."""
    path = tmp_path / "t.csv"
    rows = [f'{row};"{cell}"' for row, cell in enumerate(cells)]
    path.write_text("\n".join([f"row;{name}", *rows]) + "\n", encoding="utf-8")
    table = read_table(path, target=False, **how)
    return table[name], " ".join(table.notes)


NUMBERS = {
    "dollars": (["$1,003.55", "$12.00", "-$5.50"], [1003.55, 12, -5.5], "$"),
    "code of a currency": (["1003.55 EUR", "7.25 EUR"], [1003.55, 7.25], "EUR"),
    "several groups": (["1,003,554", "12,000,000"], [1003554, 12e6], ""),
    "groups of India": (["12,34,567", "1,00,000"], [1234567, 100000], ""),
    "spaces": (["1 003 554", "2 000 000"], [1003554, 2e6], ""),
    "narrow spaces": (["1\u202f003,5", "2\u202f000,25"], [1003.5, 2000.25], ""),
    "apostrophes": (["1'003'554", "20'000"], [1003554, 20000], ""),
    "percent": (["12.5%", "7 %"], [12.5, 7], "%"),
    "brackets": (["(1003.55)", "20.00"], [-1003.55, 20], ""),
    "minus behind": (["1003.55-", "20.00"], [-1003.55, 20], ""),
    "true minus": (["−3.5", "2"], [-3.5, 2], ""),
    "comma": (["1.099,10", "3,50"], [1099.1, 3.5], ""),
    "area": (["85,3 m²", "101 m²"], [85.3, 101], "m²"),
    "weight": (["1003.6 kg", "7 kg"], [1003.6, 7], "kg"),
    "scales": (["1.2k", "3.4M", "70"], [1200, 3.4e6, 70], ""),
    "a unit that is a word": (["3 Punkte", "4 Punkte"], [3, 4], "Punkte"),
    "times of day": (["13:30", "9:15 pm"], [13.5, 21.25], "h"),
    "dashes": (["1,5", "-", "2,5"], [1.5, np.nan, 2.5], ""),
    "870 beside 1,204": (["1,204", "870"], [1204, 870], ""),
    "seven digits": (["8 211 164", "9 517 508", "3 947 400"], [8211164, 9517508, 3947400], ""),
    "times and a dash": (["9:15", "-", "24:00"], [9.25, np.nan, 24], "h"),
    "times with letters": (["9h30", "9 PM", "13:15 Uhr", "00:00:01,8"], [9.5, 21, 13.25, 0.0005], "h"),
    "signs of other scripts": (["\u200b12٫5", "٣٫٥", "\u200e-2"], [12.5, 3.5, -2], ""),
    "spellings of a unit": (["12 m2", "15 m²"], [12, 15], "m2"),
    "units of parts": (["642 µS/cm", "not measured", "688 μS/cm"], [642, np.nan, 688], "µS/cm"),
    "percent in front": (["%10", "%5"], [10, 5], "%"),
    "zero in accounts": ([" $-   ", "$(120.00)"], [0, -120], "$"),
    "words for scales": (["1.2 billion", "800 Tsd.", "3 lakh"], [1.2e9, 8e5, 3e5], ""),
    "halves": (["3½", "4", "½"], [3.5, 4, 0.5], ""),
    "about": (["~5", "ca. 7", "8"], [5, 7, 8], ""),
    "flags of offices": (["(D)", "5", r"\N", "non disponible", "6"], [np.nan, 5, np.nan, np.nan, 6], ""),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_as_people_write_them(tmp_path, name):
    cells, values, unit = NUMBERS[name]
    column, notes = column_of(tmp_path, cells)
    assert column.kind == "numeric"
    np.testing.assert_allclose(column.values, values, rtol=1e-12)
    assert (column.format.unit if column.format else "") == unit
    assert unit in notes


TEXTS = {
    "classes of an interval": ["<=50K", ">50K"] * 5,
    "mixed units": ["3 kg", "4 lb", "5 kg"],
    "thousands or decimals": ["1,250", "2,500", "8,125"],
    "point and comma": ["1,25", "2.50", "3,125", "4.5"],
    "ranges": ["10-20", "20-30"],
    "versions": ["1.10.2", "1.9.12"],
    "addresses": ["192.168.1.1", "10.0.0.7"],
    "telephones": ["030 12 34 56", "030 12 34 57"],
    "fractions": ["1/2", "3/4"],
    "sizes": ["12 A", "12 B"],
    "words": ["high", "low"],
    "day or month": ["03/04/2024", "05/06/2024"],
    "plus and minus": ["+", "-"],
    "letters before digits": ["EUR6", "EUR4"],
    "names of genes": ["rs98241", "rs12"],
    "telephones with a plus": ["+34 600 112 233", "+34 91 655 431"],
    "groups of one length": ["529.769.414", "104.555.010", "311.020.007"],
    "short versions": ["1.10.24", "2.11.24"],
    "year or day": ["24-03-04", "24-03-17", "23-12-31", "23-11-30"],
    "words before dates": ["from 5.5.2024", "until 6.5.2024", "from 7.5.2024"],
    "impossible day": ["29.02.2023", "01.03.2023"],
    "infinite": ["9e+308 kg", "1 kg"],
    "words behind numbers": ["20 kg bad", "20 kg bad"],
    "sections": ["3.6.", "1.2."],
    "seasons": ["2008-09", "2009-10"],
    "marks of schools": ["2+", "3-", "1", "2-"],
    "ratios": ["1:10", "1:50"],
    "days or years": ["Jan 24", "Jan 25", "Feb 26"],
    "years of another calendar": ["17/03/2567", "18/03/2567"],
}
NOTED = {"mixed units", "thousands or decimals", "point and comma", "day or month", "letters before digits"}
NOTED |= {"seasons", "marks of schools", "ratios", "days or years", "years of another calendar"}
NOTED |= {"names of genes", "groups of one length", "short versions", "year or day", "impossible day"}


@pytest.mark.parametrize("name", TEXTS)
def test_what_cannot_be_decided_stays_text(tmp_path, name):
    cells = TEXTS[name]
    column, notes = column_of(tmp_path, cells)
    assert column.kind == "category"
    assert column.cells() == cells
    if name in NOTED:
        assert "Column 'x' stays text" in notes


DATES = {
    "day first": (["17/03/2024", "03/04/2024"], ["2024-03-17", "2024-04-03"]),
    "month first": (["03/17/2024", "03/04/2024"], ["2024-03-17", "2024-03-04"]),
    "points behind all parts": (["2024.03.15.", "2023. 11. 27."], ["2024-03-15", "2023-11-27"]),
    "points": (["03.04.2024", "4.5.2024"], ["2024-04-03", "2024-05-04"]),
    "two digits": (["17.03.24", "03.04.99"], ["2024-03-17", "1999-04-03"]),
    "names": (["4 Mar 2024", "17 December 2023"], ["2024-03-04", "2023-12-17"]),
    "names of other languages": (["4. März 2024", "1er août 2023"], ["2024-03-04", "2023-08-01"]),
    "years with a letter": (["4 marca 2024 r.", "17.12.2023 г."], ["2024-03-04", "2023-12-17"]),
    "of a camera, of a log": (["2024:03:04 10:00:00", "Mon Mar  4 10:00:00 UTC 2024"], ["2024-03-04T10:00"] * 2),
    "blanks": (["2024 03 04", "2023年12月"], ["2024-03-04", "2023-12-01"]),
    "first day of a database": (["2024-03-04", "0000-00-00"], ["2024-03-04", "NaT"]),
    "years behind months": (["Mar '24", "Apr '24"], ["2024-03-01", "2024-04-01"]),
    "months": (["2020-01", "2020-12"], ["2020-01-01", "2020-12-01"]),
    "month and year": (["Jan-24", "Feb-24"], ["2024-01-01", "2024-02-01"]),
    "zones": (["2024-03-04 23:30 -0500", "2024-03-04 10:00 UTC"], ["2024-03-05T04:30", "2024-03-04T10:00"]),
    "short, with a bar": (["1/17/68", "1/6/68"], ["1968-01-17", "1968-01-06"]),
    "year first": (["99-03-04", "99-03-17", "99-12-31"], ["1999-03-04", "1999-03-17", "1999-12-31"]),
    "weekdays": (["Mo, 5.5.2025", "Di, 6.5.2025"], ["2025-05-05", "2025-05-06"]),
    "midnight": (["1.5.2025 24:00", "2.5.2025 12:00"], ["2025-05-02", "2025-05-02T12:00"]),
    "half days": (["3/17/2024 1:05 PM", "3/4/2024 12:00 AM"], ["2024-03-17T13:05", "2024-03-04T00:00"]),
}


@pytest.mark.parametrize("name", DATES)
def test_dates_as_people_write_them(tmp_path, name):
    cells, expected = DATES[name]
    column, _ = column_of(tmp_path, cells)
    assert isinstance(column.format, DateFormat)
    moments = np.array(expected, dtype="datetime64[s]")
    days = np.where(np.isnat(moments), np.nan, moments.astype(np.int64) / 86_400)
    np.testing.assert_allclose(column.values, days, atol=1e-9)


def test_eight_digits_are_a_date_where_the_name_says_so(tmp_path):
    cells = ["20200109", "20211231"]
    assert column_of(tmp_path, cells, name="order date")[0].cells() == ["2020-01-09", "2021-12-31"]
    assert column_of(tmp_path, cells, name="part")[0].cells() == [20200109, 20211231]
    days = [f"2024{month:02}{month + 10}" for month in range(1, 8)]  # or where all are days
    assert column_of(tmp_path, days, name="checked")[0].is_date
    assert not column_of(tmp_path, days, name="invoice no")[0].is_date
    assert not column_of(tmp_path, [*days, "20240231"], name="checked")[0].is_date


def test_names_say_what_digits_are(tmp_path):
    assert column_of(tmp_path, ["202401", "202412"], name="month")[0].cells() == ["2024-01-01", "2024-12-01"]
    assert column_of(tmp_path, ["20240304103000"], name="date")[0].cells() == ["2024-03-04 10:30"]
    for name, cells in (("version", ["1.9", "1.10"]), ("PLZ", ["8400", "3012"]), ("Rubrica", ["01.01", "02.05"])):
        column, notes = column_of(tmp_path, cells, name=name)
        assert column.cells() == cells
        assert "so it is a category" in notes


def test_a_date_that_stands_for_none_is_named(tmp_path):
    _, notes = column_of(tmp_path, ["2024-03-04", "9999-12-31", "2023-01-02"])
    assert "9999-12-31 is far from all other dates" in notes


def test_another_column_settles_the_order(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("made,sold\n03/04/2024,17/04/2024\n05/04/2024,18/04/2024\n")
    assert read_table(path, target=False)["made"].cells() == ["2024-04-03", "2024-04-05"]


@pytest.mark.parametrize("month", range(1, 13))
def test_every_day_is_read_back(month):
    day = datetime.date(2023, month, 28)
    for text in (f"{day:%d.%m.%Y}", f"{day:%d %b %Y}", f"{day:%B %d, %Y}", f"{day:%Y%m%d}", day.isoformat()):
        assert DateFormat("dmy").show(DateFormat("dmy").parse(text)) == day.isoformat()
    assert DateFormat("mdy").show(DateFormat("mdy").parse(f"{day:%m/%d/%y}")) == day.isoformat()


@pytest.mark.parametrize("form", [NumberFormat(), NumberFormat(",", ".", "€"), NumberFormat(".", "'", "kg")])
def test_a_number_is_read_back(form):
    for value in (0.5, 7.0, 1234.25, 1_234_567.5, -20.75):
        whole, part = f"{abs(value):,.2f}".split(".")
        text = f"{'-' * (value < 0)}{whole.replace(',', form.thousands)}{form.decimal}{part} {form.unit}"
        assert form.parse(text) == value
    assert form.parse(form.sample) == 1234.5


@pytest.mark.parametrize("cell", ["", "x", "3x4", "12/2024/3", "€", "(5", "5)", "1-2", "- -5", "0x1F", "1_000"])
def test_what_is_no_number_is_none(cell):
    written = written_number(cell)
    assert written is None or np.isnan(NumberFormat().value(written)) or written.unit


@pytest.mark.parametrize("cell", ["", "2024", "12:30", "2024-13", "32.01.2024", "31/31/2024", "Mon", "4 Foo 2024"])
def test_what_is_no_date_is_none(cell):
    written = written_date(cell)
    assert written is None or np.isnan(DateFormat("dmy").value(written))


def test_a_few_odd_cells_are_missing_and_named(tmp_path):
    column, notes = column_of(tmp_path, [f"{number},5" for number in range(30)] + ["defekt"])
    assert column.n_missing == 1
    assert "'defekt' is not a number" in notes


# --- codes, spellings, identifiers ---


def test_leading_zeros_keep_a_code(tmp_path):
    column, notes = column_of(tmp_path, ["01234", "98765", "00001"])
    assert column.cells() == ["01234", "98765", "00001"]
    assert "leading zeros" in notes
    assert column_of(tmp_path, ["01", "0", "0", "7"])[0].cells() == [1, 0, 0, 7]  # counts, of which some are padded


@pytest.mark.parametrize("cells", [["12E4", "45E2"], [" 01234", "98765"]])
def test_codes_are_no_numbers(tmp_path, cells):
    column, notes = column_of(tmp_path, cells)
    assert column.cells() == [cell.strip() for cell in cells]
    assert "kinds={'x': 'number'}" in notes
    assert column_of(tmp_path, cells, kinds={"x": "number"})[0].kind == "numeric"


def test_the_first_cell_may_be_a_code(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("zip,n\n01234,1\n,\n98765,2\n")
    assert read_table(path, target=False)["zip"].cells() == ["01234", "98765"]
    path.write_text("zip,n\n01234,1\n98765,2\n")
    assert next(iter(read_chunks(path, target=False)))["zip"].cells() == ["01234", "98765"]


def test_rounded_numbers_are_noted(tmp_path):
    cells = ["9007199254740993", "9007199254740992"]
    assert "rounded" in column_of(tmp_path, cells)[1]
    assert column_of(tmp_path, cells, kinds={"x": "category"})[0].cells() == cells
    assert "rounded" not in column_of(tmp_path, ["1.5e300", "1"])[1]


def test_what_is_not_evident_is_noted(tmp_path):
    assert "read '(5)' as -5, '8K' as 8,000." in column_of(tmp_path, ["8K", "(5)", "7"])[1]


def test_a_decimal_comma_elsewhere_decides_whole_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n0,05 €;2.000\n1,50 €;12.000\n")
    assert read_table(path, target=False)["b"].cells() == [2000, 12000]
    path.write_text("a;b\n1,250;1.10.4\n2,125;1.2.3\n")  # versions decide nothing
    assert read_table(path, target=False)["a"].kind == "category"


def test_a_dash_is_missing_also_alone(tmp_path):
    model = TableEncoder().fit(column_table(tmp_path, ["-", "1,5", "2,5"], ["a", "-", "b"]))
    table = column_table(tmp_path, ["-"], ["-"], like=model)
    assert table["x"].n_missing == table["y"].n_missing == 1


def column_table(tmp_path, first, second, **how):
    """Return the table of two columns of a file."""
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x;y", *(f"{x};{y}" for x, y in zip(first, second, strict=True))]) + "\n")
    return read_table(path, target=False, **how)


def test_new_numbers_may_have_thousands(tmp_path):
    model = TableEncoder().fit(column_table(tmp_path, ["3,50 €", "4,10 €"], ["a", "b"]))
    assert column_table(tmp_path, ["1.500,20 €"], ["a"], like=model)["x"].cells() == [1500.2]
    model = TableEncoder().fit(column_table(tmp_path, ["$3", "$4"], ["a", "b"]))
    assert column_table(tmp_path, ["$1,500"], ["a"], like=model)["x"].cells() == [1500]
    model = TableEncoder().fit(column_table(tmp_path, ["3 kg", "4 kg"], ["a", "b"]))
    with pytest.raises(InputError, match="'1,500 kg' is not a number"):  # perhaps a decimal comma
        column_table(tmp_path, ["1,500 kg"], ["a"], like=model)


def test_percent_are_no_plain_numbers(tmp_path):
    model = TableEncoder().fit(column_table(tmp_path, ["0.05", "0.1"], ["a", "b"]))
    with pytest.raises(InputError, match=r"the numbers are in %, and in training they were without a unit"):
        model.transform(column_table(tmp_path, ["5%"], ["a"], like=model))


def test_dates_of_another_order_are_no_dates_of_the_model(tmp_path):
    model = TableEncoder().fit(column_table(tmp_path, ["2024-01-02", "2024-03-04"], ["a", "b"]))
    with pytest.raises(InputError, match="'03/04/2024' is not a date"):
        column_table(tmp_path, ["03/04/2024"], ["a"], like=model)


def test_spellings_are_joined(tmp_path):
    column, notes = column_of(tmp_path, ["Berlin", "berlin ", "Berlin", "New  York", "New York"])
    assert column.levels == ("Berlin", "New York")
    assert "are joined: 'berlin' becomes 'Berlin', 'New  York' becomes 'New York'." in notes
    assert column_of(tmp_path, ["no", "No", "NO", "Y", "y"])[0].n_distinct == 2
    genes = ["AA", "Aa", "aa"] * 4
    assert column_of(tmp_path, genes)[0].cells() == genes


def test_running_numbers_are_identifiers(tmp_path):
    rows = [str(7 + row) for row in range(20)]
    assert is_identifier(column_of(tmp_path, rows, name="Invoice no")[0])
    assert not is_identifier(column_of(tmp_path, rows, name="age")[0])
    balances = [f"€{37 * row % 1000},{row:03}.10" for row in range(1, 40)]
    assert not is_identifier(column_of(tmp_path, balances, name="balance")[0])


# --- kinds that are given ---


def test_given_kinds(tmp_path):
    cells = ["12", "13"]
    assert column_of(tmp_path, cells, kinds={"x": "category"})[0].cells() == cells
    assert column_of(tmp_path, ["03/04/2024"], kinds={"x": "mdy"})[0].cells() == ["2024-03-04"]
    assert column_of(tmp_path, ["1.234"], kinds={"x": "category"})[0].cells() == ["1.234"]
    assert column_of(tmp_path, ["24-03-04"], kinds={"x": "ymd"})[0].cells() == ["2024-03-04"]
    path = tmp_path / "t.csv"
    assert read_table(path, target=False, kinds={"row": "ignore"}).names == ("x",)


def test_faults_of_given_kinds(tmp_path):
    with pytest.raises(InputError, match=r"line 3, column 'x': the cell 'seven' is not a number"):
        column_of(tmp_path, ["1,5", "seven"], kinds={"x": "number"})
    with pytest.raises(InputError, match=r"the cell '03/04/2024' is not a date"):
        column_of(tmp_path, ["03/04/2024"], kinds={"x": "ymd"})
    with pytest.raises(InputError, match=r"'03/04/2024' the day or the month may stand first.*'dmy'} or 'mdy'"):
        column_of(tmp_path, ["03/04/2024"], kinds={"x": "date"})
    with pytest.raises(InputError, match=r"there is no column 'y', whose kind is given"):
        column_of(tmp_path, ["1"], kinds={"y": "number"})
    with pytest.raises(ParameterError, match=r"it must be one of 'category', 'number', 'decimal_point'"):
        column_of(tmp_path, ["1"], kinds={"x": "numeric"})


# --- models keep the formats ---


def written(path, header, rows):
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def trained(tmp_path):
    """Return models of a table of prices in euros with a decimal comma, dates with the day first, and codes."""
    rows = [f'"{row}.250,50 €";{row:02}/01/2024;0{row % 4}12;{"yes" if row > 10 else "no"}' for row in range(1, 21)]
    table = read_table(written(tmp_path / "train.csv", "price;day;zip;y", rows))
    tree = DecisionTreeClassifier(min_samples_leaf=2).fit(table, table.labels())
    return {"tree": tree, "svc": make_pipeline(TableEncoder(), SVC(C=100)).fit(table, table.labels())}


@pytest.mark.parametrize("name", ["tree", "svc"])
def test_new_rows_are_read_as_in_training(tmp_path, trained, name):
    save(trained[name], tmp_path / "m.margrove")
    model = load(tmp_path / "m.margrove")
    # Alone, 18.250 is a fraction, 03/02/2024 has no order, and 0212 becomes a number beside 212.
    new = written(tmp_path / "new.csv", "price;day;zip", ["18.250;03/02/2024;0212", "2.250;04/01/2024;0012"])
    table = read_table(new, target=False, like=model)
    assert table["price"].values.tolist() == [18250, 2250]
    assert table["day"].cells() == ["2024-02-03", "2024-01-04"]
    assert table["zip"].cells() == ["0212", "0012"]
    assert model.predict(table).tolist() == ["yes", "no"]
    frame = pd.DataFrame(
        {"price": ["18.250,00 €", "2.250"], "day": ["03/02/2024", "04/01/2024"], "zip": ["0212", "0012"]}
    )
    assert model.predict(frame).tolist() == ["yes", "no"]


@pytest.mark.parametrize("name", ["tree", "svc"])
def test_another_unit_is_refused(tmp_path, trained, name):
    new = written(tmp_path / "new.csv", "price;day;zip", ["$18.25;03/02/2024;0212"])
    with pytest.raises(InputError, match=r"column 'price'.*in training"):
        trained[name].predict(read_table(new, target=False, kinds={"day": "dmy"}))
    with pytest.raises(InputError, match=r"'price': the cell '\$18.25' is not a number in the format.*1.234,5 €"):
        read_table(new, target=False, like=trained[name])


def test_spellings_of_training(tmp_path):
    rows = [f"{'Berlin' if row % 2 else 'Rome'},{row % 2}" for row in range(20)]
    table = read_table(written(tmp_path / "t.csv", "town,y", rows))
    tree = DecisionTreeClassifier().fit(table, table.labels())
    new = written(tmp_path / "new.csv", "town,size", ["BERLIN,1", "rome,2"])
    found = read_table(new, target=False, like=tree).select(["town"])
    assert tree.predict(found).tolist() == [1, 0]
    assert "'BERLIN' as 'Berlin'" in found.notes[-1]
    with pytest.warns(UnseenCategoryWarning):
        tree.predict(pd.DataFrame({"town": ["BERLIN"]}))


@pytest.mark.parametrize("learner", [DecisionTreeClassifier(), make_pipeline(TableEncoder(drop_constant=False), SVC())])
def test_a_column_that_was_empty_accepts_anything(tmp_path, learner):
    frame = pd.DataFrame({"a": range(20), "b": [np.nan] * 20})
    model = learner.fit(frame, np.arange(20) > 9)
    save(model, tmp_path / "m.margrove")
    for cell in ("Y", 7.0, None, True):
        new = pd.DataFrame({"a": [3, 15], "b": [cell, None]}, dtype=object)
        assert load(tmp_path / "m.margrove").predict(new).tolist() == [False, True]
    columns = learner.nodes_.columns if hasattr(learner, "nodes_") else ()
    assert all(isinstance(column.format, EmptyFormat) for column in columns if column.name == "b")


def test_a_price_is_a_target(tmp_path):
    rows = [f'{size},"€{size * 4:,}",x' for size in range(40, 200)]
    table = read_table(written(tmp_path / "t.csv", "size,price,z", rows), target="price")
    assert table.target.format == NumberFormat(thousands=",", unit="€") or table.target.format.unit == "€"
    tree = DecisionTreeRegressor(max_depth=8).fit(table.select(["size"]), table.target.values)
    assert tree.predict(table.select(["size"])).max() == pytest.approx(796, abs=8)


# --- chunks ---


def test_chunks_are_read_as_the_table_is(tmp_path):
    rows = [
        f'"{1 + row % 9}.{row % 1000:03},50 €";{1 + row % 28:02}.02.2024;00{row % 7};{row % 2}' for row in range(500)
    ]
    path = written(tmp_path / "t.csv", "price;day;code;y", rows)
    whole, parts = read_table(path), list(read_chunks(path, rows=64))
    for column in whole:
        cells = [cell for part in parts for cell in part[column.name].cells()]
        assert cells == column.cells()
    assert parts[0]["price"].format == whole["price"].format == NumberFormat(",", ".", "€")


def test_chunks_refuse_what_the_first_rows_do_not_hold(tmp_path):
    rows = [f'{"a" * 4000};"{row % 9}.500,25 €";{row % 2}' for row in range(1, 1200)]
    path = written(tmp_path / "t.csv", "filler;price;y", [*rows, *["b;dear;1"] * 300])
    with pytest.raises(InputError, match=r"column 'price': the cell 'dear' is not a number in the format"):
        list(read_chunks(path, rows=50))


def test_a_table_prints_its_rows(tmp_path):
    table = read_table(written(tmp_path / "t.csv", "size,day,y", ["1.5,2024-03-04,a", ",2024-03-05,b"]))
    assert str(table.head(1)).splitlines()[1:] == ["size  day         y", "1.5   2024-03-04  a"]


def test_three_digits_of_money_are_no_decimals(tmp_path):
    path = written(tmp_path / "t.csv", "area;price", ["85,3 m²;€429,049", "101,5 m²;€98,100"])
    assert read_table(path, target=False)["price"].cells() == [429049, 98100]
    assert column_of(tmp_path, ["1,759 €", "1,829 €"])[0].kind == "category"  # of a litre, or not


@pytest.mark.parametrize(
    ("trained", "new", "value"),
    [
        (["85,3 m²", "101,5 m²"], ["105.9", "98.125"], 98.125),
        (["1,234.5", "2.5"], ["1.234,5", "98,25"], 98.25),
        (["2024-03-04", "2024-05-17"], ["17/03/2024", "04/03/2024"], "2024-03-04"),
        (["17/03/2024", "04/03/2024"], ["2024-03-17", "2024-03-04"], "2024-03-04"),
    ],
)
def test_new_cells_in_another_plain_format_are_read(tmp_path, trained, new, value):
    model = TableEncoder().fit(column_table(tmp_path, trained, ["a", "b"]))
    table = column_table(tmp_path, new, ["a", "b"], like=model)
    assert table["x"].cells()[1] == value
    model.transform(table)


@pytest.mark.parametrize("form", ["json", "xlsx", "db"])
def test_typed_numbers_are_no_thousands(tmp_path, form):
    model = TableEncoder().fit(column_table(tmp_path, ["85,3 m²", "101,5 m²"], ["a", "b"]))
    frame, path = pd.DataFrame({"x": [100.125, 98.375], "y": ["a", "b"]}), tmp_path / f"new.{form}"
    if form == "json":
        frame.to_json(path, orient="records", lines=True)
    elif form == "xlsx":
        frame.to_excel(path, index=False)
    else:
        with contextlib.closing(sqlite3.connect(path)) as database:
            frame.to_sql("t", database, index=False)
    assert read_table(path, target=False, like=model)["x"].cells() == [100.125, 98.375]


def test_words_among_numbers_are_named(tmp_path):
    numbers = [f"${number:,}.50" for number in range(1000, 1040)]
    column, notes = column_of(tmp_path, [*numbers, *["on request"] * 4])
    assert column.kind == "category"
    assert "stays text: 4 of 44 cells are no numbers or dates, such as 'on request'. If they mark missing" in notes
    assert column_of(tmp_path, [*numbers, *["on request"] * 4], missing=["", "on request"])[0].n_missing == 4
    column, notes = column_of(tmp_path, [*numbers, *["k.A.", "unknown"] * 4])
    assert column.n_missing == 8
    assert "'k.A.', 'unknown' are not numbers and are read as missing" in notes


@pytest.mark.parametrize(("cells", "expected"), [(['=""01""', '=""02""'], ["01", "02"]), (["'7'", "'8'"], [7, 8])])
def test_signs_for_spreadsheets_are_no_text(tmp_path, cells, expected):
    assert column_of(tmp_path, cells)[0].cells() == expected


def test_brackets_and_minus_behind_a_currency(tmp_path):
    column, notes = column_of(tmp_path, ["$(7.00)", "$-5.00", "6.10-"])
    assert column.cells() == [-7, -5, -6.1]
    assert "read '$(7.00)' as -7, '6.10-' as -6.1" in notes


def test_what_stays_text_is_named(tmp_path):
    for cells in (["10-20", "20-30", "5-10"], ["1h 30min", "45min", "2h 05min"], ["48°12'30\"N", "52°31'12\"N", "1°N"]):
        column, notes = column_of(tmp_path, cells)
        assert column.kind == "category"
        assert f"Column 'x' stays text: cells such as {min(cells)!r}" in notes
    assert "stays text" not in column_of(tmp_path, ["A 12", "B 13", "C 14"])[1]


@pytest.mark.parametrize(
    ("cells", "values", "note"),
    [
        (["1,234*", "2,345", "3,456†", "987"], [1234, 2345, 3456, 987], "read '1,234*' as 1,234"),
        (["6.1", "6.2 b", "5.3", "12.6e", ":"], [6.1, 6.2, 5.3, 12.6, None], "read '12.6e' as 12.6, '6.2 b' as 6.2"),
        (["12", ".", "14", "..", "/", "17"], [12, None, 14, None, None, 17], ""),
        (["1.234", "12.500", "870"], [1234, 12500, 870], "points separate thousands"),
        (["21.5", "-999", "22.0", "21.75"], [21.5, -999, 22, 21.75], "-999 is far from all other numbers"),
    ],
)
def test_signs_of_statistics_are_read_or_named(tmp_path, cells, values, note):
    column, notes = column_of(tmp_path, cells)
    assert column.cells() == values
    assert note in notes


def test_no_answer_is_missing_among_words(tmp_path):
    column, notes = column_of(tmp_path, ["yes", "k. A.", "maybe", "yes"])
    assert column.cells() == ["yes", None, "maybe", "yes"]
    assert "'k. A.' is read as missing" in notes


@pytest.mark.parametrize("cell", ["3. ledna 2024", "2024. január 3.", "3 Ocak 2024", "3 января 2024", "2024년 1월 3일"])
def test_months_of_many_languages(tmp_path, cell):
    assert column_of(tmp_path, [cell, cell.replace("3", "4")])[0].cells() == ["2024-01-03", "2024-01-04"]


def test_a_column_called_a_date_that_holds_numbers_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("date,x\n45296,1\n45297,2\n")
    assert "Column 'date' holds numbers such as 45296, which are not read as dates." in read_table(path).notes
