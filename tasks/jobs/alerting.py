"""The sweep `alerts`: find present alerts, and send messages about them. It sends outside of transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

from tasks.domain.breaker import Breaker
from tasks.domain.states import State
from tasks.scheduling.alerting import (
    GONE,
    LATELY,
    AlertFacts,
    AlertRules,
    Completion,
    Refusal,
    RisingTheme,
    alerts_on,
)
from tasks.store.queries import pairs, queues, themes
from tasks.store.queue import hosts, nodes, notices, transitions
from tasks.store.queue.notices import AlertRow
from tasks.store.sql.database import try_lock
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import Operation

_LOCK_S = 2.0


@dataclass(frozen=True, slots=True)
class SendOutcome:
    """The outcome of a message.

    Attributes:
        told: True if a receiver got it.
        trouble: the receivers that did not get it, with the reasons.
    """

    told: bool
    trouble: str = ""


SendAlerts = Callable[[Sequence[AlertRow], datetime], SendOutcome]
"""Function that sends one message about new and ended alerts within a bounded time."""


class Alerting:
    """The sweep. It remembers when this process began to look.

    Args:
        engines: names of engines by host.
    """

    def __init__(self, rules: AlertRules, engines: Mapping[str, str], tell: SendAlerts) -> None:
        self._rules = rules
        self._engines = engines
        self._tell = tell
        self._looking_since: datetime | None = None

    def look(self, write: Callable[[Operation[Any]], Any]) -> None:
        """Look once, and send messages about changes: one when an alert begins, and one when it ends.

        Args:
            write: runs an operation in a transaction and waits until it is committed (not on an event loop).
        """
        rows, now = write(self._claim)
        if rows:
            write(partial(_note, rows, self._tell(rows, now)))

    def _claim(self, tx: Transaction) -> tuple[list[AlertRow], datetime]:
        self._looking_since = self._looking_since or tx.now
        if not try_lock(tx, "alerts", _LOCK_S):
            return [], tx.now  # another scheduler looks
        before = {one.key: one for one in notices.list_open_alerts(tx)}
        facts = find_facts(tx, self._rules, self._looking_since, self._engines)
        notices.keep_alerts(tx, alerts_on(self._rules, facts, tx.now, before))
        return notices.claim_alerts(tx), tx.now


def find_facts(
    tx: Transaction, rules: AlertRules, looking_since: datetime, engines: Mapping[str, str]
) -> AlertFacts:
    """Return the facts that the rules need. Every query is bounded or uses an index.

    Args:
        engines: names of engines by host.
    """
    hits = pairs.list_recent_hits(tx, tx.now - LATELY) if rules.completion is not None else ()
    return AlertFacts(
        looking_since=looking_since,
        nodes={one.name: one.seen_at for one in nodes.list_nodes(tx) if one.seen_at and not one.drained},
        manual=transitions.count_queues(tx)[State.MANUAL],
        collected_at=queues.get_newest_page_time(tx),
        work_waits=rules.idle is not None and queues.has_old_work(tx, timedelta(minutes=rules.idle)),
        completion={site: Completion(*counts) for site, *counts in hits},
        refusals=_find_refusals(tx, engines) if rules.refusing is not None else (),
        rises=_list_rises(tx) if rules.rising is not None else (),
    )


def _list_rises(tx: Transaction) -> list[RisingTheme]:
    """Return the rises that the sweep `rises` found last."""
    return [
        RisingTheme(
            product=one["product"],
            theme=one["theme"],
            since=date.fromisoformat(one["since"]),
            count=one["count"],
            baseline=one["baseline"],
            quotes=[(quote["text"], quote["url"]) for quote in one["quotes"]],
        )
        for one in themes.load_rises(tx)
    ]


def _find_refusals(tx: Transaction, engines: Mapping[str, str]) -> list[Refusal]:
    """Return the engines whose breakers are not closed, except those whose rest ended over a day ago."""
    found: dict[str, list[Breaker]] = {}
    for one in hosts.list_rests(tx):
        if one.host in engines and one.until > tx.now - GONE:
            found.setdefault(engines[one.host], []).append(one)
    return [
        Refusal(engine, {one.cause for one in of}, [one.node for one in of], max(one.times for one in of))
        for engine, of in sorted(found.items())
    ]


def _note(rows: Sequence[AlertRow], done: SendOutcome, tx: Transaction) -> None:
    notices.note_sent_alerts(tx, rows, told=done.told, trouble=done.trouble)
