"""`reviewloop up`: the same pages as an embedded run, whatever dies meanwhile."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from clusters import PRODUCTS, SITES, add_products, gone, opened, stored_pages, violations
from patience import PATIENCE_S, until
from sqlalchemy import func, select

from app.actions.products import new_product
from tasks.domain.errors import StoreFailed, WrongRevision
from tasks.store.content import products
from tasks.store.queue import nodes, snapshot, tasks
from tasks.store.sql.tables import events, pages, subtasks


def settings_of(web, **options):
    return web.settings.replace(slots=1, **options)


def up(launch, settings, *words):
    return launch("app", "up", "--json", "--until-done", *words, settings=settings)


def running_on(store, node):
    with store.read() as tx:
        return tx.engine_connection.execute(
            select(subtasks.c.id).where(subtasks.c.lease_node == node, subtasks.c.lease_started).limit(1)
        ).scalar_one_or_none()


def caught_at_work(store, process, node):
    """True, with the process stopped, where its node holds a lease it has started."""
    process.suspend()
    if running_on(store, node) is not None:
        return True
    process.resume()
    return False


def test_three_nodes_collect_what_an_embedded_run_collects(web, wanted, launch, postgres_url, redis_url):
    settings = settings_of(web, database_url=postgres_url, redis_url=redis_url)
    with opened(postgres_url) as store:
        nothing_to_do(store)
        process = launch("app", "up", "--json", "--nodes", 3, settings=settings)
        # All of them shall be there before there is work, or a fast one could do it alone.
        until(lambda: len(nodes_seen(store)) == 3, what="three nodes")
        add_products(store)
        until(lambda: pages_in(store) == len(wanted) and settled(store), what="all pages")
        process.popen.send_signal(signal.SIGTERM)
        done = json.loads(process.ended())
        assert done["tasks"] == len(PRODUCTS) * len(SITES)
        assert done["queues"]["DONE"] == sum(done["queues"].values())
        assert done["added"]["pages"] == done["pages"] == len(wanted)
        assert stored_pages(store) == wanted
        assert not violations(store)
    # 127.0.0.1 is the scheduler's, which asks for robots.txt.
    assert web.clients() == {f"127.0.0.{n}" for n in range(1, 5)}


def nothing_to_do(store):
    """A product without tasks: a cluster wants one to start."""
    product = new_product("牛奶")
    with store.begin() as tx:
        products.add(tx, product)
        (wanted,) = tasks.list_unplanned(tx, 1)
        tasks.plan(tx, wanted, [], lambda *_: [])


def nodes_seen(store):
    with store.read() as tx:
        return [row for row in nodes.list_nodes(tx) if row.seen_at is not None]


def test_a_worker_killed_at_work_changes_nothing(web, wanted, launch, postgres_url, redis_url):
    settings = settings_of(web, database_url=postgres_url, redis_url=redis_url)
    process = up(launch, settings, "--nodes", 2, *PRODUCTS)
    with opened(postgres_url) as store:
        worker = until(lambda: process.child("node1"), what="node1 started")
        until(lambda: caught_at_work(store, worker, "node1"), what="node1 at work")
        worker.kill()
        process.ended()
        assert "node1 ended with SIGKILL; started again" in process.told
        assert stored_pages(store) == wanted
        assert not violations(store)
        with store.read() as tx:
            # By its successor at its start, or by recall where that took longer than the silence.
            released = tx.engine_connection.scalars(
                select(events.c.detail).where(events.c.transition == "release")
            ).all()
            recalled = tx.engine_connection.scalars(
                select(events.c.id).where(events.c.transition == "silent")
            ).all()
            assert {"because": {"reason": "worker_killed", "parameters": {}}} in released or recalled


@pytest.fixture
def data():
    """A folder with a short path: a socket's may have 103 characters only."""
    with TemporaryDirectory(prefix="reviewloop-") as folder:
        yield Path(folder) / "data"


def test_a_cluster_with_servers_of_its_own_goes_on_where_it_was(web, wanted, launch, data):
    settings = settings_of(web)
    words = ("app", "up", "--nodes", 1, "--data", data)
    with opened(f"postgresql://postgres@/postgres?host={data / 'postgres'}") as store:
        killed = launch(*words, *PRODUCTS, settings=settings)
        until(lambda: pages_in(store), what="pages of the first start")
        family = killed.own.children(recursive=True)
        assert {"postgres", "redis-server", "control", "beat", "node1"} <= {one.name() for one in family}
        killed.popen.kill()
        until(lambda: gone(family), what="no orphan left")

        again = launch(*words, settings=settings)
        until(lambda: again.child("node1"), what="node1 started")
        refused = launch(*words, settings=settings)
        refused.popen.communicate(timeout=PATIENCE_S)
        assert refused.popen.returncode == 2
        assert "another command works with" in refused.told
        until(lambda: pages_in(store) == len(wanted) and settled(store), what="all pages")
        assert stored_pages(store) == wanted
        assert not violations(store)
        family = again.own.children(recursive=True)
        again.popen.send_signal(signal.SIGINT)
        again.ended()
        until(lambda: gone(family), what="nothing left")  # the process that forked ends after its parent


def pages_in(store):
    try:
        with store.read() as tx:
            return tx.engine_connection.execute(select(func.count()).select_from(pages)).scalar_one()
    except (StoreFailed, WrongRevision):  # not there yet, or without its tables
        return 0


def settled(store):
    with store.read() as tx:
        return snapshot.all_settled(tx)
