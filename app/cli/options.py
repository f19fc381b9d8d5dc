"""Options that several commands share, and what they open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.cli.output import say
from app.config import Settings, from_environment, lab_address
from splitter.catalog.load import BUILTIN
from splitter.catalog.model import Catalog, Group
from splitter.errors import InputError, ReviewloopError

if TYPE_CHECKING:
    from tasks.store.database import Store

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)

db_option = click.option(
    "--db",
    metavar="URL",
    help="sqlite:///FILE or postgresql://USER@HOST/NAME. "
    "Default: REVIEWLOOP_DATABASE_URL, else sqlite:///reviewloop.db in this folder.",
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
            self.fail(str(error), param, ctx)


group_option = click.option(
    "--group",
    type=click.Choice([str(group) for group in Group]),
    multiple=True,
    help="Only sites of this group; repeatable.",
)
lab_option = click.option(
    "--lab",
    type=ReadBy("lab", lab_address),
    metavar="127.0.0.1:PORT",
    help="Ask the lab there instead of the web (see `reviewloop lab`).",
)
pseudonymise_option = click.option(
    "--pseudonymise",
    is_flag=True,
    default=None,
    help="Authors by pseudonyms instead of names (docs/legal.md).",
)


@contextmanager
def store_for_work(settings: Settings) -> Iterator[Store]:
    """The store, begun where there is none yet.

    Raises:
        DatabaseUnusable: it cannot be opened, or is no database of ours.
    """
    from alembic.util import CommandError
    from sqlalchemy.exc import DBAPIError

    from app import wiring

    with ExitStack() as stack:
        try:
            store = stack.enter_context(wiring.opened_store(settings))
        except DBAPIError as error:
            raise DatabaseUnusable(f"the database cannot be opened: {str(error.orig).strip()}") from error
        except CommandError as error:
            raise DatabaseUnusable(
                f"the database is of another version of reviewloop: {error}; update reviewloop"
            ) from error
        yield store


@contextmanager
def store_there(settings: Settings) -> Iterator[Store]:
    """The store of commands that only read or change what is there: a missing SQLite file is an error.

    Raises:
        InputError: there is no such file.
    """
    path = sqlite_file(settings.database_url)
    if path is not None and not path.is_file():
        raise InputError(
            f"there is no database {path}: name yours with --db, or begin one with `reviewloop product add NAME`"
        )
    with store_for_work(settings) as store:
        yield store


def sqlite_file(url: str) -> Path | None:
    """The file of a SQLite database; None for another database, or one in memory."""
    path = url.removeprefix("sqlite:///")
    return Path(path) if path != url and path not in ("", ":memory:") else None


def in_groups(catalog: Catalog, groups: Sequence[str]) -> tuple[str, ...]:
    """The sites of a catalog in these groups; all of them where none is named.

    Raises:
        InputError: there is none.
    """
    sites = tuple(name for name, site in catalog.sites.items() if not groups or site.group in groups)
    if not sites:
        known = sorted({str(site.group) for site in catalog.sites.values() if site.group})
        raise InputError(
            f"{catalog.name} has no site in {', '.join(groups)}; its groups are {', '.join(known) or 'not said'}"
        )
    return sites


def warn_without_contact(settings: Settings) -> None:
    """Warn where the real web is crawled and the User-Agent names nobody to write to."""
    if settings.lab is None and not settings.contact:
        say(
            "No contact is given: set REVIEWLOOP_CONTACT to an address or page where sites can reach you "
            "(docs/legal.md).",
            "yellow",
        )


def settings_of(db: str | None = None, sites: str | None = None, **options: Any) -> Settings:
    """Settings from the environment with a command's options over them. Raises InputError."""
    return from_environment(database_url=db, sites=sites, **options)


def keyword_list(keywords: str | None, aliases: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The words of `--keywords`; empty where it was not given.

    Raises:
        InputError: there is no word in it, or it (or `--alias`) comes with more than one name.
    """
    if (keywords is not None or aliases) and len(names) != 1:
        raise InputError(f"--keywords and --alias belong to one name; {len(names)} are given")
    words = tuple(word for word in (keywords or "").replace("，", ",").split(",") if word.strip())
    if keywords is not None and not words:
        raise InputError("--keywords holds no word; write --keywords 光明,牛奶")
    return words
