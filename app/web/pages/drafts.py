"""Pages for drafts: typed or uploaded products that a person checks and corrects before they are added."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated, Literal

from fastapi import APIRouter, Form, UploadFile
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.actions import product_actions
from app.actions.products import MOST_PAGES, RefusedProduct, period, whole_number
from app.importing.product_files import Line, read_typed_names
from app.importing.product_rows import ProductRows
from app.views.doubts import Doubt, describe_doubt, list_doubts
from app.views.words import plural, translate
from app.web.base.context import Here, Notice, PageRequest
from app.web.base.forms import shown_on
from app.web.pages.products import list_again
from splitter.catalog.names import Category
from splitter.errors import InputError, Message
from splitter.keywords import product_query
from splitter.normalize import split_list, split_words
from splitter.split import SearchScope, urls_of
from tasks.store.content.products import NewProduct

router = APIRouter()

_ROWS = 200
"""Number of products on a page of a draft."""
_URLS_SHOWN = 10
_MOST_NAMES = 10_000
_KNOWN_NAMED = 20
_LONGEST = 4000
"""Maximum number of characters in a corrected cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftRow:
    """A line of a draft, read as a product or refused with a reason.

    Attributes:
        cells: cells of the line by field.
        was_changed: True if the person's last form changed the line.
    """

    line: int
    cells: Mapping[str, str]
    read: NewProduct | RefusedProduct
    is_left_out: bool = False
    was_changed: bool = False

    @property
    def refusal(self) -> Message | None:
        """The reason why the line is refused; `None` if it is accepted."""
        return self.read.why if isinstance(self.read, RefusedProduct) else None

    @property
    def doubts(self) -> list[Doubt]:
        """Reasons to doubt that the product was read correctly; empty if there are none."""
        return list_doubts(self.read) if isinstance(self.read, NewProduct) else []

    @property
    def keywords(self) -> str:
        """The product's keywords, as the form shows them."""
        if isinstance(self.read, NewProduct):
            return ", ".join(self.read.keywords)
        return self.cells.get("keywords", "")

    @property
    def others(self) -> str:
        """The product's other names as one text."""
        return ", ".join(self.read.aliases) if isinstance(self.read, NewProduct) else ""

    @property
    def category(self) -> str:
        """The product's category; empty if it is unknown."""
        return (self.read.category or "") if isinstance(self.read, NewProduct) else ""


@dataclass(frozen=True, slots=True)
class Draft:
    """Products that a person must confirm before they are added, doubtful ones first.

    Attributes:
        reader: makes a product from a line; used again for corrected lines.
        notes: messages about how the file was read.
        file: name of the file; empty if the products were typed.
    """

    rows: Sequence[DraftRow]
    reader: ProductRows
    notes: Sequence[Message] = ()
    file: str = ""

    @property
    def wanted(self) -> list[NewProduct]:
        """The products to add: all that were accepted and not left out."""
        return [row.read for row in self.rows if isinstance(row.read, NewProduct) and not row.is_left_out]

    @property
    def refused(self) -> list[DraftRow]:
        """The rows that are refused and not left out."""
        return [row for row in self.rows if row.refusal and not row.is_left_out]

    def correct(self, place: int, name: str, keywords: str, category: str, *, leave_out: bool) -> DraftRow:
        """Return the row at a place with a person's corrections.

        Fields that were not changed keep their original cells.
        """
        row = replace(self.rows[place], is_left_out=leave_out, was_changed=False)
        shown = {"name": row.read.name, "keywords": row.keywords, "category": row.category}
        typed = {"name": name.strip(), "keywords": keywords.strip(), "category": category}
        changes = {field: text for field, text in typed.items() if text != shown[field]}
        if not changes:
            return row
        cells = {**row.cells, **changes}
        read = self.reader.read(row.line, cells, is_typed=True)
        return replace(row, cells=cells, read=read, was_changed=True)


def make_draft(reader: ProductRows, lines: Sequence[Line]) -> Draft:
    """Make a draft from lines: refused lines first, then doubtful products, then the others."""
    rows = [
        DraftRow(line=line, cells=cells, read=reader.read(line, cells, why)) for line, cells, why in lines
    ]
    return Draft(sorted(rows, key=lambda row: (not row.refusal, not row.doubts)), reader)


def show_form(page: PageRequest) -> Response:
    """Show the page with the form for new products."""
    return list_again(page)


@router.post("/products/preview")
@shown_on(show_form)
async def preview(
    page: Here,
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
    """Show typed or uploaded products as a draft. Nothing is stored.

    Args:
        category: category of typed products, and of lines of a file without a category.
        ignore: columns of the file that must not be read.
    """

    def read() -> Draft:
        lines = read_typed_names(names, translate("The text"), as_list=bool(as_list))[:_MOST_NAMES]
        if (split_words(keywords) or split_list(aliases)) and len(lines) != 1:
            raise InputError("Keywords and other names belong to one product: give one name.")
        whole_number(pages, "pages", 1, MOST_PAGES)
        if recrawl.strip():
            period(recrawl)
        cells = {
            "keywords": keywords,
            "aliases": aliases,
            "priority": str(priority),
            "pages": pages,
            "recrawl": recrawl,
        }
        reader = ProductRows({}, page.context.catalog.sites, category or None)
        return make_draft(reader, [(line, {**cells, "name": name}, None) for line, name in lines])

    draft = (
        await _read_upload(page, file, category or None, split_list(ignore), as_list=bool(as_list))
        if file is not None and file.filename
        else await run_in_threadpool(read)
    )
    if not draft.rows:
        raise InputError("There is no name in it: write one a line, or choose a file.")
    return await run_in_threadpool(_show, page, draft)


async def _read_upload(
    page: PageRequest, file: UploadFile, category: Category | None, ignored: Sequence[str], *, as_list: bool
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
    reader = ProductRows(columns, page.context.catalog.sites, category)
    draft = await run_in_threadpool(make_draft, reader, lines)
    return replace(draft, notes=[*notes, *(one.note for one in reader.ignored.list_columns())], file=name)


_Cell = Annotated[str, Field(max_length=_LONGEST)]
_Place = Annotated[int, Field(ge=0, le=1_000_000)]


class Corrections(BaseModel):
    """The form with a person's corrections of one page of a draft.

    Attributes:
        show: first row of the page to show next; `None` for the same page.
        begin: first row of this page.
        name, keywords, category: typed values, one for each row.
        out: numbers of the rows to leave out.
    """

    draft: Annotated[str, Field(max_length=40)]
    action: Literal["add", "check"] = "add"
    show: _Place | None = None
    begin: _Place = 0
    name: list[_Cell] = []
    keywords: list[_Cell] = []
    category: list[Category | Literal[""]] = []
    out: list[_Place] = []


@router.post("/products")
def look_through(page: Here, sent: Annotated[Corrections, Form()]) -> Response:
    """Apply a person's corrections to a draft.

    Then add its products, or show the draft again if it needs another look.
    """
    held = page.context.held.get(sent.draft)
    size = len(sent.name)
    fits = size == len(sent.keywords) == len(sent.category)
    if not isinstance(held, Draft) or not fits or sent.begin + size > len(held.rows):
        raise InputError("This preview is too old: make it again.")
    rows = list(held.rows)
    cells = zip(sent.name, sent.keywords, sent.category, strict=True)
    for place, typed in enumerate(cells, sent.begin):
        rows[place] = held.correct(place, *typed, leave_out=place in sent.out)
    corrected = replace(held, rows=rows)
    is_wrong = any(row.was_changed for row in corrected.refused)
    if sent.action == "check" or sent.show is not None or is_wrong or not corrected.wanted:
        begin = sent.begin if sent.show is None else sent.show
        return _show(page, corrected, begin, status=422 if is_wrong else 200)
    return _add(page, corrected)


def _show(page: PageRequest, draft: Draft, begin: int = 0, *, status: int = 200) -> Response:
    outcome = product_actions.preview(page.context.store, draft.wanted)
    rows = list(enumerate(draft.rows))[begin : begin + _ROWS]
    return page.html(
        "preview.html",
        status=status,
        draft=draft,
        key=page.context.held.put(draft),
        rows=rows,
        begin=begin,
        size=_ROWS,
        known={one.line for one in outcome.known},
        counts={
            "added": len(outcome.added),
            "known": len(outcome.known),
            "refused": len(draft.refused),
            "doubtful": sum(bool(row.doubts) and not row.is_left_out for row in draft.rows),
        },
        categories=tuple(Category),
        describe_doubt=describe_doubt,
        urls=_list_urls(page, draft),
    )


def _list_urls(page: Here, draft: Draft) -> list[tuple[str, str]]:
    """Return the first few search URLs of the draft's first product as examples: (site, URL)."""
    if not draft.wanted:
        return []
    first = draft.wanted[0]
    query = product_query(first.name, keywords=first.own_keywords)
    made = urls_of(SearchScope(page.context.catalog, pages=1), query)
    return [(one.site or "", one.url) for one in islice(made, _URLS_SHOWN)]


def _add(page: PageRequest, draft: Draft) -> Response:
    done = product_actions.add(page.context.store, draft.wanted, page.who, draft.file)
    notes = [translate("{name} is there already.", name=name) for name in done.already[:_KNOWN_NAMED]]
    if draft.refused:
        notes.append(plural("{n} line was refused.", "{n} lines were refused.", len(draft.refused)))
    path = f"/imports/{done.number}" if done.added else "/products"
    said = plural("{n} product added.", "{n} products added.", len(done.added))
    return page.redirect_with(path, Notice(said, tuple(notes)))
