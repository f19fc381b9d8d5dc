"""The lab's doors as state machines: what they let in, what they refuse, and what works only once."""

import base64
import re
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest

from app.lab.hashed_password import hashed
from app.lab.login import SignInRequest, Wall
from app.lab.oauth import OAuth, sign_in_server
from app.lab.profile import Profile, load_profile
from app.lab.running import running_lab
from splitter.catalog.load import builtin

WALL = Wall(user="reader", password="p&ss 词", session_s=100)
OAUTH = OAuth(wall=WALL, client_id="me", client_secret="s3", redirect_uri="http://127.0.0.1/cb", token_s=50)
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()


class Said(NamedTuple):
    outcome: str
    status: int
    body: str
    headers: tuple
    location: str


class Client:
    """A visitor of a sign-in server that keeps its cookies."""

    def __init__(self, door):
        self.door, self.cookies, self.t = door, {}, 0.0

    def ask(self, target, form=None, authorization=""):
        path, _, query = target.partition("?")
        reply = self.door(
            SignInRequest(
                method="GET" if form is None else "POST",
                path=path,
                query=dict(parse_qsl(query)),
                form=form or {},
                cookies=self.cookies,
                authorization=authorization,
                t=self.t,
            )
        )
        if reply is None:
            return None
        outcome, document = reply
        for name, value in document.headers:
            if name == "Set-Cookie":
                cookie, _, content = value.partition(";")[0].partition("=")
                self.cookies[cookie] = content
        return Said(outcome, document.status, document.body.decode(), document.headers, document.location)

    def csrf(self, target):
        return re.search(r'name="csrf" value="([^"]+)"', self.ask(target).body)[1]

    def login(self, **more):
        filled = {"csrf": self.csrf("/login"), "username": WALL.user, "password": WALL.password, **more}
        return self.ask("/login", filled)

    def authorize(self, **more):
        asked = {
            "response_type": "code",
            "client_id": "me",
            "redirect_uri": OAUTH.redirect_uri,
            "state": "st",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
        } | more
        return f"/oauth2/authorize?{urlencode(asked)}"

    def code(self):
        said = self.ask("/oauth2/authorize", {"csrf": self.csrf(self.authorize()), "consent": "yes"})
        return query_of(said)["code"][0]

    def token(self, secret="s3", **form):
        basic = base64.b64encode(f"me:{secret}".encode()).decode()
        return self.ask("/oauth2/token", form, authorization=f"Basic {basic}")

    def exchange(self, code, **more):
        form = {"code": code, "code_verifier": VERIFIER, "redirect_uri": OAUTH.redirect_uri} | more
        return self.token(grant_type="authorization_code", **form)


def query_of(said):
    return parse_qs(urlsplit(said.location).query)


@pytest.fixture
def visitor():
    return Client(sign_in_server(WALL, 1))


@pytest.fixture
def bearer():
    client = Client(sign_in_server(OAUTH, 1))
    client.login()
    return client


def test_the_wall_stands_until_somebody_signs_in_and_again_when_the_session_ends(visitor):
    assert (visitor.ask("/thread-1").status, visitor.ask("/thread-1").outcome) == (200, "login_page")
    assert visitor.ask("/member").outcome == "login_page"
    assert visitor.login().location == "/member"
    assert visitor.ask("/thread-1") is None
    assert "退出登录" in visitor.ask("/member").body
    visitor.t = 99.9
    assert visitor.ask("/thread-1") is None
    visitor.t = 100.0
    assert visitor.ask("/thread-1").outcome == "login_page"


def test_a_wall_may_redirect():
    said = Client(sign_in_server(WALL.model_copy(update={"answer": "redirect"}), 1)).ask("/x")
    assert (said.status, said.location) == (302, "/login")


@pytest.mark.parametrize("wrong", [{"password": "no"}, {"username": "other"}, {"csrf": "made-up"}])
def test_wrong_names_passwords_and_forms_open_nothing(visitor, wrong):
    assert visitor.login(**wrong).outcome in ("login_form", "login_csrf")
    assert visitor.ask("/x").outcome == "login_page"


def test_a_form_is_good_for_its_own_visit_and_once(visitor):
    csrf = visitor.csrf("/login")
    other = Client(visitor.door)
    assert other.login(csrf=csrf).outcome == "login_csrf"
    assert visitor.login(csrf=csrf).outcome == "login_csrf"  # of the form before this one
    assert visitor.login().outcome == "login_ok"


def test_a_code_becomes_a_token_once(bearer):
    assert bearer.ask("/1/a").status == 401
    assert dict(bearer.ask("/1/a").headers)["WWW-Authenticate"] == 'Bearer realm="lab"'
    code = bearer.code()
    said = bearer.exchange(code)
    token = re.search(r'"access_token": "([^"]+)"', said.body)[1]
    assert bearer.ask("/1/a", authorization=f"Bearer {token}") is None
    assert "invalid_grant" in bearer.exchange(code).body
    bearer.t = 50.0
    said = bearer.ask("/1/a", authorization=f"Bearer {token}")
    assert "invalid_token" in dict(said.headers)["WWW-Authenticate"]


@pytest.mark.parametrize(
    "wrong", [{"code_verifier": "x" * 43}, {"redirect_uri": "http://evil.com/cb"}, {"code": "code-0"}]
)
def test_a_code_is_worth_nothing_with_anything_else(bearer, wrong):
    assert "invalid_grant" in bearer.exchange(**({"code": bearer.code()} | wrong)).body


def test_a_code_ends(bearer):
    code = bearer.code()
    bearer.t = 61.0
    assert "invalid_grant" in bearer.exchange(code).body


def test_consent_wants_a_person_a_form_and_a_yes(bearer):
    stranger = Client(bearer.door)
    assert stranger.ask(stranger.authorize()).location == "/login"
    csrf = bearer.csrf(bearer.authorize())
    assert stranger.ask("/oauth2/authorize", {"csrf": csrf, "consent": "yes"}).status == 403
    said = bearer.ask("/oauth2/authorize", {"csrf": bearer.csrf(bearer.authorize()), "consent": "no"})
    assert query_of(said) == {"error": ["access_denied"], "state": ["st"]}


@pytest.mark.parametrize("wrong", [{"redirect_uri": "http://evil.com/cb"}, {"client_id": "you"}])
def test_nobody_is_redirected_to_a_stranger(bearer, wrong):
    said = bearer.ask(bearer.authorize(**wrong))
    assert (said.status, said.headers) == (400, ())


def test_without_pkce_there_is_no_code(bearer):
    assert query_of(bearer.ask(bearer.authorize(code_challenge_method="plain")))["error"] == [
        "invalid_request"
    ]


def test_refresh_tokens_are_good_once_and_a_client_needs_its_secret(bearer):
    again = re.search(r'"refresh_token": "([^"]+)"', bearer.exchange(bearer.code()).body)[1]
    assert bearer.token(secret="no", grant_type="refresh_token", refresh_token=again).status == 401
    assert bearer.token(grant_type="refresh_token", refresh_token=again).status == 200
    assert bearer.token(grant_type="refresh_token", refresh_token=again).status == 400
    assert "refresh_token" not in bearer.token(grant_type="client_credentials").body
    assert "unsupported_grant_type" in bearer.token(grant_type="password").body


def test_doors_of_the_built_in_profile_stand_in_the_running_lab(get, no_reviews):
    with running_lab(builtin("lab-login"), "login", reviews=no_reviews) as lab:
        assert "请先登录" in get(lab, "bbs.example.com", "/").body.decode()
        assert get(lab, "www.bbs.example.com", "/robots.txt").status == 200
        assert get(lab, "t.example.com", "/").headers["www-authenticate"].startswith("Bearer")
        assert get(lab, "open.example.com", "/").status == 200
        assert [entry.outcome for entry in lab.log.entries()][:3] == ["login_page", "robots", "unauthorized"]


def test_a_site_may_want_the_password_hashed():
    client = Client(sign_in_server(WALL.model_copy(update={"hashed": True}), 1))
    assert client.login().outcome == "login_form"
    csrf = client.csrf("/login")
    filled = {"csrf": csrf, "username": WALL.user, "password": hashed(csrf[-8:], WALL.password)}
    assert client.ask("/login", filled).outcome == "login_ok"


def test_only_the_profile_login_has_doors():
    assert load_profile("login").doors.keys() == {"bbs.example.com", "club.example.com", "t.example.com"}
    assert load_profile("demo").doors == Profile(name="x").doors == {}
