"""`reviewloop export`: reviews as CSV, JSON, XLSX or Parquet, streamed; a file is there whole or not at all."""

from __future__ import annotations

import sys
from datetime import date, datetime
from pathlib import Path

import click

from app.cli.names import check_site
from app.cli.options import FILE, db_option, json_option, settings_of, store_there
from app.cli.output import print_json, say
from app.files.exporting import (
    BINARY,
    ENDINGS,
    FORMATS,
    check_format,
    format_of,
    pseudonymised,
    whole_file,
    write_rows,
)
from app.views.moments import read_local
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


@export.command()
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: by the file name.")
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(dir_okay=False, allow_dash=True),
    default="-",
    help="Default: - (standard output).",
)
@click.option("--product", "products", metavar="NAME", multiple=True, help="Only this product. Repeatable.")
@click.option("--site", "sites", metavar="NAME", multiple=True, help="Only this site. Repeatable.")
@click.option("--day-from", metavar="DAY", help="Only those written on this day or later: 2026-05-01.")
@click.option("--day-to", metavar="DAY", help="Only those written on this day or earlier.")
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
    "--cursor",
    "cursor_file",
    type=FILE,
    metavar="FILE",
    help="Only those that no earlier export with this file has written; the file is created if it is missing.",
)
@click.option("--spreadsheet", is_flag=True, hidden=True, expose_value=False)  # csv is for Excel in any case
@db_option
@json_option
def reviews(
    form: str | None,
    target: str,
    products: tuple[str, ...],
    sites: tuple[str, ...],
    day_from: str | None,
    day_to: str | None,
    since: str | None,
    voice: str | None,
    cursor_file: Path | None,
    db: str | None,
    as_json: bool,
) -> None:
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
      reviewloop export reviews --cursor daily.cursor -o today.jsonl
      reviewloop --lang zh export reviews -o 评论.xlsx
    """
    from app.run.wiring import pseudonyms  # brings the crawl

    kind = _kind(form, target, as_json)
    settings = settings_of(db)
    wanted = ReviewFilter(
        products=products,
        sites=sites,
        since=_moment(since) if since else None,
        day_from=_day("--day-from", day_from) if day_from else None,
        day_to=_day("--day-to", day_to) if day_to else None,
        voices=voices_of(voice.split(",")) if voice is not None else (),
    )
    with store_there(settings) as store, store.read() as tx:
        for site in sites:
            check_site(tx, settings, site)
        before, after = None, None
        if cursor_file is None:
            rows = list_reviews(tx, wanted)
        else:
            before = _begun(cursor_file)
            after = get_next_cursor(tx, wanted, before, str(cursor_file))
            rows = list_new_rows(tx, wanted, before, after)
        shown = pseudonymised(rows, pseudonyms(settings))
        if target == "-":
            out = sys.stdout.buffer
            n = write_rows(shown, ReviewRow, kind, out)
            out.flush()
        else:
            with whole_file(Path(target)) as out:
                n = write_rows(shown, ReviewRow, kind, out)
    if cursor_file is not None and after is not None:
        with whole_file(cursor_file) as out:
            out.write(after.text().encode())
    if as_json and target != "-":
        print_json({"file": target, "format": kind, "rows": n})
    else:
        say(_result_text(n, target, before is not None))


def _kind(form: str | None, target: str, as_json: bool) -> str:
    """The format to write. Raises InputError where it is not known, or can't be."""
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
            say(f"{target} holds {kind}, though its name says {named}.", "yellow")
    check_format(kind)
    return kind


def _begun(cursor_file: Path) -> Cursor | None:
    """The cursor in a file; None where there is no such file yet. Raises InputError."""
    try:
        return read_cursor(cursor_file.read_text("utf-8"), str(cursor_file))
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise InputError("{path}: is no cursor of an export: it is no text", path=cursor_file) from None


def _result_text(n: int, target: str, went_on: bool) -> str:
    what = f"{n:,} {'new ' if went_on else ''}{'row' if n == 1 else 'rows'}"
    return what if target == "-" else f"{what} written to {target}"


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            "--since {text!r} is no date; write 2026-05-01 or 2026-05-01T12:00", text=text
        ) from None
    return read_local(moment)


def _day(option: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError("{option} {text!r} is no day; write 2026-05-01", option=option, text=text) from None
