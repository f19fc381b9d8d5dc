"""Signing in for a bearer token: OAuth 2 (RFC 6749), with PKCE (RFC 7636)."""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from oauthlib.oauth2 import BackendApplicationClient, OAuth2Error
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session
from splitter.catalog.sign_in import OAuth2Login, OAuthGrant
from splitter.errors import Message

from tasks.signin.browser import Session, sign_in_errors
from tasks.signin.credentials import Credentials, Part
from tasks.signin.errors import SignInBroken, SignInRefused
from tasks.signin.granted import Granted
from tasks.signin.methods import FormSignIn, SignIn

_ERROR_CODE = re.compile(r"[a-z_]{1,40}")


class OAuth2SignIn(SignIn):
    """Get a token, and a new one for its refresh token before it ends."""

    def __init__(self, rules: OAuth2Login) -> None:
        self._rules = rules

    def user_login(self, session: Session, credentials: Credentials) -> Granted:
        """Sign in; granted is a bearer token."""
        rules = self._rules
        secret = credentials.get(Part.CLIENT_SECRET)
        if rules.grant is OAuthGrant.CLIENT_CREDENTIALS:
            client = BackendApplicationClient(credentials.get(Part.CLIENT_ID))
            oauth = session.over(OAuth2Session(client=client))
            scopes: dict[str, Any] = {"scope": list(rules.scopes)} if rules.scopes else {}
            with _refusals(rules.token_url):
                token = oauth.fetch_token(rules.token_url, client_secret=secret, **scopes)
            return self._read_grant(session, token)
        return self._sign_in_with_code(session, credentials, secret)

    def renew(self, session: Session, credentials: Credentials, granted: Granted) -> Granted:
        """Get a token for the refresh token. If there is none, or it is refused, sign in again."""
        if not granted.refresh:
            return self.user_login(session, credentials)
        client_id, secret = credentials.get(Part.CLIENT_ID), credentials.get(Part.CLIENT_SECRET)
        oauth = session.over(OAuth2Session(client_id))
        try:
            with _refusals(self._rules.token_url):
                token = oauth.refresh_token(
                    self._rules.token_url,
                    refresh_token=granted.refresh,
                    auth=HTTPBasicAuth(client_id, secret),
                )
        except SignInRefused:
            return self.user_login(session, credentials)
        return self._read_grant(session, token)

    def _sign_in_with_code(self, session: Session, credentials: Credentials, secret: str) -> Granted:
        rules = self._rules
        if rules.login is not None:
            FormSignIn(rules.login).user_login(session, credentials)
        oauth = session.over(
            OAuth2Session(
                credentials.get(Part.CLIENT_ID),
                redirect_uri=rules.redirect_uri,
                scope=list(rules.scopes) or None,
                pkce="S256",
            )
        )
        url, state = oauth.authorization_url(rules.authorize_url)
        code = self._code(session, url, state)
        # The server may give another scope; then that is what there is (RFC 6749, 3.3).
        oauth.scope = None
        with _refusals(rules.token_url):
            token = oauth.fetch_token(rules.token_url, code=code, client_secret=secret)
        return self._read_grant(session, token)

    def _code(self, session: Session, url: str, state: str) -> str:
        """The code the server gives to whoever is signed in and consents."""
        rules = self._rules
        page = session.get(url, stop_at=rules.redirect_uri)
        if page.text and rules.consent is not None:
            form = page.form(rules.consent.form)
            button = (rules.consent.button, rules.consent.value)
            page = session.submit(page, form, form.fill({}, button), stop_at=rules.redirect_uri)
        if page.text:
            raise SignInBroken(
                "{authorize_url} (status {status}) did not lead back to {redirect_uri}; mend login or consent",
                authorize_url=rules.authorize_url,
                status=page.status,
                redirect_uri=rules.redirect_uri,
            )
        answer = {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}
        if not hmac.compare_digest(answer.get("state", "").encode(), state.encode()):
            raise SignInBroken(
                "{authorize_url} came back with another state than it was given",
                authorize_url=rules.authorize_url,
            )
        if "code" not in answer:
            raise SignInRefused(
                "{authorize_url} gave no code: {code}",
                authorize_url=rules.authorize_url,
                code=_code_of(answer.get("error")),
            )
        return answer["code"]

    def _read_grant(self, session: Session, token: Mapping[str, Any]) -> Granted:
        if str(token.get("token_type", "bearer")).lower() != "bearer":
            raise SignInBroken(
                "{token_url} gave a token that is no bearer token", token_url=self._rules.token_url
            )
        bearer = str(token["access_token"])
        if not re.fullmatch(r"[!-~]+", bearer):
            raise SignInBroken(
                "{token_url} gave a token that no header can carry", token_url=self._rules.token_url
            )
        lasts_s = float(token.get("expires_in") or self._rules.lasts_s)
        return Granted(
            session.now + timedelta(seconds=lasts_s), (), bearer, str(token.get("refresh_token") or "")
        )


@contextmanager
def _refusals(url: str) -> Iterator[None]:
    """Turn a refusal of the token endpoint into a SignInRefused that repeats only its error code (RFC 6749, 5.2)."""
    with sign_in_errors(url):
        try:
            yield
        except OAuth2Error as error:
            raise SignInRefused("{url} refuses: {code}", url=url, code=_code_of(error.error)) from None


def _code_of(error: object) -> Message | str:
    return str(error) if _ERROR_CODE.fullmatch(str(error)) else Message("no reason that can be shown")


# It logs whole tokens and request bodies at DEBUG.
logging.getLogger("requests_oauthlib.oauth2_session").addFilter(lambda record: record.levelno > logging.DEBUG)
