"""Options that several commands share, and functions that open the store for a command."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import date
from functools import partial, wraps
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from app.cli.output import say
from app.insight.periods import read_period
from app.run.setting_values import lab_address, sqlite_file
from app.run.settings import load_settings, misspelt
from app.run.version import DEFAULT_DATA, DEFAULT_DATABASE
from app.views.moments import use_zone
from app.views.words import describe, translate
from splitter.catalog.names import BUILTIN, Group
from splitter.errors import InputError, Message, ReviewloopError, system_reason
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
    """The database can't be opened."""


class ReadableFile(click.File):
    """Type of an option or argument that names a file, which the command reads as bytes."""

    def __init__(self) -> None:
        super().__init__("rb")

    def convert(
        self,
        value: str | os.PathLike[str] | IO[Any],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> IO[Any]:
        """Open the file.

        If it can't be read, raise InputError with the file and the reason in the person's language.
        """
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            reason = error.__context__
            if not isinstance(reason, OSError):
                raise
            raise InputError(
                "{file} can't be read: {reason}", file=value, reason=system_reason(reason)
            ) from None


class ReadBy(click.ParamType[Any]):
    """Type of an option whose text is parsed by a function. The function raises InputError for a wrong text."""

    def __init__(self, name: str, read: Callable[[str], object]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the text. If the text is wrong, the error has the message of the parsing function."""
        try:
            return self._read(value) if isinstance(value, str) else value
        except InputError as error:
            self.fail(describe(error), param, ctx)


def _read_day(given: str) -> date:
    try:
        return date.fromisoformat(given)
    except ValueError:
        raise InputError("{given!r} is no day; write 2026-05-01", given=given[:40]) from None


DAY = ReadBy("YYYY-MM-DD", _read_day)


def period_options(usual: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--days`, `--from` and `--to` to a command. Its function gets a `PeriodChoice` as argument `period`.

    Args:
        usual: default number of days, or "all".
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(
            "--days",
            metavar="N|all",
            help=f"Only reviews written in the last N days up to today, or all. Default: {usual}.",
        )
        @click.option("--from", "first", type=DAY, help="Only reviews written on this day or later.")
        @click.option("--to", "last", type=DAY, help="Only reviews written on this day or earlier.")
        @wraps(function)
        def run(
            *given: Any, days: str | None, first: date | None, last: date | None, **options: Any
        ) -> object:
            return function(*given, period=read_period(days, first, last, usual), **options)

        return run

    return decorate


keywords_option = click.option(
    "--keywords", metavar="W,W", help="AND keywords instead of those found in the name (only with one NAME)."
)
alias_option = click.option(
    "--alias",
    "aliases",
    metavar="NAME",
    multiple=True,
    help="Another name, searched too (only with one NAME).",
)
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
    """Open the store for a run. Create it if it does not exist, and upgrade it to the newest schema.

    Raises:
        DatabaseUnusable: the database can't be opened, or is not a database of reviewloop.
    """
    from app.run.open_store import open_store

    if settings.database_url != DEFAULT_DATABASE and (folder := find_folder_of_up(settings)) is not None:
        raise InputError(
            "{folder} is the folder of `reviewloop up`, which works there: reviewloop up --data {folder}",
            folder=folder,
        )
    with _open(settings, open_store) as store:
        yield store


@contextmanager
def store_there(settings: Settings) -> Iterator[Store]:
    """Open the existing store for a command that reads or changes its rows.

    If `reviewloop up` made the store, its PostgreSQL is served during the block (`app.run.cluster.servers`).

    Raises:
        InputError: the SQLite file does not exist.
        WrongRevision: the store has the schema of another version. It is not upgraded.
        DatabaseUnusable: the database can't be opened, or is not a database of reviewloop.
    """
    from app.run.open_store import open_store

    with _find_store(settings) as found, _open(found, partial(open_store, upgrade=False)) as store:
        store.patient = True
        yield store


@contextmanager
def _find_store(settings: Settings) -> Iterator[Settings]:
    """Find an existing store, and yield settings with its URL. Raises InputError if there is none."""
    path, folder = sqlite_file(settings.database_url), find_folder_of_up(settings)
    if path is not None and path.is_file():
        if folder is not None:
            say(translate("`reviewloop up` left another store here: --db {folder}", folder=folder), "dim")
        yield settings
        return
    if folder is None:
        if path is not None and not path.exists() and path.absolute().parent.is_dir():
            raise InputError(
                "there is no database {path}: name yours with --db, or begin one with `reviewloop product add "
                "NAME`",
                path=path,
            )
        yield settings
        return
    from app.run.cluster.servers import serve_store  # loads the servers

    with serve_store(folder, lambda text: say(text, "dim")) as address:
        yield settings.replace(database_url=address)


def find_folder_of_up(settings: Settings) -> Path | None:
    """Return the folder of the store that `up` made, by the settings or by default; `None` if there is none."""
    folder = DEFAULT_DATA if settings.database_url == DEFAULT_DATABASE else Path(settings.database_url)
    if "://" in str(folder) or not folder.is_dir():
        return None
    from app.run.cluster.servers import has_store

    return folder if has_store(folder) else None


def refuse_store_of_up(settings: Settings) -> None:
    """Raise InputError if a run would create a new store although `up` has filled one in this folder."""
    folder = find_folder_of_up(settings)
    if folder is not None and _is_new(settings):
        raise InputError(
            "`reviewloop up` left its data in {folder}: continue with `reviewloop up`, or name another database "
            "with --db",
            folder=folder,
        )


def _is_new(settings: Settings) -> bool:
    path = sqlite_file(settings.database_url)
    return path is not None and (not path.exists() or path.stat().st_size == 0)


@contextmanager
def store_to_fill(settings: Settings) -> Iterator[Store]:
    """Open the store. Create it if it does not exist, but do not upgrade an existing one.

    Raises:
        WrongRevision: the store has the schema of another version.
        DatabaseUnusable: the database can't be opened, or is not a database of reviewloop.
    """
    new = _is_new(settings) and not find_folder_of_up(settings)
    with store_for_work(settings) if new else store_there(settings) as store:
        yield store


@contextmanager
def _open(settings: Settings, opened: Callable[[Settings], AbstractContextManager[Store]]) -> Iterator[Store]:
    with ExitStack() as stack:
        try:
            store = stack.enter_context(opened(settings))
        except StoreFailed as error:
            raise DatabaseUnusable("the database cannot be opened: {error}", error=error.message) from error
        yield store


def list_in_groups(catalog: Catalog, groups: Sequence[str]) -> tuple[str, ...]:
    """Return the catalog's sites that belong to one of these groups, or all sites if `groups` is empty.

    Raises:
        InputError: no site of the catalog belongs to one of these groups.
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
    """Return the sites that are named or belong to one of the groups; `None` if neither sites nor groups are given.

    Raises:
        InputError: a site is not in the catalog, or none of its sites belongs to one of the groups.
    """
    if not groups and not sites:
        return None
    check_known(catalog, sites)
    chosen = {*sites, *(list_in_groups(catalog, groups) if groups else ())}
    return tuple(site for site in catalog.sites if site in chosen)


def check_known(catalog: Catalog, sites: Iterable[str]) -> None:
    """Raise InputError if a site is not in the catalog."""
    for site in sites:
        if site not in catalog.sites:
            raise InputError.unknown(
                "there is no site {name!r}", site, catalog.sites, "`reviewloop sites list`"
            )


def warn_without_contact(settings: Settings) -> None:
    """Print a warning if the real web is crawled without a contact in the User-Agent."""
    if settings.lab is None and not settings.contact:
        said = translate(
            "No contact is given: set REVIEWLOOP_CONTACT to an address or page where sites can reach you "
            "(docs/legal.md)."
        )
        say(said, "yellow")


def person() -> str:
    """Return the name of the person who runs this command, for the audit log."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # the user of a container may have no name
        name = str(os.getuid())
    return f"{name}, CLI"


def database_hint() -> str:
    """Return the option `--db` of this command, for use in a suggested command; empty if it was not given."""
    context = click.get_current_context(silent=True)
    given = context.params if context is not None else {}
    folder = given.get("data")  # the folder with the store of `up`
    db = given.get("db") or (folder if folder != DEFAULT_DATA else None)
    return f" --db {db}" if db else ""


def settings_of(db: str | None = None, sites: str | None = None, **options: Any) -> Settings:
    """Return the settings: of the environment, or given by options of the command or before its name.

    Raises:
        InputError: a value is wrong.
    """
    context = click.get_current_context(silent=True)
    before = context.find_root().params if context is not None else {}
    options |= {
        "log_level": "info" if before.get("verbose") else None,
    }
    for name, meant in misspelt().items():
        said = translate("{name} is no setting", name=name)
        say(
            translate("{problem}; did you mean {near}?", problem=said, near=meant) if meant else said,
            "yellow",
        )
    settings = load_settings(database_url=db or None, sites=sites, **options)
    use_zone(settings.timezone)
    return settings


def keyword_list(keywords: str | None, aliases: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return the words given with `--keywords`; empty if the option was not given.

    Raises:
        InputError: `--keywords` has no word, or `--keywords` or `--alias` is given with several names.
    """
    if (keywords is not None or aliases) and len(names) != 1:
        raise InputError("--keywords and --alias belong to one name; {n} are given", n=len(names))
    from splitter.normalize import split_words  # loads the lexicon, which few commands need

    words = split_words(keywords or "")
    if keywords is not None and not words:
        raise InputError("--keywords has no words; write --keywords 光明,牛奶")
    return words
