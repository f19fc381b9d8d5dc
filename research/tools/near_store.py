"""Near products through the store: every text a stored page, found for every near product, in a random order.

Links are made and settled as when a crawl finds a page that is stored (`tasks.store.page_links.link_known`,
`tasks.store.near_links.settle`); what a product keeps is what an export of it holds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from sqlalchemy import Connection, insert

from research.tools.near_products import NearTexts
from splitter.catalog.load import builtin
from splitter.query import KeywordSet
from tasks.domain.pages import Review
from tasks.domain.voices import VoiceJudgement
from tasks.jobs.judging import judge, page_judge
from tasks.store import near_links, page_links
from tasks.store.database import Store
from tasks.store.known_pages import known_pages
from tasks.store.reviews import insert_reviews, review_rows, review_values
from tasks.store.tables import metadata, pages, products, virtual_tasks

_NOW = datetime(2024, 1, 1, tzinfo=UTC)
_AT_ONCE = 500
_SITE = "12365auto.com"


def kept_by_the_store(
    groups: Sequence[NearTexts], sets: Callable[[str], Sequence[KeywordSet]], seed: int = 7
) -> tuple[Callable[[str, str], bool], int]:
    """Whether a name keeps a text, as the store has it in the end, and how many verdicts judging anew changed.

    Args:
        sets: keyword sets of a name.
        seed: of the order in which pages are found for products.
    """
    names = {
        name: number for number, name in enumerate(dict.fromkeys(n for of in groups for n in of.names), 1)
    }
    texts = {
        text: number for number, text in enumerate(dict.fromkeys(t for of in groups for t, _ in of.texts), 1)
    }
    found = [(texts[text], name) for of in groups for text, _ in of.texts for name in of.names]
    Random(seed).shuffle(found)
    with TemporaryDirectory() as folder:
        store = Store.open(f"sqlite:///{Path(folder) / 'near.db'}")
        with store.begin() as conn:
            metadata.create_all(conn)
            _fill(conn, {name: [list(words) for words in sets(name)] for name in names}, texts)
        for at in range(0, len(found), _AT_ONCE):
            with store.begin() as conn:
                _find(conn, found[at : at + _AT_ONCE], names, sets)
        with store.read() as conn:
            kept = {(row.product, row.body) for row in review_rows(conn)}
        of_page = page_judge(builtin("today"), _nobody, "none", again=False)
        changed = judge(store, of_page, "near", lambda _: None, dry_run=True)
        store.close()
    return lambda name, text: (name, text) in kept, changed.left_out + changed.taken_back


def _nobody(_: Review) -> VoiceJudgement:
    return VoiceJudgement("other", 1.0, 0.0, 0.0, "none")


def _fill(conn: Connection, of: dict[str, list[list[str]]], texts: dict[str, int]) -> None:
    """Products with their words, and a page with one review for each text."""
    for number, (name, (words, *aliases)) in enumerate(of.items(), 1):
        conn.execute(insert(products).values(id=number, name=name, keywords=[], aliases=[], created_at=_NOW))
        wanted = {"product_id": number, "keywords": words, "aliases": aliases, "created_at": _NOW}
        conn.execute(insert(virtual_tasks).values(**wanted))
    rows = [
        {
            "id": number, "url": f"http://{_SITE}/{number}", "url_key": _key(number), "site": _SITE,
            "content_hash": "", "encoding": "", "reviews": 1, "fetched_at": _NOW, "node": "node1",
        }
        for number in texts.values()
    ]  # fmt: skip
    conn.execute(insert(pages), rows)
    for text, number in texts.items():
        review = Review("#0", "", text, "", "", None, None)
        url = f"http://{_SITE}/{number}"
        insert_reviews(conn, review_values(conn, _NOW, number, url, _SITE, ("node1", None), [review]))


def _find(
    conn: Connection,
    some: Sequence[tuple[int, str]],
    names: dict[str, int],
    sets: Callable[[str], Sequence[KeywordSet]],
) -> None:
    """Pages are found for products."""
    there = known_pages(conn, [_key(page) for page, _ in some])
    of: dict[int, list[str]] = defaultdict(list)
    for page, name in some:
        of[page].append(name)
    linked = {(there[_key(page)], names[name]): sets(name) for page, its in of.items() for name in its}
    page_links.link_known(conn, _NOW, linked)
    near_links.settle(conn, set(of))


def _key(page: int) -> bytes:
    return blake2b(str(page).encode(), digest_size=16).digest()
