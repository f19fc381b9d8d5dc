"""The pages of the hidden web: what each is called, its address, and what stands in it.

Everything follows from the page's name, and its address carries that name, so that no page need be remembered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import yaml

from app.lab import chance
from splitter.spans import CHINA

_CHECK_BYTES = 3
_ID = re.compile(r"[0-9a-f]{12,1800}")


@dataclass(frozen=True, slots=True)
class PageName:
    """The identity of a page: number ``number`` (from 0) of those that a site has for a query."""

    site: str
    keywords: tuple[str, ...]
    number: int


_COMPLAINT = ("/complaint/", ".html")
_SHAPES = {"complaint": _COMPLAINT, "thread": ("/thread-", "-1-1.html")}
# For sites whose own search is read by what its links look like.
_SHAPES_OF_SITES = {
    "12365auto.com": ("/zlts/20131118/", ".shtml"),
    "itunes.apple.com": ("/cn/rss/customerreviews/page=1/id=", "/sortby=mostrecent/json"),
}


def path_of(seed: int, rules: str, page: PageName) -> str:
    """The path of a page on a site whose pages are read with the page rules of that name."""
    id_ = _encode(seed, page)
    before, after = _shape(seed, rules, page.site, id_)
    return f"{before}{id_}{after}"


def page_at(seed: int, rules: str, site: str, path: str) -> PageName | None:
    """The page a path of a site names; None for a path that `path_of` never gives."""
    id_ = next((part for part in re.split(r"[/.=-]", path) if _ID.fullmatch(part)), "")
    page = _decode(site, id_)
    if page is None or path_of(seed, rules, page) != path:
        return None
    return page


def _shape(seed: int, rules: str, site: str, id_: str) -> tuple[str, str]:
    if rules == "microblog":
        return f"/{2**30 + chance.number(seed, 'user', id_) % 2**32}/", ""
    return _SHAPES_OF_SITES.get(site) or _SHAPES.get(rules, _COMPLAINT)


def _encode(seed: int, page: PageName) -> str:
    """Check sum, number and keywords in hexadecimal: long, and as opaque as real ids are.

    GB 18030 spells every character there is and a Chinese one in two bytes, so that the path stays short.
    """
    words = "\x00".join(page.keywords).encode("gb18030", "replace")
    check = chance.number(seed, "id", page.site, page.number, *page.keywords) % (1 << 8 * _CHECK_BYTES)
    return check.to_bytes(_CHECK_BYTES, "big").hex() + page.number.to_bytes(2, "big").hex() + words.hex()


def _decode(site: str, id_: str) -> PageName | None:
    try:
        raw = bytes.fromhex(id_)[_CHECK_BYTES:]
        keywords = tuple(raw[2:].decode("gb18030").split("\x00"))
    except ValueError:
        return None
    return PageName(site, keywords, int.from_bytes(raw[:2], "big"))


# --- what stands in a page ------------------------------------------------------------------------------------


MOST_POSTS = 6
"""Most reviews on one page of a forum thread."""

RATED_SITES = 0.5
"""Share of the complaint sites that print a rating."""


def _data(name: str) -> Any:
    return yaml.safe_load(Path(__file__).with_name(name).read_text("utf-8"))


WORDING: Mapping[str, Sequence[str]] = _data("wording.yaml")
"""Words and sentences for pages, by what they are for."""

TEXTS: Mapping[str, Sequence[Sequence[str]]] = _data("texts.yaml")
"""What people write, by voice: parts that follow one another, one of each."""

TEMPLATES: Mapping[str, Mapping[str, str]] = _data("templates.yaml")
"""Markup of result pages and articles, by engine (see the file)."""

_UNRATED = frozenset({"thread", "microblog"})
_SEVERAL = re.compile(r"thread|comments|reviews|answers")

_SURNAMES = "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗"
_DATES = (
    "{y}-{m:02}-{d:02} {H:02}:{M:02}",
    "{y}年{m}月{d}日",
    "{y}年{m}月{d}日 {H:02}:{M:02}",
    "{y}-{m}-{d}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One review as its page prints it.

    Attributes:
        key: its id on its site.
        date: as written there (UTC+8), in one of several forms.
        at: the same as a moment; its page may print the day only.
        rating: 1 to 5; None where the site prints none.
    """

    key: str
    title: str
    body: str
    author: str
    date: str
    at: datetime
    rating: int | None


SAMPLE = Post(key="1", title="", body="", author="", date="", at=datetime(2013, 1, 1, tzinfo=CHINA), rating=1)
"""A post to try a format with."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a page: its title and 1 to 6 posts, all about ``subject``."""

    subject: str
    title: str
    posts: tuple[Post, ...]


def write_page(seed: int, page: PageName, rules: str, texts: tuple[str, ...]) -> Content:
    """Write a page.

    Args:
        seed: of the corpus.
        page: which page; the same one is always written in the same words.
        rules: name of the site's page rules: several posts where it speaks of a thread, comments, reviews or
            answers, one elsewhere.
        texts: what people write; not empty.
    """
    rng = chance.generator(seed, "page", page.site, page.number, *page.keywords)
    subject = "".join(page.keywords)
    title = _one(rng, WORDING["titles"]).format(subject=subject, problem=_one(rng, WORDING["problems"]))
    rated = rules not in _UNRATED and chance.share(0, "rated", page.site) < RATED_SITES
    posts: list[Post] = []
    for place in range(1 + int(rng.random() * MOST_POSTS) if _SEVERAL.search(rules) else 1):
        heading = title if place == 0 else _one(rng, WORDING["replies"]).format(subject=subject, title=title)
        # In the order in which they are drawn.
        posts.append(
            Post(
                key=str(10_000_000 + int(rng.random() * 1e15)),
                title=heading,
                body=_one(rng, WORDING["leads"]).format(subject=subject) + _one(rng, texts),
                author=_author(rng),
                at=(at := _moment(rng)),
                date=_date(at, page.site),
                rating=1 + int(rng.random() * 5) if rated else None,
            )
        )
    return Content(subject, title, tuple(posts))


def made_title(rng: Random) -> str:
    """A headline of no product in particular, for the margins of a page."""
    return f"{_one(rng, _SURNAMES)}{_one(rng, WORDING['given_names'])}投诉：{_one(rng, WORDING['problems'])}"


def _one(rng: Random, choices: Sequence[str]) -> str:
    return choices[int(rng.random() * len(choices))]


def _author(rng: Random) -> str:
    if rng.random() < 0.5:
        return _one(rng, _SURNAMES) + _one(rng, WORDING["given_names"])
    return f"{_one(rng, WORDING['nicknames'])}{int(rng.random() * 10_000)}"


def _moment(rng: Random) -> datetime:
    year, month, day = 2011 + int(rng.random() * 3), 1 + int(rng.random() * 12), 1 + int(rng.random() * 28)
    return datetime(year, month, day, 7 + int(rng.random() * 16), int(rng.random() * 60), tzinfo=CHINA)


def _date(at: datetime, site: str) -> str:
    form = _DATES[chance.number(0, "date", site) % len(_DATES)]
    return form.format(y=at.year, m=at.month, d=at.day, H=at.hour, M=at.minute)
