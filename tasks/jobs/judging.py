"""Judges what is stored anew: whose voice each review is, and whether its page is about the products it was found for.

Batch by batch, in the order of the pages' numbers, with a mark in the store: what is interrupted goes on there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from splitter.catalog.model import Catalog
from splitter.catalog.names import Group

from tasks.domain.pages import PageRead, Review
from tasks.domain.product_match import Verdict, matchable_text
from tasks.domain.voices import VoiceJudgement
from tasks.reading.relevance import screen_reviews
from tasks.store.content import judging, page_links
from tasks.store.content.judging import JudgedPage, StoredPage
from tasks.store.content.refused import of_another_product
from tasks.store.queue.upkeep import mark_of, set_mark
from tasks.store.sql.database import Store

BATCH = 50
"""Pages of a transaction."""
MOST_CHANGES = 1000
"""Changed verdicts that are told one by one; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Another verdict on a page for a product.

    Attributes:
        missing: words that a page about another product lacks.
        reviews: how many it has.
    """

    page: int
    url: str
    product: str
    before: str
    after: str
    missing: tuple[str, ...]
    reviews: int


@dataclass(slots=True)
class Judged:
    """The outcome of judging.

    Attributes:
        to_do: pages there were at the beginning.
        pages, reviews: that were looked at.
        voices: reviews by (voice before, voice now), of those that were judged; None: there was none.
        taken_in: refused records that are stored as reviews now.
        left_out, taken_back: reviews whose page is no more, or is again, about a product; for each product.
        changes: the first `MOST_CHANGES` of these.
        of_unknown_sites: pages that keep their verdicts, as their sites are not in the catalog.
    """

    to_do: int = 0
    pages: int = 0
    reviews: int = 0
    voices: Counter[tuple[str | None, str]] = field(default_factory=Counter)
    taken_in: int = 0
    left_out: int = 0
    taken_back: int = 0
    changes: list[Change] = field(default_factory=list)
    of_unknown_sites: int = 0

    def add(self, one: JudgedPage) -> None:
        """Count a page."""
        before = {number: review.voice for number, review in one.page.reviews}
        self.pages += 1
        self.reviews += len(before)
        self.taken_in += len(one.taken_in)
        self.of_unknown_sites += not one.site_known
        for number, voice in one.voices:
            was = before[number]
            self.voices[was.voice if was else None, voice.voice] += 1
        names = {link.product_id: (name, link.verdict) for link, name, _ in one.page.links}
        n = len(before) + len(one.taken_in)
        for link in one.links:
            name, was_ = names[link.product_id]
            if link.verdict is was_:
                continue
            if link.verdict is Verdict.REVIEW:
                self.taken_back += n
            elif was_ is Verdict.REVIEW:
                self.left_out += n
            if len(self.changes) < MOST_CHANGES:
                row = one.page.row
                told = Change(
                    page=row.id, url=row.url, product=name, before=was_.value, after=link.verdict.value,
                    missing=link.missing, reviews=n,
                )  # fmt: skip
                self.changes.append(told)


def judge(
    store: Store,
    of_page: Callable[[StoredPage], JudgedPage],
    sweep: str,
    progress: Callable[[Judged], None],
    *,
    product_id: int | None = None,
    again: bool = False,
    dry_run: bool = False,
) -> Judged:
    """Judge pages until there are no more.

    Args:
        of_page: judges one (`page_judge`).
        sweep: name of the mark, at most 40 characters.
        progress: told after each batch; what it raises ends the judging, which then goes on after this batch.
        product_id: only pages found for this product.
        again: the mark is taken away at the end, so that the next one begins from the beginning.
        dry_run: nothing is stored, the mark neither.
    """
    with store.read() as conn:
        after = mark_of(conn, sweep)
        done = Judged(judging.count_after(conn, after, product_id))
    while True:
        with store.read() as conn:
            batch = judging.following(conn, after, product_id, BATCH)
        found = [of_page(page) for page in batch]
        after = batch[-1].row.id if batch else 0
        if not dry_run and (batch or again):
            with store.begin() as conn:
                judging.save(conn, conn.now, found)
                set_mark(conn, sweep, after)
        for one in found:
            done.add(one)
        if not batch:
            return done
        progress(done)


def page_judge(
    catalog: Catalog, voice: Callable[[Review, Group | None], VoiceJudgement], model: str, *, again: bool
) -> Callable[[StoredPage], JudgedPage]:
    """The judge of a page by its site's rules, as when it was read.

    Args:
        voice: whose voice a review on a kind of site is.
        model: its id.
        again: also the voices that this model has judged.
    """

    def judged(page: StoredPage) -> JudgedPage:
        site = catalog.sites.get(page.row.site)
        group = site.group if site is not None else None
        voices = [
            (number, voice(review, group))
            for number, review in page.reviews
            if again or review.voice is None or review.voice.model != model
        ]
        if page.row.source is not None or site is None or not site.judge:
            known = page.row.source is not None or site is not None
            return JudgedPage(page=page, voices=voices, refused=page.refused, site_known=known)
        found = _verdicts(page, main_text=catalog.rules_of(page.row.site).main_text)
        taken_in = [one._replace(voice=voice(one, group)) for one in found.taken_in]
        return JudgedPage(
            page=page, voices=voices, links=found.links, taken_in=taken_in, refused=found.refused
        )

    return judged


def _verdicts(page: StoredPage, *, main_text: bool) -> JudgedPage:
    """The verdict of a page for its products, and which of its refused records are reviews; without voices."""
    stored = [review for _, review in page.reviews]
    rescued = _rescued(page, stored, main_text=main_text)
    withheld = [one for reason, one in page.refused if reason == Verdict.WRONG_PRODUCT]
    come = [one for _, one in page.refused if one.key in rescued] + withheld
    if not stored and not come:
        return JudgedPage(page=page, refused=page.refused)
    text = matchable_text(page.row.title, ((one.title, one.body) for one in [*stored, *come]))
    n = len(stored) + page.row.withheld + len(rescued)
    live = [(link, sets) for link, _, sets in page.links if link.verdict is not Verdict.REMOVED]
    alone = [page_links.judged(link.page_id, link.product_id, sets, text, n) for link, sets in live]
    links = page_links.settled(alone, [sets for _, sets in live], page.row.title, text, n)
    changed = [new for new, (old, _) in zip(links, live, strict=True) if new != old]
    if stored or any(link.verdict is Verdict.REVIEW for link in links):
        keys = {one.key for one in come}
        left = [(reason, one) for reason, one in page.refused if one.key not in keys]
        return JudgedPage(page=page, links=changed, taken_in=come, refused=left)
    left = [
        *((reason, one) for reason, one in page.refused if one.key not in rescued),
        *of_another_product([one for _, one in page.refused if one.key in rescued]),
    ]
    return JudgedPage(page=page, links=changed, refused=left)


def _rescued(page: StoredPage, stored: Sequence[Review], *, main_text: bool) -> set[str]:
    """Keys of records that were refused as no reviews, and are some by today's rules."""
    records = [*stored, *(one for _, one in page.refused)]
    kept, _, _ = screen_reviews(PageRead(page.row.title), records, main_text=main_text)
    others = {one.key for reason, one in page.refused if reason != Verdict.WRONG_PRODUCT}
    return others & {one.key for one in kept}
