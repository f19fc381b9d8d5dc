"""Access to the dashboard: without tokens for whoever is on this machine, else for who signs in with a token.

Tokens are random, so that a plain SHA-256 of them is enough to keep. Sessions are signed cookies: the key ends with the
process.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from splitter.errors import ReviewloopError

SESSION_S = 12 * 3600.0
_WRONG_TOKEN_PAUSE_S = 1.0
_MAX_WAITING, _MAX_WAITING_IN_ALL = 5, 20


class TooManyWrongTokens(ReviewloopError):
    """Too many wrong tokens wait for their answer."""


class Role(StrEnum):
    """Rights of a visitor."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Hashes of the tokens (`token_hash`); empty where there is none."""

    viewer: str = ""
    operator: str = ""

    def __bool__(self) -> bool:
        return bool(self.viewer or self.operator)

    def role_of(self, token: str) -> Role | None:
        """The owner of the token; None: nobody."""
        given = token_hash(token)
        roles = ((self.operator, Role.OPERATOR), (self.viewer, Role.VIEWER))
        found = [role for kept, role in roles if kept and hmac.compare_digest(kept, given)]
        return found[0] if found else None


def token_hash(token: str) -> str:
    """The stored form of a token: ``sha256:`` and 64 hexadecimal digits."""
    return f"sha256:{hashlib.sha256(token.encode('utf-8', 'surrogatepass')).hexdigest()}"


def new_token() -> str:
    """A random token of 256 bits."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True, slots=True)
class Visitor:
    """A visitor.

    Attributes:
        who: name for the audit log.
    """

    role: Role
    who: str

    @property
    def may_act(self) -> bool:
        """True for an operator."""
        return self.role is Role.OPERATOR


_LOCAL = Visitor(Role.OPERATOR, "on this machine")


@dataclass(slots=True)
class Access:
    """Decides who a visitor is.

    Attributes:
        pause: sleeps for a number of seconds before a wrong token is answered.
        key: signs the sessions of this process.
    """

    tokens: Tokens
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    key: str = field(default_factory=new_token)
    _waiting: Counter[str] = field(default_factory=Counter)

    async def visitor(
        self, session: Mapping[str, object], authorization: str, address: str
    ) -> Visitor | None:
        """Return the visitor who sent a request, or `None` if the visitor has to sign in.

        Args:
            session: of the visitor, as `sign_in` made it; empty: none.
            authorization: the header of that name.
            address: the client's.

        Raises:
            TooManyWrongTokens: too many wrong tokens wait already.
        """
        if not self.tokens:
            return _LOCAL
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and token:
            role = await self._check(token.strip(), address)
            return Visitor(role, f"{role} by token, {address}") if role is not None else None
        return Visitor(Role(str(session["role"])), str(session["who"])) if session else None

    async def sign_in(self, token: str, name: str, address: str) -> dict[str, str] | None:
        """Return a new session, or `None` if the token is wrong.

        Raises:
            TooManyWrongTokens: too many wrong tokens wait already.
        """
        role = await self._check(token, address)
        if role is None:
            return None
        return {"role": str(role), "who": f"{name.strip()[:60] or role}, {address}"}

    async def _check(self, token: str, address: str) -> Role | None:
        """Return the role of a token, at once. A wrong token gets `None` after a pause.

        The pause needs no history: the counter holds only the wrong tokens that wait now. The right token never waits,
        because 256 random bits can't be guessed at any speed.

        Raises:
            TooManyWrongTokens: too many wrong tokens wait already.
        """
        role = self.tokens.role_of(token)
        if role is not None:
            return role
        if self._waiting[address] >= _MAX_WAITING or self._waiting.total() >= _MAX_WAITING_IN_ALL:
            raise TooManyWrongTokens("too many wrong tokens: wait a moment")
        self._waiting[address] += 1
        try:
            await self.pause(_WRONG_TOKEN_PAUSE_S)
        finally:
            self._waiting -= Counter((address,))
        return None
