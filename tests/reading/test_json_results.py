"""JSON answers: broken, hostile and odd ones. The formats of engines are in test_engine_formats."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import in_pieces

from splitter.catalog.rules import PostRules, ResultRules
from tasks.domain.failures import ErrorClass, FetchError
from tasks.reading.json_results import JsonAnswer
from tasks.reading.results import read_results

NOW = datetime(2024, 6, 1, tzinfo=UTC)
URL = "https://s.example.com/api?q=x"
RULES = ResultRules(
    format="json",
    hit="data.list[]",
    link="url | https://s.example.com/p/{id}",
    title="title",
    abstract="text",
    time="time",
    found="data.total",
    next="data.next",
    empty=("data.list=", "没有结果"),
    blocked=("code=7", "action=captcha", "code!=0 & msg!="),
)
POSTS = RULES.model_copy(update={"post": PostRules(id="id", body="text", author="user.name", rating="stars")})


def answer(*hits: Any, **data: Any) -> str:
    return json.dumps({"data": {"list": list(hits), **data}})


def read(text: str, rules: ResultRules = RULES):
    return read_results(text, URL, rules, now=NOW)


def error(text: str, rules: ResultRules = RULES) -> ErrorClass:
    with pytest.raises(FetchError) as told:
        read(text, rules)
    return told.value.error


def test_values():
    page = read(
        answer(
            {"id": 12, "title": "甲", "time": 1709256000},
            {"id": 1.0, "url": "", "title": ["no", "text"]},
            {"id": None, "title": "no link"},
            {"url": "javascript:alert(1)"},
            {"url": "#top"},
            {"url": "/relative?a=1", "title": "a\n  b\u3000c"},
            {"url": "https://s.example.com/p/12", "title": "again"},
            "a text",
            [1],
            total="1,234",
            next=True,
        )
    )
    assert [(hit.url, hit.title) for hit in page.hits] == [
        ("https://s.example.com/p/12", "甲"),
        ("https://s.example.com/p/1", ""),
        ("https://s.example.com/relative?a=1", "a b c"),
    ]
    assert (page.found, page.more) == (1234, True)
    assert page.hits[0].time == datetime.fromtimestamp(1709256000, UTC)


@pytest.mark.parametrize(
    ("total", "found"),
    [(7, 7), ("约 7", None), (0, None), (-3, None), ("9" * 40, None), (None, None), ({}, None), (1e30, None)],
)
def test_found(total, found):
    assert read(answer({"id": 1}, total=total)).found == found


@pytest.mark.parametrize(("value", "more"), [(2, True), ("2", True), ("0", False), (0, False), (None, False)])
def test_more(value, more):
    assert read(answer({"id": 1}, next=value)).more is more
    assert read(answer({"id": 1})).more is False


def test_markup_in_texts():
    page = read(
        answer({"id": 1, "title": "<em>光明</em>牛奶 &lt;好&gt;", "text": "一<br />二<script>x</script> 3<4"})
    )
    assert (page.hits[0].title, page.hits[0].abstract) == ("光明牛奶 <好>", "一 二 3<4")


def test_posts():
    page = read(
        answer(
            {"id": 5, "text": "<p>喝了</p><p>不舒服</p>", "user": {"name": "甲"}, "stars": "4.5分"},
            {"id": 6, "text": "<img src=x>"},
        ),
        POSTS,
    )
    (hit,) = page.hits
    assert hit.post.key == "5"
    assert (hit.post.body, hit.post.author, hit.post.rating) == ("喝了 不舒服", "甲", 4.5)


@pytest.mark.parametrize(
    "text", ['{"data": {"list": []}}', '{"data": {"list": null}}', '{"msg": "没有结果"}']
)
def test_empty(text):
    page = read(text)
    assert (page.empty, page.found, page.hits) == (True, 0, ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"code": 7}', ErrorClass.FORBIDDEN),
        ('{"data": {"list": null}, "code": 7}', ErrorClass.FORBIDDEN),  # an empty list that is none
        ('{"code": 7, "msg": "请先登录"}', ErrorClass.LOGIN_WALL),
        ('{"code": 7, "msg": "访问过于频繁"}', ErrorClass.RATE_LIMITED),
        ('{"action": "captcha"}', ErrorClass.CAPTCHA),
        ('{"code": 3, "msg": "x"}', ErrorClass.FORBIDDEN),
        ('{"code": 0, "msg": "x"}', ErrorClass.BAD_RULE),
        ('{"code": 3}', ErrorClass.BAD_RULE),
        ('{"data": {"list": [{"x": 1}]}}', ErrorClass.BAD_RULE),
        ("[]", ErrorClass.BAD_RULE),
        ("{}", ErrorClass.BAD_RULE),
        ("", ErrorClass.BAD_CONTENT),
        (" \n\ufeff", ErrorClass.BAD_CONTENT),
        ('{"data": {"list": [{"id": 1}', ErrorClass.BAD_CONTENT),
        ('{"data": ' + "9" * 5000 + "}", ErrorClass.BAD_CONTENT),
        ("<html><title>登录</title></html>", ErrorClass.LOGIN_WALL),
        ("<html>请输入验证码</html>", ErrorClass.CAPTCHA),
        ("<html>Too Many Requests</html>", ErrorClass.RATE_LIMITED),
        ("null", ErrorClass.FORBIDDEN),
        ("nothing to see", ErrorClass.FORBIDDEN),
    ],
)
def test_refusals_and_what_is_broken(text, expected):
    assert error(text) is expected


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deep_documents(opening):
    assert error(opening * 200_000) in (ErrorClass.TOO_LARGE, ErrorClass.BAD_CONTENT)
    closed = "[" * 100_000 + "]" * 100_000
    assert error(closed) is ErrorClass.TOO_LARGE


def test_huge_documents_and_lists():
    assert error('{"data": "' + "x" * 5_000_000 + '"}') is ErrorClass.TOO_LARGE
    begin = time.thread_time()
    page = read(answer(*({"id": n} for n in range(50_000))))
    assert len(page.hits) == 1000
    assert in_pieces(time.thread_time() - begin) < 50


def test_texts_no_database_takes():
    text = '{"data": {"list": [{"id": "1\\u0000", "title": "a\\ud800b\\u0000c", "text": "\\udfff"}]}}'
    (hit,) = read(text).hits
    assert (hit.url, hit.title, hit.abstract) == ("https://s.example.com/p/1", "abc", "")
    hit.title.encode()


def test_a_control_character_in_a_text():
    (hit,) = read('{"data": {"list": [{"id": 1, "title": "a\tb"}]}}').hits
    assert hit.title == "a b"


def test_embedded_scripts_that_are_no_json():
    rules = RULES.model_copy(
        update={"embedded": "script.d", "hit": "[].list[]", "found": "[].total", "next": ""}
    )
    page = (
        '<script class="d">{"list": [{"id": 1}]}</script><script class="d">{"list": </script>'
        '<script class="d">{"total": 9, "list": [{"id": 2, "title": "x </em>"}]}</script><script>{"list": 1}</script>'
    )
    found = read(page, rules)
    assert [hit.url for hit in found.hits] == ["https://s.example.com/p/1", "https://s.example.com/p/2"]
    assert found.found == 9
    assert (
        error('<script class="d">' + "[" * 100_000 + "]" * 100_000 + "</script>", rules)
        is ErrorClass.TOO_LARGE
    )


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
NAMES = st.sampled_from(
    ["data", "list", "url", "id", "title", "text", "total", "next", "time", "code", "msg", "user"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=20,
)


@given(st.fixed_dictionaries({}, optional={"data": VALUES, "code": SCALARS, "msg": SCALARS}) | VALUES)
def test_whatever_is_answered_is_a_page_or_a_typed_error(document):
    try:
        page = read(json.dumps(document), POSTS)
    except FetchError:
        return
    assert page.empty or page.hits
    for hit in page.hits:
        assert hit.url.startswith("http")
        assert hit.post is not None
        assert hit.post.body


def test_values_of_each_rule():
    text = answer({"id": 5, "text": "<p>喝了</p>", "user": {"name": "甲"}}, {"id": 6}, total=9)
    read = JsonAnswer(text, URL, POSTS)
    assert len(read.records) == 2
    assert read.values(POSTS.link) == ["https://s.example.com/p/5", "https://s.example.com/p/6"]
    assert read.texts("text") == ["喝了", ""]
    assert read.texts("user.name") == ["甲", ""]
    assert read.values("") == ["", ""]
    assert (read.everywhere(POSTS.found), read.everywhere(POSTS.next)) == (["9"], [])
    with pytest.raises(FetchError):
        JsonAnswer("<html>", URL, POSTS)
