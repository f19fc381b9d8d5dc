"""Resources of a process that runs sweeps, and of a worker process for its Celery tasks.

A Celery task is a plain function that gets only a message, so `opened` is the one global of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any

from tasks.domain.errors import TaskError

if TYPE_CHECKING:
    from tasks.domain.grants import Grants
    from tasks.jobs.context import Context
    from tasks.store.queue.leases import Lease
    from tasks.store.sql.database import Store
    from tasks.store.sql.writer import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The resources that the sweeps of a process use.

    Attributes:
        write: runs an operation in a transaction and waits until it is committed.
        report: writes the report of subtasks that wait for a person.
        deliver: makes the reports and exports that are due, and hands them over.
        alerts: finds alerts and sends them to people.
        rises: judges which themes rise. Research runs judge none.
        plan: makes the tasks of new products. The embedded runner does so on its event loop instead.
        fill_seen: fills the shared set of stored pages if it was lost. The embedded runner shares none.
        ending: set when the process should end: a sweep that runs stops at its next step.
    """

    store: Store
    context: Context
    write: Callable[[Operation[Any]], Any]
    report: Callable[[], object]
    deliver: Callable[[], object]
    alerts: Callable[[], object]
    rises: Callable[[], object] = lambda: None
    plan: Callable[[], object] = lambda: None
    fill_seen: Callable[[], object] = lambda: None
    ending: Event = field(default_factory=Event)

    def goes_on(self) -> bool:
        """Return False when the process should end."""
        return not self.ending.is_set()


Crawl = Callable[[Sequence["Lease"]], None]
"""Hands leases to this process's node."""


@dataclass(slots=True)
class Opened:
    """The parts that the queues of this worker process need.

    Attributes:
        grants: asks what hosts grant now.
    """

    control: Control | None = None
    grants: Callable[[], Grants] = dict
    crawl: Crawl | None = None


opened = Opened()


def control() -> Control:
    """Return the resources of the sweeps. Raises TaskError in a process that doesn't serve the queue `control`."""
    if opened.control is None:
        raise TaskError("this worker process does not serve the queue control: start it with -Q control")
    return opened.control


def crawl() -> Crawl:
    """Return this process's node. Raises TaskError in a process that has none."""
    if opened.crawl is None:
        raise TaskError("this worker process has no crawl node: start it with -Q crawl.NODE")
    return opened.crawl
