"""Stored pages to be judged anew, with all that it takes; and what was found (`tasks.jobs.judging`), stored.

Nothing is deleted: a page that turns out to be about another product keeps its reviews, marked by its link, and the
records that were refused before become reviews where they are some.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, func, select, update

from tasks.domain.pages import Review
from tasks.domain.product_match import Verdict
from tasks.domain.voices import VoiceJudgement
from tasks.store import page_links, refused
from tasks.store.page_links import KeywordSets, Link
from tasks.store.prepared import update_each
from tasks.store.refused import Refused
from tasks.store.reviews import insert_reviews, review_values
from tasks.store.tables import (
    page_products,
    page_refusals,
    pages,
    products,
    reviews,
    subtasks,
    targets,
    task_parts,
    tasks,
    virtual_tasks,
)

_LEAST_WORDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPage:
    """A page as it is stored.

    Attributes:
        row: of `pages`.
        links: with the products' names, and the keyword sets each is matched by.
        reviews: each with its number and the voice it has; without a voice where none was judged.
        refused: its records that are no reviews of it, as far as they are still there.
    """

    row: Any
    links: Sequence[tuple[Link, str, KeywordSets]]
    reviews: Sequence[tuple[int, Review]]
    refused: Sequence[Refused]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPage:
    """The new judgement of a page, to be stored.

    Attributes:
        voices: of reviews, by number.
        links: that changed.
        taken_in: refused records that are reviews now.
        refused: what stays refused.
        site_known: its site is in the catalog.
    """

    page: StoredPage
    voices: Sequence[tuple[int, VoiceJudgement]] = ()
    links: Sequence[Link] = ()
    taken_in: Sequence[Review] = ()
    refused: Sequence[Refused] = ()
    site_known: bool = True


def count_after(conn: Connection, after: int, product_id: int | None) -> int:
    """How many pages there are behind this number."""
    return int(conn.execute(_asked(select(func.count(pages.c.id)), after, product_id)).scalar_one())


def following(conn: Connection, after: int, product_id: int | None, most: int) -> list[StoredPage]:
    """The next pages behind this number; of all products, or of one."""
    asked = _asked(select(pages), after, product_id).order_by(pages.c.id).limit(most)
    rows = {row.id: row for row in conn.execute(asked)}
    links, kept, others = _links(conn, list(rows)), _reviews(conn, list(rows)), refused.of_pages(conn, rows)
    return [
        StoredPage(row=row, links=links[of], reviews=kept[of], refused=others.get(of, ()))
        for of, row in rows.items()
    ]


def _asked(statement: Any, after: int, product_id: int | None) -> Any:
    if product_id is not None:
        statement = statement.join(page_products, page_products.c.page_id == pages.c.id)
        statement = statement.where(page_products.c.product_id == product_id)
    return statement.where(pages.c.id > after)


def _links(conn: Connection, page_ids: Sequence[int]) -> Mapping[int, list[tuple[Link, str, KeywordSets]]]:
    link = page_products.c
    rows = conn.execute(
        select(page_products, products.c.name)
        .join(products, products.c.id == link.product_id)
        .where(link.page_id.in_(page_ids))
        .order_by(link.page_id, link.product_id)
    ).all()
    wanted = _wanted(conn, {row.product_id for row in rows})
    own = _own_words(conn, page_ids, wanted)
    found: dict[int, list[tuple[Link, str, KeywordSets]]] = defaultdict(list)
    for row in rows:
        keywords, aliases = wanted[row.product_id]
        one = Link(row.page_id, row.product_id, Verdict(row.verdict), tuple(row.missing.split()), row.refused)
        found[row.page_id].append((one, row.name, [keywords, *aliases, *own[row.page_id, row.product_id]]))
    return found


def _wanted(conn: Connection, product_ids: set[int]) -> dict[int, tuple[list[str], list[list[str]]]]:
    """Keywords and keywords of the aliases of products, as of their last round."""
    v = virtual_tasks.c
    asked = select(v.product_id, v.keywords, v.aliases).where(v.product_id.in_(product_ids)).order_by(v.round)
    return {row.product_id: (row.keywords, row.aliases) for row in conn.execute(asked)}


def _own_words(
    conn: Connection, page_ids: Sequence[int], wanted: Mapping[int, tuple[list[str], list[list[str]]]]
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
        if len(own) >= _LEAST_WORDS and of_round == wanted[product_id][0]:
            found[page_id, product_id].append(own)
    return found


def _reviews(conn: Connection, page_ids: Sequence[int]) -> Mapping[int, list[tuple[int, Review]]]:
    r = reviews.c
    texts = (r.key, r.title, r.body, r.author, r.date_text, r.published_at, r.rating, r.variant)
    voice = (r.voice, r.voice_probability, r.buyer, r.sentiment, r.voice_model)
    asked = select(r.page_id, r.id, *texts, *voice).where(r.page_id.in_(page_ids)).order_by(r.id)
    found: dict[int, list[tuple[int, Review]]] = defaultdict(list)
    for page_id, number, *values in conn.execute(asked):
        told, judged = values[: len(texts)], values[len(texts) :]
        of = VoiceJudgement(*judged) if judged[0] is not None else None
        found[page_id].append((number, Review._make([*told, of])))
    return found


def save(conn: Connection, now: datetime, judged: Sequence[JudgedPage]) -> None:
    """Store what was found of pages. One that has changed since it was read is left as it is: it was judged then."""
    p = pages.c
    asked = select(pages).where(p.id.in_([one.page.row.id for one in judged])).order_by(p.id)
    same = {row.id: row for row in conn.execute(asked.with_for_update(key_share=True))}
    found = [one for one in judged if same[one.page.row.id] == one.page.row]
    voices = [
        dict(zip(_VOICE, (number, *voice), strict=True)) for one in found for number, voice in one.voices
    ]
    update_each(conn, reviews, ("id",), voices)
    page_links.judge_again(conn, [link for one in found for link in one.links])
    for one in found:
        if one.taken_in or one.refused != one.page.refused:
            _take_in(conn, now, one)


_VOICE = ("id", "voice", "voice_probability", "buyer", "sentiment", "voice_model")


def _take_in(conn: Connection, now: datetime, one: JudgedPage) -> None:
    row = one.page.row
    rows = review_values(conn, now, row.id, row.url, row.site, (row.node, row.attempt_id), one.taken_in)
    insert_reviews(conn, rows)
    refused.save(conn, now, {row.id: one.refused}, again=True)
    fewer = Counter(reason for reason, _ in one.page.refused) - Counter(reason for reason, _ in one.refused)
    of = page_refusals.c
    for reason, n in fewer.items():
        its = (of.page_id == row.id, of.reason == reason)
        conn.execute(delete(page_refusals).where(*its, of.n <= n))
        conn.execute(update(page_refusals).where(*its).values(n=of.n - n))
    withheld = 0 if one.taken_in else row.withheld + fewer.total()
    values = {"reviews": row.reviews + len(one.taken_in), "withheld": withheld, "checked_at": now}
    conn.execute(update(pages).where(pages.c.id == row.id).values(values))
