"""A login wall of the lab: a form with name and password, and what every sign-in server has in common.

A sign-in server stands before a site. It replies to requests for its own pages (`/login`, `/member`, `/oauth2/...`) and
to clients that are not signed in; for others it returns None, and the site answers. Time is the lab's and chance is a
hash, so it is a pure state machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from app.lab import chance
from app.lab.answers import Document, notice, redirect
from app.lab.hashed_password import SALT, hashed
from app.lab.pages import TEMPLATES

_WALL = "请先登录后再查看内容"
EXPIRED = notice(403, "表单已失效", "<p>请重新打开</p>")


class ProfileModel(BaseModel):
    """A part of a profile: frozen, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Wall(ProfileModel):
    """A login wall.

    Attributes:
        user, password: who is let in.
        session_s: how long a session lasts.
        answer: what others get: a page with status 200, or 302 to the form.
        hashed: the form's script hashes the password with its salt.
    """

    user: str
    password: str
    session_s: float = Field(default=600, gt=0)
    answer: Literal["page", "redirect"] = "page"
    hashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInRequest:
    """A request to a sign-in server.

    Attributes:
        path: without query string.
        form: what a form sent in the body.
        authorization: that header; empty where it is not sent.
        t: seconds of the lab's time.
    """

    method: str
    path: str
    query: Mapping[str, str]
    form: Mapping[str, str]
    cookies: Mapping[str, str]
    authorization: str
    t: float


Reply = tuple[str, Document]
"""A reply of a sign-in server; its outcome for the log comes first."""

SignInServer = Callable[[SignInRequest], Reply | None]


@dataclass(slots=True)
class FormServer:
    """The form of a `Wall`, and its sessions.

    Attributes:
        sessions: session ids with their end, in seconds of the lab's time.
        forms: visits that were shown the form, with its CSRF token, good for one try.
    """

    wall: Wall
    seed: int
    sessions: dict[str, float] = field(default_factory=dict)
    forms: dict[str, str] = field(default_factory=dict)
    shown: int = 0

    def __call__(self, request: SignInRequest) -> Reply | None:
        """Reply to a request; None: it is signed in."""
        if (own := self.own(request)) is not None:
            return own
        if self.signed_in(request):
            return None
        if self.wall.answer == "redirect":
            return "login_redirect", redirect("/login")
        return "login_page", notice(200, _WALL, '<p><a href="/login">登录</a></p>')

    def own(self, request: SignInRequest) -> Reply | None:
        """Reply for the form and the page behind it; None: another page is meant."""
        match request.method, request.path:
            case "GET", "/login":
                return self._form(_WALL)
            case "POST", "/login":
                return self._login(request)
            case "GET", "/member" if self.signed_in(request):
                return "member", notice(200, "会员中心", f"<p>您好，{escape(self.wall.user)}！退出登录</p>")
        return None

    def signed_in(self, request: SignInRequest) -> bool:
        """Whether a request carries a session that has not ended."""
        return self.sessions.get(request.cookies.get("sid", ""), -1.0) > request.t

    def _form(self, note: str) -> Reply:
        self.shown += 1
        visit = token_of(self.seed, "visit", self.shown)
        self.forms[visit] = csrf = token_of(self.seed, "csrf", self.shown)
        fields = TEMPLATES["sign-in"]["form"].format(note=note, csrf=csrf, salt_name=SALT, salt=csrf[-8:])
        cookie = ("Set-Cookie", f"visit={visit}; Path=/login; HttpOnly")
        return "login_form", replace(notice(200, "用户登录", fields), headers=(cookie,))

    def _login(self, request: SignInRequest) -> Reply:
        sent = request.form
        csrf = self.forms.pop(request.cookies.get("visit", ""), "")
        if not csrf or sent.get("csrf") != csrf:
            return "login_csrf", EXPIRED
        password = hashed(csrf[-8:], self.wall.password) if self.wall.hashed else self.wall.password
        if (sent.get("username"), sent.get("password")) != (self.wall.user, password):
            return self._form("用户名或密码错误")
        sid = token_of(self.seed, "sid", len(self.sessions))
        self.sessions[sid] = request.t + self.wall.session_s
        cookie = f"sid={sid}; Path=/; HttpOnly; Max-Age={max(1, round(self.wall.session_s))}"
        return "login_ok", replace(redirect("/member"), headers=(("Set-Cookie", cookie),))


def token_of(seed: int, what: str, number: int) -> str:
    """A secret of the lab; the same for the same seed."""
    return f"{what}-{chance.number(seed, 'door', what, number):016x}"
