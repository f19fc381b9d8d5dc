"""A column that is not the name never costs the name: lists as people keep them, read by command."""

from __future__ import annotations

import json

import pytest
from people_lists import LISTS, NAMES, csv_of, rows_of, xlsx_of

IGNORED = {
    "aliases that are none": {"别名": 5},
    "remarks with marks": {"优先级": 14},
    "values that nobody understands": {"优先级": 12, "页数": 5, "重采周期": 7, "类别": 20},
}
"""Cells that are not understood, by list and column."""


@pytest.fixture
def imported(reviewloop, tmp_path):
    """Import a file of this content; the JSON, or what is said of a refusal, and the exit status."""

    def run(content, *options):
        file = tmp_path / "list"
        file.write_bytes(content)
        url = f"sqlite:///{tmp_path / 'reviews.db'}"
        result = reviewloop("product", "import", file, "--db", url, "--json", *options)
        return (json.loads(result.stdout) if result.stdout else result.stderr), result.exit_code

    return run


@pytest.mark.parametrize("name", LISTS)
def test_no_row_is_lost(imported, name):
    read, status = imported(LISTS[name](), "--sites", "today", "--dry-run")
    assert [one["name"] for one in read["added"]] == [*NAMES]
    assert (read["refused"], status) == ([], 0)
    ignored = {one["column"]: len(one["rows"]) for one in read["ignored"]}
    assert ignored == IGNORED.get(name, {})


BAD_CELLS = {
    "优先级": ["看情况", "?", "2026-01-01", "高/低", "x" * 300],
    "页数": ["很多", "-1", "1e9", "全部", "三四页"],
    "重采周期": ["随时", "7", "0d", "每", "999999w"],
    "类别": ["说不清", "??", "一科", "A1", "　x"],
    "关键词": ["！！", "🥛", "??", "\x01", "。"],
    "别名": ["250ml", "满减", "12盒", "\x01", "长" * 201],
    "站点": ["线下", "朋友圈", "x.y", "实体店", "待定"],
}
"""Five cells that are not understood, by column."""


@pytest.mark.parametrize("column", BAD_CELLS)
def test_no_value_of_an_optional_column_costs_a_name(imported, column):
    cells = BAD_CELLS[column]
    rows = [["商品名称", column], *([name, cell] for name, cell in zip(NAMES, cells, strict=False))]
    read, status = imported(csv_of(rows))
    assert [one["name"] for one in read["added"]] == [*NAMES[:5]]
    assert (status, read["refused"]) == (0, [])
    [ignored] = read["ignored"]
    assert (ignored["column"], ignored["rows"]) == (column, [2, 3, 4, 5, 6])
    assert len(ignored["values"]) == 3
    doubtful = [one["name"] for one in read["doubtful"]]
    assert doubtful == ([*NAMES[:5]] if column == "站点" else [])
    without, _ = imported(csv_of(rows), "--ignore", column)
    assert (without["ignored"], without["unused"], len(without["known"])) == ([], [], 5 - len(doubtful))


def test_known_sites_of_a_cell_count_and_a_product_without_any_is_paused(imported, reviewloop, tmp_path):
    rows = [
        ["商品名称", "平台"],
        ["特仑苏", "京东、线下"],
        ["光明酸奶", "线下"],
        ["蒙牛早餐奶", ""],
        ["雀巢怡养", "知乎"],
    ]
    today = ("--sites", "today")
    read, _ = imported(csv_of(rows), *today, "--dry-run")
    assert [one["name"] for one in read["doubtful"]] == ["光明酸奶"]
    [ignored] = read["ignored"]
    assert (ignored["column"], ignored["values"], ignored["rows"]) == ("平台", ["线下"], [2, 3])
    assert {**imported(csv_of(rows), *today)[0], "dry_run": True, "number": None} == read
    again, _ = imported(csv_of(rows), *today)
    assert len(again["known"]) == len(rows) - 1
    url = f"sqlite:///{tmp_path / 'reviews.db'}"
    listed = json.loads(reviewloop("product", "list", "--db", url, "--json").stdout)["products"]
    assert {one["name"]: one["looked_for"] for one in listed} == {
        "特仑苏": True, "光明酸奶": False, "蒙牛早餐奶": True, "雀巢怡养": True
    }  # fmt: skip
    reviewloop("product", "edit", "光明酸奶", "--all-sites", "--db", url)
    assert imported(csv_of(rows), *today)[0]["doubtful"] == []


def test_a_category_of_a_row_comes_before_the_category_of_all(imported):
    rows = [["商品名称", "类别"], ["特仑苏", "汽车"], ["光明酸奶", ""], ["蒙牛早餐奶", "说不清"]]
    told, _ = imported(csv_of(rows), "--category", "restaurant", "--dry-run")
    assert [one["category"] for one in told["added"]] == ["car", "restaurant", "restaurant"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--ignore", "没有"), "no column '没有' to ignore; it has 商品名称, 优先级"),
        (("--ignore", "E"), "no column 'E' to ignore"),
        (("--map", "pages=没有"), "no column '没有' for pages"),
        (("--map", "price=优先级"), "FIELD one of name, keywords"),
        (("--ignore", "商品名称"), "no column 商品名称"),
        (("--map", "name="), "no column 商品名称"),
        (("--category", "dairy"), "dairy"),
    ],
)
def test_wrong_options_say_what_is_right(imported, options, said):
    told, status = imported(csv_of([["商品名称", "优先级"], ["特仑苏", "高"]]), *options)
    assert status == 2
    assert said in told


def test_columns_are_mapped_and_ignored_by_name_and_letter(imported):
    data = xlsx_of({"Sheet1": [["货", "商品名称", "急不急", "页数"], *rows_of("A", NAMES, ["高"], ["很多"])]})
    told, _ = imported(data, "--map", "priority=急不急", "--ignore", "页\u200b数", "--dry-run")
    assert told["columns"] == {"name": "商品名称", "priority": "急不急"}
    assert (told["unused"], told["ignored"], told["added"][0]["priority"]) == (["货"], [], 10)
    told, _ = imported(data, "--map", "priority=C", "--ignore", "D", "--ignore", "A", "--dry-run")
    assert (told["columns"]["priority"], told["unused"], told["ignored"]) == ("急不急", [], [])
