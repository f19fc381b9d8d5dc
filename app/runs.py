"""A run of the embedded runner from beginning to end, with its summary: what `run` and `demo` share."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from app import loops
from app.config import Settings
from app.embedded import EmbeddedRunner, Until
from app.summary import Summary, mark, settings_told, summary
from splitter.catalog.model import Kind
from tasks.store.database import Store
from tasks.store.nodes import Node
from tasks.store.reports import Stored


class Watcher(Protocol):
    """Shows a run while it goes on."""

    def shown(self) -> AbstractContextManager[None]:
        """As long as the block runs."""
        ...

    def look(self) -> None:
        """Called about twice a second, from another thread."""
        ...


def nodes_named(count: int, slots: int, *, lab: bool) -> list[Node]:
    """node1, node2, ...: towards the lab each from its own address, otherwise as the system chooses."""
    return [
        Node(f"node{n}", frozenset(Kind), slots, f"127.0.0.{n + 1}" if lab else None)
        for n in range(1, count + 1)
    ]


def run(
    settings: Settings, store: Store, nodes: int, until: Until, watcher: Callable[[Stored], Watcher]
) -> Summary:
    """Run the loop until `until` or a signal.

    Args:
        nodes: how many.
        watcher: made with the mark of where the run begins.
    """
    catalog = settings.catalog()
    rows = nodes_named(nodes, settings.slots, lab=settings.lab is not None)
    begin, began_s = mark(store), time.monotonic()
    watch = watcher(begin)
    with watch.shown():
        loops.run(EmbeddedRunner(settings, catalog, store, rows, until, watch.look).run())
    return summary(store, begin, time.monotonic() - began_s, settings_told(settings, nodes))
