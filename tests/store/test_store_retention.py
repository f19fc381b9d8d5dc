"""Retention empties details in time and never touches a transition."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select

from tasks.store import hosts, retention
from tasks.store.hosts import Rest
from tasks.store.partitions import NewPartition
from tasks.store.products import NewProduct, NewTask, add, plan, unplanned
from tasks.store.tables import events, host_rests

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_old_details_go_and_transitions_stay(store):
    with store.begin() as conn:
        add(conn, NOW, NewProduct(name="牛奶", keywords=("牛奶",)))
        (wanted,) = unplanned(conn, 1)
        plan(conn, NOW, wanted, [NewTask("a.cn", "baidu", "meta", (NewPartition(("a",), [["http://e/1"]]),))])
        hosts.rest_host(conn, NOW, "n1", Rest("a.cn", "captcha", lambda _times: 60.0))
        before = conn.scalar(select(func.count()).select_from(events))
        forgotten = NOW + timedelta(seconds=60) + retention.KEEP_BREAKER
        assert retention.drop_old(conn, forgotten - timedelta(seconds=1)) == 0
        assert retention.drop_old(conn, forgotten) == 1
        assert conn.scalar(select(func.count()).select_from(host_rests)) == 0
        assert retention.drop_old(conn, NOW + retention.KEEP_DETAIL) == 0
        assert retention.drop_old(conn, NOW + retention.KEEP_DETAIL + timedelta(seconds=1)) == 1
        assert conn.scalar(select(func.count()).select_from(events)) == before
        assert conn.scalars(select(events.c.detail)).all() == [None]
