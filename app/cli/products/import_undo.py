"""The option `--undo N` of `product import` and `review import`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from typing import Any, BinaryIO

import click

from app.actions import import_actions
from app.actions.import_actions import ImportUndo
from app.cli.options import person, settings_of, store_there
from app.cli.output import print_json, printed
from app.importing.columns import ColumnChoice
from app.importing.sheets import TableChoice
from splitter.errors import InputError
from tasks.store.content.imported_products import Fate, Need, Undone
from tasks.store.content.numbered_imports import ImportKind

_MOST_NUMBER = (1 << 63) - 1
_MOST_STAYS = 20
_NOT_GIVEN = (None, False, (), TableChoice(), ColumnChoice())

Command = Callable[..., None]


def undo_option(kind: ImportKind) -> Callable[[Command], Command]:
    """Add the option that undoes an import of this kind instead of making one; the command gets the file."""

    def add_option(command: Command) -> Command:
        @click.option(
            "--undo",
            type=click.IntRange(1, _MOST_NUMBER),
            metavar="N",
            help="Remove what import N added instead, and name what stays because something needs it.",
        )
        @wraps(command)
        def chosen(undo: int | None, file: BinaryIO | None, **options: Any) -> None:
            if undo is not None:
                _undo(undo, kind, {"file": file, **options})
            elif file is None:
                raise click.UsageError("give a FILE, or --undo N")
            else:
                command(file=file, **options)

        return chosen

    return add_option


def _undo(number: int, kind: ImportKind, options: dict[str, Any]) -> None:
    """Undo an import, and print what was removed and what stays.

    Raises:
        InputError: another option was given, or there is no such import.
    """
    db, as_json, dry_run = (options.pop(name) for name in ("db", "as_json", "dry_run"))
    if given := [name for name, value in options.items() if value not in _NOT_GIVEN]:
        raise InputError(
            "--undo {number} stands alone, or with --dry-run, --db and --json; leave out: {given}",
            number=number,
            given=given[0],
        )
    with store_there(settings_of(db)) as store:
        if dry_run:
            done = import_actions.preview(store, number, kind)
        else:
            done = import_actions.undo(store, number, person(), kind)
    if as_json:
        print_json(_undo_document(done, dry_run=dry_run))
        return
    out = printed()
    for one in done.stays[:_MOST_STAYS]:
        out.print(f"stays: {one.name}: {_need_text(one)}")
    if len(done.stays) > _MOST_STAYS:
        out.print(f"       ... and {len(done.stays) - _MOST_STAYS} more; --json lists them")
    out.print(_undo_summary(done, dry_run=dry_run))


def _need_text(one: Undone) -> str:
    stopped = ", and is looked for no more" if one.fate is Fate.STOPPED else ""
    if one.need is Need.IMPORT:
        return f"{f'import {one.other}' if one.other else 'another import'} has it as well{stopped}"
    if one.need is Need.CORRECTION:
        return "a person changed it since"
    if one.need is Need.SCHEDULE:
        return "it is in a schedule"
    return f"it was crawled and has {one.pages:,} pages{stopped}"


def _undo_summary(done: ImportUndo, *, dry_run: bool) -> str:
    would = "would be " if dry_run else ""
    parts = [f"{done.products[Fate.DELETED]:,} products"]
    if done.imported.kind is ImportKind.REVIEWS:
        parts.insert(0, f"{done.reviews:,} reviews")
    said = (
        f"import {done.imported.id} ({done.imported.file or 'typed'}): {' and '.join(parts)} {would}removed"
    )
    if done.products[Fate.RESTORED]:
        said += f", {done.products[Fate.RESTORED]:,} products {would}as they were before"
    if done.stays:
        said += f", {len(done.stays):,} products stay"
    if done.reviews_kept:
        said += f", {done.reviews_kept:,} reviews stay, as another import has them as well"
    return said


def _undo_document(done: ImportUndo, *, dry_run: bool) -> dict[str, object]:
    return {
        "number": done.imported.id,
        "kind": done.imported.kind,
        "file": done.imported.file,
        "reviews_removed": done.reviews,
        "reviews_stay": done.reviews_kept,
        "products_removed": done.products[Fate.DELETED],
        "products_restored": done.products[Fate.RESTORED],
        "stays": [asdict(one) for one in done.stays],
        "dry_run": dry_run,
    }
