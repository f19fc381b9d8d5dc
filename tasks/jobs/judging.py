"""Judge stored pages: the voice of each review, and if a page is about the products it was found for.

`judge` judges all pages batch by batch, in the order of their numbers, with a mark in the store: if it is interrupted,
the next one continues there. `judge_links` is the sweep that judges the pages that have a link without a verdict.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar

from splitter.catalog.model import Catalog
from splitter.catalog.names import Group

from tasks.domain.pages import PageRead, Review
from tasks.domain.verdicts import Verdict
from tasks.reading.judge.product_match import matchable_text
from tasks.reading.judge.verdicts import judge_for_products
from tasks.reading.relevance import screen_reviews
from tasks.store.content import links
from tasks.store.content.links import JudgedPage, Link, StoredPage, StoredRecord
from tasks.store.queue.upkeep import get_mark, set_mark
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import Operation

log = logging.getLogger("reviewloop.judging")

BATCH = 50
"""Number of pages in one transaction."""
MOST_CHANGES = 1000
"""Maximum number of listed changes of verdicts; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A changed verdict on a page for a product.

    Attributes:
        missing: words of the product that the page lacks.
        reviews: number of reviews on the page.
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
        to_do: number of pages at the beginning.
        pages, reviews: number of judged pages and reviews.
        voices: number of reviews by (voice before, voice now); `None` stands for no judgement.
        taken_in: number of refused records that are stored as reviews now.
        left_out, taken_back: number of (review, product) whose page is no longer, or is again, about the product.
        changes: the first `MOST_CHANGES` changes of verdicts.
        of_unknown_sites: number of pages that keep their verdicts because their sites are not in the catalog.
    """

    to_do: int = 0
    pages: int = 0
    reviews: int = 0
    voices: Counter[tuple[str | None, str | None]] = field(default_factory=Counter)
    taken_in: int = 0
    left_out: int = 0
    taken_back: int = 0
    changes: list[Change] = field(default_factory=list)
    of_unknown_sites: int = 0

    def add(self, one: JudgedPage) -> None:
        """Count a page."""
        before = {record.id: record.voice for record in _list_reviews(one.page)}
        self.pages += 1
        self.reviews += len(before)
        self.taken_in += len(one.taken_in)
        self.of_unknown_sites += not one.site_known
        for number, voice in one.voices:
            self.voices[before[number], voice.voice] += 1
        names = {at.link.product_id: (at.name, at.link.verdict) for at in one.page.links}
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
                    missing=tuple(link.missing.split()), reviews=n,
                )  # fmt: skip
                self.changes.append(told)


class PageCounter(Protocol):
    """Counts pages during a pass; `to_do` is the number of pages at its beginning."""

    to_do: int

    def add(self, one: JudgedPage) -> None:
        """Count a page."""


Counted = TypeVar("Counted", bound=PageCounter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A pass through stored pages.

    Attributes:
        mark: name of the mark in the store, at most 40 characters.
        product_id: only pages found for this product.
        again: True to remove the mark at the end, so that the next pass begins at the first page.
        dry_run: True to store nothing, not even the mark.
    """

    mark: str
    product_id: int | None = None
    again: bool = False
    dry_run: bool = False


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
        sweep, product_id, again, dry_run: see `Pass`; `sweep` is its mark.
        progress: see `go_through`.
    """
    one = Pass(mark=sweep, product_id=product_id, again=again, dry_run=dry_run)
    return go_through(store, of_page, one, Judged(), progress)


def go_through(
    store: Store,
    of_page: Callable[[StoredPage], JudgedPage],
    one: Pass,
    done: Counted,
    progress: Callable[[Counted], None],
) -> Counted:
    """Go through stored pages batch by batch, in the order of their numbers, until there are no more.

    Args:
        of_page: returns the changes of a page that will be stored.
        done: counts the pages.
        progress: called after each batch; an error that it raises ends the pass, and the next one goes on there.
    """
    with store.read() as tx:
        after = get_mark(tx, one.mark)
        done.to_do = links.count_after(tx, after, one.product_id)
    while True:
        with store.read() as tx:
            batch = links.list_after(tx, after, one.product_id, BATCH)
        found = [of_page(page) for page in batch]
        after = batch[-1].row.id if batch else 0
        if not one.dry_run and (batch or one.again):
            with store.begin() as tx:
                links.save(tx, found)
                set_mark(tx, one.mark, after)
        for page in found:
            done.add(page)
        if not batch:
            return done
        progress(done)


def judge_links(
    store: Store,
    write: Callable[[Operation[None]], None],
    of_page: Callable[[StoredPage], JudgedPage],
    goes_on: Callable[[], bool],
) -> None:
    """Judge each page that has a link without a verdict. The next sweep judges links that come meanwhile.

    Args:
        write: runs an operation in a transaction and waits until it is committed.
        of_page: judges one (`link_judge`).
    """
    after = 0
    while goes_on():
        with store.read() as tx:
            batch = links.list_unjudged(tx, after, BATCH)
        if not batch:
            return
        after = batch[-1].row.id
        write(partial(_save, [of_page(page) for page in batch]))


def _save(found: Sequence[JudgedPage], tx: Transaction) -> None:
    links.save(tx, found)


JudgeReviews = Callable[[Sequence[Review], Group | None, str | None], Sequence[Review]]
"""Adds voices and themes to reviews on a kind of site, of a product of this category."""


def page_judge(
    catalog: Catalog, judge_reviews: JudgeReviews, model: str, *, again: bool
) -> Callable[[StoredPage], JudgedPage]:
    """Return the judge of a page by its site's rules, as when it was read.

    Args:
        model: id of the model of voices and themes.
        again: also the reviews that this model has judged.
    """

    def judge_page(page: StoredPage) -> JudgedPage:
        group = _group(catalog, page)
        found = _judge_links_of(catalog, page)
        category = _category(page, found)
        due = [one for one in _list_reviews(page) if again or one.voice_model != model]
        now = judge_reviews([one.review for one in due], group, category)
        changed = [(one.id, review) for one, review in zip(due, now, strict=True)]
        taken_in = judge_reviews([one for _, one in found.taken_in], group, category)
        return replace(
            found,
            voices=[(number, review.voice) for number, review in changed if review.voice is not None],
            themes=[(number, review.themes) for number, review in changed],
            taken_in=[(number, one) for (number, _), one in zip(found.taken_in, taken_in, strict=True)],
        )

    return judge_page


def link_judge(catalog: Catalog, judge_reviews: JudgeReviews) -> Callable[[StoredPage], JudgedPage]:
    """Return the judge of a page for its products, which leaves the voices that its reviews have.

    If a page raises an error, that is logged, and none of its new products gets its reviews: other pages go on, and a
    run that waits for its last link ends.
    """

    def judge_page(page: StoredPage) -> JudgedPage:
        try:
            found, group = _judge_links_of(catalog, page), _group(catalog, page)
            category = _category(page, found)
            taken_in = [
                (number, one if one.voice is not None else judge_reviews([one], group, category)[0])
                for number, one in found.taken_in
            ]
        except Exception:
            log.exception(
                "page %d (%s) can't be judged: its new products get none of its reviews",
                page.row.id,
                page.row.url,
            )
            has_reviews = any(one.refused in (None, Verdict.WRONG_PRODUCT) for one in page.records)
            verdict = Verdict.WRONG_PRODUCT if has_reviews else Verdict.NO_REVIEW
            return JudgedPage(page=page, links=_decide_open_links(page, verdict))
        return replace(found, taken_in=taken_in)

    return judge_page


def _category(page: StoredPage, found: JudgedPage) -> str | None:
    """Return the category of the first product that a page is about, otherwise of the first it was found for."""
    verdicts = {one.link.product_id: one.link.verdict for one in page.links}
    verdicts |= {link.product_id: link.verdict for link in found.links}
    about = [one for one in page.links if verdicts[one.link.product_id] is Verdict.REVIEW]
    return next((one.category for one in (*about, *page.links)), None)


def _group(catalog: Catalog, page: StoredPage) -> Group | None:
    site = catalog.sites.get(page.row.site)
    return site.group if site is not None else None


def _judge_links_of(catalog: Catalog, page: StoredPage) -> JudgedPage:
    """Judge a page for its products, and find which of its refused records are reviews; without voices."""
    site = catalog.sites.get(page.row.site)
    if page.row.source is None and site is not None and site.judge:
        return _verdicts(page, main_text=catalog.rules_of(page.row.site).main_text)
    # A page that is not judged counts as about the products that it was found for.
    decided = _decide_open_links(page, Verdict.REVIEW)
    return JudgedPage(
        page=page,
        links=decided,
        taken_in=_list_wrong_product(page) if decided else (),
        site_known=page.row.source is not None or site is not None,
    )


def _decide_open_links(page: StoredPage, verdict: Verdict) -> list[Link]:
    """Return a page's links without a verdict, with this one."""
    return [one.link._replace(verdict=verdict) for one in page.links if one.link.verdict is Verdict.UNJUDGED]


def _list_wrong_product(page: StoredPage) -> list[tuple[int, Review]]:
    """Return a page's reviews that were refused because it is about no product that it was found for."""
    return [(one.id, one.review) for one in page.records if one.refused == Verdict.WRONG_PRODUCT]


def _list_reviews(page: StoredPage) -> list[StoredRecord]:
    return [one for one in page.records if one.refused is None]


def _verdicts(page: StoredPage, *, main_text: bool) -> JudgedPage:
    rescued = _find_reviews(page, main_text=main_text)
    come = sorted([*rescued, *_list_wrong_product(page)])
    reviews = _list_reviews(page)
    texts = [*((one.title, one.body) for one in reviews), *((one.title, one.body) for _, one in come)]
    live = [(one.link, one.sets) for one in page.links if one.link.verdict is not Verdict.REMOVED]
    if not texts:
        return JudgedPage(page=page, links=_decide_open_links(page, Verdict.NO_REVIEW))
    text = matchable_text(page.row.title, texts)
    found = judge_for_products([sets for _, sets in live], page.row.title, text)
    judged = [
        Link(old.page_id, old.product_id, verdict, " ".join(missing))
        for (old, _), (verdict, missing) in zip(live, found, strict=True)
    ]
    changed = [new for new, (old, _) in zip(judged, live, strict=True) if new != old]
    if reviews or any(link.verdict is Verdict.REVIEW for link in judged):
        return JudgedPage(page=page, links=changed, taken_in=come)
    return JudgedPage(page=page, links=changed, of_others=[number for number, _ in rescued])


def _find_reviews(page: StoredPage, *, main_text: bool) -> list[tuple[int, Review]]:
    """Return records that were refused as no reviews, and are some by today's rules."""
    records = [one.review for one in page.records]
    kept, _, _ = screen_reviews(PageRead(page.row.title), records, main_text=main_text)
    keys = {one.key for one in kept}
    return [
        (one.id, one.review)
        for one in page.records
        if one.refused not in (None, Verdict.WRONG_PRODUCT) and one.key in keys
    ]
