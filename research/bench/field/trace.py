"""Where a run's permits go: by second, those its sites' hosts grant, those used, and what the free ones waited for.

`python -m research.bench.field.trace REGIME SEED [STRATEGY [SECONDS [JOB]]]` makes one run, of the small job unless said, and
prints it. Permits of a site count until its last page is stored. What a free one waited for is looked up every 0.1 s:
the first of `WAITS` that holds.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from sqlalchemy import Connection, select

from research.bench.field.measured import OURS, run_once
from research.bench.field.worlds import JOBS, Regime, World, draw
from tasks.domain.states import State
from tasks.store.database import Store
from tasks.store.tables import attempts, events, pages

WAITS: Mapping[str, str] = {
    "answer": "a request to the site is in flight",
    "next": "an attempt has pages to ask for, and no request in flight",
    "search": "attempts wait for result pages",
    "begin": "leases are given and not begun",
    "WAIT": "subtasks wait to be given to a node",
    "SLEEP": "attempts have ended, their follow-ups are not made",
    "FAILED": "they failed, and are not taken back",
    "PRIORITY": "subtasks are not admitted",
    "rest": "nothing is left to ask for, or nothing is planned yet",
}
_QUEUES = frozenset({State.WAIT, State.SLEEP, State.FAILED, State.PRIORITY})
_SAMPLES = 10
_NO_PAGES = frozenset({"robots", "favicon", "login"})
_NEVER_S = 1e9

Span = tuple[float, float]
"""From, until, in seconds."""

Spans = Mapping[str, Sequence[Span]]
"""By what is waited for, when something was in that state."""


@dataclass(frozen=True, slots=True)
class Site:
    """What happened at one site; times in seconds from the first request.

    Attributes:
        per_s: requests a second that its host grants in all.
        asked: when it got requests.
        spans: see there.
        last_s: when its last page was stored.
    """

    per_s: float
    asked: Sequence[float]
    spans: Spans
    last_s: float

    def waits(self, at: float) -> str:
        """What a free permit waits for."""
        held = (name for name in WAITS if any(begin <= at < end for begin, end in self.spans.get(name, ())))
        return next(held, "rest")


@dataclass(frozen=True, slots=True)
class Second:
    """One second of a run: permits there, of these used, and by what they waited for the free ones."""

    there: float
    used: float
    free: Mapping[str, float]


def by_second(sites: Sequence[Site]) -> list[Second]:
    """Permits of all sites by second, from 0 to the last page."""
    return [_second(sites, number) for number in range(int(max(site.last_s for site in sites)) + 1)]


def _second(sites: Sequence[Site], number: int) -> Second:
    there = used = 0.0
    free: defaultdict[str, float] = defaultdict(float)
    for site in sites:
        granted = site.per_s * min(1.0, max(0.0, site.last_s - number))
        taken = min(granted, sum(number <= at < number + 1 for at in site.asked))
        there, used = there + granted, used + taken
        if granted > taken:
            for place in range(_SAMPLES):
                free[site.waits(number + (place + 0.5) / _SAMPLES)] += (granted - taken) / _SAMPLES
    return Second(there, used, free)


def sites_of(world: World, folder: Path) -> list[Site]:
    """What happened at the sites of a run whose files were kept (`research.bench.field.measured.run_once`)."""
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text("utf-8").splitlines()]
    began = min(datetime.fromisoformat(one["wall"]) for one in log)
    latency_s = {
        (one.host, one.client): one.latency_ms[0] / 1000 for one in world.profile.pairs if one.latency_ms
    }
    asked: defaultdict[str, list[float]] = defaultdict(list)
    spans: defaultdict[str, defaultdict[str, list[Span]]] = defaultdict(lambda: defaultdict(list))
    for one in log:
        host = one["host"].removeprefix("www.")
        if host in world.catalog.sites and one["outcome"] not in _NO_PAGES:
            at = (datetime.fromisoformat(one["wall"]) - began).total_seconds()
            asked[host].append(at)
            spans[host]["answer"].append((at, at + latency_s.get((host, one["client"]), 0.0)))
    last: dict[str, float] = {}
    with closing(Store.open(f"sqlite:///{folder / 'run.db'}")) as store, store.read() as conn:
        for site, name, span in (*_of_attempts(conn, began, asked), *_of_queues(conn, began)):
            spans[site][name].append(span)
        for site, at in conn.execute(select(pages.c.site, pages.c.fetched_at)):
            last[site] = max(last.get(site, 0.0), (at - began).total_seconds())
    return [
        Site((site.limits or world.catalog.limits).total_per_s, asked[name], spans[name], last.get(name, 0.0))
        for name, site in world.catalog.sites.items()
    ]


def _of_attempts(
    conn: Connection, began: datetime, asked: Mapping[str, Sequence[float]]
) -> Iterator[tuple[str, str, Span]]:
    """What attempts were at: site, what, from and until."""
    of = attempts.c
    columns = of.site, of.allocated_at, of.started_at, of.ended_at, of.found
    for row in conn.execute(select(*columns)):
        given, begun, ended = (
            _NEVER_S if at is None else (at - began).total_seconds()
            for at in (row.allocated_at, row.started_at, row.ended_at)
        )
        yield row.site, "begin", (given, begun)
        # Its result pages are read once the site is asked.
        first = next((at for at in asked.get(row.site, ()) if begun <= at < ended), ended)
        yield row.site, "search" if row.found is not None else "next", (begun, first)
        yield row.site, "next", (first, ended)


def _of_queues(conn: Connection, began: datetime) -> Iterator[tuple[str, str, Span]]:
    """When subtasks were in which queue: site, queue, from and until."""
    site_of = {
        row.subtask_id: row.site for row in conn.execute(select(attempts.c.subtask_id, attempts.c.site))
    }
    moves: defaultdict[int, list[tuple[float, str]]] = defaultdict(list)
    for row in conn.execute(
        select(events.c.subtask_id, events.c.at, events.c.to_state).order_by(events.c.id)
    ):
        moves[row.subtask_id].append(((row.at - began).total_seconds(), row.to_state))
    for subtask, of in moves.items():
        for (begin, state), (end, _) in pairwise(of):
            if state in _QUEUES and subtask in site_of:
                yield site_of[subtask], state, (begin, end)


def lines(seconds: Sequence[Second]) -> Iterator[str]:
    """A table, its sums, and what its columns say."""
    yield "second   there    used" + "".join(f"{name:>9}" for name in WAITS)
    for number, one in enumerate(seconds):
        yield f"{number:6}{_row(one)}"
    free = {name: sum(one.free.get(name, 0.0) for one in seconds) for name in WAITS}
    yield f"   all{_row(Second(sum(one.there for one in seconds), sum(one.used for one in seconds), free))}"
    yield from (f"{name}: {what}" for name, what in WAITS.items())


def _row(one: Second) -> str:
    return f"{one.there:8.0f}{one.used:8.0f}" + "".join(f"{one.free.get(name, 0.0):9.1f}" for name in WAITS)


def main(regime: str, seed: str, strategy: str = OURS, seconds: str = "60", job: str = "small") -> None:
    """Make one run and print where its permits went."""
    world = draw(Regime(regime), int(seed), products=JOBS[job])
    with tempfile.TemporaryDirectory() as name:
        run_once(world, strategy, seconds=float(seconds), mark_s=45.0, kept=Path(name))
        sites = sites_of(world, Path(name))
    print("\n".join(lines(by_second(sites))))


if __name__ == "__main__":
    main(*sys.argv[1:])
