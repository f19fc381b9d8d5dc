import csv
import io
import json
import os
import re
import stat
import sys
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from openpyxl import load_workbook
from openpyxl.utils.escape import unescape
from tiny_world import PRODUCTS

from app.api import reviews
from app.cli.output import plain
from app.files import xlsx
from app.files.exporting import FORMATS, format_of, whole_file, write_rows
from app.views.theme_names import name_theme
from app.views.words import switch_language
from splitter.errors import InputError
from splitter.spans import CHINA
from tasks.store.queries.reviews import ReviewRow, list_reviews
from tasks.store.sql.database import Store

COLUMNS = [
    *(
        "product",
        "site",
        "url",
        "page_title",
        "title",
        "body",
        "author",
        "published_at",
        "date_text",
        "rating",
    ),
    *(
        "collected_at",
        "node",
        "attempt",
        "same_as",
        "near_of",
        "similarity",
        "review",
        "provenance",
        "source",
        "variant",
        "voice",
        "voice_probability",
        "sentiment",
        "found_by",
        "day",
        "confidence",
        "has_clock",
        "themes",
        "theme_quotes",
        "left_out",
        "corrected",
        "corrected_by",
        "corrected_at",
        "counted_as",
    ),
]

SHEET = ["body", "day", *(name for name in COLUMNS if name not in ("body", "day"))]
"""The columns in the order of a sheet, whose reader has the text first."""


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))


def test_csv_and_jsonl_hold_the_same(crawled, tmp_path):
    file, lines = tmp_path / "reviews.csv", tmp_path / "reviews.jsonl"
    told = crawled.ask("export", "reviews", "--format", "csv", "-o", file)
    assert (told["file"], told["format"]) == (str(file), "csv")
    crawled.ask("export", "reviews", "-o", lines)
    text = file.read_bytes().decode("utf-8-sig")
    rows = rows_of(text)
    objects = [json.loads(line) for line in lines.read_text("utf-8").splitlines()]
    assert list(rows[0]) == COLUMNS == list(objects[0])
    assert len(rows) == len(objects) == told["rows"] >= crawled.printed["reviews"]
    for row, one in zip(rows, objects, strict=True):
        assert row == {key: _cell(key, value) for key, value in one.items()}
    assert {row["product"] for row in rows} == set(PRODUCTS)
    assert sorted(path.name for path in tmp_path.iterdir() if "new" in path.name) == []


def _cell(column, value):
    if column in ("themes", "theme_quotes"):
        return " | ".join(name_theme(one) if column == "themes" else one for one in value or [])
    return "" if value is None else str(value)


def test_filters(crawled, reviewloop, tmp_path):
    def count(*options):
        return crawled.ask("export", "reviews", "-o", tmp_path / "some.csv", *options)["rows"]

    every = count()
    assert sum(count("--product", name) for name in PRODUCTS) == every
    assert 0 < count("--site", "12315.com") < every
    assert sum(count("--site", name) for name in ("12315.com", "cca.org.cn")) == count(
        "--site", "12315.com", "--site", "cca.org.cn"
    )
    dated = count("--day-from", "2000-01-01")
    assert 0 < dated == count("--day-to", "2014-03-31") + count("--day-from", "2014-04-01")
    assert count("--day-from", "2100-01-01") == 0
    assert count("--since", "2020-01-01") == every
    assert count("--since", "2999-01-01T00:00+08:00") == 0
    for wrong in (
        ("--since", "May"),
        ("--since", "0001-01-01"),
        ("--product", "没有"),
        ("--site", "none.com"),
        ("--day-from", "2026"),
        ("--day-from", "2014-04-02", "--day-to", "2014-04-01"),
        ("-o", tmp_path / "r.txt"),
        ("-o", tmp_path / "r"),
    ):
        result = reviewloop("export", "reviews", *wrong, "--db", crawled.url)
        assert result.exit_code == 2
        assert not result.stdout


def test_standard_output(crawled, reviewloop):
    plain = reviewloop("export", "reviews", "--db", crawled.url)
    assert plain.exit_code == 0
    assert f"{len(rows_of(plain.stdout))} rows" in plain.stderr.replace(",", "")
    as_json = reviewloop("export", "reviews", "-o", "-", "--json", "--db", crawled.url)
    assert len([json.loads(line) for line in as_json.stdout.splitlines()]) == len(rows_of(plain.stdout))
    assert reviewloop("export", "reviews", "--format", "csv", "--json", "--db", crawled.url).exit_code == 2


def test_the_themes_file_is_read_only_for_names_of_themes(crawled, reviewloop, tmp_path):
    file = tmp_path / "broken.yaml"
    file.write_text("goods: [")
    asked = ("export", "reviews", "--db", crawled.url, "-o", tmp_path / "out", "--format")
    for form, options, status in (
        ("jsonl", (), 0),
        ("json", (), 0),
        ("csv", (), 2),
        ("xlsx", (), 2),
        ("jsonl", ("--theme", "service"), 2),
    ):
        done = reviewloop(*asked, form, *options, REVIEWLOOP_THEMES=str(file))
        assert done.exit_code == status, done.stderr
        assert ("broken.yaml" in done.stderr) == (status == 2)


def test_a_failed_export_leaves_what_was_there(crawled, reviewloop, tmp_path):
    file = tmp_path / "kept.csv"
    file.write_text("kept")
    assert (
        reviewloop("export", "reviews", "--product", "没有", "-o", file, "--db", crawled.url).exit_code == 2
    )
    assert file.read_text() == "kept"
    nowhere = reviewloop("export", "reviews", "-o", tmp_path / "no" / "a.csv", "--db", crawled.url)
    assert nowhere.exit_code == 2
    assert "cannot be written" in nowhere.stderr


@pytest.fixture
def one_row(crawled):
    store = Store.open(crawled.url)
    with store.read() as tx:
        row = next(iter(list_reviews(tx)))
    store.close()
    return row


def written(form, *rows):
    out = io.BytesIO()
    assert write_rows(iter(rows), ReviewRow, form, out) == len(rows)
    return out.getvalue()


def test_a_spreadsheet_reads_utf8_and_no_formula(one_row):
    row = replace(one_row, title='=HYPERLINK("http://x")', body='好, "really"\n第二行', author="@x")
    marked = written("csv", row).decode()
    assert marked.startswith("\ufeffproduct,")
    [read] = rows_of(marked)
    assert read["title"] == '\'=HYPERLINK("http://x")'
    assert read["author"] == "'@x"
    [read] = rows_of(written("csv", row).decode())
    assert (read["title"], read["body"]) == (f"'{row.title}", row.body)
    assert json.loads(written("jsonl", row))["title"] == row.title


@pytest.mark.parametrize(
    "text", ["=1+1", " =1+1", "\u3000＝1+1", "＋1", "-1", "@x", "\t=1", "\r=1", "\n=1", "－1", "＠SUM(A1)"]
)
def test_no_cell_is_a_formula(one_row, text):
    [read] = rows_of(written("csv", replace(one_row, body=text)).decode())
    assert read["body"] == f"'{text}"
    assert json.loads(written("jsonl", replace(one_row, body=text)))["body"] == text
    sheet = load_workbook(io.BytesIO(written("xlsx", replace(one_row, body=text)))).worksheets[0]
    cell = sheet.cell(2, SHEET.index("body") + 1)
    assert (cell.data_type, unescape(cell.value)) == ("s", text)


HARD = "好<&>\x00\x1b[2J \ud800 \ufffe ]]> \U0001f600"


@pytest.mark.parametrize("form", FORMATS)
def test_no_text_breaks_a_file(one_row, form):
    """What the store gives is written whatever is in it; what a format cannot hold is replaced."""
    first = datetime(1890, 1, 1, tzinfo=UTC)
    rows = [replace(one_row, body=HARD * n, published_at=first, rating=2.5) for n in (0, 1, 4000)]
    read = readings(form, written(form, *rows))
    assert [list(row) for row in read] == [SHEET if form == "xlsx" else COLUMNS] * 3
    assert [len(row["body"] or "") > 0 for row in read] == [False, True, True]
    assert "好<&>" in read[1]["body"]
    assert "\U0001f600" in read[1]["body"]
    assert float(read[2]["rating"]) == 2.5


def test_a_sheet_has_widths_a_filter_wrapped_text_and_links(one_row):
    far = "https://bbs.example.com/t/1.html?a=1&b=<2>"
    urls = ["https://bbs.example.com/t/1.html?a=1&b=2", "javascript:alert(1)", far, "", "http://例.cn/"]
    data = written("xlsx", *(replace(one_row, url=url) for url in [*urls, urls[0]]))
    sheet = load_workbook(io.BytesIO(data)).worksheets[0]
    assert [cell.value for cell in sheet[1]] == SHEET
    assert sheet.auto_filter.ref == "A1:AH7"
    assert sheet.freeze_panes == "A2"
    assert sheet.column_dimensions["A"].width == 60
    assert sheet["A2"].alignment.wrap_text
    links = {cell.coordinate: cell.hyperlink.target for row in sheet for cell in row if cell.hyperlink}
    column = sheet.cell(1, SHEET.index("url") + 1).column_letter
    assert links == dict.fromkeys([f"{column}2", f"{column}7"], urls[0])
    assert sheet[f"{column}3"].value == "javascript:alert(1)"


def test_a_sheet_takes_no_more_links_than_excel(one_row, monkeypatch):
    monkeypatch.setattr(xlsx, "_LINKS_MOST", 2)
    sheet = load_workbook(
        io.BytesIO(written("xlsx", *[replace(one_row, url="http://a.cn/")] * 5))
    ).worksheets[0]
    assert sum(cell.hyperlink is not None for row in sheet for cell in row) == 2


def test_a_sheet_shows_the_clock_of_the_settings_and_no_hour_of_a_day(one_row):
    at = datetime(2026, 1, 6, 16, tzinfo=UTC)
    rows = [
        replace(one_row, published_at=at, day=date(2026, 1, 7), has_clock=clock) for clock in (True, False)
    ]
    with_clock, without = readings("xlsx", written("xlsx", *rows))
    assert with_clock["published_at"].replace(tzinfo=CHINA) == at
    assert without["published_at"] is None
    assert without["day"].date() == date(2026, 1, 7)


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_columns_for_people_are_named_in_their_language(one_row, form):
    with switch_language("zh"):
        [row] = readings(form, written(form, one_row))
        assert json.loads(written("jsonl", one_row)).keys() == set(COLUMNS)
    assert len(row) == len(COLUMNS)
    assert {"正文", "日期", "产品", "网站", "评论类型"} <= row.keys()
    assert not any(re.search("[a-z]", name) for name in row)


@pytest.mark.parametrize("form", FORMATS)
def test_a_row_has_its_themes_and_the_clauses_that_show_them(crawled, form):
    body = "喝到一半发现有黑色颗粒，打电话给客服，也没有人理会"
    stored = [["foreign_matter", -1, 0, 11], ["price", 1, 0, 3], ["service", -1, 12, 25]]
    store = Store.open(crawled.url)
    with store.begin() as tx:
        numbers = [number for (number,) in tx.rows("SELECT id FROM reviews WHERE refused IS NULL LIMIT 4")]
        for number, voice, themes in zip(
            numbers,
            ["complaint", "news", "praise", "complaint"],
            [stored, stored, None, "broken"],
            strict=True,
        ):
            values = {"id": number, "body": body, "voice": voice, "themes": themes}
            tx.update("reviews", ("id",), [values])
    with store.read() as tx:
        rows = {row.review: row for row in list_reviews(tx) if row.review in numbers}
    store.close()
    with switch_language("zh"):
        read = readings(form, written(form, *(rows[number] for number in numbers)))
        names, quotes = ("主题", "主题原话") if form in ("csv", "xlsx") else ("themes", "theme_quotes")
    found = [(row[names] or None, row[quotes] or None) for row in read]
    assert found[1:] == [(None, None)] * 3
    if form in ("csv", "xlsx"):
        assert found[0] == ("异物 | 客服售后", "喝到一半发现有黑色颗粒 | 打电话给客服，也没有人理会")
    else:
        assert found[0] == (
            ["foreign_matter", "service"],
            ["喝到一半发现有黑色颗粒", "打电话给客服，也没有人理会"],
        )


def readings(form, data):
    """The rows of a file, by a reader that is not ours."""
    if form == "csv":
        return rows_of(data.decode("utf-8"))
    if form in ("json", "jsonl"):
        return json.loads(data) if form == "json" else [json.loads(line) for line in data.splitlines()]
    if form == "parquet":
        return pytest.importorskip("pyarrow.parquet").read_table(io.BytesIO(data)).to_pylist()
    head, *rows = load_workbook(io.BytesIO(data)).worksheets[0].iter_rows(values_only=True)
    return [dict(zip(head, row, strict=True)) for row in rows]


_TIMES = ("collected_at", "published_at", "day")


def test_every_format_holds_the_same(crawled, tmp_path):
    names = {form: tmp_path / f"reviews.{form}" for form in FORMATS}
    told = {form: crawled.ask("export", "reviews", "-o", file) for form, file in names.items()}
    read = {form: readings(form, file.read_bytes()) for form, file in names.items()}
    assert {one["rows"] for one in told.values()} == {len(read["json"])}
    assert read["json"] == read["jsonl"]
    for row, cells, stored in zip(read["json"], read["xlsx"], read["parquet"], strict=True):
        at = datetime.fromisoformat(row["collected_at"])
        assert stored | dict.fromkeys(_TIMES) == row | dict.fromkeys(_TIMES)
        assert str(stored["day"]) == row["day"] == f"{cells['day']:%Y-%m-%d}"
        assert stored["collected_at"] == at
        assert abs(cells["collected_at"].replace(tzinfo=CHINA) - at).total_seconds() < 0.01
        assert {name: cells[name] or "" for name in ("product", "body", "url")} == {
            name: row[name] for name in ("product", "body", "url")
        }


def test_a_workbook_goes_on_on_another_sheet(one_row, monkeypatch):
    monkeypatch.setattr(xlsx, "_ROWS_A_SHEET", 3)
    book = load_workbook(io.BytesIO(written("xlsx", *[one_row] * 5)))
    assert [sheet.max_row for sheet in book.worksheets] == [3, 3, 2]
    assert all(sheet.cell(1, 1).value == "body" for sheet in book.worksheets)
    assert load_workbook(io.BytesIO(written("xlsx"))).worksheets[0].max_row == 1


def test_an_unknown_name_says_what_would_be_right(reviewloop, crawled, tmp_path):
    result = reviewloop("export", "reviews", "-o", tmp_path / "r.xls", "--db", crawled.url)
    assert result.exit_code == 2
    assert ".xlsx" in result.stderr
    assert "--format" in result.stderr
    with pytest.raises(InputError, match="no ending"):
        format_of("reviews")
    told = reviewloop(
        "export", "reviews", "-o", tmp_path / "r.xlsx", "--format", "csv", "--db", crawled.url
    ).stderr
    assert "holds csv" in told


def test_parquet_without_its_library(reviewloop, crawled, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = reviewloop("export", "reviews", "-o", tmp_path / "r.parquet", "--db", crawled.url)
    assert result.exit_code == 2
    assert "reviewloop[parquet]" in result.stderr
    assert list(tmp_path.glob("*parquet*")) == []


def test_a_cursor_goes_on(crawled, reviewloop, tmp_path):
    cursor = ("--cursor", tmp_path / "daily.cursor")
    every = crawled.ask("export", "reviews", "-o", tmp_path / "a.jsonl", *cursor)["rows"]
    assert every > 0
    assert crawled.ask("export", "reviews", "-o", tmp_path / "b.jsonl", *cursor)["rows"] == 0
    other = ("export", "reviews", "-o", tmp_path / "c.csv", *cursor, "--site", "12315.com")
    assert reviewloop(*other, "--db", crawled.url).exit_code == 2
    (tmp_path / "daily.cursor").write_text("{}")
    broken = reviewloop("export", "reviews", "-o", tmp_path / "d.csv", *cursor, "--db", crawled.url)
    assert broken.exit_code == 2
    assert "no cursor" in broken.stderr
    assert not (tmp_path / "d.csv").exists()


def test_rows_for_python(crawled, tmp_path):
    crawled.ask("export", "reviews", "-o", tmp_path / "r.json")
    rows = list(reviews(crawled.url))
    assert json.loads((tmp_path / "r.json").read_text()) == json.loads(json.dumps(rows, default=plain))
    assert {row["product"] for row in reviews(crawled.url, products=[PRODUCTS[0]])} == {PRODUCTS[0]}
    with pytest.raises(InputError):
        next(reviews(f"sqlite:///{tmp_path}/nothing.db"))


def test_a_device_stays_a_device(crawled, tmp_path):
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with whole_file(pipe) as out:
            out.write(b"x")
        assert os.read(reader, 10) == b"x"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_an_export_is_its_owners_alone(tmp_path):
    with whole_file(tmp_path / "out.csv") as out:
        out.write(b"x")
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == 0o600


def test_the_day_is_the_sites(crawled, tmp_path):
    # Of a date without a time of day published_at is the evening before, in UTC.
    for row in rows_for(crawled, tmp_path):
        at = row["published_at"]
        assert row["day"] == (datetime.fromisoformat(at).astimezone(CHINA).date().isoformat() if at else "")
    assert any(row["day"] not in row["published_at"] for row in rows_for(crawled, tmp_path))


def rows_for(crawled, tmp_path):
    crawled.ask("export", "reviews", "-o", tmp_path / "days.csv")
    return rows_of((tmp_path / "days.csv").read_text("utf-8"))
