"""A browser's cookies: read once from the environment, sent to the hosts named and to no others."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from splitter.catalog.sign_in import BrowserCookies
from tasks.signin.credentials import Credentials
from tasks.signin.errors import SignInError
from tasks.signin.methods import CookieSignIn

NOW = datetime(2026, 5, 1, tzinfo=UTC)
SESSION = SimpleNamespace(now=NOW)
VARIABLE = "REVIEWLOOP_LOGIN_WEIBO_COOKIES"
WAY = CookieSignIn(BrowserCookies(cookie="SUB", lasts_s=60), ("m.weibo.cn", "weibo.cn"))


def granted(text):
    return WAY.user_login(SESSION, Credentials("weibo", {VARIABLE: text}))


@pytest.mark.parametrize("text", ['SUB=_2A25.x; SUBP="a=b"', ' SUB=_2A25.x ;SUBP="a=b"; '])
def test_each_host_named_gets_them_over_tls(text):
    found = granted(text)
    assert found.expires_at == NOW + timedelta(seconds=60)
    assert {(one.domain, one.name, one.value) for one in found.cookies} == {
        (host, name, value)
        for host in ("m.weibo.cn", "weibo.cn")
        for name, value in (("SUB", "_2A25.x"), ("SUBP", '"a=b"'))
    }
    for one in found.cookies:
        assert one.may_reach(one.domain)
        assert not one.may_reach(f"sub.{one.domain}")
        assert one.goes_with("/api", secure=True, now_s=NOW.timestamp())
        assert not one.goes_with("/api", secure=False, now_s=NOW.timestamp())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", f"{VARIABLE} is not set"),
        ("SUBP=1", "has no cookie 'SUB' \\(it has SUBP\\)"),
        ("SUB=1; nonsense", "part 2 is no cookie"),
        ("SUB=1\r\nHost: evil", "part 1 is no cookie"),
        ("SUB=牛奶", "part 1 is no cookie"),
        ("Cookie: SUB=1", "part 1 is no cookie"),
    ],
)
def test_what_is_no_such_cookie_is_told_without_its_value(text, says):
    with pytest.raises(SignInError, match=says) as caught:
        granted(text)
    assert "evil" not in str(caught.value)


def test_credentials_know_whether_anything_is_given():
    assert Credentials("weibo", {VARIABLE: "SUB=1"}).any
    assert not Credentials("weibo", {VARIABLE: "", "REVIEWLOOP_LOGIN_OTHER_COOKIES": "SUB=1"}).any
