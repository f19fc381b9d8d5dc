"""Admission to WAIT: a few subtasks of every site, so that sites without a node don't keep other sites out.

Allocation chooses from WAIT. It is bounded, so that a late urgent product does not wait behind a million admitted
subtasks. If it were filled in queue order, sites that no node can serve now (resting hosts, busy or missing nodes)
would fill it over time. So every site has a window:

    window = max(`LEAST`, limit / sites with work)

A subtask is admitted while fewer than `window` subtasks of its site wait with the same or a higher priority. Less
urgent ones do not count, so an urgent subtask is admitted however full WAIT is. The number of admitted subtasks is at
most

    max(limit, LEAST * sites)

for each priority in use. It grows with the catalog, but not with the backlog.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from tasks.domain.facts import Entrant

LEAST = 4
"""Minimum window, so that a site has subtasks in WAIT until the sweep after the next."""


def bound(limit: int, sites: int) -> int:
    """Return the maximum number of admitted subtasks of one priority for a number of sites."""
    return max(limit, LEAST * sites)


def openings(heads: Mapping[str, int], waiting: Mapping[tuple[str, int], int], limit: int) -> dict[str, int]:
    """Return how many subtasks from the head of each site's queue to consider. Sites with none are left out.

    Args:
        heads: highest priority in each site's queue, by site.
        waiting: number of waiting subtasks by (site, priority).
        limit: `limit` in the module's formulas.
    """
    window = _window(limit, heads, waiting)
    urgent = Counter[str]()
    for (site, priority), count in waiting.items():
        if priority >= heads.get(site, priority + 1):
            urgent[site] += count
    return {site: window - urgent[site] for site in heads if urgent[site] < window}


def admit(
    entrants: Iterable[Entrant], heads: Mapping[str, int], waiting: Mapping[tuple[str, int], int], limit: int
) -> list[int]:
    """Return the admitted subtasks: higher priority first; within a priority the first of each site, then the second.

    Args:
        entrants: the subtasks at the head of each site's queue, in order, as many as `openings` returns.
        heads, waiting, limit: as in `openings`.
    """
    window = _window(limit, heads, waiting)
    there: dict[str, dict[int, int]] = {}
    for (site, priority), count in waiting.items():
        there.setdefault(site, {})[priority] = count
    let_in: list[tuple[int, int, int]] = []
    of_site = Counter[str]()
    of_level = Counter[tuple[str, int]]()
    for one in entrants:
        same_or_higher = sum(n for priority, n in there.get(one.site, {}).items() if priority >= one.priority)
        if same_or_higher + of_site[one.site] < window:
            of_site[one.site] += 1
            let_in.append((-one.priority, of_level[one.site, one.priority], one.id))
            of_level[one.site, one.priority] += 1
    return [subtask_id for _, _, subtask_id in sorted(let_in)]


def _window(limit: int, heads: Mapping[str, int], waiting: Mapping[tuple[str, int], int]) -> int:
    sites = len(heads.keys() | {site for site, _ in waiting})
    return bound(limit, sites) // max(1, sites)
