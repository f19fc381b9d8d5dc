"""Reviews that a page marks as such by schema.org: JSON-LD scripts first, then microdata.

Types: https://schema.org/Review and those below it, Comment, Answer, and the postings that threads begin with; and the
Review of data-vocabulary.org, which was before it and calls its parts otherwise. What a
publisher says about a product in its own voice (Product.description) is no review.
"""

from __future__ import annotations

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
_BODIES = ("reviewBody", "text", "articleBody", "description")
_DATES = ("datePublished", "dateCreated", "dateModified")
_TITLES = ("headline", "name")
_ITEM = '[itemscope][itemtype*="schema.org/{}" i]'
_OLDER = '[itemscope][itemtype$="data-vocabulary.org/Review" i]'
_ITEMS = '[itemtype*="schema.org/" i], ' + _OLDER
_FEW = 3  # of the answers scripts often hold the best alone
_MICRODATA = tuple(
    PageRules(
        review=", ".join(items),
        id="@id",
        title='[itemprop="headline"] | [itemprop="name"]@content',
        body=" | ".join(f'[itemprop="{name}"]{value}' for value in ("", "@content") for name in _BODIES),
        author='[itemprop="author"] [itemprop="name"] | [itemprop="author"] [itemprop="name"]@content'
        ' | [itemprop="author"]@content | [itemprop="author"]'
        ' | [itemprop="reviewer"]@content | [itemprop="reviewer"]',
        date=" | ".join(
            f'[itemprop="{name}"]{value}'
            for name in (*_DATES, "dtreviewed")
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


def structured_reviews(tree: LexborHTMLParser, now: datetime) -> tuple[Review, ...]:
    """The reviews of a whole page (with its scripts) by its structured data; empty where it has none.

    Reviews proper come before posts and comments: a page has one kind or the other.

    Args:
        now: aware; what relative dates count from.
    """
    things = list(json_ld_things(tree))
    # Comments under an article are not what it says, and answers of a shop's questions are the shop's own.
    kinds = (_REVIEW,) if any(_is(thing, _ONE_TEXT) for thing in things) else (_REVIEW, _POST)
    scripted: tuple[Review, ...] = ()
    for kind in kinds:
        marked = (thing for thing in things if _is(thing, kind))
        scripted = scripted or _numbered(_of_thing(thing, now) for thing in marked)
    if len(scripted) > _FEW or not tree.css_matches(_ITEMS):
        return scripted
    for rules in _MICRODATA:
        if reviews := reviews_of(Records(tree, rules.review), rules, now):
            if len(reviews) <= len(scripted):
                break
            return tuple(one._replace(title="") if one.title == one.author else one for one in reviews)
    return scripted


def _is(thing: Mapping[str, Any], kind: re.Pattern[str]) -> bool:
    types = thing.get("@type")
    return any(
        kind.search(one) for one in (types if isinstance(types, list) else [types]) if isinstance(one, str)
    )


def _of_thing(thing: Mapping[str, Any], now: datetime) -> Review:
    rating = thing.get("reviewRating")
    value = rating.get("ratingValue") if isinstance(rating, dict) else rating
    date = _first(thing, _DATES)
    key = thing.get("@id")
    return Review(
        key if isinstance(key, str) and len(key) <= LONGEST_ID else "",
        _first(thing, _TITLES),
        next((text for name in _BODIES if (text := plain_lines(thing.get(name)))), ""),
        _named(thing.get("author")),
        date,
        read_date(date, now),
        rating_of(str(value)) if isinstance(value, str | int | float) else None,
    )


def _first(thing: Mapping[str, Any], names: Iterable[str]) -> str:
    return next((text for name in names if (text := plain_string(thing.get(name)))), "")


def _named(author: Any) -> str:
    first = author[0] if isinstance(author, list) and author else author
    return plain_string(first.get("name") if isinstance(first, dict) else first)


def _numbered(reviews: Iterator[Review]) -> tuple[Review, ...]:
    """Those with a body, each once; who has no id of its own gets its place."""
    taken: dict[str, Review] = {}
    known: set[tuple[str, str, str]] = set()
    for review in reviews:
        content = (review.author, review.date_text, review.body)
        if not review.body or content in known:  # products repeat their reviews in each of their offers
            continue
        known.add(content)
        key = review.key if review.key and review.key not in taken else f"#{len(taken)}"
        taken[key] = review._replace(key=key)
        if len(taken) == MOST_RECORDS:
            break
    return tuple(taken.values())
