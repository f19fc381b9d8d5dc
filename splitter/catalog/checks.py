"""Checks of a catalog beyond its shape: references, addresses, encodings, headers, times, sign-ins.

They run over the validated models. Selectors, regular expressions and templates: ``splitter.catalog.rule_checks``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from urllib.parse import urlsplit

from splitter.catalog.model import (
    TIME_PLACEHOLDERS,
    Catalog,
    Engine,
    RobotsDecision,
    Site,
    TimeFilter,
)
from splitter.catalog.rule_checks import (
    Findings,
    check_page_rules,
    check_regex,
    check_result_rules,
    check_selector,
    placeholders,
    problem,
    template_of,
    under,
)
from splitter.catalog.sign_in import FormLogin, OAuth2Login, OAuthGrant, SignInRules
from splitter.catalog.yamlfile import Place
from splitter.errors import Message, WrongValue

_DOMAIN = re.compile(
    r"(?=.{4,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])"
)
_LEAST_REASON = 10
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, 5.6.2
_OWN_HEADER = re.compile(
    "authorization|cookie|user-agent|host|accept-encoding|connection|content-length|transfer-encoding|te|range",
    re.IGNORECASE,
)


def problems_of(catalog: Catalog) -> Findings:
    """Yield everything that is wrong in a catalog and that its shape cannot say."""
    if catalog.version != 1 or "version" not in catalog.model_fields_set:
        yield ("version",), Message("missing, or not known here; write 'version: 1' at the top")
    for table in ("engines", "sites"):
        if not getattr(catalog, table):
            yield (table,), Message("empty; a catalog needs at least one")
    for name, engine in catalog.engines.items():
        yield from under(("engines", name), _check_engine(engine))
    for name, rules in catalog.rules.items():
        yield from under(("rules", name), check_page_rules(rules))
    for name, site in catalog.sites.items():
        yield from under(("sites", name), _check_site(catalog, name, site))
    yield from _check_sign_ins(catalog)


# --- engines --------------------------------------------------------------------------------------------------


def _check_engine(engine: Engine) -> Findings:
    """Yield problems of an engine."""
    yield from _list(engine) if engine.discover == "list" else _search(engine)
    yield from _paging(engine)
    yield from problem(("encoding",), _check_encoding, engine.encoding)
    yield from _headers(engine.headers)
    yield from _check_robots(engine.robots)
    for index, pattern in enumerate(engine.redirects):
        yield from problem(("redirects", index), check_regex, pattern)
    if engine.times is not None:
        yield from under(("times",), _times(engine.times, engine.params))
    if engine.inline and engine.results.post is None:
        yield (
            ("inline",),
            Message("results.post does not say where a hit's text stands; write post: {body: ...}"),
        )
    yield from under(("results",), check_result_rules(engine.results))
    if engine.results.post is not None and not engine.inline:
        yield (
            ("results", "post"),
            Message("only engines with inline: true have one; add that or leave this out"),
        )


def _check_url(url: str) -> None:
    _ADDRESS(url)
    if re.search(r"[?#\s{}]", url):
        raise WrongValue("{url!r} holds more than an address; put the query into params", url=url)


def _search(engine: Engine) -> Findings:
    """Yield problems of an engine that is asked for words."""
    yield from problem(("url",), _check_url, engine.url)
    yield from problem(("site",), template_of("words", "site", needed="words"), engine.site)
    carries = [name for name, value in engine.params.items() if "query" in (placeholders(value) or ())]
    for name in carries:
        if name in engine.paging_params:
            yield (
                ("paging_params",),
                Message(
                    "parameter '{name}' holds {{query}}, so searches without paging need it as well",
                    name=name,
                ),
            )
    if not carries:
        yield ("params",), Message("no parameter carries the query; write {query} as the value of one")
    if "results" not in engine.model_fields_set:
        yield ("results",), Message("missing; only engines with discover: list can do without")


def _list(engine: Engine) -> Findings:
    """Yield problems of an engine whose pages list others."""
    yield from problem(("url",), _check_url, engine.url.replace("{page}", "1"))
    for key in ("site", "times", "redirects", "extra_words"):
        if key in engine.model_fields_set:
            yield (key,), Message("a list takes no search words: leave this out, or write discover: search")
    for name, value in engine.params.items():
        if "query" in (placeholders(value) or ()):
            yield ("params", name), Message("a list takes no search words: leave {query} out")
    if engine.results.format == "json":
        yield (
            ("results", "format"),
            Message("a list is a sitemap, a feed or a page in HTML; leave format out"),
        )


def _paging(engine: Engine) -> Findings:
    for name, value in engine.params.items():
        place: Place = ("params", name)
        yield from problem(place, template_of("query", "page", "offset"), value)
        used = placeholders(value) or set()
        if "query" not in used and used & {"page", "offset"} and name not in engine.paging_params:
            yield place, Message("depends on the page; add '{name}' to paging_params", name=name)
    for index, name in enumerate(engine.paging_params):
        if name not in engine.params:
            unknown = WrongValue("no parameter {name!r}", name=name)
            yield ("paging_params", index), unknown.suggest(name, engine.params) or unknown


def _headers(headers: Mapping[str, str]) -> Findings:
    for name, value in headers.items():
        place: Place = ("headers", name)
        if not _HEADER.fullmatch(name):
            yield place, Message("{name!r} is no header name such as X-Requested-With", name=name)
        elif _OWN_HEADER.fullmatch(name):
            yield place, Message("reviewloop sets it itself, or takes it from sign_in; leave it out")
        if not value.strip() or not value.isascii() or not value.isprintable():
            yield place, Message("{value!r} cannot be sent; write printable ASCII", value=value)


def _times(times: TimeFilter, params: Mapping[str, str]) -> Findings:
    used: set[str] = set()
    for name, value in times.params.items():
        yield from problem(("params", name), template_of(*TIME_PLACEHOLDERS), value)
        used |= placeholders(value) or set()
        if name in params:
            yield (
                ("params", name),
                Message("'{name}' is one of the engine's params already; leave it out there", name=name),
            )
    for end in ("from", "to"):
        if not any(name.startswith(f"{end}_") for name in used):
            yield (
                ("params",),
                Message("no parameter carries the range's {end}; write {{{end}_s}}, _day or _hour", end=end),
            )
    if times.least == "hour" and used and all(name.endswith("_day") for name in used):
        yield ("least",), Message("days cannot tell hours apart; write least: day")


def _check_encoding(encoding: str) -> None:
    sample = "a中文"
    try:
        whole = sample.encode(encoding, "ignore")
        parts = b"".join(char.encode(encoding, "ignore") for char in sample)
    except (LookupError, ValueError):
        raise WrongValue(
            "unknown encoding {encoding!r}; write utf-8, gbk, gb18030 or big5", encoding=encoding
        ) from None
    if whole != parts:
        raise WrongValue(
            "{encoding!r} cannot be used in a URL; write utf-8, gbk, gb18030 or big5", encoding=encoding
        )


def _check_robots(decision: RobotsDecision | None) -> Findings:
    """Yield a decision not to obey robots.txt that gives no reason."""
    if decision is not None and not decision.obey and len(decision.reason.strip()) < _LEAST_REASON:
        yield (
            ("robots", "reason"),
            Message(
                "{reason!r} is no reason not to obey robots.txt; write who allows it, in {n} characters or more",
                reason=decision.reason,
                n=_LEAST_REASON,
            ),
        )


# --- sites ----------------------------------------------------------------------------------------------------


def _check_site(catalog: Catalog, name: str, site: Site) -> Findings:
    """Yield problems of a site: its name, its references, its bounds."""
    if not _DOMAIN.fullmatch(name):
        wrong = Message("{name!r} is no domain name such as example.com", name=name)
        if _DOMAIN.fullmatch(name.lower()):
            wrong = Message("{wrong}; write {right}", wrong=wrong, right=name.lower())
        yield (), wrong
    if site.engine not in catalog.engines:
        unknown = WrongValue("there is no {engine!r} in engines", engine=site.engine)
        yield ("engine",), unknown.suggest(site.engine, catalog.engines) or unknown
    if site.rules not in catalog.rules:
        unknown = WrongValue("there is no {rules!r} in rules", rules=site.rules)
        yield ("rules",), unknown.suggest(site.rules, catalog.rules) or unknown
    if site.encoding:
        yield from problem(("encoding",), _check_page_encoding, site.encoding)
    yield from _check_robots(site.robots)
    for key, bounds in (("quota", site.quota), ("budget_s", site.budget_s)):
        if bounds.min > bounds.max:
            yield (
                (key,),
                Message("min {min:g} is above max {max:g}; exchange them", min=bounds.min, max=bounds.max),
            )


def _check_page_encoding(encoding: str) -> None:
    """Check that Python decodes text with it; no page is written in hex or idna."""
    try:
        "a中文".encode(encoding, "replace").decode(encoding)
    except (LookupError, ValueError, TypeError):
        raise WrongValue(
            "unknown encoding {encoding!r}; write utf-8, gb18030 or big5", encoding=encoding
        ) from None


# --- sign-ins -------------------------------------------------------------------------------------------------


def _check_sign_ins(catalog: Catalog) -> Findings:
    """Yield problems of the sign-ins of all engines and sites, each and among each other."""
    taken: dict[str, str] = {}
    for table, entries in (("engines", catalog.engines), ("sites", catalog.sites)):
        for name, entry in entries.items():
            if entry.sign_in is None:
                continue
            place: Place = (table, name, "sign_in")
            if not re.fullmatch(r"[a-z0-9]+(?:[.-]+[a-z0-9]+)*", name):
                yield (
                    place,
                    Message(
                        "no environment variable can be named for {name!r}; use a-z, 0-9, . and -", name=name
                    ),
                )
            yield from under(place, _sign_in(entry.sign_in))
            for index, host in enumerate(entry.sign_in.hosts):
                if taken.setdefault(host, name) != name:
                    yield (
                        (*place, "hosts", index),
                        Message(
                            "{host} is signed in to by {other!r} already; keep one",
                            host=host,
                            other=taken[host],
                        ),
                    )
            if table == "engines" and name in catalog.sites:
                yield place, Message("there is a site {name!r} too; give the engine another name", name=name)


def _sign_in(rules: SignInRules) -> Findings:
    if sum(way is not None for way in (rules.form, rules.oauth2, rules.cookies)) != 1:
        yield (), Message("write one of form, oauth2 and cookies")
    if rules.form is not None:
        yield from under(("form",), _form_login(rules.form))
    if rules.oauth2 is not None:
        yield from under(("oauth2",), _oauth2(rules.oauth2))
    for index, host in enumerate(rules.hosts):
        if not _DOMAIN.fullmatch(host):
            yield ("hosts", index), Message("{host!r} is no host name such as www.example.com", host=host)


def _form_login(login: FormLogin) -> Findings:
    yield from problem(("page",), _ADDRESS, login.page)
    yield from problem(("form",), check_selector, login.form)
    yield from problem(("signed_in",), check_regex, login.signed_in)


def _oauth2(login: OAuth2Login) -> Findings:
    yield from problem(("token_url",), _SECURE_ADDRESS, login.token_url)
    if login.consent is not None:
        yield from problem(("consent", "form"), check_selector, login.consent.form)
    if login.login is not None:
        yield from under(("login",), _form_login(login.login))
    with_code = login.grant is OAuthGrant.AUTHORIZATION_CODE
    for key in ("authorize_url", "redirect_uri", "login", "consent"):
        if not with_code and getattr(login, key):
            yield (key,), Message("{grant} has no use for it; leave it out", grant=login.grant)
    if with_code:
        yield from problem(("authorize_url",), _SECURE_ADDRESS, login.authorize_url)
        yield from problem(("redirect_uri",), _ADDRESS, login.redirect_uri)


def _check_scheme(url: str, schemes: Sequence[str]) -> None:
    """Check that a text is an address with one of some schemes."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in schemes and bool(parts.hostname) and not re.search(r"[\s#]", url)
    except ValueError:
        usable = False
    if not usable:
        raise WrongValue(
            "{url!r} is no address of {schemes}; write one such as https://www.example.com/s",
            url=url,
            schemes=", ".join(schemes),
        )


_ADDRESS = partial(_check_scheme, schemes=("http", "https"))
_SECURE_ADDRESS = partial(_check_scheme, schemes=("https",))
