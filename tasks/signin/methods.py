"""Methods of signing in: what each has to do, by a page's form, and by the cookies of a person's own browser."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from splitter.catalog.patterns import compile_pattern
from splitter.catalog.sign_in import BrowserCookies, FormLogin
from splitter.errors import Message

from tasks.signin.credentials import Credentials, Part, variable_of
from tasks.signin.errors import SignInRefused
from tasks.signin.granted import Cookie, Granted, cookies_of

if TYPE_CHECKING:
    from tasks.signin.browser import Form, Session


class SignIn(ABC):
    """A way to sign in to one site (the `user_login` of the 2014 coroutine paper, its authentication part)."""

    @abstractmethod
    def user_login(self, session: Session, credentials: Credentials) -> Granted:
        """Sign in.

        Args:
            session: a new conversation, with its limits and the time.
            credentials: who signs in.

        Raises:
            SignInError: the sign-in failed.
        """

    def renew(self, session: Session, credentials: Credentials, granted: Granted) -> Granted:  # noqa: ARG002
        """Replace a grant that ends soon. If the method has no other way, this is a new sign-in.

        Raises:
            SignInError: it could not be renewed.
        """
        return self.user_login(session, credentials)


class FormSignIn(SignIn):
    """Fetch the form, fill it in, send it with all it holds (CSRF tokens too), and look whether it worked."""

    def __init__(self, rules: FormLogin) -> None:
        self._rules = rules

    def user_login(self, session: Session, credentials: Credentials) -> Granted:
        """Sign in; granted are the session's cookies, until that of the rules ends."""
        rules = self._rules
        user, password = credentials.get(Part.USER), credentials.get(Part.PASSWORD)
        page = session.get(rules.page)
        form = page.form(rules.form)
        values = {rules.user_field: user, rules.password_field: self.password_sent(form, password)}
        after = session.submit(page, form, form.fill(values))
        pattern = compile_pattern(rules.signed_in)
        if not pattern.search(after.shown()) and not pattern.search(after.url):
            raise SignInRefused(
                "{page}: signing in as {name} did not work: nothing matches signed_in ({signed_in!r}) on the "
                "page that followed (status {status}); look at name, password and whether the site asks for a "
                "captcha",
                page=rules.page,
                name=credentials.name,
                signed_in=rules.signed_in,
                status=after.status,
            )
        cookies = cookies_of(session.jar)
        ends = [_end(cookie, rules, session.now) for cookie in cookies if cookie.name == rules.cookie]
        if not ends:
            names = ", ".join(sorted({cookie.name for cookie in cookies})) or Message("none")
            raise SignInRefused(
                "{page} gave no cookie {cookie!r} (it gave {names}); mend the rule",
                page=rules.page,
                cookie=rules.cookie,
                names=names,
            )
        return Granted(min(ends), cookies)

    def password_sent(self, form: Form, password: str) -> str:  # noqa: ARG002
        """The value sent as password; to be overridden for a site whose script changes it first."""
        return password


def _end(cookie: Cookie, rules: FormLogin, now: datetime) -> datetime:
    if cookie.expires_s is None:
        return now + timedelta(seconds=rules.lasts_s)
    return datetime.fromtimestamp(cookie.expires_s, UTC)


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
                        "{variable}: part {number} is no cookie; write NAME=VALUE; NAME=VALUE",
                        variable=variable,
                        number=number,
                    )
                pairs.append((found[1], found[2]))
        if self._rules.cookie not in dict(pairs):
            names = ", ".join(name for name, _ in pairs) or Message("none")
            raise SignInRefused(
                "{variable} has no cookie {cookie!r} (it has {names}); copy all of them",
                variable=variable,
                cookie=self._rules.cookie,
                names=names,
            )
        cookies = tuple(
            Cookie(name=name, value=value, domain=host, path="/", host_only=True, secure=True, expires_s=None)
            for host in self._hosts
            for name, value in pairs
        )
        return Granted(session.now + timedelta(seconds=self._rules.lasts_s), cookies)
