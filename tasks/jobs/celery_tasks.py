"""The Celery tasks: notifications, which hand over to the resources in `tasks.jobs.runtime`.

A message that is lost or comes twice does no harm. Every message has an expiry, so that none piles up in a queue
without a worker. It is compared with the clock of the receiving machine, hence `CLOCKS_S`.

Every process of a cluster imports this module. The strategies (numpy) and the store (SQLAlchemy) take 30 MB, so only
the processes that use them import them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from threading import Lock
from typing import Any

from celery import shared_task
from splitter.split import chunks

from tasks.domain.errors import StoreConflict, StoreUnavailable
from tasks.domain.outage import Outage
from tasks.jobs import runtime
from tasks.jobs.queues import CLOCKS_S, CONTROL, crawl_queue
from tasks.jobs.schedule import SWEEPS

log = logging.getLogger("reviewloop.sweeps")


@shared_task(name="sweep")
def sweep(*names: str) -> None:
    """Run sweeps by their names in this order, or a `turn` of the loop.

    Sweeps of the scheduler's transaction share one; if one of them fails, each runs again in its own. If the database
    is away, the next message runs them again. If one fails, the others still run, and the first error is raised at the
    end.
    """
    shared = [name for name in names if _RUN.get(name) is None]
    steps = [shared] if shared else []
    steps += [[name] for name in names if name not in shared]
    failure: Exception | None = None
    while steps:
        step = steps.pop(0)
        try:
            _sweep(step)
        except StoreUnavailable as error:
            runtime.control().store.outage.note_loss(error)
            break
        except Exception as error:
            if len(step) > 1:
                steps = [[name] for name in step] + steps
            else:
                failure = failure or error
    if failure is not None:
        raise failure


def _sweep(names: Sequence[str]) -> None:
    """Run a sweep, or several of the scheduler's transaction."""
    name = names[0]
    if (run := _RUN.get(name)) is None:
        _tick(names)
    elif _alone[name].acquire(blocking=False):
        try:
            run(runtime.control())
        finally:
            _alone[name].release()


_RUN = {one.name: one.run for one in SWEEPS}
_alone = {one.name: Lock() for one in SWEEPS}
_locked = Outage(log, "sweeps wait for other work", "sweeps go on")
_turning = Lock()
"""Held during a tick. The database's lock refuses a second tick. A second one of this process waits instead, or a
node's free slot would go unseen because a sweep happened to run."""


def _tick(names: Sequence[str]) -> None:
    """Run sweeps in the scheduler's transaction, and notify the nodes of the leases that they gave."""
    from tasks.jobs import ticks  # nodes and beat run no sweeps

    control = runtime.control()
    with _turning:
        if not control.goes_on():
            return
        control.context.state.grants = runtime.opened.grants()
        try:
            with control.store.begin() as tx:
                given = ticks.tick(tx, control.context, names)
        except Exception as error:
            control.context.state.forget()  # its COMMIT may have failed
            if not isinstance(error, StoreConflict):
                raise
            _locked.note_loss(f"no {', '.join(names)} now: {error}")
            return
    _locked.note_return()
    control.store.outage.note_return()
    settings = control.context.settings
    # As a rule one message per node, however many leases it gets: a broker delivers one message per round trip.
    for node in sorted({lease.node for lease in given}):
        mine = [asdict(lease) for lease in given if lease.node == node]
        for batch in chunks(mine, settings.lease_batch):
            crawl.apply_async(
                (batch,), queue=crawl_queue(node), expires=settings.recall.silent_after_s + CLOCKS_S
            )


@shared_task(name="crawl")
def crawl(messages: Sequence[Mapping[str, Any]]) -> None:
    """Hand leases to this process's node, which begins them as its slots allow.

    Args:
        messages: the leases, as maps.
    """
    from tasks.store.queue.leases import Lease  # beat opens no store

    runtime.crawl()([Lease(**message) for message in messages])


def open_broker_connection() -> None:
    """Open the connection that `request_turn` uses. Otherwise its first message would open it."""
    with sweep.app.producer_pool.acquire(block=True) as producer:
        producer.maybe_declare(sweep.app.amqp.queues[CONTROL])


def request_turn() -> None:
    """Let the control worker run the sweeps of a turn soon."""
    sweep.apply_async(("turn",), queue=CONTROL, expires=CLOCKS_S)
