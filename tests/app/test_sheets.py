"""Tables as people have them: titles above, totals below, covers before, headers of two rows."""

from __future__ import annotations

from io import BytesIO

import pytest
from people_lists import xlsx_of
from workbooks import workbook

from app.files.table_files import delimiter_of
from app.importing.columns import ColumnChoice
from app.importing.product_files import open_product_file
from app.importing.review_columns import field_columns
from app.importing.review_files import ImportedLine, open_review_file
from app.importing.sheets import TableChoice
from splitter.errors import InputError

TITLE = ["2026年一季度 质量监测商品清单"]
HEADER = ["序号", "商品名称", "关键词", "类别"]
ENTRY = [1, "特仑苏", "蒙牛、特仑苏", "食品"]
PLAIN = [(4, "特仑苏", "蒙牛、特仑苏")]
CSV = "2026年一季度清单,,\n日期：3月31日,,\n序号,商品名称,关键词\n1,特仑苏,蒙牛、特仑苏\n合计,,\n"


def products(data, sheet=None, header_row=None, column=None):
    """Return the table that is found, and the number, name and keywords of each line."""
    columns = ColumnChoice({} if column is None else {"name": column})
    found, lines = open_product_file(BytesIO(data), "x", TableChoice(sheet, header_row), columns)
    lines = [(line, cells.get("name", ""), cells.get("keywords", "")) for line, cells, _ in lines]
    return found, lines


FOUND = {
    "title": (workbook(TITLE, ["日期：2026年3月31日"], HEADER, ENTRY), 3, PLAIN),
    "title of several cells": (workbook(["单位：", "质检院", "日期：", "3月"], ["一", "二"], HEADER, ENTRY), 3, PLAIN),
    "blank rows": (workbook([], ["", "", ""], HEADER, ENTRY), 3, PLAIN),
    "group above": (
        workbook(TITLE, ["序号", "商品", None, "类别"], [None, "商品名称", "关键词", None], ENTRY), 3, PLAIN,
    ),
    "names in the upper row": (
        workbook(TITLE, ["序号", "商品名称", "检索", None, "类别"], [None, None, "关键词", "别名"], ENTRY), 2, PLAIN,
    ),
    "marks": (workbook(TITLE, [], ["编号", "*商品 名称（必填）", "关键词：", "类别"], ENTRY), 3, PLAIN),
    "English": (workbook(TITLE, [], ["No.", "Product Name", "Keywords", "Type"], ENTRY), 3, PLAIN),
    "foot": (
        workbook(TITLE, [], HEADER, ENTRY, ["合 计", None, 4], [], ["制表人：张三", None, None, "审核人：李四"],
                 [None, "注：含赠品"], HEADER, ["二、数码"], ["共1种", None, None, "x"]), 3, PLAIN,
    ),
    "an entry without a name": (
        workbook(["序号", "商品名称", "检索", None], [1, None, "x", "y"]), 1, [(2, "", "")],
    ),
    "one column": (workbook(TITLE, ["商品名称"], ["特仑苏"]), 2, [(3, "特仑苏", "")]),
    "a list": (workbook([None, "特仑苏"], [None, "蒙牛早餐奶"]), 0, [(1, "特仑苏", ""), (2, "蒙牛早餐奶", "")]),
    "CSV": (CSV.encode(), 3, PLAIN),
    "GBK": (CSV.encode("gbk"), 3, PLAIN),
    "tabs": (CSV.replace(",", "\t").encode("utf-16"), 3, PLAIN),
    "semicolons": (
        "一季度清单，2026年\n序号;商品名称;关键词\n\n1;特仑苏;蒙牛、特仑苏\n".encode("gb18030"), 2, PLAIN,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("data", "row", "lines"), FOUND.values(), ids=FOUND)
def test_a_header_is_found_by_its_words(data, row, lines):
    found, read = products(data)
    assert (found.header_row, read) == (row, lines)


SHEETS = {
    "封面": [["质检院"], ["商品清单"]],
    "_字典": [HEADER, ENTRY],
    "乳品": [TITLE, [], HEADER, ENTRY],
    "饮料": [["品名"], ["可乐"]],
}
UNKNOWN = workbook(TITLE, ["货", "说明", "B"], ["A1", "特仑苏", "x"])


@pytest.mark.parametrize(
    ("data", "choice", "sheet", "row", "names"),
    [
        (workbook(**SHEETS), {}, "乳品", 3, ["特仑苏"]),
        (workbook(**SHEETS), {"sheet": "饮料"}, "饮料", 1, ["可乐"]),
        (workbook(**SHEETS), {"sheet": "4"}, "饮料", 1, ["可乐"]),
        (workbook(**SHEETS), {"sheet": "_字典"}, "_字典", 1, ["特仑苏"]),
        (UNKNOWN, {"column": "说明"}, "Sheet", 2, ["特仑苏"]),
        (UNKNOWN, {"header_row": 2, "column": "A"}, "Sheet", 2, ["A1"]),
        (UNKNOWN, {"header_row": 2, "column": "B"}, "Sheet", 2, ["x"]),
        (workbook(["A1", "特仑苏"]), {"header_row": 0, "column": "B"}, "Sheet", 0, ["特仑苏"]),
        (workbook(*[["x"]] * 40, HEADER, ENTRY), {"header_row": 41}, "Sheet", 41, ["特仑苏"]),
        (workbook(TITLE, [], HEADER, ENTRY), {"column": "D"}, "Sheet", 3, ["食品"]),
    ],
)
def test_sheet_row_and_column_as_a_person_says(data, choice, sheet, row, names):
    found, read = products(data, **choice)
    assert (found.table.sheet, found.header_row) == (sheet, row)
    assert [name for _, name, _ in read] == names


def test_what_is_not_read_is_said():
    found, _ = products(workbook(**SHEETS))
    assert any("封面, 饮料" in str(note) for note in found.notes)
    found, _ = products(workbook(HEADER, ENTRY, ["合计"], *[[None]] * 1200, ENTRY))
    assert [("row 3" in note, "rows 3" in note) for note in map(str, found.notes)] == [
        (True, False),
        (False, True),
        (False, False),
    ]
    assert found.unused == ["序号"]
    assert "not used: 序号" in str(found.notes[-1])


@pytest.mark.parametrize(
    ("data", "choice", "said"),
    [
        (UNKNOWN, {}, "商品名称.*Sheet, row 2 holds 货, 说明, B.*--sheet, --header-row, --column"),
        (UNKNOWN, {"column": "A"}, "no column A .*--header-row"),
        (workbook(["货", "说明", "类别"], ["A1", "特仑苏", "商品"]), {}, "row 1 holds 货, 说明, 类别"),
        (UNKNOWN, {"column": "没有"}, "no column 没有 "),
        (UNKNOWN, {"header_row": 9}, "row 9 is empty"),
        (UNKNOWN, {"header_row": 0}, "--column"),
        (workbook(**SHEETS), {"sheet": "没有"}, "no sheet 没有; it has 封面, _字典, 乳品, 饮料"),
        (b"name\nx\n", {"sheet": "1"}, "no sheet 1"),
        ("货,价\n牛奶,3\n奶粉,4\n".encode(), {}, "row 1 holds 货, 价"),
    ],
)
def test_an_unclear_file_is_refused_with_what_to_say(data, choice, said):
    with pytest.raises(InputError, match=said):
        products(data, **choice)


@pytest.mark.parametrize(
    ("sample", "delimiter"),
    [
        ("商品名称，关键词\n特仑苏，蒙牛\n", "，"),
        ("body\n结块了，客服不理\n好喝，真的\n", ","),
        ("清单，2026\nname;keywords\n特仑苏;蒙牛\n", ";"),
        ("标题\na\tb\n1，2\t3\n", "\t"),
        ('name;note\n"a,b,c";x\n"d,e,f";y\n', ";"),
        ("name;note\n特仑苏\n蒙牛早餐奶\n", ";"),
        ("特仑苏\n", ","),
        ("", ","),
    ],
)
def test_the_delimiter_is_the_one_that_makes_columns(sample, delimiter):
    assert delimiter_of(sample) == delimiter


REVIEWS = [
    ["评价明细"],
    ["导出时间", None, "2026-04-01"],
    ["序号", "商品名称", "评价内容", "评分"],
    [1, "特仑苏", "很好喝", 5],
    ["合计", None, None, 1],
]


@pytest.mark.parametrize(
    ("data", "choice", "said", "row"),
    [
        (workbook(说明=[["评价"]], 评价=REVIEWS), None, {}, 3),
        (workbook(*REVIEWS), TableChoice(header_row=3), {}, 3),
        (workbook(TITLE, ["货", "留言", "评价"], ["特仑苏", "很好喝", "好"]), None, {"body": "留言"}, 2),
        (workbook(TITLE, ["货", "留言"], ["特仑苏", "很好喝"]), None, {}, 2),
        ("一季度,,\n商品名称,评价内容,评分\n特仑苏,很好喝,5\n".encode("gbk"), None, {}, 2),
    ],
)
def test_reviews_are_found_in_the_same_way(data, choice, said, row):
    file = open_review_file(BytesIO(data), "x", choice, ColumnChoice(said))
    assert file.found is not None
    assert file.found.header_row == row
    [record] = file.records
    assert isinstance(record, ImportedLine)
    assert {"特仑苏", "很好喝"} <= set(record.cells.values())


@pytest.mark.parametrize(
    ("header", "areas"),
    [
        ([["商品名称", "评价内容", "评分"]], ()),
        ([["评价清单"], ["商品名称", "评价内容", "评分"]], ("A1:C1",)),
        ([["商品名称", "评价", None], [None, "评价内容", "评分"]], ("A1:A2", "B1:C1")),
        ([["商品名称", "评价内容", "其他"], [None, None, "评分"]], ("A1:A2", "B1:B2")),
        ([["商品名称", "评价内容", "评分"], [None, None, None]], ("A1:A2", "B1:B2", "C1:C2")),
    ],
)
def test_the_rows_below_a_merged_name_have_it(header, areas):
    entries = [["特仑苏", "很好喝", 5], [None, "太甜", 3], [None, "还行", 4]]
    first = len(header) + 1
    data = xlsx_of({"评价": [*header, *entries]}, *areas, f"A{first}:A{first + 2}")
    records = [*open_review_file(BytesIO(data), "x").records]
    assert [one.cells["商品名称"] for one in records] == ["特仑苏"] * 3
    assert [one.cells["评价内容"] for one in records] == ["很好喝", "太甜", "还行"]


BODY = ["商品名称", "评价内容", "评分"]
REVIEW = ["特仑苏", "很好喝", 5]
OTHERS = [["序号", "内容", "时间"], [1, "每月更新一次", "2026-01-01"], [2, "有问题找张三", "2026-01-02"]]
LIST = [["序号", "商品名称", "评分", "买家留言", "昵称"], [1, "特仑苏", 5, "很好喝", "小王"]]


@pytest.mark.parametrize(
    ("sheets", "sheet"),
    [
        ({"说明": OTHERS, "清单": LIST}, "清单"),
        ({"Sheet1": OTHERS, "Sheet2": LIST}, "Sheet2"),
        ({"Sheet1": OTHERS, "Sheet2": [BODY, REVIEW]}, "Sheet2"),
        ({"填写说明": [BODY, ["必填", "必填", "选填"]], "评价": [BODY, REVIEW]}, "评价"),
        (
            {"商品": [["商品名称", "平台", "链接", "日期"], ["a", "b", "c", "d"]], "评价": [BODY, REVIEW]},
            "评价",
        ),
        ({"封面": [["质检院"], ["商品清单"]], "乳品": [TITLE, [], HEADER, ENTRY]}, "乳品"),
    ],
)
def test_both_imports_find_the_sheet_that_holds_what_they_need(sheets, sheet):
    data = workbook(**sheets)
    found = open_review_file(BytesIO(data), "x").found
    assert found is not None
    assert found.table.sheet == sheet
    if "商品" not in sheets:
        assert products(data)[0].table.sheet == sheet


SPELLINGS = (
    "商品名称\u200b", "\ufeff商品名称", "商\u200d品\u2060名称", "商品\u00a0名称", "商品\u3000名称", "　商品名称　",
    "商品\u00ad名称", "商品名称\u200e", "\u3164商品名称", "商 品 名 称", "商品\n名称", "*商品名称", "【商品名称】",
    "商品名称：", "商品名称（必填）", "商品名称 (30字内)", "商品名称/Product Name", "Ｐｒｏｄｕｃｔ　Ｎａｍｅ",
    "PRODUCT_NAME",
    "商品名称 Name",
    "产品 (Product)", "“商品名称”",
)  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_header_is_read_as_a_person_reads_it(spelling):
    data = workbook(["序号", spelling, "评\u200b价内容"], [1, "特仑苏", "很好喝"])
    assert [name for _, name, _ in products(data)[1]] == ["特仑苏"]
    file = open_review_file(BytesIO(data), "x")
    fields = field_columns(file.columns, ColumnChoice({"body": "评价 内容"}), "x")
    [record] = file.records
    assert isinstance(record, ImportedLine)
    assert [fields.text(name, record.cells) for name in ("product", "body")] == ["特仑苏", "很好喝"]


@pytest.mark.parametrize("cell", ["\u200b", "\ufeff", "\u00a0", "\u3000", "\u2060 \u200d", "\u3164"])
def test_a_cell_of_characters_that_nobody_sees_is_empty(cell):
    data = workbook(HEADER, ENTRY, [2, cell, cell, cell], [None, cell, None, None])
    assert [(line, name) for line, name, _ in products(data)[1]] == [(2, "特仑苏"), (3, "")]


@pytest.mark.parametrize(
    "column", ["店铺", "来源", "平台", "网站", "数据来源", "店铺名称", "渠道", "来源平台"]
)
def test_a_column_says_where_a_review_comes_from(column):
    header = ["商品名称", "评价内容", column, "备注"]
    fields = field_columns(header, ColumnChoice(), "x")
    assert fields.columns["site"] == column
    assert fields.list_unused(header, ColumnChoice()) == ["备注"]
    assert fields.list_unused(header, ColumnChoice(ignored=["备注"])) == []


def test_columns_are_named_by_letter_also_below_a_header_with_gaps():
    data = workbook(["序号", None, "货", "留言", "留言"], [1, "x", "特仑苏", "好", "很好喝"])
    choice = ColumnChoice({"product": "C", "body": "E", "title": "B"})
    file = open_review_file(BytesIO(data), "x", TableChoice(header_row=1), choice)
    fields = field_columns(file.columns, choice, "x")
    assert fields.columns == {"product": "货", "body": "E", "title": "B"}
    [record] = file.records
    assert isinstance(record, ImportedLine)
    assert [fields.text(name, record.cells) for name in fields.columns] == ["特仑苏", "很好喝", "x"]
