"""Live progress on standard error: queues, nodes, rates, time left; plain lines where there is no terminal."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from app.cli.output import messages, seconds
from app.cli.tables import COLORS, queue_line
from tasks.domain.states import State
from tasks.store import nodes, reports
from tasks.store.database import Store, read_now
from tasks.store.nodes import NodeRow
from tasks.store.reports import Stored, WaitingSummary

_WINDOW_S = 15.0
_LINE_EVERY_S = 5.0
_FEWEST_SETTLED = 5
# Reading the store may take at most this share of the time: a large one is read less often.
_MOST_READING = 0.1
_NODES_SHOWN = 16
_BAR = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The store at a moment of a run.

    Attributes:
        at_s: seconds since the run began.
        added: stored by this run.
        next_in_s: seconds until the first subtask that is held back may go.
    """

    at_s: float
    queues: Mapping[str, int]
    nodes: tuple[NodeRow, ...]
    added: Stored
    load: WaitingSummary
    next_in_s: float

    @property
    def settled(self) -> int:
        """Subtasks for which nothing more happens by itself."""
        return sum(n for name, n in self.queues.items() if State(name).settled)

    @property
    def open(self) -> int:
        """Subtasks that are not settled."""
        return sum(self.queues.values()) - self.settled


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast the run goes, over the last seconds.

    Attributes:
        left: the time left, or why it isn't known.
    """

    pages_per_s: float
    reviews_per_s: float
    left: str


def speed(first: Snapshot, last: Snapshot) -> Speed:
    """The speed between two snapshots. The time left assumes that it stays the same and that no work is added."""
    passed_s = max(0.001, last.at_s - first.at_s)
    settled = last.settled - first.settled
    return Speed(
        (last.added.pages - first.added.pages) / passed_s,
        (last.added.reviews - first.added.reviews) / passed_s,
        _left(last, settled, passed_s),
    )


def _left(last: Snapshot, settled: int, passed_s: float) -> str:
    if not sum(last.queues.values()):
        return "making tasks"
    if not last.open:
        return "nothing left"
    if last.load.delayed and last.open == last.load.delayed:
        return f"{last.load.delayed} held back after failures, the next one goes in {seconds(last.next_in_s)}"
    if settled < _FEWEST_SETTLED:
        return "time left not known yet"
    return f"about {seconds(max(1.0, round(last.open * passed_s / settled)))} left at this rate"


class Progress:
    """Live progress of a run. `update` may be called from another thread.

    Args:
        begin: mark of the store at the beginning of the run.
    """

    def __init__(self, store: Store, begin: Stored, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
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
        while self._snapshots[0].at_s < now.at_s - _WINDOW_S:
            self._snapshots.popleft()
        self._show(now, speed(self._snapshots[0], now))
        end_s = self._clock()
        self._next_at_s = end_s + (end_s - begin_s) / _MOST_READING

    def _read(self, at_s: float) -> Snapshot:
        with self._store.read() as conn:
            now = read_now(conn)
            self._mark = reports.stored_since(conn, self._mark)
            load = reports.waiting_summary(conn, now)
            wait_s = max(0.0, (load.next_at - now).total_seconds()) if load.next_at else 0.0
            return Snapshot(
                at_s=at_s,
                queues=reports.queues(conn),
                nodes=tuple(nodes.listed(conn)),
                added=self._mark,
                load=load,
                next_in_s=wait_s,
            )

    def _show(self, now: Snapshot, fast: Speed) -> None:
        if self._live is not None:
            self._live.update(_picture(now, fast))
        elif not messages.is_terminal and now.at_s >= self._line_at_s:
            self._line_at_s = now.at_s + _LINE_EVERY_S
            messages.print(
                f"{now.at_s:5.0f} s | {queue_line(now.queues, all_of_them=False).plain} | "
                f"{now.added.pages:,} pages, {now.added.reviews:,} reviews | "
                f"{fast.pages_per_s:.1f} pages/s | {fast.left}"
            )


def _picture(now: Snapshot, fast: Speed) -> Group:
    head = Text.assemble(
        (f"{now.at_s:.0f} s  ", "bold"),
        f"{now.added.pages:,} pages ({fast.pages_per_s:.1f}/s)  ",
        f"{now.added.reviews:,} reviews ({fast.reviews_per_s:.1f}/s)  ",
        (fast.left, "dim"),
    )
    return Group(_bar(now.queues), queue_line(now.queues), head, _nodes(now.nodes))


def _bar(queues: Mapping[str, int]) -> Text:
    """All subtasks as one bar, the settled ones first."""
    total = sum(queues.values())
    bar = Text()
    if not total:
        return Text("no subtasks yet", style="dim")
    order = sorted(queues, key=lambda name: not State(name).settled)
    cut = 0.0
    for name in order:
        begin, cut = round(cut), cut + queues[name] / total * _BAR
        bar.append("━" * (round(cut) - begin), style=COLORS[name])
    bar.append(f"  {sum(n for name, n in queues.items() if State(name).settled):,} of {total:,} settled")
    return bar


def _nodes(rows: tuple[NodeRow, ...]) -> Table:
    grid = Table.grid(padding=(0, 2))
    for row in rows[:_NODES_SHOWN]:
        slots = row.node.slots
        busy = min(row.running, slots)
        grid.add_row(
            row.node.name,
            Text.assemble(("●" * busy, "green"), ("○" * (slots - busy), "dim")),
            f"{row.running} running, {row.waiting} held",
            Text("drained" if row.drained else "", style="yellow"),
        )
    if len(rows) > _NODES_SHOWN:
        grid.add_row(f"and {len(rows) - _NODES_SHOWN} more")
    return grid
