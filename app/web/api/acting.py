"""`/api`: actions on failed tasks, nodes, schedules, products, reviews and imports."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.actions import (
    import_actions,
    manual_actions,
    product_actions,
    review_corrections,
    schedule_actions,
    theme_archive,
)
from app.actions.import_actions import ImportUndo
from app.actions.manual_actions import Outcome
from app.actions.product_actions import Added, ChangedProduct, RemovedProduct, period_or_never
from app.actions.products import new_products
from app.actions.review_corrections import CorrectableView
from app.views.words import describe, translate
from app.web.api.reading import PROBLEMS, Id
from app.web.base.context import Here, page_of
from app.web.base.query import MOST_ID, ProductId
from app.web.pages.failed import MOST_AT_ONCE, MOST_QUOTA, action_of
from app.web.pages.imports import import_of
from app.web.pages.products import name_of
from app.web.pages.reviews import read_correctable
from splitter.catalog.names import Category
from splitter.errors import InputError
from tasks.domain.voices import Voice
from tasks.store.content.corrections import Correction
from tasks.store.content.products import ProductEdit

_Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]


class ChangingRoute(APIRoute):
    """A route for requests that change data. It clears the cache afterwards, so that later requests read new data."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that answers a request."""
        answer = super().get_route_handler()

        async def run(request: Request) -> Response:
            try:
                return await answer(request)
            finally:
                page_of(request).context.cached.clear()

        return run


router = APIRouter(prefix="/api", tags=["acting"], route_class=ChangingRoute)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


_Subtasks = Annotated[
    list[Annotated[int, Field(ge=1, le=MOST_ID)]], Field(min_length=1, max_length=MOST_AT_ONCE)
]
_NodeName = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00]*$")]


class Retry(_Strict):
    """A request to try subtasks again on any node."""

    action: Literal["retry"]
    subtasks: _Subtasks


class Assign(_Strict):
    """A request to try subtasks again on one node only."""

    action: Literal["assign"]
    subtasks: _Subtasks
    node: _NodeName


class Abandon(_Strict):
    """A request to give subtasks up for good. `why` is stored in the event log."""

    action: Literal["abandon"]
    subtasks: _Subtasks
    why: Annotated[str, Field(max_length=500, pattern=r"^[^\x00]*$")] = ""


FailedAction = Annotated[Retry | Assign | Abandon, Field(discriminator="action")]


@router.post("/failed", responses=PROBLEMS)
def act(page: Here, wanted: FailedAction) -> Outcome:
    """Try subtasks again on any node or on one node, or abandon them."""
    action = action_of(wanted.action, getattr(wanted, "node", ""), getattr(wanted, "why", ""))
    return manual_actions.act_on_each(page.context.store, wanted.subtasks, action, page.who)


class Edited(_Strict):
    """A change of a subtask: its number of result pages, and its maximum number of hits per attempt."""

    pages: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] | None = None
    quota: Annotated[int, Field(ge=1, le=MOST_QUOTA)] | None = None


@router.post("/failed/{subtask}/edit", responses=PROBLEMS)
def edit_failed(page: Here, subtask: Id, wanted: Edited) -> Outcome:
    """Try a subtask again with fewer result pages or another quota. Missing fields stay as they are."""
    action = manual_actions.edit(wanted.pages, wanted.quota)
    return manual_actions.act_on_each(page.context.store, [subtask], action, page.who)


class NodeAction(_Strict):
    """An action on a node."""

    node: _NodeName
    action: Literal["drain", "resume"]


@router.post("/nodes", responses=PROBLEMS)
def drain(page: Here, wanted: NodeAction) -> NodeAction:
    """Stop giving work to a node, or give it work again."""
    manual_actions.set_drained(page.context.store, wanted.node, wanted.action == "drain", page.who)
    return wanted


class ScheduleActionBody(_Strict):
    """An action on a schedule."""

    number: Annotated[int, Field(ge=1, le=MOST_ID)]
    action: Literal["run", "pause", "resume"]


@router.post("/schedules", responses=PROBLEMS)
def schedule(page: Here, wanted: ScheduleActionBody) -> ScheduleActionBody:
    """Run a schedule now, pause it, or resume it."""
    schedule_actions.act(
        page.context.store, [str(wanted.number)], schedule_actions.ScheduleAction(wanted.action), page.who
    )
    return wanted


class NewProducts(_Strict):
    """Names of products to add. Their keywords are derived from the names."""

    names: Annotated[list[_Name], Field(min_length=1, max_length=1000)]
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 0


@router.post("/products", responses=PROBLEMS)
def add(page: Here, wanted: NewProducts) -> Added:
    """Add products."""
    given = new_products(wanted.names, priority=wanted.priority)
    return product_actions.add(page.context.store, given, page.who)


class ProductChange(_Strict):
    """Changes to a product. Missing fields and null leave the value as it is.

    If category, keywords or aliases change, the product's subtasks are cancelled and it is crawled again. An empty
    list of keywords restores those of its name. `counted_as` is the name of another product under which its reviews are
    counted; an empty name gives it its own count. `recrawl` is a period such as 7d or 12h, or never.
    """

    name: _Name | None = None
    category: Category | None = None
    keywords: Annotated[list[_Name], Field(max_length=20)] | None = None
    aliases: Annotated[list[_Name], Field(max_length=20)] | None = None
    excluded_words: Annotated[list[_Name], Field(max_length=100)] | None = None
    counted_as: Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")] | None = None
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] | None = None
    recrawl: Annotated[str, Field(pattern=r"^(never|[1-9][0-9]{0,3}[mhdw])$")] | None = None


@router.patch("/products/{product}", responses=PROBLEMS)
def edit(page: Here, number: ProductId, wanted: ProductChange) -> ChangedProduct:
    """Change a product."""
    other = ProductEdit(
        name=wanted.name,
        category=wanted.category,
        keywords=None if wanted.keywords is None else tuple(wanted.keywords),
        aliases=None if wanted.aliases is None else tuple(wanted.aliases),
        excluded_words=None if wanted.excluded_words is None else tuple(wanted.excluded_words),
        counted_as=None if wanted.counted_as is None else wanted.counted_as.strip(),
        priority=wanted.priority,
        recrawl_every=None if wanted.recrawl is None else period_or_never(wanted.recrawl),
    )
    return product_actions.edit(page.context.store, name_of(page, number), other, page.who)


@router.delete("/products/{product}", responses=PROBLEMS)
def remove(page: Here, number: ProductId) -> RemovedProduct:
    """Stop crawling a product. Its stored pages and reviews stay."""
    [was] = product_actions.remove(page.context.store, [name_of(page, number)], page.who)
    return was


class ArchiveTheme(_Strict):
    """A theme to archive or to take out of the archive, given by id or name. If it rises, it leaves the archive."""

    theme: _Name
    archived: bool = True


@router.post("/products/{product}/archive", responses=PROBLEMS)
def archive(page: Here, number: ProductId, wanted: ArchiveTheme) -> theme_archive.ThemeArchiving:
    """Archive a theme of a product until it rises."""
    return theme_archive.archive_theme(
        page.context.store, name_of(page, number), wanted.theme, page.who, undo=not wanted.archived
    )


class ReviewCorrection(_Strict):
    """All decisions of a person about a review. For missing fields and null, the models decide.

    `themes`: ids of all themes that the review complains about. `not_products`: numbers of products that the review is
    not about. `copies`: number of linked copies to correct as well. If it is wrong, the answer 409 has the right
    number.
    """

    voice: Voice | None = None
    themes: Annotated[list[_Name], Field(max_length=100)] | None = None
    hidden: bool = False
    not_products: Annotated[list[Annotated[int, Field(ge=1, le=MOST_ID)]], Field(max_length=500)] = []
    because: Annotated[str, Field(max_length=500)] = ""
    copies: Annotated[int, Field(ge=0, le=MOST_ID)] = 0


@router.put("/reviews/{review}/correction", responses=PROBLEMS)
def correct_review(page: Here, review: Id, wanted: ReviewCorrection) -> CorrectableView:
    """Correct a review and its linked copies. An earlier correction is replaced."""
    correction = Correction(
        voice=wanted.voice,
        themes=None if wanted.themes is None else tuple(wanted.themes),
        hidden=wanted.hidden,
        not_products=tuple(wanted.not_products),
    )
    return _correct(page, review, correction, wanted.because, wanted.copies)


@router.delete("/reviews/{review}/correction", responses=PROBLEMS)
def take_back_correction(
    page: Here, review: Id, copies: Annotated[int, Query(ge=0, le=MOST_ID)] = 0
) -> CorrectableView:
    """Remove the correction of a review and its linked copies."""
    return _correct(page, review, Correction(), "", copies)


def _correct(page: Here, review: int, correction: Correction, because: str, copies: int) -> CorrectableView:
    now = read_correctable(page, review)
    if now.copies != copies:
        raise HTTPException(
            409, translate("It has {n} linked copies; send copies={n} to correct them as well.", n=now.copies)
        )
    if now.correction == correction:
        raise HTTPException(
            409, translate("nothing would change: review {number} is so already", number=review)
        )
    return review_corrections.correct(
        page.context.store, review, correction, page.who, because, copies=copies
    )


@router.post("/imports/{number}/undo", responses=PROBLEMS)
def undo_import(page: Here, number: Id) -> ImportUndo:
    """Remove the rows that an import added."""
    import_of(page, number)
    try:
        return import_actions.undo(page.context.store, number, page.who)
    except InputError as error:  # the import was undone before
        raise HTTPException(409, describe(error)) from None
