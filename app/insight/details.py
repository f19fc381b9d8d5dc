"""Further sentences about a product for a report: shares, days, themes, and limits of the figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.insight.findings import Finding
from app.insight.product import SERIOUS, ComplaintsView
from app.insight.rows import ThemeRow, ThemeState
from app.views.theme_names import name_theme
from app.views.words import join_words, plural, translate

_MOST_THEMES = 3
_MOST_NAMES = 12
"""Maximum number of names of sites in a sentence."""


def list_details(view: ComplaintsView) -> Iterator[Finding]:
    """Yield findings: the most frequent, serious and new themes, the share of complaints, and their days."""
    themes = sorted((row for row in view.themes.themes if row.complaints), key=lambda row: -row.complaints)
    serious = [row for row in themes if row.theme in SERIOUS]
    if serious:
        yield Finding("serious", _name_counts(translate("Serious: {themes}."), serious), _count(serious))
    if themes:
        most = themes[:_MOST_THEMES]
        yield Finding(
            "most", _name_counts(translate("Most complaints are about {themes}."), most), _count(most)
        )
    yield from _list_new(view.shown_themes)
    if view.share is not None:
        yield _describe_share(view.share, view.share_before)
    if view.first_day and view.last_day:
        text = translate(
            "Of all days, the first complaint is of {first}, the last one of {last}.",
            first=view.first_day,
            last=view.last_day,
        )
        days = {"first": view.first_day.isoformat(), "last": view.last_day.isoformat()}
        yield Finding("days", text, days)


def _name_counts(template: str, rows: Sequence[ThemeRow]) -> str:
    counts = [translate("“{theme}” ({n:,})", theme=name_theme(row.theme), n=row.complaints) for row in rows]
    return template.format(themes=join_words(counts))


def _count(rows: Sequence[ThemeRow]) -> dict[str, object]:
    return {"themes": {row.theme: row.complaints for row in rows}}


def _list_new(themes: Sequence[ThemeRow]) -> Iterator[Finding]:
    for row in themes:
        theme = name_theme(row.theme)
        if row.state is ThemeState.NEW and row.first_day:
            text = translate(
                "“{theme}” is new: the first complaint is of {day}.", theme=theme, day=row.first_day
            )
            yield Finding("new", text, {"theme": row.theme, "first": row.first_day.isoformat()})
        elif row.state is ThemeState.BACK and row.state_since:
            text = translate(
                "“{theme}” is back since the week of {day}, after a time without.",
                theme=theme,
                day=row.state_since,
            )
            yield Finding("back", text, {"theme": row.theme, "since": row.state_since.isoformat()})


def _describe_share(share: float, before: float | None) -> Finding:
    values = {"share": share, "share_before": before}
    if before is None:
        text = translate(
            "Complaints are {share:.1%} of buyers' reviews at the sites that publish praise as well.",
            share=share,
        )
        return Finding("share", text, values)
    text = translate(
        "Complaints are {share:.1%} of buyers' reviews at the sites that publish praise as well; in the period before "
        "{before:.1%}.",
        share=share,
        before=before,
    )
    return Finding("share", text, values)


def describe_theme(row: ThemeRow) -> Finding:
    """Return the sentence with the number of complaints about a theme and the day of the first one."""
    values = {"theme": row.theme, "complaints": row.complaints, "state": str(row.state)}
    counted = plural("{n} complaint in this period", "{n} complaints in this period", row.complaints)
    if row.first_day is None or row.last_day is None:
        return Finding("theme", translate("{counted}, none with a date.", counted=counted), values)
    text = translate(
        "{counted}. Of all days, the first is of {first}, the last of {last}.",
        counted=counted,
        first=row.first_day,
        last=row.last_day,
    )
    days = {"first": row.first_day.isoformat(), "last": row.last_day.isoformat()}
    return Finding("theme", text, {**values, **days})


def describe_silent(rows: Sequence[ThemeRow]) -> Finding:
    """Return the sentence about themes without a complaint in the period."""
    names = [
        translate("“{theme}” (the last of {day})", theme=name_theme(row.theme), day=row.last_day)
        for row in rows
    ]
    days = {row.theme: row.last_day and row.last_day.isoformat() for row in rows}
    text = translate("No complaint in this period, but earlier: {themes}.", themes=join_words(names))
    return Finding("silent", text, {"themes": days})


def describe_archived(rows: Sequence[ThemeRow]) -> Finding:
    """Return the sentence about themes that a person archived."""
    return Finding(
        "archived", _name_counts(translate("Archived, and not listed: {themes}."), rows), _count(rows)
    )


def list_limits(view: ComplaintsView) -> Iterator[Finding]:
    """Yield sentences about the limits of a product's figures."""
    if view.undated:
        text = plural(
            "{n} review has no date: it counts in totals and shares of all days, and in no period, trend or state.",
            "{n} reviews have no date: they count in totals and shares of all days, and in no period, trend or state.",
            view.undated,
        )
        yield Finding("undated", text, {"reviews": view.undated})
    if view.left_out:
        text = plural(
            "{n} review does not count: hidden, not about the product, or with an excluded word.",
            "{n} reviews do not count: hidden, not about the product, or with an excluded word.",
            view.left_out,
        )
        yield Finding("left_out", text, {"reviews": view.left_out})
    if view.incomplete_days:
        text = plural(
            "The newest day is incomplete: not all of its reviews have been seen yet.",
            "The newest {n} days are incomplete: not all of their reviews have been seen yet.",
            view.incomplete_days,
        )
        yield Finding("incomplete", text, {"days": view.incomplete_days})
    if view.sites_left_out:
        names = list(view.sites_left_out)
        text = plural(
            "{n} site has reviews in one of the two periods only, and is not compared: {sites}.",
            "{n} sites have reviews in one of the two periods only, and are not compared: {sites}.",
            len(names),
            sites=join_names(names),
        )
        yield Finding("not_compared", text, {"sites": names})
    if view.themes.sites_without_share:
        names = list(view.themes.sites_without_share)
        text = plural(
            "{n} site publishes no praise: it takes no part in shares, and a general rise there can't be distinguished "
            "from more coverage: {sites}.",
            "{n} sites publish no praise: they take no part in shares, and a general rise there can't be distinguished "
            "from more coverage: {sites}.",
            len(names),
            sites=join_names(names),
        )
        yield Finding("without_share", text, {"sites": names})
    if view.themes.unread:
        text = plural(
            "{n} review was not read for themes, as it is not in Chinese.",
            "{n} reviews were not read for themes, as they are not in Chinese.",
            view.themes.unread,
        )
        yield Finding("unread", text, {"reviews": view.themes.unread})
    if not view.themes.all_judged:
        text = translate(
            "What rises is judged by the products shown alone so far, and strictly; a run judges all within 15 minutes."
        )
        yield Finding("judged_alone", text)
    if view.themes.counted < 1:
        text = translate(
            "Only {share:.0%} of the older reviews are counted so far.", share=view.themes.counted
        )
        yield Finding("counted", text, {"share": view.themes.counted})


def join_names(names: Sequence[str]) -> str:
    """Return the first `_MOST_NAMES` names joined as one text. If there are more, the text ends with their number."""
    text = join_words(names[:_MOST_NAMES])
    left = len(names) - _MOST_NAMES
    return translate("{names} and {n} more", names=text, n=left) if left > 0 else text
