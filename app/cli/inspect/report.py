"""`reviewloop report`: what was collected, as one HTML file that can be mailed."""

from __future__ import annotations

from pathlib import Path

import click

from app.cli.options import FILE, db_option, json_option, settings_of, sites_option, store_there
from app.cli.output import print_json, say


@click.command()
@click.argument("names", metavar="[PRODUCT]...", nargs=-1)
@click.option("-o", "--output", "target", type=FILE, default=Path("report.html"), show_default=True)
@db_option
@sites_option
@json_option
def report(names: tuple[str, ...], target: Path, db: str | None, sites: str | None, as_json: bool) -> None:
    """Write a report on what was collected, as one HTML file that can be mailed.

    It shows reviews by product, site and day as charts, how much of what is there was stored and what that
    number is based on, and samples. It needs no script and no outside address.

    \b
    Examples:
      reviewloop report -o report.html
      reviewloop report 特仑苏 蒙牛早餐奶 -o milk.html
    """
    from app.files.exporting import whole_file
    from app.reports.report import report as made  # brings Jinja2

    settings = settings_of(db, sites)
    with store_there(settings) as store, store.read() as tx:
        text = made(tx, settings.catalog(), names)
    with whole_file(target) as out:
        out.write(text.encode(errors="replace"))
    if as_json:
        print_json({"file": target, "bytes": len(text.encode(errors="replace"))})
    else:
        say(f"written to {target}")
