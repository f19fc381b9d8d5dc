"""Products: the list, and a page of each with the forms that change or remove it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form
from fastapi import Path as InPath
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.actions import product_actions
from app.actions.product_actions import period_or_never, period_text
from app.actions.products import MOST_PAGES
from app.views.words import translate
from app.web.base.context import Change, Here, Notice, Page
from app.web.base.forms import shown_on
from app.web.pages.failed import MOST_ID
from splitter.catalog.names import Category
from splitter.normalize import split_list, split_words
from tasks.store.content.products import ProductEdit
from tasks.store.queries import products as product_queries
from tasks.store.sql.transaction import Transaction

router = APIRouter()

_ROWS = 50
ProductId = Annotated[int, InPath(ge=1, le=MOST_ID)]


@router.get("/products")
def listed(page: Here, q: str = "", after: int = 0) -> Response:
    """Products, some at a time."""

    def read(tx: Transaction) -> Any:
        return product_queries.list_products(
            tx, after=min(max(after, 0), MOST_ID), most=_ROWS + 1, contains=q[:200]
        )

    rows = page.context.read(("products", q, after), read)
    return page.html(
        "products.html",
        rows=rows[:_ROWS],
        more=rows[_ROWS - 1].id if len(rows) > _ROWS else 0,
        q=q,
        after=after,
        most_pages=MOST_PAGES,
        categories=tuple(Category),
    )


@router.get("/products/{number}")
def product(page: Here, number: ProductId) -> Response:
    """One product: where it is searched, how far that is."""

    def read(tx: Transaction) -> Any:
        rows = product_queries.list_products(tx, only=number)
        return rows, product_queries.list_progress(tx, number), product_queries.list_search_urls(tx, number)

    rows, sites, urls = page.context.read(("product", number), read)
    if not rows:
        raise HTTPException(404, translate("There is no product {n}.", n=number))
    return page.html(
        "product.html",
        live_s=5,
        row=rows[0],
        sites=sites,
        urls=urls,
        every=period_text(rows[0].recrawl_every_s),
        open=sum(one.open for one in sites),
        categories=tuple(Category),
    )


@router.post("/products/{number}/edit")
@shown_on(product)
def edit(
    page: Change,
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
    path = f"/products/{number}"
    if wanted == ProductEdit():
        return page.redirect_with(path, Notice(refused=(translate("Nothing was changed."),)))
    cancelled, now = product_actions.edit(page.context.store, name_of(page, number), wanted, page.who)
    said = translate("{name} is changed; {n} subtasks were cancelled.", name=now.name, n=cancelled)
    return page.redirect_with(path, Notice(said))


@router.post("/products/{number}/remove")
@shown_on(product)
def remove(page: Change, number: ProductId, sure: Annotated[Literal["yes"], Form()]) -> Response:  # noqa: ARG001
    """Look for a product no more; a person has to say that they are sure."""
    [(was, _)] = product_actions.remove(page.context.store, [name_of(page, number)], page.who)
    said = translate("{name} is looked for no more; {n} subtasks were cancelled.", name=was.name, n=was.open)
    return page.redirect_with(f"/products/{number}", Notice(said))


def name_of(page: Page, number: int) -> str:
    """A product's name. Ends the request with 404 where there is none of that number."""
    with page.context.store.read() as tx:
        rows = product_queries.list_products(tx, only=number)
    if not rows:
        raise HTTPException(404, translate("There is no product {n}.", n=number))
    return rows[0].name
