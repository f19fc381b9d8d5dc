"""Sign-ins at sites: headers for the crawl, renewal ahead of expiry, one sign-in at a time per site.

Headers are looked up on the event loop, one dictionary look-up a request; everything that sends requests to a site or
reads the file runs in a thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from splitter.catalog.model import Catalog
from splitter.catalog.sign_in import SignInRules
from splitter.errors import InputError, Message

from tasks.domain.address import authority_of
from tasks.domain.backoff import backoff_s
from tasks.domain.failures import FetchError
from tasks.fetching.guard import SessionSettings
from tasks.signin.credentials import Credentials
from tasks.signin.errors import SignInError
from tasks.signin.granted import Cookie, Granted, SignInFile
from tasks.signin.methods import CookieSignIn, FormSignIn, SignIn

if TYPE_CHECKING:
    from tasks.signin.browser import Session

log = logging.getLogger("reviewloop.signin")

OwnMethod = Callable[[SignInRules], SignIn]
"""Makes a site's own method to sign in from the catalog's rules."""

_NOTHING: Mapping[str, str] = MappingProxyType({})
_LONGEST_PAUSE_S = 3600.0
_PAUSE_S = 30.0
_AGAIN_S = 60.0
_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True, kw_only=True)
class _Account:
    """A site or engine that is signed in to.

    Attributes:
        by_host: the granted cookies that each host may get.
        not_before: after failures: the earliest next try.
        again_at: after a refusal: from then on another refusal may force one more sign-in.
    """

    name: str
    rules: SignInRules
    method: SignIn
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    granted: Granted | None = None
    by_host: dict[str, tuple[Cookie, ...]] = field(default_factory=dict)
    failures: int = 0
    not_before: datetime = _EARLIEST
    again_at: datetime = _EARLIEST

    def take(self, granted: Granted | None) -> None:
        cookies = granted.cookies if granted else ()
        self.by_host = {
            host: tuple(cookie for cookie in cookies if cookie.may_reach(host)) for host in self.rules.hosts
        }
        self.granted = granted

    def fresh(self, granted: Granted, now: datetime) -> bool:
        """Return True if the grant needs no renewal yet."""
        return granted.expires_at - timedelta(seconds=self.rules.renew_before_s) > now


class SignIns:
    """The sign-ins of one process; its coroutines belong to one event loop.

    Args:
        credentials: those of a site or engine, by name.
        file: stores the grants of sites; None only if no site of the catalog is signed in to.
        settings: how sessions reach the web.
        clock: aware time.
        own: classes of sites and engines that neither a form nor OAuth 2 as they are can sign in to, by name.
    """

    def __init__(
        self,
        catalog: Catalog,
        credentials: Callable[[str], Credentials],
        file: SignInFile | None,
        settings: SessionSettings,
        clock: Callable[[], datetime],
        own: Mapping[str, OwnMethod] = MappingProxyType({}),
    ) -> None:
        self._credentials = credentials
        self._file = file
        self._settings = settings
        self._clock = clock
        self._accounts = {
            name: _Account(name=name, rules=rules, method=own.get(name, _method_of)(rules))
            for name, rules in signing(catalog).items()
        }
        self._by_host = {host: account for account in self._accounts.values() for host in account.rules.hosts}

    def headers_for(self, url: str) -> Mapping[str, str]:
        """Headers of a request for a sendable address: cookies or a bearer token; empty for most hosts.

        To be called for each redirect: the next host may not get what this one may.
        """
        host = _host_of(url)
        account = self._by_host.get(host)
        if account is None or account.granted is None:
            return _NOTHING
        now = self._clock()
        if account.granted.expires_at <= now:
            return _NOTHING
        # Connections to the lab never leave the machine; everywhere else only TLS keeps a token secret (RFC 6750, 5.3).
        secure = url.startswith("https:") or self._settings.lab is not None
        if account.granted.bearer:
            return {"Authorization": f"Bearer {account.granted.bearer}"} if secure else _NOTHING
        path = urlsplit(url).path or "/"
        now_s = now.timestamp()
        fitting = [
            f"{cookie.name}={cookie.value}"
            for cookie in account.by_host[host]
            if cookie.goes_with(path, secure=secure, now_s=now_s)
        ]
        return {"Cookie": "; ".join(fitting)} if fitting else _NOTHING

    async def ensure(self, url: str) -> None:
        """Be signed in to the host of a sendable address, if that is possible: sign in, or renew what ends soon.

        An error is logged, and the sign-in tried again after a pause that doubles up to an hour; the site's
        pages then answer with their login wall.
        """
        account = self._by_host.get(_host_of(url))
        if account is None or self._idle(account):
            return
        if (
            account.lock.locked()
            and account.granted is not None
            and account.granted.expires_at > self._clock()
        ):
            return  # being renewed, and still good
        async with account.lock:
            if not self._idle(account):
                await self._try(account, None)

    async def renew_refused(self, url: str) -> bool:
        """Sign in once more, after a page asked to sign in although its request carried `headers_for`.

        At most once a minute for a site: requests in flight at the same time are refused at the same time.

        Returns:
            Whether another request makes sense.
        """
        account = self._by_host.get(_host_of(url))
        if account is None:
            return False
        async with account.lock:
            now = self._clock()
            if now >= account.again_at and now >= account.not_before:
                account.again_at = now + timedelta(seconds=_AGAIN_S)
                refused = account.granted
                account.take(None)
                await self._try(account, refused)
            return account.granted is not None

    def sign_in(self, name: str) -> datetime:
        """Sign in now, whatever is kept; until when it holds. Blocks.

        Raises:
            InputError: the catalog does not say how.
            SignInError: it did not work.
        """
        account = self._account(name)
        with self._sign_in_file().sole_sign_in(name), self._session(account) as session:
            granted = account.method.user_login(session, self._credentials(name))
            self._sign_in_file().save(name, granted)
        account.take(granted)
        return granted.expires_at

    def _idle(self, account: _Account) -> bool:
        now = self._clock()
        fresh = account.granted is not None and account.fresh(account.granted, now)
        return fresh or now < account.not_before

    async def _try(self, account: _Account, refused: Granted | None) -> None:
        try:
            granted = await asyncio.to_thread(self._renew, account, refused)
        except (SignInError, FetchError, OSError) as error:
            account.failures += 1
            pause_s = backoff_s(_PAUSE_S, account.failures, _LONGEST_PAUSE_S)
            account.not_before = self._clock() + timedelta(seconds=pause_s)
            log.warning("not signed in to %s, next try in %.0f s: %s", account.name, pause_s, error)
            return
        account.failures = 0
        account.take(granted)
        log.info("signed in to %s until %s", account.name, granted.expires_at.isoformat(timespec="seconds"))

    def _renew(self, account: _Account, refused: Granted | None) -> Granted:
        """The grant that another process got meanwhile, else a renewal, else a new sign-in. Runs in a thread."""
        file, now = self._sign_in_file(), self._clock()
        with file.sole_sign_in(account.name):
            if refused is not None:
                file.forget(account.name, refused)
            kept = file.load(account.name)
            if kept is not None and account.fresh(kept, now):
                return kept
            credentials = self._credentials(account.name)
            with self._session(account) as session:
                if kept is not None:
                    granted = account.method.renew(session, credentials, kept)
                else:
                    granted = account.method.user_login(session, credentials)
            file.save(account.name, granted)
            return granted

    def _session(self, account: _Account) -> Session:
        from tasks.signin.browser import Session  # it brings requests, and few nodes sign in

        return Session(self._settings, account.rules.hosts, self._clock())

    def _sign_in_file(self) -> SignInFile:
        if self._file is None:
            raise SignInError("it is asked unsigned: set its REVIEWLOOP_LOGIN_... and REVIEWLOOP_SECRET_KEY")
        return self._file

    def _account(self, name: str) -> _Account:
        account = self._accounts.get(name)
        if account is None:
            known = ", ".join(self._accounts) or Message("none")
            raise InputError(
                "the catalog does not say how to sign in to {name!r} (sign_in); it does for: {known}",
                name=name,
                known=known,
            )
        return account


def _host_of(url: str) -> str:
    return authority_of(url).partition(":")[0]


def signing(catalog: Catalog) -> dict[str, SignInRules]:
    """The sites and engines of a catalog that are signed in to, by name."""
    tables = (catalog.engines, catalog.sites)
    return {
        name: entry.sign_in for table in tables for name, entry in table.items() if entry.sign_in is not None
    }


def _method_of(rules: SignInRules) -> SignIn:
    if rules.form is not None:
        return FormSignIn(rules.form)
    if rules.oauth2 is not None:
        # Its libraries are slow to import, and few catalogs need them.
        from tasks.signin.oauth2 import OAuth2SignIn

        return OAuth2SignIn(rules.oauth2)
    if rules.cookies is not None:
        return CookieSignIn(rules.cookies, rules.hosts)
    raise InputError("a sign_in with neither form, oauth2 nor cookies; write one of them")
