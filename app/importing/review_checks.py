"""A record of a file as a review that can be stored, or refused with its line, field and reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from urllib.parse import urlsplit

from app.actions.products import new_product, not_a_name
from app.importing.review_columns import FieldColumns
from app.importing.review_files import Record
from splitter.catalog.model import Site
from splitter.errors import InputError
from splitter.normalize import normalize
from tasks.domain.failures import FetchError
from tasks.domain.page_key import canonical
from tasks.domain.pages import Review
from tasks.reading.dates import read_date
from tasks.reading.judge.product_match import matchable_text, product_match
from tasks.reading.relevance import reject_reason
from tasks.reading.voice import judgement
from tasks.store.content.imports import ImportedReview, page_of, review_key
from tasks.store.content.products import KnownName, NewProduct
from tasks.worker.pseudonyms import Pseudonyms

NO_SITE = "imported"
"""The site of a review that neither names one nor has an address."""
_LONGEST = {"body": 100_000, "title": 2_000, "author": 500, "date": 100, "site": 255}
"""Characters of a field, at most."""
_REMEMBERED = 20_000
"""Names of products that are remembered with what they lead to."""
_LEAST_WORDS = 2
_RATING = re.compile(
    r"(?:评分|rated)?\s*(\d{1,3}(?:\.\d{1,4})?)\s*(?:星级?|分|stars?|/\s*\d{1,3})?", re.IGNORECASE
)
_BROKEN = re.compile("[\ud800-\udfff]")
_AHEAD = timedelta(days=2)
"""How far ahead of the clock a date may be: zones differ."""


@dataclass(frozen=True, slots=True)
class RefusedReview:
    """A line that was not taken.

    Attributes:
        field: which has the fault; empty: the line as a whole.
    """

    line: int
    field: str
    why: str


class _Refused(Exception):
    """(field, why)."""


class ProductNames:
    """Finds the product that a name in a file means: one that is there, or a new one.

    A name means the product of that name or alias; else the one all of whose keywords it holds, of several the one
    with most keywords, at least two; else a new product. Products that one file adds take no other names of it, so
    the order of its lines does not matter.

    Args:
        known: products that are there.
        fixed: the name of the product of all lines; None: each line has its own.
        crawled: new products are looked for at these sites: None = all, empty = none.
    """

    def __init__(
        self, known: Iterable[KnownName], fixed: str | None, crawled: tuple[str, ...] | None
    ) -> None:
        self._known = list(known)
        self._by_name: dict[str, str] = {}
        for one in self._known:
            self._by_name.setdefault(_plain(one.name), one.name)
        for one in self._known:
            for alias in one.aliases:
                self._by_name.setdefault(_plain(alias), one.name)
        self._fixed = fixed
        self._crawled = crawled
        self.added: dict[str, NewProduct] = {}
        self.taken_as: dict[str, str] = {}
        self._found = lru_cache(_REMEMBERED)(self._find)

    def of(self, written: str) -> tuple[str, str]:
        """The product's name, and the name as written. Raises InputError for what is no product's name."""
        written = self._fixed or " ".join(written.split())
        return self._found(written), written

    def _find(self, written: str) -> str:
        plain = _plain(written)
        if (name := self._by_name.get(plain)) is not None:
            return name
        if looks := not_a_name(written):
            raise InputError(f"{written[:40]!r} looks like {looks}, not like a product's name")
        if (name := self._matching(written)) is not None:
            self.taken_as[written] = name
            return name
        new = new_product(written, sites=self._crawled)
        self._by_name[plain] = new.name
        self.added[new.name] = new
        return new.name

    def _matching(self, written: str) -> str | None:
        text = matchable_text(written, ())
        best: tuple[int, str] | None = None
        for one in self._known:
            for words in one.keyword_sets:
                if len(words) < _LEAST_WORDS or (best is not None and len(words) <= best[0]):
                    continue
                found = product_match([words], text)
                if found.matches and not found.missing:
                    best = len(words), one.name
        return best[1] if best is not None else None


def _plain(name: str) -> str:
    return normalize(name).casefold()


class ReviewChecks:
    """Makes reviews of records.

    Args:
        columns: where fields are read from.
        names: finds products.
        sites: of the catalog; an address on one of their hosts is of that site.
        pseudonyms: of authors; None: names are stored as they are.
        now: what relative dates count from.
    """

    def __init__(
        self,
        columns: FieldColumns,
        names: ProductNames,
        sites: Mapping[str, Site],
        pseudonyms: Pseudonyms | None,
        now: datetime,
    ) -> None:
        self._columns = columns
        self._names = names
        self._sites = sites
        self._address = lru_cache(_REMEMBERED)(self._address_of)
        self._page_of = lru_cache(_REMEMBERED)(page_of)
        self._pseudonyms = pseudonyms
        self._now = now

    def of(self, record: Record) -> ImportedReview | RefusedReview:
        """The review of a record, or why it has none."""
        try:
            return self._review(lambda name: self._text(name, record))
        except _Refused as refused:
            field, why = refused.args
            return RefusedReview(record.line, field, why)

    def _text(self, name: str, record: Record) -> str:
        text = self._columns.text(name, record.cells).replace("\0", "").strip()
        if _BROKEN.search(text):
            raise _Refused(name, "holds half a character")
        most = _LONGEST.get(name)
        if most is not None and len(text) > most:
            raise _Refused(name, f"has {len(text):,} characters, {most:,} are allowed")
        return text

    def _review(self, text: Callable[[str], str]) -> ImportedReview:
        body = text("body")
        if not body:
            raise _Refused("body", "is empty")
        try:
            product, written = self._names.of(text("product"))
        except InputError as error:
            raise _Refused("product", str(error)) from None
        url, site_of_url = self._address(text("url"))
        site = text("site") or site_of_url or NO_SITE
        date_text = text("date")
        date = self._date(date_text)
        by, title = text("author"), text("title")
        author = by if self._pseudonyms is None else self._pseudonyms.of(site, by)
        rating = _rating(text("rating"))
        when = date.isoformat() if date is not None else ""
        key = review_key(author, when, title, body, rating)
        review = Review(key, title, body, author, date_text, date, rating)
        if reason := reject_reason(review, main_text=False):
            raise _Refused("body", f"is no review: {reason}")
        group = self._sites[site].group if site in self._sites else None
        review = review._replace(voice=judgement(review._replace(author=by), group))
        return ImportedReview(product, written, site, url, review, self._page_of(site, url, written))

    def _address_of(self, text: str) -> tuple[str, str]:
        """A canonical address, and the catalog's site that it is on, else its host; empty texts for none."""
        if not text:
            return "", ""
        try:
            url = canonical(f"https:{text}" if text.startswith("//") else text)
        except FetchError as error:
            raise _Refused("url", f"{text[:60]!r} is no address: {error}") from None
        host = (urlsplit(url).hostname or "").removeprefix("www.")
        labels = host.split(".")
        domains = (".".join(labels[place:]) for place in range(len(labels) - 1))
        return url, next((domain for domain in domains if domain in self._sites), host)

    def _date(self, text: str) -> datetime | None:
        if not text:
            return None
        date = read_date(text, self._now)
        if date is None:
            raise _Refused("date", f"{text[:40]!r} is no date; write 2026-05-31 or 2026-05-31 12:00")
        if date > self._now + _AHEAD:
            raise _Refused("date", f"{text[:40]!r} is in the future")
        return date


def _rating(text: str) -> float | None:
    if not text:
        return None
    match = _RATING.fullmatch(text)
    if match is None:
        raise _Refused("rating", f"{text[:40]!r} is no number; leave the column out with --map rating=")
    return float(match[1])
