import csv
import io
import json

import pytest
from tiny_world import PRODUCTS

from app.cli.export import write_csv, write_jsonl
from tasks.store.database import Store
from tasks.store.reviews import review_rows

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
    *("collected_at", "node", "attempt", "same_as", "near_of", "similarity", "review", "found_by"),
]


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_and_jsonl_hold_the_same(crawled, tmp_path):
    file, lines = tmp_path / "reviews.csv", tmp_path / "reviews.jsonl"
    told = crawled.ask("export", "reviews", "--format", "csv", "-o", file)
    assert told == {"file": str(file), "format": "csv", "rows": told["rows"]}
    crawled.ask("export", "reviews", "-o", lines)
    text = file.read_bytes().decode("utf-8")
    rows = rows_of(text)
    objects = [json.loads(line) for line in lines.read_text("utf-8").splitlines()]
    assert list(rows[0]) == COLUMNS == list(objects[0])
    assert len(rows) == len(objects) == told["rows"] >= crawled.printed["reviews"]
    for row, one in zip(rows, objects, strict=True):
        assert row == {key: "" if value is None else str(value) for key, value in one.items()}
    assert {row["product"] for row in rows} == set(PRODUCTS)
    assert sorted(path.name for path in tmp_path.iterdir() if "new" in path.name) == []


def test_filters(crawled, reviewloop, tmp_path):
    def count(*options):
        return crawled.ask("export", "reviews", "-o", tmp_path / "some.csv", *options)["rows"]

    every = count()
    assert sum(count("--product", name) for name in PRODUCTS) == every
    assert 0 < count("--site", "12315.com") < every
    assert count("--site", "none.com") == 0
    assert count("--since", "2020-01-01") == every
    assert count("--since", "2999-01-01T00:00+08:00") == 0
    for wrong in (("--since", "May"), ("--product", "没有")):
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
    with store.read() as conn:
        row = next(iter(review_rows(conn)))
    store.close()
    return row


def test_a_spreadsheet_reads_utf8_and_no_formula(one_row):
    from dataclasses import replace

    row = replace(one_row, title='=HYPERLINK("http://x")', body='好, "really"\n第二行', author="@x")
    out = io.StringIO(newline="")
    assert write_csv([row], out, spreadsheet=True) == 1
    assert out.getvalue().startswith("\ufeffproduct,")
    [read] = rows_of(out.getvalue().removeprefix("\ufeff"))
    assert read["title"] == '\'=HYPERLINK("http://x")'
    assert read["author"] == "'@x"
    plain = io.StringIO(newline="")
    write_csv([row], plain)
    [read] = rows_of(plain.getvalue())
    assert (read["title"], read["body"]) == (row.title, row.body)
    lines = io.StringIO()
    write_jsonl([row], lines)
    assert json.loads(lines.getvalue())["body"] == row.body


def test_spreadsheet_is_for_csv(crawled, reviewloop):
    result = reviewloop("export", "reviews", "--spreadsheet", "--format", "jsonl", "--db", crawled.url)
    assert result.exit_code == 2
