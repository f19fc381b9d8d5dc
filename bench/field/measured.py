"""One run: a world's lab, `reviewloop run` and `verify`, each in a process of its own, and what came of it."""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.field.processes import command, ended_by_sigterm
from bench.field.worlds import TaskHits, World, hits
from splitter.catalog.model import Catalog
from splitter.errors import ReviewloopError
from tasks.domain.states import State

SLOTS = 4
SHARES = {"half": 0.5, "most": 0.9, "all": 1.0}
"""Shares of what is there whose times are measured."""

_START_AND_END_S = 30.0
"""A run has so long to start and to end, besides its time."""

_VERIFY_S = 120.0
_NO_PAGES = frozenset({"robots", "favicon", "login"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What came of a run. Times in seconds from the first request the lab saw.

    Attributes:
        there: pages that the job's queries list.
        pages: of these, stored in the end.
        others: stored pages that none of these queries lists.
        pages_at_mark: stored by the mark.
        stored_by_s: how many of them were stored by second 1, 2, ...
        stored_at: by name (see `SHARES`), when that share was stored; None: never.
        ended_s: when the process had ended.
        status: its exit status.
        settled: every subtask is DONE, CANCELLED or MANUAL.
        site_requests, engine_requests: that the lab saw, robots.txt left out.
        site_outcomes: of the requests to sites, by what they were answered.
        subtasks, manual: all of them, and those that wait for a person.
        targets, given_up: all of them, and those given up.
        attempts, released, recalls: how many.
        most_attempts: of one subtask.
        run_cpu_s: of the run's process, its start included.
        lab_cpu_s: of the lab's, its start left out.
        start_cpu_s: of the run's process, before the first request.
        database_bytes: its size in the end.
        load: processes of the machine that wanted a core, on average over the run's last minute; where it is above
            the number of cores, others took part of the run's time.
        violations: that `verify` found; None: it said nothing.
    """

    there: int
    pages: int
    others: int
    pages_at_mark: int
    stored_by_s: tuple[int, ...]
    stored_at: Mapping[str, float | None]
    ended_s: float
    status: int
    settled: bool
    site_requests: int
    engine_requests: int
    site_outcomes: Mapping[str, int]
    subtasks: int
    manual: int
    targets: int
    given_up: int
    attempts: int
    released: int
    recalls: int
    most_attempts: int
    run_cpu_s: float
    start_cpu_s: float
    lab_cpu_s: float
    database_bytes: int
    load: float
    violations: int | None

    @property
    def requests_per_page(self) -> float | None:
        """Requests to sites for each page; None: no page."""
        return self.site_requests / self.pages if self.pages else None

    @property
    def cpu_ms_per_page(self) -> float | None:
        """Of the run's process; None: no page."""
        return 1000 * self.run_cpu_s / self.pages if self.pages else None

    @property
    def crawl_cpu_ms_per_page(self) -> float | None:
        """The same, from the first request on."""
        return 1000 * (self.run_cpu_s - self.start_cpu_s) / self.pages if self.pages else None

    @property
    def released_share(self) -> float:
        """Of all attempts."""
        return self.released / max(1, self.attempts)

    @property
    def ended_well(self) -> bool:
        """True where it ended by itself with status 0, and at most 2 % are MANUAL or given up."""
        few = self.manual <= 0.02 * self.subtasks and self.given_up <= 0.02 * self.targets
        return self.status == 0 and self.settled and few

    def document(self) -> dict[str, Any]:
        """All of it, as JSON."""
        return asdict(self)


def run_once(world: World, strategy: str, *, seconds: float, mark_s: float, slots: int = SLOTS) -> Measured:
    """Run a world's job from an empty store.

    Args:
        strategy: of allocation.
        seconds: the run is ended after so long.
        mark_s: from the first request on.

    Raises:
        ReviewloopError: the lab or the run did not start; with the end of what it said.
    """
    with ended_by_sigterm(), tempfile.TemporaryDirectory(prefix="reviewloop-field-") as name:
        folder = Path(name)
        sites, profile, log, db = (
            folder / part for part in ("sites.yaml", "profile.yaml", "log.jsonl", "run.db")
        )
        sites.write_text(world.sites_yaml(), "utf-8")
        profile.write_text(world.profile_yaml(), "utf-8")
        own = ("--seed", str(world.seed), "--sites", str(sites), "--json")
        lab_options = ("lab", "--port", "0", "--profile", str(profile), "--log", str(log), *own)
        url = f"sqlite:///{db}"
        with command(lab_options, folder / "lab.txt", piped=True) as lab:
            ready = lab.first_line()
            if not ready:
                raise ReviewloopError(f"the lab did not start: {_tail(folder / 'lab.txt')}")
            lab_start_cpu_s = lab.cpu_s()
            address = "{host}:{port}".format(**json.loads(ready))
            options = (
                "run", "--until-done", "--for", f"{seconds:g}", "--lab", address, "--nodes", str(world.nodes),
                "--slots", str(slots), "--allocation", strategy, "--db", url, *own, *world.names,
            )  # fmt: skip
            with command(options, folder / "run.txt") as run:
                ended = run.wait(seconds + _START_AND_END_S)
            ended_at, load = datetime.now(UTC), os.getloadavg()[0]
            lab_ended = lab.wait(0)
        if not db.exists() or not log.stat().st_size:
            raise ReviewloopError(f"the run asked the lab nothing: {_tail(folder / 'run.txt')}")
        size = sum(path.stat().st_size for path in folder.glob("run.db*"))
        with command(("verify", "--db", url, "--json"), folder / "verify.txt") as verify:
            verify.wait(_VERIFY_S)
        begin, asked = _requests(log, world.catalog)
        stored = _stored(db, begin, hits(world))
        return Measured(
            **stored.document(mark_s),
            **asked,
            **_counts(db),
            ended_s=round((ended_at - begin).total_seconds(), 1),
            status=ended.status,
            run_cpu_s=round(ended.cpu_s, 2),
            start_cpu_s=round(ended.cpu_before(begin), 2),
            lab_cpu_s=round(lab_ended.cpu_s - lab_start_cpu_s, 2),
            database_bytes=size,
            load=round(load, 2),
            violations=_violations(folder / "verify.txt"),
        )


def _tail(path: Path) -> str:
    return path.read_text("utf-8", "replace")[-500:].strip()


def _requests(log: Path, catalog: Catalog) -> tuple[datetime, dict[str, Any]]:
    """When the lab's time began, and what it was asked."""
    engines = {_bare(urlsplit(engine.url).hostname or "") for engine in catalog.engines.values()}
    begin: datetime | None = None
    to_engines, outcomes = 0, Counter[str]()
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            at = datetime.fromisoformat(entry["wall"])
            begin = at if begin is None else min(begin, at)
            if entry["outcome"] in _NO_PAGES:
                continue
            if _bare(entry["host"]) in engines:
                to_engines += 1
            else:
                outcomes[entry["outcome"]] += 1
    assert begin is not None  # the log is not empty
    return begin, {
        "site_requests": outcomes.total(),
        "engine_requests": to_engines,
        "site_outcomes": dict(outcomes.most_common()),
    }


def _bare(host: str) -> str:
    return host.removeprefix("www.")


@dataclass(frozen=True, slots=True)
class _Stored:
    """Times at which pages were stored, ascending, and how many are there."""

    there: int
    times: tuple[float, ...]
    others: int

    def document(self, mark_s: float) -> dict[str, Any]:
        """Fields of `Measured`."""
        last_s = int(self.times[-1]) + 1 if self.times else 0
        return {
            "there": self.there,
            "pages": len(self.times),
            "others": self.others,
            "pages_at_mark": bisect_right(self.times, mark_s),
            "stored_by_s": tuple(bisect_right(self.times, t) for t in range(1, last_s + 1)),
            "stored_at": {name: self._time_of(share) for name, share in SHARES.items()},
        }

    def _time_of(self, share: float) -> float | None:
        place = max(1, round(share * self.there))
        return round(self.times[place - 1], 1) if len(self.times) >= place else None


def _stored(db: Path, begin: datetime, tasks: Sequence[TaskHits]) -> _Stored:
    there = frozenset().union(*(task.pages for task in tasks))
    with closing(sqlite3.connect(db)) as conn:
        rows = conn.execute("SELECT url, fetched_at FROM pages").fetchall()
    times = sorted(
        (datetime.fromisoformat(at).replace(tzinfo=UTC) - begin).total_seconds()
        for url, at in rows
        if url in there
    )
    return _Stored(len(there), tuple(times), len(rows) - len(times))


def _counts(db: Path) -> dict[str, Any]:
    with closing(sqlite3.connect(db)) as conn:
        states = dict(conn.execute("SELECT state, count(*) FROM subtasks GROUP BY state").fetchall())
        targets = dict(conn.execute("SELECT state, count(*) FROM targets GROUP BY state").fetchall())
        outcomes = dict(conn.execute("SELECT outcome, count(*) FROM attempts GROUP BY outcome").fetchall())
        most = "SELECT max(n) FROM (SELECT count(*) AS n FROM attempts GROUP BY subtask_id)"
        (most_attempts,) = conn.execute(most).fetchone()
        recalls = "SELECT count(*) FROM events WHERE transition = 'recall'"
        (recalled,) = conn.execute(recalls).fetchone()
        unplanned = "SELECT count(*) FROM virtual_tasks WHERE planned_at IS NULL"
        (to_plan,) = conn.execute(unplanned).fetchone()
    return {
        "settled": not to_plan and all(State(state).settled for state in states),
        "subtasks": sum(states.values()),
        "manual": states.get("MANUAL", 0),
        "targets": sum(targets.values()),
        "given_up": targets.get("given_up", 0),
        "attempts": sum(outcomes.values()),
        "released": outcomes.get("released", 0),
        "recalls": recalled,
        "most_attempts": most_attempts or 0,
    }


def _violations(said: Path) -> int | None:
    """How many violations `verify` printed, among what it said."""
    text = said.read_text("utf-8", "replace")
    try:
        document = json.loads(text[text.index("{") :])
    except ValueError:
        return None
    return len(document["violations"])
