"""Pages of many voices without rules, read into reviews: the opening text, then the records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from statistics import median
from typing import NamedTuple

from tasks.domain.pages import PageRead, Review
from tasks.reading.dates import DATE
from tasks.reading.days import LONGEST_BYLINE, date_of, is_in_sentence, read_dates
from tasks.reading.density import dense_text
from tasks.reading.maintext import MainText, is_home, is_search, main_text, overlap
from tasks.reading.metadata import Metadata, is_goods
from tasks.reading.page import Page
from tasks.reading.people import signer
from tasks.reading.record_fields import states_change
from tasks.reading.repeated import HEADLINE_CHARS, width
from tasks.reading.site_text import is_site_text, strip_controls
from tasks.reading.threads import Opening, Thread, links_of, next_part, read_thread

_THERE, _MISSING = 0.5, 0.2
_BEGINNING, _END, _LAST_TEXTS = 200, 20, 20
# The least width of an article, and its least ratio to its readers' comments.
_ARTICLE, _ABOVE_COMMENTS = 600, 5
_FORUM = re.compile(
    r"[/.](?:bbs|clubs?|forums?|community|boards?|tieba|topics?|threads?|questions?|discuss(?:ions?)?|talk|answers?)[/.-]"
    r"|(?:show|view)(?:thread|topic)|[?&/](?:tid|topic)[=/]",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"schema\.org/(?:QAPage|Question|DiscussionForumPosting)|[\"'](?:QAPage|DiscussionForumPosting)[\"']"
)


def read_thread_page(whole: Page, now: datetime) -> PageRead | None:
    """Return a page's reviews in its order; None if it is no page of many voices.

    The one that opens the page has the key ``#0``, like the only text of a page, so it stays when replies come.
    Records have the id of their element, or their place.

    Args:
        now: aware; what relative dates count from.

    Raises:
        FetchError: TOO_LARGE, see `check_markup`.
    """
    thread = read_thread(whole.outline, now)
    thread = _drop_links(thread) if thread is not None else None
    if thread is None:
        return None
    found = main_text(whole)
    if (
        is_home(whole)
        or is_search(whole)
        or _is_article(thread, found)
        or thread.articles(found.metadata.title)
    ):
        return None
    goods = found.goods or (
        not found.metadata.article
        and found.date_text in {record.date_text for record in thread.records}
        and is_goods(whole.tree, dated=False)
    )
    opening = None if goods else _opening(thread, found, now)
    if opening is None and len(thread.records) < (1 if goods else 2):
        return None
    alone = opening is not None and _is_article_above(opening, thread, whole)
    if alone:
        thread = replace(thread, records=(), keys=())
    following = "" if alone else next_part(links_of(thread.page), whole.links)
    rows = [
        Row(key, one.text, one.author, one.date_text, one.title, one.rating)
        for one, key in zip(thread.records, thread.keys, strict=True)
    ]
    read = make_page(whole, found.metadata, opening, rows, following, now)
    return replace(read, confidence=found.confidence) if alone else read


class Row(NamedTuple):
    """A record: its own key or an empty text, its text, author, day as written, title and rating."""

    key: str
    text: str
    author: str
    date_text: str
    title: str = ""
    rating: float | None = None


def make_page(
    page: Page,
    metadata: Metadata,
    opening: Opening | None,
    rows: Sequence[Row],
    following: str,
    now: datetime,
) -> PageRead:
    """Make the reviews of a thread of the text that opens it and its records."""
    title = metadata.title
    dates = read_dates(
        [*([opening.date_text] if opening else ()), *(row.date_text for row in rows)], page.text, now
    )
    reviews: dict[str, Review] = {}
    if opening is not None:
        reviews["#0"] = Review(
            "#0", title, opening.text, opening.author, opening.date_text, dates.pop(0), None
        )
    for row, date in zip(rows, dates, strict=True):
        place = f"#{len(reviews)}"
        key = row.key if reviews else place
        if not key or key in reviews:
            key = place
        headline = row.title or ("" if reviews else title)
        reviews[key] = Review(key, headline, row.text, row.author, row.date_text, date, row.rating)
    named = sum(bool(row.author) for row in rows) / max(1, len(rows))
    return PageRead(metadata.page_title, tuple(reviews.values()), following, confidence=0.5 + 0.4 * named)


def _drop_links(thread: Thread) -> Thread | None:
    """Return a thread without records that are only a link, if these lead to different pages; None if all are."""
    page = thread.page
    targets: set[str] = set()
    kept: list[int] = []
    for place, record in enumerate(thread.records):
        end = page.ends[record.element]
        links = [one for one in range(record.element, end) if page.tags[one] == "a"]
        texts = {page.text_of(one): one for one in links}
        if record.text in texts:
            targets.add(page.attributes[texts[record.text]].get("href", ""))
        else:
            kept.append(place)
    if len(targets) < 2:
        return thread
    records = tuple(thread.records[place] for place in kept)
    return (
        replace(thread, records=records, keys=tuple(thread.keys[place] for place in kept)) if kept else None
    )


def _is_article_above(opening: Opening, thread: Thread, page: Page) -> bool:
    """Return True if an article opens a page: the records are its readers' comments, or teasers without a name."""
    if not any(record.author for record in thread.records):
        return True
    widths = median(width(record.text) for record in thread.records)
    long = width(opening.text) >= max(_ARTICLE, _ABOVE_COMMENTS * widths)
    return long and not (_FORUM.search(page.url) or _QUESTION.search(page.text))


def _is_article(thread: Thread, found: MainText) -> bool:
    """Return True if a record holds the text of an article by the page's JSON-LD: only its layout is a thread's."""
    return found.metadata.article and any(overlap(found.body, one.text) >= _THERE for one in thread.records)


def _opening(thread: Thread, found: MainText, now: datetime) -> Opening | None:
    """Return the text in front of the records; None if the first of them opens the page."""
    body, title = found.body, found.metadata.title
    apart = (
        bool(body) and not found.listing and overlap(body, thread.text) < _MISSING and not is_site_text(body)
    )
    elsewhere = apart and overlap(body[:_BEGINNING], thread.before) < _THERE
    apart = apart and not elsewhere
    description = found.metadata.description
    if not apart and description and overlap(description, thread.records[0].text) >= _THERE:
        return None  # the page describes its first record
    heading = thread.heading_end(title) if title else -1
    if not apart:
        body = _densest_before(thread, heading)
    if width(body) < HEADLINE_CHARS or overlap(body[:_BEGINNING], thread.before) < _THERE:
        return None
    if _is_byline(body, thread) or thread.is_notice(body):
        return None
    opening = Opening(
        body, *signer(thread.page, thread.page.first_text[thread.records[0].element], body, now)
    )
    text, last_day = _split_day(body, thread, now)
    if apart:
        author = _not_replying(found.author, thread, body) or _not_replying(opening.author, thread, body)
        author = "" if author == title else author
        date_text = found.metadata.date_text or opening.date_text or last_day or found.date_text
        moments = {record.date_text for record in thread.records if ":" in record.date_text}
        date_text = "" if date_text in moments and not opening.date_text else date_text
        return Opening(text, author, date_text)
    said = found.author if overlap(body, found.body) >= _THERE else found.metadata.author
    author = _not_replying(said, thread, body) or opening.author
    date_text = found.metadata.date_text or opening.date_text or last_day
    opening = Opening(text, "" if author == title else author, date_text)
    headed = heading >= 0 or (bool(title) and title in thread.before)
    about = bool(description) and overlap(description, body) >= _THERE
    sure = about if elsewhere else headed or (opening.author and opening.date_text)
    return opening if sure else None


def _split_day(body: str, thread: Thread, now: datetime) -> tuple[str, str]:
    """Return a text without the day and the controls at its end, and this day or that of its last change."""
    page, end = thread.page, thread.page.first_text[thread.records[0].element]
    date_text = ""
    for number in range(max(0, end - _LAST_TEXTS), end):
        day = page.texts[number].text.strip()
        if not page.dates[number] or is_in_sentence(day):
            continue
        if body.endswith(day) or states_change(day):
            body, date_text = body.removesuffix(day).rstrip(), date_of(page, number, now)
    return strip_controls(body), date_text


def _is_byline(body: str, thread: Thread) -> bool:
    """Return True for a line with the author and day of the first post, which is a record itself."""
    first = thread.records[0].author
    short = "\n" not in body and len(body) <= LONGEST_BYLINE
    return short and first != "" and first in body and DATE.search(body) is not None


def _not_replying(name: str, thread: Thread, body: str) -> str:
    """Return a name, or an empty text if its person replies, and it stands neither above the opening text nor in it."""
    above, found, _ = thread.before.partition(body[-_END:])
    replies = any(record.author == name for record in thread.records)
    return "" if replies and name not in (above if found else thread.before) else name


def _densest_before(thread: Thread, heading: int) -> str:
    """Return the densest text between the page's heading, or its top, and its first record, or an empty text.

    Args:
        heading: number of the first text below it; -1 if there is none.
    """
    page = thread.page
    between = page.join_texts(page.texts[max(0, heading) : page.first_text[thread.records[0].element]])
    dense = dense_text(page, end=page.first_text[min(thread.spans)[0]])
    if (
        dense is not None
        and dense.sentences
        and overlap(dense.text, between) >= _THERE
        and not is_site_text(dense.text)
    ):
        return dense.text
    return ""
