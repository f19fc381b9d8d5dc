"""Read pages of one text whose site has no rules: the text, its author and its day. Recognise lists of other pages.

The text is the densest one (`tasks.reading.density`), or that of the page's JSON-LD if both agree, or if it alone holds
the page's description. Feeds are read by `tasks.reading.lists`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from math import prod

from splitter.catalog.rules import PageRules
from splitter.errors import Message

from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import PageRead, Review
from tasks.reading.days import read_dates
from tasks.reading.interstitials import raise_if_blocked
from tasks.reading.links import Links
from tasks.reading.lists import is_feed, read_feed
from tasks.reading.markup import page_text, parse
from tasks.reading.metadata import Metadata, is_goods
from tasks.reading.page import Page
from tasks.reading.people import author_below, editors, element_authors, find_poster, line_author, sections
from tasks.reading.published import around_text, find_published_day, line_day
from tasks.reading.relevance import is_empty_answer, is_entries
from tasks.reading.site_text import says_nothing, strip_controls, strip_site_lines

# A text shorter than this may be a refusal.
_REFUSAL_CHARS = 200
_LEAST_CHARS = 10
_SHINGLE = 5
_MOST_SHINGLES = 200
# Shares of a description, or of one candidate in another, that count as there and as not there.
_THERE, _MISSING = 0.5, 0.2
_NO_WORD = re.compile(r"[\W_]+")
_BESIDE_TITLE = 2
# A page with this much text, in characters or as a share, is no list; a shorter text must hold this share of the title.
_LIST_TEXT, _LIST_OF_PAGE, _LIST_TITLE = 300, 0.3, 0.3
# A page without a sentence is a list if that share of it is links.
_LIST_LINKS = 0.3
_SHORT_PATH = 12
# A site's root, in a language of its own or by the name of its file; a query may name a page (/?p=12).
_HOME = re.compile(
    r"https?://[^/?]+(?:/(?:[a-z]{2}(?:[-_][a-z]{2,4})?/?)?(?:(?:index|default|home|main|portal|forum)(?:\.[a-z]{3,5})?)?)?/?\??",
    re.IGNORECASE,
)
_SEARCHED = re.compile(
    r"[/.](?:web|s|so|search|find)(?:[/.?]|$)|search|[?&](?:q|s|k|kw|wd|query|keywords?)=", re.IGNORECASE
)
_SEARCH_TITLE = re.compile(
    r"^(?:搜索|搜寻|查找|search)(?:结果)?(?:$|[\s:：“\"‘'「-])|搜索(?:结果)?$|搜索结果|[-_|]\s?\S{0,6}搜索|”的结果|检索结果"
    r"|search results|you searched for|[-|–]\s?search$",
    re.IGNORECASE,
)
# What remains of the confidence in a text without sentences, a small one, one off the title, and one without a day.
_LEAST = (0.5, 0.5, 0.6, 0.7)
_NOTHING = 0.25
"""What remains of the confidence in a text that is only a title, a caption, buttons or a shop's note."""
# A text that breaks off and leads on (... 详情>>), or begins and ends within another.
_TEASER = re.compile(
    r"(?:\.\.\.|…)\s*[\[【(（]?(?:详情|详细|全文|更多|阅读|查看|more\b|read\b|continue\b)\S{0,4}\W*$|^(?:\.\.\.|…).*(?:\.\.\.|…)$",
    re.IGNORECASE | re.DOTALL,
)
_ABOVE_NOTHING = 3
_LIST_HEADED, _LIST_ENTRIES = 0.6, 4
_BOILERPLATE = re.compile(r"版权所有|ICP备|Copyright|©", re.IGNORECASE)


class TextSource(StrEnum):
    """Source of the main text of a page."""

    DENSITY = "density"
    JSON_LD = "json-ld"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class MainText:
    """A page of one text.

    Attributes:
        body: empty if `choice` is NONE.
        listing: the page is a list of others, and the text is not its own.
        goods: the page is a shop's, of one product.
        confidence: 0 to 1.
    """

    metadata: Metadata
    body: str
    choice: TextSource
    author: str
    date_text: str
    listing: bool
    goods: bool
    confidence: float


def read_main_text(page: Page, rules: PageRules, now: datetime) -> PageRead:
    """Read a page without record rules: one review, its main text; of a feed, one for each entry; of a list none.

    Args:
        rules: only `blocked` is used.
        now: aware; what relative dates count from.

    Raises:
        FetchError: the refusal's class, BAD_RULE if there is no main text, or TOO_LARGE.
    """
    text, url = page.text, page.url
    if is_feed(text) and (feed := read_feed(text, Links(url, page.encoding), now)).reviews:
        return feed
    found = main_text(page)
    if found.listing:
        raise_if_blocked(f"{found.metadata.page_title} {found.body}", url, rules.blocked)
        return PageRead(found.metadata.page_title, (), no_review="list", confidence=found.confidence)
    if found.goods:
        return PageRead(found.metadata.page_title, (), no_review="goods")
    if len(found.body) < _REFUSAL_CHARS:
        shown = f"{found.metadata.page_title} {found.body}" if found.body else page_text(parse(text))
        raise_if_blocked(shown, url, rules.blocked)
        if not found.body:
            raise FetchError(
                ErrorClass.BAD_RULE, Message("no main text; the page says: {shown}", shown=shown[:120])
            )
        if is_empty_answer(_lines_above(page), found.body):
            return PageRead(found.metadata.page_title, (), no_review="boilerplate")
    author = found.author
    if not author and not found.metadata.article:
        author = find_poster(page.outline, url, found.body)
    review = Review(
        key="#0",
        title=found.metadata.title,
        body=found.body,
        author=author,
        date_text=found.date_text,
        date=read_dates([found.date_text], text, now)[0],
        rating=None,
    )
    return PageRead(found.metadata.page_title, (review,), confidence=found.confidence)


def _lines_above(page: Page) -> tuple[str, ...]:
    return page.metadata.page_title, *(page.dense.before[-_ABOVE_NOTHING:] if page.dense else ())


def main_text(page: Page) -> MainText:
    """Return the main text of a page. Raises FetchError(TOO_LARGE), see `check_markup`."""
    tree, metadata, dense = page.tree, page.metadata, page.dense
    text, choice = _chosen(page)
    above, beginning, after = (dense.before, dense.beginning, dense.after) if dense else ((), (), ())
    whole = strip_controls(_drop_title(text, metadata.title))
    body = strip_controls(strip_site_lines(whole))
    author = _author(page, (*above, *beginning[:4]), after, whole)
    if not author.isascii():  # the publisher's name may follow the title
        metadata = replace(metadata, title=metadata.title.removesuffix(f" {author}"))
    lines = around_text(above, beginning)
    line = line_day(lines)
    dated = metadata.date_text or line.date or line.changed
    listing = _is_list(page, text, signed=bool(author and dated))
    confidence = _confidence(page, text, listing=listing, dated=bool(dated))
    if not listing and says_nothing(body, (metadata.title, author)):
        confidence = round(_NOTHING * confidence, 3)
    return MainText(
        metadata=metadata,
        body=body,
        choice=choice,
        author=author,
        date_text=find_published_day(metadata.date_text, metadata.changed, lines, after, page.url),
        listing=listing,
        goods=not metadata.article and is_goods(tree, dated=bool(dated)),
        confidence=confidence,
    )


def _confidence(page: Page, text: str, *, listing: bool, dated: bool) -> float:
    """Return how surely a text is all of a page's own text, or the page is a list: 0 to 1."""
    outline, dense = page.outline, page.dense
    links = outline.link_chars(0) / max(1, outline.chars(0)) if outline.nodes else 0.0
    if listing or dense is None:
        return (1 + links) / 2
    shares = (
        dense.share,
        min(1.0, dense.of_page / _LIST_OF_PAGE),
        _title_share(page.metadata.title, text),
        float(dated),
    )
    kept = (least + (1 - least) * share for least, share in zip(_LEAST, shares, strict=True))
    return round((1 - links) * (1 - dense.headed) * prod(kept), 3)


def _chosen(page: Page) -> tuple[str, TextSource]:
    """Return the text that holds the page's own description; the densest one if both do, or neither."""
    metadata, densest = page.metadata, page.dense.text if page.dense else ""
    if len(metadata.body) >= _LEAST_CHARS:
        described = overlap(metadata.description, metadata.body) >= _THERE
        missed = described and overlap(metadata.description, densest) < _MISSING
        if missed or not densest or overlap(densest, metadata.body) >= _THERE:
            return metadata.body, TextSource.JSON_LD
    return (densest, TextSource.DENSITY) if len(densest) >= _LEAST_CHARS else ("", TextSource.NONE)


def _author(page: Page, before: tuple[str, ...], after: tuple[str, ...], body: str) -> str:
    """Return the author of the text, by the page's metadata, by elements above it, or by lines around it."""
    title = page.metadata.title
    nobody = editors("\n".join((*before, *after, body[-_REFUSAL_CHARS:]))) | sections(page.tree)
    named = _authors(page, before, after, body)
    return next((name for name in named if name and name not in nobody and name != title), "")


def _authors(page: Page, before: tuple[str, ...], after: tuple[str, ...], body: str) -> Iterator[str]:
    """Yield the names of possible authors, the surest first."""
    yield page.metadata.author
    called, source = element_authors(page.outline, body)
    labelled, published = line_author(before, after, body, page.metadata.title)
    yield from (called, labelled, source, published)
    yield author_below(page.outline, body)
    yield page.metadata.publisher


def is_home(page: Page) -> bool:
    """Whether a page is its site's home page, by its address, or the one it gives as its own.

    Some sites give their root on every page: it is believed if the requested address is short or there is no paragraph.
    """
    if _HOME.fullmatch(page.url):
        return True
    short = len(page.url.partition("://")[2].partition("/")[2]) <= _SHORT_PATH
    return page.metadata.home and (short or page.dense is None or not page.dense.sentences)


def is_search(page: Page) -> bool:
    """Whether a page lists what a site's search found: its title and its address say so."""
    return (
        _SEARCHED.search(page.url) is not None and _SEARCH_TITLE.search(page.metadata.page_title) is not None
    )


def _is_list(page: Page, text: str, *, signed: bool) -> bool:
    """Whether a page is a list of others.

    A page is no list if its description or its title is about its text, or if that text is much of the page. Of the
    others, those are lists that have little text, or whose text is abstracts under the headlines of other pages.
    """
    metadata, dense = page.metadata, page.dense
    if is_home(page) or is_search(page):
        return True
    if dense is None or not dense.sentences:
        outline = page.outline
        chars = outline.chars(0) if outline.nodes else 0
        return outline.link_chars(0) > _LIST_LINKS * chars
    if metadata.description and overlap(metadata.description, text) >= _THERE:
        return False
    if is_entries(text):
        return True
    if len(text) < 2 * _LIST_TEXT and _TEASER.search(text):
        return True
    if dense.headed >= _LIST_HEADED and dense.sentences >= _LIST_ENTRIES:
        return True
    if len(text) >= _LIST_TEXT or dense.of_page >= _LIST_OF_PAGE:
        return False
    unlike = _title_share(metadata.title, text) < _LIST_TITLE and not signed
    return _BOILERPLATE.search(text) is not None or unlike


def _title_share(title: str, text: str) -> float:
    """Share of a title's pairs of characters that stand in a text: 0 to 1."""
    title, text = _letters(title), _letters(text)
    pairs = {title[place : place + 2] for place in range(len(title) - 1)}
    return sum(pair in text for pair in pairs) / len(pairs) if pairs else 0.0


@lru_cache(maxsize=4)
def _letters(text: str) -> str:
    """Return the letters and digits of a text in lower case."""
    return _NO_WORD.sub("", text.lower())


def _drop_title(text: str, title: str) -> str:
    """Return a text without the page's title above it, also if a word (原创) follows the title."""
    first, _, rest = text.partition("\n")
    squeezed, title = "".join(first.split()), "".join(title.split())
    again = title and title in squeezed and len(squeezed) <= len(title) + _BESIDE_TITLE
    return rest if again and len(rest) >= _LEAST_CHARS else text


def overlap(part: str, text: str) -> float:
    """Share of a text's shingles (five characters, blanks apart) that another holds: 0 to 1."""
    part, text = "".join(part.split()), "".join(text.split())
    starts = range(0, max(1, len(part) - _SHINGLE + 1), max(1, len(part) // _MOST_SHINGLES))
    return sum(part[start : start + _SHINGLE] in text for start in starts) / len(starts) if part else 0.0
