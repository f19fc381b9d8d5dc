"""Round trips to PostgreSQL: how many a kind takes, and that what is deferred is neither lost, late nor muddled."""

# ruff: noqa: PT012 - an error may come with any statement of a transaction, or with its COMMIT

from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import psycopg2
import pytest
from world import AFTER_ATTEMPT, SILENT, World, hit, put_back, review, statements, target_end

from tasks.domain.attempt_end import AttemptReport, Counters, UnaskedHost
from tasks.domain.breaker import Rest
from tasks.domain.errors import StoreFailed, StoreUnavailable, Unstorable
from tasks.domain.grants import HostGrants
from tasks.domain.reasons import Reason, because
from tasks.domain.states import Transition
from tasks.store.content.pages import STORE_PAGES, STORE_RESULT_PAGES, STORE_TARGET_ENDS, save_pages
from tasks.store.queue import transitions
from tasks.store.queue.attempts import CLOSE_ATTEMPTS, Close, release
from tasks.store.queue.leases import BEGIN_LEASES, RENEW_LEASES, Renewal

HOSTS = frozenset({"h.cn"})


@pytest.fixture
def far(postgres_store):
    """A PostgreSQL store, and the texts sent to it: each is one round trip."""
    with statements(postgres_store, by_round_trip=True) as sent:
        yield postgres_store, sent


# --- how many -----------------------------------------------------------------------------------------------


class Scene:
    """So many leases: granted, reading their result page, and fetching (one hit each, under way)."""

    def __init__(self, store, n):
        self.world = world = World(store)
        self.granted = [world.granted(f"甲{i}") for i in range(n)]
        self.reading = [world.begin(world.waiting(f"乙{i}")) for i in range(n)]
        found = [world.found(f"丙{i}", [hit(f"{i}")]) for i in range(n)]
        self.fetching = [(lease, hits.todo[0]) for lease, hits in found]

    def starts(self):
        return [Renewal(lease, SILENT) for lease in self.granted]

    def results(self, *known):
        """The last result pages of their chunks, with 40 hits each, one of which is listed by all."""
        items = []
        for i, (lease, work) in enumerate(self.reading):
            urls = [*(hit(f"{i}-{j}") for j in range(39)), hit("all"), *known[i : i + 1]]
            read = World.result_page(lease, work.targets[0], urls, found=None)
            items.append(replace(read, more=True))  # of the chunk, not of the query
        return items

    def known_results(self):
        """The same, with a hit each that is stored already."""
        self.world.do(save_pages, self.pages())
        return self.results(*(target.url for _, target in self.fetching))

    def pages(self):
        return [
            self.world.page(lease, target, [review("a", target.url), review("b", target.url)])
            for lease, target in self.fetching
        ]

    def changed_pages(self):
        """The same pages, fetched again with another review."""
        self.world.do(save_pages, self.pages())
        return [replace(page, content_hash="0" * 32) for page in self.pages()]

    def ends(self):
        return [target_end(lease, target, "given_up", "why") for lease, target in self.fetching]

    def progresses(self):
        return [Renewal(lease, SILENT, Counters(offered=1), HOSTS) for lease, _ in self.fetching]

    def closes(self, **ended):
        report = AttemptReport(counters=Counters(offered=1), page_hosts=HOSTS, **ended)
        return [Close(lease, report, AFTER_ATTEMPT) for lease, _ in self.fetching]

    def closes_refused(self):
        """The same, of attempts that two hosts refused."""
        return self.closes(rests=[Rest(host, "captcha", lambda _: 60.0) for host in ("a.cn", "b.cn")])

    def closes_unasked(self):
        """The same, of attempts whose host grants no permit soon."""
        grants = HostGrants(next_s=45.0)
        unasked = UnaskedHost(host="h.cn", unreachable=False, grants=grants, silent_after_s=60.0)
        return self.closes(unasked=unasked)


@pytest.mark.parametrize("n", [1, 50])
@pytest.mark.parametrize(
    ("kind", "items", "round_trips"),
    [
        (BEGIN_LEASES, Scene.starts, 2),
        (STORE_RESULT_PAGES, Scene.results, 5),
        (STORE_RESULT_PAGES, Scene.known_results, 5),
        (STORE_PAGES, Scene.pages, 2),
        (STORE_PAGES, Scene.changed_pages, 4),
        (STORE_TARGET_ENDS, Scene.ends, 1),
        (RENEW_LEASES, Scene.progresses, 1),
        (CLOSE_ATTEMPTS, Scene.closes, 4),
        (CLOSE_ATTEMPTS, Scene.closes_refused, 5),
        (CLOSE_ATTEMPTS, Scene.closes_unasked, 6),
    ],
)
def test_a_batch_of_any_size_takes_the_same_round_trips(far, kind, items, round_trips, n):
    store, sent = far
    scene = put_back(Scene, store, n)
    given = items(scene)
    with store.begin(now=scene.world.now) as tx:
        sent.clear()
        tx.value("SELECT 1")  # with BEGIN
        kind.run(tx, given)
    # The clock before, COMMIT behind.
    assert len(sent) == 1 + round_trips + 1, sent
    assert scene.world.verification().violations == ()


@pytest.mark.parametrize("n", [1, 20])
def test_leases_are_given_back_in_so_many_round_trips(far, n):
    """Lock them, count what is left, lock their attempts, lock their pairs; the rest goes with COMMIT."""
    store, sent = far
    scene = put_back(Scene, store, n)
    with store.begin(now=scene.world.now) as tx:
        sent.clear()
        held = dict.fromkeys(scene.granted, because(Reason.NODE_DRAINED))
        assert release(tx, held) == len(held)
    assert len(sent) == 5, sent


def test_a_move_of_many_takes_none_of_its_own(far):
    store, sent = far
    scene = put_back(Scene, store, 1)
    ids = scene.world.add("丁", chunks=(True, True))
    with store.begin(now=scene.world.now) as tx:
        sent.clear()
        transitions.move(tx, Transition.ADMIT, [transitions.Move(i) for i in ids])
    assert [text.count("UPDATE") for text in sent] == [1], "one statement for both"


# --- what travels when --------------------------------------------------------------------------------------


class Host(NamedTuple):
    host: str


NAMES = "SELECT host FROM hosts ORDER BY host"


def add(tx, *names):
    tx.insert("hosts", ("host",), [(name,) for name in names])


def names(tx):
    return [name for (name,) in tx.rows(NAMES)]


def stored(store):
    with store.read() as tx:
        return names(tx)


def test_what_is_deferred_travels_with_the_next_statement_which_sees_it(far):
    store, sent = far
    with store.begin():
        sent.clear()
    assert sent == [], "a transaction that says nothing sends nothing"
    with store.begin() as tx:
        sent.clear()
        tx.value("SELECT 1")
        add(tx, *(f"100%s {n}" for n in range(2500)))  # a percent sign is no mark
        tx.later("DELETE FROM hosts WHERE host <> :host", host="100%s 7")
        assert names(tx) == ["100%s 7"]
        add(tx, "a")
        assert [row.host for row in tx.stream(Host, NAMES)] == ["100%s 7", "a"]
        add(tx, "b")
        add(tx, "c")
    begun, looked, *streamed, last = sent
    assert [text.split()[0] for text in (begun, looked, last)] == ["BEGIN;", "INSERT", "INSERT"]
    assert (len(streamed), last.count("INSERT"), last.endswith("COMMIT")) == (2, 2, True)
    assert stored(store) == ["100%s 7", "a", "b", "c"]


def test_a_rollback_drops_what_was_deferred(far):
    store, sent = far
    with pytest.raises(ZeroDivisionError), store.begin() as tx:
        tx.value("SELECT 1")
        add(tx, "a")
        sent.clear()
        raise ZeroDivisionError
    assert sent == ["ROLLBACK"]
    with store.begin() as tx:
        add(tx, "b")
    assert stored(store) == ["b"]


# --- what goes wrong ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("look", [True, False], ids=["at the next statement", "at commit"])
def test_an_error_of_what_was_deferred_is_the_one_it_always_was(store, look):
    with store.begin() as tx:
        add(tx, "a")
    with pytest.raises(Unstorable), store.begin() as tx:
        add(tx, "b")
        add(tx, "a")
        if look:
            names(tx)
    assert stored(store) == ["a"]


def test_a_commit_that_stores_nothing_is_an_error(far):
    store, _ = far
    with pytest.raises(StoreFailed, match="nothing is stored"), store.begin() as tx:
        add(tx, "a")
        with suppress(psycopg2.Error):
            tx.value("SELECT 1 / 0")
    assert stored(store) == []


def test_a_connection_works_on_after_a_commit_that_failed(store):
    with store.connect() as kept:
        with store.begin(kept) as tx:
            add(tx, "a")
        with pytest.raises(Unstorable), store.begin(kept) as tx:
            add(tx, "a")
        with store.begin(kept) as tx:
            add(tx, "b")
    assert stored(store) == ["a", "b"]


def test_a_connection_that_broke_ends_its_transaction_only(postgres_store):
    with pytest.raises(StoreUnavailable), postgres_store.begin() as tx:
        pid = tx.value("SELECT pg_backend_pid()")
        with postgres_store.begin() as other:
            other.value("SELECT pg_terminate_backend(:pid)", pid=pid)
        add(tx, "a")
    with postgres_store.begin() as tx:
        add(tx, "b")
    assert stored(postgres_store) == ["b"]


def test_a_connection_that_wrote_reads_next_in_one_consistent_view(postgres_store):
    with postgres_store.begin() as tx:
        now = tx.now
    with postgres_store.read() as tx:
        level, began = tx.value("SHOW transaction_isolation"), tx.value("SELECT now()")
        assert (level, began) == ("repeatable read", tx.value("SELECT now()"))
        assert began >= now
