"""Checks of a catalog beyond its shape: references, addresses, encodings, headers, times, sign-ins.

Each engine, site and rule set is checked by itself, so that one that is misshapen does not hide the problems of the
others. Selectors, regular expressions and templates: ``splitter.catalog.rule_checks``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from splitter.catalog.model import TIME_PLACEHOLDERS, Bounds, Engine, RobotsDecision, TimeFilter
from splitter.catalog.rule_checks import (
    Findings,
    check_page_rules,
    check_regex,
    check_result_rules,
    check_selector,
    check_template,
    placeholders,
    under,
)
from splitter.catalog.rules import PageRules, ResultRules
from splitter.catalog.sign_in import FormLogin, Grant, OAuth2Login, SignInRules
from splitter.yamlfile import Document, Place, Problem

_Model = TypeVar("_Model", bound=BaseModel)
_DOMAIN = re.compile(
    r"(?=.{4,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])"
)
_LEAST_REASON = 10
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


def problems_of(document: Document) -> list[Problem]:
    """Everything the shape cannot say that is wrong in a catalog's data."""
    found: list[tuple[Place, str]] = []
    for name, raw in _entries_of(document.data, "engines"):
        if (engine := _read_as(Engine, raw)) is not None:
            found += under(("engines", name), _check_engine(engine))
        elif isinstance(raw, Mapping) and (results := _read_as(ResultRules, raw.get("results"))) is not None:
            found += under(("engines", name, "results"), check_result_rules(results))
    for name, raw in _entries_of(document.data, "rules"):
        if (rules := _read_as(PageRules, raw)) is not None:
            found += under(("rules", name), check_page_rules(rules))
    for name, raw in _entries_of(document.data, "sites"):
        found += under(("sites", name), _check_site(document.data, name, raw))
    found += _check_sign_ins(document.data)
    if document.data.get("version") != 1:
        found.append((("version",), "missing, or not known here; write 'version: 1' at the top"))
    for table in ("engines", "sites"):
        if document.data.get(table) == {}:
            found.append(((table,), "empty; a catalog needs at least one"))
    return [document.problem(place, message) for place, message in found]


def _entries_of(data: Mapping[str, Any], table: str) -> list[tuple[str, Any]]:
    """Name and data of each entry of a table; none where it is no table."""
    entries = data.get(table)
    return [(str(name), raw) for name, raw in entries.items()] if isinstance(entries, Mapping) else []


def _read_as(model: type[_Model], raw: object) -> _Model | None:
    """Data as a model; None where it does not have its shape."""
    try:
        return model.model_validate_json(Document(raw, {}).json())
    except (ValidationError, TypeError, ValueError):
        return None  # its shape is reported where the whole catalog is read


# --- engines --------------------------------------------------------------------------------------------------


def _check_engine(engine: Engine) -> Findings:
    """Problems of an engine whose shape is right."""
    yield from _list(engine) if engine.discover == "list" else _search(engine)
    yield from _paging(engine)
    yield from _encoding(engine.encoding)
    yield from _headers(engine.headers)
    yield from _check_robots(engine.robots)
    for index, pattern in enumerate(engine.redirects):
        yield from check_regex(("redirects", index), pattern)
    if engine.times is not None:
        yield from under(("times",), _times(engine.times, engine.params))
    if engine.inline and engine.results.post is None:
        yield ("inline",), "results.post does not say where a hit's text stands; write post: {body: ...}"
    yield from under(("results",), check_result_rules(engine.results))
    if engine.results.post is not None and not engine.inline:
        yield ("results", "post"), "only engines with inline: true have one; add that or leave this out"


def _url(url: str) -> Findings:
    yield from _address(url)
    if re.search(r"[?#\s{}]", url):
        yield (), f"{url!r} holds more than an address; put the query into params"


def _search(engine: Engine) -> Findings:
    """Of an engine that is asked for words."""
    yield from under(("url",), _url(engine.url))
    yield from check_template(("site",), engine.site, ("words", "site"), needed="words")
    carries = [name for name, value in engine.params.items() if "query" in (placeholders(value) or ())]
    for name in carries:
        if name in engine.paging_params:
            yield ("paging_params",), f"'{name}' carries {{query}}; it cannot be left out without paging"
    if not carries:
        yield ("params",), "no parameter carries the query; write {query} as the value of one"
    if "results" not in engine.model_fields_set:
        yield ("results",), "missing; only engines with discover: list can do without"


def _list(engine: Engine) -> Findings:
    """Of an engine whose pages list others."""
    yield from under(("url",), _url(engine.url.replace("{page}", "1")))
    for key, default in (
        ("site", "{words} site:{site}"),
        ("times", None),
        ("redirects", ()),
        ("extra_words", ()),
    ):
        if getattr(engine, key) != default:
            yield (key,), "a list is not asked for words; leave it out, or write discover: search"
    for name, value in engine.params.items():
        if "query" in (placeholders(value) or ()):
            yield (
                ("params", name),
                "a list is not asked for words; leave {query} out, or write discover: search",
            )
    if engine.results.format == "json":
        yield ("results", "format"), "a list is a sitemap, a feed or a page in HTML; leave format out"


def _paging(engine: Engine) -> Findings:
    for name, value in engine.params.items():
        place: Place = ("params", name)
        yield from check_template(place, value, ("query", "page", "offset"))
        used = placeholders(value) or set()
        if "query" not in used and used & {"page", "offset"} and name not in engine.paging_params:
            yield place, f"depends on the page; add '{name}' to paging_params"
    for index, name in enumerate(engine.paging_params):
        if name not in engine.params:
            yield ("paging_params", index), f"no parameter {name!r}{_nearest(name, engine.params)}"


def _headers(headers: Mapping[str, str]) -> Findings:
    for name, value in headers.items():
        place: Place = ("headers", name)
        if not _HEADER.fullmatch(name):
            yield place, f"{name!r} is no header name such as X-Requested-With"
        elif name.lower() in _OWN_HEADERS:
            yield place, f"reviewloop sets {_OWN_HEADERS[name.lower()]}; leave it out"
        if not value.strip() or not value.isascii() or not value.isprintable():
            yield place, f"{value!r} cannot be sent; write printable ASCII"


def _times(times: TimeFilter, params: Mapping[str, str]) -> Findings:
    used: set[str] = set()
    for name, value in times.params.items():
        yield from check_template(("params", name), value, TIME_PLACEHOLDERS)
        used |= placeholders(value) or set()
        if name in params:
            yield ("params", name), f"'{name}' is one of the engine's params already; leave it out there"
    for end in ("from", "to"):
        if not any(name.startswith(f"{end}_") for name in used):
            yield (
                ("params",),
                f"no parameter carries the range's {end}; write {{{end}_s}}, or its _day or _hour",
            )
    if (
        times.least == "hour"
        and used & set(TIME_PLACEHOLDERS)
        and all(name.endswith("_day") for name in used)
    ):
        yield ("least",), "days cannot tell hours apart; write least: day"


def _encoding(encoding: str) -> Findings:
    sample = "a中文"
    try:
        whole = sample.encode(encoding, "ignore")
        parts = b"".join(char.encode(encoding, "ignore") for char in sample)
    except (LookupError, ValueError):
        yield ("encoding",), f"unknown encoding {encoding!r}; write utf-8, gbk, gb18030 or big5"
        return
    if whole != parts:
        yield ("encoding",), f"{encoding!r} cannot be used in a URL; write utf-8, gbk, gb18030 or big5"


def _check_robots(decision: RobotsDecision | None) -> Findings:
    """A decision not to obey robots.txt gives a reason."""
    if decision is not None and not decision.obey and len(decision.reason.strip()) < _LEAST_REASON:
        yield (
            ("robots", "reason"),
            f"{decision.reason!r} is no reason not to obey robots.txt; write in {_LEAST_REASON} characters or more "
            "who allows it",
        )


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    """A hint at the known name that is most like a wrong one."""
    near = get_close_matches(name, [str(key) for key in known], n=1, cutoff=0.5)
    if near:
        return f"; did you mean '{near[0]}'?"
    return f"; there is {', '.join(map(str, known))}" if known else ""


# --- sites ----------------------------------------------------------------------------------------------------


def _check_site(data: Mapping[str, Any], name: str, raw: object) -> Findings:
    """Problems of a site: its name, its references, its bounds."""
    if not _DOMAIN.fullmatch(name):
        hint = f"; write {name.lower()}" if _DOMAIN.fullmatch(name.lower()) else ""
        yield (), f"{name!r} is no domain name such as example.com{hint}"
    if not isinstance(raw, Mapping):
        return
    for key, table in (("engine", "engines"), ("rules", "rules")):
        target, known = raw.get(key), data.get(table)
        if isinstance(target, str) and isinstance(known, Mapping) and target not in known:
            yield (key,), f"there is no {target!r} in {table}{_nearest(target, known)}"
    if isinstance(encoding := raw.get("encoding"), str) and encoding:
        yield from _page_encoding(encoding)
    yield from _check_robots(_read_as(RobotsDecision, raw.get("robots")))
    for key in ("quota", "budget_s"):
        bounds = _read_as(Bounds, raw.get(key))
        if bounds is not None and bounds.min > bounds.max:
            yield (key,), f"min {bounds.min:g} is above max {bounds.max:g}; exchange them"


def _page_encoding(encoding: str) -> Findings:
    """Of pages: what Python decodes text with, and what no page is written in (hex, idna) left out."""
    try:
        "a中文".encode(encoding, "replace").decode(encoding)
    except (LookupError, ValueError, TypeError):
        yield ("encoding",), f"unknown encoding {encoding!r}; write utf-8, gb18030 or big5"


# --- sign-ins -------------------------------------------------------------------------------------------------


def _check_sign_ins(data: Mapping[str, Any]) -> Findings:
    """Problems of the sign-ins of all engines and sites, each and among each other."""
    signing = [
        (table, name, rules)
        for table in ("engines", "sites")
        for name, raw in _entries_of(data, table)
        if isinstance(raw, Mapping) and (rules := _read_as(SignInRules, raw.get("sign_in"))) is not None
    ]
    taken: dict[str, str] = {}
    for table, name, rules in signing:
        place: Place = (table, name, "sign_in")
        if not re.fullmatch(r"[a-z0-9]+(?:[.-]+[a-z0-9]+)*", name):
            yield place, f"no environment variable can be named for {name!r}; use a-z, 0-9, dots and dashes"
        yield from under(place, _sign_in(rules))
        for index, host in enumerate(rules.hosts):
            if taken.setdefault(host, name) != name:
                yield (*place, "hosts", index), f"{host} is signed in to by {taken[host]!r} already; keep one"
    both = {name for table, name, _ in signing if table == "engines"} & set(data.get("sites") or ())
    for name in sorted(both):
        yield ("engines", name, "sign_in"), f"there is a site {name!r} too; give the engine another name"


def _sign_in(rules: SignInRules) -> Findings:
    if sum(way is not None for way in (rules.form, rules.oauth2, rules.cookies)) != 1:
        yield (), "write one of form, oauth2 and cookies"
    if rules.form is not None:
        yield from under(("form",), _form_login(rules.form))
    if rules.oauth2 is not None:
        yield from under(("oauth2",), _oauth2(rules.oauth2))
    for index, host in enumerate(rules.hosts):
        if not _DOMAIN.fullmatch(host):
            yield ("hosts", index), f"{host!r} is no host name such as www.example.com"


def _form_login(login: FormLogin) -> Findings:
    yield from under(("page",), _address(login.page))
    yield from check_selector(("form",), login.form)
    yield from check_regex(("signed_in",), login.signed_in)


def _oauth2(login: OAuth2Login) -> Findings:
    yield from under(("token_url",), _address(login.token_url, ("https",)))
    if login.consent is not None:
        yield from check_selector(("consent", "form"), login.consent.form)
    if login.login is not None:
        yield from under(("login",), _form_login(login.login))
    with_code = login.grant is Grant.AUTHORIZATION_CODE
    for key in ("authorize_url", "redirect_uri", "login", "consent"):
        if not with_code and getattr(login, key):
            yield (key,), f"{login.grant} has no use for it; leave it out"
    if with_code:
        yield from under(("authorize_url",), _address(login.authorize_url, ("https",)))
        yield from under(("redirect_uri",), _address(login.redirect_uri))


def _address(url: str, schemes: tuple[str, ...] = ("http", "https")) -> Findings:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in schemes and bool(parts.hostname) and not re.search(r"[\s#]", url)
    except ValueError:
        usable = False
    if not usable:
        kinds = " or ".join(schemes)
        yield (), f"{url!r} is no {kinds} address; write one such as https://www.example.com/s"
