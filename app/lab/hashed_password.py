"""The client side of a login form in the lab whose script hashes the password."""

from __future__ import annotations

from app.lab.sign_in import SALT, hash_password
from splitter.catalog.sign_in import SignInRules
from splitter.errors import InputError
from tasks.signin.browser import Form
from tasks.signin.errors import SignInBroken
from tasks.signin.methods import FormSignIn


class HashedPassword(FormSignIn):
    """A sign-in method for forms that expect the password hashed with a salt."""

    def __init__(self, rules: SignInRules) -> None:
        if rules.form is None:
            raise InputError("a hashed password is sent by a form; write form in sign_in")
        super().__init__(rules.form)

    def password_sent(self, form: Form, password: str) -> str:
        """Return the hash that is sent instead of the password."""
        salt = dict(form.fields).get(SALT)
        if salt is None:
            raise SignInBroken("the form for {action} has no field {salt!r}", action=form.action, salt=SALT)
        return hash_password(salt, password)
