"""The findings about a product in sentences: how many complaints, how that changed, and what rises since when."""

from __future__ import annotations

from app.insight.product import ComplaintsView
from app.insight.rows import ThemeRow, ThemeState
from app.views.theme_names import name_theme
from app.views.words import plural, translate


def list_findings(view: ComplaintsView) -> list[str]:
    """Return the sentences, the most important one first."""
    findings = [_describe_complaints(view)]
    if view.is_sparse:
        return findings
    themes = view.themes.themes
    findings += [describe_rise(row) for row in themes if row.state is ThemeState.RISING]
    if len(findings) == 1 and themes:
        if all(row.state is ThemeState.WATCHING for row in themes):
            findings.append(translate("The reviews cover too few weeks to tell what rises."))
        else:
            findings.append(translate("No theme rises."))
    return findings


def describe_rise(row: ThemeRow) -> str:
    """Return the sentence about a theme that rises."""
    theme = name_theme(row.theme)
    if row.state_since is None:
        return translate("“{theme}” rises.", theme=theme)
    return plural(
        "“{theme}” has been rising since the week of {day}, for {n} week.",
        "“{theme}” has been rising since the week of {day}, for {n} weeks.",
        row.state_weeks,
        theme=theme,
        day=row.state_since,
    )


def _describe_complaints(view: ComplaintsView) -> str:
    counted = plural("{n} complaint", "{n} complaints", view.complaints)
    place = describe_period(view)
    for more in (view.site, name_theme(view.theme) if view.theme else ""):
        if more:
            place = translate("{place}, {more}", place=place, more=more)
    if view.change is None or view.days is None:
        return translate("{place}: {counted}.", place=place, counted=counted)
    return translate(
        "{place}: {counted}, {change}{sites}.",
        place=place,
        counted=counted,
        change=_describe_change(view.change, view.days),
        sites=_describe_sites(view),
    )


def _describe_change(change: float, days: int) -> str:
    share = f"{abs(change):.0%}"
    if change >= 0:
        return translate("{share} more than in the {days} days before", share=share, days=days)
    return translate("{share} fewer than in the {days} days before", share=share, days=days)


def _describe_sites(view: ComplaintsView) -> str:
    if not view.sites_left_out:
        return ""
    return translate(
        " (compared at the {n} sites with reviews in both periods; {others} others are left out)",
        n=len(view.compared_sites),
        others=len(view.sites_left_out),
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
