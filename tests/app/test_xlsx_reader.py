"""xlsx: what is read of it, and what a file may not cost."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from datetime import date, datetime, time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from people_lists import xlsx_of
from workbooks import book, packed, parts_of, relation, relations, sheet, text, workbook, zipped

from app.files import xlsx_reader
from app.files.xlsx import SheetColumn, write_workbook
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
    return [row for sheet in book.sheets for row in book.rows(sheet, notes)], list(map(str, notes))


def many_sheets(number: int, lines: str) -> bytes:
    """Return a workbook of sheets, each in a part of its own."""
    ids = [f"s{n}" for n in range(number)]
    parts = parts_of("") | {f"xl/{id_}.xml": sheet(lines) for id_ in ids}
    parts["xl/workbook.xml"] = book(*ids)
    parts["xl/_rels/workbook.xml.rels"] = relations(
        *(relation("worksheet", f"{id_}.xml", id_) for id_ in ids)
    )
    return zipped(parts)


HOSTILE = {
    "a row far away": (
        lambda: f'{HEAD}<row r="2000000000">{CELL}</row>',
        "清单, row 2,000,000,000: .* 1,048,576 rows",
    ),
    "a row of many cells": (lambda: f"{HEAD}<row>{CELL * 300_000}</row>", "清单, row 3: .* 1,024 columns"),
    "a column far away": (lambda: f"<row>{text('x', 'XFD1')}</row>", "清单, row 1: .* 1,024 columns"),
    "no column": (
        lambda: f"<row>{text('x', 'ZZZZZZ1')}</row>",
        "清单, row 1: is no xlsx that can be read",
    ),
    "a large cell": (
        lambda: f"{HEAD}<row>{text('x' * LARGE)}</row>",
        "清单, row 3: .* 32,767 characters",
    ),
    "sheets that name one part": (
        lambda: zipped(parts_of(HEAD) | {"xl/workbook.xml": book(*["worksheet"] * 600)}),
        "two sheets in one part, xl/worksheets/sheet1.xml",
    ),
    "sheets that name one part in other letters": (
        lambda: zipped(
            parts_of(HEAD)
            | {
                "xl/workbook.xml": book("a", "b"),
                "xl/_rels/workbook.xml.rels": relations(
                    relation("worksheet", "worksheets/sheet1.xml", "a"),
                    relation("worksheet", "../XL/worksheets%2Fsheet1.xml", "b"),
                ),
            }
        ),
        "two sheets in one part",
    ),
    "many sheets": (lambda: many_sheets(300, HEAD), "more than 255 sheets"),
    "many cells in many sheets": (
        lambda: many_sheets(20, f"<row>{CELL * 900}</row>"),
        "清单5, row 1: .* 5,000 cells",
    ),
    "many empty cells": (lambda: f"<row>{'<c/>' * 900}</row>" * 9, "清单, row 6: .* 5,000 cells"),
    "an endless row of empty cells": (lambda: f"<row>{'<c/>' * 300_000}</row>", "row 1: .* 16,384 columns"),
    "cells far away": (
        lambda: "".join(f"<row>{text('x', f'AMJ{n}')}</row>" for n in range(1, 3000)),
        "清单, row 98: .* 100,000 cells .with empty ones between.",
    ),
    "other elements": (lambda: HEAD + "<x/>" * 200_000, "200,000 elements"),
    "many parts": (
        lambda: zipped(parts_of(HEAD) | {f"p{n}": "" for n in range(10_000)}, zipfile.ZIP_STORED),
        "more than 10,000 parts",
    ),
    "many relationships": (
        lambda: zipped(
            parts_of(HEAD)
            | {
                "xl/_rels/workbook.xml.rels": relations(
                    *(relation("styles", "s.xml", f"r{n}") for n in range(10_001))
                )
            }
        ),
        "more than 10,000 relationships",
    ),
    "many styles": (
        lambda: packed(HEAD, styles=f"<styleSheet><cellXfs>{'<xf/>' * 1000}</cellXfs></styleSheet>"),
        "more than 500 styles",
    ),
    "many formats": (
        lambda: packed(
            HEAD,
            styles="<a>" + "".join(f"<numFmt numFmtId='{n}' formatCode='0'/>" for n in range(1000)) + "</a>",
        ),
        "more than 500 formats",
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
    monkeypatch.setattr(xlsx_reader, "MOST_PLACES", 100_000)
    monkeypatch.setattr(xlsx_reader, "MOST_STYLES", 500)
    monkeypatch.setattr(xlsx_reader, "MOST_ELEMENTS", 200_000)
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
    [(_, cells)], notes = rows(data)
    assert cells == [
        "文字", "17", "17", "4.5", "TRUE", "", "2026-05-01 12:30:00", "2026-05-01", "08:30:00", "", "a&b<c",
    ]  # fmt: skip
    assert [("formulas" in note, "rows 1:" in note) for note in notes] == [(True, True)]


@pytest.mark.parametrize(
    ("format_", "serial", "shown"),
    [
        (
            'formatCode="yyyy&quot;年&quot;m&quot;月&quot;d&quot;日&quot;" numFmtId="200"',
            "46143",
            "2026-05-01",
        ),
        ('formatCode="[$-804]aaaa;@" numFmtId="200"', "46143", "46143"),
        ('formatCode="0.00&quot;day&quot;" numFmtId="200"', "46143", "46143.00day"),
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


@pytest.mark.parametrize(
    ("areas", "shown"),
    [
        (["A2:A4"], "ab a a d"),
        (["A2:A3"], "ab a - d"),
        (["A2:B4"], "a a a d"),
        (["A2:A3", "A4:A5"], "ab a - -"),
        (["A1:C1", "B2:B5"], "ab -b -b db"),
        (["A2:A9"], "ab a a a"),
    ],
)
def test_a_cell_that_is_merged_over_rows_is_in_each_of_them(areas, shown):
    lines = [["产品", "网站", "内容"], ["a", "b", 1], ["", "", 2], ["", "", 3], ["d", "", 4]]
    data = xlsx_of({"清单": lines}, *areas)
    (_, *below), notes = rows(data)
    assert ["".join(cells[:2]) or "-" for _, cells in below] == [
        one.replace("-", "") or "-" for one in shown.split()
    ]
    assert [cells[2] for _, cells in below] == ["1", "2", "3", "4"]
    assert notes == []


def test_merged_cells_fill_no_empty_row():
    lines = [["产品", "内容"], ["a", 1], [None, None], [None, 3]]
    read, _ = rows(xlsx_of({"清单": lines}, "A2:A4"))
    assert read == [(1, ["产品", "内容"]), (2, ["a", "1"]), (4, ["a", "3"])]


def test_the_reading_of_a_shared_text_is_left_out():
    texts = "<sst><si><r><t>特</t></r><r><t>仑苏</t></r><rPh><t>telunsu</t></rPh></si></sst>"
    data = packed('<row><c t="s"><v>0</v></c></row>', sharedStrings=texts)
    assert rows(data) == ([(1, ["特仑苏"])], [])


def test_a_part_is_read_once_however_often_it_is_named():
    """Two relationships of a kind: the first counts."""
    shared = "<sst><si><t>{}</t></si></sst>"
    parts = parts_of(f"<row>{SHARED}</row>", sharedStrings=shared.format("特仑苏")) | {
        "xl/other.xml": shared.format("x")
    }
    many = [relation("sharedStrings", "other.xml", f"r{n}") for n in range(50)]
    parts["xl/_rels/workbook.xml.rels"] = parts["xl/_rels/workbook.xml.rels"].replace(
        "</Relationships>", f"{''.join(many)}</Relationships>"
    )
    assert rows(zipped(parts)) == ([(1, ["特仑苏"])], [])


def test_a_sheet_may_be_read_again_within_its_limits(monkeypatch):
    monkeypatch.setattr(xlsx_reader, "MOST_CELLS", 5)
    workbook = Workbook(io.BytesIO(packed(HEAD)), "x.xlsx")
    assert [list(workbook.rows(workbook.sheets[0], [])) for _ in range(5)] == [rows(packed(HEAD))[0]] * 5


ENTRY = f"<row>{text('特仑苏')}</row>"
OTHER_PROGRAMS = {
    "paths with backslashes": lambda: {
        path.replace("/", "\\"): xml.replace("worksheets/sheet1", "worksheets\\sheet1")
        for path, xml in parts_of(ENTRY).items()
    },
    "paths in other letters": lambda: {
        path.replace("sheet1", "Sheet1"): xml for path, xml in parts_of(ENTRY).items()
    },
    "paths with percent signs": lambda: {
        path.replace("sheet1", "清单 1"): xml.replace("sheet1", "%E6%B8%85%E5%8D%95%201")
        for path, xml in parts_of(ENTRY).items()
    },
    "paths from the root": lambda: {
        path: xml.replace("worksheets/sheet1", "/xl/worksheets/sheet1") for path, xml in parts_of(ENTRY).items()
    },
    "prefixes of elements": lambda: parts_of("")
    | {
        "xl/worksheets/sheet1.xml": '<x:worksheet xmlns:x="y"><x:sheetData><x:row><x:c t="str"><x:v>特仑苏</x:v></x:c>'
        "</x:row></x:sheetData></x:worksheet>"
    },
    "ISO 29500 Strict": lambda: {
        path: xml.replace("http://schemas.openxmlformats.org/officeDocument/2006", "http://purl.oclc.org/ooxml/officeDocument")
        for path, xml in parts_of(ENTRY).items()
    },
    "UTF-16": lambda: parts_of("")
    | {"xl/worksheets/sheet1.xml": sheet(ENTRY).encode("utf-16")},
    "a text as a value": lambda: parts_of('<row><c t="inlineStr"><v>特仑苏</v></c></row>'),
    "no cell numbers, but rows": lambda: parts_of('<row r="1"><c t="str"><v>特仑苏</v></c></row>'),
    "a part that is not there": lambda: parts_of(ENTRY)
    | {
        "xl/_rels/workbook.xml.rels": relations(
            relation("worksheet", "worksheets/sheet1.xml"), relation("styles", "styles.xml"),
            relation("sharedStrings", "sharedStrings.xml"),
        )
    },
    "an address outside": lambda: parts_of(ENTRY)
    | {
        "xl/_rels/workbook.xml.rels": relations(
            relation("worksheet", "worksheets/sheet1.xml"),
            relation("hyperlink", "file:///etc/passwd", "h").replace("/>", ' TargetMode="External"/>'),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("parts", OTHER_PROGRAMS.values(), ids=OTHER_PROGRAMS)
def test_workbooks_of_other_programs_are_read(parts):
    assert rows(zipped(parts())) == ([(1, ["特仑苏"])], [])


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": ""}, "save it as xlsx"),
        ({"Index/Document.iwa": "", "Metadata/Properties.plist": ""}, "save it as xlsx"),
        ({"_rels/.rels": relations(relation("officeDocument", "word/document.xml")), "word/document.xml": "<a/>",
          "word/_rels/document.xml.rels": relations()}, "has no sheet"),
        ({"_rels/.rels": relations(relation("officeDocument", "xl/workbook.bin"))}, "xlsb"),
    ],
)  # fmt: skip
def test_files_of_other_kinds_are_refused_with_what_is_right(parts, said):
    with pytest.raises(InputError, match=said):
        rows(zipped(parts))


@pytest.mark.parametrize(
    ("code", "value", "shown"),
    [
        ("0%", "0.9", "90%"),
        ("0.0%", "0.125", "12.5%"),
        ("00000", "7", "00007"),
        ("0", "4.5", "5"),
        ("0.0", "4.55", "4.6"),
        ("0.###", "3", "3"),
        ("#,##0.00", "1234567.891", "1,234,567.89"),
        ("[$¥-804]#,##0", "1234", "¥1,234"),
        ('0"星"', "5", "5星"),
        ('General"级"', "5", "5级"),
        ('"P"0', "1", "P1"),
        ("0_ ;[Red]\\-0\\ ", "-5", "-5"),
        ('0;-0;"无"', "0", "无"),
        (";;;", "5", ""),
        ('0.0,,"M"', "1500000", "1.5M"),
        ("000\\-0000\\-0000", "13800138000", "138-0013-8000"),
        ("General", "0.30000000000000004", "0.3"),
        ("General", "6901234567892", "6901234567892"),
        ("0.0000000000", "0.4228481328024689", "0.4228481328"),
        ("# ?/?", "3.5", "3.5"),
        ("@", "12", "12"),
        ("[h]:mm:ss", "1.5", "36:00:00"),
        ("yyyy\\-mm\\-dd", "46143.5", "2026-05-01 12:00:00"),
        ("0." + "0" * 200 + "%" * 40, "1e14", None),
    ],
)
def test_a_number_is_shown_by_its_format(code, value, shown):
    code = code.replace('"', "&quot;")
    styles = (
        f'<a><numFmt numFmtId="200" formatCode="{code}"/><cellXfs><xf/><xf numFmtId="200"/></cellXfs></a>'
    )
    [(_, cells)], notes = rows(
        packed(f'<row><c s="1"><v>{value}</v></c><c t="str"><v>x</v></c></row>', styles=styles)
    )
    assert notes == []
    assert shown is None or cells == [shown, "x"]


@pytest.mark.parametrize(
    ("cell", "shown", "note"),
    [
        ('<c t="b"><v>0</v></c>', "FALSE", ""),
        ('<c t="d"><v>2026-05-01T00:00:00Z</v></c>', "2026-05-01", ""),
        ('<c t="d"><v>2026-05-01T08:30:00.000</v></c>', "2026-05-01 08:30:00", ""),
        ("<c><f>A1</f></c>", "", "formulas without a stored value in rows 1:"),
        ("<c><f>A1</f><v></v></c>", "", "formulas without a stored value in rows 1:"),
        ("<c><f>A1</f><v>3</v></c>", "3", ""),
        ('<c t="str"><f>A1</f><v></v></c>', "", ""),
        ('<c t="e"><v>#N/A</v></c>', "", "error #N/A in rows 1:"),
        ('<c t="e"><f>A1</f><v>#REF!</v></c>', "", "error #REF! in rows 1:"),
        ('<c t="str"><f>x</f><v>=DISPIMG("ID_1",1)</v></c>', "", ""),
        ('<c t="str"><v>a_x000D_\nb</v></c>', "a\r\nb", ""),
        ('<c t="inlineStr"><is><t>1.</t></is><v>01.</v></c>', "1.", ""),
        ('<c t="inlineStr"><v>01.</v><is><t>1.</t></is></c>', "1.", ""),
        ('<c t="inlineStr"><is><t>_x005F_x000D_ _x4e2d__x6587_</t></is></c>', "_x000D_ 中文", ""),
        ('<c t="str"><v>_xD83D__xDE00_ _xD83D_</v></c>', "😀 \ufffd", ""),
    ],
)
def test_a_cell_is_taken_as_a_person_sees_it_and_what_is_missing_is_noted(cell, shown, note):
    [(_, cells)], notes = rows(packed(f"<row>{cell}<c><v>1</v></c></row>"))
    assert cells == [shown, "1"]
    assert [note in one for one in notes] == [True] * bool(note)


def test_a_note_lists_some_rows_of_many():
    data = packed('<row><c><v>1</v></c><c t="e"><v>#N/A</v></c></row>' * 100)
    _, [note] = rows(data)
    assert "28, 29, 30 and 70 more" in note


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff"), max_size=50))
@example("_x000D_")
@example("_x0041_x0042__x005F_")
@example("a\r\nb\r\x00\x1f")
def test_a_text_is_read_as_it_was_written(value):
    file = io.BytesIO()
    write_workbook(file, "清单", [SheetColumn("x"), SheetColumn("y", is_wrapped=True)], [[value, "end"]])
    [_, (_, cells)], _ = rows(file.getvalue())
    assert cells == [value, "end"]
