"""`reviewloop export`: take reviews along."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from app.cli.options import db_option, json_option, pseudonymise_option, settings_of, store_there
from app.cli.output import print_json, say
from app.exports import FORMATS, pseudonymised, whole_file, writer_of
from app.pseudonyms import pseudonyms
from splitter.errors import InputError
from tasks.store.review_rows import review_rows


@click.group()
def export() -> None:
    """Write what was collected to a file.

    \b
    Example:
      reviewloop export reviews --format csv -o reviews.csv
    """


@export.command()
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: by the file's name, else csv.")
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(dir_okay=False, allow_dash=True),
    default="-",
    help="Default: - (standard output).",
)
@click.option("--product", metavar="NAME", help="Only this product's.")
@click.option("--site", metavar="NAME", help="Only this site's.")
@click.option(
    "--since", metavar="DATE", help="Only those collected then or later (UTC): 2026-05-01, 2026-05-01T12:00."
)
@click.option(
    "--spreadsheet",
    is_flag=True,
    help="csv for Excel: with a byte order mark, and no text read as a formula.",
)
@pseudonymise_option
@db_option
@json_option
def reviews(
    form: str | None,
    target: str,
    product: str | None,
    site: str | None,
    since: str | None,
    spreadsheet: bool,
    pseudonymise: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Export reviews, one row for each (review, product): product, site, url, title, body, author, dates, rating.

    UTF-8. same_as is the number (column review) of an earlier review with an equal text, near_of of one with nearly
    the same text (a repost; similarity tells how near). With --json, standard output holds how many were written;
    towards - it holds the reviews as JSON lines.

    \b
    Examples:
      reviewloop export reviews --format csv -o reviews.csv
      reviewloop export reviews --product 特仑苏 --since 2026-05-01 -o - --format jsonl
      reviewloop export reviews --spreadsheet -o for-excel.csv
    """
    to_stdout = target == "-"
    if as_json and to_stdout and form == "csv":
        raise InputError("--json and --format csv can't share standard output: name a file with -o")
    kind = form or ("jsonl" if target.endswith((".jsonl", ".ndjson")) or (as_json and to_stdout) else "csv")
    if spreadsheet and kind != "csv":
        raise InputError("--spreadsheet is for --format csv")
    write = writer_of(kind, spreadsheet=spreadsheet)
    begin = _date(since) if since else None
    settings = settings_of(db, pseudonymise=pseudonymise or None)
    with store_there(settings) as store, store.read() as conn:
        rows = pseudonymised(review_rows(conn, product=product, site=site, since=begin), pseudonyms(settings))
        if to_stdout:
            n = write(rows, sys.stdout)
            sys.stdout.flush()
        else:
            with whole_file(Path(target)) as out:
                n = write(rows, out)
    if as_json and not to_stdout:
        print_json({"file": target, "format": kind, "rows": n})
    else:
        say(f"{n:,} rows" + ("" if to_stdout else f" written to {target}"))


def _date(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"--since {text!r} is no date; write 2026-05-01 or 2026-05-01T12:00") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
