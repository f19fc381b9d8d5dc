"""Pages whose site has no rules: the main text by strategies that check each other; feeds are `tasks.reading.feeds`'.

Density (`tasks.reading.density`) comes first: on Chinese pages it is right more often than trafilatura and costs a
tenth (`reviewloop bench reading`). Where the page itself contradicts it (its own description stands elsewhere, or
most of its sentences do), trafilatura runs too, and the page's description decides; without one, density stays
unless it found nothing. A text in the page's JSON-LD is taken where density agrees.

A page takes milliseconds, in doubt some tens: call it in a thread, not on an event loop.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from selectolax.lexbor import LexborHTMLParser
from splitter.catalog.rules import PageRules

from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import PageRead, Review
from tasks.reading.authors import editors, element_author, line_author, sections
from tasks.reading.controls import without_controls
from tasks.reading.day_order import read_dates
from tasks.reading.density import DenseText, dense_text, link_share
from tasks.reading.feeds import is_feed, read_feed
from tasks.reading.goods import is_goods
from tasks.reading.interstitials import raise_if_blocked
from tasks.reading.markup import page_text, parse, parse_whole
from tasks.reading.metadata import Metadata, byline_date, read_metadata
from tasks.reading.site_lines import without_site_lines
from tasks.reading.threads import posted_by

# A text shorter than this may be a refusal.
_REFUSAL_CHARS = 200
_LEAST_CHARS = 10
# Density is believed without a second opinion where it holds this share of the page's sentences.
_SURE_SHARE = 0.6
_SHINGLE = 5
_MOST_SHINGLES = 200
# Shares of a description, or of one candidate in another, that count as there and as not there.
_THERE, _MISSING = 0.5, 0.2
_MOST_FOR_LIBRARY = 600_000
_BLANKS = re.compile(r"\s+")
_NO_WORD = re.compile(r"[\W_]+")
_BESIDE_TITLE, _TITLE_WORDS = 2, 8
# A page of so much text, or so much of whose text, is no list; of one with less, this much of its title must be there.
_LIST_TEXT, _LIST_OF_PAGE, _LIST_TITLE = 300, 0.3, 0.3
# A page without a sentence is a list, if it is that long and has so many links.
_LIST_CHARS, _LIST_LINKS = 300, 0.6
_WHOLE_PAGE = 0.5
# Where a text breaks off and leads on: ... 详情>>; or begins and ends within another.
_TEASER = re.compile(
    r"(?:\.\.\.|…)\s*[\[【(（]?(?:详情|详细|全文|更多|阅读|查看|more\b|read\b|continue\b)\S{0,4}\W*$|^(?:\.\.\.|…).*(?:\.\.\.|…)$",
    re.IGNORECASE | re.DOTALL,
)
_LIST_HEADED, _LIST_ENTRIES = 0.6, 4
_JOINED = re.compile(
    r"\b(?:joined|registered|member since)\W|(?:注册|加入)(?:时间|日期|于)?\W", re.IGNORECASE
)
_BOILERPLATE = re.compile(r"版权所有|ICP备|Copyright|©", re.IGNORECASE)

Library = Callable[[str, str], str]
"""A page's main text by another's strategy, from its text and address; empty where it finds none."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The main text by one strategy: "density", "json-ld" or "trafilatura"."""

    strategy: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MainText:
    """A page as the strategies read it.

    Attributes:
        body: the text of the strategy that won; empty where none found a text.
        strategy: the one that won; empty where none did.
        why: the reason it won, for people.
        listing: why the page is a list of others and no text; empty where it is a text.
        candidates: of every strategy that ran.
    """

    metadata: Metadata
    body: str
    strategy: str
    why: str
    author: str
    date_text: str
    candidates: tuple[Candidate, ...]
    listing: str = ""
    goods: bool = False


def read_main_text(
    text: str, url: str, rules: PageRules, now: datetime, library: Library | None = None
) -> PageRead:
    """Read a page without record rules: one review, its main text; of a feed, one for each entry; of a list none.

    Takes milliseconds: see the module.

    Args:
        text: of the answer, decoded.
        url: its final address.
        rules: of which only `blocked` is used.
        now: aware; what relative dates count from.
        library: the strategy that is asked where density is in doubt; None: trafilatura.

    Raises:
        FetchError: the refusal's class; BAD_RULE where there is no main text; TOO_LARGE.
    """
    if is_feed(text) and (feed := read_feed(text, url, now)).reviews:
        return feed
    found = main_text(text, url, library)
    if found.listing:
        raise_if_blocked(f"{found.metadata.page_title} {found.body}", url, rules.blocked)
        return PageRead(found.metadata.page_title, (), no_review="list")
    if found.goods:
        return PageRead(found.metadata.page_title, (), no_review="goods")
    if len(found.body) < _REFUSAL_CHARS:
        shown = f"{found.metadata.page_title} {found.body}" if found.body else page_text(parse(text))
        raise_if_blocked(shown, url, rules.blocked)
        if not found.body:
            raise FetchError(ErrorClass.BAD_RULE, f"no main text: {found.why}; the page says: {shown[:120]}")
    author = found.author
    if not author and not found.metadata.article:
        author = posted_by(parse_whole(text), url, found.body)
    review = Review(
        key="#0",
        title=found.metadata.title,
        body=found.body,
        author="" if author == found.metadata.title else author,
        date_text=found.date_text,
        date=read_dates([found.date_text], text, now)[0],
        rating=None,
    )
    return PageRead(found.metadata.page_title, (review,))


def main_text(text: str, url: str, library: Library | None = None) -> MainText:
    """The main text of a page by all strategies that it needs. Raises FetchError(TOO_LARGE), see `check_markup`."""
    tree = parse_whole(text)
    metadata = read_metadata(tree)
    sold = not metadata.article and is_goods(tree, dated=False)  # asked before the tree is thinned out
    dense = dense_text(tree, metadata.description)
    candidates, why = _candidates(text, url, metadata, dense, library or _by_library)
    winner, reason = _winner(candidates, metadata)
    # Lines around the densest text are no byline of a text that stands elsewhere.
    near = dense if winner and winner.strategy != "trafilatura" else None
    before, after = (near.before, near.after) if near else ((), ())
    whole = without_controls(_without_title(winner.text, metadata.title)) if winner else ""
    body = without_controls(without_site_lines(whole))
    author = _author(tree, metadata, before, after, whole)
    if author:  # who published it stands behind the title, too
        metadata = replace(metadata, title=metadata.title.removesuffix(f" {author}"))
    lines_above = tuple(reversed(_not_joined(before)))
    dated = bool(metadata.date_text or byline_date(lines_above))
    return MainText(
        metadata=metadata,
        body=body,
        strategy=winner.strategy if winner else "",
        why=f"{why}; {reason}",
        author=author,
        date_text=metadata.date_text or byline_date((*lines_above, *after)),
        candidates=candidates,
        listing=_listing(tree, dense, metadata, winner.text if winner else ""),
        goods=sold and (not dated or is_goods(parse_whole(text), dated=True)),
    )


def _not_joined(lines: tuple[str, ...]) -> list[str]:
    """Lines without those that say since when somebody is a member."""
    above = ("", *lines)
    return [
        line for line, label in zip(lines, above, strict=False) if not _JOINED.search(f"{label[-20:]} {line}")
    ]


def _author(
    tree: LexborHTMLParser, metadata: Metadata, before: tuple[str, ...], after: tuple[str, ...], body: str
) -> str:
    """The author of the text: as lines around it say, as the page says of itself, as its elements are called."""
    nobody = editors("\n".join((*before, *after, body[-_REFUSAL_CHARS:]))) | sections(tree)
    called, source = element_author(tree, "\n".join(before))
    said, published = line_author(before, after, body, metadata.title)
    named = (metadata.author, called, said, source, published)
    return next(
        (name for name in named if name and name not in nobody and not is_title(name, metadata.title)), ""
    )


def is_title(name: str, title: str) -> bool:
    """Whether what is called an author's name is the page's title, or much of it."""
    return name == title or (len(name) >= _TITLE_WORDS and name in title)


def _listing(tree: LexborHTMLParser, dense: DenseText | None, metadata: Metadata, body: str) -> str:
    """Why a page is a list of other pages; empty where it is not.

    A page is no list if its description or its title is about its text, or if that text is much of the page. Of the
    others, those are lists that have little text, or whose text is abstracts under the headlines of other pages.
    """
    if metadata.home:
        return "its own address is its site's root"
    if dense is None:
        links, chars = link_share(tree)
        many = links >= _LIST_LINKS and (chars >= _LIST_CHARS or len(body) >= _WHOLE_PAGE * chars)
        return f"no text, and {links:.0%} of the page are links" if many else ""
    if metadata.description and covered(metadata.description, body) >= _THERE:
        return ""
    if len(body) < 2 * _LIST_TEXT and _TEASER.search(body):
        return "its text is the beginning of another page's"
    if dense.headed >= _LIST_HEADED and dense.sentences >= _LIST_ENTRIES:
        return f"{dense.headed:.0%} of its sentences stand under the headlines of other pages"
    if len(body) >= _LIST_TEXT or dense.of_page >= _LIST_OF_PAGE:
        return ""
    on_topic = _BOILERPLATE.search(body) is None and _title_share(metadata.title, body) >= _LIST_TITLE
    return "" if on_topic else f"its densest text is {dense.of_page:.0%} of the page and not about its title"


def _title_share(title: str, text: str) -> float:
    """Share of a title's pairs of characters that stand in a text: 0 to 1."""
    title, text = _NO_WORD.sub("", title.lower()), _NO_WORD.sub("", text.lower())
    pairs = {title[place : place + 2] for place in range(len(title) - 1)}
    return sum(pair in text for pair in pairs) / len(pairs) if pairs else 0.0


def _without_title(text: str, title: str) -> str:
    """A text without the page's title above it, alone or with a word beside it (原创)."""
    first, _, rest = text.partition("\n")
    squeezed, title = _BLANKS.sub("", first), _BLANKS.sub("", title)
    again = title and title in squeezed and len(squeezed) <= len(title) + _BESIDE_TITLE
    return rest if again and len(rest) >= _LEAST_CHARS else text


def _candidates(
    text: str, url: str, metadata: Metadata, dense: DenseText | None, library: Library
) -> tuple[tuple[Candidate, ...], str]:
    """Texts of the strategies, as many as it takes to be sure, and why so many."""
    found = [Candidate("density", dense.text)] if dense else []
    if metadata.body:
        found.append(Candidate("json-ld", metadata.body))
    described = covered(metadata.description, dense.text) if dense and metadata.description else None
    if dense and described is not None and described >= _THERE:
        return tuple(found), "the densest text holds the page's description"
    if dense and dense.share >= _SURE_SHARE and (described is None or described >= _MISSING):
        return tuple(found), f"the densest text holds {dense.share:.0%} of the page's sentences"
    if by_library := library(text, url):
        found.append(Candidate("trafilatura", by_library))
    return tuple(found), "the densest text is in doubt" if dense else "no text is dense"


def _winner(candidates: tuple[Candidate, ...], metadata: Metadata) -> tuple[Candidate | None, str]:
    """The candidate that holds the page's own description; where none or all do, the first."""
    candidates = tuple(one for one in candidates if len(one.text) >= _LEAST_CHARS)
    if not candidates:
        return None, "no strategy finds a text"
    first = candidates[0]
    shares = [covered(metadata.description, one.text) for one in candidates] if metadata.description else []
    if shares and max(shares) >= _THERE and shares[0] < _MISSING:
        return candidates[shares.index(max(shares))], "it alone holds the page's description"
    json_ld = next((one for one in candidates if one.strategy == "json-ld"), None)
    if json_ld and covered(first.text, json_ld.text) >= _THERE:
        return json_ld, "the page's own text, as in JSON-LD"
    return first, "no other holds more of what the page says of itself"


def covered(part: str, text: str) -> float:
    """Share of a text's shingles (five characters, blanks apart) that another holds: 0 to 1."""
    part, text = _BLANKS.sub("", part), _BLANKS.sub("", text)
    starts = range(0, max(1, len(part) - _SHINGLE + 1), max(1, len(part) // _MOST_SHINGLES))
    return sum(part[start : start + _SHINGLE] in text for start in starts) / len(starts) if part else 0.0


def _by_library(text: str, url: str) -> str:
    if len(text) > _MOST_FOR_LIBRARY:
        return ""
    # Imported here: it takes a fifth of a second, and most catalogs never need it.
    from trafilatura import bare_extraction

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    document = bare_extraction(text, url=url or None, fast=True, include_comments=False, include_tables=True)
    if document is None or isinstance(document, dict):
        return ""
    return document.text or ""
