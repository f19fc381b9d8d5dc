"""Reviews: searched and filtered, one with where it came from, and counts of the newest as charts."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi import Path as InPath
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.reports import charts
from app.views.moments import local_time
from app.views.words import translate
from app.web.base.context import Context, Here
from app.web.base.query import MOST_ID, AnyPeriod, check_site, find_product
from splitter.errors import InputError
from splitter.keywords import product_query
from tasks.domain.voices import Voice
from tasks.store.queries.products import get_name, list_names
from tasks.store.queries.queues import NOT_JUDGED
from tasks.store.queries.reviews import ReviewCounts, ReviewFilter, count_reviews, get_origin, search
from tasks.store.queries.themes import Period

router = APIRouter()

NEWEST = 20_000
"""Reviews in a chart."""
_ROWS = 30
_NAMES = 500
_BARS = 15
_DAYS = 60
_MOST_WORDS = 8


def read_counts(context: Context) -> ReviewCounts:
    """Return counts of the newest reviews."""
    return context.read("review counts", lambda tx: count_reviews(tx, ReviewFilter(newest=NEWEST)))


def search_filter(
    words: tuple[str, ...],
    site: str,
    product: int | None,
    period: Period,
    voice: Voice | None,
) -> ReviewFilter:
    """Return the filter of a search. A day leaves out reviews without a readable date."""
    return ReviewFilter(
        words=words,
        product=product,
        sites=(site,) if site else (),
        day_from=period.since,
        day_to=period.until,
        voices=(voice,) if voice else (),
    )


class ReviewQuery(BaseModel):
    """A search for reviews, and where it goes on.

    Attributes:
        q: words in title or text; `split`: they are cut as the splitter cuts them.
        product: a name or a number.
    """

    q: Annotated[str, Field(max_length=200)] = ""
    site: Annotated[str, Field(max_length=255)] = ""
    product: Annotated[str, Field(max_length=200)] = ""
    voice: Voice | Literal[""] = ""
    split: bool = False
    before: Annotated[int, Field(ge=0, le=MOST_ID)] = 0


@router.get("/reviews")
def reviews(page: Here, sent: Annotated[ReviewQuery, Query()], period: AnyPeriod) -> Response:
    """A page of a search; without one, the newest reviews."""
    context = page.context
    q, site, split = sent.q, sent.site, sent.split
    words = words_of(q, split=split)
    number = find_product(page, sent.product) if sent.product else None
    with context.store.read() as tx:
        days = period.find(local_time(tx.now).date())
        wanted = search_filter(words, site, number, days, sent.voice or None)
        check_site(tx, context.catalog, site)
        found = search(tx, wanted, before=sent.before or None, most=_ROWS)
        chosen = [(number, get_name(tx, number))] if number else []
    names = context.read("product names", lambda tx: list_names(tx, _NAMES))
    counted = read_counts(context)
    by_day = Counter[date]()
    for (_, day), n in counted.by_day.items():
        by_day[day] += n
    names_of_voices = [*((one, translate(one)) for one in Voice), (NOT_JUDGED, translate("not judged"))]
    return page.html(
        "reviews.html",
        found=found,
        words=words,
        q=q,
        site=site,
        product=number,
        period=period,
        voice=sent.voice,
        voices=tuple(Voice),
        split=split,
        may_split=bool(q) and not split and words_of(q, split=True) != words if not found.rows else False,
        names=[*(one for one in chosen if one not in names), *names],
        sites=sorted(counted.by_site),
        searched=wanted != ReviewFilter(),
        newest=NEWEST,
        more=str(page.request.url.include_query_params(before=found.before).query) if found.before else "",
        charts=[
            charts.bars(
                [(name, counted.by_voice[one]) for one, name in names_of_voices if counted.by_voice[one]],
                translate("Reviews by voice"),
                width=520,
            ),
            charts.bars(counted.by_product.most_common(_BARS), translate("Reviews by product"), width=520),
            charts.bars(counted.by_site.most_common(_BARS), translate("Reviews by site"), width=520),
            charts.columns(
                [(f"{day:%m-%d}", by_day[day]) for day in sorted(by_day)[-_DAYS:]],
                translate("Reviews by day"),
                width=520,
            ),
        ],
        titles=[
            translate("Reviews by voice"),
            translate("Reviews by product"),
            translate("Reviews by site"),
            translate("Reviews by day"),
        ],
    )


def words_of(text: str, *, split: bool) -> tuple[str, ...]:
    """The words that must be in a review: as they are written, or as the splitter cuts them."""
    written = tuple(dict.fromkeys(text[:200].split()))[:_MOST_WORDS]
    if not split or not written:
        return written
    try:
        cut = [word for one in written for word in product_query(one).keywords]
    except InputError:
        return written
    return tuple(dict.fromkeys(cut))[:_MOST_WORDS]


@router.get("/reviews/{number}")
def review(page: Here, number: Annotated[int, InPath(ge=1, le=MOST_ID)]) -> Response:
    """One review with where it came from."""
    with page.context.store.read() as tx:
        found = get_origin(tx, number)
    if found is None:
        raise HTTPException(404, translate("There is no review {n}.", n=number))
    return page.html("review.html", one=found)
