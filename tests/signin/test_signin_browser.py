"""Pages, redirects and forms of a sign-in, over real connections to servers that misbehave."""

import socket
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from urllib.parse import parse_qsl

import pytest
from patience import PATIENCE_S

from tasks.fetching.guard import SessionSettings
from tasks.signin.browser import Session, VisitedPage
from tasks.signin.errors import SignInBroken

NOW = datetime(2026, 5, 1, tzinfo=UTC)


@contextmanager
def serving(*answers, hold=None):
    """A server that answers its nth connection with the nth bytes, and remembers what it was asked, and by whom."""
    asked = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            for answer in answers:
                try:
                    connection, client = server.accept()
                except OSError:
                    return
                with connection:
                    request = connection.recv(65536)
                    head, _, body = request.partition(b"\r\n\r\n")
                    while len(body) < length_of(head):
                        body += connection.recv(65536)
                    asked.append((client[0], head.decode(), body.decode()))
                    connection.sendall(answer)
                    if hold is not None:
                        hold.wait(PATIENCE_S)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname(), asked
        finally:
            if hold is not None:
                hold.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def length_of(head):
    lines = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return int(lines[0].split(b":")[1]) if lines else 0


def http(body="", status="200 OK", **headers):
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    content = body.encode() if isinstance(body, str) else body
    head = "\r\n".join([f"HTTP/1.1 {status}", *lines, f"Content-Length: {len(content)}", "Connection: close"])
    return head.encode() + b"\r\n\r\n" + content


def moved(to, status="302 Found", **headers):
    return http(status=status, Location=to, **headers)


def session(lab, hosts=(), **more):
    return Session(SessionSettings(user_agent="tester", lab=lab, **more), hosts, NOW)


FORM = """<form action=/other></form><form id=f method=POST action="/in?a=1">
<input name=u value=old><input type=password name=p>
<div hidden style="display:none"><input type=hidden name=t value="x&amp;y"></div>
<input name=off value=1 disabled><input type=checkbox name=c1 value=on checked><input type=checkbox name=c2>
<input type=radio name=r value=1><input type=radio name=r value=2 checked><input type=file name=file>
<select name=s><option value=a>A<option value=b selected>B</select><select name=s2><option>first<option>second</select>
<textarea name=ta>text</textarea><input type=submit name=go value=In><button name=no value=1>No</button></form>"""


def test_a_form_is_sent_as_a_browser_sends_it():
    form = VisitedPage("https://a.com/login?x=1", 200, FORM, "gb18030").form("form#f")
    assert (form.action, form.method) == ("https://a.com/in?a=1", "post")
    body = form.fill({"u": "王", "p": "a b&c"})
    assert "u=%CD%F5" in body  # 王 in GB 18030, the encoding of its page
    expected = [
        ("u", "王"),
        ("p", "a b&c"),
        ("t", "x&y"),
        ("c1", "on"),
        ("r", "2"),
        ("s", "b"),
        ("s2", "first"),
    ]
    assert parse_qsl(body, True, encoding="gb18030") == [*expected, ("ta", "text"), ("go", "In")]
    assert form.fill({}, ("no", "1")).endswith("&no=1")


def test_a_form_that_is_not_there_or_lacks_a_field_is_told():
    page = VisitedPage("https://a.com/login?x=1", 200, FORM, "utf-8")
    with pytest.raises(SignInBroken, match="shows no form 'form#g'"):
        page.form("form#g")
    with pytest.raises(SignInBroken, match="has no field 'name'; it has u, p, t"):
        page.form("form#f").fill({"name": "secret"})


def test_redirects_carry_cookies_and_end_where_they_should():
    answers = (
        moved("http://b.com/in", Set_Cookie="k=1; Path=/"),
        moved("http://a.com/back"),
        moved("https://me/cb?code=7"),
    )
    with serving(*answers) as (lab, asked), session(lab) as browser:
        page = browser.get("http://a.com/start", stop_at="https://me/cb")
    assert (page.url, page.text) == ("https://me/cb?code=7", "")
    assert ["Cookie: k=1" in head for _, head, _ in asked] == [False, False, True]
    assert ["Host: b.com" in head for _, head, _ in asked] == [False, True, False]


def test_a_post_becomes_a_get_and_is_never_sent_on():
    form = '<form method=post action="/in"><input name=p></form>'
    with serving(http(form), moved("/done"), http("hello")) as (lab, asked), session(lab) as browser:
        page = browser.get("http://a.com/")
        assert browser.submit(page, page.form("form"), "p=secret").text == "hello"
    assert [(head.split()[0], body) for _, head, body in asked] == [
        ("GET", ""),
        ("POST", "p=secret"),
        ("GET", ""),
    ]
    with serving(http(form), moved("http://b.com/in", "307 Again")) as (lab, asked), session(lab) as browser:
        page = browser.get("http://a.com/")
        with pytest.raises(SignInBroken, match=r"sends the form on to http://b\.com/in"):
            browser.submit(page, page.form("form"), "p=secret")


@pytest.mark.parametrize(
    ("url", "action", "why"),
    [
        ("https://a.com/", "https://b.com/in", "leads to b.com"),
        ("https://a.com/", "http://a.com/in", "https to http"),
    ],
)
def test_a_form_that_leads_elsewhere_is_not_filled_in(url, action, why):
    page = VisitedPage(url, 200, f'<form method=post action="{action}"><input name=p></form>', "utf-8")
    with session(("127.0.0.1", 9)) as browser, pytest.raises(SignInBroken, match=why):
        browser.submit(page, page.form("form"), "p=secret")


def test_a_host_that_is_named_gets_the_form():
    page = VisitedPage("https://a.com/", 200, '<form method=post action="https://b.com/in"></form>', "utf-8")
    with serving(http("in")) as (lab, _), session(lab, ("b.com",)) as browser:
        assert browser.submit(page, page.form("form"), "p=1").text == "in"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://10.0.0.1/",
        "ftp://a.com/",
        "http://[::1]/",
    ],
)
def test_private_addresses_are_refused_outside_the_lab(url):
    with serving(http("x")) as (at, asked), Session(SessionSettings(user_agent="tester"), (), NOW) as browser:
        with pytest.raises(SignInBroken, match=r"public|refused"):
            browser.get(url.format(port=at[1]))
        assert asked == []


def test_nothing_is_sent_where_a_name_changes_its_mind(monkeypatch):
    monkeypatch.setattr("tasks.fetching.guarded_session.GuardedAdapter.check_host", lambda *_: None)
    with serving(http("x")) as (at, asked), Session(SessionSettings(user_agent="tester"), (), NOW) as browser:
        with pytest.raises(SignInBroken, match=r"127\.0\.0\.1, which is no public address"):
            browser.get(f"http://localhost:{at[1]}/")
        # Connected perhaps, but not a byte was sent.
        assert [head for _, head, _ in asked] in ([], [""])


def test_the_own_source_address_is_used():
    with serving(http("x")) as (lab, asked), session(lab, local_address="127.0.0.9") as browser:
        browser.get("http://a.com/")
    assert asked[0][0] == "127.0.0.9"


def test_too_much_is_too_much():
    with (
        serving(http("x" * 2000)) as (lab, _),
        session(lab, body_bytes=1000) as browser,
        pytest.raises(SignInBroken, match="too_large: more than 1,000 bytes"),
    ):
        browser.get("http://a.com/")


@pytest.mark.parametrize(
    "sent",
    [
        b"Transfer-Encoding: chunked\r\n\r\n" + b"1;" + b"x" * 300_000,
        b"Transfer-Encoding: chunked\r\n\r\n" + b"1;%b\r\na\r\n" % (b"x" * 1000) * 300,
        b"Transfer-Encoding: chunked\r\n\r\n" + b"0" * 300_000,
    ],
    ids=["one extension", "extensions", "zeros"],
)
def test_whatever_comes_beside_a_body_counts(sent):
    # The end that would make it an answer never comes.
    with (
        serving(b"HTTP/1.1 200 OK\r\n" + sent) as (lab, _),
        session(lab, body_bytes=1000) as browser,
        pytest.raises(SignInBroken, match="too_large: more than 66,536 bytes"),
    ):
        browser.get("http://a.com/")


@pytest.mark.parametrize(("encoding", "path"), [("utf-8", "%E5%A5%B6"), ("gbk", "%C4%CC")])
def test_the_bytes_of_a_redirect_are_kept(encoding, path):
    to = b"HTTP/1.1 302 Found\r\nLocation: /\xff\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with (
        serving(to.replace(b"\xff", "奶".encode(encoding)), http("x")) as (lab, asked),
        session(lab) as browser,
    ):
        browser.get("http://a.com/")
    assert asked[1][1].startswith(f"GET /{path} ")


def test_redirects_end():
    with serving(*[moved(f"/{n}") for n in range(11)]) as (lab, asked), session(lab) as browser:
        with pytest.raises(SignInBroken, match="more than 10 redirects"):
            browser.get("http://a.com/")
        assert len(asked) == 11


@pytest.mark.parametrize(
    "begun", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"]
)
def test_an_answer_without_an_end_is_broken_off(begun):
    held = threading.Event()
    with serving(begun, hold=held) as (lab, _), session(lab, timeout_s=0.3) as browser:
        with pytest.raises(SignInBroken, match=r"http://a.com/: "):
            browser.get("http://a.com/?token=secret")
        assert not held.is_set()
