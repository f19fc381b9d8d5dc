"""The command `reviewloop export`: write reviews as CSV, JSON, XLSX or Parquet.

The file appears only when it is complete.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import click

from app.cli.command import App, command
from app.cli.names import check_site
from app.cli.options import DAY, FILE, site_option
from app.cli.output import messages, say
from app.cli.render import AsideView, Part, print_parts, text
from app.files.exporting import (
    BINARY,
    ENDINGS,
    FORMATS,
    SPREADSHEETS,
    check_format,
    format_of,
    pseudonymise_rows,
    whole_file,
    write_rows,
)
from app.insight.periods import ALL, read_period
from app.views.moments import read_local
from app.views.theme_names import find_theme
from app.views.words import plural, translate
from splitter.errors import InputError
from tasks.domain.voices import Voice, voices_of
from tasks.store.queries.exports import Cursor, get_next_cursor, list_new_rows, read_cursor
from tasks.store.queries.reviews import ReviewFilter, ReviewRow, list_reviews


@click.group()
def export() -> None:
    """Write what was collected to a file.

    \b
    Example:
      reviewloop export reviews -o reviews.csv
    """


@dataclass(frozen=True, slots=True)
class ExportView(AsideView):
    """The result of an export.

    Attributes:
        continues: True if the file has only reviews that earlier exports with the same cursor lack.
    """

    file: str
    format: str
    rows: int
    continues: bool


@command(export, "reviews")
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: by the file name.")
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(dir_okay=False, allow_dash=True),
    default="-",
    help="Default: - (standard output).",
)
@click.option(
    "--product",
    "products",
    metavar="NAME",
    multiple=True,
    help="Only this product, with those that are counted as it. Repeatable.",
)
@site_option
@click.option("--day-from", type=DAY, help="Only those written on this day or later: 2026-05-01.")
@click.option("--day-to", type=DAY, help="Only those written on this day or earlier.")
@click.option(
    "--since",
    metavar="DATE",
    help="Only those collected then or later, by the clock of REVIEWLOOP_TIMEZONE: 2026-05-01T12:00.",
)
@click.option(
    "--voice",
    metavar="VOICE,...",
    help=f"Only these voices: {', '.join(Voice)}.",
)
@click.option(
    "--theme", metavar="NAME", help="Only complaints about this theme, of equal texts one: its id or a name."
)
@click.option(
    "--cursor",
    "cursor_file",
    type=FILE,
    metavar="FILE",
    help="Only those that no earlier export with this file has written; the file is created if it is missing.",
)
@click.option(
    "--spreadsheet", is_flag=True, hidden=True, expose_value=False
)  # csv is always written for Excel
def reviews(
    app: App, form: str | None, target: str, cursor_file: Path | None, **chosen: Any
) -> ExportView | None:
    """Export reviews, one row for each (review, product): product, site, url, title, body, author, dates, rating.

    voice is the kind of text (complaint, praise, question, news, company, other), voice_probability its
    probability, sentiment is from -1 to 1; they are empty if the text was not judged. confidence is how
    surely the page was read: 0 to 1, and 1 by a site's rules. Reviews of other products are left out. The
    file's ending chooses the format: .csv, .jsonl (.ndjson), .json, .xlsx, .parquet, in UTF-8. In csv a '
    precedes texts that a spreadsheet would take for formulas; the other formats keep every text as it is.
    Columns of csv and xlsx are named in the language of --lang.
    same_as is the number (column review) of the review that this one is a copy of, near_of of one with
    nearly the same text (a repost, with its similarity). With --json, standard output holds the number of
    written rows; if the file is -, it holds the reviews as JSON lines.

    With --cursor, each export continues exactly after the last one with that file, and includes rows that
    were stored late. On PostgreSQL the rows of the last minute come with the next export.

    \b
    Examples:
      reviewloop export reviews -o reviews.xlsx
      reviewloop export reviews --product 特仑苏 --day-from 2026-05-01 -o may.csv
      reviewloop export reviews --voice complaint,question -o complaints.xlsx
      reviewloop export reviews --product 特仑苏 --theme foreign_matter -o quotes.xlsx
      reviewloop export reviews --cursor daily.cursor -o today.jsonl
      reviewloop --lang zh export reviews -o 评论.xlsx
    """
    from app.run.wiring import pseudonyms  # loads the crawl

    kind = _choose_format(form, target, app.as_json)
    if kind in SPREADSHEETS or chosen["theme"] is not None:
        app.settings.use_themes()
    wanted = _read_filter(**chosen)
    with app.store.read() as tx:
        for site in wanted.sites:
            check_site(tx, app.settings, site)
        before, after = None, None
        if cursor_file is None:
            rows = list_reviews(tx, wanted)
        else:
            before = _read_cursor(cursor_file)
            after = get_next_cursor(tx, wanted, before, str(cursor_file))
            rows = list_new_rows(tx, wanted, before, after)
        exported = pseudonymise_rows(rows, pseudonyms(app.settings))
        if target == "-":
            n = write_rows(exported, ReviewRow, kind, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        else:
            with whole_file(Path(target)) as out:
                n = write_rows(exported, ReviewRow, kind, out)
    if cursor_file is not None and after is not None:
        with whole_file(cursor_file) as out:
            out.write(after.text().encode())
    view = ExportView(target, kind, n, before is not None)
    if target != "-":
        return view
    print_parts(messages, text(view))  # standard output is used for the rows
    return None


@text.register
def _(view: ExportView) -> Iterator[Part]:
    rows = plural("{n:,} row", "{n:,} rows", view.rows)
    if view.continues:
        rows = plural("{n:,} new row", "{n:,} new rows", view.rows)
    yield rows if view.file == "-" else translate("{rows} written to {file}", rows=rows, file=view.file)


def _read_filter(
    *,
    products: tuple[str, ...],
    sites_named: tuple[str, ...],
    day_from: date | None,
    day_to: date | None,
    since: str | None,
    voice: str | None,
    theme: str | None,
) -> ReviewFilter:
    """Return the filter that the options describe. Raises InputError."""
    days = read_period(None, day_from, day_to, ALL)
    return ReviewFilter(
        products=products,
        sites=sites_named,
        since=_read_moment(since) if since else None,
        day_from=days.first,
        day_to=days.last,
        voices=voices_of(voice.split(",")) if voice is not None else (),
        theme=find_theme(theme) if theme is not None else "",
    )


def _choose_format(form: str | None, target: str, as_json: bool) -> str:
    """Return the format to write. Raises InputError if the format is unknown or does not suit the target."""
    if target == "-":
        kind = form or ("jsonl" if as_json else "csv")
        if as_json and kind not in ("json", "jsonl"):
            raise InputError(
                "--json and --format {kind} can't share standard output: name a file with -o", kind=kind
            )
        if kind in BINARY and sys.stdout.isatty():
            raise InputError("{kind} is nothing for a terminal: name a file with -o", kind=kind)
    else:
        kind = form or format_of(target)
        named = ENDINGS.get(Path(target).suffix.lower(), kind)
        if named != kind:
            warning = translate(
                "{file} holds {kind}, though its name says {named}.", file=target, kind=kind, named=named
            )
            say(warning, "yellow")
    check_format(kind)
    return kind


def _read_cursor(cursor_file: Path) -> Cursor | None:
    """Return the cursor stored in a file; `None` if the file does not exist. Raises InputError."""
    try:
        return read_cursor(cursor_file.read_text("utf-8"), str(cursor_file))
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise InputError("{path}: is no cursor of an export: it is no text", path=cursor_file) from None


def _read_moment(text: str) -> datetime:
    try:
        moment = read_local(datetime.fromisoformat(text))
        moment.astimezone(UTC)  # the first and the last hours of the calendar have none
    except (ValueError, OverflowError):
        raise InputError(
            "--since {text!r} is no date; write 2026-05-01 or 2026-05-01T12:00", text=text
        ) from None
    return moment
