"""`reviewloop report`: what was collected, as one HTML file that can be mailed."""

from __future__ import annotations

from pathlib import Path

import click

from app.cli.command import App, command
from app.cli.options import FILE
from app.cli.render import Done
from app.views.words import translate


@command(None, "report", sites=True)
@click.argument("names", metavar="[PRODUCT]...", nargs=-1)
@click.option("-o", "--output", "target", type=FILE, default=Path("report.html"), show_default=True)
def report(app: App, names: tuple[str, ...], target: Path) -> Done:
    """Write a report on what was collected, as one HTML file that can be mailed.

    It shows reviews by product, site and day as charts, how much of what is there was stored and what that
    number is based on, and samples. It needs no script and no outside address.

    \b
    Examples:
      reviewloop report -o report.html
      reviewloop report 特仑苏 蒙牛早餐奶 -o milk.html
    """
    from app.files.exporting import whole_file
    from app.reports.report import report as make_report  # brings Jinja2

    with app.store.read() as tx:
        page = make_report(tx, app.settings.catalog(), names).encode(errors="replace")
    with whole_file(target) as out:
        out.write(page)
    return Done({"file": target, "bytes": len(page)}, translate("written to {file}", file=target))
