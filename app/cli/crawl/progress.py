"""Show live progress on standard error: the same as `status`, or plain lines if it is not a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from rich.console import Group
from rich.live import Live

from app.cli.output import messages
from app.cli.render import Fact, Part, lay_out, text
from app.cli.tables import queue_line
from app.files.harmless import shown
from app.reports.summary import ProgressView, StoredRows
from app.run.setting_fields import Settings
from app.views.durations import seconds
from app.views.fields import extend_row
from app.views.host_waits import describe_wait
from app.views.loop_state import Situation
from app.views.status import StatusView, describe_view, get_status_view
from app.views.words import translate
from tasks.domain.host_wait import UNREACHABLE
from tasks.store.queries import queues as queue_queries
from tasks.store.queries.queues import Stored
from tasks.store.sql.database import Store

_LINE_EVERY_S = 5.0
_READ_EVERY_S = 2.5
_MOST_READING = 0.05
"""Maximum share of time spent on reading the store, so that a large store is read less often."""
_LONGEST_S = 15.0
"""Maximum seconds between a read of the store and the next one."""
_NODES_SHOWN = 16
_WAITS_SHOWN = 5


class Progress:
    """Live progress of a run. `update` may be called from another thread.

    Args:
        begin: highest row numbers of the store at the beginning of the run.
        until_done: True if the run continues while work waits for hosts, which is reported once.
    """

    def __init__(
        self,
        store: Store,
        begin: Stored,
        settings: Settings,
        clock: Callable[[], float] = time.monotonic,
        *,
        until_done: bool = False,
    ) -> None:
        self._store = store
        self._catalog = settings.catalog()
        self._rule = settings.buffer()
        self._says_waiting = until_done
        self._mark = begin
        self._clock = clock
        self._began_s = clock()
        self._next_at_s = 0.0
        self._line_at_s = 0.0
        self._live: Live | None = None

    @contextmanager
    def live(self) -> Iterator[None]:
        """Show progress while the block runs."""
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
        """Show the state of the store, unless it was shown a moment ago."""
        begin_s = self._clock()
        if begin_s < self._next_at_s:
            return
        view = self._read(begin_s - self._began_s)
        if self._live is not None:
            self._live.update(Group(*map(lay_out, text(view))))
        elif not messages.is_terminal and view.seconds >= self._line_at_s:
            self._line_at_s = view.seconds + _LINE_EVERY_S
            for line in list_lines(view):
                messages.print(line)
        self._say_waiting(view)
        end_s = self._clock()
        rest_s = min((end_s - begin_s) / _MOST_READING, _LONGEST_S)
        self._next_at_s = max(begin_s + _READ_EVERY_S, end_s + rest_s)

    def _read(self, at_s: float) -> ProgressView:
        with self._store.read() as tx:
            self._mark = queue_queries.count_stored_since(tx, self._mark)
            status = get_status_view(tx, self._catalog, self._rule)
        added = StoredRows(self._mark.pages, self._mark.reviews)
        return extend_row(ProgressView, status, seconds=at_s, added=added)

    def _say_waiting(self, view: StatusView) -> None:
        """Report once that all remaining work waits for hosts that don't answer, and how a person can end the run."""
        waits = view.waits_for_hosts
        is_waiting = (
            view.state is Situation.RESTING and waits and all(one.cause == UNREACHABLE for one in waits)
        )
        if not self._says_waiting or not is_waiting:
            return
        self._says_waiting = False
        for line in _list_waits(view):
            messages.print(line)
        messages.print(translate("These hosts do not answer. The run goes on as soon as they do."))
        messages.print(translate("Ctrl-C ends the run without loss: the next run goes on from here."))


@text.register
def _(view: ProgressView) -> Iterator[Part]:
    """Yield the same as `status`, shortened to fit the screen, and the counts of this run."""
    stored = translate(
        "{length}; {pages:,} pages and {reviews:,} reviews stored",
        length=seconds(view.seconds),
        pages=view.added.pages,
        reviews=view.added.reviews,
    )
    yield Fact(translate("This run"), stored)
    fewer = replace(
        view, waits_for_hosts=view.waits_for_hosts[:_WAITS_SHOWN], nodes=view.nodes[:_NODES_SHOWN]
    )
    yield from text.dispatch(StatusView)(fewer)


def list_lines(view: ProgressView) -> Iterator[str]:
    """Yield one line about the state, and one line for each of the hosts that most subtasks wait for."""
    yield translate(
        "{at_s:5.0f} s | {queues} | {pages:,} pages, {reviews:,} reviews | {per_s:.1f} pages/s | {state}",
        at_s=view.seconds,
        queues=queue_line(view.queues, all_of_them=False).plain or translate("no subtasks yet"),
        pages=view.added.pages,
        reviews=view.added.reviews,
        per_s=view.pages_per_s,
        state=describe_view(view),
    )
    for line in _list_waits(view):
        yield f"        | {line}"


def _list_waits(view: StatusView) -> Iterator[str]:
    for one in view.waits_for_hosts[:_WAITS_SHOWN]:
        yield shown(describe_wait(one, view.now))
    more = len(view.waits_for_hosts) - _WAITS_SHOWN
    if more > 0:
        yield translate("... and {n} more", n=more)
