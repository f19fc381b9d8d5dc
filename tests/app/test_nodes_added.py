"""Nodes that a person adds: `run` crawls with them, and no proxy's password is shown."""

from __future__ import annotations

import json
import logging
import socket
import stat
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from socket import AF_INET, AF_INET6, AF_PACKET
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from types import SimpleNamespace

import psutil
import pytest
from patience import PATIENCE_S
from tiny_world import PRODUCTS

from app.cli.crawl.plan import node_notes
from app.run.cluster import processes
from app.run.nodes import addresses, choose_nodes, clients, make_nodes, own_address, own_settings
from app.run.setting_fields import Settings
from app.run.setting_values import read_proxy
from app.run.settings import load_settings
from splitter.catalog.names import Kind
from splitter.errors import InputError
from tasks.domain.proxy import Proxy
from tasks.store.queue import nodes, notices
from tasks.store.queue.nodes import Node
from tasks.store.sql.database import Store

PASSWORD = "pa55-w0rd"
SECRET_URL = f"http://user:{PASSWORD}@proxy.example:8080"
NOT_HERE = "203.0.113.77"


@pytest.fixture
def db(tmp_path) -> str:
    return str(tmp_path / "reviews.db")


class _Forwarding(StreamRequestHandler):
    """Hands one request for a whole address on to the lab; refuses who has not the password."""

    def handle(self) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = self.rfile.readline()
            if not line:
                return
            head += line
        self.server.heads.append(head)
        if b"Proxy-Authorization: Basic" not in head:
            self.wfile.write(b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        first, rest = head.split(b"\r\n", 1)
        method, url, version = first.split(b" ")
        path = b"/" + url.split(b"/", 3)[3]
        kept = [
            line
            for line in rest.split(b"\r\n")
            if line and not line.lower().startswith((b"proxy-", b"connection"))
        ]
        with socket.create_connection(self.server.lab, timeout=PATIENCE_S) as there:
            there.sendall(
                b"\r\n".join([b" ".join((method, path, version)), *kept, b"Connection: close", b"", b""])
            )
            while piece := there.recv(65536):
                self.wfile.write(piece)


@pytest.fixture
def forwarding(lab) -> Iterator[ThreadingTCPServer]:
    class Server(ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 64

    with Server(("127.0.0.1", 0), _Forwarding) as server:
        server.lab, server.heads = (lab.host, lab.port), []
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(PATIENCE_S)


def test_a_run_crawls_with_the_added_nodes(reviewloop, db, lab, forwarding, caplog):
    caplog.set_level(logging.DEBUG)
    url = f"http://user:{PASSWORD}@127.0.0.1:{forwarding.server_address[1]}"
    added = [
        reviewloop(
            "nodes",
            "add",
            "second",
            "--address",
            "127.0.0.7",
            "--slots",
            3,
            "--kinds",
            "microblog",
            "--db",
            db,
        ),
        reviewloop("nodes", "add", "node1", "--proxy", "-", "--kinds", "meta", "--db", db, stdin=f"{url}\n"),
    ]
    ran = reviewloop(
        "run", *PRODUCTS, "--site", "12315.com", "--site", "t.163.com", "--until-done",
        "--for", PATIENCE_S, "--lab", f"{lab.host}:{lab.port}",
        "--seed", 1, "--db", db, "--json",
    )  # fmt: skip
    assert ran.exit_code == 0, ran.stderr
    listed = reviewloop("nodes", "list", "--db", db, "--json")
    rows = {row["name"]: row for row in json.loads(listed.stdout)["nodes"]}
    place = f"127.0.0.1:{forwarding.server_address[1]}"
    assert {
        name: (row["address"], row["added"], row["proxy"], row["slots"]) for name, row in rows.items()
    } == {
        "node1": (None, True, f"http://{place}", 4),
        "second": ("127.0.0.7", True, None, 3),
    }
    assert rows["node1"]["machine"] == place
    document = json.loads(ran.stdout)
    crawled = {(pair["node"], pair["site"] == "t.163.com") for pair in document["pairs"]}
    assert crawled == {("node1", False), ("second", True)}, "each what it was added for"
    assert forwarding.heads
    assert not any(b"t.163.com" in head.split(b"\r\n")[0] for head in forwarding.heads), (
        "second needs no proxy"
    )
    assert all(b"Proxy-Authorization: Basic" in head for head in forwarding.heads)
    listing, status = reviewloop("nodes", "list", "--db", db), reviewloop("status", "--db", db)
    for said in (*added, ran, listed, listing, status):
        assert PASSWORD not in said.output
        assert said.exit_code == 0, said.output
    assert PASSWORD not in caplog.text
    assert stat.S_IMODE(Path(db).stat().st_mode) == 0o600


def test_an_address_that_is_not_here(reviewloop, db):
    refused = reviewloop("nodes", "add", "second", "--address", NOT_HERE, "--db", db)
    assert refused.exit_code == 2
    assert f"this machine has no address {NOT_HERE}; it has " in " ".join(refused.stderr.split())
    assert not Path(db).exists()


@pytest.mark.parametrize("text", ["", "beijing", "0.0.0.0", "::", "224.0.0.1", "127.0.0.1/8"])
def test_what_is_no_address_to_connect_from(text):
    with pytest.raises(InputError, match="it has "):
        own_address(text)


def test_the_addresses_of_the_machine_can_be_bound(monkeypatch):
    assert own_address("127.0.0.9") == "127.0.0.9"
    for one in addresses():
        assert own_address(one) == one
    found = {
        AF_INET: ("127.0.0.1", "192.0.2.7"),
        AF_INET6: ("::1", "2001:db8::5", "fe80::abcd%eth0"),
        AF_PACKET: ("52:54:00:12:34:56",),
    }
    told = {
        "eth0": [SimpleNamespace(family=of, address=one) for of, all_of in found.items() for one in all_of]
    }
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: told)
    assert addresses() == ["192.0.2.7", "2001:db8::5"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["second"], "either --address A or --proxy URL"),
        (["second", "--address", "127.0.0.2", "--proxy", SECRET_URL], "either --address A or --proxy URL"),
        (["第二", "--address", "127.0.0.2"], "no name for a node"),
        (["beat", "--address", "127.0.0.2"], "a program of the cluster"),
        (["second", "--proxy", SECRET_URL.replace("http:", "ftp:")], "write http://HOST:PORT"),
        (["second", "--proxy", f"http://user:{PASSWORD}/@proxy.example:1"], "write http://HOST:PORT"),
        (["second", "--proxy", f"user:{PASSWORD}@proxy.example"], "write http://HOST:PORT"),
        (["second", "--address", "127.0.0.2", "--kinds", "shops"], "write meta,microblog"),
    ],
)
def test_what_is_wrong_is_refused_and_not_repeated(reviewloop, db, arguments, said):
    result = reviewloop("nodes", "add", *arguments, "--db", db)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert PASSWORD not in result.output
    assert not Path(db).exists()


def test_adding_and_removing(reviewloop, db):
    def names() -> list[str]:
        return [
            row["name"]
            for row in json.loads(reviewloop("nodes", "list", "--db", db, "--json").stdout)["nodes"]
        ]

    assert reviewloop("nodes", "add", "second", "--address", "127.0.0.2", "--db", db).exit_code == 0
    twice = reviewloop("nodes", "add", "second", "--address", "127.0.0.3", "--db", db)
    assert (twice.exit_code, "was added already" in twice.stderr) == (2, True)
    assert names() == ["second"]
    unknown = reviewloop("nodes", "remove", "node1", "--db", db)
    assert (unknown.exit_code, "added: second" in unknown.stderr) == (2, True)
    removed = reviewloop("nodes", "remove", "second", "--db", db, "--json")
    assert json.loads(removed.stdout) == {"node": "second", "removed": True}
    assert names() == []
    store = Store.open(f"sqlite:///{db}")
    with store.read() as conn:
        assert [(row.action, row.subject) for row in notices.list_audit_rows(conn, most=9)] == [
            ("remove", "second"),
            ("add", "second"),
        ]
    store.close()


def test_what_runs_is_not_removed(reviewloop, db):
    reviewloop("nodes", "add", "second", "--proxy", SECRET_URL, "--db", db)
    store = Store.open(f"sqlite:///{db}")
    with store.begin() as conn:
        [node] = nodes.list_added(conn, 2)
        nodes.register(conn, node)
    refused = reviewloop("nodes", "remove", "second", "--db", db)
    assert (refused.exit_code, "runs" in refused.stderr) == (2, True)
    with store.begin() as conn:
        nodes.leave(conn, "second")
        nodes.remove(conn, "second", timedelta(seconds=1))
        assert nodes.find(conn, "second") is None
    store.close()


def test_a_node_about_to_start_forgets_the_address_of_an_earlier_run(sqlite_url):
    store = Store.open(sqlite_url)
    with store.begin() as conn:
        nodes.register(conn, Node("node1", frozenset(Kind), 4, "127.0.0.2"))
        nodes.set_addresses(conn, [Node("node1", frozenset(Kind), 4)])
        assert nodes.get(conn, "node1").address is None
    store.close()


def test_a_proxy_shows_its_place_alone():
    node = Node("third", frozenset(Kind), 4, None, None, Proxy(SECRET_URL))
    shown = [repr(node), str(node), str(node.proxy), repr(asdict(node)), repr(own_settings(Settings(), node))]
    shown += map(str, node_notes([node, Node("node1", frozenset(Kind), 4)]))
    shown.append(repr(processes.node_program(node, Settings(), Path("third.log")).command))
    assert [one for one in shown if PASSWORD in one] == []
    assert node.proxy.place == "proxy.example:8080"


def test_a_wrong_proxy_of_the_environment_is_not_repeated():
    with pytest.raises(InputError) as caught:
        load_settings({"REVIEWLOOP_PROXY": f"http://user:{PASSWORD}@"})
    assert "REVIEWLOOP_PROXY" in str(caught.value)
    assert PASSWORD not in str(caught.value)


def test_a_socks_proxy_looks_names_up():
    assert read_proxy("socks5://a:b@proxy.example:1080/") == "socks5h://a:b@proxy.example:1080"


def test_programs_of_a_cluster_get_the_proxy_of_their_node_alone():
    through = Node("third", frozenset({Kind.META}), 4, None, "proxy.example:8080", Proxy(SECRET_URL))
    direct = Node("second", frozenset(Kind), 4, "127.0.0.2")
    own = processes.node_program(through, Settings(), Path("third.log")).environment
    assert (own["REVIEWLOOP_PROXY"], own["REVIEWLOOP_MACHINE"]) == (SECRET_URL, "proxy.example:8080")
    assert own["REVIEWLOOP_KINDS"] == "meta"
    assert (
        "REVIEWLOOP_PROXY" not in processes.node_program(direct, Settings(), Path("second.log")).environment
    )


ADDED = Node("second", frozenset(Kind), 4, "127.0.0.2")


def test_which_nodes_a_run_crawls_with(monkeypatch):
    lab = Settings(lab=("127.0.0.1", 1))

    def names(settings: Settings, added: list[Node], count: int | None = None) -> list[str]:
        return [node.name for node in choose_nodes(settings, added, count, 4)]

    assert names(lab, []) == ["node1", "node2", "node3", "node4"]
    assert names(lab, [ADDED]) == ["node1", "second"]
    assert names(lab, [ADDED], 3) == ["node1", "node2", "node3"], "as said"
    assert names(lab, [replace(ADDED, address="127.0.0.1")]) == ["second"], "it is this machine's own"
    assert names(lab, [replace(ADDED, name="node1")]) == ["node1"]
    with pytest.raises(InputError, match="'node1' was added"):
        names(lab, [replace(ADDED, name="node1")], 2)
    with pytest.raises(InputError, match="reaches nothing but a lab"):
        names(Settings(), [ADDED])
    with pytest.raises(InputError, match=f"'second': this machine has no address {NOT_HERE}; it has "):
        names(lab, [replace(ADDED, address=NOT_HERE)])
    with pytest.raises(InputError, match="REVIEWLOOP_PROXY is set"):
        names(lab.replace(proxy=SECRET_URL), [ADDED])


def test_nodes_behind_one_address_are_one_client():
    alike = make_nodes(4, 4, lab=False)
    assert clients(alike) == 1
    assert "4 nodes behind one address" in str(node_notes(alike)[0])
    assert clients(make_nodes(4, 4, lab=True)) == 4
