"""Persons by their portraits: links that they share with a portrait, and texts that name who it shows.

If no element is called an author, because classes describe only looks, each text still has a portrait of its author
next to it, with the name as its alternative text, or in a link to the person's page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.reading.outline import Outline

_PORTRAIT = re.compile(
    r"avatar|touxiang|头像|user-?(?:head|pic|photo|face|ima?ge?)|(?:head|profile)[-_]?(?:pic|photo|ima?ge?s?)"
    r"|(?<![a-z])portraits?(?![a-z])",
    re.IGNORECASE,
)
_AROUND_NAME = re.compile(
    r"^(?:avatar|photo|picture|portrait|profile (?:picture|photo|image)) (?:of|for) "
    r"|(?:['’]s)? (?:avatar|photo|picture|portrait|profile (?:picture|photo|image))$|的?头像$",
    re.IGNORECASE,
)
_LONGEST_NAME, _LONGEST_CALLED, _LONGEST_SOURCE = 40, 80, 200
_NEAR, _LINK_ABOVE = 8, 12
_MOST = 2000


def find_pictured(page: Outline) -> frozenset[int]:
    """Return the elements that hold the name of a person next to a portrait, in linear time.

    Only the first 2000 portraits count.
    """
    found: set[int] = set()
    targets: set[str] = set()
    for element, called in islice(_portraits(page), _MOST):
        targets.add(_target(page, element))
        name = _AROUND_NAME.sub("", " ".join(called[:_LONGEST_CALLED].split())).lower()
        if 1 < len(name) <= _LONGEST_NAME:
            near = page.texts[(first := page.first_text[element]) : first + _NEAR]
            found.update(one.owner for one in near if one.text.strip().lower() == name)
    targets.discard("")
    for element, tag in enumerate(page.tags if targets else ()):
        names = tag == "a" and 0 < page.chars(element) <= _LONGEST_NAME
        if names and page.attributes[element].get("href", "") in targets:
            found.add(element)
            found.update(one.owner for one in page.texts[page.first_text[element] : page.last_text[element]])
    return frozenset(found)


def _portraits(page: Outline) -> Iterator[tuple[int, str]]:
    """Yield the portraits with their alternative texts."""
    for element, tag in enumerate(page.tags):
        if tag == "img":
            attributes = page.nodes[element].attributes
            source = (attributes.get("src") or "")[:_LONGEST_SOURCE]
            if _PORTRAIT.search(f"{attributes.get('class') or ''} {source}"):
                yield element, attributes.get("alt") or ""


def _target(page: Outline, element: int) -> str:
    """Return the target of the link around an image, or an empty text."""
    around = islice(page.above(element), _LINK_ABOVE)
    link = next((one for one in around if page.tags[one] == "a"), None)
    target = page.attributes[link].get("href", "") if link is not None else ""
    return "" if target.startswith(("#", "javascript:")) or target == "/" else target
