"""Hosts that answer nobody any more, in virtual time: few attempts, and work again soon after they are back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from app.run.version import ROOT
from research.tests.simulator.virtual_run import START, Wanted, run
from splitter.catalog.model import Limits
from tasks.store.sql import schema
from tasks.store.sql.database import Store
from tasks.store.sql.tables import attempts, events, pages

SITES = ("12365hn.com", "315tousu.org", "cca.org.cn")
AWAY_S = 10.0
HOSTS = ("baidu.com", *SITES)
NODES = 4


def wanted(back_s: float, lasts_s: float) -> Wanted:
    """All hosts are away from `AWAY_S` until they are back."""
    return Wanted(
        hits={site: [8] * 20 for site in SITES},
        limits=Limits(per_address_per_s=1, total_per_s=2),
        nodes={f"node{number}": 4 for number in range(1, NODES + 1)},
        pairs={},
        away=dict.fromkeys(HOSTS, (AWAY_S, back_s)),
        lasts_s=lasts_s,
    )


@contextmanager
def new_store(folder: Path) -> Iterator[Store]:
    with closing(Store.open(f"sqlite:///{folder / 'run.db'}")) as store:
        schema.upgrade(store, ROOT / "migrations")
        yield store


@pytest.fixture(scope="module")
def dead(tmp_path_factory):
    with new_store(tmp_path_factory.mktemp("away")) as store:
        run(store, wanted(1e9, 310.0), "feedback", 1)
        yield store


def count(store, table, at, from_s, until_s):
    begin, end = (START + timedelta(seconds=s) for s in (from_s, until_s))
    with store.read() as tx:
        return tx.engine_connection.scalar(
            select(func.count()).select_from(table).where(at >= begin, at < end)
        )


def test_a_host_that_answers_nobody_is_probed_from_one_address_after_each_rest(dead):
    began = {}
    with dead.read() as tx:
        for site, at in tx.engine_connection.execute(select(attempts.c.site, attempts.c.allocated_at)):
            began.setdefault(site, []).append((at - START).total_seconds())
    for site in SITES:
        # Of the rests of 3, 6, 12, 24, 48, 96, 192 s, the first of which begin by second 30, some four end then.
        assert 2 <= sum(40 <= at < 300 for at in began[site]) <= 8
    per_s = count(dead, attempts, attempts.c.allocated_at, 30, 110) / 80
    assert per_s < 0.3
    assert count(dead, attempts, attempts.c.allocated_at, 150, 300) / 150 < 0.1


def test_what_waits_for_them_writes_next_to_nothing(dead):
    assert count(dead, events, events.c.at, 150, 300) <= 5 * len(HOSTS) * 4


@pytest.mark.parametrize("back_s", [35.0, 100.0])
def test_hosts_that_are_back_give_pages_after_one_more_rest_at_most(tmp_path, back_s):
    with new_store(tmp_path) as store:
        ran = run(store, wanted(back_s, 600.0), "feedback", 1)
        gone_s = back_s - AWAY_S
        assert count(store, pages, pages.c.fetched_at, back_s, back_s + 1.2 * gone_s + 5) > 0
        assert ran.ended_s < back_s + 2.5 * gone_s + 240
        assert sum(ran.pages.values()) == 8 * 20 * len(SITES)
