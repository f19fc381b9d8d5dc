"""Rules by which result pages and pages are read."""

from __future__ import annotations

from collections.abc import Callable

from splitter.catalog.checks.shared import Found
from splitter.catalog.checks.texts import check_field, check_regex, check_selector
from splitter.catalog.paths import condition_of, path_of, paths_of, values_of
from splitter.catalog.rules import PageRules, ResultRules
from splitter.yamlfile import Place

_HIT_FIELDS = ("link", "title", "abstract", "time")
_RECORD_RULES = ("review", "body", "id", "title", "author", "date", "rating")


def check_result_rules(rules: ResultRules) -> Found:
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


def _html_document(rules: ResultRules) -> Found:
    yield from check_selector(("hit",), rules.hit)
    if rules.embedded:
        yield ("embedded",), "names scripts that hold JSON; write format: json beside it or leave it out"
    if rules.next:
        yield from check_selector(("next",), rules.next)
    if rules.found:
        yield from check_regex(("found",), rules.found, group=True)


def _json_document(rules: ResultRules) -> Found:
    if rules.hit.strip():
        yield from _json(("hit",), paths_of, rules.hit)
    if rules.embedded:
        yield from check_selector(("embedded",), rules.embedded)
    for name in ("found", "next"):
        if text := getattr(rules, name):
            yield from _json((name,), path_of, text)
            if rules.embedded and not text.startswith("[]"):
                yield (name,), "with embedded, the document is a list; begin with []"
    if rules.embedded and not all(path.strip().startswith("[]") for path in rules.hit.split(",")):
        yield ("hit",), "with embedded, the document is a list; begin with []"


def _json(place: Place, read: Callable[[str], object], text: str) -> Found:
    try:
        read(text)
    except ValueError as error:
        yield place, str(error)


def check_page_rules(rules: PageRules) -> Found:
    """Page rules are either record rules that select something or `main_text`."""
    yield from _page_reading(rules)
    if rules.review:
        yield from check_selector(("review",), rules.review)
    for name in (*_RECORD_RULES[1:], "page_title"):
        if text := getattr(rules, name):
            yield from check_field((name,), text)
    if rules.next:
        yield from check_selector(("next",), rules.next)
    for index, pattern in enumerate(rules.blocked):
        yield from check_regex(("blocked", index), pattern)


def _page_reading(rules: PageRules) -> Found:
    if rules.main_text:
        for name in (*_RECORD_RULES, "next"):
            if getattr(rules, name):
                yield (name,), "main_text reads pages without record rules; leave out one of the two"
        return
    for name in ("review", "body"):
        if not getattr(rules, name):
            lacks = "'' selects nothing" if name in rules.model_fields_set else "missing"
            yield (name,), f"{lacks}; write review and body, or main_text: true for pages read without rules"
