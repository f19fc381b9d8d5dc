"""Markup and texts made from the rules that are to read them, for rules that no format was written for.

CSS selectors are turned round: from a selector to the element it would match. Understood are tags, ids, classes,
attributes (``[name]``, ``=``, ``~=``, ``^=``, ``$=``, ``*=``), ``:nth-child(n)`` and ``:first-child``, descendants,
children and following siblings. Of alternatives ("a, b") the first is taken; ``:last-child`` and ``:last-of-type`` hold
by themselves where an element is made once; others are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape

from splitter.catalog.patterns import compile_pattern

_NUMBERED = re.compile(r"\((?!\?)[^()]*\)")
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


_VOID = frozenset({"img", "input", "meta", "link", "br", "hr", "source"})
_INLINE = frozenset({"p", "span", "a", "em", "strong", "b", "i", "h1", "h2", "h3", "h4", "h5", "h6", "cite"})
_AROUND = {
    "tr": ("<table><tbody>", "</tbody></table>"),
    "td": ("<table><tr>", "</tr></table>"),
    "li": ("<ul>", "</ul>"),
}


@dataclass(slots=True)
class Element:
    """An element being made; `text` is HTML."""

    tag: str
    made_for: Compound
    attributes: dict[str, str] = field(default_factory=dict)
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def html(self) -> str:
        """It as HTML."""
        attributes = "".join(f' {name}="{escape(value)}"' for name, value in self.attributes.items())
        if self.tag in _VOID:
            return f"<{self.tag}{attributes}>"
        inner = self.text + "".join(child.html() for child in self.children)
        return f"<{self.tag}{attributes}>{inner}</{self.tag}>\n"


def records(selector: str, rows: Iterable[Sequence[tuple[str, str]]]) -> str:
    """Records that a selector matches, one a row, with their fields.

    Args:
        selector: of a record.
        rows: for each record its fields (as rules write them) with their values, as text; an empty rule is no field.

    Raises:
        NotSimple: a selector that no element is made from.
    """
    compounds = compounds_of(selector)
    inner = "".join(_record(compounds, row).html() for row in rows)
    tag = compounds[-1].tag
    if tag in _AROUND and (len(compounds) < 2 or not compounds[-2].tag):
        before, after = _AROUND[tag]
        if tag != "li" or len(compounds) < 2:
            inner = before + inner + after
    for compound in reversed(compounds[:-1]):
        outer = _element(compound, "")
        outer.text = inner
        inner = outer.html()
    return inner


def _record(record: tuple[Compound, ...], row: Sequence[tuple[str, str]]) -> Element:
    top = _element(record[-1], "")
    fields = [
        (_own(record, css), name, value)
        for css, name, value in (_taken_apart(*pair) for pair in row if pair[0])
    ]
    # The first match is read: what asks for little must stand before what asks for more.
    fields.sort(key=lambda one: sum(compound.weight for compound in one[0]))
    for compounds, name, value in fields:
        target = _grown(top, compounds)
        if name:
            _put(target.attributes, name, value)
        else:
            target.text = escape(value)
    return top


def _taken_apart(field: str, value: str) -> tuple[str, str, str]:
    """Selector and attribute of a field's first alternative, with its value."""
    rule = field.split(" | ")[0].strip()
    if rule == ".":
        return "", "", value
    css, at, name = rule.rpartition("@")
    if not at or "]" in name:
        return rule, "", value
    return css.strip(), name, value


def _own(record: tuple[Compound, ...], css: str) -> tuple[Compound, ...]:
    """Elements that a field's selector asks for inside the record: it may begin with the record itself, or above it."""
    if not css:
        return ()
    compounds = compounds_of(css)
    for length in range(min(len(record), len(compounds) - 1), 0, -1):
        if compounds[:length] == record[-length:]:
            return compounds[length:]
    return compounds


def _grown(top: Element, compounds: Sequence[Compound]) -> Element:
    parents, here = [top], top
    for compound in compounds:
        parent = parents[-2] if compound.beside and len(parents) > 1 else here
        here = _child(parent, compound)
        if compound.beside and len(parents) > 1:
            parents[-1] = here
        else:
            parents.append(here)
    return here


def _child(parent: Element, compound: Compound) -> Element:
    if compound.place:
        while len(parent.children) < compound.place:
            parent.children.append(_element(Compound(compound.tag, (), ()), parent.tag))
        child = parent.children[compound.place - 1]
        filled = _element(compound, parent.tag)
        child.attributes = {**child.attributes, **filled.attributes}
        return child
    for child in parent.children:
        if child.made_for == compound:
            return child
    child = _element(compound, parent.tag)
    parent.children.append(child)
    return child


def _element(compound: Compound, parent: str) -> Element:
    tag = compound.tag or ("span" if parent in _INLINE else "div")
    attributes: dict[str, str] = dict(compound.attributes)
    if compound.classes:
        attributes["class"] = " ".join(compound.classes)
    return Element(tag, compound, attributes)


def _put(attributes: dict[str, str], name: str, value: str) -> None:
    """A value where a selector asks for a part of it: that stands before it, unless it is in it."""
    asked = attributes.get(name, "")
    attributes[name] = value if asked in value else f"{asked}{value}"


def sample_text(pattern: str, number: int | None = None) -> str:
    """A text that a plain regular expression matches, a number in its group; empty for one that is not plain."""
    text = _NUMBERED.sub(str(number), pattern, count=1) if number is not None else pattern
    text = re.sub(r"\\s[*+?]?|\[\^[^\[\]]*\][*+]\??|\.[*+]\??", "", text)
    text = re.sub(r"\\([.()\[\]?*+/{}-])", r"\1", re.sub(r"(?<!\\)[?^$]", "", text.split("|")[0]))
    match = compile_pattern(pattern).search(text)
    right = match is not None and (number is None or match[1] == str(number))
    return text if right else ""
