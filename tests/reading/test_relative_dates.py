"""Days that a text speaks of, and dates in no known form: neither is taken for what it is not."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from splitter.catalog.rules import PageRules
from tasks.reading.extract import read_page

NOW = datetime(2026, 11, 20, 4, tzinfo=UTC)
TEXTS = (
    "这台净水器用了三个月开始漏水，客服一直不理人，气死了。",
    "我的也是同样的问题，换了滤芯还是漏，建议大家别买。",
    "联系了售后，师傅上门换了接头，现在暂时不漏了，继续观察。",
)
NAMES = ("张伟", "王芳", "李娜")


def read(body: str) -> list[tuple[str, str, str]]:
    title = "净水器用后感受"
    page = f"<html><head><title>{title}</title></head><body><h1>{title}</h1>{body}</body></html>"
    found = read_page(page, "http://bbs.example.cn/thread-7-1-1.html", PageRules(main_text=True), now=NOW)
    return [(one.author, f"{one.date:%Y-%m-%d}" if one.date else "", one.body) for one in found.reviews]


@pytest.mark.parametrize(
    "first",
    [
        "三个月前在商场买了一台净水器，用着还行。",
        "3个月前在商场买了一台净水器，用着还行。",
        "昨天收到的货，包装完好，用着还行。",
        "Three months ago I bought this kettle and it leaks.",
        "I bought this 3 days ago and it already leaks.",
    ],
)
def test_a_relative_date_in_a_sentence_is_no_day_of_an_article(first):
    paragraphs = "".join(f"<p>{text}</p>" for text in (first, *TEXTS))
    assert read(f"<div class=x>{paragraphs}</div>") == [("", "", "\n".join((first, *TEXTS)))]


@pytest.mark.parametrize(
    "byline", ["3天前", "发表于 3天前", "3天前 来自 上海", "三天前发布", "Posted 3 days ago"]
)
def test_a_relative_date_alone_behind_a_label_or_in_a_byline_is_the_day(byline):
    paragraphs = "".join(f"<p>{text}</p>" for text in TEXTS)
    ((_, day, body),) = read(f"<div class=by>{byline}</div><div class=x>{paragraphs}</div>")
    assert (day, body) == ("2026-11-17", "\n".join(TEXTS))


@pytest.mark.parametrize(
    ("dates", "days"),
    [
        (("一月 7, 2023", "二月 9, 2023", "十二月 3, 2023"), ("2023-01-07", "2023-02-09", "2023-12-03")),
        (("Oca 7, 2023", "Şub 9, 2023", "Ara 3, 2023"), ("", "", "")),
        (("7 tammi 2023 10:20", "9 helmi 2023 10:30", "3 joulu 2023 11:20"), ("", "", "")),
    ],
)
def test_posts_are_records_also_if_their_dates_are_in_no_known_form(dates, days):
    posts = (
        f"<div class=post><div class=a>{name}</div><div class=d>{date}</div><div class=c>{text}</div></div>"
        for name, date, text in zip(NAMES, dates, TEXTS, strict=True)
    )
    assert read("".join(posts)) == list(zip(NAMES, days, TEXTS, strict=True))
