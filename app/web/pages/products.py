"""The list of products, and a page for each product with forms to change or remove it."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query
from pydantic import BaseModel, Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.actions import product_actions
from app.actions.product_actions import BulkEdit, period_or_never, period_text
from app.actions.products import MOST_PAGES, MOST_PRIORITY
from app.insight.periods import PeriodChoice, read_period
from app.reports import charts
from app.reports.product_choice import ProductChoice, list_chosen
from app.reports.product_list import (
    ListOrder,
    ProductGrouping,
    ProductList,
    ProductSort,
    list_rising,
    read_product_list,
)
from app.views.doubts import Doubt, describe_doubt
from app.views.theme_names import name_theme
from app.views.words import name_text, plural, translate
from app.web.base.context import Here, Notice, PageRequest
from app.web.base.forms import shown_on
from app.web.base.query import MOST_ID, ProductId, ShownPeriod, find_product
from splitter.catalog.model import Catalog
from splitter.catalog.names import Category, Group
from splitter.errors import InputError
from splitter.normalize import split_list, split_words
from tasks.store.content.corrections import list_excluded_words
from tasks.store.content.products import ProductEdit
from tasks.store.queries import products as product_queries
from tasks.store.sql.transaction import Transaction

router = APIRouter()

_ROWS = 50
_MOST_ROWS = 500
_REFUSED = 20
_RISES = 10


class ProductFilter(BaseModel):
    """A person's filter for the list of products.

    Attributes:
        q: text that the name must contain.
        brand, category, group, doubt: as in `ProductChoice`; empty for any.
    """

    q: Annotated[str, Field(max_length=200)] = ""
    brand: Annotated[str, Field(max_length=200)] = ""
    category: Category | Literal["", "unknown"] = ""
    group: Group | Literal[""] = ""
    doubt: Doubt | Literal[""] = ""

    @property
    def choice(self) -> ProductChoice:
        """The filter as conditions on products."""
        return ProductChoice(
            name=self.q, brand=self.brand, category=self.category, group=self.group, doubt=self.doubt
        )

    @property
    def query(self) -> str:
        """The filter as a query string for URLs."""
        return urlencode({name: getattr(self, name) for name in ProductFilter.model_fields})


class ListQuery(ProductFilter):
    """The rows to show after the first `skip`: products, or with `by` the sums of groups of products."""

    sort: ProductSort = ProductSort.COMPLAINTS
    reverse: bool = False
    by: ProductGrouping | Literal[""] = ""
    skip: Annotated[int, Field(ge=0, le=MOST_ID)] = 0
    limit: Annotated[int, Field(ge=1, le=_MOST_ROWS)] = _ROWS

    @property
    def order(self) -> ListOrder:
        """The order of the list, and the part of it to show."""
        return ListOrder(
            sort=self.sort, is_reversed=self.reverse, by=self.by or None, skip=self.skip, most=self.limit
        )


def read_list(page: PageRequest, sent: ListQuery, period: PeriodChoice) -> ProductList:
    """Return the requested part of the list."""
    choice, order = sent.choice, sent.order
    return page.context.read(
        ("products", choice, order, period),
        lambda tx: read_product_list(tx, choice, order, period, page.context.catalog),
    )


@router.get("/products")
def show_list(page: Here, sent: Annotated[ListQuery, Query()], period: ShownPeriod) -> Response:
    """Show a part of the products that fit a filter, with a form to change many of them."""
    return page.html(
        "products.html",
        view=read_list(page, sent, period),
        rises=page.context.read(("rising",), list_rising),
        most_rises=_RISES,
        name_theme=name_theme,
        period=period,
        sent=sent,
        sparkline=charts.sparkline,
        groupings={
            ProductGrouping.BRAND: translate("brand"),
            ProductGrouping.CATEGORY: translate("category"),
        },
        is_adding="names" in page.typed,
        untyped={}.get,
        most_pages=MOST_PAGES,
        categories=tuple(Category),
        groups=tuple(Group),
        doubts=tuple(Doubt),
        describe_doubt=describe_doubt,
    )


def list_again(page: PageRequest) -> Response:
    """Show the list again, because its form was refused. The form's filter is used if it is valid."""
    typed = {name: page.get_typed(name) for name in ProductFilter.model_fields}
    try:
        sent = ListQuery.model_validate(typed)
    except ValidationError:
        sent = ListQuery()
    return show_list(page, sent, read_period(None, None, None))


class BulkForm(ProductFilter):
    """A form that changes many products: the chosen ones, or all that fit the filter.

    Attributes:
        product: numbers of the chosen products.
        everything: "yes" for all that fit the filter.
        to_category, to_priority: new category and priority; empty leaves them as they are.
        to_sites: a group of sites, or "all"; empty leaves the sites as they are.
        to_counted_as: name of the product under which their reviews will be counted; empty changes nothing.
        add, drop: keywords to add and to remove.
    """

    product: Annotated[list[Annotated[int, Field(ge=1, le=MOST_ID)]], Field(max_length=_MOST_ROWS)] = []
    everything: Literal["yes", ""] = ""
    to_category: Category | Literal[""] = ""
    to_priority: Annotated[int, Field(ge=-MOST_PRIORITY, le=MOST_PRIORITY)] | Literal[""] = ""
    to_sites: Group | Literal["all", ""] = ""
    to_counted_as: Annotated[str, Field(max_length=200)] = ""
    add: Annotated[str, Field(max_length=1000)] = ""
    drop: Annotated[str, Field(max_length=1000)] = ""

    def make_edit(self, catalog: Catalog) -> BulkEdit:
        """Return the change that the form describes. Raises InputError if the form changes nothing."""
        is_group = self.to_sites not in ("", "all")
        sites = [name for name, site in catalog.sites.items() if site.group == self.to_sites]
        if is_group and not sites:
            raise InputError("{catalog} has no site in {group}", catalog=catalog.name, group=self.to_sites)
        change = ProductEdit(
            category=self.to_category or None,
            priority=self.to_priority if isinstance(self.to_priority, int) else None,
            sites=sites if is_group else None,
            all_sites=self.to_sites == "all",
            counted_as=self.to_counted_as.strip() or None,
        )
        edit = BulkEdit(
            change=change, add_keywords=split_words(self.add), drop_keywords=split_words(self.drop)
        )
        if edit == BulkEdit():
            raise InputError("Say what to change: category, sites, priority, counted as, or keywords.")
        return edit


@router.post("/products/edit")
@shown_on(list_again)
def edit_many(page: Here, sent: Annotated[BulkForm, Form()]) -> Response:
    """Change many products. Products that already have the values are not changed."""
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
    refused = tuple(name_text(one.name, one.why) for one in done.refused[:_REFUSED])
    return page.redirect_with(f"/products?{sent.query}", Notice(said, refused))


@router.get("/products/{product}/crawl")
def show_crawl(page: Here, number: ProductId) -> Response:
    """Show at which sites a product is crawled and how far, with forms to change the product."""

    def read(tx: Transaction) -> Any:
        rows = product_queries.list_numbered(tx, (number,))
        excluded = list_excluded_words(tx, number)
        urls = product_queries.list_search_urls(tx, number)
        return rows, product_queries.list_progress(tx, number), urls, excluded

    rows, sites, urls, excluded = page.context.read(("product", number), read)
    if not rows:
        raise HTTPException(404, translate("There is no product {n}.", n=number))
    return page.html(
        "product_crawl.html",
        live_s=5,
        row=rows[0],
        sites=sites,
        urls=urls,
        excluded=excluded,
        every=period_text(rows[0].recrawl_every_s),
        open=sum(one.open for one in sites),
        categories=tuple(Category),
    )


def show_again(page: PageRequest, product: str) -> Response:
    """Show the page of a product again, because its form was refused."""
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
    excluded: Annotated[str, Form(max_length=4000)] = "",
    excluded_shown: Annotated[str, Form(max_length=4000)] = "",
    counted_as: Annotated[str, Form(max_length=200)] = "",
    counted_as_shown: Annotated[str, Form(max_length=200)] = "",
    priority: Annotated[int, Form(ge=-1_000_000, le=1_000_000)] = 0,
    priority_shown: Annotated[int, Form()] = 0,
    recrawl: Annotated[str, Form(max_length=10)] = "",
    recrawl_shown: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """Change those fields of a product that the person changed: their values differ from the `..._shown` ones."""
    wanted = ProductEdit(
        name=None if name == name_shown else name,
        category=None if category == category_shown else category or None,
        keywords=None if keywords == keywords_shown else split_words(keywords),
        aliases=None if aliases == aliases_shown else split_list(aliases),
        excluded_words=None if excluded == excluded_shown else split_list(excluded),
        counted_as=None if counted_as == counted_as_shown else counted_as.strip(),
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
    """Stop collecting a product, after the person has confirmed it."""
    [was] = product_actions.remove(page.context.store, [name_of(page, number)], page.who)
    said = plural(
        "{name} is no longer collected; {n} subtask was cancelled.",
        "{name} is no longer collected; {n} subtasks were cancelled.",
        was.cancelled,
        name=was.name,
    )
    return page.redirect_with(f"/products/{number}/crawl", Notice(said))


def name_of(page: PageRequest, number: int) -> str:
    """Return the name of a product. Answers the request with 404 if the number is unknown."""
    with page.context.store.read() as tx:
        rows = product_queries.list_numbered(tx, (number,))
    if not rows:
        raise HTTPException(404, translate("There is no product {n}.", n=number))
    return rows[0].name
