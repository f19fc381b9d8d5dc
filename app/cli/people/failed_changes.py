"""`reviewloop failed retry`, `assign`, `edit` and `abandon`: what a person does about subtasks that wait."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from app.actions import manual_actions
from app.cli.names import check_site
from app.cli.options import db_option, json_option, person, settings_of, store_there
from app.cli.output import messages, print_json, printed, say, table
from app.files.harmless import shown
from splitter.errors import InputError
from tasks.domain.failures import FailureReason
from tasks.store.queries import subtask as subtask_queries
from tasks.store.queue import manual
from tasks.store.sql.database import Store

_TOLD = ("product", "site", "state", "reason")

dry_run_option = click.option("--dry-run", is_flag=True, help="Only list what it would be done to.")


@click.command()
@click.argument("subtasks", type=int, nargs=-1)
@click.option("--all", "every", is_flag=True, help="All that wait.")
@click.option("--reason", type=click.Choice([str(r) for r in FailureReason]), help="All with this cause.")
@click.option("--site", metavar="NAME", help="All of this site.")
@dry_run_option
@db_option
@json_option
def retry(
    subtasks: tuple[int, ...],
    every: bool,
    reason: str | None,
    site: str | None,
    dry_run: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Try subtasks again: a new round, without recalls, without nodes to avoid, every target untried.

    \b
    Examples:
      reviewloop failed retry 40 41
      reviewloop failed retry --reason bad_rule
      reviewloop failed retry --site 12315.com
      reviewloop failed retry --all --dry-run
    """
    wide = every or reason is not None or site is not None
    if wide == bool(subtasks):
        raise InputError("name subtasks, or choose them by --all, --reason, --site; not both")
    settings = settings_of(db)
    with store_there(settings) as store:
        with store.read() as tx:
            check_site(tx, settings, site)
            ids = manual.list_ids(tx, reason=reason, site=site) if wide else list(subtasks)
        if dry_run:
            _print_dry_run(store, ids, "would be tried again", as_json)
        else:
            _each(store, ids, manual_actions.retry(), "tried again", as_json)


@click.command()
@click.argument("subtask", type=int)
@click.argument("node")
@db_option
@json_option
def assign(subtask: int, node: str, db: str | None, as_json: bool) -> None:
    """Try SUBTASK again, on NODE and no other.

    \b
    Example:
      reviewloop failed assign 40 node2
    """
    with store_there(settings_of(db)) as store:
        _each(store, [subtask], manual_actions.assign(node), f"given to {node}", as_json)


@click.command()
@click.argument("subtask", type=int)
@click.option("--quota", type=click.IntRange(1, 1_000_000), help="Most hits of each further attempt.")
@click.option(
    "--pages",
    type=click.IntRange(1, 1_000),
    help="Ask only for the first N of its result pages that are to do.",
)
@db_option
@json_option
def edit(
    subtask: int,
    quota: int | None,
    pages: int | None,
    db: str | None,
    as_json: bool,
) -> None:
    """Change SUBTASK, and try it again: a quota, fewer result pages.

    \b
    Examples:
      reviewloop failed edit 40 --quota 5
      reviewloop failed edit 40 --pages 1
    """
    if pages is None and quota is None:
        raise InputError(f"nothing to change: --quota or --pages; or reviewloop failed retry {subtask}")
    action = manual_actions.edit(pages, quota)
    with store_there(settings_of(db)) as store:
        _each(store, [subtask], action, "changed and tried again", as_json)


@click.command()
@click.argument("subtasks", type=int, nargs=-1, required=True)
@click.option("--why", default="abandoned by a person", metavar="TEXT", help="Kept in the event log.")
@dry_run_option
@db_option
@json_option
def abandon(subtasks: tuple[int, ...], why: str, dry_run: bool, db: str | None, as_json: bool) -> None:
    """Give subtasks up for good (CANCELLED); also those that don't wait for a person but aren't DONE.

    \b
    Example:
      reviewloop failed abandon 40 --why "the site is gone"
    """
    with store_there(settings_of(db)) as store:
        if dry_run:
            _print_dry_run(store, subtasks, "would be abandoned", as_json)
        else:
            _each(store, subtasks, manual_actions.abandon(why), "abandoned", as_json)


def _print_dry_run(store: Store, ids: Sequence[int], what: str, as_json: bool) -> None:
    """The subtasks that an action would be done to, with nothing done."""
    with store.read() as tx:
        rows = [(number, subtask_queries.get_subtask(tx, number)) for number in dict.fromkeys(ids)]
    there = [{"subtask": number, **{name: row[name] for name in _TOLD}} for number, row in rows if row]
    unknown = [number for number, row in rows if row is None]
    for number in unknown:
        say(f"refused: there is no subtask {number}", "red")
    if as_json:
        print_json({"dry_run": True, "would": there, "unknown": unknown})
    elif there:
        names = ("subtask", *_TOLD)
        cells = ([shown(str(one[name] if one[name] is not None else "-")) for name in names] for one in there)
        printed().print(table(names, cells, f"{len(there)} {what}; nothing was done"))
    elif not unknown:
        messages.print("nothing waits for a person there")
    if unknown:
        sys.exit(2)


def _each(store: Store, ids: Sequence[int], action: manual_actions.Action, what: str, as_json: bool) -> None:
    """Act on each subtask; those it cannot be done to are listed with the reason, the others go on."""
    outcome = manual_actions.act_on_each(store, ids, action, person())
    refused = [{"subtask": number, "why": why} for number, why in outcome.refused]
    for one in refused:
        say(f"refused: {one['why']}", "red")
    if as_json:
        print_json({"done": outcome.done, "refused": refused})
    elif outcome.done:
        printed().print(f"{what}: {', '.join(map(str, outcome.done))}")
    elif not refused:
        messages.print("nothing waits for a person there")
    if refused:
        sys.exit(2)
