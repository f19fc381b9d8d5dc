"""Make commands from functions that get an `App` and return views or yield them, and print the views."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any

import click

from app.cli.options import (
    db_option,
    find_folder_of_up,
    json_option,
    lab_option,
    person,
    settings_of,
    sites_option,
    store_there,
)
from app.run.setting_values import sqlite_file

if TYPE_CHECKING:
    from app.run.setting_fields import Settings
    from tasks.store.sql.database import Store

_SHARED = ("db", "sites", "lab")
"""Options that belong to `App`. A command does not get them as arguments."""


@dataclass
class App:
    """The settings, the store and the options of a running command.

    Attributes:
        options: the values of `--db`, `--sites` and `--lab`.
        exit_status: exit status of the command: 0 if it is done, 1 if the work failed, 2 if the input was wrong.
    """

    context: click.Context
    as_json: bool
    options: dict[str, Any] = field(default_factory=dict)
    exit_status: int = 0

    @cached_property
    def settings(self) -> Settings:
        """The settings of the environment. Options of the command override them."""
        return settings_of(**self.options)

    @cached_property
    def store(self) -> Store:
        """The existing store. It is opened at first use and closed when the command ends."""
        return self.context.with_resource(store_there(self.settings))

    def has_store(self) -> bool:
        """Return False if the database is a SQLite file that does not exist."""
        path = sqlite_file(self.settings.database_url)
        return path is None or path.is_file() or find_folder_of_up(self.settings) is not None

    @property
    def who(self) -> str:
        """Name of the person who runs the command, for the audit log."""
        return person()

    def show(self, view: object) -> None:
        """Print a view, or each view of an iterator. With `--json`, each view of an iterator is one line."""
        from app.cli.render import show

        views = view if isinstance(view, Iterator) else [view]
        for one in views:
            if one is not None:
                show(one, as_json=self.as_json, is_line=isinstance(view, Iterator))


def command(
    group: click.Group | None, name: str, *, db: bool = True, sites: bool = False, lab: bool = False
) -> Callable[[Callable[..., object]], click.Command]:
    """Return a decorator that makes a command from a function.

    The function gets an `App` and the command's own options.

    Args:
        group: group of the command; `None` for a command without a group.
        db, sites, lab: True to add the options `--db`, `--sites` and `--lab`. `--json` is always added.
    """

    def decorate(function: Callable[..., object]) -> click.Command:
        @wraps(function)
        def run(as_json: bool, **given: Any) -> None:
            options = {name: given.pop(name) for name in _SHARED if name in given}
            app = App(click.get_current_context(), as_json, options)
            app.show(function(app, **given))
            if app.exit_status:
                app.context.exit(app.exit_status)

        made = click.command(name)(run)
        for is_wanted, option in ((lab, lab_option), (sites, sites_option), (db, db_option)):
            if is_wanted:
                made = option(made)
        made = json_option(made)
        if group is not None:
            group.add_command(made)
        return made

    return decorate
