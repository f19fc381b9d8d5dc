"""Checks of single rules: selectors, fields, regular expressions, templates, and whole rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from string import Formatter

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from splitter.catalog.paths import condition_of, path_of, paths_of, values_of
from splitter.catalog.patterns import BadPattern, compile_pattern
from splitter.catalog.rules import PageRules, ResultRules
from splitter.yamlfile import Place

Findings = Iterator[tuple[Place, str]]
"""Problems, each at its place."""

_ATTRIBUTE = re.compile(r"[A-Za-z_][\w-]*")
_EMPTY_PAGE = LexborHTMLParser("")
_HIT_FIELDS = ("link", "title", "abstract", "time")
_RECORD_RULES = ("review", "body", "id", "title", "author", "date", "rating", "variant")


def under(place: Place, found: Findings) -> Findings:
    """The same, each at its place within another."""
    for inner, message in found:
        yield (*place, *inner), message


# --- single texts -------------------------------------------------------------------------------------------


def check_selector(place: Place, selector: str) -> Findings:
    """A CSS selector can be parsed."""
    try:
        _EMPTY_PAGE.css(selector)
    except (SelectolaxError, ValueError):
        yield place, f"{selector!r} is no CSS selector; write one such as div.result"


def check_field(place: Place, text: str) -> Findings:
    """A field of a rule can be parsed: selectors and attribute names."""
    for part in text.split(" | "):
        for one in part.split(" & "):
            yield from _one_field(place, one.strip())


def _one_field(place: Place, text: str) -> Findings:
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


def check_regex(place: Place, pattern: str, *, group: bool = False) -> Findings:
    """A regular expression compiles and says something; with `group`, it has one."""
    try:
        compiled = compile_pattern(pattern)
    except BadPattern as error:
        yield place, f"bad regular expression {pattern!r}: {error}"
        return
    if group and not compiled.groups:
        yield place, f"{pattern!r} has no group; put the number in one: ([\\d,]+)"
    elif not group and compiled.search("") is not None:
        yield place, f"{pattern!r} matches everything; write what only such a page says"


def check_template(place: Place, text: str, allowed: tuple[str, ...], needed: str = "") -> Findings:
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


# --- rules --------------------------------------------------------------------------------------------------


def check_result_rules(rules: ResultRules) -> Findings:
    """Result rules select something, in the language of their format."""
    json = rules.format == "json"
    for name in ("hit", "link", "title"):
        if not getattr(rules, name).strip():
            yield (name,), "'' selects nothing; write where it stands"
    fields: list[tuple[Place, str]] = [((name,), getattr(rules, name)) for name in _HIT_FIELDS]
    if rules.post is not None:
        fields += [(("post", name), getattr(rules.post, name)) for name in type(rules.post).model_fields]
        if not rules.post.body.strip():
            yield ("post", "body"), "'' selects nothing; write where a hit's text stands"
    for place, text in fields:
        if text.strip():
            yield from _json(place, values_of, text) if json else check_field(place, text)
    for name in ("empty", "blocked"):
        for index, pattern in enumerate(getattr(rules, name)):
            if not (json and condition_of(pattern)):
                yield from check_regex((name, index), pattern)
    yield from _json_document(rules) if json else _html_document(rules)


def _html_document(rules: ResultRules) -> Findings:
    yield from check_selector(("hit",), rules.hit)
    yield from _embedded(rules.embedded, False)
    if rules.next:
        yield from check_selector(("next",), rules.next)
    if rules.found:
        yield from check_regex(("found",), rules.found, group=True)


def _json_document(rules: ResultRules) -> Findings:
    if rules.hit.strip():
        yield from _json(("hit",), paths_of, rules.hit)
    for name in ("found", "next"):
        if text := getattr(rules, name):
            yield from _json((name,), path_of, text)
    paths = (("hit", rules.hit), ("found", rules.found), ("next", rules.next))
    yield from _embedded(rules.embedded, True, paths)


def _embedded(selector: str, json: bool, paths: Iterable[tuple[str, str]] = ()) -> Findings:
    """The scripts that hold the JSON; `paths` are from the top of the document."""
    if not selector:
        return
    if not json:
        yield ("embedded",), "names scripts that hold JSON; write format: json beside it or leave it out"
        return
    yield from check_selector(("embedded",), selector)
    for name, text in paths:
        if text and not all(path.strip().startswith("[]") for path in text.split(",")):
            yield (name,), "with embedded, the document is a list; begin with []"


def _json(place: Place, read: Callable[[str], object], text: str) -> Findings:
    try:
        read(text)
    except ValueError as error:
        yield place, str(error)


def check_page_rules(rules: PageRules) -> Findings:
    """Page rules are either record rules that select something or `main_text`."""
    yield from _page_reading(rules)
    json = rules.format == "json"
    if rules.review:
        yield from (
            _json(("review",), paths_of, rules.review) if json else check_selector(("review",), rules.review)
        )
    for name in (*_RECORD_RULES[1:], "page_title"):
        if text := getattr(rules, name):
            yield from _json((name,), values_of, text) if json else check_field((name,), text)
    if rules.next:
        yield from _json(("next",), path_of, rules.next) if json else check_selector(("next",), rules.next)
    yield from _embedded(rules.embedded, json, (("review", rules.review), ("next", rules.next)))
    for index, pattern in enumerate(rules.blocked):
        if not (json and condition_of(pattern)):
            yield from check_regex(("blocked", index), pattern)


def _page_reading(rules: PageRules) -> Findings:
    if rules.main_text:
        for name in (*_RECORD_RULES, "next", "embedded"):
            if getattr(rules, name):
                yield (name,), "main_text reads pages without record rules; leave out one of the two"
        return
    for name in ("review", "body"):
        if not getattr(rules, name):
            lacks = "'' selects nothing" if name in rules.model_fields_set else "missing"
            yield (name,), f"{lacks}; write review and body, or main_text: true for pages read without rules"
