"""A record of a file as a review that can be stored, or refused with its line, field and reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TypeVar
from urllib.parse import urlsplit

from app.actions.products import new_product, not_a_name
from app.files.visible_text import strip_unseen
from app.importing.cell_words import NotUnderstood, is_nothing
from app.importing.ignored_cells import IgnoredCells
from app.importing.review_columns import FieldColumns
from app.importing.review_files import Record
from app.importing.review_values import read_day, read_rating
from splitter.catalog.model import Site
from splitter.category import guess_category
from splitter.errors import InputError, Message
from splitter.normalize import normalize
from splitter.spans import CHINA, get_zone
from tasks.domain.failures import FetchError
from tasks.domain.page_key import canonical
from tasks.domain.pages import Review
from tasks.reading.copies.copy_key import copy_key
from tasks.reading.judge.product_match import matchable_text, product_match
from tasks.reading.judge.reviews import add_judgements
from tasks.reading.relevance import reject_reason
from tasks.store.content.imports import ImportedReview, page_of, review_key
from tasks.store.content.products import KnownName, NewProduct
from tasks.worker.pseudonyms import NOBODY_PREFIX, PREFIX, Pseudonyms

NO_SITE = "imported"
"""The site of a review that neither names one nor has an address."""
_LONGEST = {"body": 100_000, "title": 2_000, "author": 500, "date": 100, "site": 255, "variant": 500}
"""Characters of a field, at most."""
_REMEMBERED = 20_000
"""Names of products that are remembered with what they lead to."""
_LEAST_WORDS = 2
_MEANING = Message("left empty")
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
    why: Message


T = TypeVar("T")


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
            raise InputError(
                "{name!r} looks like {looks}, not like a product's name", name=written[:40], looks=looks
            )
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


def _site(text: str) -> str:
    return "" if is_nothing(text) else text


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

    Attributes:
        ignored: cells that were not understood.
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
        self._category = lru_cache(_REMEMBERED)(guess_category)
        self._pseudonyms = pseudonyms
        self._now = now.astimezone(CHINA)
        self.ignored = IgnoredCells()

    def of(self, record: Record) -> ImportedReview | RefusedReview:
        """Return the review of a record, or why it has none: only its text or its product can refuse it."""
        try:
            return self._review(record)
        except _Refused as refused:
            field, why = refused.args
            return RefusedReview(record.line, field, why)

    def _review(self, record: Record) -> ImportedReview:
        cells = _Cells(self._columns, record, self.ignored)
        body = cells.needed("body")
        if not body:
            raise _Refused("body", Message("is empty"))
        try:
            product, written = self._names.of(cells.needed("product"))
        except InputError as error:
            raise _Refused("product", error.message) from None
        url, site_of_url = cells.value("url", self._address, ("", ""))
        site = cells.value("site", _site, "") or site_of_url or NO_SITE
        date = cells.value("date", self._date, None)
        by = cells.value("author", str, "")
        title = cells.value("title", str, "")
        rating = cells.value("rating", read_rating, None)
        author = written_by = by
        if self._pseudonyms is not None:
            author = self._pseudonyms.of(site, by)
            written_by = author.replace(NOBODY_PREFIX, PREFIX, 1)  # as 0.11.0 wrote all: keys stay equal
        review = Review(
            key=review_key(written_by, cells.when(date), title, body, rating),
            title=title,
            body=body,
            author=author,
            date_text=cells.value("date", str, ""),
            date=self._convert_to_site_zone(date, site),
            rating=rating,
            variant=cells.value("variant", str, ""),
        )
        if reason := reject_reason(review, main_text=False):
            raise _Refused("body", Message("is no review: {reason}", reason=Message(reason)))
        group = self._sites[site].group if site in self._sites else None
        (judged,) = add_judgements([review._replace(author=by)], group, self._category(product))
        review = judged._replace(author=author)
        page = self._page_of(site, url, written)
        return ImportedReview(product, written, site, url, review, page, copy_key(site, author, body))

    def _address_of(self, text: str) -> tuple[str, str]:
        """Return a canonical address, and the catalog's site that it is on, else its host; empty texts for none."""
        if is_nothing(text):
            return "", ""
        try:
            url = canonical(f"https:{text}" if text.startswith("//") else text)
        except FetchError:
            raise NotUnderstood from None
        host = (urlsplit(url).hostname or "").removeprefix("www.")
        labels = host.split(".")
        domains = (".".join(labels[place:]) for place in range(len(labels) - 1))
        return url, next((domain for domain in domains if domain in self._sites), host)

    def _convert_to_site_zone(self, date: datetime | None, site: str) -> datetime | None:
        """Return a date that has an offset, as programs write them, in the zone of its site; others as they are."""
        if date is None or date.tzinfo is CHINA:
            return date
        zone = get_zone(self._sites[site].zone) if site in self._sites else CHINA
        return date.astimezone(zone)

    def _date(self, text: str) -> datetime | None:
        date = read_day(text, self._now)
        if date is not None and date > self._now + _AHEAD:
            raise NotUnderstood
        return date


class _Cells:
    """The fields of a record.

    Args:
        ignored: counts the cells that are not understood.
    """

    def __init__(self, columns: FieldColumns, record: Record, ignored: IgnoredCells) -> None:
        self._columns = columns
        self._record = record
        self._ignored = ignored
        self._left_out: list[str] = []

    def needed(self, name: str) -> str:
        """Return a field that can refuse the record."""
        try:
            return self._text(name)
        except InputError as error:
            raise _Refused(name, error.message) from None

    def value(self, name: str, reader: Callable[[str], T], empty: T) -> T:
        """Return a field that may be empty; a cell that is not understood is counted, and empty."""
        try:
            return reader(self._text(name))
        except (InputError, NotUnderstood):
            written = self._columns.text(name, self._record.cells)
            column = self._columns.columns.get(name, name)
            self._ignored.add(column, written, self._record.line, _MEANING)
            self._left_out.append(written)
            return empty

    def when(self, date: datetime | None) -> str:
        """Return the date and the cells that were left empty: they distinguish reviews with the same text."""
        return "\n".join([date.isoformat() if date is not None else "", *self._left_out]).rstrip("\n")

    def _text(self, name: str) -> str:
        """Return a field as text. Raises InputError if it is too long or broken."""
        text = strip_unseen(self._columns.text(name, self._record.cells).replace("\0", ""))
        if _BROKEN.search(text):
            raise InputError("ends in the middle of a character")
        most = _LONGEST.get(name)
        if most is not None and len(text) > most:
            raise InputError("has {n:,} characters, {most:,} are allowed", n=len(text), most=most)
        return text
