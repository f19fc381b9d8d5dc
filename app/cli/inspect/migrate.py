"""`reviewloop migrate`: bring a database to this version's schema."""

from __future__ import annotations

import click

from app.cli.options import db_option, json_option, settings_of, store_for_work
from app.cli.output import print_json, say
from tasks.store.sql.schema import revision


@click.command()
@db_option
@json_option
def migrate(db: str | None, as_json: bool) -> None:
    """Bring the database to this version's schema, or create it if there is none.

    `run`, `up` and the control worker do this when they start; every other command leaves the schema as it
    is, and reports a different one. Back up the database first (docs/backup.md).

    \b
    Examples:
      reviewloop migrate
      reviewloop migrate --db postgresql://crawler@db.example.org/reviewloop
    """
    with store_for_work(settings_of(db)) as store, store.read() as tx:
        now = revision(tx)
    if as_json:
        print_json({"revision": now})
    else:
        say(f"The database has revision {now}, the newest.")
