"""The client's side of the lab's sign-in whose script hashes the password."""

from __future__ import annotations

from hashlib import sha256

from splitter.catalog.sign_in import SignInRules
from splitter.errors import InputError
from tasks.signin.browser import Form
from tasks.signin.errors import SignInBroken
from tasks.signin.methods import FormSignIn

SALT = "salt"
"""Name of the form's field that carries what a site's script hashes with the password."""


def hashed(salt: str, password: str) -> str:
    """The password as a site's script changes it."""
    return sha256(f"{salt}{password}".encode()).hexdigest()


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
