"""Coverage: the share of a search's hits that is stored: stored / min(found, cap of the engine)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, func, select

from tasks.domain.hit_count import PartitionState, Provenance
from tasks.domain.product_match import Verdict
from tasks.store.sql.tables import page_products, pages, targets, task_parts, tasks


@dataclass(frozen=True, slots=True)
class Coverage:
    """Sums over tasks.

    Attributes:
        stored: hits stored, of tasks whose found is known; without those that were deleted with their product.
        reachable: of the same tasks, the hits that can be listed: each partition's found, at most its engine's cap.
        tasks, known: number of tasks, and of those whose found is known.
        rests_on: tasks by the provenance of their found (reported, counted, capped, unknown).
    """

    stored: int = 0
    reachable: int = 0
    tasks: int = 0
    known: int = 0
    rests_on: Mapping[str, int] = field(default_factory=dict)

    @property
    def share(self) -> float | None:
        """stored / reachable, at most 1; None where nothing is known to be there."""
        return min(1.0, self.stored / self.reachable) if self.reachable else None

    @property
    def at_least(self) -> bool:
        """Whether some searches have more hits than can be listed."""
        return bool(self.rests_on.get(Provenance.CAPPED))

    def __add__(self, other: Coverage) -> Coverage:
        """Of the tasks of both."""
        return Coverage(
            self.stored + other.stored,
            self.reachable + other.reachable,
            self.tasks + other.tasks,
            self.known + other.known,
            dict(Counter(self.rests_on) + Counter(other.rests_on)),
        )


def product_coverages(conn: Connection, cap_of: Callable[[str], int]) -> dict[int, Coverage]:
    """The coverage of each product that has tasks, by its id.

    Args:
        cap_of: the most hits an engine lists for one query, by the engine's name.
    """
    stored = (
        select(targets.c.task_id, func.count().label("n"))
        .where(targets.c.kind == "hit", targets.c.state == "stored")
        .group_by(targets.c.task_id)
        .subquery()
    )
    rows = conn.execute(
        select(
            tasks.c.id,
            tasks.c.product_id,
            tasks.c.engine,
            tasks.c.found,
            tasks.c.found_provenance,
            stored.c.n,
        )
        .outerjoin(stored, stored.c.task_id == tasks.c.id)
        .order_by(tasks.c.id)
    )
    divided, removed = _divided(conn), _removed(conn)
    covered: dict[int, Coverage] = {}
    for task_id, product_id, engine, found, provenance, done in rows:
        reachable = 0
        if found is not None:
            inside = divided.get(task_id, [found])
            # While a partition's found is unknown, partitioning goes on, and all hits may be reached.
            whole = provenance == Provenance.COUNTED or None in inside
            reachable = found if whole else sum(min(n, cap_of(engine)) for n in inside if n is not None)
        one = Coverage(
            (done or 0) - removed.get(task_id, 0) if found is not None else 0,
            reachable,
            1,
            int(found is not None),
            {str(provenance): 1},
        )
        covered[product_id] = covered.get(product_id, Coverage()) + one
    return covered


def _removed(conn: Connection) -> dict[int, int]:
    """Hits of each task whose pages were deleted with their product (`tasks.store.content.review_removal`), by task."""
    rows = conn.execute(
        select(targets.c.task_id, func.count())
        .select_from(page_products)
        .join(pages, pages.c.id == page_products.c.page_id)
        .join(tasks, tasks.c.product_id == page_products.c.product_id)
        .join(targets, (targets.c.task_id == tasks.c.id) & (targets.c.url_key == pages.c.url_key))
        .where(page_products.c.verdict == Verdict.REMOVED)
        .where(targets.c.kind == "hit", targets.c.state == "stored")
        .group_by(targets.c.task_id)
    )
    return {row[0]: row[1] for row in rows}


def _divided(conn: Connection) -> dict[int, list[int | None]]:
    """Found of each partition (None: unknown) of the tasks that have several, by task."""
    several = select(task_parts.c.task_id).group_by(task_parts.c.task_id).having(func.count() > 1)
    rows = conn.execute(
        select(task_parts.c.task_id, task_parts.c.found).where(
            task_parts.c.task_id.in_(several),
            task_parts.c.state.in_((PartitionState.OPEN, PartitionState.FULL)),
        )
    )
    found: dict[int, list[int | None]] = {}
    for task_id, n in rows:
        found.setdefault(task_id, []).append(n)
    return found


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A search that had no hit with all of its keywords, and what it was relaxed to."""

    site: str
    keywords: tuple[str, ...]
    dropped: tuple[str, ...]
    found: int | None


def relaxed(conn: Connection) -> dict[int, list[Relaxed]]:
    """Relaxed searches by product; not those that were relaxed further."""
    rows = conn.execute(
        select(
            tasks.c.product_id, tasks.c.site, task_parts.c.keywords, task_parts.c.dropped, task_parts.c.found
        )
        .join(tasks, tasks.c.id == task_parts.c.task_id)
        .where(task_parts.c.parent_id.is_not(None), task_parts.c.start_at.is_(None))
        .where(task_parts.c.state != PartitionState.RELAXED)
        .order_by(task_parts.c.id)
    )
    of: dict[int, list[Relaxed]] = {}
    for product_id, site, keywords, dropped, found in rows:
        of.setdefault(product_id, []).append(Relaxed(site, tuple(keywords), tuple(dropped), found))
    return of
