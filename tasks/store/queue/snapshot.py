"""The facts of a scheduling pass: waiting subtasks, nodes, hosts, failed and sleeping subtasks, and if there is work.

`todo` is one statement that only looks into indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import TypeVar

from tasks.domain.facts import Entrant, PrefetchedLease, SubtaskFacts
from tasks.domain.failures import FailureReason
from tasks.domain.states import State
from tasks.store.sql.transaction import Transaction

UNDER_WAY = timedelta(seconds=1.5)
"""Age of an attempt that is past its result pages, as a rule."""

HostsOf = Callable[[str], tuple[str, str]]
"""(engine's host, site's host) of a site."""

V = TypeVar("V", bound=SubtaskFacts)


def list_waiting(tx: Transaction, limit: int, hosts_of: HostsOf) -> list[SubtaskFacts]:
    """Return subtasks in WAIT that may be allocated now, in queue order."""
    return _with_hosts(
        tx.records(SubtaskFacts, _WAITING, now=tx.now, ahead=tx.now + _AHEAD, most=limit), hosts_of
    )


def list_unstarted(tx: Transaction, hosts_of: HostsOf) -> list[PrefetchedLease]:
    """Return leases that no node has begun, of every node."""
    return _with_hosts(tx.records(PrefetchedLease, _UNSTARTED), hosts_of)


def _with_hosts(subtasks: Sequence[V], hosts_of: HostsOf) -> list[V]:
    """Return subtasks with the hosts that they are sure to ask."""
    of_site = cache(hosts_of)
    return [replace(one, hosts=needed_hosts(of_site(one.site), one.reads_results)) for one in subtasks]


def needed_hosts(hosts: tuple[str, str], reads_results: bool) -> tuple[str, ...]:
    """Return the hosts that a subtask of a site is sure to ask: with a result page to read, also the engine's.

    Args:
        hosts: (engine's host, site's host).
    """
    return hosts if reads_results else hosts[1:]


READS_RESULTS = """
    EXISTS (SELECT 1 FROM targets WHERE subtask_id = subtasks.id AND targets.state = 'todo' AND targets.kind = 'result')
"""
"""Condition: a subtask has a result page to read, so that it needs the engine's host."""
_SUBTASK = f"""
    subtasks.id, subtasks.site, subtasks.kind, subtasks."left", subtasks.priority, subtasks.failed_on,
        subtasks.assigned_node AS assigned, subtasks.assigned_quota AS quota, {READS_RESULTS} AS reads_results
"""
_AHEAD = timedelta(minutes=1)
_MAY_GO = "(not_before IS NULL OR not_before <= :now OR changed_at > :ahead)"
"""Condition: a subtask in WAIT may be given to a node. If it was changed later than `_AHEAD` from now, the clock was
set back since, and the end of its wait is not known."""
_WAITING = f"""
    SELECT {_SUBTASK} FROM subtasks
    WHERE state = '{State.WAIT}' AND {_MAY_GO} ORDER BY priority DESC, id LIMIT :most
"""
_UNSTARTED = f"""
    SELECT {_SUBTASK}, attempts.node, attempts.id AS attempt_id, attempts.allocated_at AS granted_at
    FROM subtasks JOIN attempts ON attempts.id = subtasks.attempt_id
    WHERE subtasks.state = '{State.CRAWL}' AND NOT subtasks.lease_started
"""


def count_crawled(tx: Transaction) -> list[tuple[str, str, bool, int, int]]:
    """Return the number of attempts by (site, node, whether they were given result pages), and of those under way."""
    return tx.rows(_CRAWLED, before=tx.now - UNDER_WAY)


_CRAWLED = f"""
    SELECT site, node, searches, count(*) AS attempts, count(CASE WHEN under_way THEN 1 END) AS under_way
    FROM (
        SELECT subtasks.site, subtasks.lease_node AS node, {READS_RESULTS} OR attempts.found IS NOT NULL AS searches,
            subtasks.lease_started AND subtasks.changed_at <= :before AS under_way
        FROM subtasks JOIN attempts ON attempts.id = subtasks.attempt_id WHERE subtasks.state = '{State.CRAWL}'
    ) running GROUP BY site, node, searches
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedFacts:
    """A subtask in FAILED."""

    id: int
    site: str
    reason: FailureReason
    recalls: int
    failed_on: tuple[str, ...]
    idle_releases: int

    @property
    def node(self) -> str:
        """The node that failed it last; empty if there is none."""
        return self.failed_on[-1] if self.failed_on else ""


def lock_failed(tx: Transaction, limit: int) -> list[FailedFacts]:
    """Return subtasks in FAILED, the oldest first, locked; what another transaction has locked is passed over."""
    return tx.records(FailedFacts, _FAILED, most=limit)


_FAILED = f"""
    SELECT id, site, reason, recalls, failed_on, idle_releases FROM subtasks
    WHERE state = '{State.FAILED}' ORDER BY id LIMIT :most FOR UPDATE SKIP LOCKED
"""


# --- PRIORITY by site ---------------------------------------------------------------------------------------
#
# All use the index ``ix_subtasks_by_site`` (state, site, priority descending, id, left), so each but `pending` costs
# the same however much is queued. Neither database skips from one value of an index to the next by itself, so `heads`
# walks: the first site, the first one behind it, and so on.


def list_heads(tx: Transaction) -> dict[str, int]:
    """Return the highest priority of each site with subtasks in PRIORITY."""
    return dict(tx.rows(_HEADS))


_QUEUED = f"state = '{State.PRIORITY}'"
_HEADS = f"""
    WITH RECURSIVE walk(site) AS (
        SELECT min(site) FROM subtasks WHERE {_QUEUED}
        UNION ALL
        SELECT (SELECT min(site) FROM subtasks WHERE {_QUEUED} AND subtasks.site > walk.site)
        FROM walk WHERE walk.site IS NOT NULL
    )
    SELECT site, (SELECT max(priority) FROM subtasks WHERE {_QUEUED} AND subtasks.site = walk.site)
    FROM walk WHERE site IS NOT NULL
"""


def count_waiting(tx: Transaction) -> dict[tuple[str, int], int]:
    """Return how many subtasks are in WAIT, by (site, priority)."""
    return {(site, priority): n for site, priority, n in tx.rows(_WAITING_BY_SITE)}


_WAITING_BY_SITE = f"""
    SELECT site, priority, count(*) FROM subtasks WHERE state = '{State.WAIT}' GROUP BY site, priority
"""


def list_entrants(tx: Transaction, wanted: Mapping[str, int]) -> list[Entrant]:
    """Return the first subtasks of each site in PRIORITY: higher priority first, then first in, first out.

    Args:
        wanted: maximum number of subtasks, by site.
    """
    first = f"""
        SELECT id, subtasks.site, priority FROM subtasks
        WHERE {_QUEUED} AND subtasks.site = {{}} ORDER BY priority DESC, id LIMIT {{}}
    """
    if tx.is_sqlite:  # it has no LATERAL, and no round trips either
        each = first.format(":site", ":most")
        return [one for site, n in wanted.items() for one in tx.records(Entrant, each, site=site, most=n)]
    asked = "jsonb_to_recordset(CAST(:wanted AS jsonb)) AS asked(site text, n integer)"
    all_sites = f"SELECT first.* FROM {asked}, LATERAL ({first.format('asked.site', 'asked.n')}) first"
    return tx.records(Entrant, all_sites, wanted=[{"site": site, "n": n} for site, n in wanted.items()])


def count_pending(tx: Transaction) -> list[tuple[str, int, int]]:
    """Return the subtasks in PRIORITY by site, and their hits left; it reads all of the index (docs/scaling.md)."""
    return tx.rows(_PENDING)


_PENDING = f"""
    SELECT site, count(*) AS queued, CAST(sum("left") AS BIGINT) FROM subtasks WHERE {_QUEUED} GROUP BY site
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """The work of a turn, now.

    Attributes:
        newest_event: its number, 0 if there is none. It grows with every transition.
        under_way: attempts past their result pages, as a rule (`UNDER_WAY`).
        recall, wake, admit, allocate: there is something for the sweep of this name: a lease that ran out or something
            in FAILED; something in SLEEP; something in PRIORITY; something in WAIT that may be given to a node.
        next_at: when the next subtask in WAIT may be given, or the next rest of a node at a host ends.
    """

    newest_event: int
    under_way: int
    recall: bool
    wake: bool
    admit: bool
    allocate: bool
    next_at: datetime | None


def find_todo(tx: Transaction) -> Todo:
    """Return the work there is."""
    (found,) = tx.records(Todo, _TODO, now=tx.now, ahead=tx.now + _AHEAD, before=tx.now - UNDER_WAY)
    return found


def _any_in(state: State, condition: str = "") -> str:
    """Return a condition: the queue holds a row. It reads the first row by the queue's index.

    PostgreSQL turns EXISTS into a scan of the table if it expects many rows in the queue. The scan stops at the first
    row, which may stand behind all that is done.
    """
    first = f"SELECT id FROM subtasks WHERE state = '{state}'{condition} ORDER BY priority DESC, id LIMIT 1"
    return f"({first}) IS NOT NULL"


_TODO = f"""
    SELECT (SELECT coalesce(max(id), 0) FROM events) AS newest_event,
        (SELECT count(*) FROM subtasks WHERE state = '{State.CRAWL}' AND lease_started AND changed_at <= :before)
            AS under_way,
        coalesce((SELECT min(lease_deadline) FROM subtasks WHERE state = '{State.CRAWL}') <= :now, false)
            OR {_any_in(State.FAILED)} AS recall,
        {_any_in(State.SLEEP)} AS wake, {_any_in(State.PRIORITY)} AS admit,
        {_any_in(State.WAIT, f" AND {_MAY_GO}")} AS allocate,
        (SELECT min(at) FROM (
            SELECT min(not_before) AS at FROM subtasks WHERE state = '{State.WAIT}' AND not_before > :now
            UNION ALL SELECT min(until) FROM host_rests WHERE until > :now
        ) next_times) AS next_at
"""


def all_settled(tx: Transaction, sites: Collection[str] = ()) -> bool:
    """Return True if every product is planned, every subtask DONE, CANCELLED or MANUAL, and every link judged.

    Args:
        sites: only subtasks at these sites count; empty: all.
    """
    if sites:
        return not tx.value(_UNSETTLED_AT, sites=sorted(sites))
    return not tx.value(_UNSETTLED)


def count_open_at(tx: Transaction, sites: Collection[str]) -> int:
    """Return the number of subtasks at these sites that are not settled."""
    states = [state for state in State if not state.settled]
    return int(
        tx.value(
            "SELECT count(*) FROM subtasks WHERE state IN :states AND site IN :sites",
            states=states,
            sites=sorted(sites),
        )
    )


def count_unjudged(tx: Transaction) -> int:
    """Return the number of links whose page has not been judged."""
    return int(tx.value("SELECT count(*) FROM page_products WHERE verdict = 'unjudged'"))


def _unsettled(condition: str = "") -> str:
    return f"""
        SELECT EXISTS (SELECT 1 FROM virtual_tasks WHERE planned_at IS NULL)
            OR EXISTS (SELECT 1 FROM page_products WHERE verdict = 'unjudged')
            OR {" OR ".join(_any_in(state, condition) for state in State if not state.settled)}
    """


_UNSETTLED = _unsettled()
_UNSETTLED_AT = _unsettled(" AND site IN :sites")
