"""`reviewloop sites try`: what a site's rules take from one page, fetched from its URL or read from a file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from app.cli.options import check_known, json_option, lab_option, settings_of, sites_option
from app.cli.output import print_json, printed, short, table
from app.files.harmless import shown
from app.run.wiring import utc_now
from app.views.durations import seconds
from splitter.catalog.model import Catalog
from splitter.errors import InputError, system_reason
from tasks.domain.given_address import AddressKind, read_address, shown_address
from tasks.domain.pages import Hit, Review

if TYPE_CHECKING:
    from app.run.setting_fields import Settings
    from app.sites.rule_preview import RulePreview
    from app.sites.rule_trial import Trial

_RECORDS_SHOWN = 3


@click.command("try")
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
@lab_option
@sites_option
@json_option
def try_(
    site: str,
    source: str,
    product: str | None,
    read_as: str | None,
    lab: tuple[str, int] | None,
    sites: str | None,
    as_json: bool,
) -> None:
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
    settings = settings_of(None, sites, lab=lab)
    catalog = settings.catalog()
    check_known(catalog, [site])
    trial = _trial(settings, catalog, site, source, read_as)
    got, preview = trial.got, trial.preview(catalog, utc_now(), product)
    reading = preview.reading
    if as_json:
        fields = asdict(preview)
        records = [_fields(one) for one in reading.records[:_RECORDS_SHOWN]]
        read = {**fields.pop("reading"), "records": records, "count": len(reading.records)}
        print_json({"site": site, **got, **read, **fields})
    else:
        _print_preview(printed(), site, got, preview)
    if reading.verdict in ("blocked", "broken"):
        sys.exit(1)


def _trial(settings: Settings, catalog: Catalog, site: str, source: str, read_as: str | None) -> Trial:
    from app.sites.rule_trial import fetched, given

    if "://" in source:
        read_address(AddressKind.PAGE, source)
        return fetched(settings, catalog, site, source, read_as)
    try:
        body = Path(source).read_bytes()
    except OSError as error:
        raise InputError(
            "{source}: {reason}; give a URL that begins with http://, or a file",
            source=shown_address(source),
            reason=system_reason(error),
        ) from error
    return given(catalog, site, body, read_as, {"file": source})


def _print_preview(out: Console, site: str, got: Mapping[str, Any], preview: RulePreview) -> None:
    reading = preview.reading
    source = got.get("url") or got.get("file")
    came = f"status {got['status']}, {seconds(got['seconds'])}, " if "status" in got else ""
    out.print(Text(f"{shown(str(source))}", style="bold"))
    encoding = f"{reading.encoding} ({reading.encoding_why})" if reading.encoding else "no text"
    out.print(shown(f"{came}{got['bytes']:,} bytes, {encoding}, read as a {reading.read_as} of {site}"))
    style = {"records": "bold green", "empty": "yellow"}.get(reading.verdict, "bold red")
    outcome = f"{len(reading.records)} records" if reading.records else f"{reading.verdict}: {reading.why}"
    out.print(shown(outcome), style=style)
    if reading.read_as == "result" and reading.records:
        found = "not said" if reading.found is None else f"{reading.found:,}"
        out.print(f"found: {found}; next page: {'yes' if reading.more else 'no'}")
    if reading.title:
        out.print(f"page title: {shown(reading.title)}")
    if preview.rules:
        if preview.main_text:
            out.print("rules that a crawl learns if three such pages agree:")
        rules = ((r.name, r.rule, r.matches, short(" | ".join(r.values), 90)) for r in preview.rules)
        out.print(table(("field", "rule", "matches", "first values>"), rules))
    if preview.main_text:
        out.print(f"main text by {preview.main_text}, confidence {preview.reading.confidence or 0:.2f}")
    if (checked := preview.judgement) is not None:
        lacks = f"; the page lacks {', '.join(checked.missing)}" if checked.missing else ""
        refused = ", ".join(f"{n} {reason}" for reason, n in checked.refused.items()) or "nothing"
        out.print(
            f"of {shown(checked.product)} ({' & '.join(checked.keywords)}) it is: {checked.verdict}{lacks}; "
            f"refused: {refused}"
        )
    for number, record in enumerate(reading.records[:_RECORDS_SHOWN], 1):
        out.print(f"record {number}", style="bold")
        for name, value in _fields(record).items():
            if value not in (None, ""):
                out.print(f"  {name}: {shown(short(str(value), 120))}")
    if preview.outline:
        out.print("What the page looks like", style="bold")
        for line in preview.outline:
            out.print(f"  {shown(line)}")


def _fields(record: Hit | Review) -> dict[str, Any]:
    return record._asdict() if isinstance(record, Review) else asdict(record)
