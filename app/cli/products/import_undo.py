"""Undo an import: `product import --undo N` and `review import --undo N`."""

from __future__ import annotations

from collections.abc import Iterator

import click
from click.core import ParameterSource

from app.actions import import_actions
from app.actions.import_actions import ImportUndo
from app.cli.command import App
from app.cli.render import Part, text
from app.views.words import name_text, translate
from splitter.errors import InputError
from tasks.store.content.imported_products import Fate, Need, Undone
from tasks.store.content.numbered_imports import ImportKind

_MOST_STAYS = 20
_BESIDE_UNDO = ("undo", "dry_run", "db", "as_json")


def undo_import(app: App, number: int, kind: ImportKind, *, dry_run: bool) -> ImportUndo:
    """Undo the import with this number. In a dry run, return only what would be removed.

    Raises:
        InputError: another option was given, or the import does not exist.
    """
    for param in app.context.command.params:
        if param.name not in _BESIDE_UNDO and _is_given(app.context, param):
            raise InputError(
                "--undo {number} stands alone, or with --dry-run, --db and --json; leave out: {given}",
                number=number,
                given=param.opts[0],
            )
    if dry_run:
        return import_actions.preview(app.store, number, kind)
    return import_actions.undo(app.store, number, app.who, kind)


def _is_given(context: click.Context, param: click.Parameter) -> bool:
    return context.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE


@text.register
def _(view: ImportUndo) -> Iterator[Part]:
    for one in view.stays[:_MOST_STAYS]:
        yield translate("stays: {name}: {reason}", name=one.name, reason=_describe_need(one))
    if len(view.stays) > _MOST_STAYS:
        yield translate("... and {n} more; --json lists them", n=len(view.stays) - _MOST_STAYS)
    name = view.file or translate("typed")
    if view.dry_run:
        yield translate("import {n} ({name}): this would be undone", n=view.number, name=name)
    else:
        yield translate("import {n} ({name}) is undone", n=view.number, name=name)
    counts = {
        translate("Products removed"): view.products_removed,
        translate("Products as they were before"): view.products_restored,
        translate("Products that stay"): len(view.stays),
    }
    if view.kind is ImportKind.REVIEWS:
        counts[translate("Reviews removed")] = view.reviews_removed
        counts[translate("Reviews that stay, as another import has them")] = view.reviews_stay
    for what, n in counts.items():
        yield name_text(what, f"{n:,}")


def _describe_need(one: Undone) -> str:
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
