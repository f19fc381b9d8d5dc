"""Bytes to text: real pages as a number, and the cases behind it."""

from __future__ import annotations

import codecs
import csv
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zhconv import convert

from tasks.domain.failures import ErrorClass, FetchError
from tasks.reading.decode import declarations, decode

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
    text, used, _ = decode(body, {"content-type": content_type})
    assert used == encoding
    assert TEXT in text


@pytest.mark.parametrize("head", ["", meta("big5"), meta("utf-8")])
def test_big5(head):
    text, used, _ = decode(page("big5", head, TRADITIONAL), {})
    assert (TRADITIONAL in text, used) == (True, "big5hkscs")


# What a page may really be written in, and what it may say it is: in HTTP, in a meta tag, in neither.
REAL = ("utf-8", "gb2312", "gbk", "gb18030", "big5", "utf-16", "utf-16-le", "utf-16-be", "utf-8-sig")
DECLARED = ("", "utf-8", "gb2312", "gbk", "gb18030", "big5", "iso-8859-1", "windows-1252", "x-unheard-of")


@pytest.mark.parametrize(("real", "in_meta"), list(product(REAL, DECLARED)))
@pytest.mark.parametrize("in_http", ["", "utf-8", "gb2312", "big5", "iso-8859-1"])
def test_every_declaration_of_every_encoding(real, in_meta, in_http):
    for text in (TEXT, TRADITIONAL):
        head = meta(in_meta) if in_meta else ""
        whole = text.encode(real, "ignore").decode(real).removeprefix("\ufeff")
        read = decode(page(real, head, whole), {"content-type": f"text/html; charset={in_http}"}).text
        assert whole in read, (real, in_meta, in_http)


def reviews(data, least: int) -> list[str]:
    with (data / "reviews" / "online_shopping_10_cats.csv").open(encoding="utf-8") as file:
        return [row["review"] for row in csv.DictReader(file) if len(row["review"]) >= least][::40]


@pytest.mark.filterwarnings("ignore:.*zhcdict:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("real", ["utf-8", "gbk", "gb18030", "big5", "utf-16"])
@pytest.mark.parametrize("script", ["zh-hans", "zh-hant"])
def test_real_reviews_in_every_encoding_under_every_declaration(data, script, real):
    if (script, real) == ("zh-hans", "big5"):
        pytest.skip("Big5 holds no simplified characters")
    for number, review in enumerate(reviews(data, 60)):
        in_meta, in_http = DECLARED[number % 9], ("", "utf-8", "gb2312", "big5", "iso-8859-1")[number % 5]
        text = convert(review, script).encode(real, "ignore").decode(real)
        head = meta(in_meta) if in_meta else ""
        read, used, _ = decode(page(real, head, text), {"content-type": f"text/html; charset={in_http}"})
        assert text in read, (real, in_meta, in_http, used)


@pytest.mark.parametrize(
    ("body", "content_type", "why"),
    [
        (page("utf-8", meta("gbk")), "", "valid UTF-8"),
        (b"<p>plain</p>", "text/html; charset=gbk", "ASCII only"),
        (page("gbk", meta("gb2312")), "", "declared by <meta>"),
        (page("gbk"), "text/html; charset=gbk", "declared by HTTP"),
        (
            page("big5", meta("gb2312"), TRADITIONAL),
            "",
            "declared as gb18030 (<meta>), but reads as traditional Chinese",
        ),
        (page("gbk"), "", "nothing declared; reads as Chinese"),
        (page("utf-16"), "", "byte order mark"),
        (page("utf-16-le"), "", "zero bytes, as in UTF-16"),
        (page("utf-8", "", TEXT * 9) + b"\xff", "", "UTF-8, but for 1 broken characters"),
        ("Un café très bon, déjà vu".encode("latin-1"), "", "nothing declared; reads as a European language"),
        (
            "Это молоко очень вкусное, и я куплю его снова.".encode("cp1251"),
            "",
            "nothing declared; guessed by bs4",
        ),
    ],
)
def test_the_reason_is_told(body, content_type, why):
    assert str(decode(body, {"content-type": content_type}).why).startswith(why)


@pytest.mark.parametrize(
    ("body", "content_type", "hint", "encoding", "why"),
    [
        (page("gbk"), "", "gb2312", "gb18030", "declared by the catalog"),
        (page("big5", "", TRADITIONAL), "", "big5", "big5hkscs", "declared by the catalog"),
        # What header and page say comes first, and the bytes' own proof before all.
        (page("gbk", meta("gbk")), "", "big5", "gb18030", "declared by <meta>"),
        (page("gbk"), "text/html; charset=gbk", "big5", "gb18030", "declared by HTTP"),
        (page("utf-8"), "", "gbk", "utf-8", "valid UTF-8"),
        # A wrong hint is no more than a wrong declaration.
        (page("gbk"), "", "big5", "gb18030", "declared as big5hkscs (the catalog), but reads as Chinese"),
        (page("gbk"), "", "x-unheard-of", "gb18030", "nothing declared; reads as Chinese"),
        ("模式".encode("gbk"), "", "gbk", "gb18030", "declared by the catalog; valid UTF-8 only by chance"),
        ("模式".encode("gbk"), "", "", "utf-8", "valid UTF-8"),
    ],
)
def test_the_catalogs_hint_counts_where_nothing_is_declared(body, content_type, hint, encoding, why):
    decoded = decode(body, {"content-type": content_type}, hint)
    assert (decoded.encoding, str(decoded.why)) == (encoding, why)


JAPANESE = (
    "この牛乳はとてもおいしいです。毎日飲んでいますが、先週届いたものは味が変で、包装も壊れていました。",
    "第二回品質調査報告書。製造年月日の表示が不明、賞味期限切れの商品を販売した店舗の一覧。",
    "アイスクリームメーカー　ステンレス製　送料無料",
)
KOREAN = (
    "이 우유는 정말 맛있습니다. 다시 살 거예요. 그런데 지난주에 온 것은 포장이 찢어져 있었어요.",
    "배송이 너무 늦고 고객센터는 전화를 받지 않습니다",
    "환불해 주세요 ㅠㅠ",
)
CHINESE = (
    "收到的牛奶包装是坏的，客服一直不回复，要求退款也不理，再也不买了。",
    "光明高钙牛奶250ml*12盒 生产日期 保质期",
    "很好喝，孩子喜欢",
    "日本进口の抹茶饼干，味道不错",
)
CHINESE_TRADITIONAL = (
    TRADITIONAL,
    "出貨速度很快，但是螢幕有刮痕，客服處理態度不好",
    "鮮乳坊全脂鮮乳 936毫升",
)
WRITTEN_IN = {
    ("shift_jis", "cp932", "euc_jp", "iso2022_jp", "utf-8", "utf-8-sig", "utf-16"): JAPANESE,
    ("euc_kr", "cp949", "utf-8", "utf-16", "utf-16-le"): KOREAN,
    ("gb2312", "gbk", "gb18030", "utf-8", "utf-16", "utf-16-be"): CHINESE,
    ("big5", "big5hkscs", "gbk", "utf-8", "utf-8-sig"): CHINESE_TRADITIONAL,
    ("cp1252", "iso-8859-1", "utf-8"): ("Très déçu : le café était froid, l'hôtel bruyant, à éviter.",),
}
OF_LANGUAGES = [(real, text) for reals, texts in WRITTEN_IN.items() for real in reals for text in texts]


@pytest.mark.parametrize(("real", "text"), OF_LANGUAGES)
def test_every_language_in_each_of_its_encodings_whatever_is_declared(real, text):
    label = {"utf-16": "", "utf-16-le": "", "utf-16-be": "", "utf-8-sig": "utf-8"}.get(real, real)
    for declared in (
        "",
        label,
        "utf-8",
        "gb2312",
        "big5",
        "iso-8859-1",
        "shift_jis",
        "euc-kr",
        "x-unheard-of",
    ):
        body = page(real, meta(declared) if declared else "", text)
        assert text in decode(body, {}).text, declared


@pytest.mark.parametrize(
    "label",
    ["x-sjis", "windows-31j", "MS_Kanji", "x-euc-jp", "windows-949", "ks_c_5601-1987", "x-gbk", "x-x-big5"],
)
def test_labels_that_browsers_know(label):
    assert declarations(meta(label).encode(), "") != {}


def test_other_languages_keep_what_they_declare():
    for text, encoding in (
        ("これは日本語のページです。牛乳がとてもおいしい。", "euc_jp"),
        ("이 우유는 정말 맛있습니다. 다시 살 거예요.", "euc_kr"),
        ("Это молоко очень вкусное, и я куплю его снова.", "cp1251"),
        ("Un café très bon, déjà vu à l'hôtel.", "iso-8859-1"),
    ):
        read = decode(page(encoding, meta(encoding), text), {}).text
        assert text in read, encoding


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=200))
def test_a_byte_order_mark_is_believed(text):
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ):
        decoded = decode(mark + text.encode(encoding), {"content-type": "text/html; charset=gbk"})
        assert decoded[:2] == (text, encoding)


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5), min_size=1, max_size=200))
def test_utf8_is_utf8_whatever_is_declared(text):
    for declared in DECLARED:
        assert decode(page("utf-8", meta(declared), text), {})[1] == "utf-8"


def test_two_bytes_that_are_utf8_by_chance_stay_what_they_are_declared():
    decoded = decode("联通".encode("gbk"), {"content-type": "text/html; charset=gbk"})
    assert decoded[:2] == ("联通", "gb18030")


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
    text = decode(page("gbk"), {"content-type": f"text/html; charset={label}"}).text
    assert TEXT in text


def test_xml_declaration():
    body = f'<?xml version="1.0" encoding="gb2312"?><rss>{TEXT}</rss>'.encode("gbk")
    assert declarations(body, "text/xml") == {"gb18030": "XML"}
    assert TEXT in decode(body, {})[0]


@given(st.binary(max_size=300), st.sampled_from(["", "gbk", "utf-8", "big5", "shift_jis", "unicode_escape"]))
def test_any_bytes_give_a_text(body, charset):
    try:
        text, encoding, _ = decode(body, {"content-type": f"text/html; charset={charset}"})
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
