"""Report the end of a run: its results, the remaining work, and the exit status."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from app.cli.command import App
from app.cli.options import database_hint
from app.cli.output import say, short
from app.cli.people.failed import list_waiting_parts
from app.cli.render import Fact, Part, table, text
from app.cli.tables import queue_line, tabulate_waits
from app.files.harmless import shown
from app.reports.summary import RunView
from app.views.durations import seconds
from app.views.failed import group_by_cause
from app.views.fields import format_counts
from app.views.host_waits import describe_unplanned
from app.views.moments import written_text
from app.views.words import plural, translate
from tasks.domain.states import count_open
from tasks.store.queries.pairs import AttemptSums
from tasks.store.queries.reviews import ReviewRow

if TYPE_CHECKING:
    from app.run.process import Until

_PRODUCTS_SHOWN = 10


def finish(app: App, done: RunView, until: Until, *, refused: bool) -> RunView:
    """Report remaining work, and set the exit status: 2 if names were refused, 1 if the run left work undone."""
    left = done.left
    waits = done.waits_for_hosts if left else ()
    ended_early = until.seconds is None or done.seconds < until.seconds
    if until.done and waits:
        say(
            translate(
                "The run was ended before all was done: what is left waits for hosts. Nothing is lost; run it again."
            )
        )
    elif left and ended_early:
        say(
            plural(
                "The run was ended with {n:,} subtask to do. Nothing is lost; run it again to go on.",
                "The run was ended with {n:,} subtasks to do. Nothing is lost; run it again to go on.",
                left,
            )
        )
    if elsewhere := count_open(done.queues) - left:
        say(
            plural(
                "{n:,} subtask at another site waits for a run without --group and --site.",
                "{n:,} subtasks at other sites wait for a run without --group and --site.",
                elsewhere,
            )
        )
    if until.done and (waits or (left and ended_early)):
        app.exit_status = 1
    if refused:
        app.exit_status = 2
    return done


@text.register
def _(view: RunView) -> Iterator[Part]:
    yield from list_count_parts(view)
    if view.samples:
        yield Text("\n" + translate("Reviews, for example"), style="bold")
        yield from list_sample_parts(view.samples)
    hint = database_hint()
    yield Text("\n" + translate("Next"), style="bold")
    if view.reviews:
        yield f"   reviewloop export reviews -o reviews.xlsx{hint}"
        yield f"   reviewloop report -o report.html{hint}"
        yield f"   reviewloop web{hint}"
    yield f"   reviewloop control pairs{hint}"
    if logging.getLogger().isEnabledFor(logging.INFO):
        yield table(list(_list_statistics(view.statistics)), "about name count")


def _list_statistics(sums: AttemptSums) -> Iterator[Mapping[str, object]]:
    """Yield rows of counts: requests by status and by error, attempts by outcome and by reason."""
    groups: Mapping[str, Mapping[str, object]] = {
        translate("requests of this run"): {
            "": sums.requests,
            "MB of bodies": f"{sums.bytes / 1e6:,.1f}",
            "active": seconds(sums.active_s),
            "waited for permits": seconds(sums.wait_s),
        },
        translate("answers by status"): sums.statuses,
        translate("requests without a page"): sums.errors,
        translate("attempts by outcome"): sums.outcomes,
        translate("attempts by reason"): sums.reasons,
    }
    for about, counts in groups.items():
        for name, n in counts.items():
            yield {"about": about, "name": translate(name), "count": n}


def list_count_parts(view: RunView) -> Iterator[Part]:
    """Yield lines with the counts of a run, and the work that waits for hosts and for people."""
    yield Fact(translate("Queues"), queue_line(view.queues))
    stored = translate(
        "{pages:,} pages, {reviews:,} reviews ({new_pages:,} and {new_reviews:,} of them by this run) of "
        "{products:,} products on {tasks:,} tasks",
        pages=view.pages,
        reviews=view.reviews,
        new_pages=view.added.pages,
        new_reviews=view.added.reviews,
        products=view.products,
        tasks=view.tasks,
    )
    yield Fact(translate("Stored"), stored)
    if view.voices:
        yield Fact(translate("Voices"), format_counts(view.voices))
    took = translate(
        "{length}; recalls: {recalls}; hits: {hits}",
        length=seconds(view.seconds),
        recalls=view.recalls,
        hits=format_counts(view.targets) or translate("none yet"),
    )
    yield Fact(translate("Took"), took)
    if view.waits_for_hosts:
        yield tabulate_waits(view.waits_for_hosts, view.now)
    for line in describe_unplanned(view.sites_not_asked):
        yield Fact(translate("Not crawled"), shown(line))
    rows = [{"name": name, "reviews": n} for name, n in view.reviews_by_product.items()]
    more = len(rows) - _PRODUCTS_SHOWN
    caption = translate("and {n:,} more: reviewloop product list", n=more) if more > 0 else ""
    if rows:
        yield table(rows[:_PRODUCTS_SHOWN], "name reviews", caption=caption)
    yield from list_waiting_parts(group_by_cause(view.waits_for_a_person), database_hint())


def list_sample_parts(rows: Sequence[ReviewRow]) -> Iterator[Part]:
    """Yield reviews as examples."""
    for row in rows:
        title = short(row.title or row.page_title, 50)
        yield Text.assemble((f"   {shown(row.product)}", "cyan"), f"  {shown(title)}")
        yield f"     {shown(short(row.body, 90))}"
        origin = translate(
            "{url} {author}, {date}, by {node}",
            url=shown(row.url),
            author=shown(row.author or translate("anonymous")),
            date=shown(written_text(row) or translate("no date")),
            node=row.node,
        )
        yield Text(f"     {origin}", style="dim")
