"""The Celery tasks: notifications. Each hands over to what `tasks.jobs.runtime` holds; losing or doubling one does no
harm.

Every message has an expiry, so that none piles up where nobody listens. It is compared with the receiving machine's
clock; `CLOCKS_S` is how far the clocks of the machines may lie apart.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from celery import shared_task
from splitter.split import chunks

from tasks.jobs import runtime, ticks
from tasks.jobs.queues import CLOCKS_S, CONTROL, crawl_queue
from tasks.jobs.repost_linking import link_reposts
from tasks.jobs.run_time_training import train_run_times
from tasks.store.database import Store, read_now
from tasks.store.leases import Lease
from tasks.store.outages import is_outage, is_transient
from tasks.store.retention import drop_old
from tasks.store.writer import Operation

log = logging.getLogger("reviewloop.sweeps")

T = TypeVar("T")
P = ParamSpec("P")


class _Outage:
    """Tells once that the database went away, and once that it is back; used by several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._since_s: float | None = None

    def met(self, what: str, error: BaseException) -> None:
        """A sweep could not run, as the database is away."""
        with self._lock:
            first, self._since_s = self._since_s is None, self._since_s or time.monotonic()
        if first:
            told = str(error).strip().splitlines() or [type(error).__name__]
            log.warning("the database is away, no %s now; sweeps go on with its return: %s", what, told[0])

    def over(self) -> None:
        """A sweep has read and written the database."""
        if self._since_s is None:
            return
        with self._lock:
            since_s, self._since_s = self._since_s, None
        if since_s is not None:
            log.warning("the database is back after %.0f s", time.monotonic() - since_s)


_outage = _Outage()


def _skipped_in_outage(task: Callable[P, None]) -> Callable[P, None]:
    """A sweep that waits for the database's return where it is away: the next message runs it again."""

    @wraps(task)
    def run(*given: P.args, **named: P.kwargs) -> None:
        try:
            task(*given, **named)
        except Exception as error:
            if not is_outage(error):
                raise
            _outage.met(" ".join((task.__name__, *map(str, given))), error)

    return run


@shared_task(name="tick")
@_skipped_in_outage
def tick(name: str) -> None:
    """Run a sweep by its name, or a `turn` of the loop, and notify the nodes of the leases it gave."""
    control = runtime.control()
    with control.turning:
        if not control.goes_on():
            return
        control.context.state.grants = control.grants()
        try:
            with control.store.begin() as conn:
                given = ticks.tick(conn, read_now(conn), control.context, (name,))
        except Exception as error:
            control.context.state.forget()  # its COMMIT may have failed
            if not is_transient(error):
                raise
            log.warning("no %s now: %s", name, str(error).splitlines()[0])
            return
    _outage.over()
    settings = control.context.settings
    # As a rule one message per node, however many leases it gets: a broker delivers one message per round trip.
    for node in sorted({lease.node for lease in given}):
        mine = [lease.as_message() for lease in given if lease.node == node]
        for batch in chunks(mine, settings.lease_batch):
            crawl.apply_async(
                (batch,), queue=crawl_queue(node), expires=settings.recall.silent_after_s + CLOCKS_S
            )


@shared_task(name="plan")
@_skipped_in_outage
def plan() -> None:
    """Make the tasks of new products; then let the loop turn at once."""
    if runtime.control().plan():
        request_turn()


@shared_task(name="report")
@_skipped_in_outage
def report() -> None:
    """Write the report of subtasks that wait for a person."""
    runtime.control().report()


@shared_task(name="alerts")
@_skipped_in_outage
def alerts() -> None:
    """Look what is wrong, and tell people."""
    runtime.control().alerts()


@shared_task(name="deliver")
@_skipped_in_outage
def deliver() -> None:
    """Make the reports and exports that are due, and hand them over; in one thread at a time."""
    control = runtime.control()
    if control.delivering.acquire(blocking=False):
        try:
            control.deliver()
        finally:
            control.delivering.release()


@shared_task(name="seen")
@_skipped_in_outage
def seen() -> None:
    """Fill the shared set of stored pages, where it was lost."""
    runtime.control().fill_seen()


@shared_task(name="reposts")
@_skipped_in_outage
def reposts() -> None:
    """Link reviews whose text is nearly an earlier one's."""
    store = runtime.control().store
    link_reposts(store, partial(_write, store), time.thread_time)


@shared_task(name="retention")
@_skipped_in_outage
def retention() -> None:
    """Drop what is old, in many short transactions."""
    control = runtime.control()
    drop_old(partial(_write, control.store), control.context.settings.keep_log, control.goes_on)


@shared_task(name="train")
@_skipped_in_outage
def train() -> None:
    """Train the run times that `balance` decides by."""
    control = runtime.control()
    if control.context.settings.uses_run_times:
        train_run_times(control.store, partial(_write, control.store), control.goes_on)


def _write(store: Store, operation: Operation[T]) -> T:
    with store.begin() as conn:
        return operation(conn, read_now(conn))


@shared_task(name="crawl")
def crawl(messages: Sequence[Mapping[str, Any]]) -> None:
    """Hand leases to this process's node, which begins them as its slots allow.

    Args:
        messages: of each lease `Lease.as_message`.
    """
    runtime.crawl()([Lease(**message) for message in messages])


def open_broker_connection() -> None:
    """Open the way to the broker that `request_turn` takes; by itself it does so at its first message."""
    with tick.app.producer_pool.acquire(block=True) as producer:
        producer.maybe_declare(tick.app.amqp.queues[CONTROL])


def request_turn() -> None:
    """Let the control worker run the sweeps of a turn soon."""
    tick.apply_async(("turn",), queue=CONTROL, expires=CLOCKS_S)
