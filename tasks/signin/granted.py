"""Grants of sites to whoever signs in, and the encrypted file that keeps them until they end.

Cookies are taken from the session's cookie jar, and sent by the rules of RFC 6265, 5.4. The file is one line of format,
one of salt, then a Fernet token over JSON: name -> what was granted. The key is derived from the secret by scrypt.
Several processes may share the file: whoever changes it holds its lock and replaces it whole.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import lru_cache
from http.cookiejar import Cookie as JarCookie
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Any

from tasks.signin.errors import SignInFileUnreadable

if TYPE_CHECKING:
    from cryptography.fernet import Fernet


@dataclass(frozen=True, slots=True, kw_only=True)
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
    """A site's grant: a sign-in that worked.

    Attributes:
        expires_at: aware; it is not used from then on.
        cookies: of the session, those with longer paths first.
        bearer: access token, or empty.
        refresh: token that a new access token is given for, or empty.
    """

    expires_at: datetime
    cookies: tuple[Cookie, ...] = field(default=(), repr=False)
    bearer: str = field(default="", repr=False)
    refresh: str = field(default="", repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return plain data, secrets included, for the encrypted file only."""
        return asdict(self) | {"expires_at": self.expires_at.isoformat()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Granted:
        """Reads what `to_json` gave. Raises KeyError, TypeError or ValueError for anything else."""
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
            name=cookie.name,
            value=cookie.value or "",
            domain=cookie.domain.lstrip(".").lower(),
            path=cookie.path,
            host_only=not cookie.domain_specified,
            secure=cookie.secure,
            expires_s=cookie.expires,
        )
        for cookie in jar
    ]
    return tuple(sorted(cookies, key=lambda cookie: -len(cookie.path)))


_FORMAT = b"reviewloop sign-ins 1"
_SALT_BYTES = 16
_MODE = 0o600
# RFC 7914, 2: 16 MiB and some 50 ms, once a process.
_COST = {"n": 2**14, "r": 8, "p": 1}


class SignInFile:
    """Reads and changes the file; its methods block and may be called from any thread.

    Args:
        path: of the file; its lock files are next to it.
        secret: source of the key.
    """

    def __init__(self, path: Path, secret: str) -> None:
        self._path = path
        self._fernet = lru_cache(maxsize=4)(lambda salt: _fernet(secret, salt))

    def load(self, name: str) -> Granted | None:
        """Return the grant of a site; None if it has none. Raises SignInFileUnreadable."""
        return self._read()[1].get(name)

    def save(self, name: str, granted: Granted) -> None:
        """Store the grant of a site in place of its earlier one. Raises SignInFileUnreadable, OSError."""
        self._change(lambda kept: kept.update({name: granted}))

    def forget(self, name: str, only: Granted | None = None) -> bool:
        """Forget a site's sign-in. Return True if there was one.

        Args:
            only: forget nothing if the stored grant is another one (another process has signed in again).
        """
        gone: list[Granted] = []

        def drop(kept: dict[str, Granted]) -> None:
            if name in kept and only in (None, kept[name]):
                gone.append(kept.pop(name))

        self._change(drop)
        return bool(gone)

    @contextmanager
    def sole_sign_in(self, name: str) -> Iterator[None]:
        """Let one process at a time sign in to a site; the others wait."""
        with _hold_lock(self._path.with_name(f"{self._path.name}.{name}.lock")):
            yield

    def _change(self, change: Callable[[dict[str, Granted]], None]) -> None:
        with _hold_lock(self._path.with_name(f"{self._path.name}.lock")):
            salt, kept = self._read()
            change(kept)
            self._write(salt, kept)

    def _read(self) -> tuple[bytes, dict[str, Granted]]:
        from cryptography.fernet import InvalidToken  # few nodes sign in

        try:
            head, salt, token = self._path.read_bytes().split(b"\n", 2)
        except FileNotFoundError:
            return token_bytes(_SALT_BYTES), {}
        except ValueError:
            head, salt, token = b"", b"", b""
        if head != _FORMAT:
            raise SignInFileUnreadable(
                "{path} is no file of sign-ins; name another one, or move it away", path=self._path
            )
        try:
            raw_salt = base64.b64decode(salt)
            kept = json.loads(self._fernet(raw_salt).decrypt(token))
            return raw_salt, {name: Granted.from_json(data) for name, data in kept.items()}
        except (InvalidToken, ValueError, KeyError, TypeError):
            raise SignInFileUnreadable(
                "{path} was written with another REVIEWLOOP_SECRET_KEY, or is damaged; it is left as it is: set "
                "the key it was written with, or move it away and sign in again",
                path=self._path,
            ) from None

    def _write(self, salt: bytes, kept: dict[str, Granted]) -> None:
        text = json.dumps({name: granted.to_json() for name, granted in kept.items()})
        token = self._fernet(salt).encrypt(text.encode())
        part = self._path.with_name(f"{self._path.name}.{os.getpid()}.part")
        try:
            with suppress(FileNotFoundError):
                part.unlink()
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE), "wb") as file:
                file.write(b"\n".join((_FORMAT, base64.b64encode(salt), token)))
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._path)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    """Hold a lock file; the lock ends with its process, however that ends."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, _MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _fernet(secret: str, salt: bytes) -> Fernet:
    from cryptography.fernet import Fernet
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    key = Scrypt(salt=salt, length=32, **_COST).derive(secret.encode("utf-8", "surrogateescape"))
    return Fernet(base64.urlsafe_b64encode(key))
