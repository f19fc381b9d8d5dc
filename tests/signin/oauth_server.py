"""An OAuth 2 server that stands in front of a site of the lab (RFC 6749, 6750, 7636)."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import urlencode

from app.lab.answers import LabResponse, notice, redirect
from app.lab.profile import Wall
from app.lab.sign_in import FormServer, Reply, SignInRequest, make_token

CODE_LASTS_S = 60.0
CONSENT = (
    '<form id="consent" method="post" action="/oauth2/authorize"><input type="hidden" name="csrf" value="{csrf}">'
    '<button name="consent" value="no">拒绝</button><button name="consent" value="yes">同意授权</button></form>'
)


@dataclass(slots=True, kw_only=True)
class OAuthServer:
    """Authorization code with PKCE, refresh tokens, client credentials, for one client.

    Attributes:
        login: The form by which a person signs in.
        codes: End and challenge of each code that was not used.
        asked: Authorization requests by CSRF token of the consent form.
        tokens: End of each access token.
        refresh: Refresh tokens that were not used.
    """

    client_id: str
    client_secret: str
    redirect_uri: str
    wall: Wall
    token_s: float = 600.0
    seed: int = 1
    login: FormServer = field(init=False)
    codes: dict[str, tuple[float, str]] = field(default_factory=dict)
    asked: dict[str, dict[str, str]] = field(default_factory=dict)
    tokens: dict[str, float] = field(default_factory=dict)
    refresh: set[str] = field(default_factory=set)
    made: int = 0

    def __post_init__(self) -> None:
        self.login = FormServer(self.wall, self.seed)

    def __call__(self, request: SignInRequest) -> Reply | None:
        match request.method, request.path:
            case "GET", "/oauth2/authorize":
                return self._authorize(request)
            case "POST", "/oauth2/authorize":
                return self._consent(request)
            case "POST", "/oauth2/token":
                return self._token(request)
        if (reply := self.login.reply_for_own_page(request)) is not None:
            return reply
        scheme, _, token = request.authorization.partition(" ")
        if scheme.lower() == "bearer" and self.tokens.get(token, -1.0) > request.t:
            return None
        return _json("unauthorized", 401, {"error": "invalid_token"})

    def _authorize(self, request: SignInRequest) -> Reply:
        asked = dict(request.query)
        if (asked.get("client_id"), asked.get("redirect_uri")) != (self.client_id, self.redirect_uri):
            # Don't redirect to an address that is not the client's (RFC 6749, 4.1.2.1).
            return "authorize_refused", notice(400, "授权失败", "<p>client_id 或 redirect_uri 不正确</p>")
        if asked.get("response_type") != "code" or asked.get("code_challenge_method") != "S256":
            return self._back({"error": "invalid_request", "state": asked.get("state", "")})
        if not self.login.is_signed_in(request):
            return "login_redirect", redirect("/login")
        csrf = self._make("consent")
        self.asked[csrf] = asked
        return "consent_form", notice(200, "应用授权", CONSENT.format(csrf=csrf))

    def _consent(self, request: SignInRequest) -> Reply:
        asked = self.asked.pop(request.form.get("csrf", ""), None)
        if asked is None or not self.login.is_signed_in(request):
            return "consent_csrf", notice(403, "表单已失效")
        state = {"state": asked.get("state", "")}
        if request.form.get("consent") != "yes":
            return self._back({"error": "access_denied", **state})
        code = self._make("code")
        self.codes[code] = request.t + CODE_LASTS_S, asked.get("code_challenge", "")
        return self._back({"code": code, **state})

    def _back(self, answer: dict[str, str]) -> Reply:
        return "back", redirect(f"{self.redirect_uri}?{urlencode(answer)}")

    def _token(self, request: SignInRequest) -> Reply:
        basic = base64.b64encode(f"{self.client_id}:{self.client_secret}".encode()).decode()
        if request.authorization != f"Basic {basic}":
            return _json("token_refused", 401, {"error": "invalid_client"})
        grant, is_good = request.form.get("grant_type"), True
        if grant == "authorization_code":
            is_good = self._is_good_code(request)
        elif grant == "refresh_token":
            token = request.form.get("refresh_token", "")
            is_good = token in self.refresh
            self.refresh.discard(token)
        elif grant != "client_credentials":
            return _json("token_refused", 400, {"error": "unsupported_grant_type"})
        if not is_good:
            return _json("token_refused", 400, {"error": "invalid_grant"})
        access = self._make("access")
        self.tokens[access] = request.t + self.token_s
        answer = {"access_token": access, "token_type": "Bearer", "expires_in": round(self.token_s)}
        if grant != "client_credentials":
            answer["refresh_token"] = self._make("refresh")
            self.refresh.add(answer["refresh_token"])
        return _json("token", 200, answer)

    def _is_good_code(self, request: SignInRequest) -> bool:
        until, challenge = self.codes.pop(request.form.get("code", ""), (-1.0, ""))
        digest = sha256(request.form.get("code_verifier", "").encode()).digest()
        verified = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        is_redirect_right = request.form.get("redirect_uri") == self.redirect_uri
        return until > request.t and is_redirect_right and verified == challenge

    def _make(self, kind: str) -> str:
        self.made += 1
        return make_token(self.seed, kind, self.made)


def _json(outcome: str, status: int, answer: dict) -> Reply:
    headers = (("Cache-Control", "no-store"),)
    if status == 401:
        headers = (("WWW-Authenticate", 'Bearer realm="lab"'),)
    return outcome, LabResponse(status, "application/json", json.dumps(answer).encode(), headers=headers)
