"""Generate HTML and JSON that given rules can read: HTML from CSS selectors, JSON from paths.

A selector becomes an element that it matches. Tags, ids, classes, attributes, ``:nth-child(n)``, ``:first-child``,
descendants, children and following siblings are understood. Of alternatives ("a, b" or "a | b") the first is used.
Conditions such as ``:last-child``, ``:not(...)`` and ``:has(...)`` are ignored: they are expected to be true, because
each element is made once and contains its fields. Other selectors raise `NotSimple`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from html import escape
from typing import Any

import cssselect
from cssselect import parser as css

from splitter.catalog.paths import EACH, Path, paths_of, values_of
from splitter.catalog.rules import PageRules

Row = Sequence[tuple[str, str]]
"""The fields of a record, as rules write them, with their values as text. An empty rule is not a field."""


class NotSimple(ValueError):
    """A selector is too complicated to generate an element for it."""


@dataclass(frozen=True, slots=True)
class Compound:
    """The part of a CSS selector that describes one element.

    Attributes:
        tag: Name of the element. Empty allows any name.
        attributes: Required attributes as (name, value), also id and classes (one pair for each class).
        place: Place among the children of the parent, from 1. Zero allows any place.
        is_sibling: True if the element follows the one of the compound before, False if it is inside that element.
    """

    tag: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    place: int = 0
    is_sibling: bool = False

    @property
    def weight(self) -> int:
        """The number of conditions that an element must fulfil."""
        return bool(self.tag) + len(self.attributes) + bool(self.place)


@lru_cache(maxsize=1024)
def parse_selector(selector: str) -> tuple[Compound, ...]:
    """Return the parts of a selector's first alternative, the one for the outermost element first. Raises NotSimple."""
    try:
        first = cssselect.parse(selector)[0]
    except cssselect.SelectorError as error:
        raise NotSimple(f"{selector!r}: {error}") from error
    if first.pseudo_element is not None:
        raise NotSimple(f"{selector!r} asks for a pseudo-element")
    return _compounds(first.parsed_tree)


_CONDITIONS = {"last-child", "last-of-type", "first-of-type", "only-child", "lexbor-contains"}


def _compounds(tree: Any) -> tuple[Compound, ...]:
    if isinstance(tree, css.Element):
        return (Compound((tree.element or "").lower()),)
    if isinstance(tree, css.CombinedSelector):
        (inner,) = _compounds(tree.subselector)
        return (*_compounds(tree.selector), replace(inner, is_sibling=tree.combinator in "+~"))
    *before, last = _compounds(tree.selector)
    match tree:
        case css.Class():
            last = _add_attribute(last, "class", tree.class_name)
        case css.Hash():
            last = _add_attribute(last, "id", tree.id)
        case css.Attrib():
            last = _add_attribute(last, tree.attrib, (tree.value.value if tree.value else "") or "")
        case css.Pseudo(ident="first-child"):
            last = replace(last, place=1)
        case css.Function(name="nth-child" | "nth-of-type") if css.parse_series(tree.arguments)[0] == 0:
            last = replace(last, place=css.parse_series(tree.arguments)[1])
        case css.Negation() | css.Relation():
            pass
        case css.Pseudo(ident=name) | css.Function(name=name) if name in _CONDITIONS:
            pass
        case _:
            raise NotSimple(f"no element can be made for {tree.canonical()}")
    return (*before, last)


def _add_attribute(compound: Compound, name: str, value: str) -> Compound:
    return replace(compound, attributes=(*compound.attributes, (name, value)))


# --- HTML -----------------------------------------------------------------------------------------------------


_VOID = frozenset({"img", "input", "meta", "link", "br", "hr", "source"})
_TABLES = frozenset({"table", "thead", "tbody"})


@dataclass(slots=True)
class Element:
    """An HTML element under construction. `text` is HTML."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    text: str = ""
    children: dict[Compound, Element] = field(default_factory=dict)

    def html(self) -> str:
        """Return the element as HTML."""
        attributes = "".join(f' {name}="{escape(value)}"' for name, value in self.attributes.items())
        if self.tag in _VOID:
            return f"<{self.tag}{attributes}>"
        inner = self.text + "".join(child.html() for child in self.children.values())
        return f"<{self.tag}{attributes}>{inner}</{self.tag}>\n"


def write_records(selector: str, rows: Iterable[Row]) -> str:
    """Return HTML with one element for each row. The selector matches these elements. Raises NotSimple."""
    *outer, record = parse_selector(selector)
    html = "".join(_make_record((*outer, record), row).html() for row in rows)
    if record.tag == "tr" and not any(compound.tag in _TABLES for compound in outer):
        # Parsers drop rows outside a table.
        html = f"<table>{html}</table>"
    for compound in reversed(outer):
        element = _make_element(compound)
        element.text = html
        html = element.html()
    return html


def _make_record(record: tuple[Compound, ...], row: Row) -> Element:
    top = _make_element(record[-1])
    fields = [(*_parse_field(record, rule), value) for rule, value in row if rule]
    # Readers take the first match, so an element with few requirements must come before one with more.
    fields.sort(key=lambda one: sum(compound.weight for compound in one[0]))
    for compounds, name, value in fields:
        target = _grow(top, compounds)
        if name:
            # The selector may require a part of the value, such as [href*="/zlts/"].
            part = target.attributes.get(name, "")
            target.attributes[name] = value if part in value else part + value
        else:
            # The text of a script is not escaped.
            target.text = value.replace("</", r"<\/") if target.tag == "script" else escape(value)
    return top


@lru_cache(maxsize=1024)
def _parse_field(record: tuple[Compound, ...], rule: str) -> tuple[tuple[Compound, ...], str]:
    """Read a rule for a field of a record: return the path to its element inside the record, and the attribute to read.

    Of alternatives, the first is used.
    """
    rule = rule.split(" | ")[0].strip()
    selector, at, name = rule.rpartition("@")
    if not at or "]" in name:
        selector, name = rule, ""
    if selector.strip() in ("", "."):
        return (), name
    compounds = parse_selector(selector)
    # A selector may begin with the record itself or above it.
    for length in range(min(len(record), len(compounds) - 1), 0, -1):
        if compounds[:length] == record[-length:]:
            return compounds[length:], name
    return compounds, name


def _grow(top: Element, compounds: Sequence[Compound]) -> Element:
    """Add elements below `top` so that the compounds match them, and return the innermost one.

    Existing elements are used.
    """
    parent = element = top
    for compound in compounds:
        parent = parent if compound.is_sibling else element
        element = _get_child(parent, compound)
    return element


def _get_child(parent: Element, compound: Compound) -> Element:
    if not compound.place:
        if compound not in parent.children:
            parent.children[compound] = _make_element(compound)
        return parent.children[compound]
    for place in range(1, compound.place + 1):
        numbered = Compound(compound.tag, place=place)
        if numbered not in parent.children:
            parent.children[numbered] = _make_element(numbered)
    child = parent.children[Compound(compound.tag, place=compound.place)]
    child.attributes |= _make_element(compound).attributes
    return child


def _make_element(compound: Compound) -> Element:
    attributes: dict[str, str] = {}
    for name, value in compound.attributes:
        attributes[name] = f"{attributes[name]} {value}" if name in attributes else value
    # A span may be anywhere, for example in a paragraph.
    return Element(compound.tag or "span", attributes)


# --- JSON -----------------------------------------------------------------------------------------------------


def write_json(rules: PageRules, title: str, rows: Iterable[Row]) -> str:
    """Return the JSON document that a page's rules read: the paths in the rules lead to the rows."""
    begin = 1 if rules.embedded else 0  # a list of the script elements
    document = nest(paths_of(rules.review)[0][begin:], [make_object(row) for row in rows])
    for template in values_of(rules.page_title)[:1]:
        if (path := template.parts[0][1]) is not None:
            document = merge(document, nest(path[begin:], title))
    return json.dumps(document, ensure_ascii=False)


def make_object(row: Row) -> Any:
    """Return the JSON object of a record. The path of each field leads to the field's value."""
    made: Any = {}
    for rule, value in row:
        for template in values_of(rule)[:1]:
            # A template such as https://a.cn/{id} gets the part of the value that it puts in.
            paths = [path for _, path in template.parts if path is not None]
            pattern = "".join(re.escape(text) + ("(.*)" if path else "") for text, path in template.parts)
            # Addresses in the lab are http.
            match = re.fullmatch(pattern.replace("https://", "https?://"), value, re.DOTALL)
            parts = match.groups() if match else [value.rpartition("/")[2] or value] * len(paths)
            for path, part in zip(paths, parts, strict=True):
                made = merge(made, nest(path, part))
    return made


def nest(path: Path, value: Any) -> Any:
    """Return a JSON document that has a value at a path.

    If the value is a list, its items become the items of the last list on the path. Other lists on the path have one
    item.
    """
    is_list = isinstance(value, list) and EACH in path
    for step in reversed(path):
        if step != EACH:
            value = [{step: one} for one in value] if is_list else {step: value}
        elif is_list:
            is_list = False
        else:
            value = [value]
    return value


def merge(one: Any, other: Any) -> Any:
    """Merge two JSON documents. If both have a value at the same place, that of `other` is used."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one | other | {key: merge(one[key], other[key]) for key in one.keys() & other.keys()}
    if isinstance(one, list) and isinstance(other, list):
        return [merge(a, b) for a, b in zip(one, other, strict=True)]
    return other
