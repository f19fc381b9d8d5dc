"""The products that pages are linked to, with the keyword sets that a page of theirs is matched by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple

from tasks.domain.product_match import Verdict
from tasks.store.content.page_links import Link
from tasks.store.queue.leases import LEAST_WORDS, KeywordSets
from tasks.store.sql.transaction import Transaction


class LinkedProduct(NamedTuple):
    """A page's link to a product, the product's name, and the keyword sets it is matched by."""

    link: Link
    name: str
    sets: KeywordSets


class _Linked(NamedTuple):
    """A link with the product's name and the words of its last round."""

    page_id: int
    product_id: int
    verdict: Verdict
    missing: str
    refused: int
    name: str
    keywords: list[str]
    aliases: list[list[str]]


class _Query(NamedTuple):
    """The keywords of a query that found a page for a product, and those that the product had in that round."""

    page_id: int
    product_id: int
    of_round: list[str]
    keywords: list[str]


def of_pages(
    tx: Transaction, page_ids: Collection[int], verdicts: Collection[Verdict] = tuple(Verdict)
) -> Mapping[int, list[LinkedProduct]]:
    """Return links of pages, by page, in the order of the products' numbers.

    Args:
        verdicts: only links with one of these.
    """
    rows = tx.records(_Linked, _LINKED, pages=page_ids, verdicts=verdicts)
    queries: dict[tuple[int, int], list[_Query]] = defaultdict(list)
    for query in tx.records(_Query, _QUERIES, pages={row.page_id for row in rows}):
        queries[query.page_id, query.product_id].append(query)
    found: dict[int, list[LinkedProduct]] = defaultdict(list)
    for row in rows:
        own = [
            query.keywords
            for query in queries[row.page_id, row.product_id]
            if len(query.keywords) >= LEAST_WORDS and query.of_round == row.keywords
        ]
        link = Link(row.page_id, row.product_id, row.verdict, tuple(row.missing.split()), row.refused)
        found[row.page_id].append(LinkedProduct(link, row.name, [row.keywords, *row.aliases, *own]))
    return found


_LINKED = """
    SELECT l.page_id, l.product_id, l.verdict, l.missing, l.refused, p.name, v.keywords, v.aliases
    FROM page_products l JOIN products p ON p.id = l.product_id
    JOIN virtual_tasks v ON v.product_id = l.product_id AND v.round = (
        SELECT max(round) FROM virtual_tasks WHERE product_id = l.product_id
    )
    WHERE l.page_id IN :pages AND l.verdict IN :verdicts
    ORDER BY l.page_id, l.product_id
"""
_QUERIES = """
    SELECT l.page_id, l.product_id, v.keywords AS of_round, q.keywords
    FROM page_products l JOIN pages p ON p.id = l.page_id
    JOIN tasks t ON t.product_id = l.product_id AND t.site = p.site
    JOIN virtual_tasks v ON v.id = t.virtual_task_id
    JOIN targets g ON g.task_id = t.id AND g.url_key = p.url_key
    JOIN subtasks s ON s.id = g.subtask_id
    JOIN task_parts q ON q.id = s.part_id
    WHERE l.page_id IN :pages
"""
