"""Live progress on standard error: queues, nodes, rates, time left; plain lines where there is no terminal."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from app.cli.output import messages
from app.cli.tables import queue_line
from app.files.harmless import shown
from app.views.fields import STYLE_OF
from app.views.host_waits import wait_text
from app.views.loop_state import LoopState, describe_state, read_state
from app.views.words import translate
from splitter.catalog.model import Catalog
from tasks.domain.states import State, count_open
from tasks.fetching.hosts import HostCatalog
from tasks.store.queries import queues as queue_queries
from tasks.store.queries.queues import Stored
from tasks.store.queue.nodes import NodeRow
from tasks.store.sql.database import Store

_WINDOW_S = 15.0
_LINE_EVERY_S = 5.0
_READ_EVERY_S = 2.5
"""Without a terminal the store is read that often: a line comes more seldom still."""
# Reading the store may take at most this share of the time: a large one is read less often.
_MOST_READING = 0.05
_NODES_SHOWN = 16
_WAITS_SHOWN = 5
_SILENT_AFTER = timedelta(seconds=15)
_BAR = 40


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The store at a moment of a run.

    Attributes:
        at_s: seconds since the run began.
        added: stored by this run.
    """

    at_s: float
    added: Stored
    state: LoopState


@dataclass(frozen=True, slots=True)
class Speed:
    """Pages and reviews stored per second, over the last seconds of a run."""

    pages_per_s: float
    reviews_per_s: float


def speed(first: Snapshot, last: Snapshot) -> Speed:
    """The speed between two snapshots."""
    passed_s = max(0.001, last.at_s - first.at_s)
    return Speed(
        (last.added.pages - first.added.pages) / passed_s,
        (last.added.reviews - first.added.reviews) / passed_s,
    )


class Progress:
    """Live progress of a run. `update` may be called from another thread.

    Args:
        begin: mark of the store at the beginning of the run.
        catalog: names the hosts that are waited for.
        until_done: the run goes on while work waits for hosts, which is said once.
    """

    def __init__(
        self,
        store: Store,
        begin: Stored,
        catalog: Catalog,
        clock: Callable[[], float] = time.monotonic,
        *,
        until_done: bool = False,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._hosts = HostCatalog(catalog)
        self._says_waiting = until_done
        self._mark = begin
        self._clock = clock
        self._began_s = clock()
        self._next_at_s = 0.0
        self._line_at_s = 0.0
        self._snapshots: deque[Snapshot] = deque()
        self._live: Live | None = None

    @contextmanager
    def live(self) -> Iterator[None]:
        """Show progress as long as the block runs."""
        if not messages.is_terminal:
            yield
            return
        with Live(console=messages, refresh_per_second=4, transient=True) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def update(self) -> None:
        """Read the store, unless that was done just now, and show it."""
        begin_s = self._clock()
        if begin_s < self._next_at_s:
            return
        now = self._read(begin_s - self._began_s)
        self._snapshots.append(now)
        begin_window_s = now.at_s - _WINDOW_S
        while self._snapshots[0].at_s < begin_window_s:
            self._snapshots.popleft()
        self._show(now, speed(self._snapshots[0], now))
        self._say_waiting(now.state)
        end_s = self._clock()
        least_s = 0.0 if self._live is not None else _READ_EVERY_S
        self._next_at_s = max(begin_s + least_s, end_s + (end_s - begin_s) / _MOST_READING)

    def _read(self, at_s: float) -> Snapshot:
        with self._store.read() as tx:
            self._mark = queue_queries.count_stored_since(tx, self._mark)
            return Snapshot(at_s, self._mark, read_state(tx, self._hosts.of_site, _SILENT_AFTER))

    def _say_waiting(self, state: LoopState) -> None:
        """Say once, plainly, that all that is left waits for hosts that don't answer, and how it ends."""
        if not self._says_waiting or not state.waits or state.open > sum(one.subtasks for one in state.waits):
            return
        if not all(one.unreachable for one in state.waits):
            return
        self._says_waiting = False
        for one in state.waits:
            messages.print(shown(wait_text(one, self._catalog, state.now)))
        messages.print(
            translate("All that is left waits for these hosts, and goes on as soon as they answer.")
        )
        messages.print(translate("Ctrl-C ends the run without loss: the next run goes on from here."))

    def _show(self, now: Snapshot, fast: Speed) -> None:
        if self._live is not None:
            self._live.update(_picture(now, fast, self._catalog))
        elif not messages.is_terminal and now.at_s >= self._line_at_s:
            self._line_at_s = now.at_s + _LINE_EVERY_S
            queues = queue_line(now.state.queues, all_of_them=False).plain or translate("no subtasks yet")
            messages.print(
                translate(
                    "{at_s:5.0f} s | {queues} | {pages:,} pages, {reviews:,} reviews | {per_s:.1f} pages/s | {state}",
                    at_s=now.at_s,
                    queues=queues,
                    pages=now.added.pages,
                    reviews=now.added.reviews,
                    per_s=fast.pages_per_s,
                    state=describe_state(now.state.system),
                )
            )
            for line in wait_lines(now.state, self._catalog):
                messages.print(f"        | {line}")


def _picture(now: Snapshot, fast: Speed, catalog: Catalog) -> Group:
    stored = translate(
        "{pages:,} pages ({pages_per_s:.1f}/s), {reviews:,} reviews ({reviews_per_s:.1f}/s)",
        pages=now.added.pages,
        pages_per_s=fast.pages_per_s,
        reviews=now.added.reviews,
        reviews_per_s=fast.reviews_per_s,
    )
    head = Text.assemble(
        (translate("{n} s", n=f"{now.at_s:.0f}"), "bold"),
        f"  {stored}  ",
        (describe_state(now.state.system), "dim"),
    )
    waits = [
        Text(text, style="yellow", no_wrap=True, overflow="ellipsis")
        for text in wait_lines(now.state, catalog)
    ]
    return Group(_bar(now.state.queues), queue_line(now.state.queues), head, *waits, _nodes(now.state.nodes))


def wait_lines(state: LoopState, catalog: Catalog) -> list[str]:
    """A line for each host that most subtasks wait for."""
    lines = [shown(wait_text(one, catalog, state.now)) for one in state.waits[:_WAITS_SHOWN]]
    more = len(state.waits) - _WAITS_SHOWN
    return [*lines, translate("... and {n} more", n=more)] if more > 0 else lines


def _bar(queues: Mapping[str, int]) -> Text:
    """All subtasks as one bar, the settled ones first."""
    total = sum(queues.values())
    bar = Text()
    if not total:
        return Text(translate("no subtasks yet"), style="dim")
    order = sorted(queues, key=lambda name: not State(name).settled)
    cut = 0.0
    for name in order:
        begin, cut = round(cut), cut + queues[name] / total * _BAR
        bar.append("━" * (round(cut) - begin), style=STYLE_OF[name])
    settled = translate("{n:,} of {total:,} settled", n=total - count_open(queues), total=total)
    bar.append(f"  {settled}")
    return bar


def _nodes(rows: Sequence[NodeRow]) -> Table:
    grid = Table.grid(padding=(0, 2))
    for row in rows[:_NODES_SHOWN]:
        slots = row.slots
        busy = min(row.running, slots)
        grid.add_row(
            row.name,
            Text.assemble(("●" * busy, "green"), ("○" * (slots - busy), "dim")),
            translate("{running} running, {held} held", running=row.running, held=row.waiting),
            Text(translate("drained") if row.drained else "", style="yellow"),
        )
    if len(rows) > _NODES_SHOWN:
        grid.add_row(translate("... and {n} more", n=len(rows) - _NODES_SHOWN))
    return grid
