"""`reviewloop product remove` and `edit`: products that are there already."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from app.actions import product_actions
from app.actions.product_actions import BulkEdit, BulkEdited, period_or_never
from app.actions.product_choice import FIELDS as CHOICE_FIELDS
from app.actions.product_choice import list_chosen, parse_conditions
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
from app.cli.output import answer, say
from app.views.words import describe
from splitter.catalog.names import Category
from splitter.errors import InputError, Message
from tasks.store.content import products
from tasks.store.content.products import Product, ProductEdit

if TYPE_CHECKING:
    from splitter.catalog.model import Catalog
    from tasks.store.sql.database import Store

_MOST_LINES = 20


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
    question = Message(
        "Delete {n:,} reviews of {products} for good?", n=n, products=", ".join(one.name for one in products)
    )
    if not sys.stdin.isatty():
        raise InputError(
            "{question} Say so with --yes; --dry-run tells what would be done", question=question
        )
    click.confirm(describe(question), abort=True, err=True)


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--where",
    "conditions",
    metavar="FIELD=VALUE",
    multiple=True,
    help=f"Change all products that have this, instead of NAME. Repeatable: all must hold. Fields: "
    f"{', '.join(CHOICE_FIELDS)}.",
)
@click.option(
    "--name", "new_name", metavar="NAME", help="New name; everything collected stays with the product."
)
@click.option(
    "--category",
    type=click.Choice([one.value for one in Category]),
    help="Its kind of sites.",
)
@click.option("--keywords", metavar="W,W", help="AND keywords instead of the present ones.")
@click.option("--add-keyword", "added", metavar="W", multiple=True, help="Add this keyword; repeatable.")
@click.option("--drop-keyword", "dropped", metavar="W", multiple=True, help="Drop this keyword; repeatable.")
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
@click.option("--dry-run", is_flag=True, help="Only say what would be done; nothing is changed.")
@sites_option
@db_option
@json_option
def edit(
    names: tuple[str, ...],
    conditions: tuple[str, ...],
    sites: str | None,
    db: str | None,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Change products. Options that are not given leave them as they are; --group and --site replace their sites.

    If keywords, aliases, sites, pages or the category change, a product is crawled again and its subtasks are
    cancelled; collected pages stay. With --where, products that are so already stay as they are.

    \b
    Examples:
      reviewloop product edit 雀巢怡养 --keywords 雀巢,怡养 --alias 雀巢中老年奶粉
      reviewloop product edit 特仑苏 --priority 5 --recrawl never
      reviewloop product edit 海底捞 --name 海底捞火锅 --category restaurant
      reviewloop product edit 特仑苏 --group complaints --site zhihu.com --pages 3
      reviewloop product edit --where category=unknown --category appliance --dry-run
      reviewloop product edit --where import=3 --where doubt=many_keywords --drop-keyword 2024款
    """
    if bool(names) == bool(conditions):
        raise InputError("name the products to change, or choose them with --where FIELD=VALUE; not both")
    choice = parse_conditions(conditions)
    settings = settings_of(db, sites)
    catalog = settings.catalog()
    wanted = BulkEdit(
        change=_read_change(catalog, names, options),
        add_keywords=options["added"],
        drop_keywords=options["dropped"],
    )
    if wanted == BulkEdit():
        raise InputError(
            "say what to change: --name, --category, --keywords, --add-keyword, --drop-keyword, --alias, --priority, "
            "--pages, --group, --site, --all-sites or --recrawl"
        )
    with store_there(settings) as store:
        if len(names) == 1 and not dry_run and wanted == BulkEdit(change=wanted.change):
            _edit_named(store, names[0], wanted.change, as_json)
            return
        with store.read() as tx:
            chosen = [products.find(tx, name).name for name in names]
            if conditions:
                chosen = [one.name for one in list_chosen(tx, choice, catalog)]
        done = product_actions.edit_each(store, chosen, wanted, person(), dry_run=dry_run)
    _print_edited(done, dry_run, as_json)


def _read_change(catalog: Catalog, names: Sequence[str], options: Mapping[str, Any]) -> ProductEdit:
    """Return the change that options ask for. Raises InputError if some can't stand together."""
    is_chosen = bool(options["groups"] or options["sites_named"])
    if is_chosen and options["all_sites"]:
        raise InputError("--all-sites can't be used with --group or --site")
    if options["keywords"] is not None and (options["added"] or options["dropped"]):
        raise InputError("--keywords can't be used with --add-keyword or --drop-keyword")
    if options["new_name"] is not None and len(names) != 1:
        raise InputError("--name belongs to one product: name it, without --where")
    words = keyword_list(options["keywords"], options["aliases"], names)
    sites = chosen_sites(catalog, options["groups"], options["sites_named"]) if is_chosen else None
    return ProductEdit(
        name=options["new_name"],
        category=options["category"],
        keywords=words or None,
        aliases=options["aliases"] or None,
        priority=options["priority"],
        recrawl_every=options["recrawl"],
        pages=options["pages"],
        sites=sites,
        all_sites=options["all_sites"],
    )


def _edit_named(store: Store, name: str, wanted: ProductEdit, as_json: bool) -> None:
    cancelled, summary = product_actions.edit(store, name, wanted, person())
    said = f"{summary.name}: changed" + (
        f"; {cancelled:,} subtasks cancelled, it is looked for anew" if wanted.begins_again else ""
    )
    answer({"cancelled": cancelled, **asdict(summary)}, said, as_json)


def _print_edited(done: BulkEdited, dry_run: bool, as_json: bool) -> None:
    for name, why in done.refused:
        say(f"{name}: {why}", "red")
    document = {
        "changed": [{"cancelled": n, **asdict(product)} for n, product in done.changed],
        "unchanged": done.same,
        "refused": [{"name": name, "why": why} for name, why in done.refused],
        "dry_run": dry_run,
    }
    would = "would be " if dry_run else ""
    lines = [f"{would}changed: {product.name}" for _, product in done.changed[:_MOST_LINES]]
    if len(done.changed) > _MOST_LINES:
        lines.append(f"       ... and {len(done.changed) - _MOST_LINES:,} more; --json lists all")
    lines.append(
        f"{len(done.changed):,} {would}changed, {len(done.same):,} are so already, {len(done.refused):,} refused; "
        f"{done.cancelled:,} subtasks {would}cancelled"
    )
    answer(document, "\n".join(lines), as_json)
    if done.refused:
        sys.exit(2)
