"""Pages without rules: which text is the main one, what a page says of itself, feeds, refusals, the catalog's key."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from splitter.catalog.load import parse_catalog
from splitter.catalog.rules import PageRules
from splitter.errors import CatalogError
from splitter.spans import CHINA
from tasks.domain.failures import ErrorClass, FetchError
from tasks.reading.density import dense_text
from tasks.reading.extract import read_page
from tasks.reading.maintext import TextSource, main_text, overlap
from tasks.reading.outline import outline_of
from tasks.reading.page import Page

NOW = datetime(2013, 5, 6, 20, 30, tzinfo=CHINA)
RULES = PageRules(main_text=True, blocked=("请输入验证码", "请先登录"))

FIRST = "上周在超市买了一箱光明高钙牛奶，回家打开后发现有三盒已经胀包，味道发酸，根本不能喝。"
SECOND = "打电话给厂家的客服，他们说要等经销商处理，等了五天，还是没有任何人联系我。"
THIRD = "希望消费者协会能够介入调查，给我一个说法，也提醒其他消费者注意查看生产日期。"
TEXT = f"<p>{FIRST}</p><p>{SECOND}</p><p>{THIRD}</p>"
LINKS = "".join(
    f'<li><a href="/{n}">又一条别的新闻标题，第{n}条，点击查看全部内容。</a></li>' for n in range(30)
)
PAGE = """<html><head><title>牛奶胀包无人处理 - 某某投诉网</title>{head}</head><body>
<div class="nav"><ul>{links}</ul></div><h1>牛奶胀包无人处理</h1>
<p class="info">作者：王先生 2013-05-04 09:15 浏览 12</p><div class="box">{text}</div>
<div class="comment-list"><p>{comment}</p></div><div class="sidebar"><ul>{links}</ul></div>
<div class="footer"><p>版权所有，未经许可不得转载，如有问题请联系我们的客服，电话在首页。</p></div></body></html>"""
COMMENT = "我也遇到过一样的事情，投诉了很久也没有结果，太气人了，以后再也不买了，大家小心。"


def page(text: str = TEXT, head: str = "", comment: str = "") -> str:
    return PAGE.format(head=head, text=text, links=LINKS, comment=comment)


def read(html: str, rules: PageRules = RULES):
    return read_page(html, "http://a.cn/1", rules, now=NOW)


def error(html: str) -> FetchError:
    with pytest.raises(FetchError) as caught:
        read(html)
    return caught.value


def test_the_main_text_is_one_review_with_title_author_and_date():
    found = read(page(comment=COMMENT))
    (review,) = found.reviews
    assert found.title == "牛奶胀包无人处理 - 某某投诉网"
    assert (review.key, review.title, review.author) == ("#0", "牛奶胀包无人处理", "王先生")
    assert (review.date_text, review.date) == ("2013-05-04 09:15", datetime(2013, 5, 4, 9, 15, tzinfo=CHINA))
    assert review.body == "\n".join((FIRST, SECOND, THIRD))
    assert review.rating is None


@pytest.mark.parametrize(
    "text",
    [
        f"{FIRST}<br><br>{SECOND}<br>{THIRD}",
        f"<div>{FIRST}</div><div>{SECOND}</div><div>{THIRD}</div>",
        f"<table><tr><td>{FIRST}{SECOND}{THIRD}</td></tr></table>",
        f"<section><p>{FIRST}</p></section><section><p>{SECOND}</p></section><section><p>{THIRD}</p></section>",
        f"<p>{FIRST}</p><ul>{LINKS}</ul><p>{SECOND}</p><p>{THIRD}</p>",
        f"<p>{FIRST}</p><p style='display: none'>看不见的，一段很长很长的文字，谁也看不见。</p><p>{SECOND}</p>{THIRD}",
        f"<p>{FIRST}<script>var x = '脚本，不是文字，无论如何都不是。'</script></p><p>{SECOND}</p><p>{THIRD}</p>",
        f"<p>{FIRST[:9]}<b>{FIRST[9:12]}</b><a href=/x>{FIRST[12:15]}</a>{FIRST[15:]}</p><p>{SECOND}</p><p>{THIRD}</p>",
    ],
    ids=["br", "div", "table", "sections", "links within", "hidden", "script", "inline"],
)
def test_however_the_text_is_marked_up(text):
    body = "".join(read(page(text)).reviews[0].body.split())
    assert body == FIRST + SECOND + THIRD


def test_the_page_s_description_overrules_density_that_missed_it():
    told = "包裝壞了 味道也不對 退了貨 不會再買這個牌子的牛奶 還是自己去農場買新鮮的比較放心"
    script = f'<script type="application/ld+json">{{"@type": "Review", "reviewBody": "{told}"}}</script>'
    comments = "".join(f"<div class=talk><p>{COMMENT}{n}</p></div>" for n in range(9))
    html = f"<head><title>x</title>{{}}{script}</head><body><div><p>圖</p></div>{comments}</body>"
    found = main_text(Page(html.replace("{}", f'<meta name="description" content="{told}">'), ""))
    assert (found.choice, found.body) == (TextSource.JSON_LD, told)
    found = main_text(Page(html.replace("{}", ""), ""))
    assert found.choice is TextSource.DENSITY
    assert COMMENT in found.body


def test_a_text_without_a_sentence_is_read_if_the_page_has_no_other():
    found = main_text(
        Page("<body><article><p>不好喝</p><p>買的人都說 味道怪怪的 下次不買了</p></article></body>", "")
    )
    assert found.choice is TextSource.DENSITY
    assert "味道怪怪的" in found.body


def test_json_ld_is_taken_where_density_agrees():
    told = f"{FIRST}{SECOND}{THIRD}另外附上购买的小票。"
    script = (
        '{"@graph": [{"@type": "Organization", "name": "x"}, {"@type": ["NewsArticle"], "headline": "头条",'
    )
    script += f'"articleBody": "{told}", "datePublished": "2013-05-03", "author": [{{"name": "李女士"}}]}}]}}'
    found = main_text(Page(page(head=f'<script type="application/ld+json">{script}</script>'), ""))
    assert (found.choice, found.body, found.author, found.date_text) == (
        TextSource.JSON_LD,
        told,
        "李女士",
        "2013-05-03",
    )
    other = script.replace(told, "广告词，与本页无关，买一送一，只限今天，先到先得，欲购从速。")
    found = main_text(Page(page(head=f'<script type="application/ld+json">{other}</script>'), ""))
    assert found.choice is TextSource.DENSITY


@pytest.mark.parametrize(
    "broken", ["{", "[[[[" * 9000, "null", '{"@type": "Article", "articleBody": 7}', "\0"]
)
def test_broken_json_ld_is_passed_over(broken):
    found = main_text(Page(page(head=f'<script type="application/ld+json">{broken}</script>'), ""))
    assert found.choice is TextSource.DENSITY


def test_meta_tags_tell_author_and_date():
    tags = {
        "author": "someone@site.com",
        "article:author": "张三",
        "article:published_time": "2013-05-01T08:00:00Z",
    }
    head = "".join(f'<meta property="{name}" content="{value}">' for name, value in tags.items())
    (review,) = read(page(head=head)).reviews
    assert (review.author, review.date) == ("张三", datetime(2013, 5, 1, 8, tzinfo=UTC))


def test_no_text_a_refusal_and_a_text_that_mentions_one():
    assert error("<title>x</title><p>短</p>").error is ErrorClass.BAD_RULE
    assert "the page says: x 短" in error("<title>x</title><p>短</p>").detail
    assert error("").error is ErrorClass.BAD_RULE
    assert error("<p>请输入验证码").error is ErrorClass.CAPTCHA
    long = "您的访问过于频繁，为了保护网站的安全，请输入验证码之后再继续访问本网站。"
    assert error(f"<div><p>{long}</p></div>").error is ErrorClass.CAPTCHA
    assert read(page(TEXT * 3 + "<p>网站叫我请先登录，我登录了，还是不行，一直叫我等着。</p>")).reviews


def test_markup_made_to_choke_a_parser_is_refused():
    assert error("<div>" * 100_000 + TEXT).error is ErrorClass.TOO_LARGE


def test_what_is_left_of_a_page_too_large_for_the_reader_is_read():
    deep = "<div>" * 900 + TEXT + "</div>" * 900
    assert FIRST in read(f"<title>x</title>{deep}").reviews[0].body
    many = "".join(f"<div><p>{n}{FIRST}</p></div>" for n in range(9000))
    assert read(f"<title>x</title>{many}").reviews[0].body.startswith(f"0{FIRST}")


FEED = """<?xml version="1.0" encoding="gb2312"?><!-- made by --><rss version="2.0"><channel>
<title>投诉 &amp; 评价</title>
<link>http://a.cn/</link><image><title>logo</title></image>
<item><title>牛奶</title><link>http://a.cn/1</link><guid>g1</guid><author>王</author>
<description><![CDATA[<p>变质了</p><script>x</script>，<b>不能</b>喝]]></description>
<pubDate>Sat, 04 May 2013 01:15:00 GMT</pubDate></item>
<item><title>奶粉</title><description>&lt;p&gt;很好&lt;/p&gt;</description><dc:date>2013-05-04</dc:date></item>
<item><title></title></item></channel></rss>"""


@given(st.text(max_size=60), st.text(max_size=60))
def test_coverage_is_a_share(part, text):
    assert 0.0 <= overlap(part, text) <= 1.0
    assert overlap(text, part + text) == (1.0 if text.split() else 0.0)


@given(
    st.lists(
        st.sampled_from(
            [FIRST, SECOND, COMMENT, "短", "<br>", "<div>", "</div>", "<p>", "<a>", "</a>", "<ul>", LINKS]
        )
    )
)
def test_any_markup_gives_text_of_the_page_or_none(parts):
    html = "".join(parts)
    found = dense_text(outline_of(LexborHTMLParser(html)))
    if found is None:
        return
    assert 0.0 <= found.share <= 1.0
    shown = "".join((LexborHTMLParser(html).body or pytest.fail("no body")).text().split())
    assert all("".join(line.split()) in shown for line in found.text.split("\n"))


SECTIONS = "".join(
    f"<section class=part><h2>第{n}部分</h2><div><p>{n}{FIRST}</p><p>{n}{SECOND}</p></div></section>"
    for n in range(4)
)


def test_sections_under_headings_are_one_text():
    body = read(page(f"<div><p>{THIRD}</p></div>{SECTIONS}")).reviews[0].body
    assert body.startswith(THIRD)
    assert [body.count(f"{n}{SECOND}") for n in range(4)] == [1, 1, 1, 1]
    assert "第3部分" in body


def test_the_next_article_and_what_stands_beside_are_no_sections():
    article = "<article><h1>{}的牛奶投诉记录</h1><p>{}</p></article>"
    both = article.format("第一篇", FIRST + SECOND) + article.format("第二篇", THIRD + THIRD + THIRD)
    body = read(page(both)).reviews[0].body
    assert body.endswith(FIRST + SECOND)
    assert THIRD not in body
    aside = "".join(f"<div class=promo-box><p>{n}{COMMENT}</p></div>" for n in range(3))
    assert COMMENT not in read(page(f"<div class=text>{TEXT}</div>{aside}")).reviews[0].body


def test_a_page_that_is_half_links_and_names_no_day_is_read_with_less_confidence():
    sure = read(f"<title>牛奶胀包</title><p>2013-05-04 09:15</p><div>{TEXT * 5}</div>")
    doubtful = read(f"<title>其他网页</title><ul>{LINKS}</ul><div>{TEXT * 5}</div>")
    assert len(sure.reviews) == len(doubtful.reviews) == 1
    assert 0 < doubtful.confidence < sure.confidence / 2 < 0.5


def test_what_react_sends_hidden_is_shown():
    assert FIRST in read(page(f'<div hidden id="S:0">{TEXT}</div>')).reviews[0].body


CATALOG = """version: 1
name: t
rules:
  a: {rules}
engines:
  e: {{kind: meta, url: http://e.cn/s, params: {{q: "{{query}}"}}, results: {{hit: div, link: a@href, title: a}}}}
sites:
  a.cn: {{engine: e, rules: a}}
"""


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("{main_text: false}", "rules.a.review: missing; write review and body, or main_text: true"),
        ("{review: div}", "rules.a.body: missing; write review and body, or main_text: true"),
        ("{body: p}", "rules.a.review: missing"),
        (
            "{main_text: true, review: div, body: p}",
            "rules.a.review: main_text reads pages without record rules",
        ),
        ("{main_text: true, author: b}", "rules.a.author: main_text reads pages without record rules"),
        ("{main_text: 'yes'}", "rules.a.main_text: "),
    ],
)
def test_rules_are_records_or_main_text(rules, said):
    with pytest.raises(CatalogError) as caught:
        parse_catalog(CATALOG.format(rules=rules), "t.yaml")
    assert f"t.yaml:4: {said}" in str(caught.value)


def test_main_text_in_a_catalog():
    catalog = parse_catalog(CATALOG.format(rules="{main_text: true, blocked: [验证码]}"), "t.yaml")
    assert catalog.rules_of("a.cn").main_text


def _read_only(text: str) -> float:
    html = f"<title>滤水壶</title><h1>滤水壶</h1><div>2013-05-04 09:15</div><div><p>{text}</p></div>"
    return read_page(html, "http://www.example.cn/a/1234567.html", RULES, now=NOW).confidence


@pytest.mark.parametrize(
    "text",
    [
        "滤水壶",
        "图为滤水壶在仓库等待检测。记者陈明摄",
        "消费者在超市选购滤水壶。王芳 摄",
        "A row of water jugs on a shelf. (Photo by Nora Wells)",
        "正在播放 00:12/02:30 倍速 静音 全屏",
        "字体大小：小 中 大 打印 关闭",
        "Listen to this article · 6:12 min, play, mute",
        "本店所有商品均为正品，支持七天无理由退换，下单后48小时内发货。",
        "购买须知：因显示器色差，请以实物为准，介意者慎拍。",
        "欢迎光临本店，收藏店铺送优惠券，满两件包邮。",
        "Questions? Contact us by phone or mail. Please note that sale items cannot be exchanged.",
    ],
)
def test_a_caption_controls_or_a_shops_note_are_read_with_little_confidence(text):
    assert 0 < _read_only(text) < 0.3


@pytest.mark.parametrize(
    "text",
    [
        "壶底漏水，客服不理人，发货也慢。",
        "正品，发货快，客服耐心，滤水壶好用。",
        "用着还行，七天无理由过了才发现壶盖有裂纹。",
        "Leaks from the first day. Do not buy.",
        "Arrived within 3 days, free shipping, but the lid is cracked and the seller does not answer.",
    ],
)
def test_what_a_buyer_says_in_the_words_of_a_shop_is_read_with_more_confidence(text):
    assert _read_only(text) >= 0.6
