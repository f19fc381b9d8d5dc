"""The sign-in of the lab site whose script hashes the password before it is sent.

An example of a site that needs a `user_login` of its own (`app.wiring.OWN`).
"""

from __future__ import annotations

from app.lab.login import SALT, hashed
from splitter.catalog.sign_in import SignInRules
from splitter.errors import InputError
from tasks.signin.browser import Form
from tasks.signin.errors import SignInBroken
from tasks.signin.methods import FormSignIn


class HashedPassword(FormSignIn):
    """A form that wants the password hashed with its salt."""

    def __init__(self, rules: SignInRules) -> None:
        if rules.form is None:
            raise InputError("a hashed password is sent through a form; write form in sign_in")
        super().__init__(rules.form)

    def password_sent(self, form: Form, password: str) -> str:
        """The hash."""
        salt = dict(form.fields).get(SALT)
        if salt is None:
            raise SignInBroken(f"the form for {form.action} has no field {SALT!r}")
        return hashed(salt, password)
