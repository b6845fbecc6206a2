"""Delimited text as offices export it: titles, footers, sums, blank and short lines, encodings."""

from __future__ import annotations

import pytest

from margrove.data import read_chunks, read_table
from margrove.data.formats import DateFormat
from margrove.errors import InputError, ParameterError

ROWS = "a,b,c\n1,x,2\n3,y,4\n5,x,7\n"
CELLS = [[1, 3, 5], ["x", "y", "x"], [2, 4, 7]]

# Each is read as ROWS, with this note.
UNTIDY = {
    "titles": (f"Sales of 2024\nby Ann\n\n{ROWS}", "3 lines above the column names are left out: 1 to 3."),
    "padded titles": (f"Sales of 2024,,\n,,\n{ROWS}", "2 lines above the column names are left out: 1 to 2."),
    "sep": ("sep=;\n" + ROWS.replace(",", ";"), "1 line above the column names is left out: 1."),
    "comments": (f"# one, two\n# by x\n{ROWS}", "2 lines above the column names are left out: 1 to 2."),
    "blank rows": ("a,b,c\n1,x,2\n,,\n3,y,4\n\n5,x,7\n,,\n", "2 lines without cells are left out: 3, 7."),
    "blank columns": ("a,,b,c,\n1,,x,2,\n3,,y,4,\n5,,x,7,\n", "An unnamed column that is empty"),
    "names again": ("a,b,c\n1,x,2\n3,y,4\na,b,c\n5,x,7\n", "1 line with the column names again is left out: 4."),
    "footer": (f"{ROWS}\nSource: the office\n", "1 line below the rows is left out: 6."),
    "number of rows": (f"{ROWS}(3 rows)\n", "1 line below the rows is left out: 5."),
    "total": (f"{ROWS}Total,,13\n", "1 line with totals, such as 'Total', is left out: 5."),
    "total without a name": (f"{ROWS},,13\n", "1 line with totals, such as '13', is left out: 5."),
    "subtotals": (
        "a,b,c\n1,x,2\n3,y,4\nSubtotal,,6\n5,x,7\nSubtotal,,7\nTotal,,13\n",
        "3 lines with totals, such as 'Subtotal', are left out: 4, 6 to 7.",
    ),
    "a title with commas": (f"Sales, by Ann, of 2024, all\n{ROWS}", "1 line above the column names is left out: 1."),
    "a ruled table": ("| a | b | c |\n|---|:--|--:|\n| 1 | x | 2 |\n| 3 | y | 4 |\n| 5 | x | 7 |\n", "Line 1 holds"),
    "a remark between": ("a,b,c\n1,x,2\n# restarted\n3,y,4\n5,x,7\n", "1 line beginning with '#' is left out: 3."),
    "a line of dashes": ("a,b,c\n-------\n1,x,2\n3,y,4\n5,x,7\n", "Line 1 holds"),
    "mean": (f"{ROWS}Average,,4.33\n", "1 line with totals, such as 'Average', is left out: 5."),
}


# Each is read without the lines that are no rows, with this note.
LOG = "day,text,amount,balance\n{}2024-03-01,rent,-700,800\n2024-03-04,pay,2100,2900\n2024-03-09,food,-45.5,2854.5\n{}"
NO_ROWS = {
    "opening balance": (LOG.format(",opening balance,,1500\n", ""), "1 line above the rows is left out: 2."),
    "dated balance": (LOG.format("2024-03-01,Opening balance,,1500\n", ""), "1 line above the rows is left out: 2."),
    "closing balance": (LOG.format("", "to 31 March,,,2854.5\n"), "1 line below the rows is left out: 5."),
    "statistics": (
        LOG.format("", "mean,,451.5,2184.83\nmax,,2100,2900\n"),
        "1 line with totals, such as 'mean', is left out: 5.",
    ),
    "second line of names": (LOG.format("when,what,how much,left\n", ""), "1 line above the rows is left out: 2."),
    "total in front": (
        LOG.format("Total,,1354.5,6554.5\n", ""),
        "1 line with totals, such as 'Total', is left out: 2.",
    ),
}


@pytest.mark.parametrize("case", NO_ROWS)
def test_what_is_unlike_usual_rows_is_left_out(write, case):
    text, note = NO_ROWS[case]
    table = read_table(write(text), target=False)
    assert table["day"].cells() == ["2024-03-01", "2024-03-04", "2024-03-09"]
    assert table["balance"].cells() == [800, 2900, 2854.5]
    assert note in table.notes


@pytest.mark.parametrize("case", NO_ROWS)
def test_chunks_refuse_what_is_unlike_usual_rows(write, case):
    with pytest.raises(InputError, match="some lines are no rows of the table"):
        list(read_chunks(write(NO_ROWS[case][0]), rows=2, target=False))


def test_a_carry_over_between_the_rows_is_left_out(write):
    rows = "".join(f"2024-03-{day:02},x,{day}\n" for day in range(1, 9))
    table = read_table(write(f"day,text,n\n{rows}carried over,,36\n{rows}"), target=False)
    assert table.n_rows == 16
    assert "1 line between the rows is left out: 10." in table.notes


def test_doubtful_rows_are_kept_with_a_note(write):
    table = read_table(write("region,x,y\nNorth,,\na,12,13\nb,14,15\nSouth,,\nc,16,17\nd,18,19\n"), target=False)
    assert table.n_rows == 6
    assert "2 lines unlike the other rows, perhaps none of the table, are kept: 2, 5." in table.notes


@pytest.mark.parametrize("right", ["name,n\n", "code,meaning\n"])
def test_tables_side_by_side_are_refused(write, right):
    text = f"name,n,,{right}ann,3,,x,5\nbob,4,,y,6\ncleo,4,,,\n"
    with pytest.raises(InputError, match="two tables seem to stand side by side"):
        read_table(write(text), target=False)


def test_many_lines_that_are_no_rows_are_refused(write):
    rows = "".join(f"2024-03-{day:02};{day}\n" for day in range(1, 9))
    with pytest.raises(InputError, match="several lines above the rows are none"):
        read_table(write(f"series;x\nid;A1\nunit;kg\nsource;office\n{rows}"), target=False)
    with pytest.raises(InputError, match="more lines below the rows than rows"):
        read_table(write(f"meter;type;from\n17;load;2024-03-01\ntime;value\n{rows}"), target=False)


@pytest.mark.parametrize("case", UNTIDY)
def test_what_is_no_row_is_left_out_and_noted(write, case):
    text, note = UNTIDY[case]
    table = read_table(write(text), target=False)
    assert table.names == ("a", "b", "c")
    assert [column.cells() for column in table] == CELLS
    assert any(said.startswith(note) for said in table.notes), table.notes


ABOVE = {
    "titles",
    "padded titles",
    "sep",
    "comments",
    "blank columns",
    "a title with commas",
    "a ruled table",
    "a line of dashes",
}


@pytest.mark.parametrize("case", sorted(ABOVE))
def test_chunks_follow_the_same_rules(write, case):
    tables = list(read_chunks(write(UNTIDY[case][0]), rows=2, target=False))
    assert [cell for table in tables for cell in table["c"].cells()] == CELLS[2]


@pytest.mark.parametrize("case", sorted(set(UNTIDY) - ABOVE))
def test_chunks_refuse_lines_that_are_no_rows(write, case):
    with pytest.raises(InputError, match=r"some lines are no rows of the table|1 cell where the first line has 3"):
        list(read_chunks(write(UNTIDY[case][0]), rows=2, target=False))


def test_a_word_such_as_total_may_be_a_level(write):
    table = read_table(write("kind,y\nTotal,1\nPart,2\nTotal,3\nPart,0\nTotal,9\n"), target=False)
    assert table["y"].cells() == [1, 2, 3, 0, 9]
    assert table.notes[-1] == "3 lines called a total but not the sum of the rows above are kept: 2, 4, 6."


def test_chunks_may_have_such_a_word(write):
    path = write("kind,y\nTotal,1\nPart,2\nTotal,3\nPart,0\nTotal,9\n")
    assert sum(table.n_rows for table in read_chunks(path, rows=2, target=False)) == 5


def test_the_last_row_may_have_few_cells(write):
    assert read_table(write("a,b,c\n1,x,2\n3,y,4\n5,,\n"), target=False).n_rows == 3


def test_lines_in_errors_are_those_of_the_file(write):
    with pytest.raises(InputError, match="line 6, column 'c'"):
        read_table(write("Title\n\na,b,c\n1,x,2\n,,\n3,y,\n5,x,7\nTotal,,9\n"), target="c")


def test_short_rows_are_completed(write):
    table = read_table(write("a,b,c\n1,x,2\n3,y\n5,x,7\n"), target=False)
    assert table["c"].cells() == [2, None, 7]
    assert table.notes[-1] == "1 line with fewer cells than there are columns is completed with missing cells: 3."


def test_a_header_of_two_lines_is_joined(write):
    table = read_table(write("Shop,2023,,2024,\n,Q1,Q2,Q1,Q2\nA,1,2,3,4\nB,5,6,7,8\n"), target=False)
    assert table.names == ("Shop", "2023 Q1", "2023 Q2", "2024 Q1", "2024 Q2")
    assert table.notes[0] == "Lines 1 to 2 hold the column names."


def test_names_that_repeat_are_numbered(write):
    table = read_table(write("a,a,a (2),b,\n1,2,3,x,7\n2,3,4,y,8\n"), target=False)
    assert table.names == ("a", "a (3)", "a (2)", "b", "column_5")
    assert "Another column 'a' is called 'a (3)'." in table.notes


ENCODED = {
    "cp1252": "Straße;Größe\nMühlweg;3 €\nÄußere Allee;4 €\n",
    "mac-roman": "Straße;Größe\nMühlweg;3\nÄußere Allee;4\n",
    "cp850": "Straße;Größe\nMühlweg;3\nÄußere Allee;4\n",
    "cp1250": "Źródło;n\nŁódź;3\nGdańsk śląski;4\n",
    "cp1251": "Город;n\nМосква;3\nТула;4\n",
    "cp932": "商品;数\nりんごの箱;3\nコーヒー;4\n",
    "cp1252 ": "Ort;Größe;Preis\nUlm;3,5 °C;£ 0.85\nBonn;4 m²;¥ 57.09\n",
    "utf-16-le": "Straße;n\nMühlweg;3\nAllee;4\n",
    "utf-16-be": "Straße;n\nMühlweg;3\nAllee;4\n",
}


@pytest.mark.parametrize("encoding", ENCODED)
def test_the_encoding_is_guessed_and_noted(write, encoding):
    text, encoding = ENCODED[encoding], encoding.strip()
    path = write(text.encode(encoding))
    table = read_table(path, target=False)
    assert table.names == tuple(text.split("\n")[0].split(";"))
    assert table[table.names[0]].cells() == [line.split(";")[0] for line in text.split("\n")[1:3]]
    assert encoding.upper() in table.notes[0].upper()
    assert next(iter(read_chunks(path, rows=9, target=False))).names == table.names


def test_lines_are_skipped_or_the_header_named(write):
    path = write(f"n,1,2\n{ROWS}")
    for options in ({"skip": 1}, {"header_row": 2}):
        table = read_table(path, target=False, **options)
        assert [column.cells() for column in table] == CELLS
        assert next(iter(read_chunks(path, rows=9, target=False, **options))).names == table.names
    assert read_table(path, target=False, skip=2, header=False).names == ("column_1", "column_2", "column_3")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"skip": -1}, "skip"),
        ({"header_row": 0}, "header_row"),
        ({"header_row": 2, "header": False}, "Leave one out"),
        ({"header_row": 2, "skip": 2}, "header_row"),
    ],
)
def test_wrong_lines_are_refused(write, options, words):
    with pytest.raises(ParameterError, match=words):
        read_table(write(ROWS), **options)


def test_a_header_row_must_exist(write):
    with pytest.raises(InputError, match="line 9: the line is blank, or there is none"):
        read_table(write(ROWS), header_row=9)


@pytest.mark.parametrize(
    "text",
    [
        "All of it,,\nx,u,y\nv,x,b\nx,v,a\n",  # words of the first line below come again
        "Report,\nn,b\nu,x\nv,y\n",  # a name, perhaps
        "Sales of spring,\nn,b\n4950,60 kg\n,80 kg\n,52 kg\n",
        "a,b\n1,2\n3,4\n\nc,d,e\n1,2,3\n4,5,6\n",  # two tables
        "Report, by Ann, 2024\nRegion: North, South\na,b,c\n1,x,2\n",
    ],
)
def test_an_unclear_header_is_asked_about(write, text):
    with pytest.raises(InputError, match="header_row"):
        read_table(write(text))


@pytest.mark.parametrize("title", ["Report of 2024", "Report of 2024,,", "Report,,\n,,"])
def test_names_below_a_title_are_no_class(write, title):
    path = write(f"{title}\na,b,y\n1,x,yes\n2,x,no\n3,x,yes\n4,x,\n")
    table = read_table(path, drop_unlabelled=True)
    assert table.labels().tolist() == ["yes", "no", "yes"]


@pytest.mark.parametrize(("kind", "values"), [("decimal_point", [1250, 2310]), ("decimal_comma", [1.25, 2.31])])
def test_the_sign_of_decimals_can_be_given(tmp_path, kind, values):
    path = tmp_path / "towns.csv"
    path.write_text("pop;town\n1,250;a\n2,310;b\n")
    with pytest.raises(InputError, match=r"Set kinds={'pop': 'decimal_comma'} or 'decimal_point'"):
        read_table(path, target=False, kinds={"pop": "number"})
    assert read_table(path, target=False, kinds={"pop": kind})["pop"].values.tolist() == values


def test_dates_with_points_have_the_day_first_also_under_a_model_with_the_month_first():
    form = DateFormat("mdy")
    assert form.show(form.parse("3/4/2023")) == "2023-03-04"
    assert form.show(form.parse("3.4.2023")) == "2023-04-03"


@pytest.mark.parametrize("cell", ["2024/05/03 3:44:02 PM GMT+2", "20240503T134402", "2024-05-03 13:44:02 UTC+0"])
def test_time_stamps_of_programs_are_read(cell):
    form = DateFormat(has_time=True)
    assert form.show(form.parse(cell)) == "2024-05-03 13:44:02"


def test_a_total_may_differ_by_the_rounding_of_its_cells(tmp_path):
    path = tmp_path / "sums.csv"
    path.write_text("item;amount\na;1,33\nb;2,33\nc;3,33\nTotal;7,00\n")
    assert read_table(path, target=False).n_rows == 3
    path.write_text("item;amount\na;1,33\nb;2,33\nc;3,33\nTotal;7,20\n")
    assert read_table(path, target=False).n_rows == 4


def test_a_named_header_of_two_lines_is_joined(tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("Report;;;;\nStore;2023;;2024;\n;Sales;Returns;Sales;Returns\na;1;2;3;4\nb;5;6;7;8\n")
    names = ("Store", "2023 Sales", "2023 Returns", "2024 Sales", "2024 Returns")
    assert read_table(path, target=False, header_row=2).names == names


def test_units_below_the_names_belong_to_the_names(write):
    table = read_table(write("length;mass;class\n(mm);kg;\n1,5;2;a\n3,4;5;b\n"), target=False)
    assert [(column.name, column.cells()) for column in table] == [
        ("length (mm)", [1.5, 3.4]),
        ("mass (kg)", [2, 5]),
        ("class", ["a", "b"]),
    ]
    assert "Lines 1 to 2 hold the column names." in table.notes


def test_numbers_with_a_comma_between_commas_are_no_names_of_rows(write):
    for text in ("price,kg\n10,5,x\n12,25,y\n10,35,y\n", "price,kg\n12,5,x\n10,25,y\n"):
        with pytest.raises(InputError, match="3 cells where the first line has 2"):
            read_table(write(text), target=False)
    assert read_table(write('"a","b"\n"3",10,"x"\n"7",12,"y"\n'), target=False).names == ("column_1", "a", "b")


@pytest.mark.parametrize("blank", ["", ",,"])
def test_a_second_table_below_is_refused(write, blank):
    with pytest.raises(InputError, match="another one seems to begin here") as error:
        read_table(write(f"a,b,c\nu,2,x\nv,4,y\n{blank}\nd,e,f\n5,6,x\n7,8,y\n"), target=False)
    assert error.value.line == 5


RECORDS = {  # of which each line is one
    "stars": ("food,service\n****,***\n***,***\n*****,****\n***,*****\n**,***\n", 5),
    "dashes": ("left,right\n+++,---\n---,---\n---,+++\n", 3),
    "average is a level": ("income,risk\nLow,high\nAverage,low\nHigh,low\nAverage,high\nLow,low\nHigh,high\n", 6),
    "total is a level": (
        "type,region\nAnnular,Asia\nTotal,Pacific\nAnnular,Asia\nTotal,Pacific\nTotal,America\nPartial,America\n",
        6,
    ),
    "report is a level": ("type,status\nLetter,open\nReport,open\nMemo,closed\nMemo,open\nInvoice,closed\n", 5),
    "media is a department": (
        "department,site,permanent\nSales,Rome,yes\nMedia,Rome,yes\nIT,Milan,no\nHR,Milan,yes\nSocial Media,Rome,no\n",
        5,
    ),
    "ratings": ("stars,town\n***,Rome\n**,Rome\n****,Oslo\n*,Oslo\n***,Oslo\n**,Rome\n", 6),
    "a truth table": ("a,b\n0,0\n0,1\n1,0\n1,1\n", 4),
    "zeros and ones": ("name,smoker,diabetic\nAnn,1,0\nBob,0,1\nCid,0,0\nDee,1,1\n", 4),
    "a sum by chance": ("name,team,goals,assists\nAnn,A,1,0\nBob,B,2,1\nCid,A,0,1\nDee,B,3,2\n", 4),
    "did not finish": (
        "name,swim,bike,run\nAnn,31.2,65.0,40.1\nBob,32.5,66.3,41.2\nCid,33.1,66.9,42.3\nDee,34.0,67.1,43.9\nEve,35.5,70.2,45.0\nFlo,36.1,DNF,DNS\n",
        6,
    ),
    "a report without pages": ("id,kind,pages\n1,Letter,2\n2,Memo,1\n3,Letter,4\n4,Memo,2\n5,Letter,3\n6,Report,\n", 6),
    "a category without an amount": (
        "date,category,amount,note\n2024-01-01,Rent,900,a\n2024-01-02,Food,50,b\n2024-01-03,Car,70,c\n"
        "2024-01-04,Food,33,d\n2024-01-05,Social Media,,e\n",
        5,
    ),
    "no answers": (
        "name,q1,q2,q3,q4,q5\nAnn,,,,,\nBob,1,2,3,4,5\nCid,2,2,3,3,1\nDee,,,,,\nEve,5,4,3,2,1\nFay,4,4,4,2,1\nGus,1,1,2,3,5\nHal,2,3,4,5,1\n",
        8,
    ),
    "average of two": ("rating,n\nExcellent,12\nGood,30\nAverage,21\nPoor,5\nBad,2\n", 5),
    "media is a channel": ("channel,cost\nTV,100\nPrint,50\nMedia,75\nWeb,20\n", 4),
    "a product called total": ("product,price,colour\nTide,5,red\nPersil,6,blue\nTotal,,red\nAriel,7,blue\n", 4),
    "a talk without a time": (
        "uhrzeit,art,raum,plaetze\n09:00,Workshop,A,20\n10:00,Vortrag,B,50\n11:00,Pause,C,10\n12:00,Workshop,A,20\n,Vortrag,B,40\n14:00,Pause,C,30\n15:00,Workshop,B,25\n",
        7,
    ),
    "a name that is a sign": ("#,Name,Points\n1,Bob,DNF\n2,Al,5\n3,Cy,7\n4,Di,9\n5,Ed,4\n6,Flo,2\n", 6),
}


@pytest.mark.parametrize("name", RECORDS)
def test_records_that_look_like_other_lines_are_kept(write, name):
    text, n_rows = RECORDS[name]
    assert read_table(write(text), target=False).n_rows == n_rows


def test_listings_that_are_not_utf8_keep_their_letters(write):
    text = "name      town\n--------  ------\nMüller    Köln\nMeyer     Bonn\n"
    table = read_table(write(text.encode("cp1252")), target=False)
    assert table["name"].cells() == ["Müller", "Meyer"]


@pytest.mark.parametrize("name", ["market_cap", "automobile_sales", "headphones_sold", "Conversions"])
def test_amounts_are_no_codes(write, name):
    rows = "".join(f"{word},{number}\n" for word, number in zip("abcd", (120000, 250000, 310000, 470000), strict=True))
    assert read_table(write(f"firm,{name}\n{rows}"), target=False)[name].kind == "numeric"


def test_dashes_within_quotes_are_text(write):
    text = 'name,remark\nann,"see\n---- ----\nbelow"\nbob,none\n'
    table = read_table(write(text), target=False)
    assert table["name"].cells() == ["ann", "bob"]
    assert "---- ----" in table["remark"].cells()[0]


def test_a_listing_that_begins_with_dashes_keeps_its_last_row(write):
    text = "-----  ----\nname   n\nann    1\nbob    2\ncleo   3\n"
    table = read_table(write(text.rstrip()), target=False)
    assert table.n_rows == 3
    assert table["n"].values.tolist() == [1, 2, 3]
