"""Products: how far each is at its sites, and new ones by form or by file, with a preview of the split."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice, starmap
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, UploadFile
from fastapi import Path as InPath
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.actions import product_actions
from app.actions.product_actions import period_or_never, period_text
from app.actions.products import MOST_PAGES, RefusedProduct, named_products, period, whole_number
from app.importing.product_files import read_typed_names
from app.importing.product_rows import ProductRows
from app.views.words import translate
from app.web.base.context import Change, Here, Notice, Page
from app.web.pages.failed import MOST_ID
from splitter.catalog.names import Category
from splitter.errors import InputError
from splitter.keywords import product_query
from splitter.normalize import split_list, split_words
from splitter.split import SearchScope, urls_of
from tasks.store.content.products import NewProduct, ProductEdit
from tasks.store.queries import products as product_queries
from tasks.store.sql.transaction import Transaction

router = APIRouter()

_ROWS = 50
_PREVIEWED = 200
_URLS_SHOWN = 10
_MOST_NAMES = 10_000
ProductId = Annotated[int, InPath(ge=1, le=MOST_ID)]


@dataclass(frozen=True, slots=True)
class Draft:
    """Products that were read and wait for a person's yes."""

    wanted: Sequence[NewProduct]
    refused: Sequence[RefusedProduct]
    notes: Sequence[str] = ()
    file: str = ""

    @property
    def doubtful(self) -> list[str]:
        """Names of the products that will be added paused."""
        return [one.name for one in self.wanted if one.sites == ()]


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


@router.post("/products/preview")
async def preview(
    page: Change,
    names: Annotated[str, Form()] = "",
    keywords: Annotated[str, Form(max_length=500)] = "",
    aliases: Annotated[str, Form(max_length=1000)] = "",
    priority: Annotated[int, Form(ge=-1_000_000, le=1_000_000)] = 0,
    pages: Annotated[str, Form(max_length=6)] = "",
    recrawl: Annotated[str, Form(max_length=10)] = "",
    category: Annotated[Category | Literal[""], Form()] = "",
    ignore: Annotated[str, Form(max_length=1000)] = "",
    as_list: Annotated[Literal["yes", ""], Form()] = "",
    file: UploadFile | None = None,
) -> Response:
    """Show a preview of adding: keywords of each name, and which are refused why. Nothing is stored.

    Args:
        category: of the products whose line in a file gives none, and of those that are named in the form.
        ignore: columns of the file that are not read.
    """

    def read() -> Draft:
        lines = read_typed_names(names, translate("The text"), as_list=bool(as_list))
        words, others = split_words(keywords), split_list(aliases)
        if (words or others) and len(lines) != 1:
            raise InputError("Keywords and other names belong to one product: give one name.")
        options = {
            "keywords": words,
            "aliases": others,
            "priority": priority,
            "pages": whole_number(pages, "pages", 1, MOST_PAGES),
            "recrawl": period(recrawl) if recrawl.strip() else None,
        }
        read = _draft(named_products(lines[:_MOST_NAMES], **options))
        if category:
            read = replace(read, wanted=[replace(one, category=category) for one in read.wanted])
        return read

    draft = (
        await _read_upload(page, file, category or None, split_list(ignore), as_list=bool(as_list))
        if file is not None and file.filename
        else await run_in_threadpool(read)
    )
    if not draft.wanted and not draft.refused:
        raise InputError("There is no name in it: write one a line, or choose a file.")
    urls = await run_in_threadpool(_urls, page, draft)
    return page.html(
        "preview.html",
        draft=draft,
        key=page.context.held.put(draft),
        urls=urls,
        most=_PREVIEWED,
    )


async def _read_upload(
    page: Page, file: UploadFile, category: Category | None, ignored: Sequence[str], *, as_list: bool
) -> Draft:
    async def wait_for_leaving() -> None:
        while (await page.request.receive())["type"] != "http.disconnect":
            pass

    leaving = asyncio.ensure_future(wait_for_leaving())
    try:
        data, name = await file.read(), file.filename or "file"
        lines, columns, notes = await page.context.uploads.read(data, name, leaving, ignored, as_list=as_list)
    finally:
        leaving.cancel()
    rows = ProductRows(columns, page.context.catalog.sites, category)
    products = await run_in_threadpool(lambda: list(starmap(rows.read, lines)))
    notes = [*notes, *map(str, rows.ignored.list_columns())]
    return replace(_draft(products), notes=notes, file=name)


def _urls(page: Here, draft: Draft) -> list[tuple[str, str]]:
    """Search URLs of the first product, as an example: (site, URL)."""
    if not draft.wanted:
        return []
    first = draft.wanted[0]
    query = product_query(first.name, keywords=first.own_keywords)
    made = urls_of(SearchScope(page.context.catalog, pages=1), query)
    return [(one.site or "", one.url) for one in islice(made, _URLS_SHOWN)]


def _draft(read: Sequence[NewProduct | RefusedProduct]) -> Draft:
    return Draft(
        [one for one in read if isinstance(one, NewProduct)],
        [one for one in read if isinstance(one, RefusedProduct)],
    )


@router.post("/products")
def add(page: Change, draft: Annotated[str, Form(max_length=40)]) -> Response:
    """Add what was previewed."""
    kept = page.context.held.get(draft)
    if not isinstance(kept, Draft):
        raise InputError("This preview is too old: make it again.")
    done = product_actions.add(page.context.store, kept.wanted, page.who, kept.file)
    said = translate("{n} products added.", n=len(done.added))
    there = tuple(translate("{name} is there already.", name=one.name) for one in done.known[:20])
    path = f"/imports/{done.number}" if done.added else "/products"
    return page.redirect_with(path, Notice(said, there))


@router.post("/products/{number}/edit")
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
