"""The writer thread: shared transactions, but no operation pays for another's failure."""

import asyncio
import threading
from contextlib import closing

import pytest
from patience import PATIENCE_S
from sqlalchemy.exc import OperationalError

from tasks.domain.errors import StoreConflict, StoreFailed, StoreUnavailable, TaskError, Unstorable
from tasks.store.sql import lasting
from tasks.store.sql.database import Store
from tasks.store.sql.writer import _TRIES, BatchOperation, Writer


@pytest.fixture
def writer(store):
    with closing(Writer(store)) as made:
        yield made


def add(host):
    """Return an operation that adds a host."""

    def operation(tx):
        tx.run("INSERT INTO hosts (host, robots_at) VALUES (:host, :at)", host=host, at=tx.now)
        return host

    return operation


def hosts(store):
    with store.read() as tx:
        return [host for (host,) in tx.rows("SELECT host FROM hosts ORDER BY host")]


class Plug:
    """Keeps the writer busy, so that what is submitted meanwhile makes one batch."""

    def __init__(self, writer):
        self._pulled, running = threading.Event(), threading.Event()

        def wait(_tx):
            running.set()
            assert self._pulled.wait(timeout=PATIENCE_S)

        writer.submit(wait)
        assert running.wait(timeout=PATIENCE_S)

    def pull(self):
        self._pulled.set()


class Recorded:
    """A kind of item that adds hosts; it records what it was given, call by call."""

    def __init__(self, rank=1, calls=None):
        self.calls = [] if calls is None else calls
        self.kind = BatchOperation(rank, self._run)

    def _run(self, tx, names):
        self.calls.append(list(names))
        if "dropped" in names:
            return ["too few"]
        for name in names:
            add(name)(tx)
        if "broken" in names:
            raise ValueError("broken")
        return [name.upper() for name in names]


def write_together(writer, *items, drop=()):
    """Queue operations, and items as (kind, name), as one batch; return the results or errors, except of `drop`."""

    async def story():
        failures = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: failures.append(context))
        plug = Plug(writer)
        waiting = [
            writer.soon(*one) if isinstance(one, tuple) else asyncio.wrap_future(writer.submit(one))
            for one in items
        ]
        for place in drop:
            waiting[place].cancel()
        await asyncio.sleep(0)  # the operations' own futures are cancelled now
        plug.pull()
        kept = [one for place, one in enumerate(waiting) if place not in drop]
        results = await asyncio.gather(*kept, return_exceptions=True)
        assert failures == []
        return results

    return asyncio.run(story())


def test_an_operation_runs_and_its_result_comes_back(writer, store):
    assert writer.call(add("a")) == "a"
    assert asyncio.run(writer.run(add("b"))) == "b"
    assert hosts(store) == ["a", "b"]


def test_an_operation_that_fails_takes_no_other_along(writer, store):
    first, again, broken, last = write_together(
        writer, add("a"), add("a"), lambda tx: [add("x")(tx), 1 / 0], add("b")
    )
    assert (first, last) == ("a", "b")
    assert isinstance(again, Unstorable)
    assert isinstance(broken, ZeroDivisionError)
    assert hosts(store) == ["a", "b"]


def test_a_future_is_done_when_others_can_see_it(writer, store):
    seen = []
    future = writer.submit(add("a"))
    future.add_done_callback(lambda _: seen.append(hosts(store)))
    writer.close()
    assert seen == [["a"]]


def test_what_nobody_waits_for_any_more_is_not_done(writer, store):
    kind = Recorded()
    assert write_together(writer, add("a"), add("b"), (kind.kind, "c"), (kind.kind, "d"), drop=(0, 2)) == [
        "b",
        "D",
    ]
    assert kind.calls == [["d"]]
    assert hosts(store) == ["b", "d"]


def test_what_is_queued_is_committed_on_close_and_nothing_more_is_taken(store):
    writer, kind = Writer(store), Recorded()
    plug = Plug(writer)
    names = [f"h{n:03}" for n in range(200)]
    futures = [writer.submit(add(name)) for name in names]
    plug.pull()
    writer.close()
    writer.close()
    assert all(future.done() for future in futures)
    assert hosts(store) == names

    async def story():
        for put in (writer.soon, writer.later):
            with pytest.raises(TaskError, match="closed"):
                put(kind.kind, "late")

    asyncio.run(story())
    with pytest.raises(TaskError, match="closed"):
        writer.submit(add("late"))
    assert kind.calls == []


def test_submitting_while_it_closes_is_refused_or_done(store):
    """Nothing may come to lie behind the end of the queue, where its future would wait for ever."""
    writer, futures = Writer(store), []
    entered, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    plug, inner = Plug(writer), writer._queue

    class Door:
        get, get_nowait = inner.get, inner.get_nowait

        @staticmethod
        def put(item):
            if item is None:
                ended.set()
            else:
                entered.set()
                assert go_on.wait(timeout=PATIENCE_S)
            inner.put(item)

    writer._queue = Door()
    submitting = threading.Thread(target=lambda: futures.append(writer.submit(add("a"))))
    submitting.start()
    assert entered.wait(timeout=PATIENCE_S)
    closing = threading.Thread(target=writer.close)
    closing.start()
    ended.wait(timeout=0.2)
    go_on.set()
    submitting.join()
    plug.pull()
    closing.join()
    assert futures[0].result(timeout=PATIENCE_S) == "a"


def test_a_transaction_that_cannot_begin_fails_all_that_wait_for_it(store):
    class Broken(Store):
        def begin(self, kept=None):
            raise StoreFailed("gone")

    with closing(Writer(Broken(store.engine))) as writer:
        for host in "ab":
            assert isinstance(writer.submit(add(host)).exception(), StoreFailed)


def test_a_batch_whose_commit_is_unknown_at_the_end_is_not_written_again(writer, monkeypatch):
    monkeypatch.setattr(lasting, "_LAST_S", 0.0)
    writer._closing.set()
    calls = []

    def lost(tx):
        calls.append(tx)
        raise StoreUnavailable("no answer")

    results = write_together(writer, lost, add("a"))
    assert [type(one) for one in results] == [StoreUnavailable] * 2
    assert len(calls) == 1


def test_a_database_that_was_away_at_the_start_is_no_matter_once_it_is_back(store):
    class Away(Store):
        answers = iter([False, True])

        def connect(self):
            if next(self.answers):
                return super().connect()
            raise StoreUnavailable("away")

    with closing(Writer(Away(store.engine))) as writer:
        assert writer.call(add("a")) == "a"


def test_a_deadlock_between_processes_costs_time_but_no_operation(postgres_store):
    with postgres_store.begin() as tx:
        tx.insert("hosts", ("host", "robots"), [("a", ""), ("b", "")])
    both = threading.Barrier(2)

    def note(host, text, *, first):
        """Return an operation that adds a text to a host; both writers hold their first host at the same time."""
        met = threading.Event()

        def run(tx):
            tx.run("SET LOCAL deadlock_timeout = '20ms'")
            tx.run("UPDATE hosts SET robots = robots || :text WHERE host = :host", text=text, host=host)
            if first and not met.is_set():
                met.set()
                both.wait(timeout=PATIENCE_S)
            return text

        return run

    writers = [Writer(postgres_store), Writer(postgres_store)]
    plugs = [Plug(writer) for writer in writers]
    futures = [
        writer.submit(note(host, text, first=first))
        for writer, text, order in zip(writers, "12", ("ab", "ba"), strict=True)
        for host, first in zip(order, (True, False), strict=True)
    ]
    for plug in plugs:
        plug.pull()
    assert [future.result(timeout=PATIENCE_S) for future in futures] == ["1", "1", "2", "2"]
    for writer in writers:
        writer.close()
    with postgres_store.read() as tx:
        assert {"".join(sorted(text)) for (text,) in tx.rows("SELECT robots FROM hosts")} == {"12"}


# --- batches -------------------------------------------------------------------------------------------------


def test_kinds_run_by_rank_in_one_call_each_and_their_items_as_they_came(writer, store):
    calls = []
    third, first = Recorded(3, calls).kind, Recorded(1, calls).kind
    results = write_together(
        writer,
        (third, "y"),
        (first, "b"),
        (third, "x"),
        lambda _tx: calls.append(["an operation"]),
        (first, "a"),
    )
    assert results == ["Y", "B", "X", None, "A"]
    assert calls == [["an operation"], ["b", "a"], ["y", "x"]]
    assert hosts(store) == ["a", "b", "x", "y"]


def test_a_transaction_takes_no_more_than_it_may(store):
    kind = Recorded()
    with closing(Writer(store, most=2)) as writer:
        write_together(writer, *((kind.kind, name) for name in "abcde"))
    assert kind.calls == [["a", "b"], ["c", "d"], ["e"]]


def test_one_item_that_fails_leaves_the_rest_of_its_batch_stored(writer, store):
    calls = []
    second, first = Recorded(2, calls).kind, Recorded(1, calls).kind
    results = write_together(writer, (second, "x"), (first, "a"), (first, "broken"), (first, "b"))
    assert [str(result) for result in results] == ["X", "A", "broken", "B"]
    assert isinstance(results[2], ValueError)
    assert calls == [["a", "broken", "b"], ["a"], ["broken"], ["b"], ["x"]], "one by one, by rank"
    assert hosts(store) == ["a", "b", "x"]


def test_a_batch_that_forgets_a_result_fails_that_item_alone(writer, store):
    kind = Recorded().kind
    assert write_together(writer, (kind, "a"), (kind, "dropped"))[0] == "A"
    assert hosts(store) == ["a"]


class Deadlock(Exception):
    pgcode = "40P01"


@pytest.mark.parametrize("beside", [(), ("b",)], ids=["alone", "with another"])
@pytest.mark.parametrize("times", [1, _TRIES, _TRIES + 1])
def test_an_item_that_loses_deadlocks_is_tried_again_but_not_for_ever(writer, store, times, beside):
    left = [times]

    def losing(tx):
        add("a")(tx)
        if left[0]:
            left[0] -= 1
            raise OperationalError("UPDATE", None, Deadlock())
        return "won"

    kind = Recorded().kind
    result, *others = write_together(writer, losing, *((kind, name) for name in beside))
    assert others == [name.upper() for name in beside]
    if times <= _TRIES:
        assert result == "won"
        assert hosts(store) == ["a", *beside], "what it wrote and lost was rolled back each time"
    else:
        assert isinstance(result, StoreConflict)
        assert hosts(store) == [*beside]


def test_whoever_stops_waiting_too_late_is_written_and_disturbs_nobody(writer, store):
    running, go_on = threading.Event(), threading.Event()
    failures = []

    def slow(tx, names):
        running.set()
        assert go_on.wait(timeout=PATIENCE_S)
        return [add(name)(tx) for name in names]

    async def story():
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: failures.append(context))
        kind, plug = BatchOperation(1, slow), Plug(writer)
        dropped, kept = writer.soon(kind, "a"), writer.soon(kind, "b")
        plug.pull()
        await asyncio.to_thread(running.wait, PATIENCE_S)
        dropped.cancel()
        go_on.set()
        async with asyncio.timeout(PATIENCE_S):
            return await kept

    assert asyncio.run(story()) == "b"
    assert (hosts(store), failures) == (["a", "b"], [])


def test_a_loop_that_is_gone_takes_nobody_along(writer, store):
    plug = Plug(writer)

    async def leave_behind():
        return writer.later(Recorded().kind, "a")

    left = asyncio.run(leave_behind())
    beside = writer.submit(add("b"))
    plug.pull()
    assert beside.result(timeout=PATIENCE_S) == "b"
    assert not left.done()
    assert hosts(store) == ["a", "b"]
