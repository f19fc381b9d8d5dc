"""Errors of signing in. No message carries a secret, and none is chained to an error that might.

SignInError
├── SignInRefused         the site refused: name, password or client are wrong, or a captcha stands in the way
├── SignInBroken          the site answered something the rules do not fit, or did not answer
├── MissingCredential     (an InputError) the environment lacks a variable; the message names it
└── SignInFileUnreadable (an InputError) the file of sign-ins was written with another key, or is damaged
"""

from splitter.errors import InputError

from tasks.domain.errors import TaskError


class SignInError(TaskError):
    """The sign-in failed."""


class SignInRefused(SignInError):
    """The site refused the sign-in."""


class SignInBroken(SignInError):
    """The site answered something the rules do not fit, or did not answer."""


class MissingCredential(SignInError, InputError):
    """The environment lacks a name, password, client or key."""


class SignInFileUnreadable(SignInError, InputError):
    """The file of sign-ins cannot be read with this key; it is left as it is."""
