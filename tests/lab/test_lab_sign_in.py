"""The login wall of the lab as a state machine, and in a running lab."""

import re
from typing import NamedTuple

import pytest

from app.lab.profile import Wall
from app.lab.running import running_lab
from app.lab.sign_in import FormServer, SignInRequest
from splitter.catalog.load import builtin

WALL = Wall(user="reader", password="p&ss 词", session_s=100)


class Reply(NamedTuple):
    outcome: str
    location: str
    body: str


class Visitor:
    """A client of a sign-in server that keeps its cookies."""

    def __init__(self):
        self.server, self.cookies, self.t = FormServer(WALL, 1), {}, 0.0

    def ask(self, path, form=None):
        method = "GET" if form is None else "POST"
        reply = self.server(
            SignInRequest(
                method=method,
                path=path,
                query={},
                form=form or {},
                cookies=self.cookies,
                authorization="",
                t=self.t,
            )
        )
        if reply is None:
            return None
        outcome, response = reply
        for name, value in response.headers:
            if name == "Set-Cookie":
                cookie, _, content = value.partition(";")[0].partition("=")
                self.cookies[cookie] = content
        return Reply(outcome, response.location, response.body.decode())

    def sign_in(self, **changed):
        csrf = re.search(r'name="csrf" value="([^"]+)"', self.ask("/login").body)[1]
        return self.ask("/login", {"csrf": csrf, "username": WALL.user, "password": WALL.password} | changed)


@pytest.fixture
def visitor():
    return Visitor()


def test_a_session_opens_the_site_until_it_ends(visitor):
    assert visitor.ask("/thread-1").outcome == "login_page"
    assert visitor.ask("/member").outcome == "login_page"
    assert visitor.sign_in().location == "/member"
    assert visitor.ask("/thread-1") is None
    assert "退出登录" in visitor.ask("/member").body
    visitor.t = 99.9
    assert visitor.ask("/thread-1") is None
    visitor.t = 100.0
    assert visitor.ask("/thread-1").outcome == "login_page"


@pytest.mark.parametrize("changed", [{"password": "no"}, {"username": "other"}, {"csrf": "made-up"}])
def test_a_wrong_name_password_or_form_opens_nothing(visitor, changed):
    assert visitor.sign_in(**changed).outcome in ("login_form", "login_csrf")
    assert visitor.ask("/x").outcome == "login_page"


def test_a_running_lab_has_the_walls_of_its_profile(get, no_reviews):
    with running_lab(builtin("lab-login"), "login", reviews=no_reviews) as lab:
        assert "请先登录" in get(lab, "bbs.example.com", "/").body.decode()
        assert get(lab, "www.bbs.example.com", "/robots.txt").status == 200
        assert get(lab, "club.example.com", "/").headers["location"] == "/login"
        assert get(lab, "open.example.com", "/").status == 200
        outcomes = [entry.outcome for entry in lab.log.entries()]
    assert outcomes == ["login_page", "robots", "login_redirect", "page"]
