"""What must hold in a catalog beyond its shape: references, selectors, regular expressions, templates.

Each engine, site and rule set is checked by itself, so that one that is misshapen does not hide the problems
of the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from string import Formatter
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError
from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from splitter.catalog.model import Bounds, Engine, PageRules, ResultRules, RobotsDecision, TimeFilter
from splitter.catalog.paths import condition_of, path_of, paths_of, values_of
from splitter.catalog.sign_in import FormLogin, Grant, OAuth2Login, SignInRules
from splitter.times import PLACEHOLDERS
from splitter.yamlfile import Document, Place, Problem

_Found = Iterator[tuple[Place, str]]
_Model = TypeVar("_Model", bound=BaseModel)

_DOMAIN = re.compile(
    r"(?=.{4,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])"
)
_LEAST_REASON = 10
_ATTRIBUTE = re.compile(r"[A-Za-z_][\w-]*")
_EMPTY_PAGE = LexborHTMLParser("")
_HIT_FIELDS = ("link", "title", "abstract", "time")
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
    for name, raw in _entries(document.data, "engines"):
        if (engine := _as(Engine, raw)) is not None:
            found += _under(("engines", name), _engine(engine))
        elif isinstance(raw, Mapping) and (results := _as(ResultRules, raw.get("results"))) is not None:
            found += _under(("engines", name, "results"), _result_rules(results))
    for name, raw in _entries(document.data, "rules"):
        if (rules := _as(PageRules, raw)) is not None:
            found += _under(("rules", name), _page_rules(rules))
    for name, raw in _entries(document.data, "sites"):
        found += _under(("sites", name), _site(document.data, name, raw))
    found += _sign_ins(document.data)
    for table in ("engines", "sites"):
        if document.data.get(table) == {}:
            found.append(((table,), "empty; a catalog needs at least one"))
    return [document.problem(place, message) for place, message in found]


def _entries(data: Mapping[str, Any], table: str) -> list[tuple[str, Any]]:
    entries = data.get(table)
    return [(str(name), raw) for name, raw in entries.items()] if isinstance(entries, Mapping) else []


def _as(model: type[_Model], raw: object) -> _Model | None:
    try:
        return model.model_validate_json(Document(raw, {}).json())
    except (ValidationError, TypeError, ValueError):
        return None  # its shape is reported where the whole catalog is read


def _under(place: Place, found: _Found) -> _Found:
    for inner, message in found:
        yield (*place, *inner), message


def _engine(engine: Engine) -> _Found:
    yield from _url(engine.url)
    yield from _params(engine)
    yield from _template(("site",), engine.site, ("words", "site"), needed="words")
    yield from _encoding(engine.encoding)
    yield from _headers(engine.headers)
    yield from _robots(engine.robots)
    for index, pattern in enumerate(engine.redirects):
        yield from _regex(("redirects", index), pattern)
    if engine.times is not None:
        yield from _under(("times",), _times(engine.times, engine.params))
    if engine.inline and engine.results.post is None:
        yield ("inline",), "results.post does not say where a hit's text stands; write post: {body: ...}"
    yield from _under(("results",), _result_rules(engine.results))
    if engine.results.post is not None and not engine.inline:
        yield ("results", "post"), "only engines with inline: true have one; add that or leave this out"


def _url(url: str) -> _Found:
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


def _params(engine: Engine) -> _Found:
    uses_query = False
    for name, value in engine.params.items():
        place: Place = ("params", name)
        yield from _template(place, value, ("query", "page", "offset"))
        used = _placeholders(value) or set()
        uses_query = uses_query or "query" in used
        if "query" in used and name in engine.paging_params:
            yield ("paging_params",), f"'{name}' carries {{query}}; it cannot be left out without paging"
        elif used & {"page", "offset"} and name not in engine.paging_params:
            yield place, f"depends on the page; add '{name}' to paging_params"
    if not uses_query:
        yield ("params",), "no parameter carries the query; write {query} as the value of one"
    for index, name in enumerate(engine.paging_params):
        if name not in engine.params:
            yield ("paging_params", index), f"no parameter {name!r}{_nearest(name, engine.params)}"


def _headers(headers: Mapping[str, str]) -> _Found:
    for name, value in headers.items():
        place: Place = ("headers", name)
        if not _HEADER.fullmatch(name):
            yield place, f"{name!r} is no header name such as X-Requested-With"
        elif name.lower() in _OWN_HEADERS:
            yield place, f"reviewloop sets {_OWN_HEADERS[name.lower()]}; leave it out"
        if not value.strip() or not value.isascii() or not value.isprintable():
            yield place, f"{value!r} cannot be sent; write printable ASCII"


def _times(times: TimeFilter, params: Mapping[str, str]) -> _Found:
    used: set[str] = set()
    for name, value in times.params.items():
        yield from _template(("params", name), value, PLACEHOLDERS)
        used |= _placeholders(value) or set()
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


def _template(place: Place, text: str, allowed: tuple[str, ...], needed: str = "") -> _Found:
    used = _placeholders(text)
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


def _placeholders(text: str) -> set[str] | None:
    """Names in braces; None where the braces do not match."""
    try:
        return {
            name + ("!" + conversion if conversion else "") + (":" + spec if spec else "")
            for _, name, spec, conversion in Formatter().parse(text)
            if name is not None
        }
    except ValueError:
        return None


def _encoding(encoding: str) -> _Found:
    sample = "a中文"
    try:
        whole = sample.encode(encoding, "ignore")
        parts = b"".join(char.encode(encoding, "ignore") for char in sample)
    except (LookupError, ValueError):
        yield ("encoding",), f"unknown encoding {encoding!r}; write utf-8, gbk, gb18030 or big5"
        return
    if whole != parts:
        yield ("encoding",), f"{encoding!r} cannot be used in a URL; write utf-8, gbk, gb18030 or big5"


def _result_rules(rules: ResultRules) -> _Found:
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
            yield from _json(place, values_of, text) if json else _field(place, text)
    for name in ("empty", "blocked"):
        for index, pattern in enumerate(getattr(rules, name)):
            if not (json and condition_of(pattern)):
                yield from _regex((name, index), pattern)
    yield from _json_document(rules) if json else _html_document(rules)


def _html_document(rules: ResultRules) -> _Found:
    yield from _selector(("hit",), rules.hit)
    if rules.embedded:
        yield ("embedded",), "names scripts that hold JSON; write format: json beside it or leave it out"
    if rules.next:
        yield from _selector(("next",), rules.next)
    if rules.found:
        yield from _regex(("found",), rules.found, group=True)


def _json_document(rules: ResultRules) -> _Found:
    if rules.hit.strip():
        yield from _json(("hit",), paths_of, rules.hit)
    if rules.embedded:
        yield from _selector(("embedded",), rules.embedded)
    for name in ("found", "next"):
        if text := getattr(rules, name):
            yield from _json((name,), path_of, text)
            if rules.embedded and not text.startswith("[]"):
                yield (name,), "with embedded, the document is a list; begin with []"
    if rules.embedded and not all(path.strip().startswith("[]") for path in rules.hit.split(",")):
        yield ("hit",), "with embedded, the document is a list; begin with []"


def _json(place: Place, read: Callable[[str], object], text: str) -> _Found:
    try:
        read(text)
    except ValueError as error:
        yield place, str(error)


_RECORD_RULES = ("review", "body", "id", "title", "author", "date", "rating")


def _page_rules(rules: PageRules) -> _Found:
    yield from _page_reading(rules)
    if rules.review:
        yield from _selector(("review",), rules.review)
    for name in (*_RECORD_RULES[1:], "page_title"):
        if text := getattr(rules, name):
            yield from _field((name,), text)
    if rules.next:
        yield from _selector(("next",), rules.next)
    for index, pattern in enumerate(rules.blocked):
        yield from _regex(("blocked", index), pattern)


def _page_reading(rules: PageRules) -> _Found:
    if rules.main_text:
        for name in (*_RECORD_RULES, "next"):
            if getattr(rules, name):
                yield (name,), "main_text reads pages without record rules; leave out one of the two"
        return
    for name in ("review", "body"):
        if not getattr(rules, name):
            lacks = "'' selects nothing" if name in rules.model_fields_set else "missing"
            yield (name,), f"{lacks}; write review and body, or main_text: true for pages read without rules"


def _selector(place: Place, selector: str) -> _Found:
    try:
        _EMPTY_PAGE.css(selector)
    except (SelectolaxError, ValueError):
        yield place, f"{selector!r} is no CSS selector; write one such as div.result"


def _field(place: Place, text: str) -> _Found:
    for part in text.split(" | "):
        yield from _one_field(place, part.strip())


def _one_field(place: Place, text: str) -> _Found:
    if text == ".":
        return
    selector, at, attribute = text.rpartition("@")
    if not at or "]" in attribute:  # there, the @ stands inside the selector
        yield from _selector(place, text)
    else:
        if not _ATTRIBUTE.fullmatch(attribute):
            yield place, f"{text!r} names no attribute after @; write one such as a@href"
        if selector:
            yield from _selector(place, selector)


def _regex(place: Place, pattern: str, *, group: bool = False) -> _Found:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        yield place, f"bad regular expression {pattern!r}: {error}"
        return
    if group and not compiled.groups:
        yield place, f"{pattern!r} has no group; put the number in one: ([\\d,]+)"
    elif not group and compiled.match(""):
        yield place, f"{pattern!r} matches everything; write what only such a page says"


def _site(data: Mapping[str, Any], name: str, raw: object) -> _Found:
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
    yield from _robots(_as(RobotsDecision, raw.get("robots")))
    for key in ("quota", "budget_s"):
        bounds = _as(Bounds, raw.get(key))
        if bounds is not None and bounds.min > bounds.max:
            yield (key,), f"min {bounds.min:g} is above max {bounds.max:g}; exchange them"


def _robots(decision: RobotsDecision | None) -> _Found:
    if decision is not None and not decision.obey and len(decision.reason.strip()) < _LEAST_REASON:
        yield (
            ("robots", "reason"),
            f"{decision.reason!r} is no reason not to obey robots.txt; write in {_LEAST_REASON} characters or more "
            "who allows it",
        )


def _page_encoding(encoding: str) -> _Found:
    """Of pages: what Python decodes text with, and what no page is written in (hex, idna) left out."""
    try:
        "a中文".encode(encoding, "replace").decode(encoding)
    except (LookupError, ValueError, TypeError):
        yield ("encoding",), f"unknown encoding {encoding!r}; write utf-8, gb18030 or big5"


def _sign_ins(data: Mapping[str, Any]) -> _Found:
    signing = [
        (table, name, rules)
        for table in ("engines", "sites")
        for name, raw in _entries(data, table)
        if isinstance(raw, Mapping) and (rules := _as(SignInRules, raw.get("sign_in"))) is not None
    ]
    taken: dict[str, str] = {}
    for table, name, rules in signing:
        place: Place = (table, name, "sign_in")
        if not re.fullmatch(r"[a-z0-9]+(?:[.-]+[a-z0-9]+)*", name):
            yield place, f"no environment variable can be named for {name!r}; use a-z, 0-9, dots and dashes"
        yield from _under(place, _sign_in(rules))
        for index, host in enumerate(rules.hosts):
            if taken.setdefault(host, name) != name:
                yield (*place, "hosts", index), f"{host} is signed in to by {taken[host]!r} already; keep one"
    both = {name for table, name, _ in signing if table == "engines"} & set(data.get("sites") or ())
    for name in sorted(both):
        yield ("engines", name, "sign_in"), f"there is a site {name!r} too; give the engine another name"


def _sign_in(rules: SignInRules) -> _Found:
    if (rules.form is None) == (rules.oauth2 is None):
        yield (), "write either form or oauth2"
    if rules.form is not None:
        yield from _under(("form",), _form_login(rules.form))
    if rules.oauth2 is not None:
        yield from _under(("oauth2",), _oauth2(rules.oauth2))
    for index, host in enumerate(rules.hosts):
        if not _DOMAIN.fullmatch(host):
            yield ("hosts", index), f"{host!r} is no host name such as www.example.com"


def _form_login(login: FormLogin) -> _Found:
    yield from _under(("page",), _address(login.page))
    yield from _selector(("form",), login.form)
    yield from _regex(("signed_in",), login.signed_in)


def _oauth2(login: OAuth2Login) -> _Found:
    yield from _under(("token_url",), _address(login.token_url, ("https",)))
    if login.consent is not None:
        yield from _selector(("consent", "form"), login.consent.form)
    if login.login is not None:
        yield from _under(("login",), _form_login(login.login))
    with_code = login.grant is Grant.AUTHORIZATION_CODE
    for key in ("authorize_url", "redirect_uri", "login", "consent"):
        if not with_code and getattr(login, key):
            yield (key,), f"{login.grant} has no use for it; leave it out"
    if with_code:
        yield from _under(("authorize_url",), _address(login.authorize_url, ("https",)))
        yield from _under(("redirect_uri",), _address(login.redirect_uri))


def _address(url: str, schemes: tuple[str, ...] = ("http", "https")) -> _Found:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in schemes and bool(parts.hostname) and not re.search(r"[\s#]", url)
    except ValueError:
        usable = False
    if not usable:
        kinds = " or ".join(schemes)
        yield (), f"{url!r} is no {kinds} address; write one such as https://www.example.com/login"


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    near = get_close_matches(name, [str(key) for key in known], n=1, cutoff=0.5)
    if near:
        return f"; did you mean '{near[0]}'?"
    return f"; there is {', '.join(map(str, known))}" if known else ""
