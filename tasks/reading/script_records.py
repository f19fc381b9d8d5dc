"""Comments that a page holds as JSON in its scripts, as pages do that are drawn by the browser.

Only what is plainly a list of them: it stands under a name like comments, and its entries have a text with an author
or a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from tasks.domain.pages import Review
from tasks.reading.dates import read_date
from tasks.reading.metadata import plain_lines, plain_string
from tasks.reading.records import LONGEST_ID, MOST_RECORDS, rating_of

_MOST_SCRIPTS, _MOST_JSON_CHARS, _MOST_STARTS = 60, 2_000_000, 4
_MOST_VALUES, _MOST_DEEP = 50_000, 14
_LIST = re.compile(
    r"comment|repl(?:y|ies)|review|answer|\bposts$|ratelist|feedbacks?$|evaluat", re.IGNORECASE
)
_START = re.compile(r"(?:=|JSON\.parse\()\s*(?=[\[{])")
_TEXTS = (
    "content",
    "text",
    "body",
    "message",
    "comment",
    "commentContent",
    "contentText",
    "rateContent",
    "reviewBody",
    "raw_text",
)
_PEOPLE = ("author", "user", "member", "userInfo", "user_info", "creator", "owner", "commenter")
_NAMES = (
    "nickname",
    "nickName",
    "nick_name",
    "userName",
    "username",
    "user_name",
    "displayName",
    "display_name",
    "screen_name",
    "name",
    "nick",
    "authorName",
    "author_name",
    "userNickname",
    "uname",
)
_DATES = (
    "createdAt",
    "created_at",
    "createTime",
    "create_time",
    "publishTime",
    "publish_time",
    "pubTime",
    "creationTime",
    "ctime",
    "dateCreated",
    "datePublished",
    "date",
    "time",
    "addTime",
    "commentTime",
    "rateDate",
)
_IDS = ("id", "rpid", "commentId", "comment_id", "cid", "rid", "reviewId", "replyId", "_id", "guid")
_RATINGS = ("score", "rating", "star", "stars", "rate")
_UNDER = ("replies", "children", "subComments", "sub_comments", "childComments")
_LEAST_SHARE = 0.8
_LONGEST_NAME = 80


def script_reviews(tree: LexborHTMLParser, now: datetime) -> tuple[Review, ...]:
    """The longest list of comments in a page's scripts; empty where none is one.

    Args:
        tree: of the whole page, with its scripts.
        now: aware; what relative dates count from.
    """
    best: tuple[Review, ...] = ()
    longest = 0
    for name, entries in _lists(tree):
        if not _LIST.search(name):
            continue
        reviews = _of_entries(entries, now)
        chars = sum(len(review.body) for review in reviews)
        if chars > longest:
            best, longest = reviews, chars
    return best


def _lists(tree: LexborHTMLParser) -> Iterator[tuple[str, list[Any]]]:
    left = _MOST_JSON_CHARS
    for script in tree.css("script:not([src])")[:_MOST_SCRIPTS]:
        if (script.attributes.get("type") or "") == "application/ld+json":
            continue
        source = script.text()
        left -= len(source)
        if left < 0:
            return
        if _LIST.search(source):
            for value in _values(source):
                yield from _inner_lists(value)


def _values(source: str) -> Iterator[Any]:
    """The JSON values of a script: the whole of it, or what it assigns."""
    decoder = json.JSONDecoder(strict=False)
    end = 0
    starts = (
        [0]
        if source.lstrip()[:1] in ("{", "[")
        else [match.end() for match in _START.finditer(source)][:_MOST_STARTS]
    )
    for start in starts:
        if start < end:
            continue
        try:
            value, end = decoder.raw_decode(
                source, start + len(source[start:]) - len(source[start:].lstrip())
            )
        except (ValueError, RecursionError):
            continue
        yield value


def _inner_lists(value: Any) -> Iterator[tuple[str, list[Any]]]:
    """The lists in a value with the name each stands under, as far as the limits go."""
    stack: list[tuple[str, Any, int]] = [("", value, 0)]
    for _ in range(_MOST_VALUES):
        if not stack:
            return
        name, one, depth = stack.pop()
        if isinstance(one, list):
            yield name, one
        if depth == _MOST_DEEP:
            continue
        under = one.items() if isinstance(one, dict) else (("", item) for item in one)
        for key, item in under:
            if isinstance(item, dict | list):
                stack.append((f"{name}.{key}"[-_LONGEST_NAME:], item, depth + 1))


def _of_entries(entries: list[Any], now: datetime) -> tuple[Review, ...]:
    things = [entry for entry in entries[:MOST_RECORDS] if isinstance(entry, dict)]
    read = [review for thing in things if (review := _of_thing(thing, now)) is not None]
    if not read or len(read) < _LEAST_SHARE * len(things):
        return ()
    reviews: dict[str, Review] = {}
    for thing in things:
        for one in (thing, *_under(thing)):
            review = _of_thing(one, now)
            if review is not None and len(reviews) < MOST_RECORDS:
                key = review.key if review.key and review.key not in reviews else f"#{len(reviews)}"
                reviews[key] = review._replace(key=key)
    return tuple(reviews.values())


def _under(thing: Mapping[str, Any]) -> list[dict[str, Any]]:
    inner: list[Any] = next((thing[name] for name in _UNDER if isinstance(thing.get(name), list)), [])
    return [one for one in inner if isinstance(one, dict)]


def _text_of(value: Any) -> str:
    """A text, or that of an object that holds it beside its pictures and mentions."""
    if isinstance(value, dict):
        value = next((value[name] for name in _TEXTS if isinstance(value.get(name), str)), "")
    return plain_lines(value)


def _of_thing(thing: Mapping[str, Any], now: datetime) -> Review | None:
    """A comment; None for what has no text, or neither an author nor a time."""
    body = next((text for name in _TEXTS if (text := _text_of(thing.get(name)))), "")
    person = next((thing[name] for name in _PEOPLE if thing.get(name)), None)
    named = person if isinstance(person, dict) else thing
    author = plain_string(person) or next(
        (text for name in _NAMES if (text := plain_string(named.get(name)))), ""
    )
    date_text = next(
        (str(thing[name]) for name in _DATES if isinstance(thing.get(name), str | int) and thing[name]), ""
    )
    date = read_date(date_text, now)
    if not body or not (author or date):
        return None
    key = next(
        (str(thing[name]) for name in _IDS if isinstance(thing.get(name), str | int) and thing[name]), ""
    )
    rating = next((thing[name] for name in _RATINGS if isinstance(thing.get(name), int | float)), None)
    return Review(
        key if len(key) <= LONGEST_ID else "", "", body, author, date_text, date,
        rating_of(str(rating)) if rating is not None else None,
    )  # fmt: skip
