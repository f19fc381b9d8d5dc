"""xlsx: what is read of it, and what a file may not cost."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from datetime import date, datetime, time

import pytest
from workbooks import packed, text, workbook

from app.files import xlsx_reader
from app.files.xlsx_reader import Workbook
from splitter.errors import InputError

HEAD = f"<row>{text('商品名称')}{text('评论内容')}</row><row>{text('特仑苏')}{text('很好喝')}</row>"
CELL, SHARED = "<c><v>1</v></c>", '<c t="s"><v>0</v></c>'
LAUGHS = (
    "<!DOCTYPE x [<!ENTITY a 'ha'>"
    + "".join(f"<!ENTITY {name} '{f'&{of};' * 10}'>" for of, name in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)
LARGE = 20_000_000
"""Characters: a reader that takes them in unpacks or holds more than the tests allow."""


def rows(data, **options):
    book = Workbook(io.BytesIO(data), "x.xlsx", **options)
    notes = []
    return [row for sheet in book.sheets for row in book.rows(sheet, notes)], notes


HOSTILE = {
    "a row far away": (
        lambda: f'{HEAD}<row r="2000000000">{CELL}</row>',
        "清单, row 2,000,000,000: .* 1,048,576 rows",
    ),
    "a row of many cells": (lambda: f"{HEAD}<row>{CELL * 300_000}</row>", "清单, row 3: .* 1,024 columns"),
    "a column far away": (lambda: f"<row>{text('x', 'XFD1')}</row>", "清单, row 1: .* 1,024 columns"),
    "no column": (
        lambda: f"<row>{text('x', 'ZZZZZZ1')}</row>",
        "清单, row 1: is no xlsx that can be read: 'ZZZZZZ'",
    ),
    "a large cell": (
        lambda: f"{HEAD}<row>{text('x' * LARGE)}</row>",
        "清单, row 3: .* 32,767 characters",
    ),
    "many cells": (lambda: f"<row>{CELL * 900}</row>" * 9, "清单, row 6: .* 5,000 cells"),
    "many characters": (
        lambda: packed(
            f"<row>{SHARED * 1000}</row>", sharedStrings=f"<sst><si><t>{'特' * 32_767}</t></si></sst>"
        ),
        "清单, row 1: .* 3,000,000 characters",
    ),
    "rows in no order": (lambda: f'{HEAD}<row r="2">{CELL}</row>', "清单, row 2: comes after row 2"),
    "a large shared text": (
        lambda: packed(HEAD, sharedStrings=f"<sst><si><t>{'x' * LARGE}</t></si></sst>"),
        "more than 32,767 characters",
    ),
    "many shared texts": (
        lambda: packed(HEAD, sharedStrings=f"<sst>{'<si/>' * 20_000}</sst>"),
        "150,000 bytes of shared texts",
    ),
    "a bomb": (lambda: HEAD + " " * LARGE, "more than 3,000,000 bytes unpacked"),
    "a bomb of styles": (lambda: packed(HEAD, styles=" " * LARGE), "bytes unpacked"),
    "another packing": (lambda: packed(HEAD, method=zipfile.ZIP_BZIP2), "another method than deflate"),
    "a deep element": (lambda: "<a>" * 500_000, "more than 100 elements in each other"),
    "a large tag": (lambda: f'<row r="{"1" * LARGE}"/>', "more than 131,072 bytes in a tag"),
    "a large comment": (lambda: f"<!--{' ' * LARGE}-->", "more than 131,072 bytes in a tag"),
    "many names": (lambda: "".join(f"<n{n}/>" for n in range(60_000)), "more than 10,000 names of elements"),
    "a file of the machine": (
        lambda: packed(f"<row>{text('&x;')}</row>", "<!DOCTYPE x [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>"),
        "document type",
    ),
    "a billion laughs": (lambda: packed(f"<row>{text('&i;')}</row>", LAUGHS), "document type"),
    "laughs in shared texts": (
        lambda: packed(HEAD, sharedStrings=f"{LAUGHS}<sst><si><t>&i;</t></si></sst>"),
        "document type",
    ),
    "no end": (lambda: packed(HEAD)[:-300], "no xlsx that can be read"),
    "no XML": (lambda: "<row><c>", "清单: is no xlsx that can be read"),
    "no number": (lambda: "<row><c><v>1-2</v></c></row>", "清单, row 1: is no xlsx that can be read"),
    "no shared text": (lambda: f"<row>{SHARED}</row>", "清单, row 1: is no xlsx that can be read"),
}


@pytest.mark.parametrize(("made", "said"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_workbook_is_refused_in_one_line_at_little_cost(made, said, monkeypatch):
    made = made()
    data = packed(made) if isinstance(made, str) else made
    monkeypatch.setattr(xlsx_reader, "MOST_CELLS", 5_000)
    monkeypatch.setattr(xlsx_reader, "MOST_SHARED", 150_000)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=rf"^x\.xlsx: .*{said}.*$") as refused:
            rows(data, most_unpacked=3_000_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "\n" not in str(refused.value)
    assert peak < 8_000_000


def test_what_is_said_of_the_size_of_a_part_is_not_believed():
    data = packed(HEAD + " " * LARGE)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = archive.getinfo("xl/worksheets/sheet1.xml").file_size.to_bytes(4, "little")
    assert data.count(size) == 2
    with pytest.raises(InputError):
        rows(data.replace(size, (1000).to_bytes(4, "little")), most_unpacked=3_000_000)


@pytest.mark.parametrize("gap", ["<row/>" * 2000, '<row r="900000"/>', "", f'<row r="1003">{CELL}</row>'])
def test_a_thousand_empty_rows_end_a_sheet(gap):
    found, notes = rows(packed(f'{HEAD}{gap}<row r="1000000">{CELL}</row>'))
    assert [number for number, _ in found] == [1, 2]
    assert "row 2" in notes[0]
    found, notes = rows(packed(f'{HEAD}<row r="1002">{CELL}</row>'))
    assert ([number for number, _ in found], notes) == ([1, 2, 1002], [])


def test_cells_as_a_person_sees_them():
    data = workbook(
        [
            "文字",
            17,
            17.0,
            4.5,
            True,
            None,
            datetime.fromisoformat("2026-05-01 12:30"),
            date(2026, 5, 1),
            time(8, 30),
            "=1+1",
            "a&b<c",
        ],
    )
    [(_, cells)], _ = rows(data)
    assert cells == [
        "文字", "17", "17", "4.5", "1", "", "2026-05-01 12:30:00", "2026-05-01", "08:30:00", "", "a&b<c",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("format_", "serial", "shown"),
    [
        (
            'formatCode="yyyy&quot;年&quot;m&quot;月&quot;d&quot;日&quot;" numFmtId="200"',
            "46143",
            "2026-05-01",
        ),
        ('formatCode="[$-804]aaaa;@" numFmtId="200"', "46143", "46143"),
        ('formatCode="0.00&quot;day&quot;" numFmtId="200"', "46143", "46143"),
        ('formatCode="" numFmtId="31"', "59", "1900-02-28"),
        ('formatCode="" numFmtId="14"', "1e300", "1e300"),
    ],
)
def test_a_number_is_a_date_by_its_format(format_, serial, shown):
    number = format_.partition('numFmtId="')[2].rstrip('"')
    styles = (
        f'<styleSheet><numFmts><numFmt {format_}/></numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>'
    )
    styles += f'<cellXfs><xf/><xf numFmtId="{number}"/></cellXfs></styleSheet>'
    data = packed(f'<row><c s="1"><v>{serial}</v></c><c s="0"><v>1</v></c></row>', styles=styles)
    assert rows(data) == ([(1, [shown, "1"])], [])


def test_the_reading_of_a_shared_text_is_left_out():
    texts = "<sst><si><r><t>特</t></r><r><t>仑苏</t></r><rPh><t>telunsu</t></rPh></si></sst>"
    data = packed('<row><c t="s"><v>0</v></c></row>', sharedStrings=texts)
    assert rows(data) == ([(1, ["特仑苏"])], [])
