"""Draw charts as SVG for pages and reports: bars, columns, lines, sparklines and heat maps.

All functions escape the texts they get, and return markup that Jinja2 does not escape again. A content security policy
may forbid scripts and inline styles, so there are none: colors are attributes, and text is `currentColor`, which
fits dark pages. A page's style sheet can use the classes `chart`, `chart-axis`, `chart-mark` and `chart-1` to
`chart-8`. A chart without values is empty markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil, isfinite

from markupsafe import Markup
from rich.cells import cell_len

from app.files.harmless import one_line
from app.reports.chart_ticks import number_text, round_ticks, time_ticks
from app.views.words import name_text

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8a6fd1", "#7a7a7a")
"""Colors of series. People with common kinds of color blindness can distinguish them (after Okabe and Ito)."""

_DASHES = ("", "6 3", "2 3", "8 3 2 3")
"""Dash patterns of series, so that color is not the only difference."""

_FONT = 12
_HALF = 6.6
"""Maximum width of a narrow character. A Chinese character takes twice this width."""
_ROW = 22
_COLUMNS_HIGH, _LINES_HIGH = 200, 240
_GAP = 8
_SPARK_WIDE, _SPARK_HIGH = 104, 24
_GREY = 'class="chart-grey" fill="currentColor" fill-opacity="0.15"'
_LABEL_MOST = 24
_MOST_COLUMNS = 400
_FAINTEST, _STRONGEST = 0.06, 0.62
"""Opacity of a heat map's cells for the shares 0 and 1. Text is readable on both."""


@dataclass(frozen=True, slots=True)
class Line:
    """A series of a line chart: points (x, y), with x a number or a time. The line has a gap where y is `None`."""

    name: str
    points: Sequence[tuple[float | datetime, float | None]]


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A cell of a heat map.

    Attributes:
        share: strength of the cell's color, 0 to 1; `None` if unknown.
        text: short text in the cell.
        note: second line, also shown as a tooltip.
        link: link to the reviews that the cell counts; empty if there is none.
    """

    share: float | None
    text: str
    note: str = ""
    link: str = ""


def bars(values: Sequence[tuple[str, float]], title: str, *, width: int = 640) -> Markup:
    """Draw horizontal bars from top to bottom.

    Args:
        values: label and number (not negative) of each bar.
        width: width of the picture in its own units; the page scales it.
    """
    if not values:
        return Markup("")
    left = _label_width([label for label, _ in values])
    right = max(len(number_text(value)) for _, value in values) * _HALF + _GAP
    most = max(value for _, value in values) or 1.0
    room = max(width - left - right, 40.0)
    parts = []
    for row, (label, value) in enumerate(values):
        middle = row * _ROW + _ROW / 2
        long = room * max(value, 0.0) / most
        parts += [
            Markup("<g>"),
            _tooltip(name_text(label, number_text(value))),
            _text(left - _GAP, middle, _cut(label), anchor="end"),
            _box(left, middle - 8, long, 16, f'{_series(0)} rx="2"'),
            _text(left + long + 4, middle, number_text(value)),
            Markup("</g>"),
        ]
    return _svg(width, len(values) * _ROW, title, parts)


def columns(values: Sequence[tuple[str, float]], title: str, *, width: int = 640) -> Markup:
    """Draw vertical columns, such as counts by day. Labels that don't fit are left out.

    Args:
        values: label and number (not negative) of each column; only the last 400 are drawn.
    """
    values = values[-_MOST_COLUMNS:]
    if not values:
        return Markup("")
    ticks = round_ticks(0.0, max(value for _, value in values))
    left, top, bottom = _axis_width(ticks), 8.0, _COLUMNS_HIGH - 24.0
    step = (width - left - _GAP) / len(values)
    parts = _y_axis(ticks, left, width, top, bottom)
    every = ceil((max(cell_len(label) for label, _ in values) * _HALF + 12) / step)
    for n, (label, value) in enumerate(values):
        high = (bottom - top) * max(value, 0.0) / ticks[-1]
        at = left + n * step
        parts += [Markup("<g>"), _tooltip(name_text(label, number_text(value)))]
        parts.append(_box(at + step * 0.1, bottom - high, step * 0.8, high, _series(0)))
        if n % every == 0:
            parts.append(_text(at + step / 2, _COLUMNS_HIGH - 10, label, anchor="middle"))
        parts.append(Markup("</g>"))
    return _svg(width, _COLUMNS_HIGH, title, parts)


def lines(
    series: Sequence[Line],
    title: str,
    *,
    width: int = 640,
    height: int = _LINES_HIGH,
    grey_from: datetime | None = None,
) -> Markup:
    """Draw lines over numbers or time, with a legend. The y axis begins at 0, or lower if a value is negative.

    Args:
        series: the lines; x is a number in all of them, or an aware time in all of them.
        height: height of the picture without its legend.
        grey_from: time where the grey background begins; `None` for no grey background.
    """
    placed = [
        (one.name, [(_place(x), y if y is not None and isfinite(y) else None) for x, y in one.points])
        for one in series
    ]
    there = [(x, y) for _, points in placed for x, y in points if y is not None]
    if not there:
        return Markup("")
    timed = any(isinstance(x, datetime) for one in series for x, _ in one.points)
    first, last = min(x for x, _ in there), max(x for x, _ in there)
    ticks = round_ticks(min(0.0, *(y for _, y in there)), max(y for _, y in there))
    left, top, bottom = _axis_width(ticks), 8.0, height - 24.0
    right = width - 24.0

    def locate(x: float, y: float) -> tuple[float, float]:
        share = (x - first) / (last - first) if last > first else 0.5
        return left + (right - left) * share, bottom - (bottom - top) * (y - ticks[0]) / (
            ticks[-1] - ticks[0]
        )

    parts = _y_axis(ticks, left, width, top, bottom)
    counted = all(isinstance(x, int) for one in series for x, _ in one.points)
    named = (
        time_ticks(first, last)
        if timed
        else [(x, number_text(x)) for x in round_ticks(first, last) if not counted or x == round(x)]
    )
    for x, label in named:
        if first <= x <= last:
            parts.append(_text(locate(x, ticks[0])[0], height - 10, label, anchor="middle"))
    if grey_from is not None and grey_from.timestamp() <= last:
        x = locate(max(grey_from.timestamp(), first), ticks[0])[0]
        parts.append(_box(x, top, right + _GAP - x, bottom - top, _GREY))
    for n, (name, points) in enumerate(placed):
        parts += [Markup("<g>"), _tooltip(name)]
        for piece in _pieces(points):
            parts.append(_line([locate(x, y) for x, y in piece], n))
        parts.append(Markup("</g>"))
    high, drawn = _legend([name for name, _ in placed], width)
    moved = Markup('<g transform="translate(0 {})">{}</g>').format(height, Markup("").join(drawn))
    return _svg(width, height + high, title, [*parts, moved])


def sparkline(values: Sequence[float], title: str) -> Markup:
    """Draw a line without axes, for a cell of a table. The bottom of the picture stands for 0."""
    if not any(values):
        return Markup("")
    top, step = max(values), _SPARK_WIDE / max(len(values) - 1, 1)
    points = " ".join(
        f"{n * step:.1f},{_SPARK_HIGH - 2 - (_SPARK_HIGH - 4) * value / top:.1f}"
        for n, value in enumerate(values)
    )
    line = Markup('<polyline points="{}" fill="none" stroke-width="1.5" stroke="{}"/>').format(
        points, COLORS[0]
    )
    return _svg(_SPARK_WIDE, _SPARK_HIGH, title, [line])


def heat_map(
    rows: Sequence[str], across: Sequence[str], cells: Mapping[tuple[str, str], HeatCell], title: str
) -> Markup:
    """Draw a table of colored cells. The width of the picture grows with the number of columns.

    Args:
        rows, across: labels of rows and columns, in order.
        cells: cells by (row, column). A cell without an entry stays blank.
    """
    if not rows or not across:
        return Markup("")
    left = _label_width(rows)
    told = [text for cell in cells.values() for text in (cell.text, cell.note)]
    wide = max(48.0, *(cell_len(_cut(text)) * _HALF + 10 for text in (*told, *across)))
    two_lines = any(cell.note for cell in cells.values())
    high, top = (38 if two_lines else 24), 24
    parts = [
        _text(left + n * wide + wide / 2, top / 2, _cut(label), anchor="middle")
        for n, label in enumerate(across)
    ]
    for y, row in enumerate(rows):
        upper = top + y * high
        parts.append(_text(left - _GAP, upper + high / 2, _cut(row), anchor="end"))
        for x, column in enumerate(across):
            cell = cells.get((row, column))
            if cell is not None:
                parts += _heat(cell, f"{row} · {column}", left + x * wide, upper, wide, high)
    return _svg(ceil(left + wide * len(across)), top + high * len(rows), title, parts)


def _heat(cell: HeatCell, where: str, x: float, y: float, wide: float, high: float) -> list[Markup]:
    middle = x + wide / 2
    share = 0.0 if cell.share is None else min(max(cell.share, 0.0), 1.0)
    strength = 0.0 if cell.share is None else _FAINTEST + (_STRONGEST - _FAINTEST) * share
    look = f'class="chart-mark" fill="{COLORS[0]}" fill-opacity="{strength:.2f}"'
    drawn = [
        Markup('<a href="{}">').format(cell.link) if cell.link else Markup(""),
        Markup("<g>"),
        _tooltip(name_text(where, f"{cell.text} {cell.note}".rstrip())),
        _box(x + 1, y + 1, wide - 2, high - 2, look),
        _text(middle, y + (high / 2 - 7 if cell.note else high / 2), _cut(cell.text), anchor="middle"),
    ]
    if cell.note:
        drawn.append(_text(middle, y + high / 2 + 8, _cut(cell.note), anchor="middle", size=10, faint=True))
    return [*drawn, Markup("</g></a>" if cell.link else "</g>")]


# --- pieces -------------------------------------------------------------------------------------------------


def _svg(width: int, height: float, title: str, parts: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" width="{}" '
        'role="img" aria-label="{}" font-size="{}" fill="currentColor">{}{}</svg>'
    ).format(width, _short(height), width, one_line(title), _FONT, _tooltip(title), Markup("").join(parts))


def _tooltip(text: str) -> Markup:
    return Markup("<title>{}</title>").format(one_line(text))


def _text(
    x: float, middle: float, text: str, *, anchor: str = "start", size: int = _FONT, faint: bool = False
) -> Markup:
    return Markup('<text x="{}" y="{}" text-anchor="{}" font-size="{}"{}>{}</text>').format(
        _short(x),
        _short(middle + size * 0.35),
        anchor,
        size,
        Markup(' fill-opacity="0.75"') if faint else "",
        one_line(text),
    )


def _box(x: float, y: float, wide: float, high: float, look: str) -> Markup:
    """Return a rectangle. `look` must be markup written in this module, never a text from a caller."""
    return Markup('<rect x="{}" y="{}" width="{}" height="{}" {}/>').format(
        *map(_short, (x, y, wide, high)), Markup(look)
    )


def _line(points: Sequence[tuple[float, float]], n: int) -> Markup:
    color = COLORS[n % len(COLORS)]
    if len(points) == 1:
        return Markup('<circle cx="{}" cy="{}" r="3" {}/>').format(
            *map(_short, points[0]), Markup(_series(n))
        )
    dash = _DASHES[n % len(_DASHES)]
    return Markup(
        '<polyline class="chart-line-{}" points="{}" fill="none" stroke="{}" stroke-width="2"'
        ' stroke-linejoin="round"{}/>'
    ).format(
        n % len(COLORS) + 1,
        " ".join(f"{_short(x)},{_short(y)}" for x, y in points),
        color,
        Markup(f' stroke-dasharray="{dash}"') if dash else "",
    )


def _series(n: int) -> str:
    return f'class="chart-mark chart-{n % len(COLORS) + 1}" fill="{COLORS[n % len(COLORS)]}"'


def _legend(names: Sequence[str], width: int) -> tuple[float, list[Markup]]:
    """Return the height of the legend and its elements.

    It breaks into several lines if the names are wider than `width`.
    """
    if len(names) < 2:
        return 0.0, []
    drawn, x, y = [], 0.0, 10.0
    for n, name in enumerate(names):
        wide = 30 + cell_len(_cut(name)) * _HALF + 14
        if x and x + wide > width:
            x, y = 0.0, y + 18
        drawn += [_line([(x, y), (x + 24, y)], n), _text(x + 30, y, _cut(name))]
        x += wide
    return y + 10, drawn


def _y_axis(ticks: Sequence[float], left: float, width: int, top: float, bottom: float) -> list[Markup]:
    drawn = []
    for tick in ticks:
        y = bottom - (bottom - top) * (tick - ticks[0]) / (ticks[-1] - ticks[0])
        drawn += [
            Markup(
                '<line class="chart-axis" x1="{}" x2="{}" y1="{}" y2="{}" stroke="currentColor" stroke-opacity="0.2"/>'
            ).format(_short(left), width, _short(y), _short(y)),
            _text(left - 6, y, number_text(tick), anchor="end"),
        ]
    return drawn


def _axis_width(ticks: Sequence[float]) -> float:
    return max(cell_len(number_text(tick)) for tick in ticks) * _HALF + 10


def _label_width(labels: Sequence[str]) -> float:
    return max(cell_len(_cut(label)) for label in labels) * _HALF + _GAP


def _cut(label: str) -> str:
    """Return a label, cut to the width of 24 narrow characters. A cut label ends with an ellipsis."""
    line = one_line(label)
    if cell_len(line) <= _LABEL_MOST:
        return line
    while cell_len(line) >= _LABEL_MOST:
        line = line[:-1]
    return f"{line}…"


def _pieces(points: Sequence[tuple[float, float | None]]) -> list[list[tuple[float, float]]]:
    """Split points at the gaps (y is `None`), and return each piece."""
    runs: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is None:
            runs.append([])
        else:
            runs[-1].append((x, y))
    return [run for run in runs if run]


def _place(x: float | datetime) -> float:
    return x.timestamp() if isinstance(x, datetime) else float(x)


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
