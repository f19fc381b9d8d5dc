"""The products that pages are linked to, with the keyword sets that a page of theirs is matched by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple

from sqlalchemy import select

from tasks.domain.product_match import Verdict
from tasks.store.content.page_links import Link
from tasks.store.queue.tasks import LEAST_WORDS, KeywordSets
from tasks.store.sql.tables import (
    page_products,
    pages,
    products,
    subtasks,
    targets,
    task_parts,
    tasks,
    virtual_tasks,
)
from tasks.store.sql.transaction import Transaction


class LinkedProduct(NamedTuple):
    """A page's link to a product, the product's name, and the keyword sets it is matched by."""

    link: Link
    name: str
    sets: KeywordSets


def of_pages(
    conn: Transaction, page_ids: Collection[int], verdicts: Collection[Verdict] = ()
) -> Mapping[int, list[LinkedProduct]]:
    """Links of pages, by page, in the order of the products' numbers.

    Args:
        verdicts: only links with one of these; without any, all.
    """
    link = page_products.c
    asked = select(page_products, products.c.name).join(products, products.c.id == link.product_id)
    if verdicts:
        asked = asked.where(link.verdict.in_(verdicts))
    rows = conn.execute(asked.where(link.page_id.in_(page_ids)).order_by(link.page_id, link.product_id)).all()
    wanted = _wanted(conn, {row.product_id for row in rows})
    own = _own_words(conn, {row.page_id for row in rows}, wanted)
    found: dict[int, list[LinkedProduct]] = defaultdict(list)
    for row in rows:
        keywords, aliases = wanted[row.product_id]
        one = Link(row.page_id, row.product_id, Verdict(row.verdict), tuple(row.missing.split()), row.refused)
        sets = [keywords, *aliases, *own[row.page_id, row.product_id]]
        found[row.page_id].append(LinkedProduct(one, row.name, sets))
    return found


def _wanted(conn: Transaction, product_ids: set[int]) -> dict[int, tuple[list[str], list[list[str]]]]:
    """Keywords and keywords of the aliases of products, as of their last round."""
    v = virtual_tasks.c
    asked = select(v.product_id, v.keywords, v.aliases).where(v.product_id.in_(product_ids)).order_by(v.round)
    return {row.product_id: (row.keywords, row.aliases) for row in conn.execute(asked)}


def _own_words(
    conn: Transaction, page_ids: Collection[int], wanted: Mapping[int, tuple[list[str], list[list[str]]]]
) -> Mapping[tuple[int, int], list[list[str]]]:
    """Keywords of the queries that found a page for a product, while that had the words it has now."""
    rows = conn.execute(
        select(
            page_products.c.page_id,
            page_products.c.product_id,
            virtual_tasks.c.keywords,
            task_parts.c.keywords,
        )
        .join(pages, pages.c.id == page_products.c.page_id)
        .join(tasks, (tasks.c.product_id == page_products.c.product_id) & (tasks.c.site == pages.c.site))
        .join(virtual_tasks, virtual_tasks.c.id == tasks.c.virtual_task_id)
        .join(targets, (targets.c.task_id == tasks.c.id) & (targets.c.url_key == pages.c.url_key))
        .join(subtasks, subtasks.c.id == targets.c.subtask_id)
        .join(task_parts, task_parts.c.id == subtasks.c.part_id)
        .where(page_products.c.page_id.in_(page_ids))
    )
    found: dict[tuple[int, int], list[list[str]]] = defaultdict(list)
    for page_id, product_id, of_round, own in rows:
        if product_id in wanted and len(own) >= LEAST_WORDS and of_round == wanted[product_id][0]:
            found[page_id, product_id].append(own)
    return found
