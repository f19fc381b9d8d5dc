"""`reviewloop verify`: check the invariants of the loop."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from app.cli.command import App, command
from app.cli.render import Part, table, text
from app.views.fields import format_counts, format_moment
from app.views.words import plural, translate
from tasks.store.verify.verify import Verification
from tasks.store.verify.verify import verify as check_invariants


@command(None, "verify")
def verify(app: App) -> Verification:
    """Prove that the invariants of the loop hold.

    It reads the event log and the tables: nothing was lost or doubled, or moved against the rules. Each
    subtask is in exactly one queue, only legal transitions, never more than 5 recalls in a round, every
    attempt counted once, no page or review stored twice, nothing overdue for long. docs/verify.md lists
    the proofs and their limits. Works during a run. Exit status 1 if there is a violation.

    \b
    Example:
      reviewloop verify --json
    """
    with app.store.read() as tx:
        found = check_invariants(tx)
    if found.violations:
        app.exit_status = 1
    return found


@text.register
def _(view: Verification) -> Iterator[Part]:
    if view.violations:
        n = len(view.violations)
        title = plural("{n} violation", "{n} violations", n)
        yield table(view.violations, "kind subtask_id message>", title=title)
    else:
        yield Text(translate("No violation."), style="green")
    yield translate("Checked: {counts}", counts=format_counts(view.counts))
    dropped = view.counts["logs_dropped"]
    if dropped:
        yield plural(
            "{n} subtask ended so long ago that its event log was dropped: how it came to its state can't be proved.",
            "{n} subtasks ended so long ago that their event logs were dropped: how they came to their state can't "
            "be proved.",
            dropped,
        )
    for one in view.set_clocks:
        yield translate(
            "The database's clock was set back from {until} to {since}: the order of what happened in between is not "
            "judged.",
            until=format_moment(one.until),
            since=format_moment(one.since),
        )
