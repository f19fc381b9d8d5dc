"""Access to the dashboard. Without tokens, everyone on this machine has access; otherwise people sign in with a token.

Tokens are random, so a plain SHA-256 of them is stored. Sessions are cookies signed with a key. Each process makes its
own key, so sessions end with the process.
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
    """Too many requests with wrong tokens wait for their delayed answer, so further ones are refused."""


class VisitorRole(StrEnum):
    """Roles of visitors: a viewer may read, an operator may also act."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Hashes of the tokens (`token_hash`); empty if a token is not set."""

    viewer: str = ""
    operator: str = ""

    def __bool__(self) -> bool:
        return bool(self.viewer or self.operator)

    def role_of(self, token: str) -> VisitorRole | None:
        """Return the role of a token; `None` if the token is wrong."""
        given = token_hash(token)
        roles = ((self.operator, VisitorRole.OPERATOR), (self.viewer, VisitorRole.VIEWER))
        found = [role for kept, role in roles if kept and hmac.compare_digest(kept, given)]
        return found[0] if found else None


def token_hash(token: str) -> str:
    """Return the stored form of a token: ``sha256:`` and 64 hexadecimal digits."""
    return f"sha256:{hashlib.sha256(token.encode('utf-8', 'surrogatepass')).hexdigest()}"


def new_token() -> str:
    """Return a random token of 256 bits."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True, slots=True)
class Visitor:
    """A person or program that sends requests.

    Attributes:
        who: name for the audit log.
    """

    role: VisitorRole
    who: str

    @property
    def may_act(self) -> bool:
        """True if the visitor is an operator."""
        return self.role is VisitorRole.OPERATOR


_LOCAL = Visitor(VisitorRole.OPERATOR, "on this machine")


@dataclass(slots=True)
class Access:
    """Finds out who sends a request.

    Attributes:
        pause: sleeps for a number of seconds before the answer to a wrong token.
        key: key that signs the sessions of this process.
    """

    tokens: Tokens
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    key: str = field(default_factory=new_token)
    _waiting: Counter[str] = field(default_factory=Counter)

    async def visitor(
        self, session: Mapping[str, object], authorization: str, address: str
    ) -> Visitor | None:
        """Return the visitor who sent a request, or `None` if the visitor must sign in.

        Args:
            session: session of the visitor, made by `sign_in`; empty if there is none.
            authorization: the Authorization header.
            address: address of the client.

        Raises:
            TooManyWrongTokens: too many requests with wrong tokens wait for an answer.
        """
        if not self.tokens:
            return _LOCAL
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and token:
            role = await self._check(token.strip(), address)
            return Visitor(role, f"{role} by token, {address}") if role is not None else None
        return Visitor(VisitorRole(str(session["role"])), str(session["who"])) if session else None

    async def sign_in(self, token: str, name: str, address: str) -> dict[str, str] | None:
        """Return a new session, or `None` if the token is wrong.

        Raises:
            TooManyWrongTokens: too many requests with wrong tokens wait for an answer.
        """
        role = await self._check(token, address)
        if role is None:
            return None
        return {"role": str(role), "who": f"{name.strip()[:60] or role}, {address}"}

    async def _check(self, token: str, address: str) -> VisitorRole | None:
        """Return the role of a right token without delay, and `None` for a wrong token after a pause.

        The number of wrong tokens that wait at the same time is limited. Earlier ones are not counted. A right token
        never waits: 256 random bits can't be guessed at any speed.

        Raises:
            TooManyWrongTokens: too many requests with wrong tokens wait for an answer.
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
