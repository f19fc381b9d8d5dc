"""The loop that `bench scale` measures: its queue stays as long as it is, and no row is leased twice."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy import func, select

from research.tools import cputime, scale_store
from tasks.store.sql.database import Store
from tasks.store.sql.tables import attempts, events, subtasks

_SIZE, _SITES, _NODES, _SLOTS = 60, 4, 3, 5


def test_a_queue_stays_as_long_as_it_is_and_no_row_is_leased_twice(tmp_path: Path) -> None:
    with scale_store.SERVERS["sqlite"](tmp_path) as server:
        store = Store.open(server.url("scale"))
        names, sites = [f"n{n}" for n in range(_NODES)], [f"site{n}.cn" for n in range(_SITES)]
        loop = scale_store._Loop(server, store, names, sites, _SLOTS, _SIZE)
        given = [loop.turn(_NODES * _SLOTS) for _ in range(4)]
        with store.read() as conn:
            counted = select(subtasks.c.state, func.count()).group_by(subtasks.c.state)
            states = {row[0]: row[1] for row in conn.execute(counted)}
            leased = list(conn.scalars(select(attempts.c.subtask_id)))
            logged = list(conn.scalars(select(events.c.subtask_id).where(events.c.transition == "allocate")))
        store.close()
    leases = [count for _, _, count in given]
    assert all(0 < count <= _NODES * _SLOTS for count in leases)
    assert all(cpu_s > 0 for _, cpu_s, _ in given)
    assert states["CRAWL"] == leases[-1]
    assert states["DONE"] == sum(leases[:-1])
    assert states.get("PRIORITY", 0) + states["WAIT"] + states["CRAWL"] == _SIZE
    assert len(leased) == len(set(leased)) == sum(leases)
    assert sorted(logged) == sorted(leased)


def test_cpu_time_of_a_process_that_is_gone_is_none() -> None:
    assert cputime.family_s(0) == 0.0
    assert cputime.family_s(os.getpid()) >= 0.0
