"""Pages made to hold the process that reads them; `bench hostile` reads the same list."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any

from splitter.catalog.rules import PageRules, PostRules, ResultRules
from tasks.domain.pages import Response
from tasks.fetching.robots import RobotsRules
from tasks.reading.interstitials import redirect_target
from tasks.reading.page_jobs import PageJob, ResultJob
from tasks.worker.page_reader import PageReader

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_URL = "http://example.cn/a"
_RECORDS = PageRules(review="div.r", body=".b", title=".t", author=".a", date=".d", next="a.next")
_WHOLE = PageRules(review="div.r", body=".", title=".t")
_MAIN = PageRules(main_text=True)
_HTML = ResultRules(
    hit="div.hit", link="a@href", title="a", abstract="p", time="i", found=r"共\s*([\d,]+)\s*条"
)
_POSTS = ResultRules(hit="div.hit", link="a@href", title="a", post=PostRules(body="p", date="i"))
_JSON = ResultRules(format="json", hit="items[]", link="url", title="title", abstract="text")
_PATTERN = ResultRules(
    hit="div.hit", link="a@href", title="a", found=r"(\d+)+(?:条|results)", empty=(r"(a|a)*b",)
)


@dataclass(frozen=True, slots=True)
class HostilePage:
    """A page and how it is read."""

    name: str
    read_by: Callable[[PageReader], Awaitable[Any]]


def hostile_pages() -> list[HostilePage]:
    """Every one."""
    pages = [
        *(HostilePage(name, _page(body, rules, headers)) for name, body, rules, headers in _pages()),
        *(HostilePage(name, _results(body, rules)) for name, body, rules in _result_pages()),
        *(HostilePage(name, _redirect(body)) for name, body in _redirects()),
        *(HostilePage(name, _robots(text)) for name, text in _robots_files()),
    ]
    return sorted(pages, key=lambda page: not page.name.startswith("paragraphs"))


def _page(body: bytes, rules: PageRules, headers: dict[str, str]) -> Callable[[PageReader], Awaitable[Any]]:
    response = Response(url=_URL, status=200, headers=headers, body=body, elapsed_s=0.0)
    return lambda reader: reader.read(PageJob.from_response(response, _NOW, rules=rules, hint=""))


def _results(body: bytes, rules: ResultRules) -> Callable[[PageReader], Awaitable[Any]]:
    response = Response(url=_URL, status=200, headers={}, body=body, elapsed_s=0.0)
    return lambda reader: reader.read(ResultJob.from_response(response, _NOW, rules=rules))


def _redirect(body: bytes) -> Callable[[PageReader], Awaitable[Any]]:
    response = Response(url=_URL, status=200, headers={}, body=body, elapsed_s=0.0)

    async def read(_reader: PageReader) -> Any:
        return redirect_target(response)

    return read


def _robots(text: str) -> Callable[[PageReader], Awaitable[Any]]:
    async def read(_reader: PageReader) -> Any:
        rules = await RobotsRules.read(text, 200)
        rules.allows("http://example.cn/" + "a" * 2000, "reviewloop")
        return rules

    return read


def _pages() -> list[tuple[str, bytes, PageRules, dict[str, str]]]:
    rng = Random(1)
    gbk = "光明牛奶".encode("gbk") * 5
    rss = "<rss><channel><title>x</title>{}</channel></rss>"
    item = "<item><title>a</title><description>{}</description><author>{}</author><guid>{}</guid></item>"
    review = "<div class=r><b class=t>t</b><p class=b>body</p></div>"
    nested = "<div class=r><b class=t>t</b><p class=b>body</p>"
    none: dict[str, str] = {}
    comments = ",".join(['{"content":"不错的牛奶","author":"a","createdAt":1e999,"score":-1e999}'] * 20)
    made: list[tuple[str, str | bytes, PageRules, dict[str, str]]] = [
        ("paragraphs, 20,000", "<p>光，明。" * 20_000, _MAIN, none),
        ("paragraphs, 100,000", "<p>光，明。" * 100_000, _MAIN, none),
        ("XML declaration of 60,000 blanks", "<?xml " + " " * 60_000, _MAIN, none),
        ("the same, not in UTF-8", b"<?xml " + b" " * 60_000 + bytes(range(128, 256)), _MAIN, none),
        ("paragraphs, 1,900 short ones, in doubt", "<p>光明</p>" * 900, _MAIN, none),
        ("table cells, 30,000, nested in twos", "<table><tr><td>x" * 15_000, _MAIN, none),
        ("RSS author of 3,000 @", rss.format(item.format("bb", "@" * 3000, "1")), _MAIN, none),
        ("RSS author of 60,000 @", rss.format(item.format("bb", "@" * 60_000, "1")), _MAIN, none),
        ("RSS, 20,000 items with one id", rss.format(item.format("b", "c", "1") * 20_000), _MAIN, none),
        ("RSS, ids of 10,000 characters", rss.format(item.format("b", "c", "1" * 10_000) * 5), _MAIN, none),
        ("RSS, 4,000 open CDATA", rss.format("<item><description><![CDATA[" * 4000), _MAIN, none),
        (
            "charset= and 16 KB of blanks",
            gbk,
            _RECORDS,
            {"content-type": f"text/html; charset={' ' * 16_000}!"},
        ),
        ("<meta charset= and blanks", b"<meta charset=" + b" " * 4000 + gbk, _RECORDS, none),
        ("680 <meta", b"<meta " * 680 + gbk, _RECORDS, none),
        ("1,000 open comments before the charset", b"<!--" * 1000 + gbk, _RECORDS, none),
        ("60 KB of random bytes", rng.randbytes(60_000), _RECORDS, none),
        ("5 MB of random bytes", rng.randbytes(5_000_000), _RECORDS, none),
        ("60 KB of lead bytes", b"\xb9" * 60_001, _RECORDS, none),
        ("60 KB of half UTF-8", b"\xe5\x85" * 30_000, _RECORDS, none),
        ("900 nested posts", nested * 900, _RECORDS, none),
        ("900 nested posts, read whole", nested * 900, _WHOLE, none),
        ("24 nested posts of 60 KB, read whole", nested * 24 + "x " * 29_000, _WHOLE, none),
        ("180 nested posts of 60 KB, read whole", nested * 180 + "x " * 29_000, _WHOLE, none),
        (
            "150 fields 290 deep in one post",
            f"<div class=r>{'<div>' * 290}{'<b class=b>x</b>' * 150}",
            _RECORDS,
            none,
        ),
        ("20,000 nested posts", nested * 20_000, _WHOLE, none),
        ("100,000 posts", review * 100_000, _RECORDS, none),
        (
            "one post of 5 MB of blanks and marks",
            f"<div class=r><p class=b>{'。 ' * 1_200_000}x",
            _RECORDS,
            none,
        ),
        ("60 KB of full stops, then a letter", f"<div class=r><p class=b>{'0' * 60_000}x", _RECORDS, none),
        (
            "dates of blanks",
            f"<div class=r><p class=b>x</p><i class=d>今天{'&nbsp;' * 200}x</i></div>" * 40,
            _RECORDS,
            none,
        ),
        (
            "dates of digits",
            f"<div class=r><p class=b>x</p><i class=d>{'a-1 ' * 24}x</i></div>" * 240,
            _RECORDS,
            none,
        ),
        (
            "one tag of 16,000 attributes",
            "<p " + " ".join(f"a{n}" for n in range(9000)) + ">" + review,
            _RECORDS,
            none,
        ),
        ("formatting left open, 1,000 times", "<b><i x=1><u>" * 330 + "<p>x" * 900 + review, _RECORDS, none),
        ("1,900 open <a>", "<a><p>" * 950 + review, _RECORDS, none),
        ("1,900 tables in tables", "<table><td>" * 950 + review, _RECORDS, none),
        ("5 MB of <", "<" * 5_000_000, _RECORDS, none),
        ("60 KB of <", "<" * 60_000, _MAIN, none),
        ("JSON-LD nested 60,000 deep", _json_ld("[" * 60_000), _MAIN, none),
        (
            "JSON-LD number of 5,000 digits",
            _json_ld(f'{{"@type":"Review","reviewBody":{"9" * 5000}}}'),
            _MAIN,
            none,
        ),
        ("character reference of 5,000 digits", _json_ld(_review_of(f"&#{'9' * 5000};")), _MAIN, none),
        ("JSON-LD, 40,000 reviews", _json_ld(f"[{','.join([_review_of('b')] * 40_000)}]"), _MAIN, none),
        (
            "title of 60 KB of blanks and dashes",
            f"<title>{' -' * 30_000}</title><p>光明，牛奶。",
            _MAIN,
            none,
        ),
        (
            "one tag of 100,000 attributes",
            f"<p {' '.join(f'a{n}=1' for n in range(100_000))}>{review}",
            _RECORDS,
            none,
        ),
        ("50,000 <meta>", "<meta name=a content=b>" * 50_000 + review, _RECORDS, none),
        ("JSON in a script, 12,000 deep", _state('{"a":' * 12_000 + "1" + "}" * 12_000), _MAIN, none),
        (
            "a script of 20,000 beginnings of lists",
            f"<script>{'= [' * 20_000}</script><p>光明，牛奶。",
            _MAIN,
            none,
        ),
        ("comments whose times are no numbers", _state(f'{{"comments":[{comments}]}}'), _MAIN, none),
        ("RSS whose entities grow tenfold, 11 times", _growing(11), _MAIN, none),
        ("a form that leads on, 20,000 times", "<a class=next href=/b>" * 20_000 + review, _RECORDS, none),
    ]
    return [
        (name, body.encode() if isinstance(body, str) else body, rules, headers)
        for name, body, rules, headers in made
    ]


def _review_of(text: str) -> str:
    return json.dumps({"@context": "https://schema.org", "@type": "Review", "reviewBody": text})


def _json_ld(text: str) -> str:
    return f'<script type="application/ld+json">{text}</script><p>https://schema.org 光明，牛奶。</p>'


def _state(value: str) -> str:
    return f"<script>window.__INITIAL_STATE__ = {value};</script><p>光明，牛奶。"


def _growing(times: int) -> str:
    named = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, times + 1))
    return f"<!DOCTYPE l [{named}]><rss><channel><item><title>&l{times};</title></item></channel></rss>"


def _result_pages() -> list[tuple[str, bytes, ResultRules]]:
    hit = "<div class=hit><a href=/x{}>t</a><p>aa</p></div>"
    post = "<div class=hit><a href=/x>t</a><p>a{}x</p></div>"
    blanks = " \u200b"
    bare = ResultRules(hit="a", link="@href", title=".")
    document = {"items": [{"url": f"/x{n}", "title": "<b>t", "text": "&lt;"} for n in range(60_000)]}
    made = [
        ("60,000 hits", "".join(map(hit.format, range(60_000))), _HTML),
        ("1,900 hits in 64 KB", "".join(f"<a href=/x{n}>" for n in range(1900)), bare),
        ("250 hits on names of 60 letters", hit.replace("/x{}", f"http://{'光' * 60}.cn/") * 250, _HTML),
        ("200,000 blanks, half of them zero-width", post.format(blanks * 100_000), _POSTS),
        ("16,000 blanks, half of them zero-width", post.format(blanks * 8000), _POSTS),
        ("60 KB of digits for the number of hits", f"<p>共{'1,' * 30_000}<div class=hit><a href=/x>t</a></div>", _HTML),
        ("64 KB for a pattern that doubles", f"<p>{'1' * 30_000}<p>{'a' * 30_000}", _PATTERN),
        ("JSON, 60,000 hits", json.dumps(document), _JSON),
        ("JSON nested 30,000 deep", "[" * 30_000, _JSON),
        ("JSON nested 2,000,000 deep", '{"items":' + "[" * 2_000_000, _JSON),
        ("JSON number of 60,000 digits", '{"items":[{"url":' + "9" * 60_000 + "}]}", _JSON),
        ("JSON, 60 KB of markup in a title", json.dumps({"items": [{"url": "/x", "title": "<b>" * 20_000}]}), _JSON),
        ("JSON, 5 MB of escapes", '{"items":"' + "\\u5149" * 800_000 + '"}', _JSON),
    ]  # fmt: skip
    return [(name, body.encode(), rules) for name, body, rules in made]


def _redirects() -> list[tuple[str, bytes]]:
    made = {
        "redirect: <meta content= and 19 KB of blanks": "<meta content=" + " " * 19_000,
        "redirect: 3,000 <meta": "<meta " * 3000,
        "redirect: 1,300 <meta content=0": "<meta content=0" * 1300,
        "redirect: to a name of 6,300 ligatures": f"<meta http-equiv=refresh content='0;url=http://{'ﷺ' * 6300}'>",
        "redirect: location and blanks": "location" + " " * 19_000,
        "redirect: 1,400 location=": "location='http://" * 1100,
        "redirect: content=0; and blanks": "<meta content=0;" + " " * 19_000,
        "redirect: reference of 4,000 digits": "location='http://x/&#" + "9" * 3900 + ";'",
    }
    return [(name, body.encode()) for name, body in made.items()]


def _robots_files() -> list[tuple[str, str]]:
    stars = "".join(f"Disallow: /*a*b{n}\n" for n in range(20_000))
    agents = "".join(f"User-agent: a{n}\n" for n in range(2000))
    return [
        ("robots.txt: 40,000 rules", "User-agent: *\n" + "Disallow: /a\n" * 40_000),
        ("robots.txt: 20,000 rules with stars", "User-agent: *\n" + stars),
        ("robots.txt: one rule of 250,000 stars", "User-agent: *\nDisallow: /" + "*a" * 250_000),
        ("robots.txt: 2,000 agents with 20,000 rules", agents + "Disallow: /b\n" * 20_000),
        ("robots.txt: 10,000 agents", "".join(f"User-agent: a{n}\nDisallow: /\n" for n in range(10_000))),
        ("robots.txt: percent signs", "User-agent: *\n" + "Disallow: /" + "%e5" * 160_000),
    ]  # fmt: skip
