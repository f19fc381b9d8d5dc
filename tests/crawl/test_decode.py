"""Bytes to text: real pages as a number, and the cases behind it."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.crawl.decode import declared_encoding, decode
from tasks.crawl.model import ErrorClass, FetchError

TEXT = "光明高钙牛奶的包装在我们这里是坏的，投诉了也不理。"
TRADITIONAL = "這個牛奶的包裝在我們這裡是壞的，投訴了也不理，說要等他們來。"
PAGE = "<html><head>{head}</head><body>{text}</body></html>"


def page(encoding: str, head: str = "", text: str = TEXT) -> bytes:
    return PAGE.format(head=head, text=text).encode(encoding)


def meta(charset: str) -> str:
    return f'<meta http-equiv="Content-Type" content="text/html; charset={charset}">'


@pytest.mark.parametrize(
    ("body", "content_type", "encoding"),
    [
        (page("utf-8", meta("utf-8")), "text/html", "utf-8"),
        (page("utf-8"), "", "utf-8"),
        (page("utf-8", meta("gb2312")), "", "utf-8"),
        (page("utf-8"), "text/html; charset=GBK", "utf-8"),
        (page("utf-8-sig", meta("gbk")), "", "utf-8"),
        (page("utf-16"), "", "utf-16-le"),
        (page("gbk", meta("gb2312")), "", "gb18030"),
        (page("gbk", meta("utf-8")), "", "gb18030"),
        (page("gbk"), "text/html; charset='gbk'", "gb18030"),
        (page("gbk"), "", "gb18030"),
        (page("gbk", "<meta charset=x-unheard-of>"), "", "gb18030"),
        (page("gbk", '<script charset="utf-8"></script><meta charset="gbk">'), "", "gb18030"),
        (page("gbk", "<!-- <meta charset=big5> -->" + meta("gbk")), "", "gb18030"),
        (page("gb18030", text=TEXT + "𠮷㐀"), "text/html; charset=gb2312", "gb18030"),
    ],
)
def test_declared_undeclared_and_wrongly_declared(body, content_type, encoding):
    text, used = decode(body, {"content-type": content_type})
    assert used == encoding
    assert TEXT in text


@pytest.mark.parametrize("head", ["", meta("big5"), meta("utf-8")])
def test_big5(head):
    text, used = decode(page("big5", head, TRADITIONAL), {})
    assert (TRADITIONAL in text, used) == (True, "big5hkscs")


def test_two_bytes_that_are_utf8_by_chance_stay_what_they_are_declared():
    assert decode("联通".encode("gbk"), {"content-type": "text/html; charset=gbk"}) == ("联通", "gb18030")


@pytest.mark.parametrize(
    ("encoding", "head"), [("utf-8", ""), ("utf-8", meta("utf-8")), ("gbk", meta("gbk"))]
)
@pytest.mark.parametrize("breakage", [b"\xff", b"\x81\x00\xfe\xfe"])
def test_one_broken_character_does_not_spoil_the_page(encoding, head, breakage):
    body = page(encoding, head, TEXT * 20).replace(b"</body>", breakage + b"</body>")
    assert TEXT * 19 in decode(body, {})[0]


def test_page_cut_within_a_character():
    assert decode(TEXT.encode()[:-1], {})[0].startswith(TEXT[:-1])


def test_western_text_is_left_to_the_detector():
    assert "café" in decode("<p>Un café, très bon déjà vu à l'hôtel</p>".encode("latin-1"), {})[0]


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"%PDF-1.7 ...", "text/html"),
        (b"PK\x03\x04...", ""),
        (b"\x89PNG\r\n", "application/octet-stream"),
        (b"anything", "image/png"),
        (b"anything", " Application/PDF; x=1"),
    ],
)
def test_what_is_no_text(body, content_type):
    with pytest.raises(FetchError) as caught:
        decode(body, {"content-type": content_type})
    assert caught.value.error is ErrorClass.BAD_CONTENT


@pytest.mark.parametrize("label", ["utf-16", "utf-7", "hex", "rot13", "idna", "", "\0", "x" * 300])
def test_labels_that_are_no_encoding_of_a_page(label):
    text, _ = decode(page("gbk"), {"content-type": f"text/html; charset={label}"})
    assert TEXT in text


def test_xml_declaration():
    body = f'<?xml version="1.0" encoding="gb2312"?><rss>{TEXT}</rss>'.encode("gbk")
    assert declared_encoding(body, "text/xml") == "gb18030"
    assert TEXT in decode(body, {})[0]


@given(st.binary(max_size=300), st.sampled_from(["", "gbk", "utf-8", "big5", "shift_jis", "unicode_escape"]))
def test_any_bytes_give_a_text(body, charset):
    try:
        text, encoding = decode(body, {"content-type": f"text/html; charset={charset}"})
    except FetchError:
        return
    assert isinstance(text, str)
    assert encoding


def test_all_real_pages_are_read_right(data):
    """A page is right if its text is that of its real charset; gb2312 and gbk by the table browsers use for them."""
    folder = data / "pages"
    with (folder / "index.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    wrong = []
    for row in rows:
        body = (folder / row["file"]).read_bytes()
        real = {"gb2312": "gb18030", "gbk": "gb18030"}.get(row["real_charset"], row["real_charset"])
        if decode(body, {})[0] != body.decode(real).removeprefix("\ufeff"):
            wrong.append(row["file"])
    assert wrong == []
    assert len(rows) == 62
