"""`reviewloop status`: the state of the crawl, also while nothing runs."""

from __future__ import annotations

import math
from collections.abc import Iterator

from app.cli.command import App, command
from app.cli.options import DatabaseUnusable, find_folder_of_up
from app.cli.render import Fact, Part, text
from app.cli.tables import coverage_text, list_node_parts, queue_line, tabulate_waits
from app.files.harmless import shown
from app.run.open_store import is_busy
from app.views.fields import format_counts, format_moment
from app.views.host_waits import describe_unplanned
from app.views.loop_state import Situation, SystemState
from app.views.status import StateView, StatusView, describe_view, get_status_view, view_state
from app.views.words import plural, translate
from tasks.domain.errors import StoreUnavailable, WrongRevision


@command(None, "status", sites=True)
def status(app: App) -> StateView:
    """Show the state, the queues, counts of stored pages and reviews, and the nodes.

    \b
    Examples:
      reviewloop status
      watch -n 2 reviewloop status
    """
    try:
        with app.store.read() as tx:
            return get_status_view(tx, app.settings.catalog(), app.settings.buffer())
    except WrongRevision:
        folder = find_folder_of_up(app.settings)
        if folder is None or not is_busy(folder):
            raise
        situation = Situation.STARTING
    except (DatabaseUnusable, StoreUnavailable) as error:
        if not isinstance(error, StoreUnavailable) and not isinstance(error.__cause__, StoreUnavailable):
            raise
        situation = Situation.DATABASE_AWAY
    app.exit_status = 1
    return view_state(SystemState(situation))


@text.register
def _(view: StateView) -> Iterator[Part]:
    yield Fact(
        translate("State"),
        translate("{sentence} Next: {command}", sentence=describe_view(view), command=view.next_command),
    )


@text.register
def _(view: StatusView) -> Iterator[Part]:
    yield from text.dispatch(StateView)(view)
    yield Fact(translate("Queues"), queue_line(view.queues))
    yield Fact(translate("Waiting"), _describe_waiting(view))
    yield from (
        Fact(translate("Not crawled"), shown(one)) for one in describe_unplanned(view.sites_not_asked)
    )
    yield Fact(
        translate("Stored"),
        translate(
            "{pages:,} pages, {reviews:,} reviews of {products:,} products ({tasks:,} tasks, {recalls:,} recalls, "
            "{reposts:,} reposts linked)",
            pages=view.pages,
            reviews=view.reviews,
            products=view.products,
            tasks=view.tasks,
            recalls=view.recalls,
            reposts=view.reposts,
        ),
    )
    if view.pages_per_s:
        speed = translate(
            "{pages:.1f} pages and {reviews:.1f} reviews per second in the last 2 minutes",
            pages=view.pages_per_s,
            reviews=view.reviews_per_s,
        )
        yield Fact(translate("Speed"), speed)
    if view.compared < 1:
        share = translate(
            "{n} % of the reviews with earlier ones, for reposts", n=math.floor(view.compared * 100)
        )
        yield Fact(translate("Compared"), share)
    if view.counted < 1:
        n = math.floor(view.counted * 100)
        yield Fact(translate("Counted"), translate("{n} % of the older reviews, by day and theme", n=n))
    if view.voices:
        yield Fact(translate("Voices"), format_counts(view.voices))
    if view.refused:
        yield Fact(
            translate("Refused"), translate("{counts} (in no export)", counts=format_counts(view.refused))
        )
    hits = format_counts(dict(sorted(view.targets.items())))
    yield Fact(translate("Hits"), hits or translate("none yet"))
    yield Fact(translate("Coverage"), _describe_coverage(view))
    if view.waits_for_hosts:
        yield tabulate_waits(view.waits_for_hosts, view.now)
    if view.nodes:
        yield from list_node_parts(view.nodes, view.now)


def _describe_waiting(view: StatusView) -> str:
    if view.oldest_waiting_since is None:
        return translate("nothing")
    oldest = translate(
        "the oldest came to its queue {ago}", ago=format_moment(view.oldest_waiting_since, view.now)
    )
    if view.next_held_at is None:
        return oldest
    next_at = format_moment(max(view.next_held_at, view.now), view.now)
    delayed = plural("{n} is delayed", "{n} are delayed", view.held_back)
    return translate(
        "{oldest}; {delayed}, the first until {next}", oldest=oldest, delayed=delayed, next=next_at
    )


def _describe_coverage(view: StatusView) -> str:
    covered = view.coverage_rests_on
    unknown = translate(
        "unknown ({counts})", counts=format_counts(covered.rests_on) or translate("no task yet")
    )
    described = coverage_text(covered) or unknown
    if not view.relaxed:
        return described
    relaxed = plural("{n} search with fewer words", "{n} searches with fewer words", view.relaxed)
    return translate("{coverage}; {relaxed}", coverage=described, relaxed=relaxed)
