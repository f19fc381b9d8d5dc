"""The content of a result page, and the formats it is written in: hits, results; an engine's own redirect links."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from html import escape
from typing import Any

from app.lab.answers import HTML, Answer, Document
from app.lab.pages import TEMPLATES, Content, Post
from splitter.catalog.model import Engine

ABSTRACT_CHARS = 90


@dataclass(frozen=True, slots=True)
class Hit:
    """One hit as a result page shows it.

    Attributes:
        url, title, abstract: address, and text.
        post: the whole of it, for engines whose hits are whole posts.
    """

    url: str
    title: str
    abstract: str
    post: Post


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The content of a result page.

    Attributes:
        engine: whose page it is.
        keywords: words to mark in the hits.
        page: number of the result page, from 1.
        found: number of hits the engine reports.
        entries: hits of this page; none: the engine says that it has nothing.
        next_url: path of the next result page; empty: this is the last one.
    """

    engine: Engine
    keywords: tuple[str, ...]
    page: int
    found: int
    entries: tuple[Hit, ...]
    next_url: str


@dataclass(frozen=True, slots=True)
class EngineFormat:
    """How one engine writes.

    Attributes:
        results: its result page: what stands in the body of an HTML page, or a whole document of another type.
        content_type: of the result page.
        refusals: what it says instead of a page, in its own way; other answers are everybody's (`app.lab.answers`).
        link: path and parameter of its own redirect links; empty: it has none.
        own: documents of other hosts and paths that belong to it (where its captcha is), by host and path.
        headers: of its result pages, besides their content type.
    """

    results: Callable[[Results], str]
    content_type: str = HTML
    refusals: Mapping[Answer, Document] = field(default_factory=dict)
    link: tuple[str, str] = ("", "")
    own: Mapping[tuple[str, str], Document] = field(default_factory=dict)
    headers: tuple[tuple[str, str], ...] = ()


def hit_of(url: str, content: Content) -> Hit:
    """A page as a result page shows it."""
    post = content.posts[0]
    return Hit(url, content.title, post.body[:ABSTRACT_CHARS], post)


def marked(text: str, keywords: tuple[str, ...], tag: str = "em") -> str:
    """Text as HTML with the words of the query marked."""
    html = escape(text)
    for word in keywords:
        # One character or a letter would also match inside the markup put in before.
        if len(word) > 1 and not word.isascii():
            html = html.replace(escape(word), f"<{tag}>{escape(word)}</{tag}>")
    return html


def shown(results: Results, place: int, entry: Hit) -> dict[str, Any]:
    """The values for templates of hits: `url`, `site`, `title` and `abstract` as HTML, and the unescaped rest.

    `place` counts the hits of a page from 0, `rank` those of all pages from 1.
    """
    return {
        "results": results,
        "entry": entry,
        "place": place,
        "rank": (results.page - 1) * results.engine.hits_per_page + place + 1,
        "url": escape(entry.url),
        "site": escape(host_of(entry)),
        "title": marked(entry.title, results.keywords),
        "abstract": marked(entry.abstract, results.keywords),
        "at": entry.post.at,
        "token": token(entry.url),
    }


def host_of(entry: Hit) -> str:
    """The host of a hit's address."""
    return entry.url.split("/")[2]


def html_writer(name: str, hit: Callable[..., str] | None = None) -> Callable[[Results], str]:
    """Writes result pages from the templates of that name.

    ``page`` has ``{hits}``, ``{next}``, ``{query}``, ``{found}`` and ``{number}``; ``none`` is the page without a
    hit and may hold ``{query}``; ``next``, the link to the next page with ``{url}``, is left out of the last page.

    Args:
        hit: makes one hit of what `shown` gives, passed by name; None: the template ``hit`` does.
    """
    templates = TEMPLATES[name]
    written = hit or templates["hit"].format

    def write(results: Results) -> str:
        query = escape(" ".join(results.keywords))
        if not results.entries:
            return templates["none"].format(query=query)
        return templates["page"].format(
            query=query,
            found=results.found,
            number=results.page,
            hits="".join(
                written(**shown(results, place, entry)) for place, entry in enumerate(results.entries)
            ),
            next=templates["next"].format(url=escape(results.next_url)) if results.next_url else "",
        )

    return write


# --- redirect links -------------------------------------------------------------------------------------------


_CHECK_BYTES = 6


def token(url: str) -> str:
    """The token that stands for an address in a redirect link."""
    raw = url.encode()
    return urlsafe_b64encode(_check(raw) + raw[::-1]).decode().rstrip("=")


def address(text: str) -> str:
    """The address a token stands for; empty for what `token` never gives."""
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        url = raw[_CHECK_BYTES:][::-1].decode()
    except ValueError:
        return ""
    return url if token(url) == text else ""


def _check(raw: bytes) -> bytes:
    return blake2b(raw, digest_size=_CHECK_BYTES).digest()
