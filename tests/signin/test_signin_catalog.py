"""The catalog's key `sign_in`: what is wrong is told by file, line and key."""

import pytest
import yaml

from splitter.catalog.load import builtin, parse_catalog
from splitter.catalog.sign_in import OAuthGrant
from splitter.errors import CatalogError
from tasks.signin.signins import signing

FORM = {
    "page": "https://a.com/login",
    "user_field": "u",
    "password_field": "p",
    "cookie": "sid",
    "signed_in": "退出",
}
CODE = {
    "grant": "authorization_code",
    "authorize_url": "https://a.com/authorize",
    "token_url": "https://a.com/token",
    "redirect_uri": "http://127.0.0.1/cb",
}


def text_with(site_rules, engine_rules=None, engine="search"):
    data = {
        "version": 1,
        "name": "small",
        "rules": {"r": {"review": "div", "body": "p"}},
        "engines": {
            engine: {
                "kind": "meta",
                "url": "http://www.example.com/s",
                "params": {"q": "{query}"},
                "results": {"hit": "div", "link": "a@href", "title": "a"},
                **({"sign_in": engine_rules} if engine_rules else {}),
            }
        },
        "sites": {
            "a.com": {"engine": engine, "rules": "r", **({"sign_in": site_rules} if site_rules else {})}
        },
    }
    return yaml.safe_dump(data, allow_unicode=True, sort_keys=False)


def problems(*given, **more):
    text = text_with(*given, **more)
    with pytest.raises(CatalogError) as caught:
        parse_catalog(text, "sites.yaml")
    return str(caught.value)


def form(**changed):
    return {"form": FORM | changed, "hosts": ["a.com"]}


def oauth2(**changed):
    return {"oauth2": CODE | changed, "hosts": ["a.com"]}


@pytest.mark.parametrize(
    "rules", [form(), oauth2(), oauth2(login=FORM, consent={"button": "ok", "value": "yes"})]
)
def test_what_is_right_is_taken(rules):
    assert parse_catalog(text_with(rules), "sites.yaml").sites["a.com"].sign_in is not None


def test_an_engine_may_ask_to_sign_in_too():
    catalog = parse_catalog(text_with(None, form() | {"hosts": ["www.example.com"]}), "sites.yaml")
    assert signing(catalog).keys() == {"search"}


@pytest.mark.parametrize(
    ("rules", "key", "says"),
    [
        ({"hosts": ["a.com"]}, "sign_in", "write one of form, oauth2 and cookies"),
        (form() | {"oauth2": CODE}, "sign_in", "write one of form, oauth2 and cookies"),
        (form(page="ftp://a.com"), "sign_in.form.page", "no address of http, https"),
        (form(form="div["), "sign_in.form.form", "no CSS selector"),
        (form(signed_in="("), "sign_in.form.signed_in", "bad regular expression"),
        (form(signed_in=".*"), "sign_in.form.signed_in", "matches everything"),
        (form(user="u"), "sign_in.form.user", "did you mean 'user_field'"),
        (form(password="p"), "sign_in.form.password", "did you mean 'password_field'"),
        (form() | {"hosts": ["A.com"]}, "sign_in.hosts[0]", "no host name"),
        (form() | {"hosts": []}, "sign_in.hosts", "must have 1 entries or more"),
        (form() | {"host": "a.com"}, "sign_in.host", "did you mean 'hosts'"),
        (oauth2(token_url="http://a.com/token"), "sign_in.oauth2.token_url", "no address of https"),
        (oauth2(authorize_url=""), "sign_in.oauth2.authorize_url", "no address of https"),
        (oauth2(redirect_uri=""), "sign_in.oauth2.redirect_uri", "no address of http, https"),
        (oauth2(grant="client_credentials"), "sign_in.oauth2.redirect_uri", "has no use for it"),
        (oauth2(grant="password"), "sign_in.oauth2.grant", "'authorization_code', 'client_credentials'"),
        (oauth2(login=FORM | {"page": ""}), "sign_in.oauth2.login.page", "no address of http, https"),
        (oauth2(consent={"form": "[", "button": "b", "value": ""}), "sign_in.oauth2.consent.form", "CSS"),
    ],
)
def test_what_is_wrong_is_told_at_its_key(rules, key, says):
    told = problems(rules)
    (line,) = [line for line in told.splitlines() if f"sites.a.com.{key}: " in line and says in line] or [
        told
    ]
    assert line.startswith("sites.yaml:")
    assert f"{key}: " in line
    assert says in line


def test_a_host_is_signed_in_to_by_one_entry_only():
    assert "a.com is signed in to by 'search' already" in problems(form(), form())


def test_a_name_must_give_a_variable():
    assert "no environment variable can be named for 'My Engine'" in problems(
        None, form(), engine="My Engine"
    )


def test_the_lab_s_catalog_has_one_of_each():
    rules = signing(builtin("lab-login"))
    assert rules.keys() == {"bbs.example.com", "club.example.com", "t.example.com"}
    assert rules["t.example.com"].oauth2.grant is OAuthGrant.AUTHORIZATION_CODE
    assert signing(builtin("paper-2014")) == {}
