"""Resources that a worker process has opened for its Celery tasks (app/run/cluster/worker.py fills it in).

A Celery task is a plain function that is given a message and nothing else, so this is the one global of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event, Lock

from tasks.domain.errors import TaskError
from tasks.domain.grants import Grants
from tasks.jobs.context import Context
from tasks.store.database import Store
from tasks.store.leases import Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The context of the tasks in queue `control`.

    Attributes:
        plan: makes the tasks of new products; returns how many.
        report: writes the report of subtasks that wait for a person.
        deliver: makes the reports and exports that are due, and hands them over.
        fill_seen: fills the shared set of stored pages, where it was lost.
        grants: asks what hosts grant now.
        alerts: looks what is wrong, and tells people.
        turning: held during a tick. The database's lock turns a second tick away; within a process it waits
            instead, or a node's free slot would go unseen because a sweep happened to run.
        delivering: held while files are handed over: a mail server that does not answer holds one thread.
        ending: set once the process is to end: what runs stops at its next step.
    """

    store: Store
    context: Context
    plan: Callable[[], int]
    report: Callable[[], None]
    deliver: Callable[[], object]
    fill_seen: Callable[[], None]
    grants: Callable[[], Grants]
    alerts: Callable[[], None]
    turning: Lock = field(default_factory=Lock)
    delivering: Lock = field(default_factory=Lock)
    ending: Event = field(default_factory=Event)

    def goes_on(self) -> bool:
        """False once the process is to end."""
        return not self.ending.is_set()


Crawl = Callable[[Sequence[Lease]], None]
"""Hands leases to this process's node."""


@dataclass(slots=True)
class Opened:
    """The parts this process has; None: its queues don't need it."""

    control: Control | None = None
    crawl: Crawl | None = None


opened = Opened()


def control() -> Control:
    """The context of ticks. Raises TaskError in a process that doesn't serve the queue `control`."""
    if opened.control is None:
        raise TaskError("this worker process does not serve the queue control: start it with -Q control")
    return opened.control


def crawl() -> Crawl:
    """This process's node. Raises TaskError in a process that has none."""
    if opened.crawl is None:
        raise TaskError("this worker process has no crawl node: start it with -Q crawl.NODE")
    return opened.crawl
