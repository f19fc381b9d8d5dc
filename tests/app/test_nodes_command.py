"""`reviewloop nodes list` shows which hosts refuse a node's address, and since how many refusals."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from splitter.catalog.entries import NO_BROWSER
from splitter.catalog.names import Kind
from tasks.domain.breaker import Rest
from tasks.store.queue import hosts, nodes
from tasks.store.queue.nodes import Node
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


def test_a_node_without_a_browser_has_no_other_catalog(sqlite_url, reviewloop):
    entries = {"n1": {"a.cn": "1"}, "n2": {"a.cn": "1"}, "n3": {"a.cn": "2"}, "n4": {"a.cn": NO_BROWSER}}
    store = Store.open(sqlite_url)
    with store.begin() as tx:
        for name, reported in entries.items():
            nodes.register(tx, Node(name, frozenset(Kind), 4), reported)
    store.close()
    listed = json.loads(reviewloop("nodes", "list", "--db", sqlite_url, "--json").stdout)["nodes"]
    assert {node["name"] for node in listed if node["has_other_catalog"]} == {"n3"}
    assert {node["name"]: node["without_browser"] for node in listed if node["without_browser"]} == {"n4": 1}
    shown = reviewloop("nodes", "list", "--db", sqlite_url).stdout
    assert "n3 has another catalog" in shown
    assert "n4 has no browser: it gets nothing of 1 sites" in shown
