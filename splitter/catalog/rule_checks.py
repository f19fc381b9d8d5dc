"""Checks of single rules: selectors, fields, regular expressions, templates, and whole rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from string import Formatter

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from splitter.catalog.paths import condition_of, path_of, paths_of, values_of
from splitter.catalog.patterns import BadPattern, Pattern, compile_pattern
from splitter.catalog.rules import PageRules, PostRules, ResultRules
from splitter.catalog.yamlfile import Place
from splitter.errors import Message, WrongValue

Findings = Iterator[tuple[Place, Message]]
"""Problems, each at its place."""

Check = Callable[[str], object]
"""A function that raises WrongValue for a text that cannot be used, with a correct form in the message."""

_ATTRIBUTE = re.compile(r"[A-Za-z_][\w-]*")
_EMPTY_PAGE = LexborHTMLParser("")


def under(place: Place, found: Findings) -> Findings:
    """Yield the same problems, each at its place within another."""
    for inner, message in found:
        yield (*place, *inner), message


def problem(place: Place, check: Check, text: str) -> Findings:
    """Yield the problem that a check finds in a text."""
    try:
        check(text)
    except WrongValue as error:
        yield place, error


# --- single texts -------------------------------------------------------------------------------------------


def check_selector(selector: str) -> None:
    """Raise WrongValue unless a text is a CSS selector."""
    try:
        _EMPTY_PAGE.css(selector)
    except (SelectolaxError, ValueError):
        raise WrongValue(
            "{selector!r} is no CSS selector; write one such as div.result", selector=selector
        ) from None


def check_field(text: str) -> None:
    """Raise WrongValue for a field of a rule with a wrong selector or attribute name."""
    for alternative in text.split(" | "):
        for part in map(str.strip, alternative.split(" & ")):
            selector, at, attribute = part.rpartition("@")
            if not at or "]" in attribute:  # there, the @ stands inside the selector
                selector = part
            elif not _ATTRIBUTE.fullmatch(attribute):
                raise WrongValue("{part!r} names no attribute after @; write one such as a@href", part=part)
            if selector != "." and (selector or not at):
                check_selector(selector)


def check_regex(pattern: str) -> None:
    """Raise WrongValue for a regular expression that does not compile or matches everything."""
    if _compile(pattern).search("") is not None:
        raise WrongValue("{pattern!r} matches everything; write what only such a page says", pattern=pattern)


def _check_number(pattern: str) -> None:
    if not _compile(pattern).groups:
        raise WrongValue("{pattern!r} has no group; put the number in one: ([\\d,]+)", pattern=pattern)


def _compile(pattern: str) -> Pattern:
    try:
        return compile_pattern(pattern)
    except BadPattern as error:
        raise WrongValue(
            "bad regular expression {pattern!r}: {error}", pattern=pattern, error=error
        ) from None


def _check_sign(text: str) -> None:
    """Check a condition of JSON, or a regular expression."""
    if not condition_of(text):
        check_regex(text)


def template_of(*allowed: str, needed: str = "") -> Check:
    """Return the check of a text with placeholders: it has known ones only, and the one that is needed."""
    names = ", ".join(f"{{{name}}}" for name in allowed)

    def check(text: str) -> None:
        used = placeholders(text)
        if used is None:
            raise WrongValue(
                "braces of {text!r} do not match; placeholders are {names}, a brace itself is {{{{ or }}}}",
                text=text,
                names=names,
            )
        if unknown := sorted(used - set(allowed)):
            raise WrongValue(
                "unknown placeholder {{{unknown}}}; there are {names}", unknown=unknown[0], names=names
            )
        if needed and needed not in used:
            raise WrongValue("{text!r} lacks {{{needed}}}", text=text, needed=needed)

    return check


def placeholders(text: str) -> set[str] | None:
    """Return the names in braces; None if the braces do not match."""
    try:
        return {
            name + ("!" + conversion if conversion else "") + (":" + spec if spec else "")
            for _, name, spec, conversion in Formatter().parse(text)
            if name is not None
        }
    except ValueError:
        return None


# --- rules --------------------------------------------------------------------------------------------------

_RECORDS: tuple[Check, Check] = (check_selector, paths_of)
_VALUE: tuple[Check, Check] = (check_field, values_of)
_SIGN: tuple[Check, Check] = (check_regex, _check_sign)
_NEXT: tuple[Check, Check] = (check_selector, path_of)
_NUMBER: tuple[Check, Check] = (_check_number, path_of)
_CHECKS: Mapping[str, tuple[Check, Check]] = {
    "hit": _RECORDS,
    "review": _RECORDS,
    "next": _NEXT,
    "found": _NUMBER,
    "empty": _SIGN,
    "blocked": _SIGN,
} | dict.fromkeys(("link", "abstract", "time", "page_title", *PostRules.model_fields, "title"), _VALUE)
"""How each rule is checked, in HTML and in JSON; the others (format, embedded, ...) are no selectors."""

_RECORD_RULES = ("review", *PostRules.model_fields, "title")


def check_result_rules(rules: ResultRules) -> Findings:
    """Yield what is wrong with the rules of an engine's result pages."""
    for name in ("hit", "link", "title"):
        if not getattr(rules, name).strip():
            yield (name,), Message("'' selects nothing; write where it stands")
    yield from _check_rules(rules, rules.format)
    yield from _check_embedded(rules)
    if rules.post is not None:
        if not rules.post.body.strip():
            yield ("post", "body"), Message("'' selects nothing; write where a hit's text stands")
        yield from under(("post",), _check_rules(rules.post, rules.format))


def check_page_rules(rules: PageRules) -> Findings:
    """Yield what is wrong with the rules of a site's pages: record rules that select something, or `main_text`."""
    for name in (*_RECORD_RULES, "next", "embedded") if rules.main_text else ():
        if getattr(rules, name):
            yield (name,), Message("main_text reads pages without record rules; leave out one of the two")
    for name in () if rules.main_text else ("review", "body"):
        if not getattr(rules, name):
            lacks = Message("missing")
            if name in rules.model_fields_set:
                lacks = Message("'' selects nothing")
            yield (
                (name,),
                Message(
                    "{lacks}; write review and body, or main_text: true for pages read without rules",
                    lacks=lacks,
                ),
            )
    yield from _check_rules(rules, rules.format)
    yield from _check_embedded(rules)


def _check_rules(rules: ResultRules | PageRules | PostRules, language: str) -> Findings:
    """Yield the rules that their language cannot read."""
    for name in type(rules).model_fields.keys() & _CHECKS.keys():
        value, check = getattr(rules, name), _CHECKS[name][language == "json"]
        if isinstance(value, str):
            if value.strip():
                yield from problem((name,), check, value)
        else:
            for index, text in enumerate(value):
                yield from problem((name, index), check, text)


def _check_embedded(rules: ResultRules | PageRules) -> Findings:
    """Yield what is wrong with the scripts that hold the JSON; some paths are from the top of that document."""
    if not rules.embedded:
        return
    if rules.format != "json":
        yield (
            ("embedded",),
            Message("names scripts that hold JSON; write format: json beside it or leave it out"),
        )
        return
    yield from problem(("embedded",), check_selector, rules.embedded)
    for name in ("hit", "review", "found", "next"):
        text = getattr(rules, name, "")
        if text and not all(path.strip().startswith("[]") for path in text.split(",")):
            yield (name,), Message("with embedded, the document is a list; begin with []")
