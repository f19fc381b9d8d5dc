"""Describe a product in sentences (findings): the number of complaints, its change, and the themes that rise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.insight.product import ComplaintsView
from app.insight.rows import Rise, ThemeState
from app.views.theme_names import name_theme
from app.views.words import plural, translate
from tasks.domain.themes import ALL_THEMES


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence about a product, with its figures as separate values for programs.

    Attributes:
        kind: kind of finding.
        values: figures and names in the sentence, as JSON values.
    """

    kind: str
    text: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text


def list_findings(view: ComplaintsView) -> list[Finding]:
    """Return the sentences about a product, the most important one first."""
    findings = [_describe_complaints(view)]
    if view.is_sparse:
        return findings
    themes = view.shown_themes
    if not view.theme:
        findings += [describe_rise(row.theme, row) for row in view.themes.rises_of_all]
    findings += [describe_rise(row.theme, row.rise) for row in themes if row.rise is not None]
    is_rising = any(row.state is ThemeState.RISING for row in view.themes.themes)
    if themes and not is_rising:
        if all(row.state is ThemeState.WATCHING for row in themes):
            text = translate("The reviews cover too few weeks to tell what rises.")
            findings.append(Finding("too_few_weeks", text))
        else:
            findings.append(Finding("none_rises", _describe_calm(view.theme)))
    return findings


def describe_rise(theme: str, rise: Rise) -> Finding:
    """Return the sentence about a rising theme. `ALL_THEMES` stands for all complaints together."""
    values = {
        "since": rise.since.isoformat(),
        "weeks": rise.weeks,
        "count": rise.count,
        "expected": rise.baseline,
        "usual_weeks": rise.usual_weeks,
    }
    shown = {"day": rise.since, "count": rise.count, "expected": rise.baseline}
    if theme == ALL_THEMES:
        text = plural(
            "Complaints in all have been rising since the week of {day}, for {n} week: {count:,} in the last 4 weeks "
            "at the sites that publish praise as well, {expected:,.1f} expected.",
            "Complaints in all have been rising since the week of {day}, for {n} weeks: {count:,} in the last 4 weeks "
            "at the sites that publish praise as well, {expected:,.1f} expected.",
            rise.weeks,
            **shown,
        )
        return Finding("all_rising", text + _describe_end(rise), values)
    text = plural(
        "“{theme}” has been rising since the week of {day}, for {n} week: {count:,} complaints in the last 4 weeks, "
        "{expected:,.1f} expected.",
        "“{theme}” has been rising since the week of {day}, for {n} weeks: {count:,} complaints in the last 4 weeks, "
        "{expected:,.1f} expected.",
        rise.weeks,
        theme=name_theme(theme),
        **shown,
    )
    return Finding("rising", text + _describe_end(rise), {"theme": theme, **values})


def _describe_end(rise: Rise) -> str:
    """Return the sentence about a rise that is ending; empty if it continues."""
    if not rise.usual_weeks:
        return ""
    return plural(
        " The number has been usual again for {n} week; after 4 such weeks the rise has ended.",
        " The number has been usual again for {n} weeks; after 4 such weeks the rise has ended.",
        rise.usual_weeks,
    )


def _describe_calm(theme: str) -> str:
    """Return the sentence that no theme rises. If `theme` is given, it states that this theme does not rise."""
    if theme:
        return translate("“{theme}” does not rise.", theme=name_theme(theme))
    return translate("No theme rises.")


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
    """Return the period of a view as text."""
    if view.days is not None and view.until == view.today:
        return translate("Last {n} days", n=view.days)
    if view.since is not None and view.until is not None:
        return translate("{since} to {until}", since=view.since, until=view.until)
    if view.since is not None:
        return translate("Since {day}", day=view.since)
    if view.until is not None:
        return translate("Until {day}", day=view.until)
    return translate("All days")
