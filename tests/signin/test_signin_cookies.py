"""Cookies are only sent where they belong: our rules against those of the standard library's strict jar."""

import email.message
import time
import urllib.request
from datetime import UTC, datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.signin.granted import Cookie, Granted, cookies_of

HOSTS = ["a.com", "www.a.com", "x.www.a.com", "ba.com", "a.com.cn", "www.b.com"]
PATHS = ["/", "/in", "/in/", "/in/side", "/inside", "/IN"]


class _Answer:
    def __init__(self, *set_cookie: str) -> None:
        self._message = email.message.Message()
        for line in set_cookie:
            self._message["Set-Cookie"] = line

    def info(self) -> email.message.Message:
        return self._message


def made(value: str, *, secure: bool, expires_s: float | None) -> Cookie:
    return Cookie(
        name="sid", value=value, domain="a.com", path="/", host_only=True, secure=secure, expires_s=expires_s
    )


def jar_of(url: str, *set_cookie: str) -> CookieJar:
    jar = CookieJar(DefaultCookiePolicy(strict_ns_domain=DefaultCookiePolicy.DomainStrictNonDomain))
    jar.extract_cookies(_Answer(*set_cookie), urllib.request.Request(url))
    return jar


def sent_by_us(cookies: tuple[Cookie, ...], url: str) -> list[str]:
    parts = urlsplit(url)
    secure, now_s = parts.scheme == "https", time.time()
    return [
        f"{c.name}={c.value}"
        for c in cookies
        if c.may_reach(parts.hostname) and c.goes_with(parts.path, secure=secure, now_s=now_s)
    ]


lines = st.builds(
    lambda name, path, domain, more: f"{name}=1{path}{domain}{more}",
    st.sampled_from("abc"),
    st.sampled_from(["", *(f"; Path={path}" for path in PATHS)]),
    st.sampled_from(["", *(f"; Domain={host}" for host in HOSTS)]),
    st.sampled_from(["", "; Secure", "; Max-Age=9999", "; Secure; HttpOnly"]),
)


@given(
    source=st.sampled_from(HOSTS),
    path=st.sampled_from(PATHS),
    sets=st.lists(lines, min_size=1, max_size=3),
    host=st.sampled_from(HOSTS),
    asked=st.sampled_from(PATHS),
    scheme=st.sampled_from(["http", "https"]),
)
def test_what_we_send_is_what_a_strict_jar_sends(source, path, sets, host, asked, scheme):
    jar = jar_of(f"https://{source}{path}", *sets)
    url = f"{scheme}://{host}{asked}"
    request = urllib.request.Request(url)
    jar.add_cookie_header(request)
    theirs = request.get_header("Cookie")
    assert sorted(sent_by_us(cookies_of(jar), url)) == sorted(theirs.split("; ") if theirs else [])


def test_a_cookie_of_a_host_goes_to_no_subdomain_and_no_other_host():
    (cookie,) = cookies_of(jar_of("https://a.com/login", "sid=1; Path=/"))
    assert [host for host in HOSTS if cookie.may_reach(host)] == ["a.com"]
    (shared,) = cookies_of(jar_of("https://www.a.com/login", "sid=1; Path=/; Domain=a.com"))
    assert [host for host in HOSTS if shared.may_reach(host)] == ["a.com", "www.a.com", "x.www.a.com"]


def test_a_site_cannot_set_a_cookie_of_another():
    assert cookies_of(jar_of("https://a.com/", "sid=1; Domain=b.com", "sid=1; Domain=com")) == ()


@pytest.mark.parametrize(("now_s", "goes"), [(99.9, True), (100.0, False)])
def test_a_cookie_ends_when_it_says(now_s, goes):
    cookie = made("1", secure=False, expires_s=100.0)
    assert cookie.goes_with("/", secure=False, now_s=now_s) is goes


def test_what_is_granted_survives_as_json_and_shows_no_secret():
    cookie = made("s3cret-cookie", secure=True, expires_s=None)
    granted = Granted(datetime(2026, 5, 1, tzinfo=UTC), (cookie,), "s3cret-token", "s3cret-refresh")
    assert Granted.from_json(granted.to_json()) == granted
    assert "s3cret" not in f"{granted!r} {cookie!r} {granted} {[granted]}"
