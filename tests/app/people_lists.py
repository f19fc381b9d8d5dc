"""Lists of products as people in China keep them: titles, roles, notes, totals, merged cells, words for numbers.

Each is made of the same products, so that a test can ask which of them were lost.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from typing import Any

from openpyxl import Workbook

NAMES = (
    "特仑苏", "光明高钙牛奶", "蒙牛早餐奶", "雀巢怡养奶粉", "海天金标生抽", "农夫山泉矿泉水", "三只松鼠每日坚果",
    "美的空调", "小米手环9", "戴森V12吸尘器", "安踏跑步鞋", "飞鹤星飞帆奶粉", "苏泊尔电饭煲", "华为Mate70手机",
    "大疆Mini4无人机", "比亚迪海豹", "海底捞火锅", "滴滴出行", "云南白药牙膏", "白象方便面",
)  # fmt: skip
Rows = list[list[Any]]


def rows_of(*columns: Iterable[Any]) -> Rows:
    """Return a row for each product; a column shorter than the list of products begins again."""
    endless = [cycle(list(column)) for column in columns]
    return [[next(column) for column in endless] for _ in NAMES]


def numbers() -> range:
    """Return the numbers that people put before their entries."""
    return range(1, len(NAMES) + 1)


def csv_of(rows: Iterable[Sequence[Any]], encoding: str = "utf-8", delimiter: str = ",") -> bytes:
    """Return rows as a CSV file."""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return text.getvalue().encode(encoding)


def xlsx_of(sheets: dict[str, Rows], *merged: str) -> bytes:
    """Return a workbook; `merged` are ranges of its last sheet that are one cell each."""
    book = Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    for area in merged:
        sheet.merge_cells(area)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def _levels() -> bytes:
    return csv_of([["序号", "商品名称", "优先级"], *rows_of(numbers(), NAMES, "高中低")])


def _gbk() -> bytes:
    rows = rows_of(numbers(), NAMES, ["紧急", "一般", "不急"], ["张三", "李四"], ["", "客诉多", "抽检不合格"])
    return csv_of([["序号", "产品名称", "紧急程度", "负责人", "备注"], *rows], "gbk")


def _titled() -> bytes:
    rows = rows_of(numbers(), NAMES, ["P0", "P1", "P2", "P3"], ["2026-03-01", "2026/3/2", "3月3日"])
    title: Rows = [["2026年二季度质量监测商品清单"], ["填报单位：质检院", None, "日期：", "2026年3月31日"]]
    foot: Rows = [["合计", None, None, 20], ["制表人：张三", None, "审核人：李四"]]
    return xlsx_of(
        {"清单": [*title, ["序号", "商品名称", "优先级", "登记日期"], *rows, *foot]}, "A1:D1", "A25:C25"
    )


def _grouped_header() -> bytes:
    header: Rows = [
        ["序号", "基本信息", None, "采集要求", None, None],
        [None, "品名", "品牌", "等级", "页数", "重采周期"],
    ]
    rows = rows_of(
        numbers(), NAMES, ["甲", "乙"], "ABC", ["3页", "前2页", "默认"], ["每周", "每天", "不重采"]
    )
    return xlsx_of({"Sheet1": header + rows}, "A1:A2", "B1:C1", "D1:F1")


def _notes_before() -> bytes:
    notes: Rows = [
        ["填写说明"], ["1", "商品名称必填，一行一个"], ["2", "优先级填高、中、低"], ["3", "有问题请联系王五"]
    ]  # fmt: skip
    rows = rows_of(numbers(), NAMES, ["1级", "2级", "3级"], ["王五", "赵六"])
    return xlsx_of({"填写说明": notes, "商品": [["编号", "商品名称（必填）", "优先级", "录入人"], *rows]})


def _roles() -> bytes:
    rows = rows_of(
        NAMES, ["市场部", "质量部"], ["张三（组长）", "李四"], ["13800000000"], ["高", "中"], ["√", ""]
    )
    return csv_of([["商品", "提报部门", "责任人", "联系电话", "优先级", "已核对"], *rows], "gb18030")


def _wide_characters() -> bytes:
    rows = rows_of(numbers(), NAMES, ["１", "２", "３"], ["－"])
    return csv_of([["序　号", "商品名称\u200b", "\ufeff优先级", "备\u00a0注"], *rows], "utf-8-sig")


def _platforms() -> bytes:
    rows = rows_of(
        NAMES, ["京东", "京东、天猫", "知乎；微博", "全部"], ["重要", "普通", "次要"], [2, "", "3"]
    )
    return xlsx_of(
        {
            "监测对象": [
                ["监测对象", "产品名称", "平台", "重要程度", "页数"],
                *[["食品", *row] for row in rows],
            ]
        }
    )


def _dates() -> bytes:
    rows = rows_of(
        numbers(),
        NAMES,
        ["2026-01-02", "2026.1.3", "1月4日", "46030"],
        ["待定", "长期", "2026-12-31"],
        ["高", "较高"],
    )
    return csv_of([["序号", "名称", "开始日期", "截止日期", "优先级"], *rows], delimiter="\t")


def _semicolons() -> bytes:
    rows = rows_of(NAMES, ["蒙牛、牛奶", "", "质量|投诉"], ["H", "M", "L"], ["否", "每月一次", "7天"])
    return csv_of([["商品名称", "关键词", "优先级", "重采"], *rows], "utf-8", ";")


def _sections() -> bytes:
    body: Rows = []
    for number, row in enumerate(rows_of(numbers(), NAMES, ["★★★", "★★", "★"])):
        if number % 5 == 0:
            body.append([f"{'一二三四'[number // 5]}、第{number // 5 + 1}类"])
        body.append(row)
        if number % 5 == 4:
            body.append(["小计", None, 5])
    return xlsx_of(
        {"汇总": [["序号", "商品名称", "优先级"], *body, ["总计", None, 20], ["注：本表每月更新"]]}
    )


def _merged_groups() -> bytes:
    rows = [
        [
            None if place % 4 else "乳制品",
            name,
            "高" if place % 4 == 0 else None,
            "质检一科" if place % 4 == 0 else None,
        ]
        for place, name in enumerate(NAMES)
    ]
    return xlsx_of(
        {"清单": [["类别", "商品名称", "优先级", "承办科室"], *rows]},
        *(f"{column}{row}:{column}{row + 3}" for column in "ACD" for row in (2, 6, 10, 14, 18)),
    )


def _categories() -> bytes:
    rows = rows_of(
        NAMES, ["食品", "乳品", "家用电器", "汽车", "其它", "数码/手机"], ["特急", "加急", "平急"], ["不限"]
    )
    return csv_of([["产品", "类别", "缓急", "站点"], *rows], "gbk")


def _aliases() -> bytes:
    rows = rows_of(
        numbers(),
        NAMES,
        ["无", "-", "特仑苏纯牛奶/金特仑苏", "500ml"],
        ["250ml*12", "/"],
        ["高（领导关注）", "中（例行）"],
    )
    return xlsx_of({"Sheet1": [["序号", "商品名称", "别名", "规格", "优先级"], *rows]})


def _english() -> bytes:
    rows = rows_of(
        numbers(), NAMES, ["High", "Medium", "Low", "urgent"], ["weekly", "daily", "once"], ["Tom", "Ann"]
    )
    return csv_of([["No.", "Product Name", "Priority", "Recrawl", "Owner"], *rows])


def _blank_rows() -> bytes:
    body: Rows = []
    for row in rows_of(numbers(), NAMES, ["第一优先", "第二优先", "第三优先"], ["√"]):
        body += [row, [None, None, None, None]]
    return xlsx_of(
        {"封面": [["商品清单"], ["机密"]], "数据": [[], ["序号", "商 品 名 称", "优 先 级", "抽检"], *body]}
    )


def _sample() -> bytes:
    rows = rows_of(
        NAMES,
        ["高", "?", "见备注", "看情况", ""],
        ["三页", "很多", "0", ""],
        ["按需", "随时", "每季度"],
        ["说不清"],
    )
    return csv_of([["商品名称", "优先级", "页数", "重采周期", "类别"], *rows])


def _remarks() -> bytes:
    rows = rows_of(
        numbers(),
        NAMES,
        ["中-高", "低→中", "P1/高"],
        ["价格29.9，包装破损\n客户要求先查", "；；", "“重点”"],
        ["是", "否"],
    )
    return csv_of([["序号", "商品名称", "优先级", "备注", "是否自营"], *rows], "gb18030")


def _crosswise() -> bytes:
    rows = rows_of(["质检院", None], NAMES, [1, 2, 3], ["甲类", "乙类", "丙类"], ["2026-03"])
    return xlsx_of(
        {
            "表1": [
                ["单位", "样品名称", "批次", "等级", "月份"],
                *rows,
                [None, "以下空白"],
                [None, None, "填表人：张三"],
            ]
        }
    )


def _utf16() -> bytes:
    rows = rows_of(numbers(), NAMES, ["Ⅰ", "Ⅱ", "Ⅲ"], ["淘宝", "拼多多"], ["@小王", "#急"])
    return csv_of([["序号", "宝贝名称", "优先级", "店铺", "标签"], *rows], "utf-16", "\t")


LISTS: dict[str, Callable[[], bytes]] = {
    "levels in words": _levels,
    "GBK with a person responsible": _gbk,
    "title, totals and signatures": _titled,
    "header in two merged rows": _grouped_header,
    "notes on the first sheet": _notes_before,
    "roles and telephones": _roles,
    "characters that nobody sees": _wide_characters,
    "platforms": _platforms,
    "dates": _dates,
    "semicolons and periods": _semicolons,
    "sections with subtotals": _sections,
    "merged groups": _merged_groups,
    "categories": _categories,
    "aliases that are none": _aliases,
    "English header": _english,
    "cover and blank rows": _blank_rows,
    "values that nobody understands": _sample,
    "remarks with marks": _remarks,
    "grades by letters": _crosswise,
    "UTF-16 of a shop": _utf16,
}
