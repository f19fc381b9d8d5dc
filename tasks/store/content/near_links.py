"""Near products compete for the pages they are both linked to (`tasks.domain.near_products`): a page's other links say.

Whenever a stored page that is judged gets another link or another text, its links are settled in the same transaction,
so it does not matter for which product it was found first. Who loses is linked by `Verdict.NEAR_PRODUCT`; the reviews
stay stored, and the page is the loser's again where the winner's claim ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from sqlalchemy import select

from tasks.domain.near_products import may_compete
from tasks.domain.product_match import Verdict
from tasks.store.content import linked_products, page_links
from tasks.store.content.page_links import Link, judge_again, settled
from tasks.store.queue.result_pages import PagesToLink
from tasks.store.sql.statement_batch import DEFERRED
from tasks.store.sql.tables import page_products, pages
from tasks.store.sql.transaction import Transaction

_MATCHED = (Verdict.REVIEW, Verdict.NEAR_PRODUCT)


def link_known(conn: Transaction, now: datetime, pairs: PagesToLink) -> None:
    """Link stored pages to products (`page_links.link_known`) and settle the pages that are judged."""
    page_links.link_known(conn, now, pairs)
    settle(conn, {page.id for (page, _), sets in pairs.items() if sets is not None})


def settle(conn: Transaction, page_ids: Collection[int]) -> None:
    """Say again which of their near products stored pages are reviews of, by what is stored of them.

    Two transactions that link one page wait for each other here.
    """
    if not page_ids:
        return
    if conn.dialect.name != "sqlite":
        p = pages.c.id
        lock = select(p).where(p.in_(page_ids)).order_by(p).with_for_update(key_share=True)
        conn.execute(lock, execution_options=DEFERRED)
    link = page_products.c
    asked = select(link.page_id, link.verdict).where(link.page_id.in_(page_ids), link.verdict.in_(_MATCHED))
    verdicts: dict[int, list[str]] = defaultdict(list)
    for page_id, verdict in conn.execute(asked):
        verdicts[page_id].append(verdict)
    several = [page for page, of in verdicts.items() if len(of) > 1]
    alone = [page for page, of in verdicts.items() if of == [Verdict.NEAR_PRODUCT]]
    linked = linked_products.of_pages(conn, [*several, *alone], _MATCHED) if several or alone else {}
    rivals = [page for page, of in linked.items() if may_compete([one.sets for one in of])]
    texts = page_links.stored_texts(conn, rivals)
    changed: list[Link] = []
    for page_id, products in linked.items():
        before = [one.link for one in products]
        found = [replace(link, verdict=Verdict.REVIEW, refused=0) for link in before]
        if page_id in texts:
            found = settled(found, [one.sets for one in products], *texts[page_id])
        changed += [new for new, old in zip(found, before, strict=True) if new != old]
    judge_again(conn, changed)
