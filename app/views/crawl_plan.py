"""The view of a crawl plan, with the fields of `run --plan --json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from splitter.errors import Message
from tasks.jobs.obstacles import Obstacle, ObstacleKind

Unasked = Mapping[str, tuple[Obstacle, ...]]
"""Obstacles by site, for sites that can't be crawled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePlan:
    """How many result pages and how many pages of hits a site will be asked for, at most."""

    site: str
    engine: str
    searches: int
    pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaskedSite:
    """A site that can't be crawled, with its obstacles and a text that describes the first one."""

    site: str
    why: Message
    mend: Message | None
    obstacles: tuple[Obstacle, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """An obstacle, with the sites that can't be crawled because of it, and its remedy."""

    kind: ObstacleKind
    why: Message
    mend: Message | None
    sites: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlPlan:
    """The requests that a crawl will make, and the time that they take.

    Attributes:
        missing: what prevents sites from being asked; the obstacle with the most sites first.
        requests: maximum number of requests, reached if all result pages are full and no page is known yet.
        seconds: time that these requests take if the rate limits of the hosts are kept.
        slowest_host: the host whose requests take the longest; empty without requests.
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
    """Return the sites that can't be crawled as views, in the same order."""
    return tuple(
        UnaskedSite(site=site, why=found[0].why, mend=found[0].mend, obstacles=found)
        for site, found in unasked.items()
    )


def missing(unasked: Unasked) -> tuple[Missing, ...]:
    """Return each obstacle once, with all its sites. The obstacle with the most sites comes first."""
    sites: dict[Obstacle, list[str]] = {}
    for site, found in unasked.items():
        for one in found:
            sites.setdefault(one, []).append(site)
    rows = [
        Missing(kind=one.kind, why=one.why, mend=one.mend, sites=tuple(names)) for one, names in sites.items()
    ]
    return tuple(sorted(rows, key=lambda row: -len(row.sites)))
