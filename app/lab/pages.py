"""Pages of the lab: which pages each site has for a query, their addresses, and their texts.

No page is stored. The pages of a query are a function of (seed, site, keywords). The path of a page contains everything
that its text depends on, so any product can be searched. If a query has several keywords, some of its hits are *brand
pages*: pages of the query for its first keyword alone, so products of one brand share pages.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import product
from math import exp, log
from pathlib import Path
from random import Random
from statistics import NormalDist
from typing import Any

import yaml

from app.lab import chance
from splitter.catalog.model import Catalog
from splitter.spans import CHINA, Span


def _load_data(name: str) -> Any:
    return yaml.safe_load(Path(__file__).with_name(name).read_text("utf-8"))


WORDING: Mapping[str, Sequence[str]] = _load_data("wording.yaml")
"""Words and sentences for pages, by purpose."""

TEXTS: Mapping[str, Sequence[Sequence[str]]] = _load_data("texts.yaml")
"""Parts of review texts, by voice. A text joins one choice of each part."""

TEMPLATES: Mapping[str, Mapping[str, str]] = _load_data("templates.yaml")
"""Markup of pages, by purpose (see the file)."""


# --- addresses ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PageName:
    """The identity of a page: its site, query, and number (from 0) among the pages of the query."""

    site: str
    keywords: tuple[str, ...]
    number: int


_CHECK_BYTES = 3
_ID = re.compile(r"[0-9a-f]{12,1800}")
_COMPLAINT = ("/complaint/", ".html")
_SHAPES = {"complaint": _COMPLAINT, "thread": ("/thread-", "-1-1.html")}
# The engines of these sites recognize hits by the shape of their addresses.
_SHAPES_BY_SITE = {
    "12365auto.com": ("/zlts/20131118/", ".shtml"),
    "itunes.apple.com": ("/cn/rss/customerreviews/page=1/id=", "/sortby=mostrecent/json"),
}


def path_of(seed: int, rules: str, page: PageName) -> str:
    """Return the path of a page on its site.

    Args:
        rules: Name of the site's page rules.
    """
    # Check sum, number and keywords in hexadecimal. GB 18030 has every character, and Chinese ones in two bytes.
    check = chance.number(seed, "id", page.site, page.number, *page.keywords) % (1 << 8 * _CHECK_BYTES)
    words = "\x00".join(page.keywords).encode("gb18030", "replace")
    id_ = (check.to_bytes(_CHECK_BYTES, "big") + page.number.to_bytes(2, "big") + words).hex()
    if rules == "microblog":
        return f"/{2**30 + chance.number(seed, 'user', id_) % 2**32}/{id_}"
    before, after = _SHAPES_BY_SITE.get(page.site) or _SHAPES.get(rules, _COMPLAINT)
    return f"{before}{id_}{after}"


def page_at(seed: int, rules: str, site: str, path: str) -> PageName | None:
    """Return the page at a path of a site, or `None` if `path_of` never returns this path."""
    id_ = next((part for part in re.split(r"[/.=-]", path) if _ID.fullmatch(part)), "")
    try:
        raw = bytes.fromhex(id_)[_CHECK_BYTES:]
        keywords = tuple(raw[2:].decode("gb18030").split("\x00"))
    except ValueError:
        return None
    page = PageName(site, keywords, int.from_bytes(raw[:2], "big"))
    return page if path_of(seed, rules, page) == path else None


# --- texts ----------------------------------------------------------------------------------------------------


MAX_POSTS = 6
"""Maximum number of reviews on a page of a thread."""

RATED_SITES = 0.5
"""Share of the complaint sites that print a rating."""

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
    """One review, as its page shows it.

    Attributes:
        key: Id of the review on its site.
        date: Date as shown (UTC+8), in one of several forms. The page may show the day only.
        at: Time that the date stands for.
        rating: From 1 to 5, or `None` if the site shows no rating.
    """

    key: str
    title: str
    body: str
    author: str
    date: str
    at: datetime
    rating: int | None


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a page: its title and 1 to 6 posts about ``subject``."""

    subject: str
    title: str
    posts: tuple[Post, ...]


def write_page(seed: int, page: PageName, rules: str, texts: Sequence[str]) -> Content:
    """Write the content of a page. The same page always gets the same words.

    Args:
        rules: Name of the site's page rules. The page gets several posts if the name contains thread, comments, reviews
            or answers, else one.
        texts: Review texts to choose from, at least one.
    """
    rng = chance.generator(seed, "page", page.site, page.number, *page.keywords)
    subject = "".join(page.keywords)
    title = _pick(rng, WORDING["titles"]).format(subject=subject, problem=_pick(rng, WORDING["problems"]))
    is_rated = rules not in _UNRATED and chance.share(0, "rated", page.site) < RATED_SITES
    posts: list[Post] = []
    for place in range(1 + int(rng.random() * MAX_POSTS) if _SEVERAL.search(rules) else 1):
        heading = title if place == 0 else _pick(rng, WORDING["replies"]).format(subject=subject, title=title)
        # The order of the draws fixes the pages of a seed.
        posts.append(
            Post(
                key=str(10_000_000 + int(rng.random() * 1e15)),
                title=heading,
                body=_pick(rng, WORDING["leads"]).format(subject=subject) + _pick(rng, texts),
                author=_draw_author(rng),
                at=(at := _draw_moment(rng)),
                date=_print_date(at, page.site),
                rating=1 + int(rng.random() * 5) if is_rated else None,
            )
        )
    return Content(subject, title, tuple(posts))


def draw_title(rng: Random) -> str:
    """Return a headline that names no product, for the margins of a page."""
    name = _pick(rng, _SURNAMES) + _pick(rng, WORDING["given_names"])
    return f"{name}投诉：{_pick(rng, WORDING['problems'])}"


def _pick(rng: Random, choices: Sequence[str]) -> str:
    return choices[int(rng.random() * len(choices))]


def _draw_author(rng: Random) -> str:
    if rng.random() < 0.5:
        return _pick(rng, _SURNAMES) + _pick(rng, WORDING["given_names"])
    return f"{_pick(rng, WORDING['nicknames'])}{int(rng.random() * 10_000)}"


def _draw_moment(rng: Random) -> datetime:
    year, month, day = 2011 + int(rng.random() * 3), 1 + int(rng.random() * 12), 1 + int(rng.random() * 28)
    return datetime(year, month, day, 7 + int(rng.random() * 16), int(rng.random() * 60), tzinfo=CHINA)


def _print_date(at: datetime, site: str) -> str:
    form = _DATES[chance.number(0, "date", site) % len(_DATES)]
    return form.format(y=at.year, m=at.month, d=at.day, H=at.hour, M=at.minute)


DEFAULT_REVIEWS = Path(__file__).resolve().parents[3] / "shared" / "data" / "reviews"
"""Folder of real reviews next to the repository."""

_COLUMNS = {
    "online_shopping_10_cats.csv": "review",
    "waimai_10k_sample.csv": "review",
    "jd_phone_reviews.csv": "评论内容",
    "auto_complaints_12365auto.csv": "desc",
    "heimao_example.csv": "summary",
}
_MIN_CHARS, _MAX_CHARS = 6, 900
_MIN_FITTING = 20
_CONTROL = re.compile(r"[\x00-\x1f\x7f\s\ufeff]+")


def make_texts() -> tuple[str, ...]:
    """Return review texts composed of the parts in `texts.yaml`: mostly complaints, and some of each other voice."""
    return tuple("".join(parts) for voice in TEXTS.values() for parts in product(*voice))


def load_texts(folder: Path | None, avoid: Iterable[str] = ()) -> tuple[str, ...]:
    """Read real review texts from a folder. If it has none, compose artificial ones.

    Args:
        folder: Folder with CSV files of real reviews. It may be missing. `None` gives artificial texts.
        avoid: Regular expressions. A text that matches one is left out: a review with "please sign in first" would
            make a good page look like a login wall.

    Returns:
        Different texts of 6 to 900 characters on one line, always in the same order. There is at least one.
    """
    avoided = [re.compile(pattern) for pattern in avoid]
    tidied = (_CONTROL.sub(" ", text).strip()[:_MAX_CHARS].rstrip() for text in _read_reviews(folder))
    texts = dict.fromkeys(
        text for text in tidied if len(text) >= _MIN_CHARS and not any(one.search(text) for one in avoided)
    )
    return tuple(texts) or make_texts()


def _read_reviews(folder: Path | None) -> Iterator[str]:
    for name, column in _COLUMNS.items():
        if folder is not None and (path := folder / name).is_file():
            with path.open(encoding="utf-8-sig", newline="") as lines:
                yield from (row[column] or "" for row in csv.DictReader(lines))


def select_fitting(texts: tuple[str, ...], words: Iterable[str]) -> tuple[str, ...]:
    """Return the texts that contain one of the words, or all texts if fewer than 20 do.

    All texts are searched each time, so cache the result.
    """
    words = tuple(words)
    found = tuple(text for text in texts if any(word in text for word in words))
    return found if len(found) >= _MIN_FITTING else texts


# --- the pages of all sites -----------------------------------------------------------------------------------


EMPTY_SHARE = 0.1
"""Share of (site, query) without a hit."""

MEAN_HITS = 12.0
"""Mean number of hits of a (site, query), including the empty ones."""

BRAND_SHARE = 0.15
"""Share of brand pages among the hits of a query with several keywords."""

REPEAT_SHARE = 0.06
"""Share of the hits that an engine lists a second time under another spelling of their URL."""

_SIGMA = 1.0
_HITS = NormalDist(log(MEAN_HITS / (1 - EMPTY_SHARE)) - _SIGMA**2 / 2, _SIGMA)
_MAX_HITS = 2000
_SPELLINGS = ("?utm_source=search", "#top", "?utm_source=search&utm_medium=organic", "#comments")


@dataclass(frozen=True, slots=True)
class Listed:
    """One entry in the result list of an engine.

    Attributes:
        page: The page that the entry links to.
        url: Address of the page as listed. If a page is listed twice, one has tracking parameters or a fragment.
    """

    page: PageName
    url: str


class Corpus:
    """The pages of all sites of a catalog for one seed."""

    def __init__(
        self, catalog: Catalog, seed: int, texts: tuple[str, ...], hits: Mapping[str, int] | None = None
    ) -> None:
        """Set up the pages of a catalog's sites.

        Args:
            texts: Review texts, at least one.
            hits: Number of different pages for any query, by site. For other sites the number is random.
        """
        self._fixed_hits = hits or {}
        self._catalog = catalog
        self._seed = seed
        self._texts_for = lru_cache(maxsize=1024)(lambda words: select_fitting(texts, words))
        self.pages = lru_cache(maxsize=4096)(self._pages)
        self.listing = lru_cache(maxsize=4096)(self._listing)
        self._dates = lru_cache(maxsize=256)(self._date_pages)

    def hits(self, site: str, keywords: tuple[str, ...]) -> int:
        """Return the number of hits of a query on a site. It is lognormally distributed, and 0 for one query in ten."""
        if keywords and site in self._fixed_hits:
            return self._fixed_hits[site]
        draw = chance.share(self._seed, "hits", site, *keywords)
        if not keywords or draw < EMPTY_SHARE:
            return 0
        rank = (draw - EMPTY_SHARE) / (1 - EMPTY_SHARE)
        return min(_MAX_HITS, max(1, round(exp(_HITS.inv_cdf(max(rank, 1e-9))))))

    def url(self, page: PageName) -> str:
        """Return the canonical address of a page."""
        return f"http://{page.site}{path_of(self._seed, self._catalog.sites[page.site].rules, page)}"

    def find(self, site: str, path: str) -> PageName | None:
        """Return the page of a site at a path, or `None` if there is none."""
        page = page_at(self._seed, self._catalog.sites[site].rules, site, path)
        return page if page is not None and page.number < self.hits(site, page.keywords) else None

    def content(self, page: PageName) -> Content:
        """Return the content of a page."""
        rules = self._catalog.sites[page.site].rules
        return write_page(self._seed, page, rules, self._texts_for(page.keywords))

    def list_entries(self, site: str, keywords: tuple[str, ...], span: Span | None) -> tuple[Listed, ...]:
        """Return the entries of the result list for a query on a site, the best hit first.

        Args:
            span: Limits the list to pages whose first post is from this time; `None` for no limit.
        """
        entries = self.listing(site, keywords)
        if span is None:
            return entries
        dates = self._dates(site, keywords)
        return tuple(entry for entry in entries if span.start <= dates[entry.page] < span.end)

    def _date_pages(self, site: str, keywords: tuple[str, ...]) -> dict[PageName, datetime]:
        return {page: self.content(page).posts[0].at for page in self.pages(site, keywords)}

    def _pages(self, site: str, keywords: tuple[str, ...]) -> tuple[PageName, ...]:
        """Return the different pages that a site has for a query, the best hit first."""
        brand_hits = self.hits(site, keywords[:1]) if len(keywords) > 1 else 0
        found: dict[PageName, None] = {}
        for place in range(self.hits(site, keywords)):
            page = PageName(site, keywords, place)
            if brand_hits and chance.share(self._seed, "brand", site, *keywords, place) < BRAND_SHARE:
                # The square makes products of a brand meet on the brand's best pages.
                draw = chance.share(self._seed, "which", site, *keywords, place) ** 2
                shared = PageName(site, keywords[:1], int(draw * brand_hits))
                page = page if shared in found else shared
            found[page] = None
        return tuple(found)

    def _listing(self, site: str, keywords: tuple[str, ...]) -> tuple[Listed, ...]:
        """Return the entries of the result list for a query on a site: every page once, some of them twice."""
        places: list[tuple[float, Listed]] = []
        for place, page in enumerate(self.pages(site, keywords)):
            url = self.url(page)
            places.append((place, Listed(page, url)))
            draw = chance.number(self._seed, "repeat", url)
            if draw % 10_000 < REPEAT_SHARE * 10_000:
                spelling = _SPELLINGS[draw // 10_000 % len(_SPELLINGS)]
                places.append((place + 1.5 + draw // 100_000 % 8, Listed(page, url + spelling)))
        places.sort(key=lambda entry: entry[0])
        return tuple(listed for _, listed in places)
