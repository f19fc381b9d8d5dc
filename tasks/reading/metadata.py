"""Title, author and date of a page: JSON-LD (schema.org), Open Graph and other meta tags, headings, the byline.

Also whether the page sells one thing: its text is the shop's description then, and no review.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from tasks.reading.markup import collapse, resolve_references, text_of
from tasks.reading.names import person
from tasks.reading.published import find_marked_day, json_ld_day, meta_change, meta_day

_MAX_JSON_CHARS = 500_000
_MAX_JSON_DEPTH = 8
# The part of an address behind its host, if it is no root.
_PATH = re.compile(r"(?:https?:)?//[^/?#]{3,100}/?([^/].{0,9}|)", re.IGNORECASE | re.DOTALL)
_PART_OF_TITLE = 0.6
_MOST_AUTHORS = 5
_BODIES = ("articleBody", "reviewBody", "text")
_TITLES = ("headline", "name")
# Types whose body or title is the page's own; a publisher or a breadcrumb also has a name.
_TEXT_TYPES = re.compile(r"Article|Posting|Review|Report|Comment|Question|Answer|CreativeWork|WebPage", re.I)
_ARTICLE = re.compile(r"Article\b")

_META_AUTHORS = (
    "author",
    "article:author",
    "og:article:author",
    "mediaid",
    "byl",
    "dc.creator",
    "parsely-author",
    "sailthru.author",
)
_META_SITES = ("og:site_name", "application-name", "sitename", "publisher", "dc.publisher")
_META_TITLES = ("og:title", "twitter:title", "articletitle", "dc.title")
_META_DESCRIPTIONS = ("og:description", "description")
_DESCRIPTION_CHARS = 30
# Marks between a title and the site's name. A dash may be the title's own.
_BAR = re.compile(
    r"(?:(?<!\s)\s++)?+(?:[|｜│]|(?<![a-z0-9])_|_(?![a-z0-9])|::|(?<=\s)»(?=\s)|/(?=\s\S{1,12}$))\s*+"
)
_DASH = re.compile(
    r"(?<!\s)\s++(?:--++|[–—:：@-])\s++|(?:(?<!\s)\s++)?+--\s*+|(?<=[网报])-(?=\d)"
    r"|(?<=[\u4e00-\u9fff】》？！])-(?=[\u4e00-\u9fffA-Z])|(?<![–—])[–—]{2,9}+(?=\S{2,8}$)"
)
_SITE = re.compile(
    r"^(?:维基百科|維基百科|wikipedia)|(?:^|\s)\S+\.(?:com|cn|net|org|de|at|ch|fr|uk|info|tv|io)$"
    r"|^[^，。！？]{1,12}(?:网|论坛|频道|新闻|在线|社区|博客|官网|官方网站|门户|客户端"
    r"|中心|资讯|日报|晚报|时报|头条|百科|贴吧|之家|The Paper)$",
    re.IGNORECASE,
)
_EDIT = re.compile(r"(?:(?<!\s)\s++)?+\[(?:编辑|編輯|edit)\]$", re.IGNORECASE)
_ADDRESS = re.compile(r"https?://|@|^[\w.-]+\.(?:com|cn|net|org)\b", re.I)
_HAN = re.compile(r"[\u4e00-\u9fff]")
_HEADING_CHARS = (4, 120)
_PAGE_TITLE_CHARS = 500

_PRODUCT = re.compile(r"(?:^|/)(?:Individual)?Product(?:Model|Group)?$")
_REPORT = re.compile(r"(?:Article|BlogPosting|Report)$")
_ARTICLES = '[itemtype$="Article" i], [itemtype$="BlogPosting" i]'
_TYPED = re.compile(r"(?:og:)?product(?:\.item)?", re.IGNORECASE)
_PRICE = '[itemprop="price"], [itemprop="lowPrice"]'
_BUTTONS = "a, button, input[type=submit], input[type=button]"
_BUY = re.compile(
    r"\W*(?:加入购物车|放入购物车|加入購物車|立即购买|立即購買|马上抢|立即抢购"
    r"|add to (?:cart|bag|basket|trolley)|buy (?:it )?now|in den warenkorb"
    r"|ajouter au panier|añadir (?:al carrito|a la cesta)|в корзину|カートに入れる)\W*",
    re.IGNORECASE,
)
_MONEY = re.compile(r"[¥￥$€£₽]\s?\d|\d\s?(?:元|руб)")
_LONGEST_LABEL, _MOST_BUTTONS = 24, 3000
_MOST_BOUGHT = 2  # more are a list of things to buy


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """Metadata of a page; a value is empty if the page has none.

    Attributes:
        title: without the site's name, if that is recognised.
        page_title: of the `title` element, as written.
        body: the whole text, if JSON-LD holds it.
        date_text: as written.
        changed: the day of the page's last change, as written.
        description: the page's own description, empty if it is too short to be of use.
        article: JSON-LD calls the body an article's.
        publisher: who is called its author, also if that is the site.
        home: whether the address it gives as its own is a site's root: a home page.
    """

    title: str
    page_title: str
    body: str
    author: str
    publisher: str
    date_text: str
    changed: str
    description: str
    article: bool
    home: bool


def read_metadata(tree: LexborHTMLParser) -> Metadata:
    """Read the metadata of a whole tree (with its scripts)."""
    json_ld = _json_ld(tree)
    metas = _metas(tree)
    element = tree.css_first("title")
    page_title = collapse(element.text())[:_PAGE_TITLE_CHARS] if element is not None else ""
    sites = _site_names(metas, json_ld, page_title)
    said = [json_ld.get("author", ""), *_values(metas, _META_AUTHORS)]
    said += [metas.get("twitter:data1", "")] if metas.get("twitter:label1") == "Written by" else []
    authors = list(filter(None, map(person, said)))
    descriptions = (text for text in _values(metas, _META_DESCRIPTIONS) if len(text) >= _DESCRIPTION_CHARS)
    return Metadata(
        title=_title(tree, page_title, [json_ld.get("title", ""), *_values(metas, _META_TITLES)], sites),
        page_title=page_title,
        body=json_ld.get("body", ""),
        author=next((name for name in authors if not _is_site(name, sites)), ""),
        publisher=next(iter(authors), ""),
        changed=meta_change(metas),
        date_text=json_ld.get("date", "") or meta_day(metas) or find_marked_day(tree),
        description=next(descriptions, "").rstrip(".…"),
        article=bool(json_ld.get("article")),
        home=_is_home(tree, metas),
    )


def _metas(tree: LexborHTMLParser) -> dict[str, str]:
    metas: dict[str, str] = {}
    for node in tree.css("meta[content]"):
        attributes = node.attributes
        name = attributes.get("property") or attributes.get("name") or attributes.get("itemprop") or ""
        if content := collapse(attributes.get("content") or ""):
            metas.setdefault(name.lower(), content)
    return metas


def _values(metas: dict[str, str], names: tuple[str, ...]) -> list[str]:
    return [metas[name] for name in names if name in metas]


def _is_home(tree: LexborHTMLParser, metas: dict[str, str]) -> bool:
    link = tree.css_first('link[rel="canonical"]')
    said = [link.attributes.get("href") or "" if link is not None else "", *_values(metas, ("og:url",))]
    own = [match[1] for one in said if (match := _PATH.match(one.strip()))]
    return bool(own) and not any(own)


def _site_names(metas: dict[str, str], json_ld: dict[str, str], page_title: str) -> set[str]:
    """Return the names that a page gives its site, squeezed as `_squeeze` does."""
    said = [*_values(metas, _META_SITES), json_ld.get("publisher", ""), *_BAR.split(page_title)[1:]]
    said += [part for part in _DASH.split(page_title)[1:] if _SITE.search(part)]
    return {name for one in said if (name := _squeeze(one))}


def _is_site(name: str, sites: set[str]) -> bool:
    name = _squeeze(name)
    return any(site == name or (_HAN.search(name) and site.startswith(name)) for site in sites)


def _title(tree: LexborHTMLParser, page_title: str, candidates: list[str], sites: set[str]) -> str:
    """The title two places agree on: a heading or meta tag that the title element holds; else its own part.

    The rest of the title element is the site's (its name, a section, a slogan), on either side. A heading that
    is the site's name is no title.
    """
    headings = [_EDIT.sub("", collapse(node.text())) for tag in ("h1", "h2") for node in tree.css(tag)[:5]]
    least, most = _HEADING_CHARS
    squeezed = _squeeze(page_title)
    own = _drop_site(page_title, sites)
    said = [*headings, *(one for one in candidates if _drop_site(one, sites) == one)]
    likely = [text for text in said if least <= len(text) <= most and not _is_called(text, sites)]
    parts = [text for text in likely if _squeeze(text) in squeezed and len(_squeeze(text)) < len(squeezed)]
    if parts:  # the first words of the title, unless they are few, and as many as any place has
        few = max(map(len, parts)) / 2
        best = max(parts, key=lambda text: (len(text) >= few and _begins(own, text), len(text)))
        if 2 * len(best) >= len(own) or _begins(own, best):
            return best
    if any(_squeeze(own) == _squeeze(text) for text in likely):
        return own
    named = "" if _is_called(own.strip(" -–—_|"), sites) else _longest_parts(own)
    return named or next(iter(likely), "")


def _drop_site(title: str, sites: set[str]) -> str:
    """Return a title without the parts behind a | or _, and without the site's name at a dash.

    A part that is no site's name, and longer than the one before it, is the title itself behind a section's name.
    """
    kept = title
    for pattern in (_BAR, _DASH):
        parts = [part for part in pattern.split(kept) if part]
        whole = [part for part in parts if not _is_called(part, sites)]
        if len(parts) < 2 or not whole:
            continue
        if pattern is _DASH:
            first, last = kept.find(whole[0]), kept.rfind(whole[-1]) + len(whole[-1])
            kept = kept[first:last]
        else:
            kept = whole[0] if 2 * len(whole[0]) >= len(max(whole, key=len)) else max(whole, key=len)
    return kept


def _longest_parts(title: str) -> str:
    """A title that stands nowhere else without the short parts at its dashes: sites and sections are called shortly."""
    parts = [part for part in _DASH.split(title) if part]
    most = max(map(len, parts), default=0)
    long = [place for place, part in enumerate(parts) if len(part) >= _PART_OF_TITLE * most]
    if not long:
        return title
    return title[title.find(parts[long[0]]) : title.rfind(parts[long[-1]]) + len(parts[long[-1]])]


def _is_called(part: str, sites: set[str]) -> bool:
    """Whether a part of a title is the name of a site or of a section of one."""
    squeezed = _squeeze(part)
    return squeezed in sites or _SITE.search(part) is not None


def _begins(title: str, part: str) -> bool:
    return _squeeze(title).startswith(_squeeze(part))


def _squeeze(text: str) -> str:
    return "".join(text.split()).lower()


def _json_ld(tree: LexborHTMLParser) -> dict[str, str]:
    """Title, body, author and date of the first things of a text's type in JSON-LD scripts."""
    found: dict[str, str] = {}
    things = list(json_ld_things(tree))
    names = {
        str(one["@id"]): one.get("name")
        for one in things
        if one.get("@id") and "Person" in str(one.get("@type"))
    }
    for thing in things:
        if _TEXT_TYPES.search(str(thing.get("@type", ""))):
            for key, value in _read_thing(thing, names):
                if value:
                    found.setdefault(key, value)
    return found


def json_ld_things(tree: LexborHTMLParser) -> Iterator[dict[str, Any]]:
    """The objects of a page's JSON-LD scripts, inner ones behind the one they are in."""
    for script in tree.css('script[type="application/ld+json"]')[:20]:
        source = script.text()
        if len(source) > _MAX_JSON_CHARS:
            continue
        try:
            data = json.loads(source, strict=False)
        except (ValueError, RecursionError):
            continue
        yield from _things(data, 0)


def _things(data: Any, depth: int) -> Iterator[dict[str, Any]]:
    if depth > _MAX_JSON_DEPTH:
        return
    if isinstance(data, dict):
        yield data
        data = list(data.values())
    if isinstance(data, list):
        for inner in data:
            yield from _things(inner, depth + 1)


def _read_thing(thing: dict[str, Any], names: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for key, keys in (("title", _TITLES), ("body", _BODIES)):
        yield key, plain_string(next((thing[name] for name in keys if thing.get(name)), ""))
    if "Comment" not in str(thing.get("@type")):
        yield "date", json_ld_day(thing)
    yield (
        "article",
        plain_string(thing.get("articleBody")) if _ARTICLE.search(str(thing.get("@type"))) else "",
    )
    authors = thing.get("author")
    every = authors if isinstance(authors, list) else [authors]
    yield "author", ", ".join(name for one in every[:_MOST_AUTHORS] if (name := _person_name(one, names)))
    publisher = thing.get("publisher")
    yield "publisher", plain_string(publisher.get("name") if isinstance(publisher, dict) else publisher)


def _person_name(author: Any, names: dict[str, Any]) -> str:
    """Return the name of an author, or the one of the object that it refers to by its id."""
    if isinstance(author, dict):
        name = author.get("name") or names.get(str(author.get("@id")))
        return "" if "Organization" in str(author.get("@type")) else plain_string(name)
    return plain_string(author)


def plain_string(value: Any) -> str:
    """Return a text without markup, with blanks collapsed; empty if `value` is no text."""
    if not isinstance(value, str):
        return ""
    text = resolve_references(value)
    if "<" in text and ">" in text:
        root = LexborHTMLParser(text).body
        text = text_of(root) if root is not None else ""
    return collapse(text)


_BREAK = "\ue000"  # of private use: no text has it, and it is no blank
_TAG = re.compile(r"<[^<>]*>")
_BLOCK = re.compile(r"(?i)<(?:br|/?(?:p|div|li|ul|ol|blockquote|pre|h[1-6]|tr|table))\b[^<>]*>")


def plain_lines(value: Any) -> str:
    """Return a text without markup and blank lines, with its lines kept; empty if `value` is no text.

    Lines are those of its blocks if markup has any, else as written.
    """
    if not isinstance(value, str):
        return ""
    text = resolve_references(value).replace(_BREAK, " ")
    if "<" in text and ">" in text:
        if _BLOCK.search(text):
            text = _BLOCK.sub(_BREAK, text)
        else:
            text = _TAG.sub(lambda tag: collapse(tag[0]), text).replace("\n", _BREAK)
        root = LexborHTMLParser(text).body
        text = text_of(root) if root is not None else ""
    else:
        text = text.replace("\n", _BREAK)
    return "\n".join(line for one in text.split(_BREAK) if (line := collapse(one)))


def is_goods(tree: LexborHTMLParser, *, dated: bool) -> bool:
    """Return True if a page is a shop's of one product: it is marked as such, or one can be bought there at a price.

    Args:
        tree: of the whole page, with its scripts.
        dated: the page names its day. Unmarked articles do, and may sell the thing they describe.
    """
    typed = tree.css_first('meta[property="og:type" i]')
    kind = (typed.attributes.get("content") or "").strip() if typed is not None else ""
    if _TYPED.fullmatch(kind):
        return True
    things = list(json_ld_things(tree))
    if kind == "article" or tree.css_matches(_ARTICLES) or any(_is(thing, _REPORT) for thing in things):
        return False
    products = tree.css('[itemtype*="schema.org/Product" i]')
    offered = any(thing.get("offers") and _is(thing, _PRODUCT) for thing in things)
    if offered or (len(products) == 1 and products[0].css_first(_PRICE)):
        return True
    if dated or tree.body is None:
        return False
    buttons = tree.css(_BUTTONS)[:_MOST_BUTTONS]
    bought = sum(_is_buy(node.attributes.get("value") or node.text()) for node in buttons)
    return 0 < bought <= _MOST_BOUGHT and _MONEY.search(tree.body.text()) is not None


def _is_buy(label: str) -> bool:
    return len(label) <= 2 * _LONGEST_LABEL and _BUY.fullmatch(" ".join(label.split())) is not None


def _is(thing: dict[str, Any], kind: re.Pattern[str]) -> bool:
    types = thing.get("@type")
    named = types if isinstance(types, list) else [types]
    return any(isinstance(one, str) and kind.search(one) for one in named)
