"""Labels and texts of fields. A field has the same label and format in the terminal, on a page and in a file.

The name of a field ends with its unit: `_s`, `_ms`, `_at`, `_share`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from operator import attrgetter
from typing import Any, TypeVar

from app.views.durations import seconds
from app.views.moments import clock_text
from app.views.words import describe, join_words, translate
from tasks.domain.breaker import BreakerState
from tasks.domain.states import State

T = TypeVar("T")

SHARES = frozenset({"completion", "coverage", "share"})
"""Names of shares in [0, 1] that don't end in `_share`."""
CODES = frozenset(
    {
        *(
            "category",
            "cause",
            "does",
            "end",
            "group",
            "http",
            "kind",
            "outcome",
            "reason",
            "robots",
            "state",
        ),
        *("transition", "verdict", "voice"),
    }
)
"""Fields whose values are translated: stored names (`bad_rule`, `DONE`) and descriptions of sweeps."""

_AGO_WITHIN = timedelta(days=2)
_UNITS = ("_s", "_ms", "_at")
_BARS = " ▁▂▃▄▅▆▇█"


class NodeState(StrEnum):
    """States of a node: it works, it gets no new work, its last heartbeat is too old, or it has ended."""

    ALIVE = "alive"
    DRAINED = "drained"
    SILENT = "silent"
    STOPPED = "stopped"


STYLE_OF: Mapping[str, str] = {
    State.PRIORITY: "blue",
    State.WAIT: "cyan",
    State.CRAWL: "bold green",
    State.SLEEP: "magenta",
    State.FAILED: "red",
    State.MANUAL: "yellow",
    State.DONE: "green",
    State.CANCELLED: "dim",
    NodeState.ALIVE: "green",
    NodeState.DRAINED: "yellow",
    NodeState.SILENT: "red",
    NodeState.STOPPED: "dim",
    BreakerState.OPEN: "red",
    BreakerState.HALF_OPEN: "yellow",
    "permitted": "green",
    "not permitted": "red",
    "answers": "green",
    "rules find nothing": "bold red",
}
"""Style of a value in the terminal. A page derives its mark from the color."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table, with its texts.

    Attributes:
        name: name of the field.
        is_long: True if the texts are long and may take several lines.
        texts: text for each row; `None` if there is nothing to show.
    """

    name: str
    label: str
    is_number: bool
    is_long: bool
    values: Sequence[Any]
    texts: Sequence[str | None]


def list_columns(rows: Sequence[object], names: str, now: datetime | None = None) -> list[Column]:
    """Return the columns of a table: the first field, and every other field that has a value in at least one row.

    Args:
        rows: objects or mappings with these fields.
        names: names of fields, separated by spaces; ">" at the end of a name marks a field with long texts.
        now: if given, times near it are shown relative to it.
    """
    columns = [_read_column(rows, name, now) for name in names.split()]
    return [column for column in columns if any(column.texts)] or columns[:1]


def _read_column(rows: Sequence[object], name: str, now: datetime | None) -> Column:
    name, mark, _ = name.partition(">")
    values = [row.get(name) if isinstance(row, Mapping) else attrgetter(name)(row) for row in rows]
    return Column(
        name=name,
        is_long=bool(mark),
        label=label(name),
        is_number=any(isinstance(one, int | float) and not isinstance(one, bool) for one in values),
        values=values,
        texts=[format_value(name, value, now) for value in values],
    )


def extend_row(view: type[T], row: Any, **more: object) -> T:
    """Return an instance of the class `view`, with the fields of a row and the fields in `more`."""
    return view(**{field.name: getattr(row, field.name) for field in fields(row)}, **more)


def label(field: str) -> str:
    """Return the label of a field: its translation, or else the words of its name without the unit."""
    key = f"field.{field}"
    translated = translate(key)
    if translated != key:
        return translated
    for unit in _UNITS:
        if field.endswith(unit) and not is_rate(field):
            return field.removesuffix(unit).replace("_", " ")
    return field.replace("_", " ")


def is_rate(field: str) -> bool:
    """Return True if the unit of a field is "per second"."""
    return field.endswith("_per_s")


def format_value(field: str, value: object, now: datetime | None = None) -> str | None:
    """Return the value of a field as text; `None` if there is nothing to show.

    Args:
        now: if given, times near it are shown relative to it.
    """
    if value is None or value is False or value == "":
        return None
    if value is True:
        return translate("yes")
    if isinstance(value, int | float):
        return _format_number(field, value)
    if isinstance(value, datetime):
        return format_moment(value, now)
    if isinstance(value, StrEnum) or (isinstance(value, str) and field in CODES):
        return translate(str(value))
    if isinstance(value, Mapping):
        return format_counts(value) or None
    if field == "trend" and isinstance(value, Sequence):
        return draw_trend(value)
    if isinstance(value, Collection) and not isinstance(value, str):
        return _join(field, value) or None
    return describe(value)


def format_counts(counts: Mapping[str, Any]) -> str:
    """Return counts as one line, such as: 3 stored, 1 given up."""
    return join_words(translate("{n:,} {name}", n=n, name=_name_count(name)) for name, n in counts.items())


def _name_count(name: str) -> str:
    """Return the text for the name of a count. The name is a stored name, such as `bad_rule`, or a field."""
    named = translate(name)
    return label(name) if named == name else named.replace("_", " ")


def format_moment(moment: datetime, now: datetime | None = None) -> str:
    """Return a time as clock time, or relative to `now` if it is less than two days away from `now`."""
    if now is not None and abs(now - moment) < _AGO_WITHIN:
        distance_s = max(1, round(abs(now - moment).total_seconds()))
        return translate("{length} ago" if moment <= now else "in {length}", length=seconds(distance_s))
    return clock_text(moment)


def draw_trend(weeks: Sequence[int]) -> str:
    """Return a text with one bar (▁ to █) for every two weeks. The largest number gets the highest bar."""
    pairs = [sum(weeks[at : at + 2]) for at in range(0, len(weeks), 2)]
    top = max(pairs, default=0)
    return "".join(_BARS[math.ceil(n * (len(_BARS) - 1) / top)] for n in pairs) if top else ""


def _format_number(field: str, value: float) -> str | None:
    if field == "change":
        return f"{value:+.0%}"
    if field == "p_value":
        return f"{value:.1g}"
    if field in SHARES or field.endswith("_share"):
        return f"{value:.0%}"
    if is_rate(field):
        return f"{value:,.2f}"
    if field.endswith("_s"):
        return seconds(value)
    if field.endswith("_ms"):
        return seconds(value / 1000)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _join(field: str, values: Iterable[object]) -> str:
    ordered = sorted(values, key=str) if isinstance(values, Set) else values
    return join_words(format_value(field, one) or "-" for one in ordered)
