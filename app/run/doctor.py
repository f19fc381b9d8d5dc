"""Checks whether this machine can crawl: each with what was found, and what mends it."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path

from app.run.node_browsers import NO_NODE_HAS_ONE, browsers_of_cluster
from app.run.preflight import Preflight, browser_missing, check_lab, preflight
from app.run.setting_fields import Settings
from app.run.setting_values import sqlite_file
from app.run.settings import misspelt
from app.run.version import MIGRATIONS
from app.sending.mail_server import smtp_server
from splitter.catalog.model import Catalog
from splitter.errors import InputError, ReviewloopError
from tasks.domain.errors import WrongRevision
from tasks.fetching.chromium import find_chromium
from tasks.jobs.obstacles import Obstacle, ObstacleKind
from tasks.store.sql import schema
from tasks.store.sql.database import Store, read_now

_LEAST_FREE_BYTES = 1_000_000_000
_MOST_SKEW_S = 10.0
_REDIS_S = 3.0
# The clock of a machine that lost its battery stands long before this.
_NOT_BEFORE = datetime(2026, 1, 1, tzinfo=UTC)


class CheckState(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check.

    Attributes:
        what: was looked at: "network", "SearXNG", ...
        said: what was found.
        mend: what to do about it; empty where nothing is to be done.
    """

    what: str
    state: CheckState
    said: str
    mend: str = ""


def examine(settings: Settings, now: Callable[[], datetime]) -> Iterator[Check]:
    """Every check in its order; none changes anything.

    Args:
        now: the machine's clock.
    """
    yield from _settings()
    catalog = settings.catalog()
    of_nodes = browsers_of_cluster(settings)
    lacks = browser_missing if of_nodes is None else partial(_lacking, of_nodes)
    if settings.lab is not None:
        yield _lab(settings.lab)
    else:
        found = preflight(settings, catalog, browser=lacks)
        yield _network(found)
        yield from _searxng(found)
        yield from _sites(found, catalog)
        if not settings.contact:
            yield Check(
                what="contact",
                state=CheckState.WARNING,
                said="sites can't reach you",
                mend="set REVIEWLOOP_CONTACT to an address or page of yours (docs/legal.md)",
            )
    yield from _browser(settings, catalog, lacks(settings), of_nodes)
    if settings.smtp_url:
        yield _mail(settings)
    yield from _database(settings, now)
    if settings.redis_url:
        yield asyncio.run(_redis(settings))
    yield _disk(settings)


def _settings() -> Iterator[Check]:
    wrong = misspelt()
    for name, meant in wrong.items():
        mend = (
            f"write {meant}"
            if meant
            else "see `reviewloop run --help` and app/run/settings.py for what there is"
        )
        yield Check(what="settings", state=CheckState.FAILED, said=f"{name} is no setting", mend=mend)
    if not wrong:
        yield Check(what="settings", state=CheckState.OK, said="every REVIEWLOOP_ variable is known")


def _lab(lab: tuple[str, int]) -> Check:
    try:
        check_lab(lab)
    except InputError as error:
        return Check(
            what="lab", state=CheckState.FAILED, said=str(error), mend=f"reviewloop lab --port {lab[1]}"
        )
    return Check(what="lab", state=CheckState.OK, said="{}:{} answers".format(*lab))


def _network(found: Preflight) -> Check:
    for those in found.unasked.values():
        for one in those:
            if one.kind is ObstacleKind.NETWORK:
                return Check(what="network", state=CheckState.FAILED, said=one.why, mend=one.mend)
    return Check(what="network", state=CheckState.OK, said="host names are looked up")


def _searxng(found: Preflight) -> Iterator[Check]:
    for name, one in found.searxng.items():
        if one.why:
            yield Check(what=name, state=CheckState.FAILED, said=one.why, mend=one.mend)
            continue
        said = f"{one.url} answers; its engines: {', '.join(one.engines) or 'none of category general'}"
        if not one.silent:
            yield Check(what=name, state=CheckState.OK, said=said)
            continue
        refused = ", ".join(f"{engine} ({why})" for engine, why in one.silent.items())
        yield Check(
            what=name,
            state=CheckState.WARNING if one.hits else CheckState.FAILED,
            said=f"{said}; not answered by {refused}",
            mend="wait until these engines answer it again, or switch others on in its settings.yml",
        )


def _sites(found: Preflight, catalog: Catalog) -> Iterator[Check]:
    asked, n = len(found.asked), len(catalog.sites)
    state = CheckState.OK if asked == n else CheckState.WARNING if asked else CheckState.FAILED
    mend = "" if asked == n else "reviewloop run --plan NAME tells which not, and why"
    yield Check(what="sites", state=state, said=f"{asked} of {n} sites can be asked", mend=mend)
    for site, those in found.unasked.items():
        for one in those:
            if one.kind is ObstacleKind.SIGN_IN:
                yield Check(
                    what="sign-in", state=CheckState.WARNING, said=f"{site}: {one.why}", mend=one.mend
                )


def _lacking(of_nodes: tuple[int, int], _settings: Settings) -> Obstacle | None:
    return None if of_nodes[1] else NO_NODE_HAS_ONE


def _browser(
    settings: Settings, catalog: Catalog, lacks: Obstacle | None, of_nodes: tuple[int, int] | None
) -> Iterator[Check]:
    made_by_script = sum(map(catalog.renders, catalog.sites))
    if not made_by_script:
        return
    of_all = f"{made_by_script} of {len(catalog.sites)} sites"
    if lacks is not None:
        said = f"{of_all} can't be asked: {lacks.why}"
        yield Check(what="browser", state=CheckState.WARNING, said=said, mend=lacks.mend)
        return
    if of_nodes is None:
        there = str(find_chromium(settings.chromium))
    else:
        there = f"{of_nodes[1]} of {of_nodes[0]} live nodes have one"
    yield Check(what="browser", state=CheckState.OK, said=f"{there}, for pages made by script ({of_all})")


def _mail(settings: Settings) -> Check:
    """How scheduled reports are mailed; nothing is sent."""
    try:
        server = smtp_server(settings.smtp_url, settings.mail_from)
    except InputError as error:
        return Check(what="mail", state=CheckState.FAILED, said=str(error), mend="see docs/schedules.md")
    user = f", user {server.user}" if server.user else ""
    said = f"{server.host}:{server.port} ({server.security}{user}), from {server.sender}"
    return Check(what="mail", state=CheckState.OK, said=said)


def _database(settings: Settings, now: Callable[[], datetime]) -> Iterator[Check]:
    from sqlalchemy.exc import SQLAlchemyError

    path = sqlite_file(settings.database_url)
    if path is not None and (locked := _not_writable(path)):
        yield _clock(now(), None)
        mend = "work in a folder of your own, or name another database with --db"
        yield Check(
            what="database",
            state=CheckState.FAILED,
            said=f"{locked} is not writable for this user",
            mend=mend,
        )
        return
    if path is not None and not path.exists():
        yield _clock(now(), None)
        yield Check(what="database", state=CheckState.OK, said=f"{path} is not there yet: a run begins it")
        return
    try:
        store = Store.open(settings.database_url)
        try:
            with store.read() as conn:
                revision, newest = schema.upgradable_revision(conn, MIGRATIONS), schema.newest(MIGRATIONS)
                its_now = read_now(conn)
        finally:
            store.close()
    except WrongRevision as error:
        yield Check(what="database", state=CheckState.FAILED, said=str(error), mend="see docs/backup.md")
        return
    except (SQLAlchemyError, ReviewloopError, OSError) as error:
        said = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        mend = f"is {path} a database of reviewloop?" if path else "start it, or set REVIEWLOOP_DATABASE_URL"
        yield Check(what="database", state=CheckState.FAILED, said=said, mend=mend)
        return
    yield _clock(now(), None if store.is_sqlite else its_now)
    if revision == newest:
        yield Check(what="database", state=CheckState.OK, said=f"answers, schema {revision}")
    else:
        said = f"its schema is {revision or 'empty'}, this version's is {newest}"
        yield Check(
            what="database", state=CheckState.WARNING, said=said, mend="reviewloop run or up migrates it"
        )


def _not_writable(path: Path) -> Path | None:
    """The file, or else its folder, where it is there and this user may not write into it."""
    folder = path.absolute().parent
    return next((one for one in (path, folder) if one.exists() and not os.access(one, os.W_OK)), None)


def _clock(machine: datetime, database: datetime | None) -> Check:
    mend = "set this machine's clock (timedatectl set-ntp true)"
    if machine < _NOT_BEFORE:
        return Check(
            what="clock", state=CheckState.FAILED, said=f"it stands at {machine:%Y-%m-%d}", mend=mend
        )
    if database is not None and (skew_s := abs((machine - database).total_seconds())) > _MOST_SKEW_S:
        said = f"it is {skew_s:.0f} s off the database's"
        return Check(what="clock", state=CheckState.WARNING, said=said, mend=mend)
    return Check(what="clock", state=CheckState.OK, said=f"{machine:%Y-%m-%d %H:%M} UTC")


async def _redis(settings: Settings) -> Check:
    from redis.exceptions import RedisError

    from app.run.open_store import open_redis

    try:
        async with asyncio.timeout(_REDIS_S), open_redis(settings) as redis:
            await redis.ping()
    except (RedisError, OSError, TimeoutError, ReviewloopError) as error:
        said = f"it does not answer: {error or f'nothing in {_REDIS_S:g} s'}"
        return Check(
            what="Redis", state=CheckState.FAILED, said=said, mend="start it, or set REVIEWLOOP_REDIS_URL"
        )
    return Check(what="Redis", state=CheckState.OK, said="answers")


def _disk(settings: Settings) -> Check:

    path = sqlite_file(settings.database_url)
    folder = (path.parent if path else Path()).resolve()
    if not folder.is_dir():
        return Check(
            what="disk", state=CheckState.FAILED, said=f"there is no folder {folder}", mend=f"mkdir {folder}"
        )
    free = shutil.disk_usage(folder).free
    said = f"{free / 1e9:.1f} GB free in {folder}"
    if free < _LEAST_FREE_BYTES:
        return Check(what="disk", state=CheckState.FAILED, said=said, mend="make room, or name another --db")
    return Check(what="disk", state=CheckState.OK, said=said)
