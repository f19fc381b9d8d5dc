"""Result pages and review pages by the catalog's rules; empty, blocked and broken apart; hostile markup."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
import yaml

import splitter
from splitter.catalog.rules import PageRules, ResultRules
from splitter.spans import CHINA
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import Hit
from tasks.reading.extract import read_page
from tasks.reading.interstitials import check_blocked
from tasks.reading.markup import collapse
from tasks.reading.results import read_results

NOW = datetime(2013, 5, 6, 20, 30, tzinfo=CHINA)
URL = "http://www.baidu.com/s?wd=x"


_DATA = yaml.safe_load((Path(splitter.__file__).parent / "data" / "paper-2014.yaml").read_text("utf-8"))


def of_catalog(kind: str, name: str) -> dict:
    return _DATA[kind][name]


def lists_as_tuples(rules: dict) -> dict:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in rules.items()}


BAIDU = ResultRules(**lists_as_tuples(of_catalog("engines", "baidu")["results"]))
COMPLAINT = PageRules(**lists_as_tuples(of_catalog("rules", "complaint")))
THREAD = PageRules(**lists_as_tuples(of_catalog("rules", "thread")))
MICROBLOG = PageRules(**lists_as_tuples(of_catalog("rules", "microblog")))

HIT = '<div class="result"><h3 class="t"><a href="{}">{}</a></h3><div class="c-abstract">{}</div></div>'


def results(*parts: str):
    return read_results("<html><title>百度</title><body>" + "".join(parts) + "</body></html>", URL, BAIDU)


def results_error(*parts: str, url: str = URL) -> FetchError:
    with pytest.raises(FetchError) as caught:
        read_results("<html><body>" + "".join(parts) + "</body></html>", url, BAIDU)
    return caught.value


# ---- result pages


def test_hits_found_and_next_page():
    page = results(
        "<div>百度为您找到相关结果约<b>1,230,000</b>个</div>",
        HIT.format("http://cca.org.cn/a?id=1#x", "光明<em>牛奶</em>  投诉", "喝了<br>不舒服"),
        HIT.format("/link?url=abc", "二", ""),
        '<a class="n" rel="next" href="/s?pn=10">下一页</a>',
    )
    assert page.found == 1_230_000
    assert page.hits == (
        Hit("http://cca.org.cn/a?id=1", "光明牛奶 投诉", "喝了 不舒服"),
        Hit("http://www.baidu.com/link?url=abc", "二", ""),
    )
    assert (page.empty, page.more) == (False, True)


def test_links_that_lead_nowhere_and_repeats_are_dropped():
    page = results(
        *(
            HIT.format(link, "t", "")
            for link in ("javascript:void(0)", "mailto:a@b.cn", "#top", "", "http://u:p@a.cn/")
        ),
        HIT.format("http://a.cn/1", "first", ""),
        HIT.format("http://a.cn/1#again", "second", ""),
    )
    assert [hit.title for hit in page.hits] == ["first"]
    assert (page.found, page.more) == (None, False)


@pytest.mark.parametrize("count", ["", "约", "12a", "9" * 30])
def test_found_that_is_no_number_is_unknown(count):
    rules = BAIDU.model_copy(update={"found": "找到(.*?)个"})
    html = f"<p>找到{count}个</p>" + HIT.format("http://a.cn/", "t", "")
    assert read_results(html, URL, rules).found is None


def test_empty_is_proven_by_its_mark():
    page = results("<p>很抱歉，没有找到与“<em>特仑苏</em>”相关的网页。</p>")
    assert (page.found, page.hits, page.empty, page.more) == (0, (), True, False)


@pytest.mark.parametrize(
    ("text", "url", "expected"),
    [
        ("<title>百度安全验证</title>", URL, ErrorClass.CAPTCHA),
        ("<p>x</p>", "https://wappass.baidu.com/static/captcha/tuxing.html?ak=1", ErrorClass.CAPTCHA),
        ("<p>您的访问过于频繁，请稍后再试</p>", URL, ErrorClass.RATE_LIMITED),
        ("<p>请先<b>登录</b></p>", URL, ErrorClass.LOGIN_WALL),
    ],
)
def test_blocked(text, url, expected):
    error = results_error(text, url=url)
    assert error.error is expected


def test_hits_that_speak_of_captchas_or_of_nothing_found_are_hits():
    page = results(
        HIT.format("http://a.cn/1", "百度安全验证过不去，请先登录也没用", "访问过于频繁"),
        HIT.format("http://a.cn/2", "很抱歉，没有找到与我订单有关的客服", ""),
    )
    assert len(page.hits) == 2
    assert not page.empty


def test_broken_tells_what_the_selectors_matched():
    error = results_error("<div class=result><a href=/x>new layout</a></div>" * 3)
    assert error.error is ErrorClass.BAD_RULE
    assert "'div.result' matches 3" in error.detail
    assert "filled in 0" in error.detail
    assert "3 links" in error.detail


def test_rule_that_is_no_selector():
    with pytest.raises(FetchError) as caught:
        read_results("<p>x</p>", URL, BAIDU.model_copy(update={"hit": "div["}))
    assert (caught.value.error, "div[" in caught.value.detail) == (ErrorClass.BAD_RULE, True)


def test_found_reads_no_scripts():
    html = "<script>var t='百度为您找到相关结果约7个'</script>" + HIT.format("http://a.cn/", "t", "")
    assert read_results(html, URL, BAIDU).found is None


# ---- wording of refusals


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("请输入验证码", "请输入验证码", ErrorClass.CAPTCHA),
        ("please solve the CAPTCHA", "(?i)captcha", ErrorClass.CAPTCHA),
        ("Sina Visitor System", "Sina Visitor System", ErrorClass.LOGIN_WALL),
        ("请 Login 后查看", "(?i)login", ErrorClass.LOGIN_WALL),
        ("操作频繁", "操作频繁", ErrorClass.RATE_LIMITED),
        ("禁止访问", "禁止访问", ErrorClass.FORBIDDEN),
        ("光明牛奶", "禁止访问", None),
    ],
)
def test_class_of_a_refusal(text, pattern, expected):
    assert check_blocked(text, "http://a.cn/", ("不会出现", pattern)) is expected


def test_refusal_told_by_its_address():
    assert (
        check_blocked("", "https://passport.weibo.com/visitor", (r"passport\.weibo",))
        is ErrorClass.LOGIN_WALL
    )


# ---- pages


def page(html: str, rules: PageRules):
    return read_page(html, "http://a.cn/x", rules, now=NOW)


def page_error(html: str, rules: PageRules = COMPLAINT) -> FetchError:
    with pytest.raises(FetchError) as caught:
        page(html, rules)
    return caught.value


def test_complaint_with_all_its_fields():
    read = page(
        """<html><head><title> 投诉 -  315 </title></head><body><div class="complaint" data-id="c-17">
        <h1 class="complaint-title">光明<b>牛奶</b>变质</h1><div class="complaint-body"><p>买了一箱</p><p>全坏了</p>
        <script>track("body")</script><span style="display: none">隐藏</span><span hidden>也隐藏</span></div>
        <span class="complaint-author">王\u3000先生</span><span class="complaint-date">昨天 12:30</span>
        <span class="complaint-rating" data-value="2.5 星"></span></div></body></html>""",
        COMPLAINT,
    )
    assert read.title == "投诉 - 315"
    (review,) = read.reviews
    assert (review.key, review.title, review.body) == ("c-17", "光明牛奶变质", "买了一箱 全坏了")
    assert (review.author, review.date_text, review.rating) == ("王 先生", "昨天 12:30", 2.5)
    assert review.date == datetime(2013, 5, 5, 12, 30, tzinfo=CHINA)


def test_thread_keeps_places_drops_empty_bodies_and_tells_repeated_ids_apart():
    post = '<div class="post"{}><div class="post-body">{}</div></div>'
    read = page(
        post.format("", "甲")
        + post.format(' id="p2"', " ")
        + post.format(' id="p3"', "丙")
        + post.format(' id="p3"', "丁"),
        THREAD,
    )
    assert [(review.key, review.body) for review in read.reviews] == [
        ("#0", "甲"),
        ("p3", "丙"),
        ("#3", "丁"),
    ]
    assert [(review.title, review.date, review.rating) for review in read.reviews] == [("", None, None)] * 3


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ('<a class="n" href="/x?page=2#top"> 下一页</a>', "http://a.cn/x?page=2"),
        ('<a class="n" href=" ?page=2 "></a>', "http://a.cn/x?page=2"),
        ('<a class="n" href="HTTP://A.cn/y"></a>', "http://a.cn/y"),
        ('<a class="n" href="http://b.cn/x?page=2"></a>', ""),
        ('<a class="n" href="http://a.cn:8080/x"></a>', ""),
        ('<a class="n" href="x"></a>', ""),
        ('<a class="n" href="#reviews"></a>', ""),
        ('<a class="n" href="javascript:more()"></a>', ""),
        ('<a class="n" href></a>', ""),
        ('<span class="n">下一页</span>', ""),
        ("", ""),
    ],
)
def test_next_part_of_a_review_list_is_another_page_of_the_same_host(link, expected):
    html = BODY.format("好") + link
    assert page(html, COMPLAINT.model_copy(update={"next": "a.n"})).next_url == expected
    assert page(html, COMPLAINT).next_url == ""


def test_found_is_read_before_the_first_hit_and_then_anywhere():
    hit = HIT.format("http://a.cn/1", "百度为您找到相关结果约5个", "")
    count = "<div>百度为您找到相关结果约7个</div>"
    assert [results(*parts).found for parts in ((count, hit), (hit, "<p>x</p>"), (hit, count))] == [7, 5, 5]
    assert results(HIT.format("http://a.cn/1", "t", ""), count).found == 7


def test_review_that_mentions_a_captcha_is_a_review():
    html = '<div class="weibo-post" mid="1"><p class="txt">登录要我请输入验证码，还说访问过于频繁</p></div>'
    assert page(html, MICROBLOG).reviews[0].key == "1"


def test_page_without_review_is_blocked_or_broken():
    assert page_error("<title>Sina Visitor System</title>", MICROBLOG).error is ErrorClass.LOGIN_WALL
    assert page_error("<p>请输入验证码</p>").error is ErrorClass.CAPTCHA
    broken = page_error('<div class="complaint">no body here</div>')
    assert broken.error is ErrorClass.BAD_RULE
    assert "'div.complaint' matches 1" in broken.detail


def test_inline_markup_joins_and_blocks_part():
    body = "非<b>常</b>好<br>喝<ul><li>一</li><li>二</li></ul>了"
    html = f'<div class=complaint><div class="complaint-body">{body}</div></div>'
    assert page(html, COMPLAINT).reviews[0].body == "非常好 喝 一 二 了"


def test_blanks_of_all_kinds_collapse():
    assert collapse("\u3000a\xa0\n b\t\u2003c ") == "a b c"


# ---- hostile markup

BODY = '<div class="complaint"><div class="complaint-body">{}</div></div>'


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 100_000 + "x",
        "<div>" * 50_000 + "</div>" * 50_000,
        "<p " + " ".join(f"a{n}=1" for n in range(100_000)) + ">x",
        "<p " + "/".join(f"a{n}" for n in range(100_000)) + ">x",
        "<p " + " ".join(f"a{n}='>'" for n in range(100_000)) + ">x",
        "<p>" + "".join(f"<font size={n}>" for n in range(900)) + "<p>x" * 20_000,
    ],
    ids=["deep", "deep and closed", "attributes", "slashes", "quoted", "formatting"],
)
def test_markup_made_to_choke_a_parser_is_refused(html):
    assert page_error(html).error is ErrorClass.TOO_LARGE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\0b\0", "ab"),
        ("&amp;lt;script&#62;&nbsp;&#0;&bogus;&#x1F600;", "&lt;script> \ufffd&bogus;😀"),
        ("<scr<script>x</script>ipt>y", "xipt>y"),
        ("<!-- <div class=complaint> -->ok<![CDATA[x]]>", "ok"),
        ("<b>" * 500 + "deep" + "</b>" * 500, "deep"),
        ("\ud800lone", None),
        ("<template>t</template><noscript>n</noscript><style>s</style>ok", "ok"),
        ("a" * 50_000_000, "a" * 50_000_000),
    ],
    ids=["nul", "entities", "nested script", "comments", "bold", "surrogate", "not shown", "50 MB line"],
)
def test_odd_markup_is_read(text, expected):
    (review,) = page(BODY.format(text), COMPLAINT).reviews
    assert expected is None or review.body == expected


def test_long_pages_of_ordinary_shape_pass():
    html = "<ul>" + "<li><p>x<br><b>y</b><a href=/>z</a>" * 20_000 + "</ul>" + BODY.format("ok")
    assert page(html, COMPLAINT).reviews[0].body == "ok"
