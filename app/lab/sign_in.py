"""A login wall of the lab: a form with name and password, and the sessions of its users.

A sign-in server stands in front of a site. It replies to requests for its own pages (`/login`, `/member`) and to
clients that are not signed in. For other requests it returns `None`, and the site answers. It uses the lab's time and
random numbers from a hash, so its replies depend only on the requests before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from html import escape

from app.lab import chance
from app.lab.answers import LabResponse, notice, redirect
from app.lab.pages import TEMPLATES
from app.lab.profile import Wall

SALT = "salt"
"""Name of the form field with the salt of the hash."""

_ASK_TO_SIGN_IN = "请先登录后再查看内容"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInRequest:
    """A request to a sign-in server.

    Attributes:
        path: Path without query string.
        form: Fields of a form in the body.
        authorization: The Authorization header. Empty if there is none.
        t: Seconds of the lab's time.
    """

    method: str
    path: str
    query: Mapping[str, str]
    form: Mapping[str, str]
    cookies: Mapping[str, str]
    authorization: str
    t: float


Reply = tuple[str, LabResponse]
"""A reply of a sign-in server: its outcome for the log, and the response."""

SignInServer = Callable[[SignInRequest], Reply | None]


@dataclass(slots=True)
class FormServer:
    """A login wall with a form.

    Attributes:
        sessions: End of each session by id, in seconds of the lab's time.
        forms: CSRF token of each shown form, by visit. It can be used once.
        shown: Number of times the form was shown.
    """

    wall: Wall
    seed: int
    sessions: dict[str, float] = field(default_factory=dict)
    forms: dict[str, str] = field(default_factory=dict)
    shown: int = 0

    def __call__(self, request: SignInRequest) -> Reply | None:
        """Return the reply to a request, or `None` if the client is signed in and the site should answer."""
        if (reply := self.reply_for_own_page(request)) is not None:
            return reply
        if self.is_signed_in(request):
            return None
        if self.wall.answer == "redirect":
            return "login_redirect", redirect("/login")
        return "login_page", notice(200, _ASK_TO_SIGN_IN, '<p><a href="/login">登录</a></p>')

    def reply_for_own_page(self, request: SignInRequest) -> Reply | None:
        """Return the reply to a request for the form or the member page, or `None` for another path."""
        match request.method, request.path:
            case "GET", "/login":
                return self._show_form(_ASK_TO_SIGN_IN)
            case "POST", "/login":
                return self._sign_in(request)
            case "GET", "/member" if self.is_signed_in(request):
                return "member", notice(200, "会员中心", f"<p>您好，{escape(self.wall.user)}！退出登录</p>")
        return None

    def is_signed_in(self, request: SignInRequest) -> bool:
        """Return True if the request has a session that has not ended."""
        return self.sessions.get(request.cookies.get("sid", ""), -1.0) > request.t

    def _show_form(self, note: str) -> Reply:
        self.shown += 1
        visit = make_token(self.seed, "visit", self.shown)
        self.forms[visit] = csrf = make_token(self.seed, "csrf", self.shown)
        fields = TEMPLATES["sign-in"]["form"].format(note=note, csrf=csrf, salt_name=SALT, salt=csrf[-8:])
        cookie = ("Set-Cookie", f"visit={visit}; Path=/login; HttpOnly")
        return "login_form", replace(notice(200, "用户登录", fields), headers=(cookie,))

    def _sign_in(self, request: SignInRequest) -> Reply:
        csrf = self.forms.pop(request.cookies.get("visit", ""), "")
        if not csrf or request.form.get("csrf") != csrf:
            return "login_csrf", notice(403, "表单已失效", "<p>请重新打开</p>")
        password = hash_password(csrf[-8:], self.wall.password) if self.wall.hashed else self.wall.password
        if (request.form.get("username"), request.form.get("password")) != (self.wall.user, password):
            return self._show_form("用户名或密码错误")
        sid = make_token(self.seed, "sid", len(self.sessions))
        self.sessions[sid] = request.t + self.wall.session_s
        cookie = f"sid={sid}; Path=/; HttpOnly; Max-Age={max(1, round(self.wall.session_s))}"
        return "login_ok", replace(redirect("/member"), headers=(("Set-Cookie", cookie),))


def hash_password(salt: str, password: str) -> str:
    """Return the hash of a password that the script of the form sends."""
    return sha256(f"{salt}{password}".encode()).hexdigest()


def make_token(seed: int, kind: str, number: int) -> str:
    """Return a secret text. The same seed, kind and number always give the same text."""
    return f"{kind}-{chance.number(seed, 'door', kind, number):016x}"
