"""An engine: its address, parameters, headers, encoding and times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from splitter.catalog.checks.rules import check_result_rules
from splitter.catalog.checks.shared import Found, check_robots, nearest, under
from splitter.catalog.checks.texts import check_regex, check_template, placeholders
from splitter.catalog.model import Engine, TimeFilter
from splitter.times import PLACEHOLDERS
from splitter.yamlfile import Place

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, 5.6.2
_OWN_HEADERS = {
    "authorization": "it from sign_in",
    "cookie": "it from sign_in",
    "user-agent": "it by its own name and contact",
    "host": "it from the address",
} | dict.fromkeys(
    ("accept-encoding", "connection", "content-length", "transfer-encoding", "te", "range"),
    "it itself",
)


def check_engine(engine: Engine) -> Found:
    """What is wrong with an engine whose shape is right."""
    yield from _url(engine.url)
    yield from _params(engine)
    yield from check_template(("site",), engine.site, ("words", "site"), needed="words")
    yield from _encoding(engine.encoding)
    yield from _headers(engine.headers)
    yield from check_robots(engine.robots)
    for index, pattern in enumerate(engine.redirects):
        yield from check_regex(("redirects", index), pattern)
    if engine.times is not None:
        yield from under(("times",), _times(engine.times, engine.params))
    if engine.inline and engine.results.post is None:
        yield ("inline",), "results.post does not say where a hit's text stands; write post: {body: ...}"
    yield from under(("results",), check_result_rules(engine.results))
    if engine.results.post is not None and not engine.inline:
        yield ("results", "post"), "only engines with inline: true have one; add that or leave this out"


def _url(url: str) -> Found:
    example = "write one such as http://www.example.com/s"
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as error:
        yield ("url",), f"{url!r} is no address ({error}); {example}"
        return
    if parts.scheme not in ("http", "https") or not host:
        yield ("url",), f"{url!r} is no http or https address; {example}"
    elif "?" in url or "#" in url or re.search(r"[\s{}]", url):
        yield ("url",), f"{url!r} holds more than an address; put the query into params"


def _params(engine: Engine) -> Found:
    uses_query = False
    for name, value in engine.params.items():
        place: Place = ("params", name)
        yield from check_template(place, value, ("query", "page", "offset"))
        used = placeholders(value) or set()
        uses_query = uses_query or "query" in used
        if "query" in used and name in engine.paging_params:
            yield ("paging_params",), f"'{name}' carries {{query}}; it cannot be left out without paging"
        elif used & {"page", "offset"} and name not in engine.paging_params:
            yield place, f"depends on the page; add '{name}' to paging_params"
    if not uses_query:
        yield ("params",), "no parameter carries the query; write {query} as the value of one"
    for index, name in enumerate(engine.paging_params):
        if name not in engine.params:
            yield ("paging_params", index), f"no parameter {name!r}{nearest(name, engine.params)}"


def _headers(headers: Mapping[str, str]) -> Found:
    for name, value in headers.items():
        place: Place = ("headers", name)
        if not _HEADER.fullmatch(name):
            yield place, f"{name!r} is no header name such as X-Requested-With"
        elif name.lower() in _OWN_HEADERS:
            yield place, f"reviewloop sets {_OWN_HEADERS[name.lower()]}; leave it out"
        if not value.strip() or not value.isascii() or not value.isprintable():
            yield place, f"{value!r} cannot be sent; write printable ASCII"


def _times(times: TimeFilter, params: Mapping[str, str]) -> Found:
    used: set[str] = set()
    for name, value in times.params.items():
        yield from check_template(("params", name), value, PLACEHOLDERS)
        used |= placeholders(value) or set()
        if name in params:
            yield ("params", name), f"'{name}' is one of the engine's params already; leave it out there"
    for end in ("from", "to"):
        if not any(name.startswith(f"{end}_") for name in used):
            yield (
                ("params",),
                f"no parameter carries the range's {end}; write {{{end}_s}}, or its _day or _hour",
            )
    if times.least == "hour" and used & set(PLACEHOLDERS) and all(name.endswith("_day") for name in used):
        yield ("least",), "days cannot tell hours apart; write least: day"


def _encoding(encoding: str) -> Found:
    sample = "a中文"
    try:
        whole = sample.encode(encoding, "ignore")
        parts = b"".join(char.encode(encoding, "ignore") for char in sample)
    except (LookupError, ValueError):
        yield ("encoding",), f"unknown encoding {encoding!r}; write utf-8, gbk, gb18030 or big5"
        return
    if whole != parts:
        yield ("encoding",), f"{encoding!r} cannot be used in a URL; write utf-8, gbk, gb18030 or big5"
