"""The end of a run: what a person wants to know, what is left to do, and the exit status."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from app.cli.output import print_json, printed, say, short
from app.cli.people.failed import list_waiting_parts
from app.cli.render import Fact, Part, print_parts, table
from app.cli.tables import queue_line
from app.files.harmless import shown
from app.reports.summary import Summary, document
from app.views.durations import seconds
from app.views.failed import group_by_cause
from app.views.fields import format_counts
from app.views.host_waits import unplanned_texts, wait_text
from app.views.moments import written_text
from app.views.words import plural, translate
from tasks.store.queries.pairs import AttemptSums
from tasks.store.queries.reviews import ReviewRow

if TYPE_CHECKING:
    from app.run.process import Until
    from app.run.setting_fields import Settings
    from splitter.catalog.model import Catalog

_PRODUCTS_SHOWN = 10
_PRODUCT_FIELDS = "name reviews pages"


def finish(
    done: Summary, settings: Settings, until: Until, *, as_json: bool, refused: bool, db_hint: str
) -> None:
    """Print the result of a run, and end with status 2 if names were refused, 1 if it left work it was to do."""
    if as_json:
        print_json(document(done))
    else:
        print_parts(printed(), _list_end_parts(done, settings, db_hint))
    left = done.left
    waits = [one for one in done.state.waits if left]
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
    if elsewhere := done.state.open - done.left:
        say(
            plural(
                "{n:,} subtask at another site waits for a run without --group and --site.",
                "{n:,} subtasks at other sites wait for a run without --group and --site.",
                elsewhere,
            )
        )
    if refused:
        sys.exit(2)
    if until.done and (waits or (left and ended_early)):
        sys.exit(1)


def _list_end_parts(done: Summary, settings: Settings, db_hint: str) -> Iterator[Part]:
    """Yield the counts, reviews by product, some reviews, and the commands that come next."""
    yield from list_summary_parts(done, db_hint, settings.catalog())
    if done.samples:
        yield Text("\n" + translate("Reviews, for example"), style="bold")
        yield from list_sample_parts(done.samples)
    yield Text("\n" + translate("Next"), style="bold")
    if done.totals.reviews:
        yield f"   reviewloop export reviews -o reviews.xlsx{db_hint}"
        yield f"   reviewloop report -o report.html{db_hint}"
        yield f"   reviewloop web{db_hint}"
    yield f"   reviewloop control pairs{db_hint}"
    if logging.getLogger().isEnabledFor(logging.INFO):
        yield table(list(_list_statistics(done.statistics)), "about name count")


@dataclass(frozen=True, slots=True)
class _Count:
    about: str
    name: str
    count: int | str | None


def _list_statistics(sums: AttemptSums) -> Iterator[_Count]:
    """Yield requests by status and by error, attempts by outcome and by reason."""
    requests = translate("requests of this run")
    yield _Count(requests, "", sums.requests)
    yield _Count(requests, translate("MB of bodies"), f"{sums.bytes / 1e6:,.1f}")
    yield _Count(requests, translate("active"), seconds(sums.active_s))
    yield _Count(requests, translate("waited for permits"), seconds(sums.wait_s))
    for about, counts in (
        (translate("answers by status"), sums.statuses),
        (translate("requests without a page"), sums.errors),
        (translate("attempts by outcome"), sums.outcomes),
        (translate("attempts by reason"), sums.reasons),
    ):
        for name, n in counts.items():
            yield _Count(about, translate(name), n)


def list_summary_parts(done: Summary, db_hint: str, catalog: Catalog | None = None) -> Iterator[Part]:
    """Yield the counts of a run; with its catalog, also what waits for hosts."""
    totals = done.totals
    yield Fact(translate("Queues"), queue_line(done.state.queues))
    stored = translate(
        "{pages:,} pages, {reviews:,} reviews ({new_pages:,} and {new_reviews:,} of them by this run) of "
        "{products:,} products on {tasks:,} tasks",
        pages=totals.pages,
        reviews=totals.reviews,
        new_pages=done.added.pages,
        new_reviews=done.added.reviews,
        products=totals.products,
        tasks=totals.tasks,
    )
    yield Fact(translate("Stored"), stored)
    if totals.voices:
        yield Fact(translate("Voices"), format_counts(totals.voices))
    took = translate(
        "{length}; recalls: {recalls}; hits: {hits}",
        length=seconds(done.seconds),
        recalls=totals.recalls,
        hits=format_counts(totals.targets) or translate("none yet"),
    )
    yield Fact(translate("Took"), took)
    if catalog is not None:
        for one in done.state.waits:
            yield Fact(translate("Waiting"), shown(wait_text(one, catalog, done.state.now)))
    for text in unplanned_texts(done.state.unplanned):
        yield Fact(translate("Not crawled"), shown(text))
    more = len(done.products) - _PRODUCTS_SHOWN
    caption = translate("and {n:,} more: reviewloop product list", n=more) if more > 0 else ""
    if done.products:
        yield table(done.products[:_PRODUCTS_SHOWN], _PRODUCT_FIELDS, caption=caption)
    yield from list_waiting_parts(group_by_cause(done.manual), db_hint)


def list_sample_parts(rows: Sequence[ReviewRow]) -> Iterator[Part]:
    """Yield reviews, as examples."""
    for row in rows:
        title = short(row.title or row.page_title, 50)
        yield Text.assemble((f"   {shown(row.product)}", "cyan"), f"  {shown(title)}")
        yield f"     {shown(short(row.body, 90))}"
        origin = translate(
            "{url}  {author}, {date}, by {node}",
            url=shown(row.url),
            author=shown(row.author or translate("anonymous")),
            date=shown(written_text(row) or translate("no date")),
            node=row.node,
        )
        yield Text(f"     {origin}", style="dim")
