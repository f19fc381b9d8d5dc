"""`reviewloop nodes list` shows which hosts refuse a node's address, and since how many refusals."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from app.cli.people.nodes import node_notes
from splitter.catalog.names import Kind
from tasks.domain.breaker import Rest
from tasks.store.queue import hosts, nodes
from tasks.store.queue.nodes import Node, NodeRow
from tasks.store.sql.database import Store


@pytest.fixture
def refused(sqlite_url):
    """node1 rests at one host after two refusals in a row, and may probe another."""
    store = Store.open(sqlite_url)
    with store.begin() as tx:
        now = tx.now
        for number in (1, 2):
            nodes.register(tx, Node(f"node{number}", frozenset(Kind), 4, f"127.0.0.{number + 1}"))
    for earlier_s, host in ((900, "open.cn"), (0, "open.cn"), (900, "half.cn")):
        with store.begin(now=now - timedelta(seconds=earlier_s)) as tx:
            hosts.rest_hosts(tx, [("node1", Rest(host, "captcha", lambda times: 600.0 * times))])
    store.close()
    return sqlite_url


def test_rests_are_listed_with_their_node(refused, reviewloop):
    listed = json.loads(reviewloop("nodes", "list", "--db", refused, "--json").stdout)["nodes"]
    told = {
        node["name"]: [(r["host"], r["cause"], r["state"], r["times"]) for r in node["rests"]]
        for node in listed
    }
    assert told == {
        "node1": [("half.cn", "captcha", "half_open", 1), ("open.cn", "captcha", "open", 2)],
        "node2": [],
    }
    assert all("until" in rest for node in listed for rest in node["rests"])


def test_a_node_without_a_browser_has_no_other_catalog():
    def row(name: str, catalog: str) -> NodeRow:
        return NodeRow(
            name,
            frozenset(Kind),
            1,
            drained=False,
            seen_at=datetime(2026, 1, 1, tzinfo=UTC),
            attempts_per_s=0.0,
            backlog=0,
            idle=0,
            running=0,
            waiting=0,
            catalog=catalog,
        )

    rows = [row("n1", "a"), row("n2", "a"), row("n3", "b"), row("n4", "c")]
    other, without = node_notes(rows, {"n4": 2})
    assert other.startswith("n3 has another catalog")
    assert without.startswith("n4 has no browser: it is given nothing of 2 sites")
