"""Round trips to PostgreSQL: how many a kind takes, and that what is deferred is neither lost, late nor muddled."""

from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import psycopg2.extensions
import pytest
from contents import Snapshot
from sqlalchemy import event
from world import AFTER_ATTEMPT, SILENT, World, hit, review, target_end

from tasks.domain.attempt_end import AttemptReport, Counters, UnaskedHost
from tasks.domain.errors import StoreConflict, StoreFailed, StoreUnavailable, Unstorable
from tasks.domain.grants import HostGrants
from tasks.domain.page_key import page_key
from tasks.domain.pages import Hit, ResultPage
from tasks.domain.states import Transition
from tasks.store.content.pages import (
    STORE_PAGES,
    STORE_RESULT_PAGES,
    STORE_TARGET_ENDS,
    save_pages,
)
from tasks.store.queue import transitions
from tasks.store.queue.attempts import CLOSE_ATTEMPTS, Close, release
from tasks.store.queue.leases import BEGIN_LEASES, RENEW_LEASES, Renewal
from tasks.store.queue.result_pages import FoundHit, ResultPageToStore
from tasks.store.sql.database import Store

Sent = list[str]


@pytest.fixture
def far(postgres_url):
    """A PostgreSQL store, and the texts sent to it: each is one round trip."""
    store, sent = Store.open(postgres_url), Sent()

    class Counting(psycopg2.extensions.cursor):
        def execute(self, query, vars=None):
            sent.append(query.decode() if isinstance(query, bytes) else query)
            super().execute(query, vars)

    def count(connection, _record):
        connection.cursor_factory = Counting

    event.listen(store.engine, "connect", count)
    yield store, sent
    store.close()


# --- how many -----------------------------------------------------------------------------------------------


class Scene:
    """So many leases: granted, reading their result page, and fetching (one hit each, under way)."""

    def __init__(self, store, n):
        self.world = World(store)
        self.granted = [self._grant(f"甲{i}") for i in range(n)]
        self.reading = [self.world.begin(self.world.waiting(f"乙{i}")) for i in range(n)]
        self.fetching = []
        for i in range(n):
            lease, work = self.world.begin(self.world.waiting(f"丙{i}"))
            found = self.world.read_results(lease, work.targets[0], [hit(f"{i}")])
            self.fetching.append((lease, found.todo[0]))

    def _grant(self, name):
        lease = self.world.grant(self.world.waiting(name))
        assert lease is not None
        return lease

    def starts(self):
        return [Renewal(lease, SILENT) for lease in self.granted]

    def results(self):
        """The last result pages of their chunks, with 40 hits each, one of which is listed by all."""
        items = []
        for i, (lease, work) in enumerate(self.reading):
            urls = [hit(f"{i}-{j}") for j in range(39)] + [hit("all")]
            page = ResultPage(None, tuple(Hit(url, "标题") for url in urls), False, False)
            found = [FoundHit(url, page_key(url)) for url in urls]
            items.append(
                ResultPageToStore(lease=lease, target=work.targets[0], page=page, hits=found, more=True)
            )
        return items

    def known_results(self):
        """The same, with a hit each that is stored already."""
        for saved in self.pages():
            self.world.do(save_pages, [saved])
        urls = [saved.url for saved in self.pages()]
        return [
            replace(
                item,
                hits=[*item.hits, FoundHit(url, page_key(url))],
                page=replace(item.page, hits=(*item.page.hits, Hit(url, "标题"))),
            )
            for item, url in zip(self.results(), urls, strict=True)
        ]

    def pages(self):
        return [
            self.world.page(lease, target, [review("a", target.url), review("b", target.url)])
            for lease, target in self.fetching
        ]

    def ends(self):
        return [target_end(lease, target, "given_up", "why") for lease, target in self.fetching]

    def progresses(self):
        gave = frozenset({"h.cn"})
        return [Renewal(lease, SILENT, Counters(offered=1), gave) for lease, _ in self.fetching]

    def closes(self, unasked=None):
        report = AttemptReport(counters=Counters(offered=1), page_hosts=frozenset({"h.cn"}), unasked=unasked)
        return [Close(lease, report, AFTER_ATTEMPT) for lease, _ in self.fetching]

    def closes_unasked(self):
        """The same, of attempts whose host grants no permit soon."""
        grants = HostGrants(next_s=45.0)
        return self.closes(UnaskedHost(host="h.cn", unreachable=False, grants=grants, silent_after_s=60.0))


_SCENES = {}


def _scene(store, n):
    """A scene in this store: of each size made once, then put back."""
    if n not in _SCENES:
        _SCENES[n] = Scene(store, n), Snapshot(store)
    made, rows = _SCENES[n]
    rows.restore(store)
    scene = copy(made)
    scene.world = World(store)
    scene.world.now = made.world.now
    return scene


@pytest.mark.parametrize("n", [1, 50])
@pytest.mark.parametrize(
    ("kind", "items", "round_trips"),
    [
        pytest.param(BEGIN_LEASES, Scene.starts, 2, id="start"),
        pytest.param(STORE_RESULT_PAGES, Scene.results, 5, id="results"),
        pytest.param(STORE_RESULT_PAGES, Scene.known_results, 5, id="results with known hits"),
        pytest.param(STORE_PAGES, Scene.pages, 2, id="pages"),
        pytest.param(STORE_TARGET_ENDS, Scene.ends, 1, id="ends"),
        pytest.param(RENEW_LEASES, Scene.progresses, 1, id="progress"),
        pytest.param(CLOSE_ATTEMPTS, Scene.closes, 4, id="close"),
        pytest.param(CLOSE_ATTEMPTS, Scene.closes_unasked, 7, id="close at a host that could not be asked"),
    ],
)
def test_a_batch_of_any_size_takes_the_same_round_trips(far, kind, items, round_trips, n):
    store, sent = far
    scene = _scene(store, n)
    given = items(scene)
    with store.begin(now=scene.world.now) as conn:
        sent.clear()
        conn.value("SELECT 1")  # with BEGIN
        kind.run(conn, given)
    # The clock before, COMMIT behind.
    assert len(sent) == 1 + round_trips + 1, sent
    assert scene.world.verification().violations == ()


@pytest.mark.parametrize("n", [1, 20])
def test_leases_are_given_back_in_so_many_round_trips(far, n):
    """Lock them, count what is left, lock their attempts, lock their pairs; the rest goes with COMMIT."""
    store, sent = far
    scene = _scene(store, n)
    with store.begin(now=scene.world.now) as conn:
        sent.clear()
        held = dict.fromkeys(scene.granted, "drained")
        assert release(conn, held) == scene.granted
    assert len(sent) == 5, sent


def test_a_move_of_many_takes_none_of_its_own(far):
    store, sent = far
    scene = _scene(store, 1)
    ids = scene.world.add("丁", chunks=(True, True))
    with store.begin(now=scene.world.now) as conn:
        sent.clear()
        transitions.move(conn, Transition.ADMIT, [transitions.Move(i) for i in ids])
    assert [text.count("UPDATE") for text in sent] == [1], "one statement for both"


# --- what travels when --------------------------------------------------------------------------------------


NAMES = "SELECT host FROM hosts ORDER BY host"


class Host(NamedTuple):
    host: str


def _add(tx, *names):
    tx.insert("hosts", ("host",), [(name,) for name in names])


def _names(tx):
    return [name for (name,) in tx.rows(NAMES)]


def _stored(store):
    with store.read() as conn:
        return _names(conn)


def test_what_is_deferred_travels_with_the_next_statement_which_sees_it(far):
    store, sent = far
    with store.begin():
        sent.clear()
    assert sent == [], "a transaction that says nothing sends nothing"
    with store.begin() as tx:
        sent.clear()
        tx.value("SELECT 1")
        _add(tx, *(f"100%s {n}" for n in range(2500)))  # a percent sign is no mark
        tx.later("DELETE FROM hosts WHERE host <> :host", host="100%s 7")
        assert _names(tx) == ["100%s 7"]
        _add(tx, "a")
        assert [row.host for row in tx.stream(Host, NAMES)] == ["100%s 7", "a"]
        _add(tx, "b")
        _add(tx, "c")
    begun, looked, *streamed, last = sent
    assert [text.split()[0] for text in (begun, looked, last)] == ["BEGIN;", "INSERT", "INSERT"]
    assert (len(streamed), last.count("INSERT"), last.endswith("COMMIT")) == (2, 2, True)
    assert _stored(store) == ["100%s 7", "a", "b", "c"]


def test_a_rollback_drops_what_was_deferred(far):
    store, sent = far

    def fail():
        with store.begin() as conn:
            conn.value("SELECT 1")
            _add(conn, "a")
            sent.clear()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert sent == ["ROLLBACK"]
    with store.begin() as conn:
        _add(conn, "b")
    assert _stored(store) == ["b"]


# --- what goes wrong ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("look", [True, False], ids=["at the next statement", "at commit"])
def test_an_error_of_what_was_deferred_is_the_one_it_always_was(store, look):
    def add_twice():
        with store.begin() as conn:
            _add(conn, "b")
            _add(conn, "a")
            if look:
                _names(conn)

    with store.begin() as conn:
        _add(conn, "a")
    with pytest.raises(Unstorable):
        add_twice()
    assert _stored(store) == ["a"]


def test_a_commit_that_stores_nothing_is_an_error(far):
    store, _ = far

    def swallow():
        with store.begin() as conn:
            _add(conn, "a")
            with suppress(psycopg2.Error):
                conn.value("SELECT 1 / 0")

    with pytest.raises(StoreFailed, match="nothing is stored"):
        swallow()
    assert _stored(store) == []


def test_a_connection_works_on_after_a_commit_that_failed(store):
    with store.connect() as kept:
        with store.begin(kept) as conn:
            _add(conn, "a")
        with pytest.raises(Unstorable), store.begin(kept) as conn:
            _add(conn, "a")
        with store.begin(kept) as conn:
            _add(conn, "b")
    assert _stored(store) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("INSERT INTO hosts (host, robots_at) VALUES ('a', 'no time')", Unstorable),
        ("DO $$ BEGIN RAISE EXCEPTION SQLSTATE '40P01'; END $$", StoreConflict),
    ],
)
def test_what_the_database_refuses_is_an_error_of_the_store(far, text, error):
    with pytest.raises(error), far[0].begin() as tx:
        tx.later(text)


def test_a_connection_that_broke_ends_its_transaction_only(far):
    store, _ = far

    def lose_it():
        with store.begin() as conn:
            pid = conn.value("SELECT pg_backend_pid()")
            with store.begin() as other:
                other.value("SELECT pg_terminate_backend(:pid)", pid=pid)
            _add(conn, "a")

    with pytest.raises(StoreUnavailable):
        lose_it()
    with store.begin() as conn:
        _add(conn, "b")
    assert _stored(store) == ["b"]


def test_the_driver_is_left_as_it_was(far):
    """A connection that wrote goes back to the pool, and reads next in one consistent view."""
    store, _ = far
    with store.begin() as conn:
        now = conn.now
    with store.read() as conn:
        level, began = conn.value("SHOW transaction_isolation"), conn.value("SELECT now()")
        assert (level, began) == ("repeatable read", conn.value("SELECT now()"))
        assert began >= now
