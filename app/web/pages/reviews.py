"""Pages of reviews: a search with charts, and a page for each review with its origin."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Query
from fastapi import Path as InPath
from markupsafe import Markup
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.actions import review_corrections
from app.actions.review_corrections import CorrectableView, view_correctable
from app.insight.periods import PeriodChoice
from app.reports import charts
from app.views.moments import local_time
from app.views.theme_names import find_theme, list_theme_names, name_theme
from app.views.words import translate
from app.web.base.context import Here, Notice, PageRequest
from app.web.base.forms import shown_on
from app.web.base.query import MOST_ID, ShownPeriod, check_site, find_product
from splitter.errors import InputError
from splitter.keywords import product_query
from tasks.domain.voices import Voice
from tasks.store.content.corrections import Correction
from tasks.store.queries.products import get_category, get_name, list_names
from tasks.store.queries.queues import NOT_JUDGED
from tasks.store.queries.review_counts import ReviewCounts, count_reviews, search_reviews
from tasks.store.queries.reviews import LOOKED_AT, ReviewFilter
from tasks.store.queries.themes import Period

router = APIRouter()

_ROWS = 30
_NAMES = 500
_BARS = 15
_DAYS = 93
"""Number of days above which charts count reviews by week."""
_MOST_WORDS = 8
_NOON = time(12)
"""Time at which a day is drawn, so that no time zone moves it to another day."""


class ReviewQuery(BaseModel):
    """A search for reviews, with the cursor of the next page.

    Attributes:
        q: words that title or text must contain. With `split`, the splitter divides `q` into words.
        product: name or number of a product.
        theme: id or name of a theme; only complaints about it are found.
        corrected: True for only the reviews that a person corrected, including hidden ones.
        left_out: True for only the reviews that do not count for their product.
        undated: True for only the reviews without a readable date.
    """

    q: Annotated[str, Field(max_length=200)] = ""
    site: Annotated[str, Field(max_length=255)] = ""
    product: Annotated[str, Field(max_length=200)] = ""
    voice: Voice | Literal[""] = ""
    theme: Annotated[str, Field(max_length=60)] = ""
    split: bool = False
    corrected: bool = False
    left_out: bool = False
    undated: bool = False
    before: Annotated[int, Field(ge=0, le=MOST_ID)] = 0

    def find(self, page: PageRequest, period: PeriodChoice) -> ReviewFilter:
        """Return the search as a filter for the store. If it has a day, undated reviews are left out.

        Raises InputError.
        """
        number = find_product(page, self.product) if self.product else None
        with page.context.store.read() as tx:
            check_site(tx, page.context.catalog, self.site)
            days = Period() if self.undated else period.find(local_time(tx.now).date())
        return ReviewFilter(
            words=words_of(self.q, split=self.split),
            product=number,
            sites=(self.site,) if self.site else (),
            day_from=days.since,
            day_to=days.until,
            voices=(self.voice,) if self.voice else (),
            theme=find_theme(self.theme) if self.theme else "",
            undated=self.undated or None,
            counted=None if self.corrected else not self.left_out,
            corrected=self.corrected or None,
        )


@router.get("/reviews")
def reviews(page: Here, sent: Annotated[ReviewQuery, Query()], period: ShownPeriod) -> Response:
    """Show a part of the found reviews. Without a search, show the newest reviews of the default period."""
    context = page.context
    q, site, split = sent.q, sent.site, sent.split
    wanted = sent.find(page, period)
    words, number = wanted.words, wanted.product
    with context.store.read() as tx:
        found = search_reviews(tx, wanted, before=sent.before or None, most=_ROWS)
        chosen = [(number, get_name(tx, number))] if number else []
        category = get_category(tx, number) if number else None
    counted = context.read(("review counts", wanted), lambda tx: count_reviews(tx, wanted))
    names = context.read("product names", lambda tx: list_names(tx, _NAMES))
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
        sites=sorted(counted.by_site.keys() | context.catalog.sites.keys()),
        corrected=sent.corrected,
        theme=wanted.theme,
        themes=list_theme_names(category),
        name_theme=name_theme,
        left_out=sent.left_out,
        undated=sent.undated,
        searched=wanted != ReviewFilter(day_from=wanted.day_from, day_to=wanted.day_to, counted=True),
        counted=counted,
        is_partial=bool(words) and number is None and not wanted.theme,
        looked_at=LOOKED_AT,
        more=str(page.request.url.include_query_params(before=found.before).query) if found.before else "",
        charts=_draw(counted),
    )


def _draw(counted: ReviewCounts) -> list[tuple[str, Markup]]:
    """Return three charts, each with its title: reviews over time, reviews by voice, reviews by site."""
    names = {voice: translate(voice) for voice in Voice} | {NOT_JUDGED: translate("not judged")}
    by_voice = [(name, counted.by_voice[voice]) for voice, name in names.items() if counted.by_voice[voice]]
    over_time, by_time = _count_by_time(counted)
    lines = [
        charts.Line(name, [(datetime.combine(day, _NOON, UTC), n) for day, n in by_time[voice].items()])
        for voice, name in names.items()
        if voice in by_time
    ]
    title, by_site = translate("Reviews by voice"), translate("Reviews by site")
    return [
        (over_time, charts.lines(lines, over_time, width=720)),
        (title, charts.bars(by_voice, title, width=520)),
        (by_site, charts.bars(counted.by_site.most_common(_BARS), by_site, width=520)),
    ]


def _count_by_time(counted: ReviewCounts) -> tuple[str, dict[str, dict[date, int]]]:
    """Return the title of a chart, and the number of reviews by voice and day.

    If there are many days, reviews are counted by week.
    """
    days = [day for _, day in counted.by_day]
    if not days:
        return translate("Reviews by day"), {}
    step = 7 if (max(days) - min(days)).days >= _DAYS else 1
    first = min(days) - timedelta(days=min(days).weekday() if step == 7 else 0)
    buckets = [first + timedelta(days=n) for n in range(0, (max(days) - first).days + 1, step)]
    found = {voice: dict.fromkeys(buckets, 0) for voice in sorted({voice for voice, _ in counted.by_day})}
    for (voice, day), n in counted.by_day.items():
        found[voice][first + timedelta(days=(day - first).days // step * step)] += n
    return translate("Reviews by week" if step == 7 else "Reviews by day"), found


def words_of(text: str, *, split: bool) -> tuple[str, ...]:
    """Return the words that a review must contain: as the person separated them, or as the splitter does if `split`."""
    written = tuple(dict.fromkeys(text[:200].split()))[:_MOST_WORDS]
    if not split or not written:
        return written
    try:
        cut = [word for one in written for word in product_query(one).keywords]
    except InputError:
        return written
    return tuple(dict.fromkeys(cut))[:_MOST_WORDS]


ReviewNumber = Annotated[int, InPath(ge=1, le=MOST_ID)]


@router.get("/reviews/{number}")
def review(page: Here, number: ReviewNumber) -> Response:
    """Show a review with its origin and a form to correct it."""
    view = read_correctable(page, number)
    return page.html("review.html", one=view.review, view=view, voices=tuple(Voice))


def read_correctable(page: PageRequest, number: int) -> CorrectableView:
    """Return a review that a person may correct. Answers the request with 404 if it does not exist."""
    try:
        with page.context.store.read() as tx:
            return view_correctable(tx, number)
    except InputError:
        raise HTTPException(404, translate("There is no review {n}.", n=number)) from None


class CorrectionForm(BaseModel):
    """A form with a person's correction of a review.

    Attributes:
        voice: voice; empty to let the model decide.
        theme: ids of all themes that the review complains about; `theme_shown` has those that the page showed.
        not_product: numbers of products that the review is not about.
        copies: number of linked copies that the person agreed to correct.
        action: "undo" removes the correction.
    """

    voice: Voice | Literal[""] = ""
    theme: Annotated[list[Annotated[str, Field(max_length=60)]], Field(max_length=100)] = []
    theme_shown: Annotated[str, Field(max_length=4000)] = ""
    not_product: Annotated[list[Annotated[int, Field(ge=1, le=MOST_ID)]], Field(max_length=500)] = []
    hidden: bool = False
    because: Annotated[str, Field(max_length=500)] = ""
    copies: Annotated[int, Field(ge=0, le=MOST_ID)] = 0
    action: Literal["correct", "undo"] = "correct"

    def find_correction(self, present: Correction) -> Correction:
        """Return the correction that the form describes. Themes that the person did not change stay as in `present`."""
        if self.action == "undo":
            return Correction()
        are_shown = sorted(self.theme) == sorted(filter(None, self.theme_shown.split(",")))
        return Correction(
            voice=self.voice or None,
            themes=present.themes if are_shown else tuple(self.theme),
            hidden=self.hidden,
            not_products=tuple(self.not_product),
        )


@router.post("/reviews/{number}/correct")
@shown_on(review)
def correct(page: Here, number: ReviewNumber, sent: Annotated[CorrectionForm, Form()]) -> Response:
    """Correct a review and its linked copies, or remove the correction."""
    view = read_correctable(page, number)
    wanted = sent.find_correction(view.correction)
    store = page.context.store
    now = review_corrections.correct(store, number, wanted, page.who, sent.because, copies=sent.copies)
    said = translate("Review {n} is corrected: {correction}", n=number, correction=now.describe(wanted))
    return page.redirect_with(f"/reviews/{number}", Notice(said))
