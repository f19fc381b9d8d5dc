"""Workbooks for tests, also such as nobody's Excel writes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
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
    files = parts_of(rows, before, **parts)
    return zipped(files, method)


def relation(kind: str, target: str, id_: str = "") -> str:
    """Return the XML of a relationship to a part."""
    return f'<Relationship Id="{id_ or kind}" Type="{_OFFICE}/{kind}" Target="{target}"/>'


def relations(*many: str) -> str:
    """Return the XML of a part of relationships."""
    return _RELATIONS.format("".join(many))


def book(*sheets: str) -> str:
    """Return the XML of a workbook with the sheets that are in the parts of these relationships."""
    listed = "".join(
        f'<sheet name="清单{number or ""}" sheetId="{number + 1}" r:id="{id_}"/>'
        for number, id_ in enumerate(sheets)
    )
    return f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>'


def sheet(rows: str) -> str:
    """Return the XML of a sheet."""
    return f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>'


def parts_of(rows: str, before: str = "", **parts: str) -> dict[str, str]:
    """Return the parts of a workbook by their paths; the arguments are those of `packed`."""
    related = [
        relation("worksheet", "worksheets/sheet1.xml"),
        *(relation(name, f"{name}.xml") for name in parts),
    ]
    return {
        "_rels/.rels": relations(relation("officeDocument", "/xl/workbook.xml")),
        "xl/workbook.xml": book("worksheet"),
        "xl/_rels/workbook.xml.rels": relations(*related),
        "xl/worksheets/sheet1.xml": before + sheet(rows),
        **{f"xl/{name}.xml": xml for name, xml in parts.items()},
    }


def zipped(files: Mapping[str, str], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return an archive of parts."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method, compresslevel=1) as archive:
        for path, xml in files.items():
            archive.writestr(path, xml)
    return file.getvalue()
