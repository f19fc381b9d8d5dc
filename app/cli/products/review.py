"""The command `reviewloop review`: import reviews from files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import click
from rich.text import Text

from app.cli.command import App
from app.cli.options import database_hint
from app.cli.output import say
from app.cli.products.classify import classify
from app.cli.products.import_options import (
    FileNotes,
    ImportFile,
    import_command,
    note_file,
    say_columns,
    store_or_none,
)
from app.cli.products.review_correct import correct
from app.cli.render import Part, text
from app.importing.review_checks import ProductNames, RefusedReview, ReviewChecks
from app.importing.review_columns import FIELDS, FieldColumns, field_columns
from app.importing.review_files import ReviewFile, open_review_file
from app.importing.review_import import Imported, Saving, Trying, import_reviews
from app.views.fields import label
from app.views.words import join_words, name_text, translate
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
    """Import reviews that you have already, correct stored ones, or show what texts complain about.

    \b
    Examples:
      reviewloop review import reviews.csv
      reviewloop review classify reviews.jsonl
      reviewloop review correct 4711 --voice praise
    """


review.add_command(classify)
review.add_command(correct)


@dataclass(kw_only=True)
class ImportedReviews(FileNotes):
    """The result of an import of reviews, and how its file was read.

    Attributes:
        number: number of the import; `None` if nothing was stored.
        added: number of newly stored reviews.
        known: number of reviews that were stored before, by an earlier import or line.
        refused: the first refused lines; `refused_by_field` counts all refused lines.
        source: name of the source of the reviews.
        products_added: names of new products.
        products_matched: for names in the file that differ from a product's name, the product that they stand for.
    """

    number: int | None
    added: int
    known: int
    refused: Sequence[RefusedReview]
    refused_by_field: Mapping[str, int]
    lines: int
    source: str
    products_added: Sequence[str]
    products_matched: Mapping[str, str]
    dry_run: bool


@import_command(review, ImportKind.REVIEWS, FIELDS)
@click.option("--product", metavar="NAME", help="Product of all lines, if no column names it.")
@click.option("--site", metavar="NAME", help="Site of all lines, if no column names it.")
@click.option(
    "--source",
    metavar="NAME",
    help="Name of the file's origin. Default: made from the file's columns.",
)
@click.option("--crawl", is_flag=True, help="Crawl products that are new, too.")
def import_(
    app: App, file: ImportFile, product: str | None, site: str | None, source: str | None, crawl: bool
) -> ImportedReviews:
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
    app.settings.use_themes()
    from app.run.wiring import pseudonyms, utc_now  # loads the crawl

    _check_source(source)
    read = open_review_file(file.data, file.origin, file.choice, file.columns)
    if read.found is not None:
        read.found.check()
    with store_or_none(app.settings, dry_run=file.dry_run) as store:
        fields = _columns(read, file, product, site)
        from_ = source.strip() if source is not None else _source(read, fields)
        names = _product_names(store, product, crawl=crawl)
        checks = ReviewChecks(
            fields, names, app.settings.catalog().sites, pseudonyms(app.settings), utc_now()
        )
        saving: Saving | Trying = Trying(store)
        if store is not None and not file.dry_run:
            saving = Saving(store, from_, names, file.origin, app.who)
        say_columns(translate("{name} ({why})", name=file.origin, why=from_), read.found, fields.columns)
        done = import_reviews(read.records, checks, saving.save, _progress)
        saving.end()
    if done.refused:
        app.exit_status = 2
        _say_refused(done)
    unused = fields.list_unused(read.columns, file.columns)
    notes = note_file(read.found, fields.columns, unused, checks.ignored.list_columns())
    return ImportedReviews(
        **vars(notes),
        number=saving.number,
        added=done.added,
        known=done.known,
        refused=done.refused,
        refused_by_field=done.refused_by,
        lines=done.lines,
        source=from_,
        products_added=list(names.added),
        products_matched=names.taken_as,
        dry_run=file.dry_run,
    )


def _check_source(name: str | None) -> None:
    if name is not None and not (0 < len(name.strip()) <= _LONGEST_SOURCE and name.isprintable()):
        raise InputError(
            "--source {name!r}: write a name of at most {most} characters",
            name=name[:40],
            most=_LONGEST_SOURCE,
        )


def _source(read: ReviewFile, columns: FieldColumns) -> str:
    """Return the source to store with a file's reviews: the collector that made it, or a hash of its columns."""
    if columns.collector is not None:
        return columns.collector.name
    named = sorted({name for name in read.columns if name})
    return f"columns-{digest_of(*named).hex()[:8]}"


def _columns(read: ReviewFile, file: ImportFile, product: str | None, site: str | None) -> FieldColumns:
    found = replace(field_columns(read.columns, file.columns, file.origin), site=site or "")
    if product is None and "product" not in found.columns:
        raise InputError(
            "{origin}: no column is known to hold the product's name; name it with --map product=COLUMN, or "
            "give the product of all lines with --product NAME",
            origin=file.origin,
        )
    return found


def _product_names(store: Store | None, product: str | None, *, crawl: bool) -> ProductNames:
    """Return the object that finds the product of each line.

    Raises InputError if `product` can't be a product's name.
    """
    there: list[KnownName] = []
    if store is not None:
        with store.read() as tx:
            there = products.list_names(tx)
    names = ProductNames(there, product, None if crawl else ())
    if product is not None:
        names.find(product)
    return names


def _progress(lines: int) -> None:
    if lines % _TOLD_EVERY == 0:
        say(translate("{n:,} lines", n=lines), "dim")


def _say_refused(done: Imported) -> None:
    """Print the first refused lines with their reasons, and the number of refused lines by field."""
    for one in done.refused[:_MOST_LINES]:
        field = name_text(label(one.field), "") if one.field else ""
        say(
            translate("refused: line {line}: {field}{why}", line=one.line, field=field, why=one.why),
            "red",
        )
    refused = done.refused_by.total()
    if refused > _MOST_LINES:
        counts = join_words(f"{label(name)} {n:,}" for name, n in done.refused_by.most_common())
        more = translate(
            "... {n:,} refused in all, by field: {counts}; --json lists the first {listed:,}",
            n=refused,
            counts=counts,
            listed=len(done.refused),
        )
        say(more, "red")


@text.register
def _(view: ImportedReviews) -> Iterator[Part]:
    yield from _list_some(
        [
            translate(
                "product that would be added: {name}" if view.dry_run else "product added: {name}", name=name
            )
            for name in view.products_added
        ]
    )
    yield from _list_some(
        [
            translate("{written} counts as {name}", written=one, name=name)
            for one, name in view.products_matched.items()
        ]
    )
    yield translate(
        "reviews that would be added: {added:,}, known already: {known:,}, refused lines: {refused:,}"
        if view.dry_run
        else "reviews added: {added:,}, known already: {known:,}, refused lines: {refused:,}",
        added=view.added,
        known=view.known,
        refused=sum(view.refused_by_field.values()),
    )
    if view.products_added and not view.dry_run:
        note = translate(
            "New products of an import are not crawled; to crawl one: reviewloop product add NAME"
        )
        yield Text(note, style="dim")
    if view.number is not None and view.added:
        undo = f"reviewloop review import --undo {view.number}{database_hint()}"
        yield Text(translate("import {n}; undo it: {command}", n=view.number, command=undo), style="dim")


def _list_some(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:_MOST_LINES]
    if len(lines) > _MOST_LINES:
        yield "  " + translate("... and {n} more", n=len(lines) - _MOST_LINES)
