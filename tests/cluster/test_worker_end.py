"""The end of a scheduler's process: sweeps that run come to their end before what they use is closed."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from types import SimpleNamespace

import pytest
from celery.concurrency.thread import TaskPool
from patience import PATIENCE_S

from app.run.cluster import control_process
from app.run.cluster.celery_app import Runtime
from tasks.jobs import runtime
from tasks.jobs.queues import CONTROL


@pytest.fixture
def worker():
    """A worker with one thread, as a boot step sees it."""
    with ThreadPoolExecutor(max_workers=1) as executor:
        amqp = SimpleNamespace(queues=SimpleNamespace(consume_from={CONTROL: None}))
        app = SimpleNamespace(amqp=amqp, redis_outage=None)
        yield SimpleNamespace(
            pool_cls=TaskPool, pool=SimpleNamespace(executor=executor), app=app, concurrency=1, options={}
        )


def test_a_sweep_that_runs_ends_before_its_resources_are_closed(worker, monkeypatch):
    told: list[str] = []
    begun = Event()
    control = SimpleNamespace(ending=Event())

    @contextmanager
    def opened(_settings, _outage):
        yield runtime.Opened(control)
        told.append("closed")

    def sweep() -> None:
        begun.set()
        assert control.ending.wait(PATIENCE_S), "nobody told it to end"
        told.append("the sweep has ended")

    monkeypatch.setattr(control_process, "open_control", opened)
    monkeypatch.setattr(runtime, "opened", runtime.Opened())
    step = Runtime(worker)
    step.start(worker)
    running = worker.pool.executor.submit(sweep)
    waiting = worker.pool.executor.submit(told.append, "a sweep that waited")
    assert begun.wait(PATIENCE_S)
    step.stop(worker)
    assert told == ["the sweep has ended", "closed"]
    assert running.exception() is None
    assert waiting.cancelled()


def test_planning_that_waits_for_a_host_ends_with_its_process():
    ending = Event()

    async def plan() -> int:
        ending.set()
        await asyncio.Event().wait()
        return 1

    assert asyncio.run(control_process._until_ending(ending, plan())) == 0


def test_planning_gives_what_it_made():
    async def plan() -> int:
        return 3

    assert asyncio.run(control_process._until_ending(Event(), plan())) == 3
