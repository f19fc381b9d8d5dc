"""Texts and values of statements that insert or update many rows of one table.

SQLite executes a text for each row. PostgreSQL gets all rows as one JSON document, which it reads as rows of the table:
one text to quote, parse and plan.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import JSON

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
    if isinstance(value, datetime):
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
        if convert is not utc_text or not _is_text(place, rows)
    ]
    if not conversions:
        return [row + of_all for row in rows] if of_all else rows
    return [_convert(conversions, row) + of_all for row in rows]


def _is_text(place: int, rows: Sequence[tuple[Any, ...]]) -> bool:
    """Return True if a column of times holds texts (`utc_text`): then it does in every row."""
    return isinstance(next((row[place] for row in rows if row[place] is not None), None), str)


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
    by_type: list[tuple[type, Callable[[Any], Any]]] = [(UtcDateTime, utc_text), (JSON, json_text)]
    return [
        (place, convert)
        for place, name in enumerate(columns)
        for kind, convert in by_type
        if isinstance(types[name].type, kind)
    ]


def storable(text: str) -> str:
    """Return a text with U+FFFD in place of what is no character in a database: NUL, and half a surrogate pair."""
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
