"""Options that several commands share, and what they open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from app.cli.output import say
from app.config import Settings, from_environment, lab_address
from splitter.catalog.load import BUILTIN
from splitter.catalog.model import Catalog, Group
from splitter.errors import InputError, ReviewloopError
from tasks.scheduling.strategies import ALLOCATION

if TYPE_CHECKING:
    from tasks.store.database import Store

F = TypeVar("F", bound=Callable[..., Any])

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


class LabAddress(click.ParamType[tuple[str, int]]):
    """HOST:PORT of a lab on loopback."""

    name = "lab"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Read the address, or fail with what would be right."""
        try:
            return value if isinstance(value, tuple) else lab_address(value)
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
    type=LabAddress(),
    metavar="127.0.0.1:PORT",
    help="Ask the lab there instead of the web (see `reviewloop lab`).",
)


pseudonymise_option = click.option(
    "--pseudonymise",
    is_flag=True,
    help="Authors by pseudonyms instead of names (docs/legal.md).",
)


_UNTIL = (
    click.option("--until-done", is_flag=True, help="End when all is DONE, CANCELLED or waits for a person."),
    click.option(
        "--for",
        "seconds",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        help="End after so long.",
    ),
)
_STRATEGIES = (
    click.option(
        "--allocation", type=click.Choice(list(ALLOCATION)), help="Who gets what. Default: feedback."
    ),
    click.option("--no-modification", is_flag=True, help="Leave quota and budget at the site's defaults."),
    click.option("--no-recall", is_flag=True, help="Give every failed subtask to a person at once."),
    click.option(
        "--silent-after",
        type=click.FloatRange(1),
        metavar="S",
        help="Silence after which work is taken back. Default: 60.",
    ),
)


def until_options(command: F) -> F:
    """When a runner ends: `until_done`, `seconds`."""
    return _with(_UNTIL, command)


def strategy_options(command: F) -> F:
    """What a runner's strategies do: `allocation`, `no_modification`, `no_recall`, `silent_after`."""
    return _with(_STRATEGIES, command)


def _with(options: tuple[Callable[[F], F], ...], command: F) -> F:
    for option in reversed(options):
        command = option(command)
    return command


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
    """The store of commands that look: a SQLite file that is not there is an error, not a new database.

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


def ask_for_contact(settings: Settings) -> None:
    """On the real web: say that nobody whose site is asked could tell whom to write to, where that is so."""
    if settings.lab is None and not settings.contact:
        say(
            "No contact is given: set REVIEWLOOP_CONTACT to an address or page where sites can reach you "
            "(docs/legal.md).",
            "yellow",
        )


def settings_of(db: str | None = None, sites: str | None = None, **options: Any) -> Settings:
    """Settings from the environment with a command's options over them. Raises InputError."""
    return from_environment(database_url=db, sites=sites, **options)
