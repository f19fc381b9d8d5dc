"""The option `--undo N` of `product import` and `review import`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from app.views.words import translate
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
        out.print(translate("stays: {name}: {reason}", name=one.name, reason=_need_text(one)))
    if len(done.stays) > _MOST_STAYS:
        out.print(translate("... and {n} more; --json lists them", n=len(done.stays) - _MOST_STAYS))
    for text in _list_results(done, dry_run=dry_run):
        out.print(text)


def _need_text(one: Undone) -> str:
    reason = translate("it was crawled and has {n:,} pages", n=one.pages)
    if one.need is Need.IMPORT:
        reason = translate("another import has it as well")
        if one.other:
            reason = translate("import {n} has it as well", n=one.other)
    if one.need is Need.CORRECTION:
        return translate("a person changed it since")
    if one.need is Need.SCHEDULE:
        return translate("it is in a schedule")
    if one.fate is Fate.STOPPED:
        return translate("{reason}; it is no longer collected", reason=reason)
    return reason


def _list_results(done: ImportUndo, *, dry_run: bool) -> Iterator[str]:
    name = done.imported.file or translate("typed")
    if dry_run:
        yield translate("import {n} ({name}): this would be undone", n=done.imported.id, name=name)
    else:
        yield translate("import {n} ({name}) is undone", n=done.imported.id, name=name)
    counts = {
        translate("Products removed"): done.products[Fate.DELETED],
        translate("Products as they were before"): done.products[Fate.RESTORED],
        translate("Products that stay"): len(done.stays),
    }
    if done.imported.kind is ImportKind.REVIEWS:
        counts[translate("Reviews removed")] = done.reviews
        counts[translate("Reviews that stay, as another import has them")] = done.reviews_kept
    for what, n in counts.items():
        yield f"{what}: {n:,}"


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
