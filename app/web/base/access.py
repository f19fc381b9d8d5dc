"""Access to the dashboard: without tokens for whoever is on this machine, else for who signs in with a token.

Tokens are random, so that a plain SHA-256 of them is enough to keep. Sessions are in memory: they end with the process.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum

from splitter.errors import ReviewloopError

SESSION_S = 12 * 3600.0
_MOST_SESSIONS = 1000
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
        csrf: what every change must carry; empty where a token came with the request itself, which no other page in
            a browser can send.
    """

    role: Role
    who: str
    csrf: str = ""

    @property
    def may_act(self) -> bool:
        """True for an operator."""
        return self.role is Role.OPERATOR

    def carries(self, csrf: str) -> bool:
        """Whether a change that carries this text is the visitor's own."""
        return not self.csrf or hmac.compare_digest(self.csrf.encode(), csrf.encode("utf-8", "surrogatepass"))


@dataclass(slots=True)
class Access:
    """Decides who a visitor is.

    Attributes:
        clock: seconds, only ever growing.
        pause: sleeps for a number of seconds before a wrong token is answered.
    """

    tokens: Tokens
    clock: Callable[[], float]
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    _local: Visitor = field(
        default_factory=lambda: Visitor(Role.OPERATOR, "on this machine", secrets.token_urlsafe(32))
    )
    _sessions: OrderedDict[str, tuple[Visitor, float]] = field(default_factory=OrderedDict)
    _waiting: Counter[str] = field(default_factory=Counter)

    async def visitor(self, session: str, authorization: str, address: str) -> Visitor | None:
        """Return the visitor who sent a request, or `None` if the visitor has to sign in.

        Args:
            session: value of the session cookie; empty: none.
            authorization: the header of that name.
            address: the client's.

        Raises:
            TooManyWrongTokens: too many wrong tokens wait already.
        """
        if not self.tokens:
            return self._local
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and token:
            role = await self._check(token.strip(), address)
            return Visitor(role, f"{role} by token, {address}") if role is not None else None
        visitor, ends_at = self._sessions.get(session, (None, 0.0))
        return visitor if self.clock() < ends_at else None

    async def sign_in(self, token: str, name: str, address: str) -> str | None:
        """Begin a session and return its id, or `None` if the token is wrong.

        Raises:
            TooManyWrongTokens: too many wrong tokens wait already.
        """
        role = await self._check(token, address)
        if role is None:
            return None
        session = secrets.token_urlsafe(32)
        who = f"{name.strip()[:60] or role}, {address}"
        self._sessions[session] = (Visitor(role, who, secrets.token_urlsafe(32)), self.clock() + SESSION_S)
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def sign_out(self, session: str) -> None:
        """End a session."""
        self._sessions.pop(session, None)

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
