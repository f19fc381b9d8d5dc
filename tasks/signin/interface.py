"""What every way to sign in is: `user_login` in, cookies or a token out."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tasks.signin.browser import Session
from tasks.signin.credentials import Credentials
from tasks.signin.granted import Granted


class SignIn(ABC):
    """A way to sign in to one site (the `user_login` of the 2014 coroutine paper, its authentication part)."""

    @abstractmethod
    def user_login(self, session: Session, credentials: Credentials) -> Granted:
        """Sign in.

        Args:
            session: a new conversation, with its limits and the time.
            credentials: who signs in.

        Raises:
            SignInError: nobody is signed in.
        """

    def renewed(self, session: Session, credentials: Credentials, granted: Granted) -> Granted:  # noqa: ARG002
        """Take the place of what was granted before and ends soon; where nothing else is known, a new sign-in.

        Raises:
            SignInError: it could not be renewed.
        """
        return self.user_login(session, credentials)
