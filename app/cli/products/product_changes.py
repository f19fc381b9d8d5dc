"""`reviewloop product remove` and `edit`: products that are there already."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta

import click

from app.actions import product_actions
from app.actions.product_actions import period_or_never
from app.actions.products import MOST_PAGES
from app.actions.review_actions import judge_links
from app.cli.options import (
    ReadBy,
    chosen_sites,
    db_option,
    group_option,
    json_option,
    keyword_list,
    person,
    settings_of,
    site_option,
    sites_option,
    store_there,
)
from app.cli.output import answer
from splitter.catalog.names import Category
from splitter.errors import InputError
from tasks.store.content import products
from tasks.store.content.products import Product, ProductEdit

_CHANGES = (
    "--name, --category, --keywords, --alias, --priority, --pages, --group, --site, --all-sites or --recrawl"
)


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option(
    "--delete-reviews",
    is_flag=True,
    help="Also delete what was collected of them, after a question; pages that another product has stay.",
)
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done; change nothing.")
@sites_option
@db_option
@json_option
def remove(
    names: tuple[str, ...],
    delete_reviews: bool,
    yes: bool,
    dry_run: bool,
    sites: str | None,
    db: str | None,
    as_json: bool,
) -> None:
    """Stop collecting products; what was collected stays and can be exported as before.

    Their subtasks are cancelled. `product add NAME` starts to collect one again. If a NAME is unknown, none
    is removed.

    --delete-reviews deletes their reviews for good: texts, authors, titles of pages. The log of the work
    (addresses, times, counts) and pages that another product has stay. If a run is crawling them, pages
    under way still arrive: end the run first, or repeat the command.

    \b
    Examples:
      reviewloop product remove 特仑苏 蒙牛早餐奶 --dry-run
      reviewloop product remove 特仑苏
      reviewloop product remove 特仑苏 --delete-reviews --yes
    """
    settings = settings_of(db, sites)
    catalog = settings.catalog() if delete_reviews else None
    with store_there(settings) as store:
        with store.read() as tx:
            done = [products.find(tx, name) for name in dict.fromkeys(names)]
        deleted: list[int | None] = [None] * len(done)
        if not dry_run and delete_reviews:
            _ask(done, yes)
        if not dry_run:
            both = product_actions.remove(store, names, person(), delete_reviews=delete_reviews)
            done = [was for was, _ in both]
            deleted = [removed.reviews if removed else None for _, removed in both]
            if catalog is not None:
                judge_links(store, catalog)
    told, lines = [], []
    would = "would be " if dry_run else ""
    for one, n in zip(done, deleted, strict=True):
        row = {
            "name": one.name,
            "cancelled": one.open,
            "reviews": one.reviews,
            "was_looked_for": one.is_crawled,
        }
        told.append(row if n is None else row | {"deleted": n})
        said = _of_reviews(one.reviews, n, delete_reviews)
        if one.is_crawled:
            lines.append(f"{one.name}: {would}removed; {one.open:,} subtasks {would}cancelled, {said}")
        else:
            lines.append(f"{one.name}: was removed before; {said}")
    answer({"removed": told, "dry_run": dry_run}, "\n".join(lines), as_json)


def _of_reviews(there: int, deleted: int | None, to_delete: bool) -> str:
    """A sentence on the reviews of a product that is removed."""
    if deleted is not None:
        kept = f", {there - deleted:,} stay with other products" if there > deleted else ""
        return f"{deleted:,} reviews deleted{kept}"
    outcome = "would be deleted, less those of other products" if to_delete else "stay"
    return f"{there:,} reviews {outcome}"


def _ask(products: Sequence[Product], yes: bool) -> None:
    """Ask whether reviews are to be deleted. Raises InputError where nobody can answer, Abort at a no."""
    if yes:
        return
    n = sum(one.reviews for one in products)
    question = f"Delete {n:,} reviews of {', '.join(one.name for one in products)} for good?"
    if not sys.stdin.isatty():
        raise InputError(f"{question} Say so with --yes; --dry-run tells what would be done")
    click.confirm(question, abort=True, err=True)


@click.command()
@click.argument("name")
@click.option(
    "--name", "new_name", metavar="NAME", help="New name; everything collected stays with the product."
)
@click.option(
    "--category",
    type=click.Choice([one.value for one in Category]),
    help="Its kind of sites.",
)
@click.option("--keywords", metavar="W,W", help="AND keywords instead of the present ones.")
@click.option(
    "--alias", "aliases", metavar="NAME", multiple=True, help="Other names, instead of the present ones."
)
@click.option("--priority", type=int, help="A higher number goes first.")
@click.option("--pages", type=click.IntRange(1, MOST_PAGES), help="Result pages of each site.")
@group_option
@site_option
@click.option("--all-sites", is_flag=True, help="Use all sites of the catalog again.")
@click.option(
    "--recrawl",
    type=ReadBy("period", period_or_never),
    metavar="7d|12h|never",
    help="Crawl again at this interval, counted from the last time.",
)
@sites_option
@db_option
@json_option
def edit(
    name: str,
    new_name: str | None,
    category: str | None,
    keywords: str | None,
    aliases: tuple[str, ...],
    priority: int | None,
    pages: int | None,
    groups: tuple[str, ...],
    sites_named: tuple[str, ...],
    all_sites: bool,
    recrawl: timedelta | None,
    sites: str | None,
    db: str | None,
    as_json: bool,
) -> None:
    """Change a product. Options that are not given leave it as it is; --group and --site replace the sites it has.

    If keywords, aliases, sites, pages or the category change, it is crawled again and its subtasks are
    cancelled; collected pages stay.

    \b
    Examples:
      reviewloop product edit 雀巢怡养 --keywords 雀巢,怡养 --alias 雀巢中老年奶粉
      reviewloop product edit 特仑苏 --priority 5 --recrawl never
      reviewloop product edit 海底捞 --name 海底捞火锅 --category restaurant
      reviewloop product edit 特仑苏 --group complaints --site zhihu.com --pages 3
    """
    chosen = bool(groups or sites_named)
    if chosen and all_sites:
        raise InputError("--all-sites can't be used with --group or --site")
    settings = settings_of(db, sites)
    words = keyword_list(keywords, aliases, (name,))
    wanted = ProductEdit(
        name=new_name,
        category=category,
        keywords=words or None,
        aliases=aliases or None,
        priority=priority,
        recrawl_every=recrawl,
        pages=pages,
        sites=chosen_sites(settings.catalog(), groups, sites_named) if chosen else None,
        all_sites=all_sites,
    )
    if wanted == ProductEdit():
        raise InputError("say what to change: " + _CHANGES)
    with store_there(settings) as store:
        cancelled, summary = product_actions.edit(store, name, wanted, person())
    said = f"{summary.name}: changed" + (
        f"; {cancelled:,} subtasks cancelled, it is looked for anew" if wanted.begins_again else ""
    )
    answer({"cancelled": cancelled, **asdict(summary)}, said, as_json)
