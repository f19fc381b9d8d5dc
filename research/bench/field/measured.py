"""One run: a world's lab, `reviewloop run` or `up`, and `verify`, each in a process of its own, and what came of it."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from research.bench.field.processes import command, ended_by_sigterm
from research.bench.field.stored import StoredPages, counts, served
from research.bench.field.worlds import World, hits
from splitter.catalog.model import Catalog
from splitter.errors import ReviewloopError
from tasks.store.sql.database import Store

SLOTS = 4
OURS = "feedback"
"""The strategy that others are compared with."""

ABLATION: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {f"{OURS}-no-modification": ("--no-modification",), f"{OURS}-no-recall": ("--no-recall",)}
)
"""Our strategy with a part of it switched off: name, options. (Without allocation it is `random`.)"""


class Runner(StrEnum):
    """Which of the two runners."""

    EMBEDDED = "embedded"  # `run`: SQLite, one process
    CLUSTER = "cluster"  # `up`: PostgreSQL, Redis, a Celery worker for each node


_START_AND_END_S: Mapping[Runner, float] = MappingProxyType({Runner.EMBEDDED: 30.0, Runner.CLUSTER: 120.0})
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
        attempts, released, recalls: how many; those that the end of the run gave back are not among the released.
        most_attempts: of one subtask.
        run_cpu_s: of the run's process, its start included; of a cluster also of its servers and workers.
        lab_cpu_s: of the lab's, its start left out.
        start_cpu_s: of the run's process, before the first request; a cluster's servers and workers left out.
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


def run_once(
    world: World,
    strategy: str,
    *,
    seconds: float,
    mark_s: float,
    slots: int = SLOTS,
    runner: Runner = Runner.EMBEDDED,
    kept: Path | None = None,
) -> Measured:
    """Run a world's job from an empty store.

    Args:
        strategy: of allocation, or one of `ABLATION`.
        seconds: the run is ended after so long.
        mark_s: from the first request on.
        runner: of the two.
        kept: folder for its files, the store's `run.db` among them; None: they are removed.

    Raises:
        ReviewloopError: the lab or the run did not start; with the end of what it said.
    """
    with ended_by_sigterm(), _folder(kept) as folder:
        sites, profile, log = (folder / part for part in ("sites.yaml", "profile.yaml", "log.jsonl"))
        sites.write_text(world.sites_yaml(), "utf-8")
        profile.write_text(world.profile_yaml(), "utf-8")
        seed, own = ("--seed", str(world.seed)), ("--sites", str(sites), "--json")
        lab_options = ("lab", "--port", "0", "--profile", str(profile), "--log", str(log), *seed, *own)
        url = f"sqlite:///{folder / 'run.db'}"
        where = ("up", "--data", str(folder)) if runner is Runner.CLUSTER else ("run", "--db", url, *seed)
        with command(lab_options, folder / "lab.txt", piped=True) as lab:
            ready = lab.first_line()
            if not ready:
                raise ReviewloopError(f"the lab did not start: {_tail(folder / 'lab.txt')}")
            lab_start_cpu_s = lab.cpu_s()
            address = "{host}:{port}".format(**json.loads(ready))
            options = (
                *where, "--until-done", "--for", f"{seconds:g}", "--lab", address, "--nodes", str(world.nodes),
                "--slots", str(slots), *_allocation(strategy), *own, *world.names,
            )  # fmt: skip
            with command(options, folder / "run.txt") as run:
                ended = run.wait(seconds + _START_AND_END_S[runner])
            ended_at, load = datetime.now(UTC), os.getloadavg()[0]
            lab_ended = lab.wait(0)
        if not log.exists() or not log.stat().st_size:
            raise ReviewloopError(f"the run asked the lab nothing: {_tail(folder / 'run.txt')}")
        size = sum(path.stat().st_size for path in folder.glob("run.db*"))
        begin, asked = _requests(log, world.catalog)
        with _database(runner, folder, url) as db, closing(Store.open(db)) as store:
            with command(("verify", "--db", db, "--json"), folder / "verify.txt") as verify:
                verify.wait(_VERIFY_S)
            with store.read() as conn:
                stored = StoredPages.of(conn, begin, hits(world))
            counted = {"database_bytes": size, **counts(store)}
        return Measured(
            **stored.document(mark_s),
            **asked,
            **counted,
            ended_s=round((ended_at - begin).total_seconds(), 1),
            status=ended.status,
            run_cpu_s=round(ended.cpu_s, 2),
            start_cpu_s=round(ended.cpu_before(begin), 2),
            lab_cpu_s=round(lab_ended.cpu_s - lab_start_cpu_s, 2),
            load=round(load, 2),
            violations=_violations(folder / "verify.txt"),
        )


def _allocation(strategy: str) -> tuple[str, ...]:
    """The options of a strategy, or of ours with a part of it switched off."""
    if strategy in ABLATION:
        return ("--allocation", OURS, *ABLATION[strategy])
    return ("--allocation", strategy)


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="reviewloop-field-") as name:
        yield Path(name)


@contextmanager
def _database(runner: Runner, folder: Path, url: str) -> Iterator[str]:
    """The address of the store that a run left behind, while it can be read."""
    if runner is Runner.EMBEDDED:
        yield url
        return
    with served(folder, folder / "postgres.txt") as address:
        yield address


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


def _violations(said: Path) -> int | None:
    """How many violations `verify` printed, among what it said."""
    text = said.read_text("utf-8", "replace")
    try:
        document = json.loads(text[text.index("{") :])
    except ValueError:
        return None
    return len(document["violations"])
