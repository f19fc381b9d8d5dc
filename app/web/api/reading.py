"""Paths of `/api` that read: queues, pairs, nodes, schedules, products, imports, failed tasks, reviews and sites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from app.actions.schedule_actions import ScheduleView, view_schedule
from app.reports.product_list import ProductList
from app.views.nodes import NodesView
from app.views.pairs import PairsView
from app.views.sites import SiteView
from app.views.status import StatusView
from app.web.base.context import Here
from app.web.base.query import (
    MOST_ID,
    AnyPeriod,
    Cursor,
    ProductId,
    RecentPeriod,
    Text,
    not_found,
)
from app.web.pages.matrix import read_pairs
from app.web.pages.nodes import read_nodes
from app.web.pages.overview import read_status
from app.web.pages.products import ListQuery, read_list
from app.web.pages.reviews import ReviewQuery
from app.web.pages.schedules import read_schedules
from app.web.pages.sites import read_sites
from tasks.domain.failures import SUGGESTIONS, FailureReason
from tasks.store.content import numbered_imports
from tasks.store.content.numbered_imports import NumberedImport
from tasks.store.queries import pairs
from tasks.store.queries import products as product_queries
from tasks.store.queries.pairs import PairAttempt
from tasks.store.queries.products import SiteProgress
from tasks.store.queries.review_counts import search_reviews
from tasks.store.queries.reviews import ReviewRow
from tasks.store.queue import manual, notices
from tasks.store.queue.manual import Cause, ManualRow
from tasks.store.queue.notices import AuditRow

router = APIRouter(prefix="/api", tags=["reading"])

_ROWS = 100


class Problem(BaseModel):
    """The answer to a request that failed: the reason."""

    detail: Any


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": said}
    for status, said in {
        400: "The input was wrong.",
        401: "A token is needed.",
        403: "Viewers may look only, or another site's page sent a change.",
        404: "There is no such thing.",
        409: "It is not in a state for that.",
        413: "The request is too large.",
        422: "The request has not the form that is described here.",
        429: "Too many wrong tokens.",
        503: "The database does not answer.",
    }.items()
}

Limit = Annotated[int, Query(ge=1, le=500)]
Id = Annotated[int, Path(ge=1, le=MOST_ID)]


@router.get("/status", responses=PROBLEMS)
def status(page: Here) -> StatusView:
    """Return the state of the whole system."""
    return read_status(page.context)


@router.get("/pairs", responses=PROBLEMS)
def list_pairs(page: Here, site: Text = "", node: Text = "") -> PairsView:
    """Return the counts of each (site, node) with finished attempts: of all, of one site or of one node."""
    return read_pairs(page.context, site, node)


@router.get("/pairs/{site}/{node}/attempts", responses=PROBLEMS)
def attempts(page: Here, site: str, node: str, limit: Limit = _ROWS) -> list[PairAttempt]:
    """Return the newest finished attempts of a node at a site, ordered by time."""
    _plain(site, node)
    with page.context.store.read() as tx:
        return pairs.list_pair_attempts(tx, site, node, limit)


@router.get("/nodes", responses=PROBLEMS)
def nodes(page: Here) -> NodesView:
    """Return all nodes."""
    return read_nodes(page.context)


@router.get("/schedules", responses=PROBLEMS)
def schedules(page: Here) -> list[ScheduleView]:
    """Return all schedules, ordered by their next run."""
    rows, now = read_schedules(page.context)
    return [view_schedule(row, now) for row in rows]


@router.get("/products", responses=PROBLEMS)
def products(page: Here, sent: Annotated[ListQuery, Query()], period: RecentPeriod) -> ProductList:
    """Return products with their complaints in a period: at most `limit`, after the first `skip`.

    With `by`, groups of products are returned with their sums.
    """
    return read_list(page, sent, period)


@router.get("/imports", responses=PROBLEMS)
def imports(page: Here, before: Cursor = 0, limit: Limit = _ROWS) -> list[NumberedImport]:
    """Return imports, the newest first. To get further ones, set `before` to the last id."""
    with page.context.store.read() as tx:
        return numbered_imports.list_imports(tx, before=before or None, most=limit)


@router.get("/products/{product}", responses=PROBLEMS)
def progress(page: Here, number: ProductId) -> list[SiteProgress]:
    """Return the progress of crawling a product at each site."""
    with page.context.store.read() as tx:
        return product_queries.list_progress(tx, number)


class CauseOfMany(BaseModel):
    """A cause of waiting subtasks, with their number and a suggestion."""

    cause: Cause
    suggestion: str


@router.get("/failed/causes", responses=PROBLEMS)
def causes(page: Here) -> list[CauseOfMany]:
    """Return the reasons why subtasks wait for a person."""
    with page.context.store.read() as tx:
        return [
            CauseOfMany(cause=one, suggestion=SUGGESTIONS.get(one.reason, ""))
            for one in manual.list_causes(tx)
        ]


@router.get("/failed", responses=PROBLEMS)
def list_failed(
    page: Here, after: Cursor = 0, limit: Limit = _ROWS, reason: FailureReason | None = None, site: Text = ""
) -> list[ManualRow]:
    """Return subtasks that wait for a person. To get further ones, set `after` to the last `subtask_id`."""
    with page.context.store.read() as tx:
        return manual.list_manual(tx, after=after, most=limit, reason=reason or None, site=site or None)


@router.get("/audit", responses=PROBLEMS)
def audit_log(page: Here, before: Cursor = 0, limit: Limit = _ROWS) -> list[AuditRow]:
    """Return entries of the audit log, the newest first. To get further ones, set `before` to the last id."""
    with page.context.store.read() as tx:
        return list(notices.list_audit_rows(tx, before=before or None, most=limit))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundReview(ReviewRow):
    """A review with one of the products that it is about.

    Attributes:
        id: number of the review, equal to `review`.
        original: number of the review that this one repeats, exactly or nearly; `None` if it repeats none.
    """

    id: int
    original: int | None = None


class Reviews(BaseModel):
    """A part of the found reviews, with the cursor for the next part.

    `before` is the cursor to send with the next request; null at the end. One request searches at most 50,000 reviews,
    so `reviews` may be empty before the end.
    """

    reviews: list[FoundReview]
    before: int | None


class ReviewsQuery(ReviewQuery):
    """A search for reviews. At most `limit` reviews are returned."""

    limit: Annotated[int, Field(ge=1, le=500)] = _ROWS


@router.get("/reviews", responses=PROBLEMS)
def reviews(page: Here, sent: Annotated[ReviewsQuery, Query()], period: AnyPeriod) -> Reviews:
    """Return reviews, the newest first.

    They contain the words of `q` in title or text, and were written in the last `days` (a number, or all), or from the
    day `from` to the day `to`. `product` is a name or a number, `theme` an id or a name. With `product` or `theme`,
    only reviews that count are returned: of equal texts only the first. `left_out` returns those that do not count,
    `undated` those without a date.
    """
    with not_found():
        wanted = sent.find(page, period)
    with page.context.store.read() as tx:
        found = search_reviews(tx, wanted, before=sent.before or None, most=sent.limit)
    rows = [FoundReview(**asdict(row), id=row.review, original=row.original) for row in found.rows]
    return Reviews(reviews=rows, before=found.before)


@router.get("/sites", responses=PROBLEMS)
def sites(page: Here) -> Sequence[SiteView]:
    """Return all sites of the catalog, and sites that are no longer in it but have stored pages."""
    return read_sites(page.context)


def _plain(*names: str) -> None:
    if any("\x00" in name for name in names):
        raise HTTPException(400, "a name holds no zero byte")
