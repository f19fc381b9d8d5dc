"""Products: the list, and a page of each with the forms that change or remove it."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query
from pydantic import BaseModel, Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.actions import product_actions
from app.actions.product_actions import BulkEdit, period_or_never, period_text
from app.actions.product_choice import ProductChoice, list_chosen
from app.actions.products import MOST_PAGES, MOST_PRIORITY
from app.views.doubts import Doubt, describe_doubt
from app.views.moments import local_time
from app.views.words import describe, plural, translate
from app.web.base.context import Here, Notice, Page
from app.web.base.forms import shown_on
from app.web.base.query import MOST_ID, ProductId, find_product
from splitter.catalog.model import Catalog
from splitter.catalog.names import Category, Group
from splitter.errors import InputError
from splitter.normalize import split_list, split_words
from tasks.store.content.products import ProductEdit
from tasks.store.queries import products as product_queries
from tasks.store.queries.products import ProductRow
from tasks.store.queries.themes import Period, ProductCount, count_products
from tasks.store.sql.transaction import Transaction

router = APIRouter()

_ROWS = 50
RECENT_DAYS = 90
_REFUSED = 20


class ProductFilter(BaseModel):
    """A filter of the list of products.

    Attributes:
        q: is a part of the name.
        category, group, doubt: as of `ProductChoice`; empty: any.
    """

    q: Annotated[str, Field(max_length=200)] = ""
    category: Category | Literal["", "unknown"] = ""
    group: Group | Literal[""] = ""
    doubt: Doubt | Literal[""] = ""

    @property
    def choice(self) -> ProductChoice:
        """The choice of products."""
        return ProductChoice(name=self.q, category=self.category, group=self.group, doubt=self.doubt)

    @property
    def query(self) -> str:
        """The filter as the query of an address."""
        return urlencode({name: getattr(self, name) for name in ProductFilter.model_fields})


class ListQuery(ProductFilter):
    """A page of the list of products: those behind the number `after`."""

    after: Annotated[int, Field(ge=0, le=MOST_ID)] = 0


@router.get("/products")
def listed(page: Here, sent: Annotated[ListQuery, Query()]) -> Response:
    """Show products that fit a filter, some at a time, with a form that changes many of them."""

    def read(tx: Transaction) -> tuple[list[int], list[ProductRow]]:
        numbers = [one.id for one in list_chosen(tx, sent.choice, page.context.catalog)]
        shown = [number for number in numbers if number > sent.after][:_ROWS]
        return numbers, product_queries.list_numbered(tx, shown)

    numbers, rows = page.context.read(("products", sent.choice, sent.after), read)
    complaints = page.context.read("complaints", count_complaints)
    return page.html(
        "products.html",
        rows=rows,
        complaints=complaints,
        recent_days=RECENT_DAYS,
        total=len(numbers),
        more=rows[-1].id if rows and rows[-1].id != numbers[-1] else 0,
        choice=sent.choice,
        query=sent.query,
        is_adding="names" in page.typed,
        untyped={}.get,
        most_pages=MOST_PAGES,
        categories=tuple(Category),
        groups=tuple(Group),
        doubts=tuple(Doubt),
        describe_doubt=describe_doubt,
    )


def count_complaints(tx: Transaction) -> dict[int, ProductCount]:
    """Return the buyers' reviews of each product in the last `RECENT_DAYS`, and in as many days before."""
    today = local_time(tx.now).date()
    first = today - timedelta(days=RECENT_DAYS - 1)
    before = Period(first - timedelta(days=RECENT_DAYS), first - timedelta(days=1))
    return {row.product_id: row for row in count_products(tx, Period(first, today), before)}


def list_again(page: Page) -> Response:
    """Show the list that a refused form was sent from, with its filter if that is right."""
    typed = {name: page.get_typed(name) for name in ProductFilter.model_fields}
    try:
        return listed(page, ListQuery.model_validate(typed))
    except ValidationError:
        return listed(page, ListQuery())


class BulkForm(ProductFilter):
    """A change of many products: of those that were chosen, or of all that fit the filter.

    Attributes:
        product: numbers of the chosen ones.
        everything: "yes" for all that fit the filter.
        to_category, to_priority: empty: as it is.
        to_sites: a group of sites, or "all"; empty: as it is.
        add, drop: keywords.
    """

    product: Annotated[list[Annotated[int, Field(ge=1, le=MOST_ID)]], Field(max_length=_ROWS)] = []
    everything: Literal["yes", ""] = ""
    to_category: Category | Literal[""] = ""
    to_priority: Annotated[int, Field(ge=-MOST_PRIORITY, le=MOST_PRIORITY)] | Literal[""] = ""
    to_sites: Group | Literal["all", ""] = ""
    add: Annotated[str, Field(max_length=1000)] = ""
    drop: Annotated[str, Field(max_length=1000)] = ""

    def make_edit(self, catalog: Catalog) -> BulkEdit:
        """Return the change. Raises InputError if there is none."""
        is_group = self.to_sites not in ("", "all")
        sites = [name for name, site in catalog.sites.items() if site.group == self.to_sites]
        if is_group and not sites:
            raise InputError("{catalog} has no site in {group}", catalog=catalog.name, group=self.to_sites)
        change = ProductEdit(
            category=self.to_category or None,
            priority=self.to_priority if isinstance(self.to_priority, int) else None,
            sites=sites if is_group else None,
            all_sites=self.to_sites == "all",
        )
        edit = BulkEdit(
            change=change, add_keywords=split_words(self.add), drop_keywords=split_words(self.drop)
        )
        if edit == BulkEdit():
            raise InputError("Say what to change: category, sites, priority or keywords.")
        return edit


@router.post("/products/edit")
@shown_on(list_again)
def edit_many(page: Here, sent: Annotated[BulkForm, Form()]) -> Response:
    """Change many products. Those that are so already stay as they are."""
    edit = sent.make_edit(page.context.catalog)
    with page.context.store.read() as tx:
        if sent.everything:
            names = [one.name for one in list_chosen(tx, sent.choice, page.context.catalog)]
        else:
            names = [one.name for one in product_queries.list_numbered(tx, sent.product)]
    if not names:
        raise InputError("Nothing was chosen.")
    done = product_actions.edit_each(page.context.store, names, edit, page.who)
    said = translate(
        "Products changed: {n}; so already: {same}; subtasks cancelled: {cancelled}.",
        n=len(done.changed),
        same=len(done.unchanged),
        cancelled=done.cancelled,
    )
    refused = tuple(f"{one.name}: {describe(one.why)}" for one in done.refused[:_REFUSED])
    return page.redirect_with(f"/products?{sent.query}", Notice(said, refused))


@router.get("/products/{product}/crawl")
def show_crawl(page: Here, number: ProductId) -> Response:
    """Show where a product is searched, how far that is, and the forms that change it."""

    def read(tx: Transaction) -> Any:
        rows = product_queries.list_numbered(tx, (number,))
        return rows, product_queries.list_progress(tx, number), product_queries.list_search_urls(tx, number)

    rows, sites, urls = page.context.read(("product", number), read)
    if not rows:
        raise HTTPException(404, translate("There is no product {n}.", n=number))
    return page.html(
        "product_crawl.html",
        live_s=5,
        row=rows[0],
        sites=sites,
        urls=urls,
        every=period_text(rows[0].recrawl_every_s),
        open=sum(one.open for one in sites),
        categories=tuple(Category),
    )


def show_again(page: Page, product: str) -> Response:
    """Show the page of a product that a refused form was sent from."""
    return show_crawl(page, find_product(page, product))


@router.post("/products/{product}/edit")
@shown_on(show_again)
def edit(
    page: Here,
    number: ProductId,
    name: Annotated[str, Form(max_length=1000)] = "",
    name_shown: Annotated[str, Form(max_length=1000)] = "",
    category: Annotated[Category | Literal[""], Form()] = "",
    category_shown: Annotated[str, Form(max_length=20)] = "",
    keywords: Annotated[str, Form(max_length=4000)] = "",
    keywords_shown: Annotated[str, Form(max_length=4000)] = "",
    aliases: Annotated[str, Form(max_length=4000)] = "",
    aliases_shown: Annotated[str, Form(max_length=4000)] = "",
    priority: Annotated[int, Form(ge=-1_000_000, le=1_000_000)] = 0,
    priority_shown: Annotated[int, Form()] = 0,
    recrawl: Annotated[str, Form(max_length=10)] = "",
    recrawl_shown: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """Change a product: of the form, only what is other than what its page had shown."""
    wanted = ProductEdit(
        name=None if name == name_shown else name,
        category=None if category == category_shown else category or None,
        keywords=None if keywords == keywords_shown else split_words(keywords),
        aliases=None if aliases == aliases_shown else split_list(aliases),
        priority=None if priority == priority_shown else priority,
        recrawl_every=None if recrawl == recrawl_shown else period_or_never(recrawl),
    )
    path = f"/products/{number}/crawl"
    if wanted == ProductEdit():
        return page.redirect_with(path, Notice(refused=(translate("Nothing was changed."),)))
    now = product_actions.edit(page.context.store, name_of(page, number), wanted, page.who)
    said = plural(
        "{name} is changed; {n} subtask was cancelled.",
        "{name} is changed; {n} subtasks were cancelled.",
        now.cancelled,
        name=now.name,
    )
    return page.redirect_with(path, Notice(said))


@router.post("/products/{product}/remove")
@shown_on(show_again)
def remove(page: Here, number: ProductId, sure: Annotated[Literal["yes"], Form()]) -> Response:  # noqa: ARG001
    """Look for a product no more; a person has to say that they are sure."""
    [was] = product_actions.remove(page.context.store, [name_of(page, number)], page.who)
    said = plural(
        "{name} is no longer collected; {n} subtask was cancelled.",
        "{name} is no longer collected; {n} subtasks were cancelled.",
        was.cancelled,
        name=was.name,
    )
    return page.redirect_with(f"/products/{number}/crawl", Notice(said))


def name_of(page: Page, number: int) -> str:
    """A product's name. Ends the request with 404 where there is none of that number."""
    with page.context.store.read() as tx:
        rows = product_queries.list_numbered(tx, (number,))
    if not rows:
        raise HTTPException(404, translate("There is no product {n}.", n=number))
    return rows[0].name
