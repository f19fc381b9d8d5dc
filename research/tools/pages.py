"""Pages the benches read: review lists and result pages of an invented Chinese site, the same for every contestant.

A page is a function of its number: the same bytes in every run, another page for every number. The measures are
the issue's: 17 KB with 28 records (id, title, body, author, date, rating), 40 hits on a result page, with the head,
navigation, side boxes and scripts around them that real pages carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from splitter.catalog.model import Catalog, Engine, Limits, Site
from splitter.catalog.names import Kind
from splitter.catalog.rules import PageRules, ResultRules

RULES = PageRules(
    review="li.review",
    id="@data-id",
    title="h3.review-title",
    body="div.review-body",
    author="a.author",
    date="span.date",
    rating="span.star@data-score",
)
RESULT_RULES = ResultRules(
    hit="div.result",
    link="h3.t a@href",
    title="h3.t a",
    abstract="div.abstract",
    found=r"找到相关结果约([\d,]+)个",
    empty=("很抱歉，没有找到",),
    blocked=("访问过于频繁",),
    next="a.next",
)

_PRODUCTS = ("特仑苏纯牛奶", "光明优倍鲜奶", "雀巢中老年奶粉", "蒙牛真果粒", "三元极致", "伊利金典有机奶")
_MIDDLES = (
    "口感比以前淡了不少",
    "包装盒有一角是瘪的",
    "日期很新鲜",
    "味道香浓不腻",
    "客服一直没有回复",
    "有点结块",
)
_ENDINGS = (
    "希望商家给个说法",
    "以后还会再来",
    "建议大家看清楚保质期",
    "总体还算满意",
    "已经申请退货",
    "家里老人很喜欢",
)
# Some hundreds of words, so that reviews are near each other as seldom as real ones are: when, where, what of it, how
# much, what about it, who, and what came of it; a paragraph each.
_WORDS = (Path(__file__).parents[1] / "samples" / "words.txt").read_text("utf-8")
_WHEN, _WHERE, _ASPECTS, _DEGREES, _JUDGEMENTS, _WHO, _THEN = (
    tuple(words.split()) for words in _WORDS.split("\n\n")
)
_COPIED_ONE_IN = 60
_COPIES_OF = 20
_NAMES = ("王", "李", "张", "刘", "陈", "杨", "赵", "黄", "周", "吴")
_CHANNELS = ("首页", "奶粉", "液态奶", "酸奶", "母婴", "食品安全", "投诉", "论坛")
_STYLE = ".review{border-bottom:1px solid #ddd;padding:8px 0}.review-meta{color:#999;font-size:12px}"
_SCRIPT = (
    "var _hmt=_hmt||[];(function(){var h=document.createElement('script');h.src='/js/stat.js?%08x';})();"
)
_FILLER = "。"


def catalog_of(
    sites: Sequence[str], engines: Sequence[str] = ("search.example",), pages: int = 1, **engine: Any
) -> Catalog:
    """Return a catalog of made sites, which take turns with the engines; its limits hold nothing up.

    Args:
        engines: hosts.
        pages: result pages of a task.
        engine: fields of each engine.
    """
    fields = {"params": {"q": "{query}"}, **engine}
    return Catalog(
        name="made",
        limits=Limits(per_address_per_s=1000.0, total_per_s=10000.0),
        rules={"list": RULES},
        engines={
            host: Engine(kind=Kind.META, url=f"http://{host}/s", results=RESULT_RULES, **fields)
            for host in engines
        },
        sites={
            site: Site(engine=engines[n % len(engines)], rules="list", pages=pages)
            for n, site in enumerate(sites)
        },
    )


def review_page(
    number: int, about: str = "", *, records: int = 28, size: int = 17_000, encoding: str = "utf-8"
) -> bytes:
    """A page of a review list, read by ``RULES``.

    Args:
        number: which page; decides everything that differs between pages.
        about: the product that its title names besides the invented one: a page that does not name the product it was
            found for is not stored.
        records: reviews on it.
        size: of the page in bytes, met to within one character; no smaller than what the markup needs.
        encoding: of the page, which declares it.
    """
    rng = Random(number)
    product = rng.choice(_PRODUCTS)
    head = _head(rng, f"{about} {product}怎么样 第{number}页".lstrip(), encoding) + '<ul class="reviews">\n'
    rows = [_record(rng, number, place) for place in range(records)]
    foot = f'</ul>\n<div class="pages"><a class="next" href="/list/{number + 1}.html">下一页</a></div>\n{_foot(rng)}'
    left = size - len((head + "".join(before + after for before, after in rows) + foot).encode(encoding))
    letter = len(_FILLER.encode(encoding))
    share, rest = divmod(max(0, left // letter), max(1, records))
    listed = [
        before + _prose(rng, share + (place < rest), product) + after
        for place, (before, after) in enumerate(rows)
    ]
    return (head + "".join(listed) + foot).encode(encoding)


def result_page(number: int, addresses: Sequence[str], *, encoding: str = "utf-8") -> bytes:
    """A result page with one hit for each address and a link to the next page, read by ``RESULT_RULES``."""
    rng = Random(number)
    hits = "".join(
        f'<div class="result" id="{place + 1}"><h3 class="t"><a href="{address}" target="_blank">'
        f"<em>{rng.choice(_PRODUCTS)}</em>{rng.choice(_MIDDLES)}</a></h3>\n"
        f'<div class="abstract">{_prose(rng, 60, "牛奶")}</div><span class="g">{address[:40]} 2013-5-6</span></div>\n'
        for place, address in enumerate(addresses)
    )
    count = f'<div class="nums">找到相关结果约{rng.randrange(1000, 900_000):,}个</div>\n'
    more = f'<p id="page"><a class="next" href="?page={number + 1}">下一页</a></p>\n'
    return (_head(rng, "搜索", encoding) + count + hits + more + _foot(rng)).encode(encoding)


def _head(rng: Random, title: str, encoding: str) -> str:
    channels = "".join(f'<li><a href="/c/{place}/">{name}</a></li>' for place, name in enumerate(_CHANNELS))
    return (
        f'<!DOCTYPE html>\n<html lang="zh-CN">\n<head>\n<meta charset="{encoding}">\n<title>{title}</title>\n'
        f'<link rel="stylesheet" href="/css/main.css">\n<style>{_STYLE}</style>\n'
        f"<script>{_SCRIPT % rng.getrandbits(32)}</script>\n</head>\n<body>\n"
        f'<div class="top"><a href="/login">登录</a> | <a href="/register">注册</a></div>\n'
        f'<ul class="nav">{channels}</ul>\n<div class="main">\n<h1>{title}</h1>\n'
    )


def _foot(rng: Random) -> str:
    links = "".join(
        f'<li><a href="/item/{rng.randrange(10**6)}.html">{rng.choice(_PRODUCTS)}{rng.choice(_MIDDLES)}</a></li>'
        for _ in range(8)
    )
    return (
        f'</div>\n<div class="side"><h3>热门评论</h3><ul>{links}</ul></div>\n'
        f'<div class="foot">Copyright &copy; 2013 版权所有</div>\n'
        f"<script>{_SCRIPT % rng.getrandbits(32)}</script>\n</body>\n</html>\n"
    )


def _record(rng: Random, number: int, place: int) -> tuple[str, str]:
    """The markup of a record, before and after the text of its body."""
    score = rng.randint(1, 5)
    date = f"2013-{rng.randint(1, 12):02}-{rng.randint(1, 28):02} {rng.randint(0, 23):02}:{rng.randint(0, 59):02}"
    before = (
        f'<li class="review" data-id="r{number:07}{place:02}">\n'
        f'<h3 class="review-title">{rng.choice(_MIDDLES)}，{rng.choice(_ENDINGS)}</h3>\n'
        f'<div class="review-meta"><a class="author" href="/u/{rng.randrange(10**7)}">{rng.choice(_NAMES)}先生</a> '
        f'<span class="star star{score}" data-score="{score}.0"></span> <span class="date">{date}</span></div>\n'
        '<div class="review-body">'
    )
    return before, f'</div>\n<a class="up" href="javascript:;">有用({rng.randrange(99)})</a></li>\n'


def _prose(rng: Random, letters: int, product: str) -> str:
    """So many letters of a review, all outside ASCII; of some reviews the text is one that people copy."""
    text = ""
    if rng.randrange(_COPIED_ONE_IN) == 0:
        text = f"转自{rng.choice(_WHO)}："
        rng, product = Random(rng.randrange(_COPIES_OF)), _PRODUCTS[0]
    while len(text) < letters:
        text += (
            f"{rng.choice(_WHEN)}{rng.choice(_WHERE)}买的{product}，{rng.choice(_ASPECTS)}{rng.choice(_DEGREES)}"
            f"{rng.choice(_JUDGEMENTS)}，{rng.choice(_WHO)}{rng.choice(_THEN)}{_FILLER}"
        )
    return text[:letters]
