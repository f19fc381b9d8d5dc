"""`reviewloop judge`: judges stored reviews and links again, or reads their dates again."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from app.actions.review_actions import count_older, judge_links, link_reposts, record_dates, record_judging
from app.cli.options import db_option, json_option, person, settings_of, sites_option, store_there
from app.cli.output import clock, labelled, print_json, printed, say, short, table
from app.files.harmless import shown
from tasks.domain.voices import Voice
from tasks.store.content import products

if TYPE_CHECKING:
    from datetime import date

    from app.run.setting_fields import Settings
    from tasks.jobs.date_reading import DatesRead, DayChange
    from tasks.jobs.judging import Judged
    from tasks.store.sql.database import Store

_NOT_JUDGED = "not judged"
_SHOWN = 10


@click.command()
@click.option("--product", metavar="NAME", help="Only pages that were found for this product.")
@click.option(
    "--all", "again", is_flag=True, help="Judge everything, also what this version has judged already."
)
@click.option("--dates", is_flag=True, help="Read the stored dates again instead; judge nothing.")
@click.option("--dry-run", is_flag=True, help="Only say what would change; store nothing.")
@db_option
@sites_option
@json_option
def judge(
    product: str | None,
    again: bool,
    dates: bool,
    dry_run: bool,
    db: str | None,
    sites: str | None,
    as_json: bool,
) -> None:
    """Judge again what is stored: voices, whether a page is about its product, and which reviews are reposts.

    Use it for a store of an older version, or after a product's words have changed. Nothing is deleted:
    reviews of a page about another product are left out of exports, and return if a later judging says
    so; texts that were refused less than 90 days ago are accepted if they are reviews by today's rules.
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
    settings = settings_of(db, sites)
    if dates and again:
        raise click.UsageError("--dates reads all dates each time: leave --all away")
    if dates:
        _read_dates(settings, product, dry_run=dry_run, as_json=as_json)
    else:
        _judge(settings, product, again=again, dry_run=dry_run, as_json=as_json)


def _judge(settings: Settings, product: str | None, *, again: bool, dry_run: bool, as_json: bool) -> None:
    from tasks.jobs.judging import judge as judged
    from tasks.jobs.judging import page_judge
    from tasks.reading.voice import MODEL, judgement

    catalog = settings.catalog()
    of_page = page_judge(catalog, judgement, MODEL, again=again)
    told: list[Judged] = []

    def progress(done: Judged) -> None:
        told[:] = [done]
        say(f"{done.pages:,} of {done.to_do:,} pages", "dim")

    def report_share(share: float) -> None:
        say(f"{math.floor(share * 100)} % of the reviews compared with earlier ones", "dim")

    def report_counted(share: float) -> None:
        say(f"{math.floor(share * 100)} % of the older reviews counted by day and theme", "dim")

    compared = 0
    with store_there(settings) as store:
        number = _product_id(store, product)
        if not dry_run:
            record_judging(store, product, again, person())
        sweep = " ".join(["judge", MODEL, *(["all"] if again else []), *([str(number)] if number else [])])
        try:
            done = judged(store, of_page, sweep, progress, product_id=number, again=again, dry_run=dry_run)
            if not dry_run:
                judge_links(store, catalog)
                compared = link_reposts(store, report_share)
                count_older(store, report_counted)
            ended = True
        except KeyboardInterrupt:
            if not told:
                raise
            done, ended = told[0], False
    if as_json:
        print_json({**_document(done, MODEL, dry_run=dry_run, ended=ended), "compared": compared})
    else:
        _print(done, dry_run=dry_run)
        if compared:
            labelled(printed(), "Compared", f"{compared:,} reviews with earlier ones, for reposts")
    if not ended:
        say("Ended before all was judged. What was judged is stored; the same command goes on there.")
        sys.exit(1)


def _read_dates(settings: Settings, product: str | None, *, dry_run: bool, as_json: bool) -> None:
    from tasks.jobs.date_reading import DatesRead, read_again
    from tasks.jobs.judging import Pass, go_through

    catalog = settings.catalog()
    done = DatesRead()
    ended = True

    def progress(done: DatesRead) -> None:
        say(f"{done.pages:,} of {done.to_do:,} pages", "dim")

    with store_there(settings) as store:
        number = _product_id(store, product)
        if not dry_run:
            record_dates(store, product, person())
        mark = " ".join(["dates", *([str(number)] if number else [])])
        one = Pass(mark=mark, product_id=number, again=True, dry_run=dry_run)
        try:
            go_through(store, partial(read_again, catalog), one, done, progress)
        except KeyboardInterrupt:
            if not done.pages:
                raise
            ended = False
    if as_json:
        print_json({"dry_run": dry_run, "ended": ended, **asdict(done)})
    else:
        _print_dates(done, dry_run=dry_run)
    if not ended:
        say("Ended before all was read. What was read is stored; the same command goes on there.")
        sys.exit(1)


def _product_id(store: Store, product: str | None) -> int | None:
    if product is None:
        return None
    with store.read() as tx:
        return products.find(tx, product).id


def _print_dates(done: DatesRead, *, dry_run: bool) -> None:
    out = printed()
    for one in done.changes[:_SHOWN]:
        out.print(f"  {shown(short(one.date_text, 40))}: {_change_text(one)}")
        out.print(f"    {shown(short(one.url, 74))}", style="dim")
    if len(done.changes) > _SHOWN:
        out.print(f"  ... and {done.changed - _SHOWN:,} more; --json lists them", style="dim")
    labelled(out, "Read", f"{done.dates:,} dates of {done.pages:,} pages")
    if done.imported:
        out.print(f"{done.imported:,} pages were imported: their days stay.", style="dim")
    if not done.changed:
        out.print("Nothing to do: every stored day is what its text says.")
        return
    counts = {"have another day": done.moved, "have a day now": done.found, "have none now": done.lost}
    labelled(out, "Changed", ", ".join(f"{n:,} {what}" for what, n in counts.items()))
    if dry_run:
        out.print("Nothing was stored (--dry-run).", style="dim")


def _change_text(one: DayChange) -> str:
    if one.day_before == one.day_after:
        return f"{clock(one.before)} -> {clock(one.after)}"
    return f"{_day(one.day_before)} -> {_day(one.day_after)}"


def _day(day: date | None) -> str:
    return "no date" if day is None else day.isoformat()


def _document(done: Judged, model: str, *, dry_run: bool, ended: bool) -> dict[str, Any]:
    voices = [{"before": before, "after": after, "reviews": n} for (before, after), n in done.voices.items()]
    counts = {name: value for name, value in asdict(done).items() if name not in ("voices", "changes")}
    return {
        "model": model,
        "dry_run": dry_run,
        "ended": ended,
        **counts,
        "voices": voices,
        "changes": done.changes,
    }


def _print(done: Judged, *, dry_run: bool) -> None:
    out = printed()
    if done.voices:
        before = Counter[tuple[str, str]]()
        for (was, now), n in done.voices.items():
            before[was or _NOT_JUDGED, now or _NOT_JUDGED] += n
        names = [*Voice, _NOT_JUDGED]
        rows = [was for was in names if any(before[was, now] for now in names)]
        cells = ((was, *(before[was, now] or None for now in names)) for was in rows)
        out.print(table(("was", *names), cells, "Reviews by voice: what they were, and what they are"))
    for one in done.changes[:_SHOWN]:
        lacks = f" (lacks {short(' '.join(one.missing), 20)})" if one.missing else ""
        words = f"{one.before.replace('_', ' ')} -> {one.after.replace('_', ' ')}"
        out.print(f"  {shown(short(one.product, 20))}: {words}{shown(lacks)}")
        out.print(f"    {shown(short(one.url, 74))}", style="dim")
    if len(done.changes) > _SHOWN:
        out.print(f"  ... and {len(done.changes) - _SHOWN:,} more; --json lists them", style="dim")
    labelled(out, "Judged", f"{done.reviews:,} reviews of {done.pages:,} pages")
    counts: Mapping[str, int] = {
        "left out of exports": done.left_out,
        "back in exports": done.taken_back,
        "refused texts taken in": done.taken_in,
    }
    labelled(out, "Changed", ", ".join(f"{n:,} {what}" for what, n in counts.items()))
    if done.of_unknown_sites:
        out.print(
            f"{done.of_unknown_sites:,} pages keep their verdicts: their sites are not in this catalog (--sites).",
            style="yellow",
        )
    if dry_run:
        out.print("Nothing was stored (--dry-run).", style="dim")
