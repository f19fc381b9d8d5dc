"""Signing in with the cookies of a person's own browser, for sites that no form signs in to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

from splitter.catalog.sign_in import BrowserCookies

from tasks.signin.browser import Session
from tasks.signin.credentials import Credentials, Part, variable_of
from tasks.signin.errors import SignInRefused
from tasks.signin.granted import Cookie, Granted
from tasks.signin.interface import SignIn

# RFC 6265, 4.1.1: a name is a token; a value holds no blank, quote, comma or backslash, but around it.
_PAIR = re.compile(r"""([!#$%&'*+.^_`|~\w-]+)=("?[\x21\x23-\x2B\x2D-\x3A\x3C-\x5B\x5D-\x7E]*"?)""", re.ASCII)


class CookieSignIn(SignIn):
    """Take the cookies as a browser shows them, ``name=value; name=value``; only the given hosts get them, over TLS."""

    def __init__(self, rules: BrowserCookies, hosts: Sequence[str]) -> None:
        self._rules = rules
        self._hosts = hosts

    def user_login(self, session: Session, credentials: Credentials) -> Granted:
        """Read the cookies; nothing is asked. They are believed to last as long as the rules say."""
        variable = variable_of(credentials.name, Part.COOKIES)
        pairs = []
        for number, text in enumerate(credentials.get(Part.COOKIES).split(";"), start=1):
            if text.strip():
                found = _PAIR.fullmatch(text.strip())
                if found is None:
                    raise SignInRefused(
                        f"{variable}: part {number} is no cookie; write NAME=VALUE; NAME=VALUE"
                    )
                pairs.append((found[1], found[2]))
        if self._rules.cookie not in dict(pairs):
            names = ", ".join(name for name, _ in pairs) or "none"
            raise SignInRefused(
                f"{variable} has no cookie {self._rules.cookie!r} (it has {names}); copy all of them"
            )
        cookies = tuple(
            Cookie(name, value, host, "/", True, True, None) for host in self._hosts for name, value in pairs
        )
        return Granted(session.now + timedelta(seconds=self._rules.lasts_s), cookies)
