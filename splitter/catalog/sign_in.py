"""Signing in as a catalog describes it: the address, the fields, and the hosts that get the cookies or the token.

Names, passwords and client secrets are never in a catalog: they come from the environment (docs/sign-in.md).
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from splitter.catalog.rules import Entry


class OAuthGrant(StrEnum):
    """How an OAuth 2 client gets its token (RFC 6749, 1.3)."""

    AUTHORIZATION_CODE = "authorization_code"
    CLIENT_CREDENTIALS = "client_credentials"


class FormLogin(Entry):
    """Signing in with name and password through a page's form.

    Attributes:
        page: address of the page with the form.
        form: CSS selector of the form; its other fields (hidden ones, CSRF tokens) are sent as they stand.
        user_field, password_field: names of the two inputs.
        cookie: name of the cookie that carries the session; without it the sign-in has failed.
        signed_in: regular expression over the text or final address of the page that follows; matches only where
            the sign-in worked.
        lasts_s: how long the session lasts where its cookie names no end.
    """

    page: str
    form: str = "form"
    user_field: str
    password_field: str
    cookie: str = Field(min_length=1)
    signed_in: str
    lasts_s: float = Field(default=86_400, gt=0)


class Consent(Entry):
    """The form on which a person would allow the client access.

    Attributes:
        form: CSS selector of the form.
        button: name of the button that agrees.
        value: what that button sends.
    """

    form: str = "form"
    button: str = Field(min_length=1)
    value: str


class OAuth2Login(Entry):
    """Signing in for a bearer token (RFC 6749, RFC 7636 with S256).

    Attributes:
        grant: how the token is got.
        token_url: address that issues and renews tokens.
        scopes: the scopes asked for.
        authorize_url, redirect_uri: of the authorization code; the client is redirected to `redirect_uri` with
            the code, and that address is never asked.
        login: how the person signs in who gives consent.
        consent: the form of consent; None: the site asks for none.
        lasts_s: lifetime of a token if the server states none.
    """

    grant: OAuthGrant
    token_url: str
    scopes: tuple[str, ...] = ()
    authorize_url: str = ""
    redirect_uri: str = ""
    login: FormLogin | None = None
    consent: Consent | None = None
    lasts_s: float = Field(default=3600, gt=0)


class BrowserCookies(Entry):
    """The session of a person who signed in with a browser, if no form will do: a code by telephone, a QR code.

    Attributes:
        cookie: name of the cookie that carries the session; it must be among those given.
        lasts_s: how long they are believed to last.
    """

    cookie: str = Field(min_length=1)
    lasts_s: float = Field(default=30 * 86_400, gt=0)


class SignInRules(Entry):
    """How a site or engine is signed in to: one of `form`, `oauth2` and `cookies`.

    Attributes:
        form: with name and password, by a page's form.
        oauth2: for a bearer token.
        cookies: for the cookies of a browser that a person signed in with.
        hosts: host names that get the cookies or the token, each exactly as written. Cookies are also bound
            to their own domain, path and scheme.
        renew_before_s: how long before its end a sign-in is renewed.
    """

    form: FormLogin | None = None
    oauth2: OAuth2Login | None = None
    cookies: BrowserCookies | None = None
    hosts: tuple[str, ...] = Field(min_length=1)
    renew_before_s: float = Field(default=60, ge=0)
