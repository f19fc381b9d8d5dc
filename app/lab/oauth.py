"""An OAuth 2 server of the lab; its site answers requests with its tokens (RFC 6749, 6750, 7636)."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import urlencode

from pydantic import Field

from app.lab.answers import Document, notice, redirect
from app.lab.login import (
    EXPIRED,
    FormServer,
    ProfileModel,
    Reply,
    SignInRequest,
    SignInServer,
    Wall,
    token_of,
)
from app.lab.pages import TEMPLATES

_CODE_LASTS_S = 60.0


class OAuth(ProfileModel):
    """An OAuth 2 server whose site wants its bearer tokens.

    Attributes:
        wall: who may consent, and how they sign in.
        client_id, client_secret, redirect_uri: of the one client there is.
        token_s: how long an access token lasts.
    """

    wall: Wall
    client_id: str
    client_secret: str
    redirect_uri: str
    token_s: float = Field(default=600, gt=0)


@dataclass(slots=True, kw_only=True)
class OAuthServer:
    """The endpoints of an `OAuth` server: authorization code with PKCE, refresh tokens, client credentials.

    Attributes:
        codes: given and not used, each with its end and its challenge.
        asked: CSRF tokens of consent forms with what they were shown for.
        tokens: access tokens with their end; refresh: refresh tokens that are still good.
    """

    oauth: OAuth
    seed: int
    login: FormServer
    codes: dict[str, tuple[float, str]] = field(default_factory=dict)
    asked: dict[str, Mapping[str, str]] = field(default_factory=dict)
    tokens: dict[str, float] = field(default_factory=dict)
    refresh: set[str] = field(default_factory=set)
    given: int = 0

    def __call__(self, request: SignInRequest) -> Reply | None:
        """Reply to a request; None: it carries a good token."""
        match request.method, request.path:
            case "GET", "/oauth2/authorize":
                return self._authorize(request)
            case "POST", "/oauth2/authorize":
                return self._consent(request)
            case "POST", "/oauth2/token":
                return self._token(request)
        if (own := self.login.own(request)) is not None:
            return own
        scheme, _, token = request.authorization.partition(" ")
        if scheme.lower() == "bearer" and self.tokens.get(token, -1.0) > request.t:
            return None
        error = ', error="invalid_token"' if token else ""
        header = ("WWW-Authenticate", f'Bearer realm="lab"{error}')
        return _json("unauthorized", 401, {"error": "invalid_token"}, header)

    def _authorize(self, request: SignInRequest) -> Reply:
        asked = request.query
        if (asked.get("client_id"), asked.get("redirect_uri")) != (
            self.oauth.client_id,
            self.oauth.redirect_uri,
        ):
            # Never redirected: the address is not the client's (RFC 6749, 4.1.2.1).
            return "authorize_refused", notice(400, "授权失败", "<p>client_id 或 redirect_uri 不正确</p>")
        if asked.get("response_type") != "code" or asked.get("code_challenge_method") != "S256":
            return self._back({"error": "invalid_request", "state": asked.get("state", "")})
        if not self.login.signed_in(request):
            return "login_redirect", redirect("/login")
        csrf = self._next("consent")
        self.asked[csrf] = asked
        return "consent_form", notice(200, "应用授权", TEMPLATES["sign-in"]["consent"].format(csrf=csrf))

    def _consent(self, request: SignInRequest) -> Reply:
        sent = request.form
        asked = self.asked.pop(sent.get("csrf", ""), None)
        if asked is None or not self.login.signed_in(request):
            return "consent_csrf", EXPIRED
        state = {"state": asked.get("state", "")}
        if sent.get("consent") != "yes":
            return self._back({"error": "access_denied", **state})
        code = self._next("code")
        self.codes[code] = request.t + _CODE_LASTS_S, asked.get("code_challenge", "")
        return self._back({"code": code, **state})

    def _back(self, answer: dict[str, str]) -> Reply:
        return "back", redirect(f"{self.oauth.redirect_uri}?{urlencode(answer)}")

    def _token(self, request: SignInRequest) -> Reply:
        wanted = base64.b64encode(f"{self.oauth.client_id}:{self.oauth.client_secret}".encode()).decode()
        if request.authorization != f"Basic {wanted}":
            return _json("token_refused", 401, {"error": "invalid_client"})
        sent = request.form
        match sent.get("grant_type"):
            case "authorization_code":
                good = self._code_good(sent, request.t)
            case "refresh_token":
                good = sent.get("refresh_token") in self.refresh
                self.refresh.discard(sent.get("refresh_token", ""))
            case "client_credentials":
                return self._give(request.t, refresh=False)
            case _:
                return _json("token_refused", 400, {"error": "unsupported_grant_type"})
        return (
            self._give(request.t, refresh=True)
            if good
            else _json("token_refused", 400, {"error": "invalid_grant"})
        )

    def _code_good(self, sent: Mapping[str, str], t: float) -> bool:
        until, asked_challenge = self.codes.pop(sent.get("code", ""), (-1.0, ""))
        digest = sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        return (
            until > t and sent.get("redirect_uri") == self.oauth.redirect_uri and challenge == asked_challenge
        )

    def _give(self, t: float, *, refresh: bool) -> Reply:
        token = self._next("access")
        self.tokens[token] = t + self.oauth.token_s
        answer: dict[str, object] = {
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": max(1, round(self.oauth.token_s)),
        }
        if refresh:
            answer["refresh_token"] = again = self._next("refresh")
            self.refresh.add(again)
        return _json("token", 200, answer)

    def _next(self, what: str) -> str:
        self.given += 1
        return token_of(self.seed, what, self.given)


def sign_in_server(rules: Wall | OAuth, seed: int) -> SignInServer:
    """The sign-in server of a site."""
    if isinstance(rules, Wall):
        return FormServer(rules, seed)
    return OAuthServer(oauth=rules, seed=seed, login=FormServer(rules.wall, seed))


def _json(
    outcome: str,
    status: int,
    answer: Mapping[str, object],
    header: tuple[str, str] = ("Cache-Control", "no-store"),
) -> Reply:
    return outcome, Document(status, "application/json", json.dumps(answer).encode(), headers=(header,))
