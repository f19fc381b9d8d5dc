"""Rows of a query as dataclasses or named tuples: the annotation of a field gives the form of its column."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

_Convert = Callable[[Any], Any]

_JSON = (list, dict, Sequence, Mapping)


@cache
def reader_of(row_type: Any, columns: tuple[str, ...], *, sqlite: bool) -> Callable[[Sequence[Any]], Any]:
    """Return the function that makes a `row_type` of a row.

    Args:
        row_type: a dataclass or a named tuple; `dict`: the columns by name, as the driver has them. A field that is
            `Annotated[T, function]` has the function's value for the JSON in its column.
        columns: names of the row's columns, in order; each is a field of `row_type`.
    """
    if row_type is dict:
        return lambda row: dict(zip(columns, row, strict=True))
    hints = get_type_hints(row_type, include_extras=True)
    conversions = [
        (name, convert)
        for name in columns
        if (convert := _conversion(hints[name], sqlite=sqlite)) is not None
    ]
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


def _conversion(hint: Any, *, sqlite: bool) -> _Convert | None:
    """Return what turns the driver's value into the one of an annotation; `None` if it is that value."""
    if get_origin(hint) is Annotated:
        function = hint.__metadata__[0]
        return (lambda text: function(json.loads(text))) if sqlite else function
    if get_origin(hint) in (UnionType, Union):
        (hint,) = (kind for kind in get_args(hint) if kind is not NoneType)
    kind: Any = get_origin(hint) or hint
    if issubclass(kind, Enum):
        return lambda value: kind(value)
    if kind is frozenset:
        return _set_reader(get_args(hint)[0], sqlite=sqlite)
    if kind is tuple:
        member: _Convert = tuple if get_origin(get_args(hint)[0]) is tuple else lambda one: one
        return lambda told: tuple(map(member, json.loads(told) if sqlite else told))
    if not sqlite:
        return bytes if kind is bytes else None
    if kind in _JSON:
        return json.loads
    conversions: dict[type, _Convert] = {datetime: read_time, date: date.fromisoformat, bool: bool}
    return conversions.get(kind)


def _set_reader(member: type[Enum], *, sqlite: bool) -> _Convert:
    """Return what reads a JSON list as a set of an enum's members; it leaves out values that the enum lacks."""
    known = {one.value: one for one in member}

    def read(told: Any) -> Any:
        values = json.loads(told) if sqlite else told
        return frozenset(known[value] for value in values if value in known)

    return read
