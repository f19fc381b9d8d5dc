"""`reviewloop migrate`: bring a database to this version's schema."""

from __future__ import annotations

from app.cli.command import App, command
from app.cli.options import store_for_work
from app.cli.render import Done
from app.views.words import translate
from tasks.store.sql.schema import revision


@command(None, "migrate")
def migrate(app: App) -> Done:
    """Bring the database to this version's schema, or create it if there is none.

    `run`, `up` and the control worker do this when they start; every other command leaves the schema as it
    is, and reports a different one. Back up the database first (docs/backup.md).

    \b
    Examples:
      reviewloop migrate
      reviewloop migrate --db postgresql://crawler@db.example.org/reviewloop
    """
    with store_for_work(app.settings) as store, store.read() as tx:
        now = revision(tx)
    return Done(
        {"revision": now}, translate("The database has revision {revision}, the newest.", revision=now)
    )
