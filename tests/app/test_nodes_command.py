"""`reviewloop nodes list` shows which hosts refuse a node's address, and since how many refusals."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import pytest

from app.cli.nodes import node_notes
from splitter.catalog.names import Kind
from tasks.domain.breaker import Rest
from tasks.domain.hit_count import NewPartition
from tasks.domain.states import Transition
from tasks.scheduling.balance.parameters import NodeParameters
from tasks.store.content import products
from tasks.store.content.products import NewProduct
from tasks.store.queue import hosts, leases, nodes, snapshot, tasks, transitions
from tasks.store.queue.leases import Grant, Renewal
from tasks.store.queue.nodes import Node, NodeRow
from tasks.store.queue.tasks import NewTask
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


def test_people_read_how_long_a_host_still_rests(refused, reviewloop):
    shown = reviewloop("nodes", "list", "--db", refused).stdout
    assert "open.cn" in shown
    assert "rests for another" in shown
    assert "one attempt at a time asks" in shown


def test_how_soon_a_node_begins_what_it_holds(sqlite_url, reviewloop):
    """Of 3 slots all are taken; 6 leases at 0.5 attempts a second are begun within 12 s."""
    store = Store.open(sqlite_url)
    with store.begin() as tx:
        nodes.register(tx, Node("node1", frozenset(Kind), 3))
        nodes.register(tx, Node("node2", frozenset(Kind), 3))
        nodes.leave(tx, "node2")
        nodes.record_heartbeat(tx, "node1", nodes.Heartbeat(attempts_per_s=0.5, backlog=6, idle=1))
        _lease(tx, "node1", started=4, held=6)
    store.close()
    one, two = json.loads(reviewloop("nodes", "list", "--db", sqlite_url, "--json").stdout)["nodes"]
    told = ("attempts_per_s", "backlog", "idle", "running", "waiting", "expected_wait_s")
    assert [one[name] for name in told] == [0.5, 6, 1, 4, 6, 12.0]
    assert two["expected_wait_s"] is None, "it has left"
    shown = reviewloop("nodes", "list", "--db", sqlite_url).stdout
    assert "12 s" in shown


def test_what_a_node_told_of_its_machine_is_listed(refused, reviewloop):
    store = Store.open(refused)
    told = NodeParameters(cpu_cores=8.0, cpu_ghz=2.5, memory_gb=32.0, net_mbps=None, disk_mbps=900.0)
    with store.begin() as tx:
        nodes.describe(tx, ["node2"], told)
        nodes.register(tx, Node("node2", frozenset(Kind), 4))
    store.close()
    one, two = json.loads(reviewloop("nodes", "list", "--db", refused, "--json").stdout)["nodes"]
    assert one["parameters"] is None
    assert two["parameters"] == asdict(told), "it keeps them when it starts again"


def _lease(tx, node, *, started, held):
    """Give a node leases, some of which it begins."""
    products.add(tx, NewProduct(name="特仑苏", keywords=("特仑苏",)))
    (wanted,) = tasks.list_unplanned(tx, 1)
    sites = [f"s{n}.cn" for n in range(started + held)]
    planned = [NewTask(site, "baidu", "meta", (NewPartition(("蒙牛",), 1, 1),)) for site in sites]
    tasks.plan(tx, wanted, planned, lambda query, _pages: [f"http://s/{query.site}"])
    within = timedelta(seconds=60)
    ids = [view.id for view in _admitted(tx)]
    given = leases.grant(tx, [Grant(i, node, 20, 30.0, {}) for i in ids], within)
    leases.start_many(tx, [Renewal(lease, within) for lease in given[:started]])


def _admitted(tx):
    for entrant in snapshot.list_entrants(tx, dict.fromkeys(snapshot.list_heads(tx), 100)):
        transitions.move(tx, Transition.ADMIT, [transitions.Move(entrant.id)])
    return snapshot.list_waiting(tx, 100, lambda site: (site, site))


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
