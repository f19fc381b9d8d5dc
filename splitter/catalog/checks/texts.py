"""Single texts of rules: selectors, fields, regular expressions, templates."""

from __future__ import annotations

import re
from string import Formatter

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from splitter.catalog.checks.shared import Found
from splitter.yamlfile import Place

_ATTRIBUTE = re.compile(r"[A-Za-z_][\w-]*")
_EMPTY_PAGE = LexborHTMLParser("")


def check_selector(place: Place, selector: str) -> Found:
    """A CSS selector can be parsed."""
    try:
        _EMPTY_PAGE.css(selector)
    except (SelectolaxError, ValueError):
        yield place, f"{selector!r} is no CSS selector; write one such as div.result"


def check_field(place: Place, text: str) -> Found:
    """A field of a rule can be parsed: selectors and attribute names."""
    for part in text.split(" | "):
        yield from _one_field(place, part.strip())


def _one_field(place: Place, text: str) -> Found:
    if text == ".":
        return
    selector, at, attribute = text.rpartition("@")
    if not at or "]" in attribute:  # there, the @ stands inside the selector
        yield from check_selector(place, text)
    else:
        if not _ATTRIBUTE.fullmatch(attribute):
            yield place, f"{text!r} names no attribute after @; write one such as a@href"
        if selector:
            yield from check_selector(place, selector)


def check_regex(place: Place, pattern: str, *, group: bool = False) -> Found:
    """A regular expression compiles and says something; with `group`, it has one."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        yield place, f"bad regular expression {pattern!r}: {error}"
        return
    if group and not compiled.groups:
        yield place, f"{pattern!r} has no group; put the number in one: ([\\d,]+)"
    elif not group and compiled.match(""):
        yield place, f"{pattern!r} matches everything; write what only such a page says"


def check_template(place: Place, text: str, allowed: tuple[str, ...], needed: str = "") -> Found:
    """A text with placeholders has known ones only, and the one that is needed."""
    used = placeholders(text)
    names = ", ".join(f"{{{name}}}" for name in allowed)
    if used is None:
        yield (
            place,
            f"braces of {text!r} do not match; placeholders are {names}, a brace itself is {{{{ or }}}}",
        )
        return
    for name in sorted(used - set(allowed)):
        yield place, f"unknown placeholder {{{name}}}; there are {names}"
    if needed and needed not in used:
        yield place, f"{text!r} lacks {{{needed}}}"


def placeholders(text: str) -> set[str] | None:
    """Names in braces; None where the braces do not match."""
    try:
        return {
            name + ("!" + conversion if conversion else "") + (":" + spec if spec else "")
            for _, name, spec, conversion in Formatter().parse(text)
            if name is not None
        }
    except ValueError:
        return None
