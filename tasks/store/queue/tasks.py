"""Virtual tasks, their tasks, and the subtasks of a task.

A virtual task is planned once, and later for the sites that could not be asked at first. A task has a subtask for each
chunk of its result pages, released in turn, and one for left-over targets. The caller makes the search URLs of a chunk
when it is released.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tasks.domain.page_key import page_key
from tasks.store.queue import transitions
from tasks.store.queue.leases import HITS_UNREAD
from tasks.store.queue.partitions import (
    ChunkKey,
    NewPartition,
    Query,
    insert_partitions,
    partitions_by_id,
    partitions_of_tasks,
)
from tasks.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to be made: one virtual task on one site.

    Attributes:
        partitions: one for each of its keyword sets.
    """

    site: str
    engine: str
    kind: str
    partitions: tuple[NewPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualTask:
    """A product plus its AND keywords: the goal, independent of any site.

    Attributes:
        own_keywords: a person chose the keywords.
        sites: only these; None = those of its category.
        category: of the product; None = unknown, so all sites.
    """

    id: int
    product_id: int
    product: str
    keywords: tuple[str, ...]
    aliases: tuple[tuple[str, ...], ...]
    pages: int | None
    priority: int
    own_keywords: bool = False
    sites: tuple[str, ...] | None = None
    category: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnplannedSite:
    """A site that products wait for.

    Attributes:
        obstacle: kind of the obstacle; `why` explains it to people.
        products: how many wait for it.
        since: since when the first of them waits.
    """

    site: str
    obstacle: str
    why: str
    products: int
    since: datetime


# --- planning -----------------------------------------------------------------------------------------------


def list_unplanned(tx: Transaction, limit: int) -> list[VirtualTask]:
    """Return virtual tasks without tasks: higher priority first, then first in, first out."""
    return tx.records(VirtualTask, _UNPLANNED, most=limit)


_VIRTUAL_TASKS = """
    SELECT v.id, v.product_id, p.name AS product, v.keywords, v.aliases, p.pages, p.priority,
        CAST(p.keywords AS text) <> '[]' AS own_keywords, p.sites, p.category
    FROM virtual_tasks v JOIN products p ON p.id = v.product_id
"""
_IN_ORDER = "ORDER BY p.priority DESC, v.id LIMIT :most"
_UNPLANNED = f"{_VIRTUAL_TASKS} WHERE v.planned_at IS NULL {_IN_ORDER}"


def plan(tx: Transaction, virtual_task: VirtualTask, planned: Sequence[NewTask], urls: SearchUrls) -> int:
    """Make the tasks of a virtual task, once, and the first subtask of each partition; return the number of tasks."""
    claimed = tx.run(_CLAIM, id=virtual_task.id, now=tx.now)
    return _insert_tasks(tx, virtual_task, planned, urls) if claimed else 0


_CLAIM = """
    UPDATE virtual_tasks SET planned_at = CASE WHEN created_at > :now THEN created_at ELSE :now END
    WHERE id = :id AND planned_at IS NULL
"""


def _insert_tasks(
    tx: Transaction, virtual_task: VirtualTask, planned: Sequence[NewTask], urls: SearchUrls
) -> int:
    rows = [(task.site, task.engine, task.kind) for task in planned]
    of = {"virtual_task_id": virtual_task.id, "product_id": virtual_task.product_id, "created_at": tx.now}
    made = tx.insert_returning("tasks", ("site", "engine", "kind"), rows, returning="site, id", shared=of)
    ids = dict(made)
    release_chunks(tx, insert_partitions(tx, [(ids[task.site], task.partitions) for task in planned]), urls)
    return len(planned)


def put_off(tx: Transaction, virtual_task: VirtualTask, sites: Mapping[str, tuple[str, str]]) -> None:
    """Note the sites a virtual task gets no task on now: site -> (kind of obstacle, why).

    Sites that an earlier round of its product waited for are dropped: the newer one asks the same.
    """
    tx.run(_DROP_WAITS, product_id=virtual_task.product_id)
    rows = [(site, kind, why) for site, (kind, why) in sites.items()]
    of = {"virtual_task_id": virtual_task.id, "since": tx.now}
    tx.insert("unplanned_sites", ("site", "obstacle", "why"), rows, shared=of)


_DROP_WAITS = """
    DELETE FROM unplanned_sites
    WHERE virtual_task_id IN (SELECT id FROM virtual_tasks WHERE product_id = :product_id)
"""


def late_sites(tx: Transaction) -> list[str]:
    """Return the sites that products wait for."""
    return [site for (site,) in tx.rows("SELECT DISTINCT site FROM unplanned_sites ORDER BY site")]


def list_late(
    tx: Transaction, askable: Collection[str], limit: int
) -> list[tuple[VirtualTask, tuple[str, ...]]]:
    """Return virtual tasks that wait for one of these sites, each with those it waits for."""
    waits: dict[int, list[str]] = {}
    for virtual_task_id, site in tx.rows(_WAITS, sites=askable):
        waits.setdefault(virtual_task_id, []).append(site)
    found = tx.records(VirtualTask, _LATE, sites=askable, most=limit)
    return [(one, tuple(waits[one.id])) for one in found]


_WAITS = "SELECT virtual_task_id, site FROM unplanned_sites WHERE site IN :sites"
_LATE = f"""
    {_VIRTUAL_TASKS}
    WHERE EXISTS (SELECT 1 FROM unplanned_sites WHERE virtual_task_id = v.id AND site IN :sites) {_IN_ORDER}
"""


def plan_late(
    tx: Transaction, virtual_task: VirtualTask, planned: Sequence[NewTask], urls: SearchUrls
) -> int:
    """Make tasks on sites that could not be asked before, each once; return the number of tasks."""
    sites = [task.site for task in planned]
    taken = {site for (site,) in tx.rows(_TAKE, virtual_task_id=virtual_task.id, sites=sites)}
    return _insert_tasks(tx, virtual_task, [task for task in planned if task.site in taken], urls)


_TAKE = """
    DELETE FROM unplanned_sites WHERE virtual_task_id = :virtual_task_id AND site IN :sites RETURNING site
"""


def list_late_sites(tx: Transaction) -> list[UnplannedSite]:
    """Return the sites that products wait for, the one with the most first."""
    return tx.records(UnplannedSite, _LATE_SITES)


_LATE_SITES = """
    SELECT site, min(obstacle) AS obstacle, min(why) AS why, count(*) AS products, min(since) AS since
    FROM unplanned_sites GROUP BY site ORDER BY products DESC, site
"""


# --- chunks -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskQuery(Query):
    """A query with the values that its subtasks copy from its task.

    Attributes:
        words, aliases: keyword sets of its virtual task.
    """

    product_id: int
    site: str
    kind: str
    priority: int
    words: tuple[str, ...]
    aliases: tuple[tuple[str, ...], ...]


SearchUrls = Callable[[TaskQuery, Sequence[int]], Sequence[str]]
"""Returns the search URLs of a query's result pages, by their numbers from 1 on."""


def list_queries(tx: Transaction, part_ids: Collection[int]) -> list[TaskQuery]:
    """Return the queries of partitions."""
    return tx.records(TaskQuery, _QUERIES, ids=part_ids)


_QUERIES = """
    SELECT q.id, q.task_id, q.first_chunk, q.pages, q.chunk_pages, q.keywords, q.dropped, q.start_at, q.end_at,
        t.product_id, t.site, t.kind, p.priority, v.keywords AS words, v.aliases
    FROM task_parts q JOIN tasks t ON t.id = q.task_id JOIN products p ON p.id = t.product_id
    JOIN virtual_tasks v ON v.id = t.virtual_task_id
    WHERE q.id IN :ids
"""
_RELEASED = "SELECT DISTINCT part_id, chunk FROM subtasks WHERE task_id IN :task_ids"
_INHERITED = ("task_id", "product_id", "site", "kind", "priority")


def release_chunks(tx: Transaction, chunks: Collection[ChunkKey], urls: SearchUrls) -> dict[ChunkKey, int]:
    """Make the subtasks of chunks, with their result pages as targets.

    Returns:
        Their ids, by chunk; chunks that do not exist or were released before are left out.
    """
    if not chunks:
        return {}
    queries = {one.id: one for one in list_queries(tx, {part_id for part_id, _ in chunks})}
    released = set(tx.rows(_RELEASED, task_ids={one.task_id for one in queries.values()}))
    wanted = [
        (queries[part_id], number, urls(queries[part_id], queries[part_id].pages_of(number)))
        for part_id, number in sorted(set(chunks), key=lambda chunk: (queries[chunk[0]].task_id, chunk[1]))
        if number < queries[part_id].end and (part_id, number) not in released
    ]
    rows = [
        {name: getattr(query, name) for name in _INHERITED}
        | {"chunk": number, "part_id": query.id, "left": len(asked) * HITS_UNREAD}
        for query, number, asked in wanted
    ]
    ids = transitions.create(tx, rows, [_describe(query, number) for query, number, _ in wanted])
    targets = [
        (query.task_id, subtask_id, "result", url, page_key(url))
        for (query, _, asked), subtask_id in zip(wanted, ids, strict=True)
        for url in asked
    ]
    made = Counter(tx.insert_returning("targets", _TARGET, targets, returning="subtask_id", skip_known=True))
    for (query, _, asked), subtask_id in zip(wanted, ids, strict=True):
        if missing := len(asked) - made[(subtask_id,)]:
            # Another partition of the task has asked for the same URLs.
            partitions_of_tasks(tx, [query.task_id])
            tx.later(_ASKED_BEFORE, id=query.id, n=missing)
            tx.later(_LEAVE, id=subtask_id, n=made[(subtask_id,)] * HITS_UNREAD)
    return {(query.id, number): one for (query, number, _), one in zip(wanted, ids, strict=True)}


_TARGET = ("task_id", "subtask_id", "kind", "url", "url_key")
_ASKED_BEFORE = "UPDATE task_parts SET asked_before = asked_before + :n WHERE id = :id"
_LEAVE = """UPDATE subtasks SET "left" = :n WHERE id = :id"""


def _describe(query: TaskQuery, number: int) -> dict[str, Any]:
    """Return details of a chunk's subtask: its targets, and its query if that differs from its product's keywords."""
    described: dict[str, Any] = {
        "chunk": number,
        "of": query.end - 1,
        "result_pages": len(query.pages_of(number)),
    }
    if query.dropped:
        described |= {"keywords": query.keywords, "dropped": query.dropped}
    if query.span is not None:
        described["span"] = [query.span.start.isoformat(), query.span.end.isoformat()]
    return described


def more_after(tx: Transaction, chunks: Collection[ChunkKey]) -> set[ChunkKey]:
    """Return the chunks that found more pages and whose next one is still to be released."""
    of = partitions_by_id(tx, {part_id for part_id, _ in chunks})
    go_on = {(part_id, number) for part_id, number in chunks if number + 1 < of[part_id].end}
    if not go_on:
        return set()
    return go_on & set(tx.rows(_SHOWED_MORE, task_ids={of[part_id].task_id for part_id, _ in go_on}))


_SHOWED_MORE = """
    SELECT DISTINCT s.part_id, s.chunk FROM subtasks s JOIN attempts a ON a.subtask_id = s.id
    WHERE s.task_id IN :task_ids AND a.more AND NOT EXISTS (
        SELECT 1 FROM subtasks n WHERE n.task_id = s.task_id AND n.part_id = s.part_id AND n.chunk = s.chunk + 1
    )
"""


# --- left-over targets --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LeftOver:
    """The targets that a subtask leaves to its follow-up.

    Attributes:
        left: hits to do, as `count_left` counts them.
        not_before: earliest time to go on; None: at once.
    """

    parent_id: int
    left: int
    not_before: datetime | None = None


def follow_ups(tx: Transaction, left_over: Sequence[LeftOver]) -> dict[int, int]:
    """Make the subtasks that carry on targets still to do; return their ids, by parent."""
    if not left_over:
        return {}
    ids = [one.parent_id for one in left_over]
    parents = {row["parent_id"]: row for row in tx.records(dict, _PARENTS, ids=ids)}
    rows = [{**parents[one.parent_id], "left": one.left, "not_before": one.not_before} for one in left_over]
    made = transitions.create(tx, rows, [_describe_follow_up(one) for one in left_over])
    tx.later(_PASS_ON, ids=made)
    return dict(zip(ids, made, strict=True))


_PARENTS = """
    SELECT id AS parent_id, task_id, product_id, site, kind, priority, chunk, part_id, assigned_quota
    FROM subtasks WHERE id IN :ids
"""
_PASS_ON = """
    UPDATE targets SET subtask_id = s.id FROM subtasks s
    WHERE s.id IN :ids AND targets.subtask_id = s.parent_id AND targets.state = 'todo'
"""


def _describe_follow_up(one: LeftOver) -> dict[str, Any]:
    at = one.not_before.isoformat() if one.not_before is not None else None
    return {"follows": one.parent_id, "left": one.left, "not_before": at}


def get_max_tries(tx: Transaction, of: Collection[int]) -> dict[int, int]:
    """Return the maximum number of tries among the open targets of each subtask, 0 if none was tried."""
    return dict(tx.rows(_TRIES, ids=of)) if of else {}


_TRIES = """
    SELECT subtask_id, max(tries) FROM targets WHERE subtask_id IN :ids AND state = 'todo' GROUP BY subtask_id
"""


def count_left(tx: Transaction, of: Collection[int]) -> dict[int, int]:
    """Return the hits still to do of each subtask, an unread result page counted as `HITS_UNREAD`."""
    left = dict.fromkeys(of, 0)
    for subtask_id, kind, n in tx.rows(_LEFT, ids=of):
        left[subtask_id] += n * (HITS_UNREAD if kind == "result" else 1)
    return left


_LEFT = """
    SELECT subtask_id, kind, count(*) FROM targets WHERE subtask_id IN :ids AND state = 'todo'
    GROUP BY subtask_id, kind
"""
