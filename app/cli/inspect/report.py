"""`reviewloop report`: write the report on complaints as one HTML file to mail or print."""

from __future__ import annotations

from pathlib import Path

import click

from app.cli.command import App, command
from app.cli.options import FILE, period_options, sites_option
from app.cli.render import Done
from app.insight.periods import USUAL, PeriodChoice
from app.views.moments import local_time
from app.views.words import translate


@command(None, "report")
@click.argument("names", metavar="[PRODUCT]...", nargs=-1)
@click.option("-o", "--output", "target", type=FILE, default=Path("report.html"), show_default=True)
@period_options(USUAL)
@sites_option
def report(app: App, names: tuple[str, ...], target: Path, period: PeriodChoice) -> Done:
    """Write what buyers complain about as one HTML file that can be mailed and printed.

    First the findings: how many complaints, since when, what rises. Then for each product its themes with
    quotes, heat maps, and what the figures do not cover; at the end the rows behind them. Each sentence links
    to its rows: in the dashboard if REVIEWLOOP_WEB_ADDRESS is set, otherwise in the file. Without a name it
    is about the 10 products with most complaints. It needs no script and no outside address.

    \b
    Examples:
      reviewloop report -o report.html
      reviewloop report 特仑苏 蒙牛早餐奶 --days 30 -o milk.html
      reviewloop --lang zh report 特仑苏 --from 2026-09-01 --to 2026-11-30 -o 特仑苏.html
    """
    from app.files.exporting import whole_file
    from app.reports.report import report as make_report  # brings Jinja2

    with app.store.read() as tx:
        days = period.find(local_time(tx.now).date())
        made = make_report(tx, app.settings.catalog(), names, days, app.settings.web_address)
    page = made.encode(errors="replace")
    with whole_file(target) as out:
        out.write(page)
    return Done({"file": target, "bytes": len(page)}, translate("written to {file}", file=target))
