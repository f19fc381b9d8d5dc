"""The findings about a product in sentences: how many complaints, how that changed, and what rises since when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from app.insight.product import ComplaintsView
from app.insight.rows import ThemeRow, ThemeState
from app.views.theme_names import name_theme
from app.views.words import plural, translate


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence, and the figures that it is made from: a program can count them again.

    Attributes:
        kind: what it says.
        values: the figures and names in it, as JSON has them.
    """

    kind: str
    text: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text


def list_findings(view: ComplaintsView) -> list[Finding]:
    """Return the sentences, the most important one first."""
    findings = [_describe_complaints(view)]
    if view.is_sparse:
        return findings
    themes = view.shown_themes
    findings += [describe_rise(row) for row in themes if row.state is ThemeState.RISING]
    is_rising = any(row.state is ThemeState.RISING for row in view.themes.themes)
    if themes and not is_rising:
        if all(row.state is ThemeState.WATCHING for row in themes):
            text = translate("The reviews cover too few weeks to tell what rises.")
            findings.append(Finding("too_few_weeks", text))
        else:
            findings.append(Finding("none_rises", _describe_calm(view.theme)))
    return findings


def describe_rise(row: ThemeRow) -> Finding:
    """Return the sentence about a theme that rises."""
    theme = name_theme(row.theme)
    values = {"theme": row.theme, "since": _day_text(row.state_since), "weeks": row.state_weeks}
    if row.state_since is None:
        return Finding("rising", translate("“{theme}” rises.", theme=theme), values)
    text = plural(
        "“{theme}” has been rising since the week of {day}, for {n} week.",
        "“{theme}” has been rising since the week of {day}, for {n} weeks.",
        row.state_weeks,
        theme=theme,
        day=row.state_since,
    )
    return Finding("rising", text, values)


def _describe_calm(theme: str) -> str:
    """Return the sentence if no theme rises, or not the one that was chosen."""
    if theme:
        return translate("“{theme}” does not rise.", theme=name_theme(theme))
    return translate("No theme rises.")


def _day_text(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def _describe_complaints(view: ComplaintsView) -> Finding:
    counted = plural("{n} complaint", "{n} complaints", view.complaints)
    place = describe_period(view)
    for more in (view.site, name_theme(view.theme) if view.theme else ""):
        if more:
            place = translate("{place}, {more}", place=place, more=more)
    if view.change is None or view.days is None:
        text = translate("{place}: {counted}.", place=place, counted=counted)
        return Finding("complaints", text, {"complaints": view.complaints})
    text = translate(
        "{place}: {counted}, {change}{sites}.",
        place=place,
        counted=counted,
        change=_describe_change(view.change, view.days),
        sites=_describe_sites(view),
    )
    values = {
        "complaints": view.complaints,
        "days": view.days,
        "change": abs(view.change),
        "compared_sites": len(view.compared_sites),
        "sites_left_out": len(view.sites_left_out),
    }
    return Finding("compared", text, values)


def _describe_change(change: float, days: int) -> str:
    share = f"{abs(change):.0%}"
    if change == 0:
        return translate("as many as in the {days} days before", days=days)
    if change > 0:
        return translate("{share} more than in the {days} days before", share=share, days=days)
    return translate("{share} fewer than in the {days} days before", share=share, days=days)


def _describe_sites(view: ComplaintsView) -> str:
    if not view.sites_left_out:
        return ""
    return plural(
        " (compared at the {compared} sites with reviews in both periods; {n} other is left out)",
        " (compared at the {compared} sites with reviews in both periods; {n} others are left out)",
        len(view.sites_left_out),
        compared=len(view.compared_sites),
    )


def describe_period(view: ComplaintsView) -> str:
    """Return the period of a view in words."""
    if view.days is not None and view.until == view.today:
        return translate("Last {n} days", n=view.days)
    if view.since is not None and view.until is not None:
        return translate("{since} to {until}", since=view.since, until=view.until)
    if view.since is not None:
        return translate("Since {day}", day=view.since)
    if view.until is not None:
        return translate("Until {day}", day=view.until)
    return translate("All days")
