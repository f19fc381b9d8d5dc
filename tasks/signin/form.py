"""Signing in with name and password through a page's form."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from splitter.catalog.sign_in import FormLogin

from tasks.signin.browser import Form, Session
from tasks.signin.credentials import Credentials, Part
from tasks.signin.errors import SignInRefused
from tasks.signin.granted import Cookie, Granted, cookies_of
from tasks.signin.interface import SignIn


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
        after = session.submit(page, form, form.filled(values))
        pattern = re.compile(rules.signed_in)
        if not pattern.search(after.shown()) and not pattern.search(after.url):
            raise SignInRefused(
                f"{rules.page}: signing in as {credentials.name} did not work: nothing matches signed_in "
                f"({rules.signed_in!r}) on the page that followed (status {after.status}); look at name, password "
                "and whether the site asks for a captcha"
            )
        cookies = cookies_of(session.jar)
        ends = [_end(cookie, rules, session.now) for cookie in cookies if cookie.name == rules.cookie]
        if not ends:
            names = ", ".join(sorted({cookie.name for cookie in cookies})) or "none"
            raise SignInRefused(
                f"{rules.page} gave no cookie {rules.cookie!r} (it gave {names}); mend the rule"
            )
        return Granted(min(ends), cookies)

    def password_sent(self, form: Form, password: str) -> str:  # noqa: ARG002
        """What is sent as password; to be overridden for a site whose script changes it first."""
        return password


def _end(cookie: Cookie, rules: FormLogin, now: datetime) -> datetime:
    if cookie.expires_s is None:
        return now + timedelta(seconds=rules.lasts_s)
    return datetime.fromtimestamp(cookie.expires_s, UTC)
