"""Find phrases in a period's complaints that are significantly more frequent than before and belong to no theme."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from app.insight.phrases import (
    LEAST_PAGES,
    LEAST_PEOPLE,
    FoundPhrase,
    PhraseCorpus,
    find_frequent,
    merge_phrases,
)
from app.insight.rises import BASELINE_WEEKS
from app.insight.rows import NewPhrasesView, PhraseRow, QuoteRow
from splitter.errors import InputError
from splitter.lexicon import is_brand
from splitter.words import words_of
from tasks.reading.copies.authors import identity
from tasks.store.queries import themes as theme_queries
from tasks.store.queries.product_counts import count_complaints
from tasks.store.queries.themes import Complaint, Period, day_of_number, number_of_day
from tasks.store.sql.transaction import Transaction

MOST_NEW, MOST_BEFORE = 1_000, 2_000
"""Maximum numbers of complaints read from the period and from before; of more, a sample is read, in about 0.3 s."""
MOST_PRODUCTS = 50
QUOTES = 3
_MOST_CHECKED = 20
"""Maximum number of places at which a phrase is checked to consist of whole words."""
_LONGEST_QUOTE = 60
_EARLIEST = date(1980, 1, 1)
"""First day of a period that is compared with the time before. No review is older."""


Codes = NDArray[np.uint32]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PhraseProduct:
    """A product with complaints to search for new phrases.

    Attributes:
        words: words of the product's names in normal form. They are not reported as phrases.
        read: takes texts and returns the characters of their normal form, with a blank after each text, and for each
            character True if it is in a clause without a theme.
    """

    id: int
    name: str
    words: Sequence[str]
    read: Callable[[Sequence[str]], tuple[Codes, Marks]]


def find_new_phrases(tx: Transaction, products: Sequence[PhraseProduct], period: Period) -> NewPhrasesView:
    """Return new phrases in the complaints about products in a period.

    The complaints are compared with complaints of the three years before the period, at sites that have complaints in
    both.

    Raises:
        InputError: the period has no first day.
    """
    if period.since is None:
        raise InputError("new phrases need a period with a first day, such as --days 90")
    since = max(period.since, _EARLIEST)
    first = number_of_day(since)
    before = Period(since - timedelta(weeks=BASELINE_WEEKS), since - timedelta(days=1))
    rows: list[PhraseRow] = []
    counts: Counter[str] = Counter()
    left_out: set[str] = set()
    for product in products:
        new = theme_queries.list_complaints(tx, product.id, period, MOST_NEW)
        earlier = theme_queries.list_complaints(tx, product.id, before, MOST_BEFORE)
        of = {name: {one.site for one in found} for name, found in (("new", new), ("before", earlier))}
        left_out |= of["new"] ^ of["before"]
        sites = of["new"] & of["before"]
        texts = _Texts.read(
            _drop_copies([one for one in (*new, *earlier) if one.site in sites]), product, first
        )
        if texts is not None:
            rows += [_row(product.name, texts, one) for one in texts.find()]
        counts["new"] += theme_queries.count_complaints(tx, product.id, period)
        counts["before"] += theme_queries.count_complaints(tx, product.id, before)
        counts["read"] += len(new)
        counts["read before"] += len(earlier)
    return NewPhrasesView(
        since=period.since,
        until=period.until,
        phrases=rows,
        complaints=counts["new"],
        complaints_before=counts["before"],
        read=counts["read"],
        read_before=counts["read before"],
        sites_left_out=sorted(left_out),
    )


def list_most_complained(tx: Transaction, period: Period) -> list[str]:
    """Return the names of the products with the most complaints in a period, at most `MOST_PRODUCTS`."""
    counts = count_complaints(tx, period)
    numbers = sorted(
        (number for number in counts if counts[number] >= LEAST_PEOPLE), key=lambda one: -counts[one]
    )
    names = theme_queries.get_product_names(tx, numbers[:MOST_PRODUCTS])
    return [names[number] for number in numbers[:MOST_PRODUCTS]]


def _drop_copies(complaints: Sequence[Complaint]) -> list[Complaint]:
    """Return the complaints without those whose text is equal or nearly equal to an earlier one."""
    first: dict[int, Complaint] = {}
    for one in complaints:
        first.setdefault(one.original, one)
    return list(first.values())


def _person(complaint: Complaint) -> tuple[str, str | int]:
    """Return a key for the author of a complaint.

    Each complaint whose author's name identifies no person gets a key of its own.
    """
    return complaint.site, identity(complaint.site, complaint.author) or complaint.review


@dataclass(frozen=True, slots=True)
class _Texts:
    """Complaints, with their clauses without a theme (open clauses) as a corpus.

    Attributes:
        complaints: complaints, sorted by person.
        starts: place in the corpus at which each complaint begins.
        plain: characters of the corpus in normal form.
    """

    complaints: Sequence[Complaint]
    starts: Sequence[int]
    plain: str
    corpus: PhraseCorpus

    @staticmethod
    def read(complaints: Sequence[Complaint], product: PhraseProduct, first_day: int) -> _Texts | None:
        """Make the corpus of complaints; `None` if there are no complaints.

        Args:
            first_day: number of the period's first day.
        """
        if not complaints:
            return None
        keys = [(one.day >= first_day, *_person(one)) for one in complaints]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        order = sorted(range(len(keys)), key=lambda place: numbers[keys[place]])
        complaints = [complaints[place] for place in order]
        texts = [one.text for one in complaints]
        codes, is_open = product.read(texts)
        plain = codes.tobytes().decode("utf-32-le")
        starts = np.cumsum([0, *(len(text) + 1 for text in texts[:-1])])
        is_open &= _mark_letters(codes)
        for word in product.words:
            _close(is_open, plain, word)
        people = np.repeat([numbers[keys[place]] for place in order], [len(text) + 1 for text in texts])
        sites = {
            one.site: number for number, one in enumerate({one.site: one for one in complaints}.values())
        }
        corpus = PhraseCorpus(
            codes=np.where(is_open, codes, 0),
            people=people,
            is_new=np.array([key[0] for key in numbers], np.bool_),
            sites=np.array([sites[key[1]] for key in numbers]),
        )
        return _Texts(complaints, starts.tolist(), plain, corpus)

    def find(self) -> list[FoundPhrase]:
        """Return the new phrases, the most significant first."""
        found = [one for one in find_frequent(self.corpus) if self._is_phrase(one)]
        return merge_phrases(self.corpus, found)

    def _is_phrase(self, found: FoundPhrase) -> bool:
        """Return True if a phrase is on at least two pages, consists of whole words, and contains no brand."""
        pages = {self.find_complaint(place).page_id for place in found.places.tolist()}
        if len(pages) < LEAST_PAGES:
            return False
        places = found.places[:_MOST_CHECKED].tolist()
        whole = [words for place in places if (words := self._cut(place, found.length)) is not None]
        if 2 * len(whole) < len(places):
            return False
        return not any(map(is_brand, Counter(whole).most_common(1)[0][0]))

    def _cut(self, place: int, length: int) -> tuple[str, ...] | None:
        """Return the words in the `length` characters from a place on; `None` if a word is only partly inside."""
        begin, end = self._clause(place)
        at = begin
        found = []
        for word in words_of(self.plain[begin:end]):
            at = self.plain.find(word, at, end)
            if at < 0:
                return None
            if place <= at and at + len(word) <= place + length:
                found.append(word)
            elif at < place + length and at + len(word) > place:
                return None
            at += len(word)
        return tuple(found)

    def _clause(self, place: int) -> tuple[int, int]:
        """Return the place at which the open clause around `place` begins, and the place after its end."""
        codes = self.corpus.codes
        begin = end = place
        while begin and codes[begin - 1]:
            begin -= 1
        while end < codes.size and codes[end]:
            end += 1
        return begin, end

    def find_complaint(self, place: int) -> Complaint:
        """Return the complaint that contains a place of the corpus."""
        return self.complaints[int(np.searchsorted(self.starts, place, side="right")) - 1]

    def write(self, found: FoundPhrase) -> str:
        """Return a phrase in the spelling that most people used."""
        written = Counter(self._original(place, place + found.length) for place in found.places.tolist())
        return written.most_common(1)[0][0]

    def _original(self, begin: int, end: int) -> str:
        number = int(np.searchsorted(self.starts, begin, side="right")) - 1
        start = self.starts[number]
        return self.complaints[number].text[begin - start : end - start]

    def quotes(self, found: FoundPhrase) -> Iterator[QuoteRow]:
        """Yield clauses that contain a phrase, from the newest complaints."""
        places = sorted(found.places.tolist(), key=lambda place: -self.find_complaint(place).day)
        for place in places[:QUOTES]:
            one = self.find_complaint(place)
            begin, end = self._clause(place)
            text = self._original(begin, min(end, begin + _LONGEST_QUOTE))
            yield QuoteRow(text, day_of_number(one.day), one.site, one.url, one.review)


def _mark_letters(codes: Codes) -> Marks:
    """Return True for each letter. Digits are in no phrase, because all numbers have the same normal form."""
    kinds, places = np.unique(codes, return_inverse=True)
    marks: Marks = np.array([chr(code).isalpha() for code in kinds.tolist()], np.bool_)[places]
    return marks


def _close(is_open: Marks, plain: str, word: str) -> None:
    """Mark all places of a word as closed in `is_open`, so that no phrase contains the word."""
    place = plain.find(word)
    while word and place >= 0:
        is_open[place : place + len(word)] = False
        place = plain.find(word, place + len(word))


def _row(product: str, texts: _Texts, found: FoundPhrase) -> PhraseRow:
    return PhraseRow(
        product=product,
        phrase=texts.write(found),
        complaints=found.people,
        before=found.before,
        expected=round(found.expected, 1),
        p_value=found.p_value,
        quotes=list(texts.quotes(found)),
    )
