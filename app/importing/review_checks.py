"""Make a review from each record of a file, or refuse the record with its line, field and reason."""

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
from app.importing.review_files import ImportedLine
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
"""Site of a review that has neither a site nor an address."""
_LONGEST = {"body": 100_000, "title": 2_000, "author": 500, "date": 100, "site": 255, "variant": 500}
"""Maximum number of characters by field."""
_REMEMBERED = 20_000
"""Number of product names whose result is cached."""
_LEAST_WORDS = 2
_MEANING = Message("left empty")
_BROKEN = re.compile("[\ud800-\udfff]")
_AHEAD = timedelta(days=2)
"""How far in the future a date may be, as time zones differ."""


@dataclass(frozen=True, slots=True)
class RefusedReview:
    """A line of the file that gives no review, with the reason.

    Attributes:
        field: the field with the fault; empty if the fault is in the whole line.
    """

    line: int
    field: str
    why: Message


T = TypeVar("T")


class _RefusedField(Exception):
    """A field is wrong, so its record is refused. The arguments are the field and the reason."""


class ProductNames:
    """Finds the product that a name in a file means: a stored product or a new one.

    It is the product that has this name or alias. If there is none, it is the product whose keywords, at least two, are
    all in the name; of several such products, the one with the most keywords. Otherwise the name belongs to a new
    product. Products that this file adds are not matched by keywords, so the order of its lines does not matter.

    Args:
        known: the stored products.
        fixed: product of all lines; `None` if each line names its own.
        crawled: sites at which new products will be crawled: `None` for all, empty for none.
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

    def find(self, written: str) -> tuple[str, str]:
        """Return the name of the product that a name in the file means, and the name as written in the file.

        Raises:
            InputError: the text can't be a product's name.
        """
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
    """Makes reviews from the records of a file.

    Args:
        columns: the columns that fields are read from.
        names: finds the product that a name means.
        sites: sites of the catalog. An address on a host of a site belongs to that site.
        pseudonyms: replaces authors' names; `None` stores the names as they are.
        now: the current time, to compute relative dates (3 days ago).

    Attributes:
        ignored: the cells that were not understood.
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

    def make_review(self, record: ImportedLine) -> ImportedReview | RefusedReview:
        """Return the review in a record, or a refusal. A record is refused only if its text or its product is wrong."""
        try:
            return self._review(record)
        except _RefusedField as refused:
            field, why = refused.args
            return RefusedReview(record.line, field, why)

    def _review(self, record: ImportedLine) -> ImportedReview:
        cells = _Cells(self._columns, record, self.ignored)
        body = cells.get_required("body")
        if not body:
            raise _RefusedField("body", Message("is empty"))
        try:
            product, written = self._names.find(cells.get_required("product"))
        except InputError as error:
            raise _RefusedField("product", error.message) from None
        url, site_of_url = cells.value("url", self._address, ("", ""))
        site = cells.value("site", _site, "") or site_of_url or NO_SITE
        date = cells.value("date", self._date, None)
        by = cells.value("author", str, "")
        title = cells.value("title", str, "")
        rating = cells.value("rating", read_rating, None)
        author = written_by = by
        if self._pseudonyms is not None:
            author = self._pseudonyms.pseudonym(site, by)
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
            raise _RefusedField("body", Message("is no review: {reason}", reason=Message(reason)))
        group = self._sites[site].group if site in self._sites else None
        (judged,) = add_judgements([review._replace(author=by)], group, self._category(product))
        review = judged._replace(author=author)
        page = self._page_of(site, url, written)
        return ImportedReview(product, written, site, url, review, page, copy_key(site, author, body))

    def _address_of(self, text: str) -> tuple[str, str]:
        """Return a page's canonical address and its site, or its host if it is on no site; both may be empty."""
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
        """Convert a date with a UTC offset to the zone of its site. Return other dates unchanged."""
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
    """The fields of one record.

    Args:
        ignored: collects the cells that are not understood.
    """

    def __init__(self, columns: FieldColumns, record: ImportedLine, ignored: IgnoredCells) -> None:
        self._columns = columns
        self._record = record
        self._ignored = ignored
        self._left_out: list[str] = []

    def get_required(self, name: str) -> str:
        """Return the text of a field that every record must have. Raises `_RefusedField` if it is missing or wrong."""
        try:
            return self._text(name)
        except InputError as error:
            raise _RefusedField(name, error.message) from None

    def value(self, name: str, reader: Callable[[str], T], empty: T) -> T:
        """Return an optional field as `reader` reads it. If it is missing or not understood, return `empty`.

        A cell that is not understood is counted.
        """
        try:
            return reader(self._text(name))
        except (InputError, NotUnderstood):
            written = self._columns.text(name, self._record.cells)
            column = self._columns.columns.get(name, name)
            self._ignored.add(column, written, self._record.line, _MEANING)
            self._left_out.append(written)
            return empty

    def when(self, date: datetime | None) -> str:
        """Return the date and the cells that were not understood, one per line.

        Reviews with equal words differ in them.
        """
        return "\n".join([date.isoformat() if date is not None else "", *self._left_out]).rstrip("\n")

    def _text(self, name: str) -> str:
        """Return the text of a field. Raises InputError if it is too long or can't be decoded."""
        text = strip_unseen(self._columns.text(name, self._record.cells).replace("\0", ""))
        if _BROKEN.search(text):
            raise InputError("ends in the middle of a character")
        most = _LONGEST.get(name)
        if most is not None and len(text) > most:
            raise InputError("has {n:,} characters, {most:,} are allowed", n=len(text), most=most)
        return text
