"""Reviews that a page states as data: marked by schema.org (JSON-LD, microdata), or in the JSON of its scripts.

Types: https://schema.org/Review and those below it, Comment, Answer, and the postings that threads begin with; and the
older Review of data-vocabulary.org. A publisher's own description of a product (Product.description) is no review. In
other scripts only a plain list of comments counts: one under a name like comments, whose entries have a text with an
author or a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from selectolax.lexbor import LexborHTMLParser
from splitter.catalog.rules import PageRules

from tasks.domain.pages import Review
from tasks.reading.dates import read_date
from tasks.reading.metadata import json_ld_things, plain_lines, plain_string
from tasks.reading.records import LONGEST_ID, MOST_RECORDS, Records, rating_of, reviews_of

_REVIEW = re.compile(r"(?:^|/)(?:User|Employer|Critic|Recommendation)?Review$")
_POST = re.compile(r"(?:^|/)(?:Comment|Answer|DiscussionForumPosting|SocialMediaPosting)$")
_ONE_TEXT = re.compile(r"(?:^|/)(?:\w*Article|FAQPage)$")
_FEW = 3  # of the answers scripts often hold the best alone

# Keys of an object in JSON-LD or in a script, in small letters without strokes, the surest first.
_BODIES = (
    "reviewbody", "content", "text", "body", "message", "articlebody", "description", "comment", "commentcontent",
    "contenttext", "ratecontent", "rawtext",
)  # fmt: skip
_TITLES = ("headline", "name")
_PEOPLE = ("author", "user", "member", "userinfo", "creator", "owner", "commenter")
_NAMES = (
    "nickname",
    "username",
    "displayname",
    "screenname",
    "name",
    "nick",
    "authorname",
    "usernickname",
    "uname",
)
_DATES = (
    "datepublished", "datecreated", "datemodified", "createdat", "createtime", "creationtime", "publishtime", "pubtime",
    "ctime", "date", "time", "addtime", "commenttime", "ratedate",
)  # fmt: skip
_IDS = ("@id", "id", "rpid", "commentid", "cid", "rid", "reviewid", "replyid", "guid")
_RATINGS = ("reviewrating", "score", "rating", "star", "stars", "rate")
_UNDER = ("replies", "children", "subcomments", "childcomments")
# Properties of an element in microdata.
_BODY_PROPERTIES = ("reviewBody", "text", "articleBody", "description")
_DATE_PROPERTIES = ("datePublished", "dateCreated", "dateModified", "dtreviewed")

_ITEM = '[itemscope][itemtype*="schema.org/{}" i]'
_OLDER = '[itemscope][itemtype$="data-vocabulary.org/Review" i]'
_ITEMS = '[itemtype*="schema.org/" i], ' + _OLDER
_MICRODATA = tuple(
    PageRules(
        review=", ".join(items),
        id="@id",
        title='[itemprop="headline"] | [itemprop="headline"]@content | [itemprop="name"]@content',
        body=" | ".join(
            f'[itemprop="{name}"]{value}' for value in ("", "@content") for name in _BODY_PROPERTIES
        ),
        author='[itemprop="author"] [itemprop="name"] | [itemprop="author"] [itemprop="name"]@content'
        ' | [itemprop="author"]@content | [itemprop="author"]'
        ' | [itemprop="reviewer"]@content | [itemprop="reviewer"]',
        date=" | ".join(
            f'[itemprop="{name}"]{value}'
            for name in _DATE_PROPERTIES
            for value in ("@content", "@datetime", "")
        ),
        rating='[itemprop="ratingValue"]@content | [itemprop="ratingValue"]'
        ' | [itemprop="rating"]@content | [itemprop="rating"]',
    )
    for items in (
        [*map(_ITEM.format, ("Review", "UserReview", "CriticReview")), _OLDER],
        map(_ITEM.format, ("Comment", "Answer", "DiscussionForumPosting")),
    )
)

_LIST_WORDS = ("comment", "reply", "replies", "review", "answer", "ratelist", "evaluat")
_LIST = re.compile(rf"{'|'.join(_LIST_WORDS)}|\bposts$|feedbacks?$", re.IGNORECASE)
_START = re.compile(r"(?:=|JSON\.parse\()\s*(?=[\[{])")
_MOST_SCRIPTS, _MOST_JSON_CHARS, _MOST_STARTS = 60, 2_000_000, 4
_MOST_VALUES, _MOST_DEEP = 50_000, 14
_LEAST_SHARE = 0.8
_LONGEST_NAME = 80


def find_marked_reviews(tree: LexborHTMLParser, now: datetime) -> tuple[Review, ...]:
    """Return the reviews that a whole page (with its scripts) marks by schema.org.

    Reviews proper come before posts and comments: a page has one kind or the other.

    Args:
        now: aware; what relative dates count from.
    """
    things = list(json_ld_things(tree))
    # Comments under an article are not its text, and the shop itself answers questions about its goods.
    kinds = (_REVIEW,) if any(_is(thing, _ONE_TEXT) for thing in things) else (_REVIEW, _POST)
    scripted: tuple[Review, ...] = ()
    for kind in kinds:
        scripted = scripted or _number(review_of(thing, now) for thing in things if _is(thing, kind))
    if len(scripted) > _FEW or not tree.css_matches(_ITEMS):
        return scripted
    for rules in _MICRODATA:
        if reviews := reviews_of(Records(tree, rules.review), rules, now):
            if len(reviews) <= len(scripted):
                break
            return tuple(one._replace(title="") if one.title == one.author else one for one in reviews)
    return scripted


def find_script_reviews(tree: LexborHTMLParser, now: datetime) -> tuple[Review, ...]:
    """Return the longest list of comments in the scripts of a whole page.

    Args:
        now: aware; what relative dates count from.
    """
    found = (_comments(entries, now) for name, entries in _lists(tree) if _LIST.search(name))
    return max(found, key=lambda reviews: sum(len(review.body) for review in reviews), default=())


def review_of(thing: Mapping[str, Any], now: datetime) -> Review | None:
    """Read an object of JSON-LD or of a script; None if it has no text."""
    marked, thing = "@type" in thing, _plain_keys(thing)
    body = next((text for name in _BODIES if (text := _text_of(thing.get(name)))), "")
    if not body:
        return None
    person = next((thing[name] for name in _PEOPLE if thing.get(name)), None)
    if isinstance(person, list):
        person = person[0]
    named = _plain_keys(person) if isinstance(person, dict) else {} if marked else thing
    rating = next((thing[name] for name in _RATINGS if thing.get(name) is not None), None)
    if isinstance(rating, dict):
        rating = rating.get("ratingValue")
    key, date_text = _first(thing, _IDS), _first(thing, _DATES)
    return Review(
        key=key if len(key) <= LONGEST_ID else "",
        title=_first(thing, _TITLES) if marked else "",
        body=body,
        author=plain_string(person) or _first(named, _NAMES),
        date_text=date_text,
        date=read_date(date_text, now),
        rating=rating_of(str(rating)) if isinstance(rating, str | int | float) else None,
    )


def _plain_keys(thing: Mapping[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "").lower(): value for key, value in thing.items()}


def _is(thing: Mapping[str, Any], kind: re.Pattern[str]) -> bool:
    types = thing.get("@type")
    every = types if isinstance(types, list) else [types]
    return any(kind.search(one) for one in every if isinstance(one, str))


def _first(thing: Mapping[str, Any], names: Iterable[str]) -> str:
    values = (thing.get(name) for name in names)
    texts = (plain_string(str(value)) for value in values if value and isinstance(value, str | int))
    return next(filter(None, texts), "")


def _text_of(value: Any) -> str:
    """Return a text, or the one of an object that holds it next to its pictures and mentions."""
    if isinstance(value, dict):
        inner = _plain_keys(value)
        value = next((inner[name] for name in _BODIES if isinstance(inner.get(name), str)), "")
    return plain_lines(value)


def _number(reviews: Iterable[Review | None]) -> tuple[Review, ...]:
    """Return each review once, keyed by its own id or else its place."""
    taken: dict[str, Review] = {}
    known: set[tuple[str, str, str]] = set()
    for review in reviews:
        # Products repeat their reviews in each of their offers.
        if review is None or (content := (review.author, review.date_text, review.body)) in known:
            continue
        known.add(content)
        key = review.key if review.key and review.key not in taken else f"#{len(taken)}"
        taken[key] = review._replace(key=key)
        if len(taken) == MOST_RECORDS:
            break
    return tuple(taken.values())


def _comments(entries: list[Any], now: datetime) -> tuple[Review, ...]:
    """Read a list of comments and the replies in them; empty if the list is something else."""
    things = [entry for entry in entries[:MOST_RECORDS] if isinstance(entry, dict)]
    if not things or sum(_comment(thing, now) is not None for thing in things) < _LEAST_SHARE * len(things):
        return ()
    return _number(_comment(one, now) for thing in things for one in (thing, *_under(thing)))


def _comment(thing: Mapping[str, Any], now: datetime) -> Review | None:
    review = review_of(thing, now)
    return review if review and (review.author or review.date) else None


def _under(thing: Mapping[str, Any]) -> list[dict[str, Any]]:
    plain = _plain_keys(thing)
    inner: list[Any] = next((plain[name] for name in _UNDER if isinstance(plain.get(name), list)), [])
    return [one for one in inner if isinstance(one, dict)]


def _lists(tree: LexborHTMLParser) -> Iterator[tuple[str, list[Any]]]:
    """Yield the lists in a page's scripts with the name of each, up to some limits."""
    left = _MOST_JSON_CHARS
    for script in tree.css("script:not([src])")[:_MOST_SCRIPTS]:
        if (script.attributes.get("type") or "") == "application/ld+json":
            continue
        source = script.text()
        left -= len(source)
        if left < 0:
            return
        plain = source.lower()  # plain words are found faster than a pattern
        if any(word in plain for word in _LIST_WORDS):
            for value in _values(source):
                yield from _inner_lists(value)


def _values(source: str) -> Iterator[Any]:
    """Yield the JSON values of a script: the whole of it, or what it assigns."""
    decoder = json.JSONDecoder(strict=False)
    end = 0
    whole = source.lstrip()[:1] in ("{", "[")
    starts = [0] if whole else [match.end() for match in _START.finditer(source)][:_MOST_STARTS]
    for start in starts:
        if start < end:
            continue
        blanks = len(source[start:]) - len(source[start:].lstrip())
        try:
            value, end = decoder.raw_decode(source, start + blanks)
        except (ValueError, RecursionError):
            continue
        yield value


def _inner_lists(value: Any) -> Iterator[tuple[str, list[Any]]]:
    stack: list[tuple[str, Any, int]] = [("", value, 0)]
    for _ in range(_MOST_VALUES):
        if not stack:
            return
        name, one, depth = stack.pop()
        if isinstance(one, list):
            yield name, one
        if depth == _MOST_DEEP:
            continue
        for key, item in one.items() if isinstance(one, dict) else (("", item) for item in one):
            if isinstance(item, dict | list):
                stack.append((f"{name}.{key}"[-_LONGEST_NAME:], item, depth + 1))
