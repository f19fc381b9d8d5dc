"""Sites of the lab: pages that the sites' rules can read, and lists of pages.

For rules with `main_text`, articles are written. For other rules, pages are generated from their selectors or paths. If
the rules are not simple, the page is a plain one that they can't read.

A list shows the pages for the keywords in `PRODUCTS`. If its address ends with .xml, it is a sitemap index of two
sitemaps, the second one compressed. Other lists are written like the result pages of their engine.
"""

from __future__ import annotations

import gzip
import re
from functools import lru_cache
from html import escape
from urllib.parse import parse_qs, urlsplit

from app.lab import chance
from app.lab.answers import LabResponse
from app.lab.made import NotSimple, Row, write_json, write_records
from app.lab.pages import TEMPLATES, WORDING, Content, Corpus, Listed
from splitter.catalog.model import Engine
from splitter.catalog.rules import PageRules
from splitter.keywords import keywords_of

# --- pages ----------------------------------------------------------------------------------------------------


_PLAIN = PageRules(review="div.record", title="h1.title", body="div.body")
_SENTENCES = re.compile(r"[^。！？]+[。！？]*")
_PARAGRAPH_CHARS = 160


def write_content(rules: PageRules, content: Content) -> str:
    """Return the text of a site's page: of an HTML page only what its frame holds, of JSON the whole document."""
    if rules.main_text:
        return _write_article(content)
    if rules.format == "json":
        text = write_json(rules, content.title, _rows(rules, content))
        return write_records(rules.embedded, [[(".", text)]]) if rules.embedded else text
    try:
        return _write_html(rules, content)
    except NotSimple:
        return _write_html(_PLAIN, content)


def _write_html(rules: PageRules, content: Content) -> str:
    is_in_head = rules.page_title in ("", "title")
    heading = "" if is_in_head else write_records(rules.page_title, [[(".", content.title)]])
    return heading + write_records(rules.review, _rows(rules, content))


def _rows(rules: PageRules, content: Content) -> list[Row]:
    return [
        [
            (rules.id, post.key),
            (rules.title, post.title),
            (rules.body, post.body),
            (rules.author, post.author),
            (rules.date, post.date),
            (rules.rating, str(post.rating or "")),
        ]
        for post in content.posts
    ]


def _write_article(content: Content) -> str:
    """Write a page with one main text, surrounded by the notes that news sites add."""
    post = content.posts[0]
    draw = chance.number(0, "article", post.key)
    lead = WORDING["reported"][draw % len(WORDING["reported"])].format(subject=content.subject)
    paragraphs = [
        f"本网讯 {content.title}。{lead}",
        *_split_paragraphs(post.body),
        WORDING["followed"][draw // 3 % len(WORDING["followed"])],
    ]
    return TEMPLATES["article"]["page"].format(
        key=post.key,
        title=escape(post.title),
        author=escape(post.author),
        date=post.date,
        source=("本网", "消费日报", "质量周刊")[draw // 9 % 3],
        editor=("李明", "王芳", "张伟")[draw // 27 % 3],
        paragraphs="".join(f"<p>　　{escape(text)}</p>\n" for text in paragraphs),
    )


def _split_paragraphs(text: str) -> list[str]:
    """Split a text into paragraphs of whole sentences."""
    paragraphs = [""]
    for sentence in _SENTENCES.findall(text):
        if paragraphs[-1] and len(paragraphs[-1]) + len(sentence) > _PARAGRAPH_CHARS:
            paragraphs.append("")
        paragraphs[-1] += sentence
    return paragraphs


# --- lists ----------------------------------------------------------------------------------------------------


PRODUCTS = ("光明高钙牛奶", "特仑苏", "蒙牛早餐奶", "雀巢中老年奶粉")
"""The products whose pages are listed."""

_XML = "application/xml"
_PARTS = ("-1.xml", "-2.xml.gz")
_SPACES = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_NEWS = 'xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"'


def list_pages(corpus: Corpus, site: str) -> tuple[Listed, ...]:
    """Return all entries of a site's list of pages."""
    return tuple(one for name in PRODUCTS for one in corpus.list_entries(site, keywords_of(name), None))


def number_in_list(engine: Engine, target: str) -> int:
    """Return the number (from 1) of the list page at a path with query string, or 0 if the list has no such page."""
    path, _, query = target.partition("?")
    before, numbered, after = (urlsplit(engine.url).path or "/").partition("{page}")
    number = "([1-9][0-9]{0,5})" if numbered else "()"
    match = re.fullmatch(f"{re.escape(before)}{number}{re.escape(after)}", path)
    if match is None:
        return 0
    given = parse_qs(query)
    for name in engine.paging_params:
        if engine.params[name] == "{page}" and (text := given.get(name, [""])[0]).isdecimal():
            return max(1, int(text[:6]))
    return int(match[1] or 1)


def find_sitemap(engine: Engine, corpus: Corpus, site: str, path: str) -> LabResponse | None:
    """Return the sitemap index or the sitemap at a path, or `None` if the path is neither."""
    url = urlsplit(engine.url)
    stem = url.path.removesuffix(".xml")
    if url.path == stem or not path.startswith(stem):
        return None
    part = path.removeprefix(stem)
    if part == ".xml":
        return _write_index(url._replace(path=stem, query="").geturl())
    return _write_sitemap(corpus, site, _PARTS.index(part)) if part in _PARTS else None


def _write_index(stem: str) -> LabResponse:
    parts = "".join(
        f"<sitemap><loc>{escape(stem + part)}</loc><lastmod>2026-0{n}-01T08:00:00+08:00</lastmod></sitemap>\n"
        for n, part in enumerate(_PARTS, 1)
    )
    return LabResponse(200, _XML, _write_xml(f"<sitemapindex {_SPACES}>\n{parts}</sitemapindex>"))


@lru_cache(maxsize=64)
def _write_sitemap(corpus: Corpus, site: str, part: int) -> LabResponse:
    entries = ""
    for one in list_pages(corpus, site)[part :: len(_PARTS)]:
        content = corpus.content(one.page)
        entries += (
            f"<url><loc>{escape(one.url)}</loc><lastmod>{content.posts[0].at:%Y-%m-%d}</lastmod>"
            f"<news:news><news:title>{escape(content.title)}</news:title></news:news></url>\n"
        )
    text = _write_xml(f"<urlset {_SPACES} {_NEWS}>\n{entries}</urlset>")
    if part == 0:
        return LabResponse(200, _XML, text)
    return LabResponse(200, "application/gzip", gzip.compress(text, mtime=0))


def _write_xml(text: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()
