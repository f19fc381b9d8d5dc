"""The writer thread: shared transactions, but no operation pays for another's failure."""

import asyncio
import threading

import pytest
from patience import PATIENCE_S
from sqlalchemy import insert, select, update
from sqlalchemy.exc import OperationalError

from tasks.domain.errors import StoreConflict, StoreFailed, StoreUnavailable, TaskError, Unstorable
from tasks.store.sql.database import Store
from tasks.store.sql.tables import hosts
from tasks.store.sql.writer import _TRIES, BatchOperation, Writer


@pytest.fixture
def writer(store):
    made = Writer(store)
    yield made
    made.close()


def _add(host):
    def add(tx):
        tx.engine_connection.execute(insert(hosts).values(host=host, robots_at=tx.now))
        return host

    return add


def _hosts(store):
    with store.read() as tx:
        return list(tx.engine_connection.scalars(select(hosts.c.host).order_by(hosts.c.host)))


class _Plug:
    """Keeps the writer busy, so that what is submitted meanwhile makes one batch."""

    def __init__(self, writer):
        self._pulled = threading.Event()
        running = threading.Event()

        def wait(_conn):
            running.set()
            assert self._pulled.wait(timeout=PATIENCE_S)

        writer.submit(wait)
        assert running.wait(timeout=PATIENCE_S)

    def pull(self):
        self._pulled.set()


def test_an_operation_runs_and_its_result_comes_back(writer, store):
    assert writer.call(_add("a")) == "a"
    assert asyncio.run(writer.run(_add("b"))) == "b"
    assert _hosts(store) == ["a", "b"]


def test_one_that_fails_takes_no_other_along(writer, store):
    plug = _Plug(writer)
    first, again, broken, last = (
        writer.submit(operation)
        for operation in (_add("a"), _add("a"), lambda tx: [_add("x")(tx), 1 / 0], _add("b"))
    )
    plug.pull()
    assert (first.result(), last.result()) == ("a", "b")
    assert isinstance(again.exception(), Unstorable)
    assert isinstance(broken.exception(), ZeroDivisionError)
    assert _hosts(store) == ["a", "b"]


def test_a_future_is_done_when_others_can_see_it(writer, store):
    seen = []
    future = writer.submit(_add("a"))
    future.add_done_callback(lambda _: seen.append(_hosts(store)))
    future.result()
    writer.close()
    assert seen == [["a"]]


def test_what_nobody_waits_for_any_more_is_not_done(writer, store):
    plug = _Plug(writer)
    dropped, kept = writer.submit(_add("a")), writer.submit(_add("b"))
    assert dropped.cancel()
    plug.pull()
    kept.result()
    assert _hosts(store) == ["b"]


def test_what_is_queued_is_committed_on_close(store):
    writer = Writer(store)
    plug = _Plug(writer)
    names = [f"h{n:03}" for n in range(200)]
    futures = [writer.submit(_add(name)) for name in names]
    plug.pull()
    writer.close()
    writer.close()
    assert all(future.done() for future in futures)
    assert _hosts(store) == names
    with pytest.raises(TaskError, match="closed"):
        writer.submit(_add("late"))


def test_submitting_while_it_closes_is_refused_or_done(store):
    """Nothing may come to lie behind the end of the queue, where its future would wait for ever."""
    writer = Writer(store)
    entered, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    plug = _Plug(writer)
    inner = writer._queue
    futures = []

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
    submitting = threading.Thread(target=lambda: futures.append(writer.submit(_add("a"))))
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

    writer = Writer(Broken(store.engine))
    assert isinstance(writer.submit(_add("a")).exception(), StoreFailed)
    assert isinstance(writer.submit(_add("b")).exception(), StoreFailed)
    writer.close()


def test_a_database_that_was_away_at_the_start_is_no_matter_once_it_is_back(store):
    class Away(Store):
        answers = iter([False, True])

        def connect(self):
            if next(self.answers):
                return super().connect()
            raise StoreUnavailable("away")

    writer = Writer(Away(store.engine))
    assert writer.call(_add("a")) == "a"
    writer.close()


def test_a_deadlock_between_processes_costs_time_but_no_operation(postgres_store):
    with postgres_store.begin() as tx:
        tx.engine_connection.execute(insert(hosts), [{"host": "a"}, {"host": "b"}])
    both = threading.Barrier(2)

    def note(host, text, *, first):
        met = threading.Event()

        def run(tx):
            tx.engine_connection.exec_driver_sql("SET LOCAL deadlock_timeout = '20ms'")
            row = hosts.c.host == host
            before = tx.engine_connection.scalar(select(hosts.c.robots).where(row).with_for_update()) or ""
            tx.engine_connection.execute(update(hosts).where(row).values(robots=before + text))
            if first and not met.is_set():
                met.set()
                both.wait(timeout=PATIENCE_S)
            return text

        return run

    writers = [Writer(postgres_store), Writer(postgres_store)]
    plugs = [_Plug(writer) for writer in writers]
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
        assert {"".join(sorted(text)) for text in tx.engine_connection.scalars(select(hosts.c.robots))} == {
            "12"
        }


# --- batches -------------------------------------------------------------------------------------------------


class Recorded:
    """A kind of item that adds hosts, and remembers what it was given, call by call."""

    def __init__(self, rank=1, calls=None):
        self.calls = [] if calls is None else calls
        self.kind = BatchOperation(rank, self._run)

    def _run(self, tx, names):
        self.calls.append(list(names))
        if "dropped" in names:
            return ["too few"]
        for name in names:
            tx.engine_connection.execute(insert(hosts).values(host=name, robots_at=tx.now))
        if "broken" in names:
            raise ValueError("broken")
        return [name.upper() for name in names]


class Patient(threading.Event):
    """Lingers until somebody hurries, however long that takes; remembers how long it was to linger."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def wait(self, timeout=None):
        self.asked.append(timeout)
        return super().wait(PATIENCE_S)


def test_what_comes_together_is_written_in_one_call(writer, store):
    kind = Recorded()

    async def story():
        plug = _Plug(writer)
        waiting = [writer.soon(kind.kind, name) for name in "bac"]
        plug.pull()
        return list(await asyncio.gather(*waiting))

    assert asyncio.run(story()) == ["B", "A", "C"]
    assert kind.calls == [["b", "a", "c"]]
    assert _hosts(store) == ["a", "b", "c"]


def test_grains_run_by_rank_and_their_items_as_they_came(writer):
    calls = []
    third, first = Recorded(3, calls), Recorded(1, calls)

    async def story():
        plug = _Plug(writer)
        waiting = [
            writer.soon(third.kind, "x"),
            writer.soon(first.kind, "a"),
            writer.soon(third.kind, "y"),
            writer.run(lambda _tx: calls.append(["an operation"])),
            writer.soon(first.kind, "b"),
        ]
        operation = asyncio.ensure_future(waiting[3])
        await asyncio.sleep(0)
        plug.pull()
        await asyncio.gather(*waiting[:3], operation, waiting[4])

    asyncio.run(story())
    assert calls == [["an operation"], ["a", "b"], ["x", "y"]]


@pytest.mark.parametrize("who", ["hurry", "soon", "submit", "close"])
def test_what_may_linger_waits_for_whoever_may_not(store, who):
    writer, kind = Writer(store), Recorded()
    writer._hurry = Patient()

    async def story():
        waiting = [writer.later(kind.kind, name) for name in "ab"]
        assert kind.calls == []
        match who:
            case "hurry":
                writer.hurry()
            case "soon":
                waiting.append(writer.soon(kind.kind, "c"))
            case "submit":
                writer.submit(lambda _tx: None)
            case "close":
                await asyncio.to_thread(writer.close)
        return list(await asyncio.gather(*waiting))

    told = asyncio.run(story())
    writer.close()
    assert kind.calls == [[name.lower() for name in told]]
    assert _hosts(store) == [name.lower() for name in told]


def test_what_lingers_is_written_though_nobody_hurries(writer):
    async def story():
        return await writer.later(Recorded().kind, "a")

    assert asyncio.run(story()) == "A"


def test_it_lingers_the_longer_the_longer_a_transaction_takes_within_bounds(store):
    seconds = iter([0.0, 0.02, 1.0, 2.0, 3.0, 3.001])
    writer = Writer(store, clock=lambda: next(seconds))
    writer._hurry = patient = Patient()
    for name in "abc":
        writer.call(_add(name))
    writer.close()
    assert patient.asked == [0.05, 0.2, 0.25]


def test_a_transaction_takes_no_more_than_it_may(store):
    writer, kind = Writer(store, most=2), Recorded()

    async def story():
        plug = _Plug(writer)
        waiting = [writer.later(kind.kind, name) for name in "abcde"]
        plug.pull()
        await asyncio.gather(*waiting)

    asyncio.run(story())
    writer.close()
    assert kind.calls == [["a", "b"], ["c", "d"], ["e"]]


def test_one_item_that_fails_leaves_the_rest_of_its_batch_stored(writer, store):
    calls = []
    second, first = Recorded(2, calls), Recorded(1, calls)

    async def story():
        plug = _Plug(writer)
        waiting = [
            writer.soon(second.kind, "x"),
            writer.soon(first.kind, "a"),
            writer.soon(first.kind, "broken"),
            writer.soon(first.kind, "b"),
        ]
        plug.pull()
        return list(await asyncio.gather(*waiting, return_exceptions=True))

    *told, _ = told_all = asyncio.run(story())
    assert [str(result) for result in told_all] == ["X", "A", "broken", "B"]
    assert isinstance(told[2], ValueError)
    assert calls == [["a", "broken", "b"], ["a"], ["broken"], ["b"], ["x"]], "one by one, by rank"
    assert _hosts(store) == ["a", "b", "x"]


def test_a_batch_that_forgets_a_result_fails_that_item_alone(writer, store):
    kind = Recorded()

    async def story():
        plug = _Plug(writer)
        waiting = [writer.soon(kind.kind, name) for name in ("a", "dropped")]
        plug.pull()
        return list(await asyncio.gather(*waiting, return_exceptions=True))

    told = asyncio.run(story())
    assert told[0] == "A"
    assert _hosts(store) == ["a"]


class _Deadlock(Exception):
    pgcode = "40P01"


@pytest.mark.parametrize("beside", [(), ("b",)], ids=["alone", "with another"])
@pytest.mark.parametrize("times", [1, _TRIES, _TRIES + 1])
def test_an_item_that_loses_deadlocks_is_tried_again_but_not_for_ever(writer, store, times, beside):
    kind, lost = Recorded(), 0

    def losing(tx):
        nonlocal lost
        _add("a")(tx)
        if lost < times:
            lost += 1
            raise OperationalError("UPDATE", None, _Deadlock())
        return "won"

    async def story():
        plug = _Plug(writer)
        running = asyncio.ensure_future(writer.run(losing))
        await asyncio.sleep(0)
        others = [writer.soon(kind.kind, name) for name in beside]
        plug.pull()
        return list(await asyncio.gather(running, *others, return_exceptions=True))

    told, *others = asyncio.run(story())
    assert others == [name.upper() for name in beside]
    if times <= _TRIES:
        assert told == "won"
        assert _hosts(store) == ["a", *beside], "what it wrote and lost was rolled back each time"
    else:
        assert isinstance(told, StoreConflict)
        assert _hosts(store) == [*beside]


def test_whoever_stops_waiting_in_time_is_not_written_and_disturbs_nobody(writer, store):
    kind = Recorded()
    disturbed = []

    async def story():
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: disturbed.append(context))
        plug = _Plug(writer)
        dropped, kept = writer.soon(kind.kind, "a"), writer.soon(kind.kind, "b")
        dropped.cancel()
        plug.pull()
        return await kept

    assert asyncio.run(story()) == "B"
    assert (kind.calls, disturbed) == ([["b"]], [])


def test_whoever_stops_waiting_too_late_is_written_and_disturbs_nobody(writer, store):
    running, go_on = threading.Event(), threading.Event()
    disturbed = []

    def slow(tx, names):
        running.set()
        assert go_on.wait(timeout=PATIENCE_S)
        return [_add(name)(tx) for name in names]

    async def story():
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: disturbed.append(context))
        kind = BatchOperation(1, slow)
        plug = _Plug(writer)
        dropped, kept = writer.soon(kind, "a"), writer.soon(kind, "b")
        plug.pull()
        await asyncio.to_thread(running.wait, PATIENCE_S)
        dropped.cancel()
        go_on.set()
        async with asyncio.timeout(PATIENCE_S):
            return await kept

    assert asyncio.run(story()) == "b"
    assert (_hosts(store), disturbed) == (["a", "b"], [])


def test_a_loop_that_is_gone_takes_nobody_along(writer, store):
    kind = Recorded()
    plug = _Plug(writer)

    async def leave_behind():
        return writer.later(kind.kind, "a")

    left = asyncio.run(leave_behind())
    beside = writer.submit(_add("b"))
    plug.pull()
    assert beside.result(timeout=PATIENCE_S) == "b"
    assert not left.done()
    assert _hosts(store) == ["a", "b"]


def test_a_closed_writer_takes_nothing_more(store):
    writer, kind = Writer(store), Recorded()
    writer.close()

    async def story():
        for put in (writer.soon, writer.later):
            with pytest.raises(TaskError, match="closed"):
                put(kind.kind, "a")
        with pytest.raises(TaskError, match="closed"):
            await writer.run(_add("a"))

    asyncio.run(story())
    assert kind.calls == []
