"""The Celery tasks: notifications. Each hands over to what `tasks.jobs.runtime` holds; losing or doubling one does no
harm.

Every message has an expiry, so that none piles up where nobody listens. It is compared with the receiving machine's
clock; `CLOCKS_S` is how far the clocks of the machines may lie apart.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from celery import shared_task
from splitter.split import chunks

from tasks.jobs import runtime, ticks
from tasks.jobs.repost_linking import link_reposts
from tasks.jobs.run_time_training import train_run_times
from tasks.store.database import Store, read_now
from tasks.store.leases import Lease
from tasks.store.writer import Operation

T = TypeVar("T")

CONTROL = "control"
CRAWL_PREFIX = "crawl."
CLOCKS_S = 30.0


def crawl_queue(node: str) -> str:
    """The queue of a node."""
    return CRAWL_PREFIX + node


def node_of(queues: Sequence[str]) -> str | None:
    """The node whose queue is among these; None if there is none.

    Raises:
        ValueError: there are several: a process is one node.
    """
    nodes = sorted(queue.removeprefix(CRAWL_PREFIX) for queue in queues if queue.startswith(CRAWL_PREFIX))
    if len(nodes) > 1:
        raise ValueError(f"a worker process is one node, and -Q names {len(nodes)}: {', '.join(nodes)}")
    return nodes[0] if nodes else None


@shared_task(name="tick")
def tick(name: str) -> None:
    """Run a sweep by its name, or a `turn` of the loop, and notify the nodes of the leases it gave."""
    control = runtime.control()
    with control.turning:
        control.context.state.grants = control.grants()
        with control.store.begin() as conn:
            given = ticks.tick(conn, read_now(conn), control.context, (name,))
    settings = control.context.settings
    # As a rule one message per node, however many leases it gets: a broker delivers one message per round trip.
    for node in sorted({lease.node for lease in given}):
        mine = [lease.as_message() for lease in given if lease.node == node]
        for batch in chunks(mine, settings.lease_batch):
            crawl.apply_async(
                (batch,), queue=crawl_queue(node), expires=settings.recall.silent_after_s + CLOCKS_S
            )


@shared_task(name="plan")
def plan() -> None:
    """Make the tasks of new products; then let the loop turn at once."""
    if runtime.control().plan():
        ask_for_turn()


@shared_task(name="report")
def report() -> None:
    """Write the report of subtasks that wait for a person."""
    runtime.control().report()


@shared_task(name="seen")
def seen() -> None:
    """Fill the shared set of stored pages, where it was lost."""
    runtime.control().fill_seen()


@shared_task(name="reposts")
def reposts() -> None:
    """Link reviews whose text is nearly an earlier one's."""
    store = runtime.control().store
    link_reposts(store, partial(_write, store), time.thread_time)


@shared_task(name="train")
def train() -> None:
    """Train the run times that `balance` decides by."""
    control = runtime.control()
    if control.context.settings.uses_run_times:
        train_run_times(control.store, partial(_write, control.store))


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


def be_ready_to_ask() -> None:
    """Open the way to the broker that `ask_for_turn` takes; by itself it does so at its first message."""
    with tick.app.producer_pool.acquire(block=True) as producer:
        producer.maybe_declare(tick.app.amqp.queues[CONTROL])


def ask_for_turn() -> None:
    """Let the control worker run the sweeps of a turn soon."""
    tick.apply_async(("turn",), queue=CONTROL, expires=CLOCKS_S)
