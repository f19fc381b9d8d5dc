"""The command `reviewloop judge`: judge stored reviews and links again, or read their dates again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

import click
from rich.text import Text

from app.actions.review_actions import count_older, judge_links, link_reposts, record_dates, record_judging
from app.cli import output
from app.cli.command import App, command
from app.cli.output import say, short
from app.cli.render import Fact, Part, text
from app.files.harmless import shown
from app.views.fields import extend_row, format_counts, format_value
from app.views.words import name_text, plural, translate
from tasks.domain.voices import Voice
from tasks.store.content import products

if TYPE_CHECKING:
    from tasks.jobs.date_reading import DatesRead, DayChange
    from tasks.jobs.judging import Change, Judged

_NOT_JUDGED = "not_judged"
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class VoiceChange:
    """Number of reviews with one voice before and one voice now; `None` stands for reviews without a judgement."""

    before: str | None
    after: str | None
    reviews: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedView:
    """The outcome of judging, with the fields of `Judged`.

    Attributes:
        model: name of the model for voices.
        ended: False if judging was interrupted.
        compared: number of reviews that were compared with earlier ones.
    """

    model: str
    dry_run: bool
    ended: bool
    to_do: int
    pages: int
    reviews: int
    voices: Sequence[VoiceChange]
    taken_in: int
    left_out: int
    taken_back: int
    changes: Sequence[Change]
    of_unknown_sites: int
    compared: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatesView:
    """The outcome of reading dates again, with the fields of `DatesRead`."""

    dry_run: bool
    ended: bool
    to_do: int
    pages: int
    dates: int
    imported: int
    moved: int
    found: int
    lost: int
    changes: Sequence[DayChange]


@command(None, "judge", sites=True)
@click.option("--product", metavar="NAME", help="Only pages that were found for this product.")
@click.option(
    "--all", "again", is_flag=True, help="Judge everything, also what this version has judged already."
)
@click.option("--dates", is_flag=True, help="Read the stored dates again instead; judge nothing.")
@click.option("--dry-run", is_flag=True, help="Only say what would change; store nothing.")
def judge(app: App, product: str | None, again: bool, dates: bool, dry_run: bool) -> JudgedView | DatesView:
    """Judge again what is stored: voices, whether a page is about its product, and which reviews are reposts.

    Use it for a store of an older version, or after a product's words have changed. Nothing is deleted:
    reviews of a page about another product are left out of exports, and come back if a later judging
    decides otherwise; texts that were refused less than 90 days ago are accepted if they are reviews by today's rules.
    Ctrl-C ends it; the next run continues there.

    With --dates, the date texts of stored reviews are read again by the rules of this version; the stored
    days were read when the pages were fetched. Imported reviews keep their days.

    \b
    Examples:
      reviewloop judge --dry-run
      reviewloop judge
      reviewloop judge --all --product 特仑苏
      reviewloop judge --dates --dry-run
    """
    if dates and again:
        raise click.UsageError(translate("--dates reads all dates each time: leave --all away"))
    if dates:
        view: JudgedView | DatesView = _read_dates(app, product, dry_run=dry_run)
    else:
        view = _judge(app, product, again=again, dry_run=dry_run)
    if not view.ended:
        say(translate("Broken off. What was done is stored; the same command goes on there."))
        app.exit_status = 1
    return view


def _judge(app: App, product: str | None, *, again: bool, dry_run: bool) -> JudgedView:
    from tasks.jobs.judging import judge as judge_pages
    from tasks.jobs.judging import page_judge
    from tasks.reading.judge.reviews import add_judgements, model_id

    app.settings.use_themes()
    model = model_id()
    catalog, store = app.settings.catalog(), app.store
    judge_page = page_judge(catalog, add_judgements, model, again=again)
    reports: list[Judged] = []

    def report(done: Judged) -> None:
        reports[:] = [done]
        _say_pages(done.pages, done.to_do)

    def report_compared(share: float) -> None:
        n = math.floor(share * 100)
        say(translate("{n} % of the reviews with earlier ones, for reposts", n=n), "dim")

    def report_counted(share: float) -> None:
        n = math.floor(share * 100)
        say(translate("{n} % of the older reviews counted by day and theme", n=n), "dim")

    number = _find_product(app, product)
    if not dry_run:
        record_judging(store, product, again, app.who)
    sweep = " ".join(["judge", model, *(["all"] if again else []), *([str(number)] if number else [])])
    compared = 0
    ended = True
    try:
        done = judge_pages(store, judge_page, sweep, report, product_id=number, again=again, dry_run=dry_run)
        if not dry_run:
            judge_links(store, catalog)
            compared = link_reposts(store, report_compared)
            count_older(store, report_counted)
    except KeyboardInterrupt:
        if not reports:
            raise
        done, ended = reports[0], False
    return JudgedView(
        model=model,
        dry_run=dry_run,
        ended=ended,
        to_do=done.to_do,
        pages=done.pages,
        reviews=done.reviews,
        voices=[VoiceChange(before, after, n) for (before, after), n in done.voices.items()],
        taken_in=done.taken_in,
        left_out=done.left_out,
        taken_back=done.taken_back,
        changes=done.changes,
        of_unknown_sites=done.of_unknown_sites,
        compared=compared,
    )


def _read_dates(app: App, product: str | None, *, dry_run: bool) -> DatesView:
    from tasks.jobs.date_reading import DatesRead, read_again
    from tasks.jobs.judging import Pass, go_through

    def report(done: DatesRead) -> None:
        _say_pages(done.pages, done.to_do)

    done = DatesRead()
    ended = True
    number = _find_product(app, product)
    if not dry_run:
        record_dates(app.store, product, app.who)
    mark = " ".join(["dates", *([str(number)] if number else [])])
    one = Pass(mark=mark, product_id=number, again=True, dry_run=dry_run)
    try:
        go_through(app.store, partial(read_again, app.settings.catalog()), one, done, report)
    except KeyboardInterrupt:
        if not done.pages:
            raise
        ended = False
    return extend_row(DatesView, done, dry_run=dry_run, ended=ended)


def _say_pages(pages: int, to_do: int) -> None:
    say(translate("{n:,} of {to_do:,} pages", n=pages, to_do=to_do), "dim")


def _find_product(app: App, product: str | None) -> int | None:
    if product is None:
        return None
    with app.store.read() as tx:
        return products.find(tx, product).id


@text.register
def _(view: DatesView) -> Iterator[Part]:
    for one in view.changes[:_SHOWN]:
        yield name_text(f"  {shown(short(one.date_text, 40))}", _describe_change(one))
        yield Text(f"    {shown(short(one.url, 74))}", style="dim")
    changed = view.moved + view.found + view.lost
    yield from _list_more(changed)
    read = translate("{dates:,} dates of {pages:,} pages", dates=view.dates, pages=view.pages)
    yield Fact(translate("Read"), read)
    if view.imported:
        note = plural(
            "{n:,} page was imported: its days stay.",
            "{n:,} pages were imported: their days stay.",
            view.imported,
        )
        yield Text(note, style="dim")
    if not changed:
        yield translate("Nothing to do: every stored day is what its text says.")
        return
    counts = {"have another day": view.moved, "have a day now": view.found, "have none now": view.lost}
    yield Fact(translate("Changed"), format_counts(counts))
    yield from _list_dry_run(view.dry_run)


def _list_more(n: int) -> Iterator[Part]:
    """Yield a line with the number of changes that are not shown; nothing if all are shown."""
    if n > _SHOWN:
        yield Text(translate("  ... and {n:,} more; --json lists them", n=n - _SHOWN), style="dim")


def _list_dry_run(dry_run: bool) -> Iterator[Part]:
    if dry_run:
        yield Text(translate("Nothing was stored (--dry-run)."), style="dim")


def _describe_change(one: DayChange) -> str:
    if one.day_before == one.day_after:
        return f"{format_value('at', one.before) or '-'} -> {format_value('at', one.after) or '-'}"
    return f"{_describe_day(one.day_before)} -> {_describe_day(one.day_after)}"


def _describe_day(day: date | None) -> str:
    return translate("no date") if day is None else day.isoformat()


@text.register
def _(view: JudgedView) -> Iterator[Part]:
    if view.voices:
        yield _tabulate_voices(view.voices)
    for one in view.changes[:_SHOWN]:
        before, after = (translate(name).replace("_", " ") for name in (one.before, one.after))
        line = name_text(f"  {shown(short(one.product, 20))}", f"{before} -> {after}")
        if one.missing:
            line += translate(" (lacks {words})", words=shown(short(" ".join(one.missing), 20)))
        yield line
        yield Text(f"    {shown(short(one.url, 74))}", style="dim")
    yield from _list_more(len(view.changes))
    judged = translate("{reviews:,} reviews of {pages:,} pages", reviews=view.reviews, pages=view.pages)
    yield Fact(translate("Judged"), judged)
    counts = {
        "left out of exports": view.left_out,
        "back in exports": view.taken_back,
        "refused texts taken in": view.taken_in,
    }
    yield Fact(translate("Changed"), format_counts(counts))
    if view.of_unknown_sites:
        note = plural(
            "{n:,} page keeps its verdicts: its site is not in this catalog (--sites).",
            "{n:,} pages keep their verdicts: their sites are not in this catalog (--sites).",
            view.of_unknown_sites,
        )
        yield Text(note, style="yellow")
    yield from _list_dry_run(view.dry_run)
    if view.compared:
        compared = plural(
            "{n:,} review with earlier ones, for reposts",
            "{n:,} reviews with earlier ones, for reposts",
            view.compared,
        )
        yield Fact(translate("Compared"), compared)


def _tabulate_voices(changes: Sequence[VoiceChange]) -> Part:
    """Return a table of counts with a row for each voice before and a column for each voice now."""
    counts = Counter[tuple[str, str]]()
    for one in changes:
        counts[one.before or _NOT_JUDGED, one.after or _NOT_JUDGED] += one.reviews
    names = [*Voice, _NOT_JUDGED]
    rows = [was for was in names if any(counts[was, now] for now in names)]
    cells = ((translate(was), *(counts[was, now] or None for now in names)) for was in rows)
    title = translate("Reviews by voice: rows before, columns now")
    return output.table((translate("before"), *map(translate, names)), cells, title)
