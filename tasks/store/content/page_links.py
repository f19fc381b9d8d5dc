"""Links of pages to products, each with a verdict: reviews of the product, of another product, or no review at all.

The verdict belongs to the link, since a page may be found for several products; a product's reviews are those of the
pages whose verdict for it is `REVIEW`. If a page is about none of the products it was found for so far, its reviews are
not stored (`pages.withheld` counts them), and the page is fetched again when it is found for another product. A page
that is stored with its reviews is judged by its stored text, the same it was judged by when it was fetched. Links are
rows with keys, written with the page, so a repeated write counts nothing twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, FromClause, Select, delete, func, select

from tasks.domain.near_products import outdone
from tasks.domain.product_match import Verdict, matchable_text, page_verdict
from tasks.store.queue.leases import KeywordSets
from tasks.store.queue.result_pages import KnownPage, PagesToLink
from tasks.store.sql.prepared import defer
from tasks.store.sql.tables import (
    page_products,
    page_refusals,
    pages,
    products,
    reviews,
)
from tasks.store.sql.transaction import Transaction

_OF_ANOTHER = (Verdict.WRONG_PRODUCT, Verdict.NEAR_PRODUCT)
_COLUMNS = ("page_id", "product_id", "verdict", "missing", "refused")


@dataclass(frozen=True, slots=True)
class Link:
    """A page's link to a product.

    Attributes:
        missing: keywords that the page lacks, of one that is about another product.
        refused: its reviews that are not this product's.
    """

    page_id: int
    product_id: int
    verdict: Verdict = Verdict.REVIEW
    missing: tuple[str, ...] = ()
    refused: int = 0


def judged(page_id: int, product_id: int, sets: KeywordSets, text: str | None, n_reviews: int) -> Link:
    """The link of a page to a product, with its verdict.

    Args:
        text: of the page (`tasks.domain.product_match.matchable_text`); None: pages of its site are not judged.
        n_reviews: reviews it has.
    """
    if text is None:
        return Link(page_id, product_id)
    verdict, missing = page_verdict(sets, text, n_reviews)
    return Link(page_id, product_id, verdict, missing, n_reviews if verdict is Verdict.WRONG_PRODUCT else 0)


def settled(
    links: Sequence[Link], sets: Sequence[KeywordSets], title: str, text: str, n_reviews: int
) -> list[Link]:
    """Links of one page, each as judged for itself, once its near products have competed for it.

    Args:
        sets: keyword sets of each product.
        title, text: of the page.
        n_reviews: reviews it has.
    """
    matched = [place for place, link in enumerate(links) if link.verdict is Verdict.REVIEW]
    lost = outdone([sets[place] for place in matched], text, title)
    losers = {place for place, is_lost in zip(matched, lost, strict=True) if is_lost and n_reviews}
    return [
        replace(link, verdict=Verdict.NEAR_PRODUCT, refused=n_reviews) if place in losers else link
        for place, link in enumerate(links)
    ]


def add(conn: Transaction, now: datetime, links: Iterable[Link], known: Iterable[KnownPage] = ()) -> None:
    """Insert links; those that exist stay as they are.

    Args:
        known: the pages of the links that were stored before this transaction.
    """
    times = {page.id: page.time_of(now) for page in known}
    shared = {"serial": next_serial(conn) if times else 0}
    rows = {(one.page_id, one.product_id): (*_row(one), times.get(one.page_id, now)) for one in links}
    columns = (*_COLUMNS, "linked_at")
    conn.insert("page_products", columns, [rows[key] for key in sorted(rows)], shared=shared, skip_known=True)


def judge_again(conn: Transaction, links: Sequence[Link]) -> None:
    """Update the links of pages that were fetched again."""
    if links:
        conn.later(_NUMBER_LINKS, serial=next_serial(conn), pages={link.page_id for link in links})
    conn.update(
        "page_products",
        ("page_id", "product_id"),
        [dict(zip(_COLUMNS, _row(one), strict=True)) for one in links],
    )


_NUMBER_LINKS = f"""
    UPDATE page_products SET serial = :serial WHERE page_id IN :pages AND verdict <> '{Verdict.REVIEW}'
"""


def next_serial(conn: Transaction) -> int:
    """Return a number for links of stored pages whose verdict becomes `REVIEW` now: none has a higher one."""
    newest: int = conn.value("SELECT coalesce(max(serial), 0) FROM page_products WHERE serial > 0")
    return max(newest + 1, serial_at(conn.now))


def serial_at(time: datetime) -> int:
    """Return the lowest number that `next_serial` gives at a time: microseconds since 1970."""
    return int(time.timestamp() * 1_000_000)


def _row(link: Link) -> tuple[Any, ...]:
    """Values in the order of `_COLUMNS`."""
    return link.page_id, link.product_id, link.verdict.value, " ".join(link.missing), link.refused


def link_known(conn: Transaction, now: datetime, pairs: PagesToLink) -> None:
    """Link pages that are stored to products they were not linked to, judged by what is stored of them.

    Args:
        pairs: (page, product), each with the keyword sets it is judged by; None: it is not judged.
    """
    texts = stored_texts(conn, {page.id for (page, _), sets in pairs.items() if sets is not None})
    add(
        conn,
        now,
        [
            judged(page.id, product_id, sets or (), *(texts[page.id][1:] if sets is not None else (None, 0)))
            for (page, product_id), sets in pairs.items()
        ],
        {page for page, _ in pairs},
    )


def stored_texts(conn: Transaction, page_ids: Collection[int]) -> dict[int, tuple[str, str, int]]:
    """Return the titles of stored pages, their matchable texts, and their numbers of reviews."""
    if not page_ids:
        return {}
    p, r = pages.c, reviews.c
    both = pages.outerjoin(reviews, r.page_id == p.id)
    asked = select(p.id, p.title, r.title, r.body).select_from(both).where(p.id.in_(page_ids)).order_by(r.id)
    found: dict[int, tuple[str, list[tuple[str, str]]]] = {}
    for page_id, page_title, title, body in conn.execute(asked):
        _, texts = found.setdefault(page_id, (page_title, []))
        if body is not None:
            texts.append((title, body))
    return {id_: (title, matchable_text(title, texts), len(texts)) for id_, (title, texts) in found.items()}


def save_refusals(conn: Transaction, of: Mapping[int, Mapping[str, int]], *, again: bool = False) -> None:
    """Store how many records of pages are no reviews, by page and reason; `again`: in place of earlier counts."""
    if again and of:
        defer(conn, delete(page_refusals).where(page_refusals.c.page_id.in_(list(of))))
    rows = [(page_id, reason, n) for page_id, counted in of.items() for reason, n in sorted(counted.items())]
    conn.insert("page_refusals", ("page_id", "reason", "n"), rows)


@dataclass(frozen=True, slots=True)
class RefusalCount:
    """How many records of a site's pages are no reviews of a product, for one reason.

    Attributes:
        reason: "wrong_product", "near_product", or one of `tasks.reading.relevance.RejectReason`.
        pages: how many have such records.
        n: records.
    """

    site: str
    product: str
    reason: str
    pages: int
    n: int


def refusal_counts(
    conn: Transaction, *, site: str | None = None, product_id: int | None = None
) -> list[RefusalCount]:
    """Refused records by site, product and reason; of all sites and products, or of one."""
    asked = [
        *([pages.c.site == site] if site is not None else []),
        *([products.c.id == product_id] if product_id is not None else []),
    ]
    of_product = page_products.join(pages).join(products)

    def counted(
        reason: Column[str], n: Column[int], of: FromClause, *where: ColumnElement[bool]
    ) -> Select[Any]:
        by = (pages.c.site, products.c.name, reason)
        counts = select(*by, func.count(), func.sum(n)).select_from(of)
        return counts.where(*where, *asked).group_by(*by)

    wrong = counted(
        page_products.c.verdict,
        page_products.c.refused,
        of_product,
        page_products.c.verdict.in_(_OF_ANOTHER),
    )
    refused = of_product.join(page_refusals, page_refusals.c.page_id == pages.c.id)
    none = counted(page_refusals.c.reason, page_refusals.c.n, refused)
    rows: list[Any] = [*conn.execute(wrong), *conn.execute(none)]
    return sorted(
        (
            RefusalCount(site, product, reason, int(n_pages), int(n))
            for site, product, reason, n_pages, n in rows
        ),
        key=lambda row: (row.site, row.product, row.reason),
    )


def refusals_by_reason(conn: Transaction) -> dict[str, int]:
    """Refused records of all stored pages by reason; those of another product count for each product of a page."""
    of_link = page_products.c
    wrong = conn.execute(
        select(of_link.verdict, func.sum(of_link.refused))
        .where(of_link.verdict.in_(_OF_ANOTHER))
        .group_by(of_link.verdict)
        .order_by(of_link.verdict.desc())
    )
    none = conn.execute(
        select(page_refusals.c.reason, func.sum(page_refusals.c.n)).group_by(page_refusals.c.reason)
    )
    counted = {reason: int(n) for reason, n in none}
    return {**{reason: int(n) for reason, n in wrong}, **dict(sorted(counted.items()))}
