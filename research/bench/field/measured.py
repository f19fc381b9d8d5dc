"""One run: a world's lab, `reviewloop run` or `up`, each in a process of its own, and what came of it."""

from __future__ import annotations

import json
import os
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import ColumnElement, func, select

from app.run.cluster.processes import last_lines
from app.run.cluster.servers import PostgresServer
from research.bench.field.processes import command
from research.bench.field.worlds import World, hits
from research.tools.meter import BenchError
from research.tools.processes import running
from splitter.catalog.model import Catalog
from tasks.domain.reasons import Reason
from tasks.domain.states import State, Transition
from tasks.store.sql.database import Store
from tasks.store.sql.tables import attempts, events, pages, subtasks, targets, virtual_tasks
from tasks.store.sql.transaction import Transaction
from tasks.store.verify.verify import verify

SLOTS = 4
OURS = "feedback"
"""The strategy that others are compared with."""

ABLATION: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {f"{OURS}-no-modification": ("--no-modification",), f"{OURS}-no-recall": ("--no-recall",)}
)
"""Our strategy with a part of it switched off: name, options. (Without allocation it is `random`.)"""

SHARES: Mapping[str, float] = MappingProxyType({"half": 0.5, "most": 0.9, "all": 1.0})
"""Shares of the pages that are there whose times are measured."""


class Runner(StrEnum):
    """Which of the two runners."""

    EMBEDDED = "embedded"  # `run`: SQLite, one process
    CLUSTER = "cluster"  # `up`: PostgreSQL, Redis, a Celery worker for each node


_START_AND_END_S: Mapping[Runner, float] = MappingProxyType({Runner.EMBEDDED: 30.0, Runner.CLUSTER: 120.0})
"""Seconds that a run may take to start and to end, in addition to its time."""

_NO_PAGES = frozenset({"robots", "favicon", "login"})
_STOPPED = frozenset({Reason.RUN_STOPS, Reason.WORKER_STOPS})
"""Why attempts are given back when a run is ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Results of a run. Times in seconds from the first request that the lab saw.

    Attributes:
        there: pages that the job's queries list.
        pages: of these, stored in the end; `pages_at_mark`: stored by the mark.
        stored_by_s: how many of them were stored by second 1, 2, ...
        stored_at: by name (see `SHARES`), when that share was stored; None: never.
        ended_s: when the process had ended.
        status: its exit status.
        settled: every subtask is DONE, CANCELLED or MANUAL.
        site_requests, engine_requests: that the lab saw, robots.txt left out.
        subtasks, manual: all of them, and those that wait for a person.
        targets, given_up: all of them, and those given up.
        attempts, released, recalls: how many; those that the end of the run gave back are not among the released.
        run_cpu_s: of the run's processes, their start included; `start_cpu_s`: before the first request.
        load: processes of the machine that wanted a core, on average over the run's last minute; if it is above
            the number of cores, others took part of the run's time.
        violations: that `verify` found.
    """

    there: int
    pages: int
    pages_at_mark: int
    stored_by_s: tuple[int, ...]
    stored_at: Mapping[str, float | None]
    ended_s: float
    status: int
    settled: bool
    site_requests: int
    engine_requests: int
    subtasks: int
    manual: int
    targets: int
    given_up: int
    attempts: int
    released: int
    recalls: int
    run_cpu_s: float
    start_cpu_s: float
    load: float
    violations: int

    @property
    def requests_per_page(self) -> float | None:
        """Requests to sites for each page; None: no page."""
        return self.site_requests / self.pages if self.pages else None

    @property
    def cpu_ms_per_page(self) -> float | None:
        """CPU of the run's processes; None: no page."""
        return 1000 * self.run_cpu_s / self.pages if self.pages else None

    @property
    def ended_well(self) -> bool:
        """True if it ended by itself with status 0, and at most 2 % are MANUAL or given up."""
        few = self.manual <= 0.02 * self.subtasks and self.given_up <= 0.02 * self.targets
        return self.status == 0 and self.settled and few


def run_once(
    world: World, strategy: str, *, seconds: float, mark_s: float, runner: Runner = Runner.EMBEDDED
) -> Measured:
    """Run a world's job from an empty store.

    Args:
        strategy: of allocation, or one of `ABLATION`.
        seconds: the run is ended after so long.
        mark_s: from the first request on.

    Raises:
        BenchError: the lab or the run did not start; with the end of its output.
    """
    with tempfile.TemporaryDirectory(prefix="reviewloop-field-") as name:
        folder = Path(name)
        sites, profile, log = (folder / part for part in ("sites.yaml", "profile.yaml", "log.jsonl"))
        sites.write_text(world.sites_yaml(), "utf-8")
        profile.write_text(world.profile_yaml(), "utf-8")
        seed, own = ("--seed", str(world.seed)), ("--sites", str(sites), "--json")
        lab_options = ("lab", "--port", "0", "--profile", str(profile), "--log", str(log), *seed, *own)
        url = f"sqlite:///{folder / 'run.db'}"
        where = ("up", "--data", str(folder)) if runner is Runner.CLUSTER else ("run", "--db", url, *seed)
        with command(lab_options, folder / "lab.txt") as lab:
            address = "{host}:{port}".format(**json.loads(lab.ready()))
            options = (
                *where, "--until-done", "--for", f"{seconds:g}", "--lab", address, "--nodes", str(world.nodes),
                "--slots", str(SLOTS), *_allocation(strategy), *own, *world.names,
            )  # fmt: skip
            with command(options, folder / "run.txt") as run:
                ended = run.wait(seconds + _START_AND_END_S[runner])
            ended_at, load = datetime.now(UTC), os.getloadavg()[0]
        if not log.exists() or not log.stat().st_size:
            raise BenchError(f"the run asked the lab nothing: {last_lines(folder / 'run.txt')}")
        begin, requests = _requests(log, world.catalog)
        with _database(runner, folder, url) as db, closing(Store.open(db)) as store, store.read() as tx:
            there = frozenset[str]().union(*(task.pages for task in hits(world)))
            rows = tx.engine_connection.execute(select(pages.c.url, pages.c.fetched_at)).all()
            times = sorted((at - begin).total_seconds() for page, at in rows if page in there)
            counted = _counts(tx)
            violations = verify(tx).violations
        return Measured(
            **stored_over_time(times, len(there), mark_s),
            **requests,
            **counted,
            ended_s=round((ended_at - begin).total_seconds(), 1),
            status=ended.status,
            run_cpu_s=round(ended.cpu_s, 2),
            start_cpu_s=round(ended.cpu_before(begin), 2),
            load=round(load, 2),
            violations=len(violations),
        )


def _allocation(strategy: str) -> tuple[str, ...]:
    """Return the options of a strategy, or of ours with a part of it switched off."""
    if strategy in ABLATION:
        return ("--allocation", OURS, *ABLATION[strategy])
    return ("--allocation", strategy)


@contextmanager
def _database(runner: Runner, folder: Path, url: str) -> Iterator[str]:
    """Yield the address of the store that a run left, while it can be read."""
    if runner is Runner.EMBEDDED:
        yield url
        return
    server = PostgresServer(folder / "postgres", folder / "postgres.txt", lambda _line: None)
    with running(server):
        yield server.url


def stored_over_time(times: list[float], there: int, mark_s: float) -> dict[str, Any]:
    """Return fields of `Measured` from the times of the stored pages, ascending, and the number of pages that are there."""
    last_s = int(times[-1]) + 1 if times else 0
    places = {name: max(1, round(share * there)) for name, share in SHARES.items()}
    return {
        "there": there,
        "pages": len(times),
        "pages_at_mark": bisect_right(times, mark_s),
        "stored_by_s": tuple(bisect_right(times, t) for t in range(1, last_s + 1)),
        "stored_at": {
            name: round(times[place - 1], 1) if len(times) >= place else None
            for name, place in places.items()
        },
    }


def _counts(tx: Transaction) -> dict[str, Any]:
    """Return fields of `Measured` from the store: of subtasks, targets and attempts."""

    def by(column: ColumnElement[Any]) -> dict[str, int]:
        rows = tx.engine_connection.execute(select(column, func.count()).group_by(column))
        return {row[0]: row[1] for row in rows}

    states, ends, outcomes = by(subtasks.c.state), by(targets.c.state), by(attempts.c.outcome)
    releases = tx.engine_connection.scalars(
        select(events.c.detail).where(events.c.transition == Transition.RELEASE)
    )
    unplanned = tx.engine_connection.scalar(select(func.count()).where(virtual_tasks.c.planned_at.is_(None)))
    return {
        "settled": not unplanned and all(State(state).settled for state in states),
        "subtasks": sum(states.values()),
        "manual": states.get(State.MANUAL, 0),
        "targets": sum(ends.values()),
        "given_up": ends.get("given_up", 0),
        "attempts": sum(outcomes.values()),
        "released": outcomes.get("released", 0)
        - sum((detail or {}).get("because", {}).get("reason") in _STOPPED for detail in releases),
        "recalls": by(events.c.transition).get(Transition.RECALL, 0),
    }


def _requests(log: Path, catalog: Catalog) -> tuple[datetime, dict[str, Any]]:
    """Return when the lab's time began, and the requests that it saw."""
    engines = {
        (urlsplit(engine.url).hostname or "").removeprefix("www.") for engine in catalog.engines.values()
    }
    entries = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    hosts = [entry["host"].removeprefix("www.") for entry in entries if entry["outcome"] not in _NO_PAGES]
    to_engines = sum(host in engines for host in hosts)
    begin = min(datetime.fromisoformat(entry["wall"]) for entry in entries)
    return begin, {"site_requests": len(hosts) - to_engines, "engine_requests": to_engines}
