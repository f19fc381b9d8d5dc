"""`review import`: files that people have, in the forms they have them in."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest
from patience import PATIENCE_S
from workbooks import workbook

from app.files.table_files import BadRow, open_tables
from app.importing.columns import ColumnChoice
from app.importing.review_columns import COLLECTORS, field_columns
from app.importing.review_import import import_reviews

HEADER = "商品名称,评论内容,评论时间,用户昵称,评分（星）,链接"
GOOD = (
    "特仑苏,很好喝,2026-05-01 12:00,小王,5星,//item.jd.com/1.html",
    '特仑苏,"有点,淡",2026年5月2日,老李,4,https://item.jd.com/1.html',
)
BAD = {
    "body": "特仑苏,,2026-05-01,a,5,",
    "product": "129.00,凑合,2026-05-01,a,5,",
    "": "特仑苏,凑合,2026-05-01,a,5,,多的",
}
DOUBTFUL = {
    "评论时间": ("特仑苏,凑合,不知道,a,5,", "特仑苏,凑合,2099-01-01,a,5,"),
    "评分（星）": ("特仑苏,凑合,2026-05-01,a,见附件,",),
    "链接": ("特仑苏,凑合,2026-05-01,a,5,ftp://x",),
    "用户昵称": (f"特仑苏,凑合,2026-05-01,{'长' * 501},5,",),
}
"""Lines with a cell that is not understood, by its column; what is left of them is the same review."""


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'reviews.db'}"


@pytest.fixture
def imported(reviewloop, url, tmp_path):
    """Import a file of this content; what it told, and the exit status."""

    def run(content, *options, name="reviews.csv"):
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        result = reviewloop("review", "import", file, "--db", url, "--json", *options)
        return (json.loads(result.stdout) if result.stdout else result.stderr), result.exit_code

    return run


@pytest.fixture
def exported(reviewloop, url):
    def run(*options):
        result = reviewloop("export", "reviews", "--db", url, "-o", "-", "--format", "jsonl", *options)
        return [json.loads(line) for line in result.stdout.splitlines()]

    return run


def table(*lines, header=HEADER, delimiter=","):
    text = "\n".join((header, *lines)) + "\n"
    return text if delimiter == "," else text.replace(",", delimiter)


def test_good_lines_are_stored_and_bad_ones_told_with_line_and_field(imported, exported, reviewloop, url):
    told, status = imported(table(*GOOD, *BAD.values()))
    assert status == 2
    assert (told["added"], told["known"]) == (2, 0)
    assert [(one["line"], one["field"]) for one in told["refused"]] == list(enumerate(BAD, 4))
    assert told["products_added"] == ["特仑苏"]
    rows = exported()
    assert [(r["product"], r["site"], r["body"], r["rating"], r["published_at"]) for r in rows] == [
        ("特仑苏", "item.jd.com", "很好喝", 5.0, "2026-05-01T04:00:00+00:00"),
        ("特仑苏", "item.jd.com", "有点,淡", 4.0, "2026-05-01T16:00:00+00:00"),
    ]
    assert {r["provenance"] for r in rows} == {"imported"}
    assert {r["source"] for r in rows} == {told["source"]}
    again, status = imported(table(*GOOD))
    assert (again["added"], again["known"], status) == (0, 2, 0)
    assert json.loads(reviewloop("verify", "--db", url, "--json").stdout)["violations"] == []


@pytest.mark.parametrize(
    "content",
    [
        table(*GOOD[:1]).encode("gb18030"),
        table(*GOOD[:1]).encode("utf-16"),
        table(*GOOD[:1]).encode("utf-8-sig"),
        table(*GOOD[:1], delimiter=";").encode(),
        table(*GOOD[:1], delimiter="\t").encode(),
        workbook(HEADER.split(","), GOOD[0].split(",")),
        json.dumps(
            dict(zip(HEADER.split(","), GOOD[0].split(","), strict=True)), ensure_ascii=False
        ).encode(),
    ],
    ids=["gbk", "utf-16", "bom", "semicolon", "tab", "xlsx", "jsonl"],
)
def test_forms_of_files(imported, exported, content):
    assert imported(content)[0]["added"] == 1
    (row,) = exported()
    assert (row["product"], row["body"], row["author"], row["rating"]) == ("特仑苏", "很好喝", "小王", 5.0)


def test_a_cell_that_is_not_understood_costs_no_review(imported, exported):
    lines = [line for same in DOUBTFUL.values() for line in same]
    told, status = imported(table(*lines))
    assert (told["added"], told["known"], status) == (len(lines), 0, 0)
    found = {one["column"]: one for one in told["ignored"]}
    assert found.keys() == DOUBTFUL.keys()
    assert (found["评论时间"]["values"], found["评论时间"]["rows"]) == (["不知道", "2099-01-01"], [2, 3])
    assert [(r["published_at"], r["rating"]) for r in exported()][:3] == [
        (None, 5.0), (None, 5.0), ("2026-04-30T16:00:00+00:00", None)
    ]  # fmt: skip
    again, _ = imported(table(*lines))
    assert (again["added"], again["known"]) == (0, len(lines))


@pytest.mark.parametrize(
    ("written", "day", "has_clock"),
    [
        ("2026-01-07", "2026-01-07", False),
        ("2026-01-07 00:10", "2026-01-07", True),
        ("2026/1/7 23:59", "2026-01-07", True),
        ("2026-01-06T16:00:00+00:00", "2026-01-07", False),  # as exports write it
        ("2026-01-06T15:59:00Z", "2026-01-06", True),
        ("46029", "2026-01-07", False),  # as Excel counts
    ],
)
def test_a_day_of_a_file_is_the_day_of_the_review(imported, exported, written, day, has_clock):
    told, _ = imported(table(f"特仑苏,这箱牛奶很好喝会回购的,{written}", header="产品,评论,时间"))
    assert told["added"] == 1
    assert [(row["day"], row["has_clock"]) for row in exported()] == [(day, has_clock)]


def test_a_mapping_is_given_each_time(imported):
    first = table("特仑苏,留言一,5", header="货,留言,评分")
    said, status = imported(first)
    assert status == 2
    assert "--map body=COLUMN" in said
    mapping = ("--map", "body=留言", "--map", "product=货", "--map", "rating=")
    given, _ = imported(first, *mapping, "--source", "店")
    assert (given["added"], given["source"]) == (1, "店")
    assert given["columns"] == {"product": "货", "body": "留言"}
    second = table("特仑苏,留言二,5", header="货,留言,评分")
    assert imported(second)[1] == 2
    again, _ = imported(second, *mapping)
    assert again["added"] == 1
    assert again["source"].startswith("columns-")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b'[{"body": "x"}]', "one object a line"),
        (b"\xd0\xcf\x11\xe0 old", "save it without a password as .xlsx or as CSV (UTF-8)"),
        (b"PK\x03\x04 cut", "damaged or cut off"),
        (b"\x00\x01\x02", "is a file of bytes, and no text"),
        (b"%PDF-1.7\n1 0 obj\n", "is a PDF, and no text; save it as CSV"),
        (b"\x89PNG\r\n\x1a\n", "is a picture, and no text"),
        (b"SQLite format 3\x00", "is a SQLite database, and no text"),
        (b"a,b\n1,2\n", "--map body=COLUMN"),
    ],
)
def test_files_that_are_none(imported, content, said):
    told, status = imported(content)
    assert status == 2
    assert said in told


def test_what_is_no_review_is_refused_and_counted(imported):
    told, status = imported(
        table("特仑苏,好喝", "特仑苏,^_^", "特仑苏,此用户没有填写评价。", header="product,body")
    )
    assert status == 2
    assert told["added"] == 1
    assert told["refused_by_field"] == {"body": 2}
    assert [one["why"] for one in told["refused"]] == ["is no review: empty", "is no review: boilerplate"]


def test_lines_of_json_that_are_broken_cost_no_others(imported):
    lines = [
        '{"product": "特仑苏", "body": "好"}',
        "{broken",
        '["x"]',
        '{"product": "特仑苏", "body": {"x": 1}}',
    ]
    told, _ = imported("\n".join(lines).encode() + b'\n{"product": "\xff", "body": "y"}\n', name="a.jsonl")
    assert told["added"] == 1
    assert [one["line"] for one in told["refused"]] == [2, 3, 4, 5]
    assert "UTF-8" in told["refused"][-1]["why"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{broken", "第 2 个字符处：这里应是双引号中的键名"),
        ('{"a" 1}', "第 6 个字符处：这里应是冒号"),
        ('{"a": 1 "b": 2}', "第 9 个字符处：这里应是逗号"),
        ('{"a": "不好', "引号没有结束"),
        ('{"a": }', "第 7 个字符处：这里应是一个值"),
        ('{"a": 1}}', "第 9 个字符处：后面有多余的内容"),
        ('{"a": "\\q"}', "第 8 个字符处：\\ 后面的转义无效"),
    ],
)
def test_a_broken_line_of_json_says_where_in_chinese(reviewloop, url, tmp_path, line, said):
    file = tmp_path / "a.jsonl"
    file.write_text(f'{{"product": "特仑苏", "body": "好"}}\n{line}\n', "utf-8")
    result = reviewloop("--lang", "zh", "review", "import", file, "--db", url)
    assert said in result.stderr


def test_a_name_means_a_product_that_is_there(imported, exported, reviewloop, url):
    reviewloop("product", "add", "光明高钙牛奶", "--alias", "光明高钙奶", "--db", url)
    names = ("光明 高钙牛奶", "光明高钙奶", "光明高钙牛奶250ml*12盒整箱", "光明酸奶")
    told, _ = imported(table(*(f"{name},味道{n},,,," for n, name in enumerate(names))))
    assert told["products_added"] == ["光明酸奶"]
    assert [r["product"] for r in exported()] == ["光明高钙牛奶"] * 3 + ["光明酸奶"]


def test_a_dry_run_counts_the_same_and_changes_nothing(imported, exported, tmp_path):
    lines = (*GOOD, GOOD[0], BAD["body"])
    dry, status = imported(table(*lines), "--dry-run")
    assert not (tmp_path / "reviews.db").exists()
    real, _ = imported(table(*lines))
    assert {**dry, "number": 1, "dry_run": False} == real
    assert (status, real["added"], real["known"]) == (2, 2, 1)
    dry, _ = imported(table(*lines, "特仑苏,新的,,,,"), "--dry-run")
    assert (dry["added"], dry["known"], len(exported())) == (1, 3, 2)


def test_no_run_looks_for_an_imported_product_unless_it_is_wanted(imported, reviewloop, url, lab):
    imported(table(*GOOD))
    where = ("--db", url, "--lab", f"127.0.0.1:{lab.port}", "--until-done", "--for", PATIENCE_S, "--json")
    nothing = reviewloop("run", *where)
    assert nothing.exit_code == 2
    assert "no product to crawl" in nothing.stderr
    imported(table("光明高钙牛奶,好,,,,"), "--crawl")
    assert reviewloop("run", *where).exit_code == 0
    [tasks] = [
        json.loads(reviewloop("verify", "--db", url, "--json").stdout)["counts"]["tasks"],
    ]
    assert tasks > 0


def test_authors_by_pseudonyms(imported, exported, monkeypatch):
    monkeypatch.setenv("REVIEWLOOP_PSEUDONYM_KEY", "0123456789abcdef")
    imported(table(*GOOD[:1]))
    assert exported()[0]["author"] == "小王"
    monkeypatch.setenv("REVIEWLOOP_PSEUDONYMISE", "on")
    (row,) = exported()
    assert row["author"].startswith("author-")
    imported(table(GOOD[1]))
    monkeypatch.delenv("REVIEWLOOP_PSEUDONYMISE")
    assert exported()[1]["author"].startswith("author-")


def test_collectors_are_known_by_their_columns():
    weibo = (
        "comment_id",
        "create_time",
        "create_date_time",
        "note_id",
        "content",
        "comment_like_count",
        "nickname",
    )
    found = field_columns(weibo, ColumnChoice(), "x")
    assert found.collector is not None
    assert found.collector.name == "mediacrawler-weibo-comments"
    assert found.columns == {"body": "content", "date": "create_date_time", "author": "nickname"}
    cells = {"note_id": "5", "content": "好"}
    assert (found.text("url", cells), found.text("site", cells)) == (
        "https://m.weibo.cn/detail/5",
        "weibo.com",
    )
    for one in COLLECTORS:
        again = field_columns(tuple(sorted(one.needs)), ColumnChoice(), "x")
        assert again.collector == one
        assert {"body", "date"} <= again.columns.keys()


MEASURE = """
import sys, tracemalloc
from app.files.table_files import open_tables
with open(sys.argv[1], "rb") as file:
    tracemalloc.start()
    lines = sum(1 for _ in open_tables(file, "x")[0].rows())
    print(lines, tracemalloc.get_traced_memory()[1])
"""


def test_a_table_of_any_length_takes_little_memory(tmp_path):
    row = f"特仑苏,{'很好喝' * 20},2026-05-01,a,5,\n"
    file = tmp_path / "long.csv"
    file.write_text(HEADER + "\n" + row * 30_000, "utf-8")
    # In a process of its own: threads that earlier tests started import modules meanwhile.
    done = subprocess.run([sys.executable, "-c", MEASURE, file], capture_output=True, text=True, check=True)
    lines, peak = map(int, done.stdout.split())
    assert lines == 30_001
    assert peak < 4_000_000 < file.stat().st_size


def test_a_quote_that_is_never_closed_costs_its_line():
    text = 'a,b\n1,2\n"' + "x" * 200_000 + "\n3,4\n"
    rows = list(open_tables(io.BytesIO(text.encode()), "x")[0].rows())
    assert [type(row) is BadRow for row in rows] == [False, False, True, False]


def test_what_was_stored_before_it_is_stopped_stays(
    reviewloop, imported, exported, url, tmp_path, monkeypatch
):
    def stopped(records, checks, save, progress):
        return import_reviews(stopping(records), checks, save, progress)

    def stopping(records):
        yield next(records)
        raise KeyboardInterrupt

    lines = [f"特仑苏,很好喝的第{n}次,2026-05-0{n},a,5," for n in (1, 2, 3)]
    file = tmp_path / "reviews.csv"
    file.write_text(table(*lines), encoding="utf-8")
    monkeypatch.setattr("app.importing.review_import.BATCH", 1)
    monkeypatch.setattr("app.cli.products.review.import_reviews", stopped)
    ended = reviewloop("review", "import", file, "--db", url)
    assert (ended.exit_code, "the same command goes on" in ended.stderr) == (1, True)
    assert len(exported()) == 1
    monkeypatch.setattr("app.cli.products.review.import_reviews", import_reviews)
    told, _ = imported(table(*lines))
    assert (told["added"], told["known"]) == (2, 1)
    assert len(exported()) == 3


def test_an_import_is_undone_and_says_what_stays(imported, exported, reviewloop, url):
    imported(table(*GOOD))
    imported(table(GOOD[0]))
    command = ("review", "import", "--db", url, "--json", "--undo")
    done = json.loads(reviewloop(*command, "1").stdout)
    assert (done["reviews_removed"], done["reviews_stay"]) == (1, 1)
    assert [(one["name"], one["need"], one["other"]) for one in done["stays"]] == [
        ("特仑苏", "later_import", 2)
    ]
    assert len(exported()) == 1
    assert json.loads(reviewloop(*command, "2").stdout)["products_removed"] == 1
    assert exported() == []
    assert "product import" not in reviewloop("review", "import", "--db", url, "--undo", "2").stderr


@pytest.mark.slow
def test_postgresql_sees_at_once_how_many_reviews_came(reviewloop, postgres_store, tmp_path):
    file = tmp_path / "many.csv"
    url = postgres_store.engine.url.render_as_string(hide_password=False)
    for brought, first in ((999, 0), (1_200, 999)):
        lines = [f"特仑苏,第{n}条评价,2026-05-01,小王,5星," for n in range(first, first + brought)]
        file.write_text(table(*lines), encoding="utf-8")
        assert reviewloop("review", "import", file, "--db", url).exit_code == 0
        with postgres_store.read() as tx:
            seen = tx.value("SELECT reltuples FROM pg_class WHERE oid = 'reviews'::regclass")
        assert (seen == first + brought) is (brought >= 1_000)
