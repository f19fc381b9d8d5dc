"""What a site grants whoever signs in: cookies or a bearer token, and which request may carry which.

Cookies are taken from the session's cookie jar, and sent by the rules of RFC 6265, 5.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from http.cookiejar import Cookie as JarCookie
from typing import Any


@dataclass(frozen=True, slots=True)
class Cookie:
    """One cookie.

    Attributes:
        domain: without a leading dot.
        host_only: only that very host gets it, no subdomain.
        secure: only over TLS.
        expires_s: its end in seconds since 1970; None: with the session.
    """

    name: str
    value: str = field(repr=False)
    domain: str
    path: str
    host_only: bool
    secure: bool
    expires_s: float | None

    def may_reach(self, host: str) -> bool:
        """Whether a host (lower case, no port) is one it belongs to (RFC 6265, 5.1.3)."""
        return host == self.domain or (not self.host_only and host.endswith(f".{self.domain}"))

    def goes_with(self, path: str, *, secure: bool, now_s: float) -> bool:
        """Whether a request for a path of such a host carries it now (RFC 6265, 5.1.4 and 5.4)."""
        if (self.secure and not secure) or (self.expires_s is not None and self.expires_s <= now_s):
            return False
        if not path.startswith(self.path):
            return False
        return len(path) == len(self.path) or self.path.endswith("/") or path[len(self.path)] == "/"


@dataclass(frozen=True, slots=True)
class Granted:
    """A sign-in that worked.

    Attributes:
        expires_at: aware; from then on it is worth nothing.
        cookies: of the session, those with longer paths first.
        bearer: access token, or empty.
        refresh: token that a new access token is given for, or empty.
    """

    expires_at: datetime
    cookies: tuple[Cookie, ...] = field(default=(), repr=False)
    bearer: str = field(default="", repr=False)
    refresh: str = field(default="", repr=False)

    def to_json(self) -> dict[str, Any]:
        """As plain data, secrets included: for the encrypted file only."""
        return asdict(self) | {"expires_at": self.expires_at.isoformat()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Granted:
        """What `to_json` gave. Raises KeyError, TypeError or ValueError for anything else."""
        return cls(
            datetime.fromisoformat(data["expires_at"]),
            tuple(Cookie(**cookie) for cookie in data["cookies"]),
            data["bearer"],
            data["refresh"],
        )


def cookies_of(jar: Iterable[JarCookie]) -> tuple[Cookie, ...]:
    """The cookies of a jar, in the order they are sent (RFC 6265, 5.4: longer paths first)."""
    cookies = [
        Cookie(
            cookie.name,
            cookie.value or "",
            cookie.domain.lstrip(".").lower(),
            cookie.path,
            not cookie.domain_specified,
            cookie.secure,
            cookie.expires,
        )
        for cookie in jar
    ]
    return tuple(sorted(cookies, key=lambda cookie: -len(cookie.path)))
