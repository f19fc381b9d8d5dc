"""Markup made from the selectors of rules: records with their fields, for rules that no format was written for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from app.lab.selectors import Compound, compounds_of

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
        rows: for each record its fields (as rules write them) with their values, as text.

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


def alone(selector: str, text: str) -> str:
    """One element that a selector matches, with a text. Raises NotSimple."""
    *around, last = compounds_of(selector)
    element = _element(last, "")
    element.text = escape(text)
    html = element.html()
    for compound in reversed(around):
        outer = _element(compound, "")
        outer.text = html
        html = outer.html()
    return html


def _record(record: tuple[Compound, ...], row: Sequence[tuple[str, str]]) -> Element:
    top = _element(record[-1], "")
    fields = [(_own(record, css), name, value) for css, name, value in map(_taken_apart, row)]
    # The first match is read: what asks for little must stand before what asks for more.
    fields.sort(key=lambda one: sum(compound.weight for compound in one[0]))
    for compounds, name, value in fields:
        target = _grown(top, compounds)
        if name:
            _put(target.attributes, name, value)
        else:
            target.text = escape(value)
    return top


def _taken_apart(pair: tuple[str, str]) -> tuple[str, str, str]:
    rule = pair[0].split(" | ")[0].strip()
    if rule == ".":
        return "", "", pair[1]
    css, at, name = rule.rpartition("@")
    if not at or "]" in name:
        return rule, "", pair[1]
    return css.strip(), name, pair[1]


def _own(record: tuple[Compound, ...], css: str) -> tuple[Compound, ...]:
    """What a field's selector asks for inside the record: it may begin with the record itself, or above it."""
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


def filled(rules: Mapping[str, str], values: Mapping[str, str]) -> list[tuple[str, str]]:
    """Fields of rules that are there (not empty) with the values of the same name."""
    return [(rules[name], value) for name, value in values.items() if rules.get(name)]
