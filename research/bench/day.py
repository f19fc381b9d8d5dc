"""A day in the life: real product titles on today's sites, over a real cluster and the lab, from start to `verify`.

The lab is started, then the cluster that ``reviewloop up --until-done`` starts (PostgreSQL, Redis, scheduler, beat, a
worker process a node); when all is done, the event log is proved. The catalog is the project's own with its limits
raised, for the lab is nobody's site: the machine and the faults of the lab's profile, not politeness, say how long it
takes. Nobody signs in: the lab's profile has no wall.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from threading import Event, Thread
from typing import Any

import yaml
from sqlalchemy import Connection, func, select

from app.actions.products import new_product
from app.cli.crawling import _run_settings
from app.reports.summary import Summary, mark, summary
from app.run import open_store
from app.run.cluster import processes
from app.run.cluster.processes import Program
from app.run.cluster.supervisor import Cluster
from app.run.nodes import numbered_nodes
from app.run.settings import Settings, as_environment
from app.run.until import Until
from app.run.version import ROOT
from splitter.catalog.load import load_catalog
from splitter.errors import InputError, ReviewloopError
from tasks.store import products as products_table
from tasks.store import reports
from tasks.store.database import Store, read_now
from tasks.store.manual import ManualRow
from tasks.store.tables import attempts as attempts_table
from tasks.store.verify import verify

_TITLES = ("taobao_titles_ner.conll", "jd_titles_ner.conll")
_LIMITS = {"per_address_per_s": 1000, "total_per_s": 10000}
_LOOK_EVERY_S = 5.0
_SLOTS = 16
_STAGES = (0.5, 0.9, 0.99)
_CAUSES_TOLD = 12
_OTHER = "other"
_POINTS_TOLD = 20


def run(
    shared: Path, *, products: int = 500, sites: int = 40, nodes: int = 8, profile: str = "day"
) -> dict[str, Any]:
    """Crawl a day's work.

    Args:
        shared: folder of the shared data: the titles and the texts of the lab's pages.
        products: how many titles.
        sites: of how many sites.
        nodes: how many worker processes crawl.
        profile: of the lab.

    Returns:
        ``ratios``: `pages_per_s`, `tasks_per_s`, `violations`; ``figures``: how long, how much, queues at the end, when
        shares of the work were done, CPU seconds by process.

    Raises:
        InputError: there are not so many titles or sites.
        ReviewloopError: a program failed.
    """
    names = titles(shared, products)
    timeline, cpu = Timeline(), Usage()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reviewloop-day-")))
        catalog = folder / "sites.yaml"
        chosen = write_catalog(catalog, sites)
        settings = Settings(sites=str(catalog), slots=_SLOTS)
        settings = replace(settings, lab=("127.0.0.1", _lab(stack, folder, settings, profile)))
        stack.enter_context(cpu.looked_at())
        cluster = stack.enter_context(Cluster(settings, folder / "cluster", _say))
        store = stack.enter_context(open_store.opened_store(cluster.settings))
        done = _crawled(cluster, store, names, nodes, timeline)
        began_s = time.monotonic()
        with store.read() as conn:
            proof = verify(conn, read_now(conn))
            attempts = dict(_attempts(conn))
        verify_s = time.monotonic() - began_s
    totals = done.totals
    planned = products * len(chosen)
    return {
        "bench": "day",
        "ratios": {
            "pages_per_s": round(totals.pages / done.seconds, 1),
            "tasks_per_s": round(totals.tasks / done.seconds, 2),
            "violations": len(proof.violations),
        },
        "figures": {
            **done.settings,
            "products": products,
            "sites": len(chosen),
            "profile": profile,
            "cores": os.cpu_count(),
            "seconds": done.seconds,
            "settled": done.settled,
            "verify_s": round(verify_s, 1),
            "tasks": totals.tasks,
            "tasks_not_made": planned - totals.tasks,
            "subtasks": sum(done.queues.values()),
            "queues": dict(done.queues),
            "attempts": attempts,
            "recalls": totals.recalls,
            "targets": dict(totals.targets),
            "pages": totals.pages,
            "reviews": totals.reviews,
            "waits_for_a_person": _causes(done.manual),
            "verify_counts": dict(proof.counts),
            "violations": [str(one) for one in proof.violations[:20]],
            "seconds_until": timeline.reached(),
            "timeline": timeline.thinned(),
            "active_s": round(sum(pair.stats.active_s for pair in done.pairs)),
            "cpu_s": cpu.told(),
        },
    }


def titles(shared: Path, count: int) -> list[str]:
    """So many real titles, the same every time: those with the least hash, in the order of their hashes.

    Titles that `product add` refuses (control characters, nothing left to search for) are left out.

    Raises:
        InputError: there are not so many.
    """
    found: dict[str, None] = {}
    for name in _TITLES:
        path = shared / "products" / name
        if not path.is_file():
            raise InputError(
                f"the titles are not at {path}: name the folder of the shared data with --shared"
            )
        for block in path.read_text("utf-8").split("\n\n"):
            title = "".join(line[:1] for line in block.split("\n")).strip()
            if title:
                found[title] = None
    by_hash = sorted(found, key=lambda title: blake2b(title.encode()).digest())
    taken = list(islice(filter(_is_name, by_hash), count))
    if count > len(taken):
        raise InputError(f"{count} titles are asked for and there are {len(taken)}")
    return taken


def _is_name(title: str) -> bool:
    try:
        new_product(title)
    except InputError:
        return False
    return True


def write_catalog(path: Path, count: int) -> list[str]:
    """Write the project's catalog with so many of its sites, raised limits and no sign-in; their names.

    Sites are taken group by group in turn, so that few of them are still of every kind.

    Raises:
        InputError: there are not so many.
    """
    origin = ROOT / "sites.yaml"
    catalog = load_catalog(origin)
    if count > len(catalog.sites):
        raise InputError(f"{count} sites are asked for and {origin.name} has {len(catalog.sites)}")
    groups: dict[object, list[str]] = {}
    for name, site in catalog.sites.items():
        groups.setdefault(site.group, []).append(name)
    turns = sorted(
        (turn, place, name) for place, group in enumerate(groups.values()) for turn, name in enumerate(group)
    )
    chosen = [name for _, _, name in turns[:count]]
    data = yaml.safe_load(origin.read_text("utf-8"))
    data["name"] = "day"
    data["limits"] = _LIMITS
    data["sites"] = {name: data["sites"][name] for name in chosen}
    for entry in (*data["engines"].values(), *data["sites"].values()):
        entry.pop("limits", None)
        entry.pop("sign_in", None)
    path.write_text(yaml.safe_dump(data, allow_unicode=True, sort_keys=False), encoding="utf-8")
    return chosen


def _lab(stack: ExitStack, folder: Path, settings: Settings, profile: str) -> int:
    """Start a lab; its port."""
    command = [sys.executable, "-m", "app", "lab", "--port", "0", "--json", "--profile", profile]
    program = Program(
        name="lab", command=command, log=folder / "lab.log", environment=as_environment(settings)
    )
    process = processes.start(program)
    stack.callback(processes.stop, [(program, process)])
    while process.poll() is None:
        if "}" in (told := program.log.read_text("utf-8")):
            return int(json.loads(told)["port"])
        time.sleep(0.1)
    raise ReviewloopError(f"the lab did not start: {processes.last_lines(program.log)}")


def _crawled(cluster: Cluster, store: Store, names: list[str], nodes: int, timeline: Timeline) -> Summary:
    """Let a cluster crawl until all is done, as `reviewloop up --until-done` does."""
    with store.begin() as conn:
        for name in names:
            products_table.add(conn, read_now(conn), new_product(name))
    rows = numbered_nodes(nodes, cluster.settings.slots, lab=True)
    begin, began_s = mark(store), time.monotonic()
    cluster.run(store, rows, Until(True, None), lambda: timeline.look(store, time.monotonic() - began_s))
    told = _run_settings(cluster.settings, nodes)
    return summary(store, begin, time.monotonic() - began_s, told)


def _attempts(conn: Connection) -> Iterator[tuple[str, int]]:
    outcome = attempts_table.c.outcome
    rows = conn.execute(select(outcome, func.count()).group_by(outcome))
    return ((str(outcome), int(n)) for outcome, n in rows)


def _causes(waiting: Iterable[ManualRow]) -> dict[str, int]:
    """How many subtasks wait for a person, by what was said when they came there; the most frequent causes."""
    causes = Counter(str(row.why)[:120] for row in waiting)
    return dict(causes.most_common(_CAUSES_TOLD))


def _say(line: str) -> None:
    print(line, file=sys.stderr)


class Timeline:
    """How much was done when.

    Attributes:
        points: seconds since the start, tasks made, pages stored.
    """

    def __init__(self) -> None:
        self.points: list[tuple[float, int, int]] = []

    def look(self, store: Store, at_s: float) -> None:
        """Count, if the last time is long enough ago: on a large store it takes a while."""
        if self.points and at_s - self.points[-1][0] < _LOOK_EVERY_S:
            return
        with store.read() as conn:
            totals = reports.totals(conn)
        self.points.append((round(at_s, 1), totals.tasks, totals.pages))

    def thinned(self) -> list[tuple[float, int, int]]:
        """At most twice `_POINTS_TOLD` of the points, evenly, the last one with them."""
        return self.points[:: max(1, len(self.points) // _POINTS_TOLD)] + self.points[-1:]

    def reached(self) -> dict[str, float]:
        """Seconds until all tasks were made, and until shares of the pages were stored."""
        if not self.points:
            return {}
        _, made, stored = self.points[-1]
        told = {"all tasks made": next(at for at, tasks, _ in self.points if tasks == made)}
        for share in _STAGES:
            told[f"{share:.0%} of the pages"] = next(
                at for at, _, pages in self.points if pages >= share * stored
            )
        return told


class Usage:
    """CPU seconds of this process and its children, by what they run (Linux)."""

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}
        self._names: dict[int, str] = {os.getpid(): "supervisor"}

    @contextmanager
    def looked_at(self) -> Iterator[None]:
        """Look once a second for as long as the block runs."""
        over = Event()

        def watch() -> None:
            while not over.wait(1.0):
                self.look()

        thread = Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self.look()

    def look(self) -> None:
        """Read the times of all that are alive. What ended in between keeps what was read last."""
        own = os.getpid()
        for child in _children(own):
            if self._names.get(child, _OTHER) == _OTHER:  # as long as it is not what it was started as
                self._names[child] = _program(child)
        for pid, name in self._names.items():
            # A child's children that have ended are in its own time; this process's are counted by themselves.
            seconds = _cpu_s(pid, ended_children=pid != own)
            if seconds is None:
                continue
            if name == "postgres":
                seconds += sum(_cpu_s(session) or 0.0 for session in _children(pid))
            self._seconds[pid] = max(seconds, self._seconds.get(pid, 0.0))

    def told(self) -> dict[str, float]:
        """Seconds by name, and of all."""
        told: Counter[str] = Counter()
        for pid, seconds in self._seconds.items():
            told[self._names[pid]] += seconds  # type: ignore[assignment]
        return {
            **{name: round(seconds, 1) for name, seconds in told.items()},
            "all": round(sum(told.values()), 1),
        }


def _children(pid: int) -> list[int]:
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:
        return []


def _cpu_s(pid: int, *, ended_children: bool = True) -> float | None:
    """User and system time of a process, with that of the children it waited for; None where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return sum(int(ticks) for ticks in fields[11 : 15 if ended_children else 13]) / os.sysconf("SC_CLK_TCK")


def _program(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return _OTHER
    if any(word.startswith("crawl.") for word in words):
        return "nodes"
    for name in ("control", "beat", "lab"):
        if name in words:
            return name
    return next((name for name in ("postgres", "redis") if name in words[0]), _OTHER)
