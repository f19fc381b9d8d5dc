"""Options that several commands share, and what they open."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import date
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.cli.output import say
from app.insight.periods import read_period
from app.run.setting_values import lab_address, sqlite_file
from app.run.settings import load_settings, misspelt
from app.run.version import DEFAULT_DATA, DEFAULT_DATABASE
from app.views.moments import use_zone
from app.views.words import describe
from splitter.catalog.names import BUILTIN, Group
from splitter.errors import InputError, Message, ReviewloopError
from tasks.domain.errors import StoreFailed

if TYPE_CHECKING:
    from app.run.setting_fields import Settings
    from splitter.catalog.model import Catalog
    from tasks.store.sql.database import Store

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)

db_option = click.option(
    "--db",
    metavar="URL|FILE",
    help="A SQLite file, postgresql://USER@HOST/NAME, or the folder of `reviewloop up --data`. "
    "Default: REVIEWLOOP_DATABASE_URL, else sqlite:///reviewloop.db in this folder, else what `up` left here.",
)
sites_option = click.option(
    "--sites",
    metavar="FILE|NAME",
    help=f"Catalog: a file, or the built-in {', '.join(BUILTIN)}. Default: sites.yaml here, else the project's.",
)
json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print only JSON on standard output; the rest goes to standard error.",
)


class DatabaseUnusable(ReviewloopError):
    """The database cannot be opened."""


class ReadBy(click.ParamType[Any]):
    """An option whose text is read by a function that raises InputError where it is wrong."""

    def __init__(self, name: str, read: Callable[[str], object]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the text; a wrong one is refused with what would be right."""
        try:
            return self._read(value) if isinstance(value, str) else value
        except InputError as error:
            self.fail(describe(error), param, ctx)


def _read_day(given: str) -> date:
    try:
        return date.fromisoformat(given)
    except ValueError:
        raise InputError("{given!r} is no day; write 2026-05-01", given=given[:40]) from None


_DAY = ReadBy("YYYY-MM-DD", _read_day)


def period_options(usual: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--days`, `--from` and `--to` to a command, which gets a `PeriodChoice` as its argument `period`.

    Args:
        usual: the number of days without these options, or "all".
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(
            "--days",
            metavar="N|all",
            help=f"Only reviews written in the last N days up to today, or all. Default: {usual}.",
        )
        @click.option("--from", "first", type=_DAY, help="Only reviews written on this day or later.")
        @click.option("--to", "last", type=_DAY, help="Only reviews written on this day or earlier.")
        @wraps(function)
        def run(
            *given: Any, days: str | None, first: date | None, last: date | None, **options: Any
        ) -> object:
            return function(*given, period=read_period(days, first, last, usual), **options)

        return run

    return decorate


group_option = click.option(
    "--group",
    "groups",
    type=click.Choice([str(group) for group in Group]),
    multiple=True,
    help="Only sites of this group. Repeatable.",
)
site_option = click.option(
    "--site", "sites_named", metavar="SITE", multiple=True, help="Only this site. Repeatable."
)
lab_option = click.option(
    "--lab",
    type=ReadBy("lab", lab_address),
    metavar="127.0.0.1:PORT",
    help="Send all requests to the lab there instead of the web (see `reviewloop lab`).",
)


@contextmanager
def store_for_work(settings: Settings) -> Iterator[Store]:
    """The store, begun where there is none yet, and brought to the newest schema.

    Raises:
        DatabaseUnusable: it cannot be opened, or is no database of ours.
    """
    from app.run.open_store import open_store

    with _opened(settings, open_store) as store:
        yield store


@contextmanager
def store_there(settings: Settings) -> Iterator[Store]:
    """The store of commands that only read or change what is there: a missing SQLite file is an error.

    A cluster's store that `reviewloop up` left is served for as long as the block runs (`app.run.cluster.servers`).

    Raises:
        InputError: there is no such file.
        WrongRevision: it has another version's schema: this one brings no database up.
        DatabaseUnusable: it cannot be opened, or is no database of ours.
    """
    from app.run.open_store import open_store

    with _found(settings) as found, _opened(found, partial(open_store, upgrade=False)) as store:
        store.patient = True
        yield store


@contextmanager
def _found(settings: Settings) -> Iterator[Settings]:
    """Settings that name a store that is there. Raises InputError where there is none."""
    path, folder = sqlite_file(settings.database_url), left_by_up(settings)
    if path is not None and path.is_file():
        if folder is not None:
            say(f"`reviewloop up` left another store here: --db {folder}", "dim")
        yield settings
        return
    if folder is None:
        if path is not None:
            raise InputError(
                "there is no database {path}: name yours with --db, or begin one with `reviewloop product add "
                "NAME`",
                path=path,
            )
        yield settings
        return
    from app.run.cluster.servers import serve_store  # it brings the servers

    with serve_store(folder, lambda text: say(text, "dim")) as address:
        yield settings.with_(database_url=address)


def left_by_up(settings: Settings) -> Path | None:
    """The folder of a cluster whose store is meant, if there is one: the one named, or the usual one."""
    folder = DEFAULT_DATA if settings.database_url == DEFAULT_DATABASE else Path(settings.database_url)
    if "://" in str(folder) or not folder.is_dir():
        return None
    from app.run.cluster.servers import has_store

    return folder if has_store(folder) else None


@contextmanager
def store_to_fill(settings: Settings) -> Iterator[Store]:
    """The store, begun where there is none yet; one that is there keeps its schema.

    Raises:
        WrongRevision: it has another version's schema.
        DatabaseUnusable: it cannot be opened, or is no database of ours.
    """
    path = sqlite_file(settings.database_url)
    new = path is not None and (not path.exists() or path.stat().st_size == 0) and not left_by_up(settings)
    with store_for_work(settings) if new else store_there(settings) as store:
        yield store


@contextmanager
def _opened(
    settings: Settings, opened: Callable[[Settings], AbstractContextManager[Store]]
) -> Iterator[Store]:
    with ExitStack() as stack:
        try:
            store = stack.enter_context(opened(settings))
        except StoreFailed as error:
            raise _cannot_open(settings, error) from error
        yield store


def _cannot_open(settings: Settings, error: StoreFailed) -> DatabaseUnusable:
    """Return why a database cannot be opened, with its place and what would be right if that can be seen."""
    path = sqlite_file(settings.database_url)
    if path is None:
        return DatabaseUnusable("the database cannot be opened: {error}", error=error)
    folder = path.absolute().parent
    if not folder.is_dir():
        return DatabaseUnusable(
            "the database {path} cannot be opened: there is no folder {folder}", path=path, folder=folder
        )
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        return DatabaseUnusable(
            "the database {path} cannot be opened: {folder} or the file is not writable for this user",
            path=path,
            folder=folder,
        )
    return DatabaseUnusable("the database {path} cannot be opened: {error}", path=path, error=error)


def in_groups(catalog: Catalog, groups: Sequence[str]) -> tuple[str, ...]:
    """The sites of a catalog in these groups; all of them where none is named.

    Raises:
        InputError: there is none.
    """
    sites = tuple(name for name, site in catalog.sites.items() if not groups or site.group in groups)
    if not sites:
        known = sorted({str(site.group) for site in catalog.sites.values() if site.group})
        raise InputError(
            "{name} has no site in {groups}; its groups are {known}",
            name=catalog.name,
            groups=", ".join(groups),
            known=", ".join(known) or Message("not said"),
        )
    return sites


def chosen_sites(catalog: Catalog, groups: Sequence[str], sites: Sequence[str]) -> tuple[str, ...] | None:
    """The sites of a catalog that are in these groups or named; None where neither is given.

    Raises:
        InputError: a site is not in the catalog, or no site in the groups.
    """
    if not groups and not sites:
        return None
    check_known(catalog, sites)
    chosen = {*sites, *(in_groups(catalog, groups) if groups else ())}
    return tuple(site for site in catalog.sites if site in chosen)


def check_known(catalog: Catalog, sites: Iterable[str]) -> None:
    """Raises InputError where a site is not in the catalog."""
    for site in sites:
        if site not in catalog.sites:
            raise InputError.unknown(
                "there is no site {name!r}", site, catalog.sites, "`reviewloop sites list`"
            )


def warn_without_contact(settings: Settings) -> None:
    """Warn where the real web is crawled and the User-Agent names nobody to write to."""
    if settings.lab is None and not settings.contact:
        say(
            "No contact is given: set REVIEWLOOP_CONTACT to an address or page where sites can reach you "
            "(docs/legal.md).",
            "yellow",
        )


def person() -> str:
    """The person who runs this command, for the audit log."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user need have no name
        name = str(os.getuid())
    return f"{name}, command line"


def database_hint() -> str:
    """Return the option `--db` as it was given to this command, to be repeated in a suggestion; empty if it was not."""
    context = click.get_current_context(silent=True)
    given = context.params if context is not None else {}
    folder = given.get("data")  # of `up`, whose store is there
    db = given.get("db") or (folder if folder != DEFAULT_DATA else None)
    return f" --db {db}" if db else ""


def settings_of(db: str | None = None, sites: str | None = None, **options: Any) -> Settings:
    """Settings from the environment with a command's options over them, and those before it. Raises InputError."""
    context = click.get_current_context(silent=True)
    before = context.find_root().params if context is not None else {}
    options |= {
        "log_level": "info" if before.get("verbose") else None,
    }
    for name, meant in misspelt().items():
        say(f"{name} is no setting{f': {meant} is' if meant else ''}", "yellow")
    settings = load_settings(database_url=db or None, sites=sites, **options)
    use_zone(settings.timezone)
    return settings


def keyword_list(keywords: str | None, aliases: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The words of `--keywords`; empty where it was not given.

    Raises:
        InputError: there is no word in it, or it (or `--alias`) comes with more than one name.
    """
    if (keywords is not None or aliases) and len(names) != 1:
        raise InputError("--keywords and --alias belong to one name; {n} are given", n=len(names))
    from splitter.normalize import split_words  # it brings the lexicon, which few commands need

    words = split_words(keywords or "")
    if keywords is not None and not words:
        raise InputError("--keywords has no words; write --keywords 光明,牛奶")
    return words
