"""Reviews: searched and filtered, one with where it came from, and counts of the newest as charts."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as InPath
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.reports import charts
from app.web.base.context import Context, Here
from app.web.pages.failed import MOST_ID
from splitter.errors import InputError
from splitter.keywords import product_query
from tasks.domain.voices import Voice
from tasks.store.queries import review_search
from tasks.store.queries.review_search import Wanted

router = APIRouter()

_ROWS = 30
_NAMES = 500
_BARS = 15
_MOST_WORDS = 8


def read_counts(context: Context) -> review_search.Counts:
    """Counts of the newest reviews."""
    return context.read("review counts", lambda conn, _now: review_search.counts(conn))


@router.get("/reviews")
def reviews(
    page: Here,
    q: str = "",
    site: str = "",
    product: str = "",
    first: str = "",
    last: str = "",
    voice: str = "",
    split: bool = False,
    before: int = 0,
) -> Response:
    """A page of a search; without one, the newest reviews."""
    context = page.context
    words = words_of(q, split=split)
    wanted = Wanted(
        words,
        site or None,
        int(product) if product.isascii() and product.isdigit() and len(product) < 19 else None,
        day_of(first),
        day_of(last),
        Voice(voice) if voice in tuple(Voice) else None,
    )
    with context.store.read() as conn:
        found = review_search.search(
            conn, wanted, before=before if 0 < before <= MOST_ID else None, most=_ROWS
        )
    names = context.read("product names", lambda conn, _now: review_search.names_of_products(conn, _NAMES))
    counted = read_counts(context)
    t = page.t
    return page.html(
        "reviews.html",
        found=found,
        words=words,
        q=q,
        site=site,
        product=product,
        first=first,
        last=last,
        voice=voice,
        voices=tuple(Voice),
        split=split,
        may_split=bool(q) and not split and words_of(q, split=True) != words if not found.rows else False,
        names=names,
        sites=sorted(counted.sites),
        searched=bool(words or site or product or first or last or voice),
        newest=review_search.NEWEST,
        more=str(page.request.url.include_query_params(before=found.before).query) if found.before else "",
        charts=[
            charts.bars([(t(one), n) for one, n in counted.voices.items()], t("Reviews by voice"), width=520),
            charts.bars(list(counted.products.items())[:_BARS], t("Reviews by product"), width=520),
            charts.bars(list(counted.sites.items())[:_BARS], t("Reviews by site"), width=520),
            charts.columns(
                [(f"{day:%m-%d}", n) for day, n in counted.days.items()], t("Reviews by day"), width=520
            ),
        ],
        titles=[t("Reviews by voice"), t("Reviews by product"), t("Reviews by site"), t("Reviews by day")],
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


def day_of(text: str) -> date | None:
    """A day as YYYY-MM-DD; None where it is none."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


@router.get("/reviews/{number}")
def review(page: Here, number: Annotated[int, InPath(ge=1, le=MOST_ID)]) -> Response:
    """One review with where it came from."""
    with page.context.store.read() as conn:
        found = review_search.origin(conn, number)
    if found is None:
        raise HTTPException(404, page.t("There is no review {n}.", n=number))
    return page.html("review.html", found=found, one=found.review)
