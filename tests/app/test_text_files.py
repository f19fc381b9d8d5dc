"""Texts that people bring: the encodings that they are in, lines of any length, and quotes that are never closed."""

from __future__ import annotations

import io
import tracemalloc

import pytest

from app.files import table_files, text_files
from app.files.table_files import BadRow, open_tables
from app.importing.product_files import open_product_file
from app.importing.review_files import ImportedLine, open_review_file
from tasks.reading.decode import decode

CHINESE = (
    "商品名称,评论内容\n光明高钙牛奶,包装破了，客服不理\n特仑苏,很好喝，孩子喜欢\n蒙牛早餐奶,日期不新鲜\n"
)
TRADITIONAL = "商品名稱,評論內容\n鮮乳坊全脂鮮乳,出貨很快，包裝完整\n義美豆奶,味道變了，客服不處理\n"
JAPANESE = (
    "name,body\n明治おいしい牛乳,とてもおいしいです。毎日飲んでいます\n森永アイス,届いた時に溶けていました\n"
)
KOREAN = "name,body\n서울우유,정말 맛있습니다. 다시 살 거예요\n매일두유,포장이 찢어져 있었어요\n"
FRENCH = "name,body\nCafé crème,très déçu de l'hôtel\nThé glacé,à éviter\n"
UNICODE = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32")
WRITTEN_IN = {
    CHINESE: ("gb2312", "gbk", "gb18030", *UNICODE),
    TRADITIONAL: ("big5", "gbk", *UNICODE[:5]),
    JAPANESE: ("shift_jis", "euc_jp", "iso2022_jp", *UNICODE[:5]),
    KOREAN: ("euc_kr", *UNICODE[:5]),
    FRENCH: ("cp1252", *UNICODE[:5]),
}


def cells(text: str) -> list[tuple[str, ...]]:
    return [tuple(line.split(",")) for line in text.splitlines()]


def read(data: bytes) -> list[tuple[str, ...] | int]:
    """Return the cells of each row, and the line of each that is refused."""
    rows = open_tables(io.BytesIO(data), "x.csv")[0].rows()
    return [row.line if isinstance(row, BadRow) else row.cells for row in rows]


@pytest.mark.parametrize(
    ("text", "encoding"), [(text, name) for text, names in WRITTEN_IN.items() for name in names]
)
def test_a_table_is_read_in_each_encoding_as_a_page_is(text, encoding):
    data = text.encode(encoding)
    assert read(data) == cells(text)
    if encoding != "utf-32":
        assert decode(data, {}).text == text


BAD = {
    "utf-8": (b"\xff", b"\xe5\x85", b"\x81", b"\xfe\xfe"),
    "utf-8-sig": (b"\xc0\x80", b"\xed\xa0\x80"),
    "gbk": (b"\xff", b"\x81", b"\xfe"),
    "big5": (b"\xff", b"\x81", b"\xfe"),
    "shift_jis": (b"\x81", b"\xef", b"\xf0"),
    "euc_kr": (b"\xff", b"\x81", b"\xc9"),
}


@pytest.mark.parametrize(("encoding", "bad"), [(name, bad) for name, many in BAD.items() for bad in many])
@pytest.mark.parametrize("rows", [2, 2000])
def test_a_bad_byte_costs_its_line_alone(encoding, bad, rows):
    text = {"big5": TRADITIONAL, "shift_jis": JAPANESE, "euc_kr": KOREAN}.get(encoding, CHINESE)
    head, *lines = text.splitlines(keepends=True)
    text = head + "".join(lines) * rows
    whole = text.encode(encoding)
    end = len((head + lines[0][:2]).encode(encoding))
    expected = cells(text)
    found = read(whole[:end] + bad + b"," + whole[end:])
    assert found[0] == expected[0]
    assert found[1] == 2
    assert found[2:] == expected[2:]


@pytest.mark.parametrize("other", [(CHINESE, "utf-8"), (CHINESE, "gbk")])
@pytest.mark.parametrize("main", [(CHINESE, "utf-8"), (CHINESE, "gbk")])
def test_lines_in_another_encoding_are_refused(main, other):
    if main == other:
        return
    text, encoding = main
    data = text.encode(encoding) * 2 + other[0].encode(other[1])
    assert read(data) == [*cells(text), *cells(text), 9, 10, 11, 12]


def test_reviews_and_names_are_read_by_the_same_question():
    data = CHINESE.encode().replace("很好喝".encode(), "很好喝".encode() + b"\xff")
    records = list(open_review_file(io.BytesIO(data), "x").records)
    assert [isinstance(record, ImportedLine) for record in records] == [True, False, True]
    names = "特仑苏\n光明高钙牛奶\n蒙牛早餐奶\n".encode()
    _, lines = open_product_file(io.BytesIO(names[:10] + b"\xff" + names[10:]), "x")
    assert [bool(why) for _, _, why in lines] == [False, True, False]
    _, lines = open_product_file(io.BytesIO("서울우유\n매일두유\n바나나맛우유\n".encode("euc_kr")), "x")
    assert [cells["name"] for _, cells, _ in lines] == ["서울우유", "매일두유", "바나나맛우유"]


HEAD = "name,body\n"
ROWS = "a,good\nb,bad\n"
QUOTES = {
    "at the end of the file": (HEAD + 'a,"good\n' + ROWS, [2, ("a", "good"), ("b", "bad")]),
    "before many rows": (
        HEAD + '"' + "x,y\n" * 40_000,
        [2, *[("x", "y")] * 39_999],
    ),
    "in the last line": (HEAD + ROWS + '"x', [("a", "good"), ("b", "bad"), 4]),
    "twice": (
        HEAD + '"x\n' + "y,z\n" * 40_000 + 'a,"b\n' + ROWS,
        [2, *[("y", "z")] * 40_000, 40_003, *cells(ROWS)],
    ),
    "closed": (HEAD + '"a\nb",good\n' + ROWS, [("a\nb", "good"), *cells(ROWS)]),
}


@pytest.mark.parametrize(("text", "rows"), QUOTES.values(), ids=QUOTES)
def test_a_quote_that_is_never_closed_costs_one_line(text, rows):
    assert read(text.encode())[1:] == rows


ENDLESS = {
    "a line": "x" * 30_000,
    "a cell": '"' + "x" * 30_000 + '"',
    "cells": "," * 30_000 + "x",
    "a record": '"a\n",' * 6_000 + "x",
    "quotes that open again": 'a","b\n' * 6_000,
}


@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("endless", ENDLESS.values(), ids=ENDLESS)
def test_nothing_endless_costs_memory_or_time_or_other_rows(endless, end, monkeypatch):
    monkeypatch.setattr(text_files, "LONGEST_LINE", 20_000)
    monkeypatch.setattr(table_files, "LONGEST_LINE", 20_000)
    monkeypatch.setattr(table_files, "_MOST_READ_AGAIN", 100_000)
    data = (HEAD + ROWS + endless + end).encode()
    tracemalloc.start()
    try:
        found = read(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found[:3] == cells(HEAD + ROWS)
    assert 4 in found
    assert peak < 3_000_000
