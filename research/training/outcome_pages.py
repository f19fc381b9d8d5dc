"""Result pages without hits, by what they are: generated ones, and real ones in a folder.

Generated: the lab's result pages of today's engines (a page with results stands for one whose rules are broken), and
refusals and empty answers in the wordings of many sites, in plain layouts of our own.
Real: files named `KIND/ENGINE--NAME.html` in a folder, kind refused, empty or broken.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from urllib.parse import urljoin, urlsplit

from app.lab.answers import LabAnswer, LabResponse
from app.lab.pages import Corpus, make_texts
from app.lab.web import LocalWeb
from splitter.catalog.load import load_catalog
from splitter.urls import search_url
from tasks.domain.failures import FetchError
from tasks.reading.decode import decode
from tasks.reading.markup import parse
from tasks.reading.page_outcome import OUTCOMES, Outcome, traits

_ROOT = Path(__file__).parents[2]
_ANSWERS = (LabAnswer.CAPTCHA, LabAnswer.TOO_FREQUENT, LabAnswer.LOGIN_PAGE)
_QUERIES = 5
_PLAIN = """
waf-zh | 访问被拦截 | 您的请求疑似攻击行为，已被安全系统拦截，如有疑问请联系管理员 | 搜索结果 | 抱歉，没有找到相关内容
slider-zh | 滑块验证 | 请拖动滑块完成人机验证后继续访问 | 商品搜索 | 没有找到符合条件的商品，换个词试试
robot-zh | 系统检测 | 系统检测到您的网络环境存在异常流量，请输入图中字符 | 站内搜索 | 未找到相关结果，请检查您的输入是否正确
often-zh | 提示 | 您的操作过于频繁，请稍后再试 | 论坛搜索 | 对不起，没有找到匹配结果
login-zh | 用户登录 | 请先登录，登录后查看更多搜索结果 | 全部 | 暂无数据
robot-en | Sorry... | Our systems have detected unusual traffic. To continue, please type the characters below | Search | Your search did not match any documents. Try different keywords
human-en | One more step | Please complete the security check to prove you are not a robot | Results | No results found for your query
denied-en | Access Denied | You don't have permission to access this resource. Reference #18 | Shop | No products were found matching your selection
script-en | Loading | Please enable JavaScript and cookies to continue | Search results | We couldn't find anything. Check your spelling
limit-en | Too Many Requests | Rate limit exceeded, try again later | Archive | Nothing found. 0 results
"""
"""Per line an engine, title and text of its refusal, and title and text of its empty answer."""


@dataclass(frozen=True, slots=True)
class OutcomePage:
    """A page: what it is, whose, whether it is real, and its traits."""

    kind: Outcome
    engine: str
    real: bool
    traits: dict[str, float]


def generated() -> Iterator[OutcomePage]:
    """The generated pages; the same every time."""
    yield from _of_the_lab()
    yield from _plain()


def real(folder: Path) -> Iterator[OutcomePage]:
    """The real pages of a folder."""
    for kind in OUTCOMES:
        for path in sorted((folder / kind).glob("*--*")):
            engine = path.name.partition("--")[0]
            with suppress(FetchError):  # a tree that no crawl would build
                yield _page(kind, engine, path.read_bytes(), f"https://www.{engine}.com/search", real=True)


def _page(kind: Outcome, engine: str, body: bytes, url: str, *, real: bool = False) -> OutcomePage:
    text = decode(body, {}).text
    return OutcomePage(kind, engine, real, traits(text, parse(text), url))


def _of_the_lab() -> Iterator[OutcomePage]:
    catalog = load_catalog(_ROOT / "sites.yaml")
    for name, engine in catalog.engines.items():
        if engine.discover != "search" or engine.results.format != "html":
            continue
        own = [site for site, entry in catalog.sites.items() if entry.engine == name] or list(catalog.sites)[
            :1
        ]
        sites = {site: catalog.sites[site].model_copy(update={"engine": name}) for site in own}
        of_one = catalog.model_copy(update={"sites": {**catalog.sites, **sites}})
        corpus = Corpus(of_one, 1, make_texts())
        web = LocalWeb(of_one, corpus)
        words = [(f"牛奶{n}",) for n in range(400)]
        with_hits = [one for one in words if len(corpus.listing(own[0], one)) > 5][:_QUERIES]
        without = [one for one in words if not corpus.listing(own[0], one)][:_QUERIES]
        for kind, queries in (("broken", with_hits), ("empty", without)):
            for query in queries:
                url = search_url(engine, query, site=own[0], page=1)
                yield _page(kind, name, _asked(web, url).body, url)  # type: ignore[arg-type]
        url = search_url(engine, ("牛奶",), site=own[0], page=1)
        parts = urlsplit(url)
        for answer in _ANSWERS:
            document = web.refusal(parts.hostname or "", f"{parts.path}?{parts.query}", answer)
            if document.location:
                document = _asked(web, urljoin(url, document.location))
            yield _page("refused", name, document.body, url)


def _asked(web: LocalWeb, url: str) -> LabResponse:
    document = web.document(
        urlsplit(url).hostname or "", urlsplit(url)._replace(scheme="", netloc="").geturl()
    )
    return _asked(web, urljoin(url, document.location)) if document.location else document


def _plain() -> Iterator[OutcomePage]:
    """Refusals, empty answers and pages of results in layouts of our own, some with a site's menu around them."""
    rng = Random(7)
    for line in _PLAIN.strip().splitlines():
        engine, *texts = line.split(" | ")
        for place in range(3):
            for kind, (title, words) in (("refused", texts[:2]), ("empty", texts[2:])):
                yield _page(kind, engine, _written(rng, kind, title, words, place), f"https://{engine}.cn/s")  # type: ignore[arg-type]
            yield _page(
                "broken", engine, _written(rng, "broken", "搜索", "", place), f"https://{engine}.cn/s"
            )


def _written(rng: Random, kind: str, title: str, words: str, place: int) -> bytes:
    menu = "".join(f'<a href="/c/{n}">栏目{n}</a>' for n in range(rng.randrange(3, 30)))
    form = '<form action="/s"><input type="text" name="q"><input type="hidden" name="ie"><button>搜索</button></form>'
    script = "<script>" + "var a=1;" * rng.randrange(5, 800) + "</script>"
    guess = "".join(
        f'<li><a href="/s?q={n}">大家都在搜 词语{n}</a></li>' for n in range(rng.randrange(0, 12))
    )
    body = {
        "refused": f"{script if place else ''}<div class=box><h1>{title}</h1><p>{words}</p>"
        + (
            '<img src="/captcha.png"><form><input type="text" name="code"><input type="hidden"></form>'
            if place > 1
            else ""
        )
        + "</div>",
        "empty": f"{menu}{form}<div class=none><p>{words}</p></div>{'<ul>' + guess + '</ul>' if place else ''}{script}",
        "broken": menu
        + form
        + "".join(
            f'<div class=item><h3><a href="https://site{rng.randrange(99)}.cn/{n}.html">第{n}条结果的标题有几个字</a></h3>'
            f"<p>{'摘要文字' * rng.randrange(3, 30)}</p></div>"
            for n in range(rng.randrange(4, 31))
        )
        + script,
    }[kind]
    return f"<!DOCTYPE html><html><head><title>{title}</title></head><body>{body}</body></html>".encode()
