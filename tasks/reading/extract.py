"""Read pages into reviews: by the catalog's rules, by marked reviews, as threads, or as one main text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from importlib.util import find_spec

from splitter.catalog.rules import PageRules
from splitter.errors import Message

from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import PageRead
from tasks.reading.interstitials import raise_if_blocked
from tasks.reading.json_results import JsonRecords
from tasks.reading.json_reviews import find_marked_reviews, find_script_reviews
from tasks.reading.links import Links, links_in
from tasks.reading.lists import is_feed, read_feed
from tasks.reading.maintext import overlap, read_main_text
from tasks.reading.markup import first, page_text, parse, text_of
from tasks.reading.page import Page
from tasks.reading.records import OTHER_FIELDS, Records, make_reviews, reviews_of
from tasks.reading.thread_pages import read_thread_page

# Share of the marked text that the tree must also show, with this many times as much text in all; or all of it.
_SAME, _MORE, _ALL = 0.3, 1.1, 0.9
ThreadReader = Callable[[Page, datetime], PageRead | None]
QuickReader = Callable[[str, str, PageRules, datetime, str], PageRead | None]


def _quick_reader() -> QuickReader | None:
    """Return the reader that uses turbohtml; `None` if it is not installed."""
    if find_spec("turbohtml") is None:
        return None
    from tasks.reading.quick_records import read_quickly

    return read_quickly


_read_quickly = _quick_reader()


def read_page(
    text: str,
    url: str,
    rules: PageRules,
    *,
    now: datetime,
    read_thread: ThreadReader = read_thread_page,
    encoding: str = "utf-8",
) -> PageRead:
    """Read a page into its reviews; records without a body are dropped.

    The patterns of a refusal are searched only if there is no review: a review may well speak of a captcha.

    Args:
        text: of the answer, decoded.
        url: its final address.
        now: aware; what relative dates (3小时前) count from.
        read_thread: reads a page without rules as a thread; `None` if it is none.
        encoding: Python's name of the answer's encoding, in which its links are asked.

    Raises:
        FetchError: the refusal's class, or BAD_RULE with the number of matches if no review is found.
    """
    if rules.format == "json":
        links = Links(url, encoding)
        return read_feed(text, links, now) if is_feed(text) else _read_json(text, links, rules, now)
    if rules.main_text:
        page = Page(text, url, encoding)
        return _read_records(page, now, read_thread) or read_main_text(page, rules, now)
    quick = _read_quickly(text, url, rules, now, encoding) if _read_quickly is not None else None
    if quick is not None:
        return quick
    tree = parse(text)
    records = Records(tree, rules.review)
    reviews = reviews_of(records, rules, now)
    if not reviews:
        shown = page_text(tree)
        raise_if_blocked(shown, url, rules.blocked)
        raise FetchError(
            ErrorClass.BAD_RULE,
            Message(
                "review {review!r} matches {n}, body {body!r} is filled in none of them; "
                "the page says: {shown}",
                review=rules.review,
                n=len(records.nodes),
                body=rules.body,
                shown=shown[:120],
            ),
        )
    title = first(tree, rules.page_title) if rules.page_title else None
    link = first(tree, rules.next) if rules.next else None
    reference = (link.attrs.get("href") or "").strip() if link is not None else ""
    following = links_in(tree, url, encoding).next_address(reference)
    return PageRead(text_of(title) if title is not None else "", reviews, following)


def _read_json(text: str, links: Links, rules: PageRules, now: datetime) -> PageRead:
    answer = JsonRecords(text, links.url, rules, rules.review)
    columns = [answer.texts(getattr(rules, name)) for name in ("body", *OTHER_FIELDS)]
    reviews = make_reviews(zip(*columns, strict=True), now)
    if not reviews:
        answer.raise_if_blocked()
        raise FetchError(
            ErrorClass.BAD_RULE,
            Message(
                "review {review!r} matches {n} objects, body {body!r} is filled in none of them; "
                "it says: {begins}",
                review=rules.review,
                n=len(answer.records),
                body=rules.body,
                begins=answer.begins,
            ),
        )
    return PageRead(answer.first(rules.page_title), reviews, links.next_address(answer.first(rules.next)))


def _read_records(page: Page, now: datetime, read_thread: ThreadReader) -> PageRead | None:
    """Return the reviews that a page marks, or those of a thread; `None` for a page of one text.

    Marked reviews come first, unless the page's tree shows them and more of them: many pages mark only the question,
    or the first answers.
    """
    if is_feed(page.text):
        return None
    marked = _read_marked(page, now)
    rated = marked is not None and any(review.rating is not None for review in marked.reviews)
    if marked is not None and rated and any(review.date_text for review in marked.reviews):
        return marked
    shown = read_thread(page, now)
    if marked is None and shown is None and "<script" in page.text:
        said = find_script_reviews(page.tree, now)
        return PageRead(page.metadata.title, said) if len(said) > 1 else None
    if marked is None or shown is None:
        return marked or shown
    return shown if not rated and _tells_more(shown, marked) else _complete(marked, shown)


def _complete(marked: PageRead, shown: PageRead) -> PageRead:
    """Return marked reviews with the author and day that the page shows beside the same text, if they have none."""
    beside = {"".join(review.body.split()): review for review in shown.reviews}
    reviews = []
    for review in marked.reviews:
        other = beside.get("".join(review.body.split()))
        if other is not None and not review.date_text:
            review = review._replace(date_text=other.date_text, date=other.date)
        if other is not None and not review.author:
            review = review._replace(author=other.author)
        reviews.append(review)
    return replace(marked, reviews=tuple(reviews))


def _tells_more(shown: PageRead, marked: PageRead) -> bool:
    """Whether what a page shows is what it marks, and more of it."""
    said, due = ("\n".join(review.body for review in page.reviews) for page in (shown, marked))
    if len(shown.reviews) > len(marked.reviews):
        signed = {(review.author, review.date) for review in shown.reviews}
        same = sum((review.author, review.date) in signed for review in marked.reviews)
        if overlap(due, said) >= _ALL or same >= _ALL * len(marked.reviews):
            return True
    if len(shown.reviews) < len(marked.reviews) or len(said) < _MORE * len(due):
        return False
    authors = {review.author for review in shown.reviews} & {review.author for review in marked.reviews} - {
        ""
    }
    return overlap(due, said) >= _SAME or bool(authors)


def _read_marked(page: Page, now: datetime) -> PageRead | None:
    """Return the reviews that a page marks by schema.org, or `None`."""
    if "schema.org" not in page.text and "data-vocabulary.org" not in page.text:
        return None
    reviews = find_marked_reviews(page.tree, now)
    return PageRead(page.metadata.title, reviews) if reviews else None
