"""`reviewloop review`: reviews that people have already."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, BinaryIO

import click

from app.cli.options import (
    database_hint,
    db_option,
    json_option,
    person,
    settings_of,
)
from app.cli.output import print_json, printed, say
from app.cli.products.classify import classify
from app.cli.products.import_options import (
    column_options,
    print_ignored,
    rereadable,
    say_columns,
    store_or_none,
    table_document,
    table_options,
)
from app.cli.products.import_undo import undo_option
from app.importing.columns import ColumnChoice
from app.importing.review_checks import ProductNames, ReviewChecks
from app.importing.review_columns import FIELDS, FieldColumns, field_columns
from app.importing.review_files import ReviewFile, open_review_file
from app.importing.review_import import Imported, Saving, Trying, import_reviews
from app.importing.sheets import TableChoice
from app.views.words import describe, translate
from splitter.errors import InputError
from tasks.store.content import products
from tasks.store.content.imports import digest_of
from tasks.store.content.numbered_imports import ImportKind
from tasks.store.content.products import KnownName
from tasks.store.sql.database import Store

_MOST_LINES = 10
_TOLD_EVERY = 100_000
_LONGEST_SOURCE = 100


@click.group()
def review() -> None:
    """Import reviews that you have already, or show what texts complain about.

    \b
    Examples:
      reviewloop review import reviews.csv
      reviewloop review classify reviews.jsonl
    """


review.add_command(classify)


@review.command("import")
@click.argument("file", type=click.File("rb"), required=False)
@column_options(FIELDS)
@table_options
@click.option("--product", metavar="NAME", help="Product of all lines, if no column names it.")
@click.option("--site", metavar="NAME", help="Site of all lines, if no column names it.")
@click.option(
    "--source",
    metavar="NAME",
    help="Name of the file's origin. Default: made from the file's columns.",
)
@click.option("--crawl", is_flag=True, help="Crawl products that are new, too.")
@undo_option(ImportKind.REVIEWS)
@click.option("--dry-run", is_flag=True, help="Only say what would be done; change nothing.")
@db_option
@json_option
def import_(
    file: BinaryIO,
    columns: ColumnChoice,
    choice: TableChoice,
    product: str | None,
    site: str | None,
    source: str | None,
    crawl: bool,
    dry_run: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Store the reviews of FILE (- for standard input): CSV, xlsx, or one JSON object a line.

    Fields are product, body, date, author, title, rating, url, site, variant; only body and product are
    needed. Usual headers in Chinese and English and the files of known collectors are recognised, also
    below titles; --map names other columns. Known reviews are not stored twice.

    Lines without a text or a product are listed with the reason, the others are stored; the exit status is
    then 2. Any other cell that is not understood is left empty and counted. New products are added but
    not crawled (--crawl does). Every import gets a number. --undo N removes what import N added.

    \b
    Examples:
      reviewloop review import 评价导出.xlsx --dry-run
      reviewloop review import shop.csv --map body=买家留言 --map rating= --source my-shop
      reviewloop review import search_comments_2026-08-14.jsonl --product 特仑苏
    """
    origin = str(getattr(file, "name", "standard input"))
    settings = settings_of(db)
    settings.use_themes()
    sites = settings.catalog().sites
    from app.run.wiring import pseudonyms, utc_now  # brings the crawl

    _check_source(source)
    with rereadable(file) as data:
        read = open_review_file(data, origin, choice, columns)
        if read.found is not None:
            read.found.check()
        with store_or_none(settings, dry_run=dry_run) as store:
            fields = _columns(read, columns, product, site, origin)
            from_ = source.strip() if source is not None else _source(read, fields)
            names = _product_names(store, product, crawl=crawl)
            checks = ReviewChecks(fields, names, sites, pseudonyms(settings), utc_now())
            saving: Saving | Trying = Trying(store)
            if store is not None and not dry_run:
                saving = Saving(store, from_, names, origin, person())
            say_columns(f"{origin} ({from_})", read.found, fields.columns)
            try:
                done = import_reviews(read.records, checks, saving.save, _progress)
            except KeyboardInterrupt:
                say("Stopped. What was stored stays; the same command goes on.", "yellow")
                raise
            saving.end()
    document = {"number": saving.number} | _document(done, names, fields, from_, dry_run=dry_run)
    document |= table_document(read.found, fields.unused(read.columns, columns))
    document["ignored"] = print_ignored(checks.ignored.list_columns())
    _finish(done, names, document, dry_run=dry_run, as_json=as_json)


def _check_source(name: str | None) -> None:
    if name is not None and not (0 < len(name.strip()) <= _LONGEST_SOURCE and name.isprintable()):
        raise InputError(
            "--source {name!r}: write a name of at most {most} characters",
            name=name[:40],
            most=_LONGEST_SOURCE,
        )


def _source(read: ReviewFile, columns: FieldColumns) -> str:
    """Return the name of a file's source: the collector that writes such files, or a hash of the columns."""
    if columns.collector is not None:
        return columns.collector.name
    named = sorted({name for name in read.columns if name})
    return f"columns-{digest_of(*named).hex()[:8]}"


def _columns(
    read: ReviewFile, choice: ColumnChoice, product: str | None, site: str | None, origin: str
) -> FieldColumns:
    found = replace(field_columns(read.columns, choice, origin), site=site or "")
    if product is None and "product" not in found.columns:
        raise InputError(
            "{origin}: no column is known to hold the product's name; name it with --map product=COLUMN, or "
            "give the product of all lines with --product NAME",
            origin=origin,
        )
    return found


def _product_names(store: Store | None, product: str | None, *, crawl: bool) -> ProductNames:
    """Return what finds the products of the lines. Raises InputError if `product`, of all lines, is no name."""
    there: list[KnownName] = []
    if store is not None:
        with store.read() as tx:
            there = products.list_names(tx)
    names = ProductNames(there, product, None if crawl else ())
    if product is not None:
        names.of(product)
    return names


def _progress(lines: int) -> None:
    if lines % _TOLD_EVERY == 0:
        say(f"{lines:,} lines", "dim")


def _finish(
    done: Imported, names: ProductNames, document: Mapping[str, Any], *, dry_run: bool, as_json: bool
) -> None:
    refused = sum(done.refused_by.values())
    for one in done.refused[:_MOST_LINES]:
        say(f"refused: line {one.line}: {one.field + ': ' if one.field else ''}{describe(one.why)}", "red")
    if refused > _MOST_LINES:
        by = ", ".join(f"{name} {n:,}" for name, n in done.refused_by.most_common())
        say(
            f"         ... {refused:,} in all, by field: {by}; --json lists the first {len(done.refused):,}",
            "red",
        )
    if as_json:
        print_json(document)
    else:
        _print(done, names, dry_run=dry_run)
        if document["number"] is not None and done.added:
            undo = f"reviewloop review import --undo {document['number']}{database_hint()}"
            text = translate("import {n}; undo it: {command}", n=document["number"], command=undo)
            printed().print(text, style="dim")
    if refused:
        sys.exit(2)


def _document(
    done: Imported, names: ProductNames, columns: FieldColumns, source: str, *, dry_run: bool
) -> dict[str, Any]:
    return {
        "added": done.added,
        "known": done.known,
        "refused": done.refused,
        "refused_by_field": done.refused_by,
        "lines": done.lines,
        "source": source,
        "columns": columns.columns,
        "products_added": list(names.added),
        "products_matched": names.taken_as,
        "dry_run": dry_run,
    }


def _print(done: Imported, names: ProductNames, *, dry_run: bool) -> None:
    out = printed()
    lists = (
        [
            translate(
                "product that would be added: {name}" if dry_run else "product added: {name}", name=name
            )
            for name in names.added
        ],
        [
            translate("{written} counts as {name}", written=one, name=name)
            for one, name in names.taken_as.items()
        ],
    )
    for lines in lists:
        for line in lines[:_MOST_LINES]:
            out.print(line)
        if len(lines) > _MOST_LINES:
            out.print("  " + translate("... and {n} more", n=len(lines) - _MOST_LINES))
    counts = Counter(done.refused_by)
    text = translate(
        "reviews that would be added: {added:,}, known already: {known:,}, refused lines: {refused:,}"
        if dry_run
        else "reviews added: {added:,}, known already: {known:,}, refused lines: {refused:,}",
        added=done.added,
        known=done.known,
        refused=counts.total(),
    )
    out.print(text)
    if names.added and not dry_run:
        out.print(
            translate("New products of an import are not crawled; to crawl one: reviewloop product add NAME"),
            style="dim",
        )
