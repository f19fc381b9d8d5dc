"""The hidden web: the pages that each site has for each query, and their texts.

Nothing is stored. Any product may be asked for, so the pages of a query follow from (seed, site, keywords)
alone, and a page's path carries what its content follows from. A share of the hits of a query of several
keywords are *brand pages*: pages of the query for its first keyword alone, so that products of one brand
share pages.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import product
from math import exp, log
from pathlib import Path
from statistics import NormalDist

from app.lab import chance
from app.lab.pages import TEXTS, Content, PageName, page_at, path_of, write_page
from splitter.catalog.model import Catalog
from splitter.spans import Span

EMPTY_SHARE = 0.1
"""Share of (site, query) that have no hit at all."""

MEAN_HITS = 12.0
"""Mean number of hits of a (site, query), the empty ones included."""

BRAND_SHARE = 0.15
"""Share of the hits of a query of several keywords that are brand pages."""

REPEAT_SHARE = 0.06
"""Share of the hits that an engine lists a second time under another spelling of their URL."""

_SIGMA = 1.0
_HITS = NormalDist(log(MEAN_HITS / (1 - EMPTY_SHARE)) - _SIGMA**2 / 2, _SIGMA)
_MOST_HITS = 2000
_SPELLINGS = ("?utm_source=search", "#top", "?utm_source=search&utm_medium=organic", "#comments")


@dataclass(frozen=True, slots=True)
class Listed:
    """One entry of an engine's list.

    Attributes:
        page: the page it leads to.
        url: its address as listed: with tracking parameters or a fragment where the page is listed again.
    """

    page: PageName
    url: str


class Corpus:
    """The pages of all sites of a catalog for one seed."""

    def __init__(
        self, catalog: Catalog, seed: int, texts: tuple[str, ...], known: Mapping[str, int] | None = None
    ) -> None:
        """Set up a corpus.

        Args:
            texts: what people write in it; not empty.
            known: sites that have so many different pages for every query.
        """
        self._known = known or {}
        self._catalog = catalog
        self._seed = seed
        self._texts_about = lru_cache(maxsize=1024)(lambda words: fitting(texts, words))
        self.pages = lru_cache(maxsize=4096)(self._pages)
        self.listing = lru_cache(maxsize=4096)(self._listing)
        self._dates = lru_cache(maxsize=256)(self._dates_of)

    def hits(self, site: str, keywords: tuple[str, ...]) -> int:
        """Number of hits a site has for a query: lognormal (heavy tailed), 0 for one query in ten."""
        if keywords and site in self._known:
            return self._known[site]
        draw = chance.share(self._seed, "hits", site, *keywords)
        if not keywords or draw < EMPTY_SHARE:
            return 0
        rank = (draw - EMPTY_SHARE) / (1 - EMPTY_SHARE)
        return min(_MOST_HITS, max(1, round(exp(_HITS.inv_cdf(max(rank, 1e-9))))))

    def url(self, page: PageName) -> str:
        """The canonical address of a page."""
        rules = self._catalog.sites[page.site].rules
        return f"http://{page.site}{path_of(self._seed, rules, page)}"

    def find(self, site: str, path: str) -> PageName | None:
        """The page of a site at a path; None where there is none."""
        page = page_at(self._seed, self._catalog.sites[site].rules, site, path)
        if page is None or page.number >= self.hits(site, page.keywords):
            return None
        return page

    def content(self, page: PageName) -> Content:
        """The text of a page."""
        texts = self._texts_about(page.keywords)
        return write_page(self._seed, page, self._catalog.sites[page.site].rules, texts)

    def listed(self, site: str, keywords: tuple[str, ...], span: Span | None) -> tuple[Listed, ...]:
        """Pages that an engine lists, best hit first; in a span, the pages whose first post is of that time."""
        entries = self.listing(site, keywords)
        if span is None:
            return entries
        dates = self._dates(site, keywords)
        return tuple(entry for entry in entries if span.start <= dates[entry.page] < span.end)

    def _dates_of(self, site: str, keywords: tuple[str, ...]) -> dict[PageName, datetime]:
        return {page: self.content(page).posts[0].at for page in self.pages(site, keywords)}

    def _pages(self, site: str, keywords: tuple[str, ...]) -> tuple[PageName, ...]:
        """The different pages a site has for a query, best hit first."""
        brand_hits = self.hits(site, keywords[:1]) if len(keywords) > 1 else 0
        found: dict[PageName, None] = {}
        for place in range(self.hits(site, keywords)):
            page = PageName(site, keywords, place)
            if brand_hits and chance.share(self._seed, "brand", site, *keywords, place) < BRAND_SHARE:
                # Squared: products of a brand meet on the brand's best pages.
                draw = chance.share(self._seed, "which", site, *keywords, place) ** 2
                shared = PageName(site, keywords[:1], int(draw * brand_hits))
                page = page if shared in found else shared
            found[page] = None
        return tuple(found)

    def _listing(self, site: str, keywords: tuple[str, ...]) -> tuple[Listed, ...]:
        """Pages that an engine lists for a query restricted to a site: every page, some of them twice."""
        pages = self.pages(site, keywords)
        places: list[tuple[float, Listed]] = []
        for place, page in enumerate(pages):
            url = self.url(page)
            places.append((place, Listed(page, url)))
            draw = chance.number(self._seed, "repeat", url)
            if draw % 10_000 < REPEAT_SHARE * 10_000:
                spelling = _SPELLINGS[draw // 10_000 % len(_SPELLINGS)]
                places.append((place + 1.5 + draw // 100_000 % 8, Listed(page, url + spelling)))
        places.sort(key=lambda entry: entry[0])
        return tuple(listed for _, listed in places)


# --- what people write ----------------------------------------------------------------------------------------


DEFAULT_REVIEWS = Path(__file__).resolve().parents[3] / "shared" / "data" / "reviews"
"""The folder of real reviews, beside the repository."""

_COLUMNS = {
    "online_shopping_10_cats.csv": "review",
    "waimai_10k_sample.csv": "review",
    "jd_phone_reviews.csv": "评论内容",
    "auto_complaints_12365auto.csv": "desc",
    "heimao_example.csv": "summary",
}
_SHORTEST, _LONGEST = 6, 900
_FEW = 20
_CONTROL = re.compile(r"[\x00-\x1f\x7f\s\ufeff]+")


def made_texts() -> tuple[str, ...]:
    """Texts made of parts (`texts.yaml`), the same every time: complaints for the most part, and all other voices."""
    return tuple("".join(parts) for voice in TEXTS.values() for parts in product(*voice))


def load_texts(folder: Path | None, avoid: Iterable[str] = ()) -> tuple[str, ...]:
    """The review texts of a folder, or made ones where it holds none.

    Args:
        folder: where the CSV files of real reviews are; it need not exist. None: made ones.
        avoid: regular expressions; a text in which one is found is left out (a review that says
            "please sign in first" would make a good page look like a login wall).

    Returns:
        Texts of 6 to 900 characters without line breaks and repeats, always in the same order; never empty.
    """
    refused = [re.compile(pattern) for pattern in avoid]
    texts = dict.fromkeys(
        text
        for text in map(_tidy, _cells(folder) if folder is not None else ())
        if len(text) >= _SHORTEST and not any(pattern.search(text) for pattern in refused)
    )
    return tuple(texts) or made_texts()


def fitting(texts: tuple[str, ...], keywords: Iterable[str]) -> tuple[str, ...]:
    """Those texts that mention one of the keywords, so that milk is complained of and not a telephone.

    All of them where fewer than `_FEW` fit. Takes a search through all texts: keep the answer.
    """
    words = tuple(keywords)
    found = tuple(text for text in texts if any(word in text for word in words))
    return found if len(found) >= _FEW else texts


def _cells(folder: Path) -> Iterator[str]:
    for name, column in _COLUMNS.items():
        path = folder / name
        if path.is_file():
            with path.open(encoding="utf-8-sig", newline="") as lines:
                yield from (row[column] or "" for row in csv.DictReader(lines))


def _tidy(text: str) -> str:
    return _CONTROL.sub(" ", text).strip()[:_LONGEST].rstrip()
