"""Rows of a query as dataclasses or named tuples: the annotation of a field gives the form of its column."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

_Convert = Callable[[Any], Any]


@cache
def reader_of(row_type: Any, columns: tuple[str, ...], *, sqlite: bool) -> Callable[[Sequence[Any]], Any]:
    """Return the function that makes a `row_type` of a row.

    Args:
        row_type: a dataclass or a named tuple; `dict`, `tuple`: the columns as the driver has them. A field that is
            `Annotated[T, function]` has the function's value for the JSON in its column.
        columns: names of the row's columns, in order; each is a field of `row_type`.
    """
    if row_type is tuple:
        return row_type
    if row_type is dict:
        return lambda row: dict(zip(columns, row, strict=True))
    hints = get_type_hints(row_type, include_extras=True)
    found = {name: _conversion(hints[name], sqlite=sqlite) for name in columns}
    conversions = [(name, convert) for name, convert in found.items() if convert is not None]
    if not conversions and columns == getattr(row_type, "_fields", None):
        return partial(tuple.__new__, row_type)  # as `_make`, which takes three times as long

    def read(row: Sequence[Any]) -> Any:
        values = dict(zip(columns, row, strict=True))
        for name, convert in conversions:
            if (value := values[name]) is not None:
                values[name] = convert(value)
        return row_type(**values)

    return read


def read_time(text: str) -> datetime:
    """Return a time as SQLite stores it, in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


_JSON = (list, dict, Sequence, Mapping)


def _conversion(hint: Any, *, sqlite: bool) -> _Convert | None:
    """Return what turns the driver's value into the one of an annotation; `None` if it is that value."""
    load: _Convert = json.loads if sqlite else lambda told: told
    if get_origin(hint) is Annotated:
        function = hint.__metadata__[0]
        return lambda told: function(load(told))
    if get_origin(hint) in (UnionType, Union):
        (hint,) = (kind for kind in get_args(hint) if kind is not NoneType)
    kind: Any = get_origin(hint) or hint
    if kind is frozenset:  # of an enum; values that it lacks are left out
        known = {one.value: one for one in get_args(hint)[0]}
        return lambda told: frozenset(known[value] for value in load(told) if value in known)
    if kind is tuple:
        member: _Convert = tuple if get_origin(get_args(hint)[0]) is tuple else lambda one: one
        return lambda told: tuple(map(member, load(told)))
    if kind in (int, float, str, Any):
        return None
    if kind is bytes:
        return None if sqlite else bytes
    if kind in (bool, datetime, *_JSON):
        forms: dict[Any, _Convert] = {bool: bool, datetime: read_time}
        return forms.get(kind, json.loads) if sqlite else None
    return cast("_Convert", kind)  # an enum, or a class of a text
