"""What a page without hits is, for an engine whose patterns do not know it."""

from __future__ import annotations

from math import expm1

import pytest

from splitter.catalog.rules import ResultRules
from tasks.domain.failures import ErrorClass, FetchError
from tasks.reading.markup import parse
from tasks.reading.page_outcome import page_weights, traits
from tasks.reading.results import read_results

RULES = ResultRules(hit="div.result", link="a@href", title="a")
URL = "https://www.engine.cn/s"


def told(text: str) -> FetchError:
    with pytest.raises(FetchError) as raised:
        read_results(text, URL, RULES)
    return raised.value


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "<title>滑块验证</title><div><p>请完成人机验证后继续访问</p><form><input name=code></form></div>",
            ErrorClass.CAPTCHA,
        ),
        (
            "<title>Just a moment...</title><p>Checking your browser before accessing</p>",
            ErrorClass.FORBIDDEN,
        ),
        ("<title>提示</title><p>您的访问过于频繁，请稍后再试</p>", ErrorClass.RATE_LIMITED),
    ],
)
def test_an_unknown_refusal_is_told_as_one(text, error):
    assert told(text).error is error
    assert "seems to refuse" in str(told(text))


def test_an_unknown_empty_answer_is_told_but_not_believed():
    menu = "".join(f'<a href="/c/{n}">栏目{n}</a>' for n in range(12))
    text = (
        f"<title>搜索结果</title>{menu}<form><input name=q></form><p>抱歉，没有找到相关内容，换个词试试</p>"
    )
    assert told(text).error is ErrorClass.BAD_RULE
    assert "seems an empty answer" in str(told(text))


@pytest.mark.parametrize("speaks", ["", "请先登录"])
def test_a_page_of_results_is_a_broken_rule_even_where_it_says_sign_in(speaks):
    items = "".join(
        f'<li class=r><h3><a href="https://site{n}.cn/{n}">第{n}条结果的标题写在这里</a></h3><p>{"摘要" * 20}</p></li>'
        for n in range(10)
    )
    text = f"<title>牛奶_搜索</title><p>{speaks}</p><form><input name=q></form><ul>{items}</ul>"
    assert told(text).error is ErrorClass.BAD_RULE
    assert "seems a broken rule" in str(told(text))


def test_a_page_to_sign_in_is_a_refusal_though_no_word_says_so():
    menu = "".join(f'<a href="/c/{n}">Kategorie {n}</a>' for n in range(20))
    form = (
        '<form><input type="text" name="user"><input type="password" name="word"><button>OK</button></form>'
    )
    assert told(f"<title>Anmelden</title>{menu}{form}").error is not ErrorClass.BAD_RULE


@pytest.mark.parametrize(
    ("says", "counts"),
    [("About 65,200,000 results", 0), ("0 results", 1), ("找到相关结果约0个", 1), ("共 10 条结果", 0)],
)
def test_no_hit_is_another_thing_than_a_number_that_ends_in_zero(says, counts):
    text = f"<p>{says}</p>"
    assert round(expm1(traits(text, parse(text), URL)["words of nothing"])) == counts


def test_a_short_page_alone_is_no_refusal():
    assert told("<html><body><p>a new layout</p></body></html>").error is ErrorClass.BAD_RULE


def test_the_weights_are_of_these_traits():
    names = {"constant", *traits("<p>x</p>", parse("<p>x</p>"), URL)}
    assert set(page_weights()) == names


def test_hostile_pages_are_judged_in_no_time():
    for piece in ("<script", "<a href=x>", "<div><a href=x>", "验证码"):
        text = piece * 900
        traits(text, parse(text, keep_hidden=True), URL)
