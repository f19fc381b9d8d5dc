from datetime import timedelta
from io import BytesIO

import pytest
from workbooks import workbook

from app.actions.products import RefusedProduct, new_product, period
from app.importing.columns import ColumnChoice
from app.importing.product_files import open_product_file
from app.importing.product_rows import ProductRows
from splitter.errors import InputError


def read(text, encoding="utf-8", column=None):
    data = text if isinstance(text, bytes) else text.encode(encoding)
    columns = ColumnChoice({} if column is None else {"name": column})
    _, lines = open_product_file(BytesIO(data), "products.csv", columns=columns)
    rows = ProductRows({}, {})
    return [(line[0], rows.read(*line)) for line in lines]


HEADER = "name,keywords,aliases,priority,pages,recrawl\r\n"


def test_a_full_row():
    [(line, product)] = read(HEADER + "雀巢怡养,雀巢、怡养,特仑苏|雀巢中老年奶粉,-3,2,12h\r\n")
    assert line == 2
    assert product.name == "雀巢怡养"
    assert product.keywords == product.own_keywords == ("雀巢", "怡养")
    assert product.alias_keywords == (("蒙牛", "特仑苏"), ("雀巢", "中老年", "奶粉"))
    assert (product.priority, product.pages, product.recrawl_every) == (-3, 2, timedelta(hours=12))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings(encoding):
    rows = read(HEADER + "光明高钙牛奶,,,,,\n", encoding)
    assert [p.name for _, p in rows] == ["光明高钙牛奶"]
    assert [p.name for _, p in read("光明高钙牛奶\n特仑苏", encoding)] == ["光明高钙牛奶", "特仑苏"]


def test_every_refusal_names_its_line_and_the_good_ones_stay():
    rows = read(
        HEADER
        + '光明高钙牛奶,,,,,\n\n250ml,,,,,\n特仑苏,250ml,250ml,?,?,soon\n"特,仑",,,,,,,x\n'
        + f"{'长' * 201},,,,,\n,牛奶,,,,\n蒙牛早餐奶,,,,,\n"
    )
    refused = {line: str(row.why) for line, row in rows if isinstance(row, RefusedProduct)}
    assert [p.name for _, p in rows if not isinstance(p, RefusedProduct)] == [
        "光明高钙牛奶",
        "特仑苏",
        "蒙牛早餐奶",
    ]
    assert list(refused) == [4, 6, 7, 8]
    for line, said in {4: "keyword", 6: "quotes", 7: "201", 8: "empty"}.items():
        assert said in refused[line]


def test_a_table_of_unknown_columns_is_no_numbered_list():
    rows = "".join(f"{n}\t特仑苏{n}\tP0\t每周\n" for n in range(1, 9))
    with pytest.raises(InputError, match="row 1 holds ID, 货, 急, 频率"):
        read(f"ID\t货\t急\t频率\n{rows}")
    assert [one.name for _, one in read("1\t特仑苏\n2\t光明酸奶\n3\t蒙牛早餐奶\n")] == [
        "特仑苏",
        "光明酸奶",
        "蒙牛早餐奶",
    ]


def test_keywords_of_a_row_stand_for_those_of_its_name():
    rows = read(
        "name,keywords,aliases\n250ml,雀巢、奶粉、！,\n250ml,！,\n特仑苏,\x01、蒙牛,250ml、特仑苏纯牛奶、无\n"
    )
    (_, named), (_, refused), (_, partly) = rows
    assert (named.name, named.keywords) == ("250ml", ("雀巢", "奶粉"))
    assert isinstance(refused, RefusedProduct)
    assert (partly.own_keywords, partly.aliases) == (("蒙牛",), ("特仑苏纯牛奶",))


def test_a_line_is_counted_where_a_quoted_cell_holds_a_line_break():
    rows = read('name\n"蒙牛\n早餐奶"\n250ml\n')
    assert [line for line, _ in rows] == [3, 4]


def test_plain_lines_pass_over_blanks_and_comments():
    rows = read("# dairy\n\n  特仑苏  \n蒙牛早餐奶,250ml\n")
    assert [(line, p.name) for line, p in rows] == [(3, "特仑苏"), (4, "蒙牛早餐奶,250ml")]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xd0\xcf\x11\xe0 old", "xlsx"),
        (b"PK\x03\x04 broken", "no xlsx"),
        (b"a\0b", "no text"),
        (bytes(range(256)) * 50, "no text"),
    ],
)
def test_what_is_no_text_is_refused_whole(data, said):
    with pytest.raises(InputError, match=said):
        read(data)


@pytest.mark.parametrize("header", ["", "name\n"])
def test_a_line_that_is_no_text_costs_no_others(header):
    rows = read(header.encode() + "特仑苏\n".encode() + b"\xff\xff\n")
    assert [p.name for _, p in rows if not isinstance(p, RefusedProduct)] == ["特仑苏"]
    assert [(line, "UTF-8" in str(p.why)) for line, p in rows if isinstance(p, RefusedProduct)] == [
        (header.count("\n") + 2, True)
    ]


def test_columns_behind_the_last_name_cost_no_name():
    rows = read(
        "商品名称,优先级\n特仑苏,高,先查\n光明酸奶,低,张三\n美的, 空调,高,李四\n蒙牛早餐奶,中,王五\n雀巢怡养,低\n"
    )
    assert [one.name for _, one in rows if not isinstance(one, RefusedProduct)] == [
        "特仑苏", "光明酸奶", "蒙牛早餐奶", "雀巢怡养"
    ]  # fmt: skip
    assert [line for line, one in rows if isinstance(one, RefusedProduct)] == [4]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "，"])
@pytest.mark.parametrize("header", ["商品名称", "product", "Product Name", "产品"])
def test_headers_and_delimiters_people_use(header, delimiter):
    text = f"编号{delimiter}{header}{delimiter}优先级\n17{delimiter}特仑苏{delimiter}4\n"
    assert [(line, p.name, p.priority) for line, p in read(text)] == [(2, "特仑苏", 4)]


def test_a_workbook():
    data = workbook(["编号", "商品名称", "页数"], [17.0, "特仑苏", 2], [None, None, None], [18, "250ml", 2])
    (_, product), (line, refused) = read(data)
    assert (product.name, product.pages) == ("特仑苏", 2)
    assert (line, refused.name) == (4, "250ml")
    assert [p.name for _, p in read(workbook(["特仑苏"], ["蒙牛早餐奶"]))] == [
        "特仑苏",
        "蒙牛早餐奶",
    ]


def test_a_table_whose_columns_are_not_known_is_refused_whole():
    text = "货号,说明,价格\n17,特仑苏,59\n18,蒙牛早餐奶,39\n"
    with pytest.raises(InputError, match=r"row 1 holds 货号, 说明, 价格.*--column"):
        read(text)
    rows = read(text, column="说明")
    assert [p.name for _, p in rows] == ["特仑苏", "蒙牛早餐奶"]
    with pytest.raises(InputError, match="no column 名"):
        read(text, column="名")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("59.90", "price"),
        ("￥59", "price"),
        ("690,123", "number"),
        ("https://a.cn/1", "address"),
        ("2026-01-02", "day"),
    ],
)
def test_what_looks_like_another_column_is_refused_line_by_line(cell, said):
    (_, refused), (_, taken) = read(f'name\n"{cell}"\n特仑苏\n')
    assert isinstance(refused, RefusedProduct)
    assert said in str(refused.why)
    assert taken.name == "特仑苏"


@pytest.mark.parametrize("name", ["特仑\0苏", "特仑\x1b[31m苏", "特仑\udcff苏"])
def test_names_no_database_or_terminal_should_see(name):
    with pytest.raises(InputError, match="control character"):
        new_product(name)


@pytest.mark.parametrize(
    ("text", "seconds"), [("7d", 604800), ("12H", 43200), (" 30 m ", 1800), ("2w", 1209600)]
)
def test_periods(text, seconds):
    assert period(text).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "0d", "1.5h", "999999d"])
def test_what_is_no_period(text):
    with pytest.raises(InputError):
        period(text)
