"""Describe hosts that can't be asked now: the reason, the time of the next request, and how many subtasks wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from app.views.fields import format_moment
from app.views.words import join_words, plural, translate
from tasks.domain.reasons import Explanation
from tasks.store.queries.queues import HostQueue
from tasks.store.queue.tasks import UnplannedSite

if TYPE_CHECKING:
    from splitter.catalog.model import Catalog

_NAMED = 3
WAIT_FIELDS = "host cause until subtasks engines"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostWaitView:
    """A host that subtasks wait for.

    Attributes:
        host: name of the host, with the port if an engine's URL has one.
        until: time of the next request.
        subtasks: number of waiting subtasks.
        left: number of search hits that these subtasks have still to fetch, as far as it is known.
        engines: names of the engines on this host.
    """

    host: str
    cause: str
    until: datetime
    subtasks: int
    left: int
    engines: Sequence[str]


def view_waits(waits: Sequence[HostQueue], catalog: Catalog) -> list[HostWaitView]:
    """Return views of hosts that subtasks wait for."""
    return [
        HostWaitView(
            host=urlsplit(catalog.engines[engines[0]].url).netloc if engines else one.host,
            cause=one.cause,
            until=one.until,
            subtasks=one.subtasks,
            left=one.left,
            engines=engines,
        )
        for one in waits
        for engines in (_find_engines(one.host, catalog),)
    ]


def describe_wait(wait: HostWaitView, now: datetime) -> str:
    """Return a line such as "127.0.0.1:8888 (unreachable): 56 subtasks wait; next request in 14 s"."""
    when = format_moment(wait.until, now) if wait.until > now else translate("now")
    return plural(
        "{host} ({cause}): {n:,} subtask waits; next request {when}",
        "{host} ({cause}): {n:,} subtasks wait; next request {when}",
        wait.subtasks,
        host=wait.host,
        cause=translate(wait.cause).replace("_", " "),
        when=when,
    )


def describe_unplanned(unplanned: Sequence[UnplannedSite]) -> list[str]:
    """Return one line for each reason why sites are not crawled: "58 sites: it does not answer (samr.gov.cn, ...)"."""
    sites: dict[Explanation, list[str]] = {}
    for one in unplanned:
        sites.setdefault(one.because, []).append(one.site)
    return [
        plural(
            "{n} site: {why} ({sites})",
            "{n} sites: {why} ({sites})",
            len(those),
            why=why,
            sites=join_words([*those[:_NAMED], *["..."][: len(those) > _NAMED]]),
        )
        for why, those in sites.items()
    ]


def _find_engines(host: str, catalog: Catalog) -> list[str]:
    return [name for name, engine in catalog.engines.items() if urlsplit(engine.url).hostname == host]
