"""Sites that a virtual task has no task on yet, because they could not be asked when its tasks were made."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, exists, func, insert, select

from tasks.store.products import NewTask, VirtualTask, insert_tasks, virtual_tasks_where
from tasks.store.tables import unplanned_sites, virtual_tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class UnplannedSite:
    """A site that products wait for.

    Attributes:
        obstacle: kind of what was in the way; `why` for people.
        products: how many wait for it.
        since: since when the first of them waits.
    """

    site: str
    obstacle: str
    why: str
    products: int
    since: datetime


def put(
    conn: Connection, now: datetime, virtual_task: VirtualTask, sites: Mapping[str, tuple[str, str]]
) -> None:
    """Note the sites a virtual task gets no task on now: site -> (kind of obstacle, why).

    Sites that an earlier round of its product waited for are dropped: the newer one asks the same.
    """
    of_product = select(virtual_tasks.c.id).where(virtual_tasks.c.product_id == virtual_task.product_id)
    conn.execute(delete(unplanned_sites).where(unplanned_sites.c.virtual_task_id.in_(of_product)))
    if sites:
        rows = [
            {"virtual_task_id": virtual_task.id, "site": site, "obstacle": kind, "why": why, "since": now}
            for site, (kind, why) in sites.items()
        ]
        conn.execute(insert(unplanned_sites), rows)


def sites(conn: Connection) -> list[str]:
    """The sites that products wait for."""
    return list(conn.scalars(select(unplanned_sites.c.site).distinct().order_by(unplanned_sites.c.site)))


def waiting_for(
    conn: Connection, askable: Collection[str], limit: int
) -> list[tuple[VirtualTask, tuple[str, ...]]]:
    """Virtual tasks that wait for one of these sites, with those of them they wait for."""
    here = unplanned_sites.c.site.in_(askable)
    waits = exists().where(unplanned_sites.c.virtual_task_id == virtual_tasks.c.id, here)
    found = virtual_tasks_where(conn, waits, limit)
    rows = conn.execute(
        select(unplanned_sites.c.virtual_task_id, unplanned_sites.c.site).where(
            here, unplanned_sites.c.virtual_task_id.in_([one.id for one in found])
        )
    ).all()
    return [(one, tuple(row.site for row in rows if row.virtual_task_id == one.id)) for one in found]


def plan_late(conn: Connection, now: datetime, virtual_task: VirtualTask, planned: Sequence[NewTask]) -> int:
    """Make tasks on sites that could not be asked before, each once; returns how many."""
    taken = set(
        conn.scalars(
            delete(unplanned_sites)
            .where(
                unplanned_sites.c.virtual_task_id == virtual_task.id,
                unplanned_sites.c.site.in_([task.site for task in planned]),
            )
            .returning(unplanned_sites.c.site)
        )
    )
    return insert_tasks(conn, now, virtual_task, [task for task in planned if task.site in taken])


def listed(conn: Connection) -> list[UnplannedSite]:
    """The sites that products wait for: those that most wait for first."""
    rows = conn.execute(
        select(
            unplanned_sites.c.site,
            func.min(unplanned_sites.c.obstacle),
            func.min(unplanned_sites.c.why),
            func.count(),
            func.min(unplanned_sites.c.since),
        )
        .group_by(unplanned_sites.c.site)
        .order_by(func.count().desc(), unplanned_sites.c.site)
    )
    return [
        UnplannedSite(site=site, obstacle=obstacle, why=why, products=n, since=since)
        for site, obstacle, why, n, since in rows
    ]
