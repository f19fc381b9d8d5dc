"""A small store that every page has something to show of, with what hostile pages would like to have run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from splitter.normalize import name_key
from tasks.domain.reasons import Reason, as_document, because
from tasks.domain.states import State
from tasks.store.content import counted_reviews
from tasks.store.queue import transitions
from tasks.store.sql import tables
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\u202egnp.exe"
PRODUCT, OTHER = "光明高钙牛奶", "特仑苏"
SHOP, SOURCE, VARIANT = "shop.example", "shop-export", "250ml × 12"
SITE, POOR = "12315.com", "t.163.com"
BEGIN = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
REVIEWS = 7
IMPORTED = 8
"""A review that no attempt collected, of the second product."""


def fill(store: Store) -> None:
    """Put the sample into an empty store."""
    with store.begin() as tx:
        _products(tx)
        _nodes(tx)
        _subtasks(tx)
        _pages(tx)
        _import(tx)
        _schedule(tx)
        counted_reviews.add_pages(tx, range(1, 100))


def _insert(tx: Transaction, table: Any, *rows: dict[str, Any]) -> None:
    for row in rows:
        tx.engine_connection.execute(table.insert().values(**row))


def _products(tx: Transaction) -> None:
    for number, name in enumerate((PRODUCT, OTHER), 1):
        _insert(
            tx,
            tables.products,
            {
                "id": number,
                "name": name,
                "name_key": name_key(name),
                "keywords": [],
                "aliases": [],
                "created_at": BEGIN,
            },
        )
        _insert(
            tx,
            tables.virtual_tasks,
            {"id": number, "product_id": number, "keywords": ["光明", "牛奶"], "aliases": [], "created_at": BEGIN,
             "planned_at": BEGIN},
        )  # fmt: skip
        for place, site in enumerate((SITE, POOR)):
            _insert(
                tx,
                tables.tasks,
                {"id": 2 * number - 1 + place, "virtual_task_id": number, "product_id": number, "site": site,
                 "engine": "baidu", "kind": "meta", "found": 20, "found_provenance": "reported", "created_at": BEGIN},
            )  # fmt: skip


def _nodes(tx: Transaction) -> None:
    for name in ("node1", "node2"):
        _insert(
            tx,
            tables.nodes,
            {"name": name, "kinds": ["meta"], "slots": 4, "registered_at": BEGIN, "seen_at": BEGIN},
        )
    sums = {"failed": 0, "silent": 0, "tried": 20, "active_s": 8.0, "faded_at": BEGIN}
    for site, node, offered, collected in (
        (SITE, "node1", 20, 19),
        (SITE, "node2", 20, 4),
        (POOR, "node1", 20, 18),
    ):
        _insert(
            tx,
            tables.pair_stats,
            {"site": site, "node": node, "attempts": 4, "offered": offered, "collected": collected, **sums},
        )
    _insert(
        tx,
        tables.host_rests,
        {
            "host": SITE,
            "node": "node2",
            "cause": "captcha",
            "until": BEGIN + timedelta(days=3650),
            "times": 3,
        },
    )


def _subtasks(tx: Transaction) -> None:
    states = ("DONE", "WAIT", "MANUAL", "MANUAL", "PRIORITY")
    for state in states:
        transitions.count_moves(tx, None, State(state), 1)
    for number, state in enumerate(states, 1):
        at = BEGIN + timedelta(minutes=number)
        failed = state == "MANUAL"
        site = SITE if number != 4 else POOR
        _insert(
            tx,
            tables.subtasks,
            {"id": number, "task_id": 1 if site == SITE else 2, "product_id": 1, "site": site, "kind": "meta",
             "chunk": 1, "state": state, "failed_on": ["node2"] if failed else [], "created_at": at, "changed_at": at,
             "attempts": int(state in ("DONE", "MANUAL")), "reason": "blocked" if failed else None},
        )  # fmt: skip
        _insert(
            tx,
            tables.targets,
            {"task_id": 1 if site == SITE else 2, "subtask_id": number, "kind": "hit", "state": "todo",
             "url": f"http://{SITE}/{number}?q={HOSTILE}", "url_key": bytes([number] * 16)},
        )  # fmt: skip
        _event(tx, at, number, "create", None, "PRIORITY")
        if state in ("DONE", "MANUAL"):
            _attempt(tx, at, number, site, failed)
        if state == "WAIT":
            _event(tx, at, number, "admit", "PRIORITY", "WAIT")


def _event(
    tx: Transaction, at: datetime, subtask: int, transition: str, begin: str | None, end: str, **more: Any
) -> None:
    _insert(
        tx,
        tables.events,
        {
            "at": at,
            "subtask_id": subtask,
            "transition": transition,
            "from_state": begin,
            "to_state": end,
            **more,
        },
    )


def _attempt(tx: Transaction, at: datetime, subtask: int, site: str, failed: bool) -> None:
    node = "node2" if failed else "node1"
    _insert(
        tx,
        tables.attempts,
        {"id": subtask, "subtask_id": subtask, "product_id": 1, "no": 1, "round": 1, "site": site, "node": node,
         "token": f"t{subtask}", "quota": 10, "budget_s": 60.0, "allocated_at": at, "started_at": at, "ended_at": at,
         "outcome": "failed" if failed else "succeeded", "reason": "blocked" if failed else None, "offered": 10,
         "tried": 10, "collected": 0 if failed else 10, "active_s": 4.0, "requests": 12,
         "errors": {"captcha": 2} if failed else {},
         "last_response": {"url": f"http://{site}/?{HOSTILE}", "error": "captcha", "status": 403, "detail": HOSTILE,
                           "head": f"<html>{HOSTILE}"} if failed else None},
    )  # fmt: skip
    candidates = [
        {
            "node": node,
            "eligible": True,
            "why": HOSTILE,
            "completion": 0.9,
            "efficiency_s": 0.4,
            "attempts": 4.0,
            "score": 2.1,
        }
    ]
    detail = {
        "strategy": "feedback", "candidates": candidates, "forgiven": None,
        "modification": {"quota": 10, "budget_s": 60.0, "because": as_document(because(Reason.SITE_DEFAULTS))},
    }  # fmt: skip
    _event(tx, at, subtask, "admit", "PRIORITY", "WAIT")
    _event(tx, at, subtask, "allocate", "WAIT", "CRAWL", node=node, attempt_id=subtask, detail=detail)
    if failed:
        _event(tx, at, subtask, "fail", "CRAWL", "FAILED", node=node, reason="blocked")
        told = {"because": as_document(because(Reason.OTHER, text=f"blocked: {HOSTILE}"))}
        _event(tx, at, subtask, "give_up", "FAILED", "MANUAL", reason="blocked", detail=told)
    else:
        _event(tx, at, subtask, "succeed", "CRAWL", "SLEEP", node=node)
        _event(tx, at, subtask, "wake", "SLEEP", "DONE")


def _pages(tx: Transaction) -> None:
    for number in range(1, REVIEWS + 1):
        at = BEGIN + timedelta(days=number)
        of_page = {"site": SITE, "node": "node1", "attempt_id": 1}
        voice = {"voice": "praise" if number == 5 else "complaint", "voice_probability": 0.87, "buyer": 0.9,
                 "sentiment": -0.5, "voice_model": "m"}  # fmt: skip
        url = f"http://{SITE}/{number}" if number != 2 else "javascript:document.title='owned'"
        _insert(
            tx,
            tables.pages,
            {"id": number, "url": url, "url_key": bytes([number] * 16), "title": HOSTILE, "content_hash": "h",
             "encoding": "utf-8", "bytes": 1000, "reviews": 1, "fetched_at": at, "confidence": 0.43, **of_page},
        )  # fmt: skip
        _insert(tx, tables.page_products, {"page_id": number, "product_id": 1, "linked_at": at})
        _insert(
            tx,
            tables.reviews,
            {"id": number, "page_id": number, "key": "#0", "title": HOSTILE if number == 1 else "变质的牛奶",
             "body": f"第{number}次买的牛奶变质了，客服不理。{HOSTILE if number == 1 else ''}", "author": HOSTILE,
             "date_text": "2026-03-01", "published_at": at, "day": at.date(),
             "has_clock": True, "url": url, "text_hash": bytes([number] * 16),
             "collected_at": at, **voice, **of_page},
        )  # fmt: skip
    _insert(tx, tables.review_links, {"review_id": 7, "original_id": 6, "similarity": 0.93})


def _import(tx: Transaction) -> None:
    at = BEGIN + timedelta(days=IMPORTED)
    of_page = {"site": SHOP, "node": "", "attempt_id": None, "url": ""}
    _insert(
        tx,
        tables.pages,
        {"id": IMPORTED, "url_key": bytes([IMPORTED] * 16), "title": "", "content_hash": "", "encoding": "",
         "reviews": 1, "fetched_at": at, "source": SOURCE, **of_page},
    )  # fmt: skip
    _insert(tx, tables.page_products, {"page_id": IMPORTED, "product_id": 2, "linked_at": at})
    _insert(
        tx,
        tables.reviews,
        {"id": IMPORTED, "page_id": IMPORTED, "key": "k", "title": "", "body": "包装破了", "author": "", "rating": 2.0,
         "variant": VARIANT, "date_text": "", "text_hash": bytes([IMPORTED] * 16), "collected_at": at, **of_page},
    )  # fmt: skip


def _schedule(tx: Transaction) -> None:
    """A report whose receiver answered with what a page would like to have run."""
    to = {"to": "https://hooks.example.cn/T0KEN", "format": "html"}
    row = {"what": "report", "cron": "0 8 * * 1", "zone": "Asia/Shanghai", "options": to, "problem": HOSTILE}
    _insert(tx, tables.schedules, {**row, "next_at": BEGIN + timedelta(days=3650)})
