"""Simple CSS selectors turned round: from a selector to the element it would match.

Understood are tags, ids, classes, attributes (``[name]``, ``=``, ``~=``, ``^=``, ``$=``, ``*=``), ``:nth-child(n)`` and
``:first-child``, descendants, children and following siblings. Of alternatives ("a, b") the first is taken;
``:last-child`` and ``:last-of-type`` hold by themselves where an element is made once; others are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_TOKEN = re.compile(
    r"(?P<space>\s*[>+~]\s*|\s+)|(?P<tag>[A-Za-z][\w-]*|\*)|\#(?P<id>[\w-]+)|\.(?P<cls>[\w-]+)"
    r"|\[\s*(?P<name>[\w:-]+)\s*(?:(?P<op>[~^$*|]?=)\s*(?P<value>\"[^\"]*\"|'[^']*'|[^\]\s]*)\s*i?)?\s*\]"
    r"|:(?P<pseudo>[\w-]+)(?:\((?P<argument>[^()]*)\))?"
)
_HOLDS = frozenset({"last-child", "last-of-type", "first-of-type", "only-child", "not", "nth-last-child"})


class NotSimple(ValueError):
    """A selector that no element is made from."""


@dataclass(frozen=True, slots=True)
class Compound:
    """One element of a selector.

    Attributes:
        tag: empty: any.
        classes, attributes: what it must have; the id is an attribute.
        place: its place among its parent's children, from 1; 0: anywhere.
        beside: it follows the element before it as its sibling, else it stands inside.
    """

    tag: str
    classes: tuple[str, ...]
    attributes: tuple[tuple[str, str], ...]
    place: int = 0
    beside: bool = False

    @property
    def weight(self) -> int:
        """How much it asks of an element."""
        return bool(self.tag) + len(self.classes) + len(self.attributes) + bool(self.place)


@lru_cache(maxsize=1024)
def compounds_of(selector: str) -> tuple[Compound, ...]:
    """The elements of a selector, outermost first. Raises NotSimple."""
    text = _first_alternative(selector).strip()
    found: list[Compound] = []
    tag, classes, attributes, place = "", [], [], 0  # type: tuple[str, list[str], list[tuple[str, str]], int]
    beside, at = False, 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise NotSimple(f"{selector!r} at {text[at : at + 10]!r}")
        at = token.end()
        if token["space"] is not None:
            found.append(Compound(tag, tuple(classes), tuple(attributes), place, beside))
            tag, classes, attributes, place = "", [], [], 0
            beside = token["space"].strip() in ("+", "~")
        elif token["tag"]:
            tag = "" if token["tag"] == "*" else token["tag"].lower()
        elif token["id"]:
            attributes.append(("id", token["id"]))
        elif token["cls"]:
            classes.append(token["cls"])
        elif token["name"]:
            attributes.append((token["name"], (token["value"] or "").strip("\"'")))
        else:
            place = _place(selector, token["pseudo"], token["argument"] or "")
    found.append(Compound(tag, tuple(classes), tuple(attributes), place, beside))
    if not all(compound.weight or "*" in text for compound in found):
        raise NotSimple(f"{selector!r} has nothing between two combinators")
    return tuple(found)


def _place(selector: str, pseudo: str, argument: str) -> int:
    if pseudo == "first-child":
        return 1
    if pseudo in ("nth-child", "nth-of-type") and argument.strip().isdecimal():
        return int(argument)
    if pseudo in _HOLDS:
        return 0
    raise NotSimple(f"{selector!r}: :{pseudo}")


def _first_alternative(selector: str) -> str:
    depth = 0
    for at, char in enumerate(selector):
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            return selector[:at]
    return selector
