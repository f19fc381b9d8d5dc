"""`celery -A app.celery worker -P threads -Q crawl.NODE` by hand; the test plays the scheduler."""

from __future__ import annotations

import platform
import signal
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from celery import Celery
from celery.concurrency.thread import TaskPool
from clusters import PRODUCTS, SITES, Process, add_products, opened, violations
from patience import PATIENCE_S, until
from redis import Redis
from sqlalchemy import func, select

from app.lab import server as lab_server
from app.lab.answers import LabAnswer
from app.lab.faults import decide
from app.run import sweep_wiring
from app.run.cluster.celery_app import Runtime, make_app
from app.run.cluster.control_process import open_control
from app.run.cluster.pulse import last_beat
from app.run.setting_fields import Settings
from splitter.catalog.names import Kind
from splitter.errors import InputError
from tasks.domain.states import State
from tasks.jobs import sweeps
from tasks.jobs.queues import crawl_queue
from tasks.store.queue import leases, nodes
from tasks.store.queue.leases import Grant, Lease
from tasks.store.sql.database import Store
from tasks.store.sql.tables import attempts, subtasks
from tasks.store.sql.tables import pages as page_rows

NODE = "n1"
START_WITHIN = timedelta(seconds=PATIENCE_S)


@dataclass
class Scheduler:
    """Gives leases to one worker and rings its notification, or not."""

    settings: Settings
    store: Store
    app: Celery
    worker: Process

    def grant(self, count: int) -> list[Lease]:
        with self.store.begin() as tx:
            waiting = tx.engine_connection.scalars(
                select(subtasks.c.id)
                .where(subtasks.c.state == State.WAIT)
                .order_by(subtasks.c.id)
                .limit(count)
            ).all()
            assert len(waiting) == count
            grants = [Grant(subtask_id, NODE, 20, PATIENCE_S, {}) for subtask_id in waiting]
            return leases.grant(tx, grants, START_WITHIN)

    def ring(self, lease: Lease, node: str = NODE) -> None:
        self.app.send_task("crawl", ([asdict(lease)],), queue=crawl_queue(node))

    def drain(self, drained: bool) -> None:
        with self.store.begin() as tx:
            nodes.set_drained(tx, NODE, drained)

    def row(self) -> nodes.NodeRow:
        with self.store.read() as tx:
            return next(row for row in nodes.list_nodes(tx) if row.name == NODE)

    def outcomes(self, given: list[Lease]) -> list[str | None]:
        ids = [lease.attempt_id for lease in given]
        with self.store.read() as tx:
            return list(
                tx.engine_connection.scalars(
                    select(attempts.c.outcome).where(attempts.c.id.in_(ids)).order_by(attempts.c.id)
                )
            )

    def states(self, given: list[Lease]) -> set[str]:
        ids = [lease.subtask_id for lease in given]
        with self.store.read() as tx:
            return set(tx.engine_connection.scalars(select(subtasks.c.state).where(subtasks.c.id.in_(ids))))

    def count(self, table) -> int:
        with self.store.read() as tx:
            return tx.engine_connection.execute(select(func.count()).select_from(table)).scalar_one()


@pytest.fixture
def scheduler(web, launch, postgres_url, redis_url, tmp_path):
    """A worker on a planned store."""
    settings = web.settings.replace(
        database_url=postgres_url,
        redis_url=redis_url,
        silent_after_s=PATIENCE_S,
        request_timeout_s=PATIENCE_S,
        address="127.0.0.9",
        kinds=frozenset({Kind.META}),
        pulse_file=str(tmp_path / "pulse"),
        secret_key="signs the messages of the tests",
        keys_folder=str(tmp_path),
    )
    words = ("celery", "-A", "app.celery", "worker", "-P", "threads", "-c", 2, "-Q", crawl_queue(NODE))
    with opened(postgres_url) as store:
        worker = launch(*words, settings=settings)
        add_products(store)
        app = make_app(settings)
        with open_control(settings.replace(address=None), app.redis_outage) as parts:
            parts.control.plan()
            with store.begin() as tx:
                sweeps.admit(tx, sweep_wiring.context(settings, settings.catalog()))
        made = Scheduler(settings, store, app, worker)
        assert made.count(subtasks) == 3 * len(PRODUCTS)
        until(lambda: NODE in worker_names(store), what="the worker registered its node")
        yield made


def worker_names(store: Store) -> set[str]:
    with store.read() as tx:
        return {row.name for row in nodes.list_nodes(tx) if row.seen_at is not None}


def test_a_doubled_or_late_notification_does_nothing(scheduler, redis_url):
    row = scheduler.row()
    shown = (row.name, row.kinds, row.slots, row.address, row.machine)
    assert shown == (NODE, frozenset({Kind.META}), 2, "127.0.0.9", platform.node())
    given = scheduler.grant(3)
    for lease in [*given, *given]:
        scheduler.ring(lease)
    until(lambda: None not in scheduler.outcomes(given), what="attempts ended")
    outcomes = scheduler.outcomes(given)
    stored = scheduler.count(page_rows)
    for lease in given:
        scheduler.ring(lease)
    with Redis.from_url(redis_url) as redis:
        until(lambda: not redis.llen(crawl_queue(NODE)) and not redis.hlen("unacked"), what="all heard")
    assert scheduler.outcomes(given) == outcomes
    assert scheduler.count(attempts) == 3
    assert scheduler.count(page_rows) == stored > 0
    assert not violations(scheduler.store)


def test_a_drained_node_gives_back_what_it_was_never_told_of(scheduler):
    pulse = Path(scheduler.settings.pulse_file)
    assert last_beat(pulse).pid == scheduler.worker.popen.pid
    first = last_beat(pulse)
    scheduler.drain(True)
    given = scheduler.grant(2)
    until(lambda: scheduler.states(given) == {State.WAIT}, what="given back")
    assert scheduler.outcomes(given) == ["released", "released"]
    scheduler.ring(given[0])  # its notification comes after all
    scheduler.drain(False)
    again = scheduler.grant(1)
    until(lambda: not scheduler.row().drained, what="resumed")
    scheduler.ring(again[0])
    until(lambda: None not in scheduler.outcomes(again), what="the attempt ended")
    assert not violations(scheduler.store)
    until(lambda: last_beat(pulse).at_s > first.at_s, what="the loop beats on")


def test_a_worker_told_to_end_gives_back_and_keeps_its_pages(scheduler, monkeypatch):
    given = count()

    def one_page(*asked):
        """Sites give one page; what is asked for after it is under way until the end."""
        decided = decide(*asked)
        is_page = asked[2].host in SITES and decided.answer is LabAnswer.PAGE
        return replace(decided, latency_s=PATIENCE_S) if is_page and next(given) else decided

    monkeypatch.setattr(lab_server, "decide", one_page)
    running, unheard = scheduler.grant(2)
    scheduler.ring(running)
    until(lambda: scheduler.count(page_rows), what="a page of the running attempt")
    scheduler.worker.popen.send_signal(signal.SIGTERM)
    scheduler.worker.ended()
    assert scheduler.outcomes([running, unheard]) == ["released", "released"]
    assert scheduler.states([running, unheard]) == {State.WAIT}
    assert worker_names(scheduler.store) == set()
    assert "Traceback" not in scheduler.worker.told
    assert not violations(scheduler.store)


@pytest.mark.parametrize(
    ("words", "wrong", "told"),
    [
        (("-P", "prefork", "-Q", "crawl.n1"), {}, "-P threads"),
        (("-P", "threads", "-Q", "crawl.n1"), {"redis_url": ""}, "REVIEWLOOP_REDIS_URL"),
    ],
)
def test_a_worker_started_wrongly_says_what_would_be_right(web, launch, words, wrong, told):
    settings = web.settings.replace(
        **{
            "database_url": "postgresql://nobody@127.0.0.1:1/none",
            "redis_url": "redis://127.0.0.1:1/0",
            **wrong,
        },
    )
    worker = launch("celery", "-A", "app.celery", "worker", "-c", 2, *words, settings=settings)
    output, _ = worker.popen.communicate(timeout=PATIENCE_S)
    assert worker.popen.returncode == 2
    assert told in worker.told + output.decode()


@pytest.mark.parametrize(
    ("queues", "told"),
    [
        (("crawl.n1", "crawl.n2"), "names 2: n1, n2"),
        (("celery",), "a worker serves crawl.NODE, control, or both"),
    ],
)
def test_a_worker_of_the_wrong_queues_ends_before_it_opens_anything(queues, told, caplog):
    consumed = SimpleNamespace(queues=SimpleNamespace(consume_from=dict.fromkeys(queues)))
    worker = SimpleNamespace(pool_cls=TaskPool, concurrency=2, options={}, app=SimpleNamespace(amqp=consumed))
    with pytest.raises(SystemExit) as ended:
        Runtime(worker).start(worker)
    assert ended.value.code == 2
    assert told in caplog.text


def test_an_app_whose_database_is_a_file_is_refused():
    with pytest.raises(InputError, match="REVIEWLOOP_DATABASE_URL"):
        make_app(Settings(redis_url="redis://127.0.0.1:1/0", database_url="sqlite:///a.db"))
