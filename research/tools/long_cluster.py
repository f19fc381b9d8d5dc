"""A cluster that crawls for long: memory of each of its programs, then a rolling restart under load.

The cluster is the one that ``reviewloop up`` starts, against a lab without faults, at the pace of ordinary limits.
Every program is asked to end (SIGTERM) one after the other, while the others crawl; the supervisor starts it again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from sqlalchemy import Connection, func, select

from app.run import open_store
from app.run.cluster.supervisor import Cluster
from app.run.nodes import numbered_nodes
from app.run.settings import Settings
from app.run.until import Until
from research.chaos.world import Products, Supply, write_catalog
from research.tools.labs import lab_process
from tasks.domain.states import State, Transition
from tasks.store.database import Store, read_now
from tasks.store.tables import events, pages, subtasks
from tasks.store.verify import verify

_PROFILE = "name: no-faults\npairs:\n  - latency_ms: [5, 30]\n"
_SLOTS = 4
SUPPLY = Supply()
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
"""When memory is looked at, as shares of the time: the first one when all has been loaded."""
WORKS_S = 8.0
"""How long a program that was started again works before the next one is asked to end."""
_LOOK_S = 0.02
_NO_END_S = 30.0


def run(seconds: float, nodes: int = 3) -> dict[str, Any]:
    """Crawl for so long, then restart everything once.

    Args:
        seconds: how long memory is looked at.
        nodes: how many worker processes crawl.

    Returns:
        ``ratios``: `recalls`, `most_given_back_s` (from SIGTERM until the last lease is given back), `most_ended_s`
        (until the process has ended), `longest_pause_s` (between two pages while programs are restarted),
        `most_grown` (private memory of the program that grew most, at the end over that at half the time),
        `violations`. ``figures``: memory in MB by program and moment, the restarts one by one, pages stored.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reviewloop-cluster-")))
        catalog, profile = folder / "sites.yaml", folder / "profile.yaml"
        write_catalog(catalog, SUPPLY.site_per_s)
        profile.write_text(_PROFILE, encoding="utf-8")
        lab = stack.enter_context(lab_process(str(profile), sites=str(catalog)))
        cluster = stack.enter_context(
            Cluster(Settings(sites=str(catalog), slots=_SLOTS, lab=lab), folder / "cluster", _say)
        )
        store = stack.enter_context(open_store.opened_store(cluster.settings))
        rows = numbered_nodes(nodes, _SLOTS, lab=True)
        restarted = ("control", "beat", *(row.name for row in rows))
        watch = _Watch(cluster, store, restarted, seconds)
        cluster.run(store, rows, Until(False, None), watch.look)
        store.patient = True
        with store.read() as conn:
            proof = verify(conn, read_now(conn))
            recalls = _recalls(conn)
            pause_s, stored = _longest_pause_s(conn, watch.restarts_from)
    half, end = (SHARES.index(share) for share in (0.5, 1.0))
    grown = {
        name: round(own[end].private / max(0.1, own[half].private), 3)
        for name, own in watch.memory_mb.items()
    }
    return {
        "ratios": {
            "recalls": sum(recalls.values()),
            "most_given_back_s": max(one["given_back_s"] for one in watch.restarts.values()),
            "most_ended_s": max(one["ended_s"] for one in watch.restarts.values()),
            "longest_pause_s": pause_s,
            "most_grown": max(grown.values()),
            "violations": len(proof.violations),
        },
        "figures": {
            "cores": os.cpu_count(),
            "seconds": seconds,
            "memory_mb_at": [f"{share:.0%}" for share in SHARES],
            "private_mb": {name: [one.private for one in own] for name, own in watch.memory_mb.items()},
            "rss_mb": {name: [one.rss for one in own] for name, own in watch.memory_mb.items()},
            "grown": grown,
            "restarts": watch.restarts,
            "recalls_by_reason": recalls,
            "pages": stored,
            "first_violations": [str(one) for one in proof.violations[:3]],
        },
    }


class Memory(NamedTuple):
    """Memory of a program in MB.

    Attributes:
        private: that no other process shares, of all its processes (USS).
        rss: of its first process, shared libraries with it.
    """

    private: float
    rss: float


class _Watch:
    """Adds work, looks at memory, then asks one program after the other to end.

    Attributes:
        memory_mb: of each program, at each of `SHARES`.
        restarts: of each program, how many leases it held, and seconds until they were given back and it had ended.
        restarts_from: the newest page's number before the first restart.
    """

    def __init__(self, cluster: Cluster, store: Store, restarted: Sequence[str], seconds: float) -> None:
        self._cluster = cluster
        self._store = store
        self._products = Products(store, SUPPLY)
        self._left = list(restarted)
        self._known = ("postgres", "redis", *restarted, "web")
        self._seconds = seconds
        self._began_s: float | None = None
        self._works_from_s: float | None = None
        self._ended: tuple[str, int] | None = None
        self.memory_mb: dict[str, list[Memory]] = {}
        self.restarts: dict[str, dict[str, float]] = {}
        self.restarts_from = 0

    def look(self) -> None:
        """What `Cluster.run` calls twice a second."""
        self._products.feed()
        now_s = time.monotonic()
        if self._began_s is None:
            self._began_s = now_s if all(map(self._busy, self._node_names)) else None
            return
        looked = len(next(iter(self.memory_mb.values()), ()))
        if looked < len(SHARES):
            if now_s - self._began_s >= SHARES[looked] * self._seconds:
                self._look_at_memory()
        elif self._works(now_s):
            if not self._left:
                self._cluster.signalled = True  # all done: end as on a signal
            elif self._busy(self._left[0]):
                self._restart(self._left.pop(0))

    def _look_at_memory(self) -> None:
        for name in self._known:
            pid = self._cluster.supervisor.pid(name)
            self.memory_mb.setdefault(name, []).append(_memory(pid))
        _say(f"memory, MB: { {name: own[-1].private for name, own in self.memory_mb.items()} }")

    def _works(self, now_s: float) -> bool:
        """Whether the program restarted last is there again and has worked for a while."""
        if self._ended is None:
            return True
        name, old = self._ended
        if self._cluster.supervisor.pid(name) in (None, old):
            return False
        if self._works_from_s is None:
            self._works_from_s = now_s if self._busy(name) else None
        return self._works_from_s is not None and now_s - self._works_from_s >= WORKS_S

    def _busy(self, name: str) -> bool:
        """Whether a node holds leases; of the others, true."""
        if name not in self._node_names:
            return True
        with self._store.read() as conn:
            return bool(_held(conn, name))

    @property
    def _node_names(self) -> Sequence[str]:
        return self._known[4:-1]

    def _restart(self, name: str) -> None:
        pid = self._cluster.supervisor.pid(name)
        assert pid is not None
        with self._store.read() as conn:
            held = _held(conn, name)
            newest = select(func.coalesce(func.max(pages.c.id), 0))
            self.restarts_from = self.restarts_from or conn.execute(newest).scalar_one()
        began_s = time.monotonic()
        os.kill(pid, signal.SIGTERM)
        given_back_s = 0.0 if not held else None
        while (given_back_s is None or self._cluster.supervisor.pid(name) == pid) and (
            time.monotonic() - began_s < _NO_END_S
        ):
            if given_back_s is None:
                with self._store.read() as conn:
                    if not set(_held(conn, name)) & set(held):
                        given_back_s = time.monotonic() - began_s
            time.sleep(_LOOK_S)
        self.restarts[name] = {
            "leases": len(held),
            "given_back_s": round(_NO_END_S if given_back_s is None else given_back_s, 2),
            "ended_s": round(time.monotonic() - began_s, 2),
        }
        self._ended, self._works_from_s = (name, pid), None


def _held(conn: Connection, node: str) -> Sequence[str]:
    """Tokens of the leases that a node holds."""
    s = subtasks.c
    return conn.scalars(select(s.lease_token).where(s.state == State.CRAWL, s.lease_node == node)).all()


def _recalls(conn: Connection) -> dict[str, int]:
    """How many there were, by the reason of the failure."""
    of, e = events.c.transition == Transition.RECALL, events.c
    rows = conn.execute(select(e.reason, func.count()).where(of).group_by(e.reason))
    return {str(reason): int(n) for reason, n in rows}


def _longest_pause_s(conn: Connection, after: int) -> tuple[float, int]:
    """Most seconds between two pages stored after a page, and pages stored in all."""
    times = conn.scalars(
        select(pages.c.fetched_at).where(pages.c.id >= after).order_by(pages.c.fetched_at)
    ).all()
    pauses = ((later - earlier).total_seconds() for earlier, later in pairwise(times))
    return round(max(pauses, default=0.0), 2), int(conn.execute(select(func.count(pages.c.id))).scalar_one())


def _memory(pid: int | None) -> Memory:
    """Of a program now (Linux); nothing where it does not run."""
    if pid is None:
        return Memory(0.0, 0.0)
    first = psutil.Process(pid)
    private = 0
    for process in (first, *first.children(recursive=True)):
        with suppress(psutil.Error):
            private += process.memory_full_info().uss
    return Memory(round(private / 2**20, 1), round(first.memory_info().rss / 2**20, 1))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    print(json.dumps(run(float(sys.argv[1])), indent=1))
