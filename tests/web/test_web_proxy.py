"""The dashboard behind a proxy under a path, which the proxy removes or not."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from html import unescape
from ipaddress import ip_network

import pytest
import requests
from dashboard import Serve, Served
from sample_store import OTHER, SITE
from starlette.types import Receive, Scope, Send

from app.run.setting_fields import Settings
from app.run.settings import load_settings
from app.web.base.access import token_hash
from app.web.base.under_path import UnderPath, inner_path
from app.web.server import add_tokens
from splitter.errors import InputError

NAMES = {"", "reviews", "products", "static", "api"}
TOKEN = "an-operators-token"
TOKENS = {"web_viewer": token_hash("v"), "web_operator": token_hash(TOKEN)}
PAGES = (
    *(
        "/",
        "/matrix",
        "/failed",
        "/failed/3",
        "/reviews",
        "/reviews/7",
        "/products",
        "/products/1",
        f"/products/{OTHER}",
    ),
    *(
        "/schedules",
        "/nodes",
        "/sites",
        f"/sites/{SITE}",
        "/audit",
        "/imports",
        f"/pairs/{SITE}/node1",
        "/nowhere",
    ),
)

Ask = Callable[..., requests.Response]


def _inside(root: str, path: str, **sent: object) -> tuple[str, str]:
    """Return the root and the path within the application of a request."""
    found: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        found.append(scope)

    headers = [(name.encode(), str(value).encode()) for name, value in sent.items()]
    scope = {"type": "http", "path": path, "client": ("10.0.0.9", 1), "headers": headers}
    given = [(name.replace(b"_", b"-"), value) for name, value in headers]
    under = UnderPath(app, root, [ip_network("10.0.0.0/8")], NAMES)
    asyncio.run(under({**scope, "headers": given}, None, None))  # type: ignore[arg-type]
    return str(found[0].get("root_path", "")), inner_path(found[0])


@pytest.mark.parametrize(
    ("root", "path", "inside"),
    [
        ("", "/reviews", "/reviews"),
        ("/crawl", "/", "/"),
        ("/crawl", "/reviews/5", "/reviews/5"),
        ("/crawl", "/crawl", "/"),
        ("/crawl", "/crawl/", "/"),
        ("/crawl", "/crawl/reviews/5", "/reviews/5"),
        ("/crawl", "/crawler/reviews", "/crawler/reviews"),
        ("/reviews", "/", "/"),
        ("/reviews", "/reviews/", "/"),
        ("/reviews", "/reviews", "/reviews"),
        ("/reviews", "/reviews/5", "/reviews/5"),
        ("/reviews", "/reviews/reviews", "/reviews"),
        ("/reviews", "/reviews/reviews/5", "/reviews/5"),
        ("/reviews", "/static/style.css", "/static/style.css"),
        ("/reviews", "/reviews/static/style.css", "/static/style.css"),
        ("/a/b", "/a/b/api/nodes", "/api/nodes"),
    ],
)
def test_a_path_is_the_same_whether_the_proxy_removes_the_root_or_not(
    root: str, path: str, inside: str
) -> None:
    assert _inside(root, path) == (root, inside)


@pytest.mark.parametrize(
    ("given", "root"),
    [
        ("/crawl", "/crawl"),
        ("/crawl/", "/crawl"),
        ("/", ""),
        ("/a/b.c", "/a/b.c"),
        ("//evil.example", "/set"),
        ("https://evil.example", "/set"),
        ('/"><script>', "/set"),
    ],
)
def test_a_trusted_proxy_may_name_the_path(given: str, root: str) -> None:
    assert _inside("/set", "/products", x_forwarded_prefix=given) == (root, "/products")


def _ask(served: Served, root: str, *, removes: bool) -> Ask:
    """Return a browser that goes through a proxy."""

    def ask(path: str, method: str = "GET", **how: object) -> requests.Response:
        assert path.startswith(f"{root}/"), path
        sent = path.removeprefix(root) if removes else path
        return served.session.request(method, served.address + sent[1:], allow_redirects=False, **how)  # type: ignore[arg-type]

    return ask


@pytest.mark.parametrize("removes", [True, False])
@pytest.mark.parametrize("root", ["/reviews", "/a/crawl"])
def test_every_link_form_script_and_style_is_below_the_path(serve: Serve, root: str, removes: bool) -> None:
    served = serve(web_root_path=root)
    ask = _ask(served, root, removes=removes)
    links = set()
    for path in PAGES:
        text = ask(root + path).text
        found = re.findall(r'(?:href|src|action)="(/[^"]*)"', text)
        assert len(found) > 10
        assert [one for one in found if not one.startswith(f"{root}/")] == [], path
        links.update(found)
    for link in links:
        if re.search(r"/(edit|remove|correct|undo|try|preview|sign-out)$", link):
            continue
        assert ask(unescape(link).partition("#")[0]).status_code == 200, link
    nav = ask(f"{root}/products").text
    assert f'<a href="{root}/products" aria-current="page">' in nav


@pytest.mark.parametrize("removes", [True, False])
def test_redirects_and_cookies_are_below_the_path(serve: Serve, removes: bool) -> None:
    served = serve(**TOKENS, web_root_path="/reviews")
    ask = _ask(served, "/reviews", removes=removes)
    refused = ask("/reviews/failed?site=12315.com")
    assert refused.headers["Location"] == "/reviews/sign-in?next=%2Ffailed%3Fsite%3D12315.com"
    form = ask(refused.headers["Location"]).text
    assert 'name="next" value="/failed?site=12315.com"' in form
    signed_in = ask("/reviews/sign-in", "POST", data={"token": TOKEN, "next": "/failed"})
    assert signed_in.headers["Location"] == "/reviews/failed"
    assert "path=/reviews;" in signed_in.headers["Set-Cookie"].lower()
    served.session.headers["Cookie"] = signed_in.headers["Set-Cookie"].partition(";")[0]
    assert "path=/reviews;" in ask("/reviews/?lang=zh").headers["Set-Cookie"].lower()
    done = ask("/reviews/nodes", "POST", data={"node": "node1", "action": "drain"})
    assert done.headers["Location"].startswith("/reviews/nodes?said=")
    assert ask("/reviews/sign-out", "POST").headers["Location"] == "/reviews/sign-in"
    assert ask("/reviews/api/openapi.json").json()["servers"][0]["url"] == "/reviews"


def test_only_a_trusted_proxy_names_the_path(serve: Serve) -> None:
    headers = {"X-Forwarded-Prefix": "/reviews"}
    trusting = serve(trusted_proxies=(ip_network("127.0.0.0/8"),))
    assert 'href="/reviews/static/style.css"' in trusting.get("/", headers=headers).text
    assert 'href="/static/style.css"' in trusting.get("/").text
    other = serve()
    assert 'href="/static/style.css"' in other.get("/", headers=headers).text


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://example.com", 303),
        ("http://example.com", 403),
        ("https://example.com:8443", 403),
        ("https://evil.example", 403),
        ("OWN", 403),
    ],
)
def test_changes_come_from_the_public_address(serve: Serve, origin: str, status: int) -> None:
    served = serve(web_address="https://example.com/reviews/")
    own = served.address.rstrip("/")
    form = {"node": "node1", "action": "drain"}
    for host in ("example.com", own.removeprefix("http://")):
        headers = {"Origin": origin.replace("OWN", own), "Host": host}
        answer = served.post("/nodes", data=form, headers=headers, allow_redirects=False)
        assert answer.status_code == status
    assert served.get("/", headers={"Host": "evil.example"}).status_code == 400


def test_a_refused_change_says_what_to_set(sample: Served) -> None:
    headers = {"Origin": "https://example.com"}
    refused = sample.post("/nodes", data={"node": "node1", "action": "drain"}, headers=headers)
    assert "REVIEWLOOP_WEB_ADDRESS" in refused.text


def test_a_public_address_needs_tokens(tmp_path: object) -> None:
    public = Settings(web_address="https://example.com/reviews/", keys_folder=str(tmp_path))
    own, token = add_tokens(public, "127.0.0.1")
    assert (bool(own.web_viewer and own.web_operator), bool(token)) == (True, True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("WEB_ADDRESS", "example.com"),
        ("WEB_ADDRESS", "https://"),
        ("WEB_ADDRESS", "https://user:secret@example.com/"),
        ("WEB_ADDRESS", "https://example.com/?q=1"),
        ("WEB_ADDRESS", "https://example.com:99999/"),
        ("WEB_ROOT_PATH", "reviews"),
        ("WEB_ROOT_PATH", "/re views"),
        ("WEB_ROOT_PATH", "//evil.example"),
        ("WEB_ROOT_PATH", "/<b>"),
    ],
)
def test_a_wrong_address_or_path_is_refused(name: str, text: str) -> None:
    with pytest.raises(InputError, match=f"REVIEWLOOP_{name}") as refused:
        load_settings({f"REVIEWLOOP_{name}": text})
    assert "secret" not in str(refused.value)


def test_a_root_path_is_read_without_its_slash() -> None:
    assert load_settings({"REVIEWLOOP_WEB_ROOT_PATH": "/reviews/"}).web_root_path == "/reviews"
