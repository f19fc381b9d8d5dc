"""Draw charts of complaints about a product: by week, by theme and site, by theme and month."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from markupsafe import Markup

from app.insight.findings import Finding
from app.insight.product import ComplaintsView
from app.reports import charts
from app.reports.charts import HeatCell, Line
from app.views.theme_names import name_theme
from app.views.words import plural, translate

ACROSS = 12
"""Maximum number of columns in a heat map, so that it fits on a page."""
_MOST_MONTHS = 60


@dataclass(frozen=True, slots=True)
class HeatMaps:
    """Heat maps of themes by site or by month.

    Attributes:
        left_out: sentences about the columns that are not shown.
    """

    maps: Sequence[Markup]
    left_out: Sequence[Finding]


def draw_weeks(view: ComplaintsView, *, width: int = 1200) -> Markup:
    """Draw the complaints of each week as a line, and the expected number as a dashed line."""
    if not any(one.complaints for one in view.weeks):
        return Markup("")
    times = [datetime.combine(one.monday, time(), UTC) for one in view.weeks]
    found = [(at, float(one.complaints)) for at, one in zip(times, view.weeks, strict=True)]
    expected = [(at, one.expected) for at, one in zip(times, view.weeks, strict=True)]
    series = [Line(translate("Complaints a week"), found)]
    if any(y is not None for _, y in expected):
        series.append(Line(translate("Expected by history"), expected))
    begin = view.incomplete_from
    grey_from = None if begin is None else datetime.combine(begin - timedelta(days=6), time(), UTC)
    return charts.lines(
        series, translate("Complaints over time"), width=width, height=160, grey_from=grey_from
    )


CellLink = Callable[[str, str], str]
"""Function that returns the link to the reviews that the cell of a theme and a column counts."""


def draw_sites(view: ComplaintsView, link: CellLink | None = None) -> HeatMaps:
    """Draw a heat map of themes by site, for the sites with the most complaints."""
    totals = _sum_columns(view.by_site)
    across = sorted(totals, key=lambda site: (-totals[site], site))
    left_out = across[ACROSS:]
    maps = _draw(view.by_site, [across[:ACROSS]], translate("Complaints by theme and site"), link)
    words = plural("{n} site", "{n} sites", len(left_out))
    return HeatMaps(maps, _describe_left_out("sites", words, left_out, totals))


def draw_months(view: ComplaintsView, link: CellLink | None = None) -> HeatMaps:
    """Draw heat maps of themes by month, one per year, from the first complaint to the last."""
    totals = _sum_columns(view.by_month)
    months = _list_months(sorted(totals))
    left_out = months[:-_MOST_MONTHS]
    months = months[-_MOST_MONTHS:]
    years = [months[at : at + ACROSS] for at in range(0, len(months), ACROSS)]
    maps = _draw(view.by_month, years, translate("Complaints by theme and month"), link)
    words = plural("{n} earlier month", "{n} earlier months", len(left_out))
    return HeatMaps(maps, _describe_left_out("months", words, left_out, totals))


def _describe_left_out(
    kind: str, words: str, columns: Sequence[str], totals: Mapping[str, int]
) -> Sequence[Finding]:
    """Return a sentence about the columns that a heat map has no room for; empty if it has room for all."""
    if not columns:
        return ()
    complaints = sum(totals[column] for column in columns)
    text = translate(
        "The heat map leaves out {columns} with {complaints:,} such complaints.",
        columns=words,
        complaints=complaints,
    )
    return [Finding(f"chart_{kind}", text, {kind: len(columns), "complaints": complaints})]


def _sum_columns(counts: Mapping[tuple[str, str], int]) -> Counter[str]:
    totals = Counter[str]()
    for (_, column), n in counts.items():
        totals[column] += n
    return totals


def _list_months(found: Sequence[str]) -> list[str]:
    """Return every month from the first to the last of `found`, written as `2026-11`."""
    if not found:
        return []
    first, last = (date.fromisoformat(f"{month}-01") for month in (found[0], found[-1]))
    numbers = range(12 * first.year + first.month - 1, 12 * last.year + last.month)
    return [f"{number // 12:04}-{number % 12 + 1:02}" for number in numbers]


def _draw(
    counts: Mapping[tuple[str, str], int],
    parts: Sequence[Sequence[str]],
    title: str,
    link: CellLink | None,
) -> Sequence[Markup]:
    """Draw a heat map for each part of the columns, all with the same rows and scale of colors."""
    themes = Counter[str]()
    for (theme, _), n in counts.items():
        themes[theme] += n
    rows = [name_theme(theme) for theme in sorted(themes, key=lambda theme: (-themes[theme], theme))]
    most = max(counts.values(), default=1)
    cells = {
        (name_theme(theme), column): HeatCell(
            n / most, f"{n:,}", link="" if link is None else link(theme, column)
        )
        for (theme, column), n in counts.items()
    }
    return list(filter(None, (charts.heat_map(rows, across, cells, title) for across in parts)))
