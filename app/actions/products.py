"""Check products that people enter. This module does not write to the store."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from splitter.errors import InputError, Message
from splitter.keywords import product_query
from tasks.store.content.products import NewProduct

MOST_PAGES = 1000
MOST_PRIORITY = 1_000_000
_SHORTEST_RECRAWL = timedelta(minutes=1)
_PERIOD = re.compile(r"(\d{1,5})\s*([mhdw])", re.IGNORECASE)
_NO_NAMES = {
    Message("a number or a price"): re.compile(r"(?:[¥￥$]\s*+)?[\d.,]++\s*+(?:元|%|rmb)?", re.IGNORECASE),
    Message("an address"): re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE),
    Message("a day or a time"): re.compile(
        r"\d{2,4}[-/.年]\d{1,2}(?:[-/.月]\d{1,2}日?)?(?:[ T]\d{1,2}:\d{2}(?::\d{2})?)?"
    ),
}
UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60}
"""Seconds of the units of a period."""


@dataclass(frozen=True, slots=True)
class RefusedProduct:
    """A product that a person entered and that can't be added, with the reason.

    Attributes:
        name: the name as it was written.
        line: line of the file, from 1; `None` if the name is not from a file.
        keywords: always empty.
    """

    name: str
    why: Message
    line: int | None = None
    keywords: tuple[str, ...] = ()


def new_product(
    name: str,
    *,
    keywords: Sequence[str] = (),
    aliases: Sequence[str] = (),
    priority: int = 0,
    pages: int | None = None,
    recrawl: timedelta | None = None,
    sites: tuple[str, ...] | None = None,
) -> NewProduct:
    """Return a product. Without `keywords`, they are derived from the name.

    Raises:
        InputError: the name or an alias has no words to search for.
    """
    for text in (name, *aliases, *keywords):
        if any(unicodedata.category(char) in ("Cc", "Cs") for char in text.strip()):
            raise InputError(
                "{text!r} holds a control character or a broken one; write plain text", text=text[:40]
            )
    query = product_query(name, keywords=keywords, aliases=aliases)
    return NewProduct(
        name=query.product,
        keywords=query.keywords,
        own_keywords=query.keywords if keywords else (),
        aliases=tuple(alias.strip() for alias in aliases),
        alias_keywords=query.aliases,
        priority=priority,
        pages=pages,
        recrawl_every=recrawl,
        category=query.category,
        sites=sites,
    )


def new_products(names: Iterable[str], **options: Any) -> list[NewProduct | RefusedProduct]:
    """Return for each name either its product, made by `new_product` with these options, or its refusal."""
    products: list[NewProduct | RefusedProduct] = []
    for name in names:
        try:
            products.append(new_product(name, **options))
        except InputError as error:
            products.append(RefusedProduct(name, error.message))
    return products


def period(text: str) -> timedelta:
    """Parse a period such as 7d, 12h, 30m or 2w. Raises InputError."""
    match = _PERIOD.fullmatch(text.strip())
    if match is None:
        raise InputError("{text!r} is no period; write a number and m, h, d or w: 12h, 7d", text=text)
    value = timedelta(seconds=UNITS[match[2].lower()] * int(match[1]))
    if value < _SHORTEST_RECRAWL:
        raise InputError("{text!r} is too short a period; the shortest is 1m", text=text)
    return value


def not_a_name(name: str) -> Message | None:
    """Return what a text is (a number, an address ...) if it can't be a product's name; `None` if it may be a name."""
    for said, pattern in _NO_NAMES.items():
        if pattern.fullmatch(name):
            return said
    return None


def whole_number(text: str, column: str, lowest: int, highest: int) -> int | None:
    """Return the whole number in a text; `None` if the text is empty.

    Raises:
        InputError: the text is not a number from `lowest` to `highest`. The message names `column`.
    """
    if not text.strip():
        return None
    try:
        value = int(text)
    except ValueError:
        raise InputError("{column} {text!r} is no whole number", column=column, text=text[:40]) from None
    if not lowest <= value <= highest:
        raise InputError(
            "{column} {value} is not between {lowest} and {highest}",
            column=column,
            value=value,
            lowest=lowest,
            highest=highest,
        )
    return value
