"""Signing in: forms, OAuth 2, and who gets the cookies or the token."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from splitter.catalog.checks.shared import DOMAIN, Found, entries_of, read_as, under
from splitter.catalog.checks.texts import check_regex, check_selector
from splitter.catalog.sign_in import FormLogin, Grant, OAuth2Login, SignInRules
from splitter.yamlfile import Place


def check_sign_ins(data: Mapping[str, Any]) -> Found:
    """What is wrong with the sign-ins of all engines and sites, each and among each other."""
    signing = [
        (table, name, rules)
        for table in ("engines", "sites")
        for name, raw in entries_of(data, table)
        if isinstance(raw, Mapping) and (rules := read_as(SignInRules, raw.get("sign_in"))) is not None
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


def _sign_in(rules: SignInRules) -> Found:
    if sum(way is not None for way in (rules.form, rules.oauth2, rules.cookies)) != 1:
        yield (), "write one of form, oauth2 and cookies"
    if rules.form is not None:
        yield from under(("form",), _form_login(rules.form))
    if rules.oauth2 is not None:
        yield from under(("oauth2",), _oauth2(rules.oauth2))
    for index, host in enumerate(rules.hosts):
        if not DOMAIN.fullmatch(host):
            yield ("hosts", index), f"{host!r} is no host name such as www.example.com"


def _form_login(login: FormLogin) -> Found:
    yield from under(("page",), _address(login.page))
    yield from check_selector(("form",), login.form)
    yield from check_regex(("signed_in",), login.signed_in)


def _oauth2(login: OAuth2Login) -> Found:
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


def _address(url: str, schemes: tuple[str, ...] = ("http", "https")) -> Found:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in schemes and bool(parts.hostname) and not re.search(r"[\s#]", url)
    except ValueError:
        usable = False
    if not usable:
        kinds = " or ".join(schemes)
        yield (), f"{url!r} is no {kinds} address; write one such as https://www.example.com/login"
