"""The commands `reviewloop failed retry`, `assign`, `edit` and `abandon`: act on subtasks that wait for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import click

from app.actions import manual_actions
from app.actions.manual_actions import Action, RefusedSubtask
from app.cli.command import App, command
from app.cli.names import check_site
from app.cli.output import say
from app.cli.render import Done, Part, table, text
from app.views.words import join_words, name_text, translate
from splitter.errors import InputError
from tasks.domain.failures import FailureReason
from tasks.store.queries import subtask as subtask_queries
from tasks.store.queue import manual

dry_run_option = click.option("--dry-run", is_flag=True, help="Only list the subtasks; change nothing.")


@dataclass(frozen=True, slots=True)
class WouldChange:
    """A subtask that an action would change."""

    subtask: int
    product: str
    site: str
    state: str
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunView:
    """The result that an action would have.

    Attributes:
        unknown: numbers of subtasks that don't exist.
        refused: subtasks that can't be changed in this way, including unknown ones.
    """

    dry_run: bool
    would: Sequence[WouldChange]
    unknown: Sequence[int]
    refused: Sequence[RefusedSubtask]


@command(None, "retry")
@click.argument("subtasks", type=int, nargs=-1)
@click.option("--all", "every", is_flag=True, help="All subtasks that wait for a person.")
@click.option(
    "--reason", type=click.Choice([str(r) for r in FailureReason]), help="All subtasks with this cause."
)
@click.option("--site", metavar="NAME", help="All subtasks of this site.")
@dry_run_option
def retry(
    app: App, subtasks: tuple[int, ...], every: bool, reason: str | None, site: str | None, dry_run: bool
) -> Done | DryRunView:
    """Try subtasks again in a new round: no recalls, no nodes to avoid, every target untried.

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
    with app.store.read() as tx:
        check_site(tx, app.settings, site)
        ids = manual.list_ids(tx, reason=reason, site=site) if wide else list(subtasks)
    return _act(app, ids, manual_actions.retry(), translate("Tried again"), dry_run=dry_run)


@command(None, "assign")
@click.argument("subtask", type=int)
@click.argument("node")
def assign(app: App, subtask: int, node: str) -> Done | DryRunView:
    """Try SUBTASK again, only on NODE.

    \b
    Example:
      reviewloop failed assign 40 node2
    """
    message = translate("Given to {node}", node=node)
    return _act(app, [subtask], manual_actions.assign(node), message)


@command(None, "edit")
@click.argument("subtask", type=int)
@click.option(
    "--quota", type=click.IntRange(1, 1_000_000), help="Maximum number of hits of each further attempt."
)
@click.option(
    "--pages",
    type=click.IntRange(1, 1_000),
    help="Request only the first N of the result pages that are left.",
)
def edit(app: App, subtask: int, quota: int | None, pages: int | None) -> Done | DryRunView:
    """Change SUBTASK and try it again, with another quota or fewer result pages.

    \b
    Examples:
      reviewloop failed edit 40 --quota 5
      reviewloop failed edit 40 --pages 1
    """
    if pages is None and quota is None:
        raise InputError(
            "nothing to change: --quota or --pages; or reviewloop failed retry {subtask}", subtask=subtask
        )
    action = manual_actions.edit(pages, quota)
    return _act(app, [subtask], action, translate("Changed and tried again"))


@command(None, "abandon")
@click.argument("subtasks", type=int, nargs=-1, required=True)
@click.option(
    "--why", default="abandoned by a person", metavar="TEXT", help="Reason, stored in the event log."
)
@dry_run_option
def abandon(app: App, subtasks: tuple[int, ...], why: str, dry_run: bool) -> Done | DryRunView:
    """Abandon subtasks for good (CANCELLED), even if they don't wait for a person, unless they are DONE.

    \b
    Example:
      reviewloop failed abandon 40 --why "the site is gone"
    """
    return _act(app, subtasks, manual_actions.abandon(why), translate("Abandoned"), dry_run=dry_run)


def _act(
    app: App, ids: Sequence[int], action: Action, message: str, *, dry_run: bool = False
) -> Done | DryRunView:
    """Apply an action to each subtask. List the subtasks that can't be changed in this way, with the reason.

    Args:
        message: sentence about the changed subtasks.
    """
    outcome = manual_actions.act_on_each(app.store, ids, action, app.who, dry_run=dry_run)
    for one in outcome.refused:
        say(translate("refused: {why}", why=one.why), "red")
    if outcome.refused:
        app.exit_status = 2
    if dry_run:
        return _view_dry_run(app, outcome)
    told = "" if outcome.refused else translate("Nothing waits for a person there.")
    if outcome.done:
        told = name_text(message, join_words(map(str, outcome.done)))
    return Done(asdict(outcome), told)


def _view_dry_run(app: App, outcome: manual_actions.Outcome) -> DryRunView:
    with app.store.read() as tx:
        rows = [subtask_queries.get_subtask(tx, number) for number in outcome.done]
        unknown = [
            one.subtask for one in outcome.refused if subtask_queries.get_subtask(tx, one.subtask) is None
        ]
    would = [
        WouldChange(row["id"], row["product"], row["site"], row["state"], row["reason"])
        for row in rows
        if row
    ]
    return DryRunView(dry_run=True, would=would, unknown=unknown, refused=outcome.refused)


@text.register
def _(view: DryRunView) -> Iterator[Part]:
    if view.would:
        title = translate("It would be done to these ({n}); nothing was done", n=len(view.would))
        yield table(view.would, "subtask product site state reason", title=title)
    else:
        yield translate("Nothing waits for a person there.")
