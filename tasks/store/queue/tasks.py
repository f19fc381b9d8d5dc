"""Virtual tasks, their tasks, and the partitions and subtasks of a task.

A virtual task is planned once, and later for the sites that could not be asked at first. A partition is one query of a
task: a keyword set, of any time or within a span (`tasks.domain.hit_count`). Its result pages are cut into chunks,
which are numbered through all partitions of the task. A chunk becomes a subtask when it is released, and the caller
makes its search URLs then. Targets that a subtask leaves become its follow-up.

All partitions of a task are locked in the order of their ids before one of them, or the task's hit count, is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from tasks.domain.hit_count import NewPartition, Partition, all_counted, task_hit_count
from tasks.domain.page_key import page_key
from tasks.domain.reasons import Explanation, as_document, from_document
from tasks.domain.states import State
from tasks.store.queue import transitions
from tasks.store.queue.leases import HITS_UNREAD
from tasks.store.sql.transaction import Transaction

_DATES = 5000
"""Maximum number of dates that partition a query."""


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
        category: of the product; None = unknown, so general sites.
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
        obstacle: kind of the obstacle.
        because: the reason for people; `why` is its sentence.
        products: how many wait for it.
        since: since when the first of them waits.
    """

    site: str
    obstacle: str
    because: Annotated[Explanation, from_document]
    products: int
    since: datetime
    why: str = field(init=False)

    def __post_init__(self) -> None:
        """Derive the sentence."""
        object.__setattr__(self, "why", str(self.because))


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


def put_off(tx: Transaction, virtual_task: VirtualTask, sites: Mapping[str, tuple[str, Explanation]]) -> None:
    """Note the sites a virtual task gets no task on now: site -> (kind of obstacle, why).

    Sites that an earlier round of its product waited for are dropped: the newer one asks the same.
    """
    tx.run(_DROP_WAITS, product_id=virtual_task.product_id)
    rows = [(site, kind, as_document(reason)) for site, (kind, reason) in sites.items()]
    of = {"virtual_task_id": virtual_task.id, "since": tx.now}
    tx.insert("unplanned_sites", ("site", "obstacle", "because"), rows, shared=of)


_DROP_WAITS = """
    DELETE FROM unplanned_sites
    WHERE virtual_task_id IN (SELECT id FROM virtual_tasks WHERE product_id = :product_id)
"""


def list_late(tx: Transaction, sites: Collection[str], limit: int) -> list[VirtualTask]:
    """Return virtual tasks that wait for one of these sites."""
    return tx.records(VirtualTask, _LATE, sites=sites, most=limit)


_LATE = f"""
    {_VIRTUAL_TASKS}
    WHERE EXISTS (SELECT 1 FROM unplanned_sites WHERE virtual_task_id = v.id AND site IN :sites) {_IN_ORDER}
"""


def plan_late(
    tx: Transaction, virtual_task: VirtualTask, planned: Sequence[NewTask], urls: SearchUrls
) -> int:
    """Make those of these tasks that the virtual task waits for, each once; return the number of tasks."""
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
    SELECT site, min(obstacle) AS obstacle, min(CAST(because AS text)) AS because, count(*) AS products,
        min(since) AS since
    FROM unplanned_sites GROUP BY site ORDER BY products DESC, site
"""


# --- partitions ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TaskQuery(Partition):
    """A partition with the values that its subtasks copy from its task.

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

ChunkKey = tuple[int, int]
"""A chunk: its partition, and its number in its task."""


def list_partitions(tx: Transaction, ids: Collection[int]) -> dict[int, TaskQuery]:
    """Return partitions by id, without a lock."""
    return {one.id: one for one in tx.records(TaskQuery, _BY_ID, ids=ids)}


def lock_partitions(tx: Transaction, task_ids: Collection[int]) -> dict[int, TaskQuery]:
    """Lock all partitions of these tasks; return them by id."""
    return {one.id: one for one in tx.records(TaskQuery, _OF_TASKS, task_ids=task_ids)}


_PARTITIONS = """
    SELECT q.id, q.task_id, q.first_chunk, q.pages, q.chunk_pages, q.keywords, q.dropped, q.own_words, q.start_at,
        q.end_at, q.parent_id, q.state, q.pages_read, q.listed, q.ended, q.reported, q.new_hits, q.found, q.provenance,
        t.product_id, t.site, t.kind, p.priority, v.keywords AS words, v.aliases
    FROM task_parts q JOIN tasks t ON t.id = q.task_id JOIN products p ON p.id = t.product_id
    JOIN virtual_tasks v ON v.id = t.virtual_task_id
"""
_BY_ID = f"{_PARTITIONS} WHERE q.id IN :ids"
_OF_TASKS = f"{_PARTITIONS} WHERE q.task_id IN :task_ids ORDER BY q.id FOR UPDATE OF q"


def insert_partitions(
    tx: Transaction,
    new: Iterable[tuple[int, Sequence[NewPartition]]],
    *,
    parent_id: int | None = None,
    first_chunk: int = 1,
) -> list[ChunkKey]:
    """Add partitions to tasks and return the first chunk of each, which is still to be released.

    Args:
        new: each task with its new partitions.
        parent_id: the partition they replace.
        first_chunk: number of the first chunk of each task's first one.
    """
    rows = []
    for task_id, its in new:
        number = first_chunk
        for one in its:
            rows.append((task_id, number, *(getattr(one, name) for name in _CHOSEN)))
            number += len(one.chunks)
    columns = ("task_id", "first_chunk", *_CHOSEN)
    shared = {"parent_id": parent_id}
    return sorted(
        tx.insert_returning("task_parts", columns, rows, returning="id, first_chunk", shared=shared)
    )


_CHOSEN = tuple(field.name for field in fields(NewPartition))


def replace_partition(
    tx: Transaction, task: Mapping[int, TaskQuery], replaced: TaskQuery, by: Sequence[NewPartition]
) -> list[ChunkKey]:
    """Replace a partition by others.

    Args:
        task: all partitions of its task, locked.
        replaced: the partition in its new state.

    Returns:
        The first chunk of each new one, still to be released.
    """
    tx.later(_REPLACE, id=replaced.id, state=replaced.state, provenance=replaced.provenance)
    end = max(one.end for one in task.values())
    made = insert_partitions(tx, [(replaced.task_id, by)], parent_id=replaced.id, first_chunk=end)
    recount(tx, lock_partitions(tx, [replaced.task_id]).values())
    return made


_REPLACE = "UPDATE task_parts SET state = :state, provenance = :provenance WHERE id = :id"


def recount(tx: Transaction, partitions: Iterable[TaskQuery]) -> None:
    """Write the hit counts of tasks, from all of their partitions."""
    by_task: dict[int, list[TaskQuery]] = {}
    for one in partitions:
        by_task.setdefault(one.task_id, []).append(one)
    counted = [task_id for task_id, parts in by_task.items() if all_counted(parts)]
    different = dict(tx.rows(_DIFFERENT_HITS, task_ids=counted)) if counted else {}
    changes = []
    for task_id, parts in sorted(by_task.items()):
        hits = task_hit_count(parts, different.get(task_id, 0))
        reported = [one.reported for one in parts if one.parent_id is None and one.reported is not None]
        change = {"found": hits.found, "found_provenance": hits.provenance}
        changes.append({"id": task_id, **change, "found_reported": sum(reported) if reported else None})
    tx.update("tasks", ("id",), changes)


_DIFFERENT_HITS = """
    SELECT task_id, count(*) FROM targets WHERE task_id IN :task_ids AND kind = 'hit' GROUP BY task_id
"""


class _HitDate(NamedTuple):
    published_at: datetime


def hit_dates(tx: Transaction, task_id: int) -> list[datetime]:
    """Return when stored hits of a task were published, by the earliest date of their reviews."""
    return [row.published_at for row in tx.records(_HitDate, _HIT_DATES, task_id=task_id, most=_DATES)]


_HIT_DATES = """
    SELECT min(r.published_at) AS published_at
    FROM targets t JOIN pages p ON p.url_key = t.url_key JOIN reviews r ON r.page_id = p.id
    WHERE t.task_id = :task_id AND t.kind = 'hit' AND r.refused IS NULL AND r.published_at IS NOT NULL
    GROUP BY p.id LIMIT :most
"""


# --- chunks and follow-ups ----------------------------------------------------------------------------------

_INHERITED = ("task_id", "product_id", "site", "kind", "priority")
"""Columns of a subtask that are its task's."""


def release_chunks(tx: Transaction, chunks: Collection[ChunkKey], urls: SearchUrls) -> dict[ChunkKey, int]:
    """Make the subtasks of chunks, with their result pages as targets.

    Returns:
        Their ids, by chunk; chunks that do not exist or were released before are left out.
    """
    if not chunks:
        return {}
    partitions = list_partitions(tx, {part_id for part_id, _ in chunks})
    released = set(tx.rows(_RELEASED, task_ids={one.task_id for one in partitions.values()}))
    wanted = [
        (one, number, urls(one, one.pages_of(number)))
        for part_id, number in sorted(set(chunks) - released)
        if number < (one := partitions[part_id]).end
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
            lock_partitions(tx, [query.task_id])
            tx.later(_ASKED_BEFORE, id=query.id, n=missing)
            tx.later(_LEAVE, id=subtask_id, n=made[(subtask_id,)] * HITS_UNREAD)
    return {(query.id, number): one for (query, number, _), one in zip(wanted, ids, strict=True)}


_RELEASED = "SELECT DISTINCT part_id, chunk FROM subtasks WHERE task_id IN :task_ids"
_TARGET = ("task_id", "subtask_id", "kind", "url", "url_key")
_ASKED_BEFORE = "UPDATE task_parts SET asked_before = asked_before + :n WHERE id = :id"
_LEAVE = """UPDATE subtasks SET "left" = :n WHERE id = :id"""


def _describe(query: TaskQuery, number: int) -> dict[str, Any]:
    """Return details of a chunk's subtask: its targets, and its query if that differs from its product's keywords."""
    pages = len(query.pages_of(number))
    described: dict[str, Any] = {"chunk": number, "of": query.end - 1, "result_pages": pages}
    if query.dropped:
        described |= {"keywords": query.keywords, "dropped": query.dropped}
    if query.span is not None:
        described["span"] = [query.span.start.isoformat(), query.span.end.isoformat()]
    return described


class SleepingSubtask(NamedTuple):
    """A subtask in SLEEP.

    Attributes:
        left, tries: hits to do, as `count_left` counts them, and the most tries of a target that is to do.
        shows_more: its last result page showed that there is more.
        node, quota, budget_s: of its last attempt.
    """

    id: int
    task_id: int
    product_id: int
    site: str
    kind: str
    priority: int
    part_id: int
    chunk: int
    assigned_quota: int | None
    left: int
    tries: int
    shows_more: bool
    node: str
    quota: int
    budget_s: float


def lock_sleeping(tx: Transaction, limit: int) -> list[SleepingSubtask]:
    """Return subtasks in SLEEP, the oldest first, locked: no page that came late can change what is left to do."""
    ids = [number for (number,) in tx.rows(_LOCK_SLEEPING, most=limit)]
    return tx.records(SleepingSubtask, _SLEEPING, ids=ids) if ids else []


_LOCK_SLEEPING = f"""
    SELECT id FROM subtasks WHERE state = '{State.SLEEP}' ORDER BY id LIMIT :most FOR UPDATE SKIP LOCKED
"""


_TO_DO = "FROM targets t WHERE t.subtask_id = s.id AND t.state = 'todo'"
_LEFT = f"(SELECT coalesce(sum(CASE t.kind WHEN 'result' THEN {HITS_UNREAD} ELSE 1 END), 0) {_TO_DO})"
_SLEEPING = f"""
    SELECT s.id, s.task_id, s.product_id, s.site, s.kind, s.priority, s.part_id, s.chunk, s.assigned_quota,
        {_LEFT} AS "left", (SELECT coalesce(max(t.tries), 0) {_TO_DO}) AS tries,
        EXISTS (SELECT 1 FROM attempts WHERE subtask_id = s.id AND more) AS shows_more, a.node, a.quota, a.budget_s
    FROM subtasks s JOIN attempts a ON a.subtask_id = s.id AND a.no = s.attempts
    WHERE s.id IN :ids ORDER BY s.id
"""


def make_follow_ups(
    tx: Transaction, parents: Sequence[tuple[SleepingSubtask, datetime | None]]
) -> dict[int, int]:
    """Make the subtasks that carry on targets still to do; return their ids, by parent.

    Args:
        parents: each with the earliest time to go on; None: at once.
    """
    copied = (*_INHERITED, "chunk", "part_id", "assigned_quota", "left")
    rows = [
        {name: getattr(one, name) for name in copied} | {"parent_id": one.id, "not_before": not_before}
        for one, not_before in parents
    ]
    details = [
        {"follows": one.id, "left": one.left, "not_before": not_before and not_before.isoformat()}
        for one, not_before in parents
    ]
    made = transitions.create(tx, rows, details)
    tx.later(_PASS_ON, ids=made)
    return dict(zip((one.id for one, _ in parents), made, strict=True))


_PASS_ON = """
    UPDATE targets SET subtask_id = s.id FROM subtasks s
    WHERE s.id IN :ids AND targets.subtask_id = s.parent_id AND targets.state = 'todo'
"""


def count_left(tx: Transaction, of: Collection[int]) -> dict[int, int]:
    """Return the hits still to do of each subtask, an unread result page counted as `HITS_UNREAD`."""
    return dict(tx.rows(f"SELECT s.id, {_LEFT} FROM subtasks s WHERE s.id IN :ids", ids=of))
