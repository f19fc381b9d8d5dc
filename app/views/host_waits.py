"""Hosts that can't be asked, in words: why, until when, and how many subtasks wait for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from app.views.durations import seconds
from app.views.moments import local_time
from app.views.words import plural, translate
from tasks.domain.host_wait import NO_PERMIT
from tasks.domain.reasons import Explanation
from tasks.store.queries.queues import HostQueue
from tasks.store.queue.tasks import UnplannedSite

if TYPE_CHECKING:
    from splitter.catalog.model import Catalog

_NAMED = 3
_SOON_S = 120.0
"""A time nearer than this is said as a length, a later one by the clock."""


def wait_text(one: HostQueue, catalog: Catalog, now: datetime) -> str:
    """Return one line: 127.0.0.1:8888 does not answer; next try 14:03 (searxng): 56 subtasks."""
    name, engines = _named(one.host, catalog)
    text = _describe_wait(one, name, now)
    if engines:
        text = translate("{text} ({engines})", text=text, engines=engines)
    return plural("{text}: {n:,} subtask", "{text}: {n:,} subtasks", one.subtasks, text=text)


def _describe_wait(one: HostQueue, host: str, now: datetime) -> str:
    if one.unreachable:
        return translate("{host} does not answer; next try {when}", host=host, when=_at(one.until, now))
    if one.cause == NO_PERMIT:
        return translate(
            "{host} is asked as often as it may be; next try {when}", host=host, when=_at(one.until, now)
        )
    cause = translate(one.cause).replace("_", " ")
    length = _length(one.until, now)
    if length is None:
        return translate(
            "{host} rests until {time} at all nodes ({cause})", host=host, time=_time(one.until), cause=cause
        )
    return translate(
        "{host} rests for {length} at all nodes ({cause})", host=host, length=length, cause=cause
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HostWaitView:
    """A host that subtasks wait for.

    Attributes:
        host: with its port, if an engine has one.
        until: when it may be asked next.
        subtasks: how many wait.
        left: their hits to do, as far as known.
        engines: names of the engines there.
    """

    host: str
    cause: str
    until: datetime
    subtasks: int
    left: int
    engines: Sequence[str]


def view_waits(waits: Sequence[HostQueue], catalog: Catalog) -> list[HostWaitView]:
    """Return hosts that subtasks wait for, as people see them."""
    return [
        HostWaitView(
            host=_named(one.host, catalog)[0],
            cause=one.cause,
            until=one.until,
            subtasks=one.subtasks,
            left=one.left,
            engines=_engines(one.host, catalog),
        )
        for one in waits
    ]


def unplanned_texts(unplanned: Sequence[UnplannedSite]) -> list[str]:
    """Return a line for each reason not to ask sites: 58 sites: it does not answer (samr.gov.cn, ...)."""
    sites: dict[Explanation, list[str]] = {}
    for one in unplanned:
        sites.setdefault(one.because, []).append(one.site)
    return [
        plural(
            "{n} site: {why} ({sites})",
            "{n} sites: {why} ({sites})",
            len(those),
            why=why,
            sites=", ".join([*those[:_NAMED], *["..."][: len(those) > _NAMED]]),
        )
        for why, those in sites.items()
    ]


def _named(host: str, catalog: Catalog) -> tuple[str, str]:
    """A host with its port, where an engine has one, and the names of the engines there."""
    engines = _engines(host, catalog)
    name = urlsplit(catalog.engines[engines[0]].url).netloc if engines else host
    return name, ", ".join(engines) if host not in catalog.sites else ""


def _engines(host: str, catalog: Catalog) -> list[str]:
    return [name for name, engine in catalog.engines.items() if urlsplit(engine.url).hostname == host]


def _at(moment: datetime, now: datetime) -> str:
    if moment <= now:
        return translate("now")
    length = _length(moment, now)
    if length is None:
        return _time(moment)
    return translate("in {length}", length=length)


def _length(moment: datetime, now: datetime) -> str | None:
    """How long until a moment that is near."""
    left_s = max(1.0, (moment - now).total_seconds())
    return seconds(round(left_s)) if left_s < _SOON_S else None


def _time(moment: datetime) -> str:
    return f"{local_time(moment):%H:%M}"
