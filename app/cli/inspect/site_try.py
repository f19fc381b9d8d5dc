"""`reviewloop sites try`: apply a site's rules to one page, fetched from its URL or read from a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from app.cli.command import App, command
from app.cli.options import check_known
from app.cli.output import short
from app.cli.render import Part, table, text
from app.files.harmless import shown
from app.run.wiring import utc_now
from app.sites.trial_view import TrialView
from app.views.durations import seconds
from app.views.fields import format_counts
from app.views.words import name_text, plural, translate
from splitter.errors import InputError, system_reason
from tasks.domain.given_address import AddressKind, read_address, shown_address

if TYPE_CHECKING:
    from app.sites.rule_trial import Trial

_LONGEST_RULES = 90
_LONGEST_VALUE = 120


@command(None, "try", db=False, sites=True, lab=True)
@click.argument("site")
@click.argument("source", metavar="URL|FILE")
@click.option(
    "--product",
    metavar="NAME",
    help="For each record, say whether it would be stored as a review of this product, or why not.",
)
@click.option(
    "--as",
    "read_as",
    type=click.Choice(("page", "result")),
    help="Use the site's page rules or its engine's result rules. Default: by the URL; page for a file.",
)
def try_(app: App, site: str, source: str, product: str | None, read_as: str | None) -> TrialView:
    """Show what the rules of SITE read from a page, fetched once from its URL or read from a file.

    As in a crawl, a page is records, a proven empty answer, a refusal, or a page that the rules don't fit.
    For each rule it shows how often it matches and its first values; for a site without record rules,
    where the main text is, and the rules that a crawl would learn from a thread. If a rule finds nothing,
    an outline of the page helps to write rules. Exit status 1 for a refusal or a page that doesn't fit.

    \b
    Examples:
      reviewloop sites try cca.org.cn http://www.cca.org.cn/tsdh/detail/1.html
      reviewloop sites try 12315.com saved.html
      reviewloop sites try 12315.com results.html --as result
      reviewloop sites try 12315.com saved.html --product 光明高钙牛奶
    """
    catalog = app.settings.catalog()
    check_known(catalog, [site])
    view = _get_page(app, site, source, read_as).read(catalog, utc_now(), product)
    if view.verdict in ("blocked", "broken"):
        app.exit_status = 1
    return view


def _get_page(app: App, site: str, source: str, read_as: str | None) -> Trial:
    from app.sites.rule_trial import fetch_trial, make_trial  # it brings what reads pages

    catalog = app.settings.catalog()
    if "://" in source:
        read_address(AddressKind.PAGE, source)
        return fetch_trial(app.settings, catalog, site, source, read_as)
    try:
        body = Path(source).read_bytes()
    except OSError as error:
        raise InputError(
            "{source}: {reason}; give a URL that begins with http://, or a file",
            source=shown_address(source),
            reason=system_reason(error),
        ) from error
    return make_trial(catalog, site, body, read_as, source)


@text.register
def _(view: TrialView) -> Iterator[Part]:
    yield Text(shown(view.url or view.file or ""), style="bold")
    yield shown(" · ".join(_list_facts(view)))
    style = {"records": "bold green", "empty": "yellow"}.get(view.verdict, "bold red")
    found = plural("{n} record", "{n} records", view.count)
    outcome = found if view.count else name_text(translate(view.verdict), view.why)
    yield Text(shown(outcome), style=style)
    if view.read_as == "result" and view.count:
        hits = translate("not said") if view.found is None else f"{view.found:,}"
        following = translate("yes" if view.more else "no")
        yield translate("found: {hits}; next page: {following}", hits=hits, following=following)
    if view.title:
        yield translate("page title: {title}", title=shown(view.title))
    if view.rules:
        if view.main_text:
            yield translate("rules that a crawl learns if three such pages agree:")
        yield table(
            [replace(one, values=(short(" | ".join(one.values), _LONGEST_RULES),)) for one in view.rules],
            "name rule matches values>",
        )
    if view.main_text:
        yield translate(
            "main text by {method}, confidence {confidence:.2f}",
            method=view.main_text,
            confidence=view.confidence or 0,
        )
    if view.judgement is not None:
        yield _describe_judgement(view)
    for number, record in enumerate(view.records, 1):
        yield Text(translate("record {n}", n=number), style="bold")
        for name, value in record.items():
            if value not in (None, ""):
                yield f"  {name}: {shown(short(str(value), _LONGEST_VALUE))}"
    if view.outline:
        yield Text(translate("What the page looks like"), style="bold")
        yield from (f"  {shown(line)}" for line in view.outline)


def _list_facts(view: TrialView) -> Iterator[str]:
    if view.status is not None:
        yield translate("status {status}", status=view.status)
    if view.seconds is not None:
        yield translate("took {length}", length=seconds(view.seconds))
    yield translate("{bytes:,} bytes", bytes=view.bytes)
    yield (
        translate("{name} ({why})", name=view.encoding, why=view.encoding_why)
        if view.encoding
        else translate("no text")
    )
    yield (
        translate("read as a result page of {site}", site=view.site)
        if view.read_as == "result"
        else translate("read as a page of {site}", site=view.site)
    )


def _describe_judgement(view: TrialView) -> str:
    judgement = view.judgement
    assert judgement is not None
    lacks = ""
    if judgement.missing:
        lacks = translate("; ") + translate("the page lacks {words}", words=tuple(judgement.missing))
    return translate(
        "of {product} ({keywords}) it is: {verdict}{lacks}; refused: {refused}",
        product=shown(judgement.product),
        keywords=" & ".join(judgement.keywords),
        verdict=translate(judgement.verdict),
        lacks=lacks,
        refused=format_counts(judgement.refused) or translate("nothing"),
    )
