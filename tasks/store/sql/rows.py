"""Rows on their way to the drivers and back.

To a database: texts and values of statements that insert or update many rows of one table. SQLite executes a text for
each row. PostgreSQL gets all rows as one JSON document, which it reads as rows of the table: one text to quote, parse
and plan. From a database: rows of a query as dataclasses or named tuples; the annotation of a field gives the form of
its column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

from sqlalchemy import JSON, Date

from tasks.store.sql.tables import UtcDateTime, metadata

_Conversion = tuple[int, Callable[[Any], Any]]
"""The place of a value in a row, and what SQLite gets for it."""

_ZONE_AT = len("2013-05-06 12:30:00.000000")
_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_CHARACTER = re.compile("[\0\ud800-\udfff]")
_UNSTORABLE = "\ufffd"


@cache
def insertion(
    table: str,
    columns: tuple[str, ...],
    shared: tuple[str, ...],
    computed: tuple[tuple[str, str], ...] = (),
    *,
    skip_known: bool,
    sqlite: bool,
) -> str:
    """Return the text that inserts rows.

    Args:
        columns: of the table, that each row has a value for.
        shared: further columns, that have one value for all rows.
        computed: further columns, each with an SQL expression; `{name}` in it is the row's value of a column.
        skip_known: leave out rows whose key is there already.
    """
    names = (*columns, *shared)
    of_postgres = [*(f'given."{name}"' for name in columns), *(f":{name}" for name in shared)]
    values = _marks(names) if sqlite else of_postgres
    of_row = dict(zip(names, values, strict=True))
    values += [expression.format_map(of_row) for _, expression in computed]
    quoted = [f'"{name}"' for name in (*names, *(name for name, _ in computed))]
    listed = ", ".join(values)
    source = f"VALUES ({listed})" if sqlite else f"SELECT {listed} FROM {_json_source(table)}"
    skipping = " ON CONFLICT DO NOTHING" if skip_known else ""
    return f"INSERT INTO {table} ({', '.join(quoted)}) {source}{skipping}"


@cache
def updating(
    table: str, columns: tuple[str, ...], key: tuple[str, ...], shared: tuple[str, ...], *, sqlite: bool
) -> str:
    """Return the text that updates rows, each found by its key; for the arguments see `insertion`."""
    if sqlite:
        of_row = dict(zip((*columns, *key), _marks((*columns, *key)), strict=True))
        of_all = dict(zip(shared, _marks((*columns, *key, *shared))[len(of_row) :], strict=True))
        source = ""
    else:
        of_row = {name: f'given."{name}"' for name in (*columns, *key)}
        of_all = {name: f":{name}" for name in shared}
        source = f"FROM {_json_source(table)} "
    values = [
        *(f'"{name}" = {of_row[name]}' for name in columns),
        *(f'"{name}" = {of_all[name]}' for name in shared),
    ]
    found = [f'{table}."{name}" = {of_row[name]}' for name in key]
    return f"UPDATE {table} SET {', '.join(values)} {source}WHERE {' AND '.join(found)}"


def _marks(names: Sequence[str]) -> list[str]:
    return [f"?{place}" for place, _ in enumerate(names, 1)]


def _json_source(table: str) -> str:
    return f"jsonb_populate_recordset(CAST(NULL AS {table}), CAST(:rows AS jsonb)) AS given"


def document(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return rows as PostgreSQL reads them: a JSON list of maps."""
    return _clean_json([dict(zip(columns, row, strict=True)) for row in rows])


def _clean_json(value: Any) -> str:
    """Return a value as JSON in Unicode, see `json_text`."""
    text = json.dumps(value, ensure_ascii=False, default=_as_json)
    if "\\u0000" in text:
        text = _NUL.sub(rf"\1{_UNSTORABLE}", text)
    return text if text.isascii() else _SURROGATE.sub(_UNSTORABLE, text)


def json_text(value: Any) -> str:
    """Return a value for a JSON column, without the characters that PostgreSQL's JSON does not take."""
    text = json.dumps(value)
    suspect = "\\u0000" in text or "\\ud" in text
    return json.dumps(json.loads(_clean_json(value))) if suspect else text


def _as_json(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    return dict(value)


def sqlite_rows(
    table: str, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]], shared: Mapping[str, Any]
) -> Sequence[tuple[Any, ...]]:
    """Return rows as SQLite's driver takes them, each followed by the values that all of them share."""
    of_all = _convert(_conversions(table, tuple(shared)), tuple(shared.values()))
    conversions = [
        (place, convert)
        for place, convert in _conversions(table, columns)
        if _is_needed(convert, place, rows)
    ]
    if not conversions:
        return [row + of_all for row in rows] if of_all else rows
    return [_convert(conversions, row) + of_all for row in rows]


def _is_needed(convert: Callable[[Any], Any], place: int, rows: Sequence[tuple[Any, ...]]) -> bool:
    """Return False if a column is null in every row, or is one of times that holds texts (`utc_text`)."""
    first = next((row[place] for row in rows if row[place] is not None), None)
    return first is not None and not (convert is utc_text and isinstance(first, str))


def _convert(conversions: Sequence[_Conversion], row: tuple[Any, ...]) -> tuple[Any, ...]:
    values = list(row)
    for place, convert in conversions:
        if (value := values[place]) is not None:
            values[place] = convert(value)
    return tuple(values)


@cache
def _conversions(table: str, columns: tuple[str, ...]) -> Sequence[_Conversion]:
    """Return which of a table's columns SQLite takes in another form, by place."""
    types = metadata.tables[table].columns
    by_type: list[tuple[type, Callable[[Any], Any]]] = [
        (UtcDateTime, utc_text),
        (JSON, json_text),
        (Date, str),
    ]
    return [
        (place, convert)
        for place, name in enumerate(columns)
        for kind, convert in by_type
        if isinstance(types[name].type, kind)
    ]


def storable(text: str) -> str:
    """Return a text with U+FFFD in place of NUL and of half a surrogate pair: PostgreSQL stores neither."""
    try:
        text.encode()  # in half the time of the expression
    except UnicodeEncodeError:
        return _NO_CHARACTER.sub(_UNSTORABLE, text)
    return text.replace("\0", _UNSTORABLE)


def utc_text(time: datetime) -> str:
    """Return an aware time as SQLite stores it: in UTC, to the microsecond, without its zone.

    PostgreSQL reads it as UTC, the zone of its sessions (`tasks.store.sql.postgres`).
    """
    return (time if time.tzinfo is UTC else time.astimezone(UTC)).isoformat(" ", "microseconds")[:_ZONE_AT]


# --- back from the drivers ------------------------------------------------------------------------------------

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
_SCAN = json.JSONDecoder().raw_decode


def _load_json(text: str) -> Any:
    """Return the value of a text that `json_text` or SQLite made: in a third of the time of `json.loads`."""
    return _SCAN(text)[0]


def _conversion(hint: Any, *, sqlite: bool) -> _Convert | None:
    """Return what turns the driver's value into the one of an annotation; `None` if it is that value."""
    load: _Convert = _load_json if sqlite else lambda told: told
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
    if kind in (bool, datetime, date, *_JSON):
        forms: dict[Any, _Convert] = {bool: bool, datetime: read_time, date: date.fromisoformat}
        return forms.get(kind, _load_json) if sqlite else None
    return cast("_Convert", kind)  # an enum, or a class of a text
