"""Coverage: how much of what the searches report is stored (DESIGN: stored / min(found, cap of the engine))."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from tasks.store.tables import targets, tasks


@dataclass(frozen=True, slots=True)
class Coverage:
    """Sums over tasks.

    Attributes:
        stored: hits stored, of tasks whose found is known.
        reachable: of the same tasks, the hits found, each task's at most its engine's cap.
        tasks, known: how many tasks there are, and of how many found is known: what the share rests on.
    """

    stored: int = 0
    reachable: int = 0
    tasks: int = 0
    known: int = 0

    @property
    def share(self) -> float | None:
        """stored / reachable, at most 1; None where nothing is known to be there."""
        return min(1.0, self.stored / self.reachable) if self.reachable else None


def of_products(conn: Connection, cap_of: Callable[[str], int]) -> dict[int, Coverage]:
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
        select(tasks.c.product_id, tasks.c.engine, tasks.c.found, stored.c.n).outerjoin(
            stored, stored.c.task_id == tasks.c.id
        )
    )
    covered: dict[int, Coverage] = {}
    for product_id, engine, found, n in rows:
        before = covered.get(product_id, Coverage())
        known = found is not None
        covered[product_id] = Coverage(
            before.stored + (n or 0 if known else 0),
            before.reachable + (min(found, cap_of(engine)) if known else 0),
            before.tasks + 1,
            before.known + known,
        )
    return covered
