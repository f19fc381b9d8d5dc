"""Admission to WAIT: of every site a few, so that sites nobody serves keep no other out.

WAIT is what allocation chooses from, and it is bounded, so that a late urgent product is not stuck behind a million
admitted ones. If it were filled in queue order alone, the sites that nobody can serve now (resting hosts, busy or
missing nodes) would come to fill it. So every site has a window:

    window = max(`LEAST`, limit / sites with work)

A site's subtask is let in as long as fewer than `window` of its site wait with the same or a higher priority. What is
less urgent does not count, so something urgent comes in at once however full WAIT is. So what was let in is at most

    max(limit, LEAST * sites)

for each priority that is in use: it grows with the catalog, never with the backlog.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from tasks.domain.facts import Entrant

LEAST = 4
"""The narrowest window: a site's next subtasks are there before the sweep after the next."""


def bound(limit: int, sites: int) -> int:
    """Most subtasks that are let in while no more urgent ones come, for so many sites."""
    return max(limit, LEAST * sites)


def openings(heads: Mapping[str, int], waiting: Mapping[tuple[str, int], int], limit: int) -> dict[str, int]:
    """How many subtasks of each site, the first of its queue, have to be looked at; sites of which none are left out.

    Args:
        heads: by site with a queue, the highest priority in it.
        waiting: by (site, priority), how many wait already.
        limit: see the module's formulas.
    """
    window = _window(limit, heads, waiting)
    urgent = Counter[str]()
    for (site, priority), count in waiting.items():
        if priority >= heads.get(site, priority + 1):
            urgent[site] += count
    return {site: window - urgent[site] for site in heads if urgent[site] < window}


def admitted(
    entrants: Iterable[Entrant], heads: Mapping[str, int], waiting: Mapping[tuple[str, int], int], limit: int
) -> list[int]:
    """The ones that are let in: higher priority first, and within one priority the first of each site, then the second.

    Args:
        entrants: of each site the first of its queue, in order, as many as `openings` says.
        heads, waiting, limit: as there.
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
