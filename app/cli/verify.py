"""`reviewloop verify`: proof that the loop kept its promises."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from app.cli.options import db_option, json_option, settings_of, store_there
from app.cli.output import print_json, printed, table
from tasks.store.database import read_now
from tasks.store.verify import verify as verified


@click.command()
@db_option
@json_option
def verify(db: str | None, as_json: bool) -> None:
    """Prove that the loop kept its promises.

    From the event log and the tables: nothing was lost, doubled, or moved where it may not go.
    Each subtask is in exactly one queue, only legal transitions, never more than 5 recalls in a round, every attempt
    counted once, no page or review stored twice. Works while a runner runs. Exit status 1 if a promise was broken.

    \b
    Example:
      reviewloop verify --json
    """
    with store_there(settings_of(db)) as store, store.read() as conn:
        found = verified(conn, read_now(conn))
    if as_json:
        print_json({"violations": [asdict(v) for v in found.violations], "counts": dict(found.counts)})
    else:
        out = printed()
        if found.violations:
            rows = ((v.kind, v.subtask_id, v.message) for v in found.violations)
            out.print(
                table(("kind", "subtask", "what is wrong>"), rows, f"{len(found.violations)} violations")
            )
        else:
            out.print("No violation.", style="green")
        out.print(
            "Looked at: " + ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in found.counts.items()),
            soft_wrap=True,
        )
    if found.violations:
        sys.exit(1)
