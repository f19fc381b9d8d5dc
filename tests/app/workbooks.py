"""Workbooks for tests, also such as nobody's Excel writes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from typing import Any

from openpyxl import Workbook

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'
)


def workbook(*rows: Sequence[Any], **sheets: Sequence[Sequence[Any]]) -> bytes:
    """Return a workbook of one sheet, or of sheets by name; those whose name begins with _ are hidden."""
    book = Workbook()
    book.remove(book.active)
    for name, lines in (sheets or {"Sheet": rows}).items():
        sheet = book.create_sheet(name)
        sheet.sheet_state = "hidden" if name.startswith("_") else "visible"
        for line in lines:
            sheet.append(line)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def text(value: str, place: str = "") -> str:
    """Return the XML of a cell."""
    return f'<c t="inlineStr"{place and f" r={place!r}"}><is><t>{value}</t></is></c>'


def packed(rows: str, before: str = "", method: int = zipfile.ZIP_DEFLATED, **parts: str) -> bytes:
    """Return a workbook with this XML in its sheet.

    Args:
        before: the sheet's element.
        parts: XML of sharedStrings and styles.
    """
    related = {"worksheet": "worksheets/sheet1", **{name: name for name in parts}}
    relations = [
        f'<Relationship Id="{name}" Type="{_OFFICE}/{name}" Target="{path}.xml"/>'
        for name, path in related.items()
    ]
    files = {
        "_rels/.rels": _RELATIONS.format(
            f'<Relationship Id="r" Type="{_OFFICE}/officeDocument" Target="/xl/workbook.xml"/>'
        ),
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets><sheet name="清单" sheetId="1" '
        'r:id="worksheet"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": _RELATIONS.format("".join(relations)),
        "xl/worksheets/sheet1.xml": f'{before}<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>',
        **{f"xl/{name}.xml": xml for name, xml in parts.items()},
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method, compresslevel=1) as archive:
        for path, xml in files.items():
            archive.writestr(path, xml)
    return file.getvalue()
