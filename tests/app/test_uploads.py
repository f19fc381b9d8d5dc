"""An uploaded file is read by a process of its own, which has limits."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from patience import PATIENCE_S
from workbooks import packed, text, workbook

from app.importing import uploads
from splitter.errors import InputError

TITLED = workbook(["监测清单"], ["序号", "商品名称"], [1, "特仑苏"], ["合计"])


def read(data, origin="x.xlsx", *, has_left=False):
    async def run():
        leaving = asyncio.create_task(asyncio.sleep(0 if has_left else PATIENCE_S))
        if has_left:
            await leaving
        try:
            return await uploads.Uploads().read(data, origin, leaving)
        finally:
            leaving.cancel()

    return asyncio.run(run())


def test_an_upload_is_read_with_what_is_taken_of_it():
    lines, columns, notes = read(TITLED, "a\n\0b.xlsx")
    assert columns == {"name": "商品名称"}
    assert lines == [[3, {"name": "特仑苏"}, None]]
    assert "header in row 2, columns 商品名称" in str(notes[0])
    assert "rows 4" in str(notes[1])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (packed(f'<row r="2000000000">{text("x")}</row>'), "row 2,000,000,000"),
        (packed(f"<row>{text('name')}</row>" + " " * 51_000_000), "more than 50,000,000 bytes"),
        (b"a\0b", "no text"),
    ],
)
def test_a_refused_upload_has_one_line(data, said):
    with pytest.raises(InputError, match=rf"^x\.xlsx: .*{said}.*$"):
        read(data)


def test_a_process_ends_with_its_visitor():
    with pytest.raises(InputError, match="60 s"):
        read(TITLED, has_left=True)


def test_an_upload_of_too_many_products_is_refused(monkeypatch):
    monkeypatch.setattr(uploads, "_MOST_LINES", 3)
    assert len(uploads.read_upload("甲\n乙\n丙\n".encode(), "x")[0]) == 3
    with pytest.raises(InputError, match="more than 3 products"):
        uploads.read_upload("甲\n乙\n丙\n丁\n".encode(), "x")


def test_memory_beyond_the_limit_ends_the_process_without_a_traceback():
    code = "import app.importing.uploads as u; u._MOST_MEMORY = 100 << 20; u.main()"
    data = packed(f"<row>{text('name')}</row>" + f"<row>{text('ab ' * 10_000)}</row>" * 1500)
    done = subprocess.run(
        [sys.executable, "-c", code, "x", "{}"],
        input=data,
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")
