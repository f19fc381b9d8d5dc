"""Check whether this machine can crawl. `app.cli.inspect.doctor` has the sentences for the results."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from app.run.nodes import NO_NODE_HAS_BROWSER, count_browsers
from app.run.open_store import explain_redis, ping_redis
from app.run.preflight import Preflight, browser_missing, check_lab, preflight
from app.run.setting_fields import Settings
from app.run.setting_values import sqlite_file
from app.run.settings import misspelt
from app.run.version import MIGRATIONS
from app.sending.mail_server import smtp_server
from splitter.catalog.model import Catalog
from splitter.errors import CatalogError, InputError, Message, ReviewloopError, system_reason
from tasks.domain.errors import WrongRevision
from tasks.fetching.chromium import find_chromium
from tasks.jobs.obstacles import Obstacle, ObstacleKind
from tasks.reading.judge.theme_file import load_themes
from tasks.store.sql import schema
from tasks.store.sql.database import Store

_LEAST_FREE_BYTES = 1_000_000_000
_MOST_SKEW_S = 10.0
_REDIS_S = 3.0
# The clock of a machine with an empty battery shows a much earlier date.
_NOT_BEFORE = datetime(2026, 1, 1, tzinfo=UTC)


class CheckState(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Check:
    """The subject and the result of one check.

    Attributes:
        what: the subject: "network", "SearXNG" and so on.
        reason: key of the sentence that explains the state.
        parameters: values to put into the sentence.
    """

    what: str
    state: CheckState
    reason: str
    parameters: Mapping[str, Any]


def _check(state: CheckState, what: str, reason: str, **parameters: Any) -> Check:
    return Check(what, state, reason, parameters)


_ok, _warning, _failed = (partial(_check, state) for state in CheckState)


def examine(settings: Settings, now: Callable[[], datetime]) -> Iterator[Check]:
    """Run the checks one by one, and yield their results. They change nothing.

    Args:
        now: the machine's clock.
    """
    if not (wrong := misspelt()):
        yield _ok("settings", "settings_known")
    for name, meant in wrong.items():
        yield _failed("settings", "misspelt" if meant else "unknown_setting", name=name, meant=meant)
    yield _check_themes(settings)
    try:
        yield from _check_web(settings, settings.catalog())
    except CatalogError as error:
        yield _failed("sites", "wrong_file", error=error.message)
    if settings.smtp_url:
        yield _check_mail(settings)
    yield from _check_database(settings, now)
    if settings.redis_url:
        yield _check_redis(settings)
    yield _check_disk(settings)


def _check_themes(settings: Settings) -> Check:
    """Check the themes file that a person edits. The file may be missing if the settings don't name it."""
    file = settings.themes_file
    if not settings.themes and not file.exists():
        return _ok("themes", "usual_themes", file=file)
    try:
        load_themes(file)
    except CatalogError as error:
        return _failed("themes", "wrong_file", error=error.message)
    return _ok("themes", "own_themes", file=file)


def _check_web(settings: Settings, catalog: Catalog) -> Iterator[Check]:
    """Check the browser, then the lab if it is used, else the network, own engines, the sites and the contact."""
    browsers = count_browsers(settings)
    no_browser = None if browsers and browsers[1] else NO_NODE_HAS_BROWSER
    if browsers is None:
        no_browser = browser_missing(settings)
    if settings.lab is not None:
        yield _check_lab(settings.lab)
    else:
        yield from _check_sites(preflight(settings, catalog, browser=lambda _settings: no_browser), catalog)
        if not settings.contact:
            yield _warning("contact", "no_contact")
    yield from _check_browser(settings, catalog, no_browser, browsers)


def _check_lab(lab: tuple[str, int]) -> Check:
    host, port = lab
    try:
        check_lab(lab)
    except InputError as error:
        return _failed("lab", "no_lab", error=error.message, port=port)
    return _ok("lab", "lab", host=host, port=port)


def _check_sites(found: Preflight, catalog: Catalog) -> Iterator[Check]:
    obstacles = [(site, one) for site, those in found.unasked.items() for one in those]
    offline = [one for _, one in obstacles if one.kind is ObstacleKind.NETWORK]
    if offline:
        yield _failed("network", "obstacle", why=offline[0].because, mend=offline[0].mend)
    else:
        yield _ok("network", "names_known")
    for name, one in found.searxng.items():
        if one.because is not None:
            yield _failed(name, "obstacle", why=one.because, mend=one.mend)
        elif not one.silent:
            yield _ok(name, "searxng", url=one.url, engines=one.engines)
        else:
            check = _warning if one.hits else _failed
            yield check(name, "silent_engines", url=one.url, engines=one.engines, silent=one.silent)
    asked, sites = len(found.asked), len(catalog.sites)
    check, reason = (_ok, "all_sites") if asked == sites else (_warning if asked else _failed, "some_sites")
    yield check("sites", reason, asked=asked, sites=sites)
    for site, obstacle in obstacles:
        if obstacle.kind in (ObstacleKind.SIGN_IN, ObstacleKind.UNSUPPORTED):
            what = "sign-in" if obstacle.kind is ObstacleKind.SIGN_IN else "engine"
            yield _warning(what, "site_obstacle", site=site, why=obstacle.because, mend=obstacle.mend)


def _check_browser(
    settings: Settings, catalog: Catalog, obstacle: Obstacle | None, browsers: tuple[int, int] | None
) -> Iterator[Check]:
    sites = {"rendered": sum(map(catalog.renders, catalog.sites)), "sites": len(catalog.sites)}
    if not sites["rendered"]:
        return
    if obstacle is not None:
        yield _warning("browser", "no_browser", why=obstacle.because, mend=obstacle.mend, **sites)
    elif browsers is None:
        yield _ok("browser", "browser", program=find_chromium(settings.chromium), **sites)
    else:
        yield _ok("browser", "browsers", nodes=browsers[0], rendering=browsers[1], **sites)


def _check_mail(settings: Settings) -> Check:
    """Check the form of the mail server's address. No connection is made."""
    try:
        server = smtp_server(settings.smtp_url, settings.mail_from)
    except InputError as error:
        return _failed("mail", "wrong_mail", error=error.message)
    return _ok("mail", "mail" if server.user else "mail_without_user", server=server)


def _check_database(settings: Settings, now: Callable[[], datetime]) -> Iterator[Check]:
    path, database_now = sqlite_file(settings.database_url), None
    try:
        if path is not None and (locked := _find_read_only(path)):
            check = _failed("database", "read_only", path=locked)
        elif path is not None and not path.exists():
            check = _ok("database", "new_database", path=path)
        else:
            revision, newest, database_now = _revisions(settings)
            result, reason = (_ok, "newest_schema") if revision == newest else (_warning, "old_schema")
            check = result("database", reason, revision=revision or Message("empty"), newest=newest)
    except WrongRevision as error:
        yield _failed("database", "wrong_schema", error=error.message)
        return
    except ReviewloopError as error:
        yield _failed("database", "no_database", error=error.message)
        return
    except OSError as error:
        yield _failed("database", "no_database", error=system_reason(error))
        return
    yield _check_clock(now(), None if path is not None else database_now)
    yield check


def _revisions(settings: Settings) -> tuple[str | None, str, datetime]:
    """Return the schema revision of the store, the revision that this version needs, and the database's time."""
    with closing(Store.open(settings.database_url)) as store, store.read() as tx:
        return schema.upgradable_revision(tx, MIGRATIONS), schema.newest(MIGRATIONS), tx.now


def _find_read_only(path: Path) -> Path | None:
    """Return the file, or else its folder, if it exists and this user may not write to it; else `None`."""
    folder = path.absolute().parent
    return next((one for one in (path, folder) if one.exists() and not os.access(one, os.W_OK)), None)


def _check_clock(machine: datetime, database: datetime | None) -> Check:
    if machine < _NOT_BEFORE:
        return _failed("clock", "past_clock", now=machine)
    if database is not None and (skew_s := abs((machine - database).total_seconds())) > _MOST_SKEW_S:
        return _warning("clock", "clock_skew", skew_s=skew_s)
    return _ok("clock", "clock", now=machine)


def _check_redis(settings: Settings) -> Check:
    from redis.exceptions import RedisError

    try:
        asyncio.run(ping_redis(settings, _REDIS_S))
    except (RedisError, OSError) as error:
        return _failed("Redis", "no_redis", error=explain_redis(settings, error))
    except ReviewloopError as error:
        return _failed("Redis", "no_redis", error=error.message)
    return _ok("Redis", "redis")


def _check_disk(settings: Settings) -> Check:
    path = sqlite_file(settings.database_url)
    folder = (path.parent if path else Path()).resolve()
    if not folder.is_dir():
        return _failed("disk", "no_folder", folder=folder)
    free = shutil.disk_usage(folder).free
    check, reason = (_failed, "full_disk") if free < _LEAST_FREE_BYTES else (_ok, "disk")
    return check("disk", reason, gb=free / 1e9, folder=folder)
