"""`reviewloop nodes list` shows which hosts refuse a node's address, and since how many refusals."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from splitter.catalog.model import Kind
from tasks.store import hosts, nodes
from tasks.store.database import Store, read_now
from tasks.store.hosts import Rest
from tasks.store.nodes import Node


@pytest.fixture
def refused(sqlite_url):
    """node1 rests at one host after two refusals in a row, and may probe another."""
    store = Store.open(sqlite_url)
    with store.begin() as conn:
        now = read_now(conn)
        for number in (1, 2):
            nodes.register(conn, now, Node(f"node{number}", frozenset(Kind), 4, f"127.0.0.{number + 1}"))
        for earlier_s, host in ((900, "open.cn"), (0, "open.cn"), (900, "half.cn")):
            rest = Rest(host, "captcha", lambda times: 600.0 * times)
            hosts.rest_host(conn, now - timedelta(seconds=earlier_s), "node1", rest)
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


def test_people_read_how_long_a_host_still_rests(refused, reviewloop):
    shown = reviewloop("nodes", "list", "--db", refused).stdout
    assert "open.cn" in shown
    assert "rests for another" in shown
    assert "one attempt at a time" in shown
