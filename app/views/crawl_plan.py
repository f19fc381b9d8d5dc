"""The view of a crawl plan: the fields are those of `run --plan --json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from splitter.errors import Message
from tasks.jobs.obstacles import Obstacle, ObstacleKind

Unasked = Mapping[str, tuple[Obstacle, ...]]
"""The obstacles of each site that can't be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePlan:
    """The largest numbers of result pages and of pages behind their hits that a site will be asked for."""

    site: str
    engine: str
    searches: int
    pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaskedSite:
    """A site that can't be asked, with its obstacles and the first of them in words."""

    site: str
    why: Message
    mend: Message | None
    obstacles: tuple[Obstacle, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """An obstacle with its sites and what mends it."""

    kind: ObstacleKind
    why: Message
    mend: Message | None
    sites: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlPlan:
    """The requests of a crawl before the first of them.

    Attributes:
        missing: the obstacles, the one with the most sites first.
        requests: largest number: every result page is there and full, and none of its pages is known.
        seconds: time that these requests take at the limits of their hosts.
        slowest_host: the host that takes this time; empty if nothing is asked.
    """

    products: int
    asked: tuple[SitePlan, ...]
    not_asked: tuple[UnaskedSite, ...]
    missing: tuple[Missing, ...]
    requests: int
    seconds: float
    slowest_host: str
    notes: tuple[Message, ...] = ()


def site_obstacles(unasked: Unasked) -> tuple[UnaskedSite, ...]:
    """Return the sites that can't be asked, in their order."""
    return tuple(
        UnaskedSite(site=site, why=found[0].why, mend=found[0].mend, obstacles=found)
        for site, found in unasked.items()
    )


def missing(unasked: Unasked) -> tuple[Missing, ...]:
    """Return each obstacle once, the one with the most sites first."""
    sites: dict[Obstacle, list[str]] = {}
    for site, found in unasked.items():
        for one in found:
            sites.setdefault(one, []).append(site)
    rows = [
        Missing(kind=one.kind, why=one.why, mend=one.mend, sites=tuple(names)) for one, names in sites.items()
    ]
    return tuple(sorted(rows, key=lambda row: -len(row.sites)))
