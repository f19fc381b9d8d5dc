"""Finds out before the first request what can be asked from here: asks name servers and engines of one's own, no site.

All of it ends in `LONGEST_S`: a name server that does not answer holds nobody up.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from ipaddress import ip_address
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from types import MappingProxyType
from typing import Generic, TypeVar

from app.run.searxng import SearxngAnswer, probe
from app.run.setting_fields import Settings
from app.run.settings import logins
from splitter.catalog.model import Catalog
from splitter.catalog.sign_in import SignInRules
from splitter.errors import InputError
from tasks.fetching.chromium import missing
from tasks.jobs.obstacles import NameState, Obstacle, ObstacleKind, Reachability, hosts_of, obstacles
from tasks.signin.credentials import Credentials, Part, variable_of

log = logging.getLogger("reviewloop.preflight")

LONGEST_S = 8.0
_NAMES_S = 4.0
_ONE_ANSWER_S = 3.5
_AT_ONCE = 64
_GOOD_FOR_S = 60.0

SEARXNG_MEND = (
    "start one (`reviewloop init FOLDER` makes a compose file for it) or set REVIEWLOOP_SEARXNG_URL"
)

_R = TypeVar("_R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """The sites that can be asked, and those that can't.

    Attributes:
        asked: sites that can be asked, in the catalog's order.
        unasked: the others, and why.
        searxng: what engines of one's own said, by their name in the catalog.
    """

    asked: tuple[str, ...]
    unasked: Mapping[str, tuple[Obstacle, ...]] = field(default_factory=dict)
    searxng: Mapping[str, SearxngAnswer] = field(default_factory=dict)


def preflight(
    settings: Settings,
    catalog: Catalog,
    *,
    search: bool = True,
    browser: Callable[[Settings], Obstacle | None] | None = None,
) -> Preflight:
    """Find out which sites of the catalog can be asked; towards a lab all can whose pages need no browser.

    Args:
        search: also search an engine of one's own once.
        browser: finds what stands between the nodes and pages made by script; None: the nodes are on this machine.
    """
    find_browser = browser or browser_missing
    wanted = tuple(catalog.sites)
    if settings.lab is not None:
        return _found(catalog, Reachability(browser=find_browser(settings)))
    own = {
        name: engine
        for name in dict.fromkeys(catalog.sites[site].engine for site in wanted)
        if (engine := catalog.engines[name]).private
    }
    # A proxy looks names up itself.
    hosts = set() if settings.proxy else {host for site in wanted for host in hosts_of(catalog, site)}
    hosts = {host for host in hosts if not _is_address(host)}
    crawl = replace(settings.crawl(), request_timeout_s=_ONE_ANSWER_S)
    asking = _Jobs(
        {name: partial(probe, engine, crawl, SEARXNG_MEND, search=search) for name, engine in own.items()}
    )
    names = _Jobs({host: partial(_state_of, host) for host in sorted(hosts)}).within(_NAMES_S)
    said = asking.within(LONGEST_S - _NAMES_S)
    answers = {name: said.get(name) or _unanswered_searxng(engine.url) for name, engine in own.items()}
    found = Reachability(
        names={host: names.get(host, NameState.UNANSWERED) for host in hosts},
        engines={
            name: Obstacle(kind=ObstacleKind.ENGINE, why=f"{name}: {one.why}", mend=one.mend)
            for name, one in answers.items()
            if one.why
        },
        sign_ins=_sign_ins_missing(settings, catalog),
        browser=find_browser(settings),
    )
    return _found(catalog, found, answers)


def browser_missing(settings: Settings) -> Obstacle | None:
    """The obstacle to reading pages made by script on this machine."""
    why, mend = missing(settings.chromium)
    return (
        Obstacle(kind=ObstacleKind.BROWSER, why=f"its pages need a browser: {why}", mend=mend)
        if why
        else None
    )


def _found(
    catalog: Catalog, found: Reachability, searxng: Mapping[str, SearxngAnswer] = MappingProxyType({})
) -> Preflight:
    blocked = obstacles(catalog, found)
    return Preflight(
        asked=tuple(site for site in catalog.sites if site not in blocked), unasked=blocked, searxng=searxng
    )


def check_lab(lab: tuple[str, int]) -> None:
    """Raises InputError where no lab answers."""
    try:
        socket.create_connection(lab, timeout=_ONE_ANSWER_S).close()
    except OSError as error:
        host, port = lab
        raise InputError(
            f"no lab answers at {host}:{port} ({error.strerror or error}): start it with reviewloop lab --port {port}"
        ) from None


class Askable:
    """Sites that can't be asked now, looked up again after a while; may be called from any thread.

    Args:
        look: finds it out; takes seconds.
        first: what is known already.
    """

    def __init__(
        self,
        look: Callable[[], Preflight],
        first: Preflight | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look = look
        self._clock = clock
        self._lock = Lock()
        self._known = first
        self._good_until_s = clock() + _GOOD_FOR_S if first is not None else 0.0

    @property
    def due(self) -> bool:
        """True where the next call looks anew."""
        return self._clock() >= self._good_until_s

    def unasked(self) -> Mapping[str, tuple[Obstacle, ...]]:
        """The sites that can't be asked, and why."""
        with self._lock:
            if self._known is None or self.due:
                self._known = self._look()
                self._good_until_s = self._clock() + _GOOD_FOR_S
            return self._known.unasked


def _state_of(host: str) -> NameState:
    """The name servers' answer about a host; a site that has an address only with www. is known."""
    states = [_looked_up(host)]
    if states[0] is NameState.UNKNOWN:
        states.append(_looked_up(f"www.{host}"))
    return NameState.KNOWN if NameState.KNOWN in states else states[0]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _unanswered_searxng(url: str) -> SearxngAnswer:
    return SearxngAnswer(url=url, why=f"{url} did not answer in {LONGEST_S:g} s", mend=SEARXNG_MEND)


def _looked_up(host: str) -> NameState:
    try:
        socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM)
    except UnicodeError:
        return NameState.UNKNOWN
    except socket.gaierror as error:
        unknown = error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
        return NameState.UNKNOWN if unknown else NameState.UNANSWERED
    return NameState.KNOWN


def _sign_ins_missing(settings: Settings, catalog: Catalog) -> dict[str, str]:
    """Sites and engines that ask to sign in and that nobody has signed in to, with the variables to set."""
    from tasks.signin.granted import SignInFile  # brings cryptography
    from tasks.signin.signins import signing

    environment = logins()
    kept = settings.sign_in_file
    file = SignInFile(kept, settings.secret_key) if settings.secret_key and kept.is_file() else None
    return {
        name: ", ".join(variable_of(name, part) for part in _parts(rules))
        for name, rules in signing(catalog).items()
        if not Credentials(name, environment).any and (file is None or file.load(name) is None)
    }


def _parts(rules: SignInRules) -> tuple[Part, ...]:
    if rules.cookies is not None:
        return (Part.COOKIES,)
    if rules.oauth2 is not None:
        return Part.CLIENT_ID, Part.CLIENT_SECRET
    return Part.USER, Part.PASSWORD


class _Jobs(Generic[_R]):
    """Jobs in daemon threads: a look-up of a name can't be ended, and must not hold up the end of the process."""

    def __init__(self, jobs: Mapping[str, Callable[[], _R]]) -> None:
        self._count = len(jobs)
        self._waiting: SimpleQueue[tuple[str, Callable[[], _R]]] = SimpleQueue()
        self._ended: SimpleQueue[tuple[str, _R] | None] = SimpleQueue()
        for job in jobs.items():
            self._waiting.put(job)
        for _ in range(min(_AT_ONCE, self._count)):
            Thread(target=self._work, daemon=True).start()

    def within(self, seconds: float) -> dict[str, _R]:
        """The results of calls by their names; what failed or is not there in time is missing."""
        deadline_s = time.monotonic() + seconds
        done: dict[str, _R] = {}
        for _ in range(self._count):
            try:
                one = self._ended.get(timeout=max(0.0, deadline_s - time.monotonic()))
            except Empty:
                break
            if one is not None:
                done[one[0]] = one[1]
        return done

    def _work(self) -> None:
        while True:
            try:
                name, job = self._waiting.get_nowait()
            except Empty:
                return
            try:
                self._ended.put((name, job()))
            except Exception:  # as if it had not ended in time
                log.exception("%s could not be checked", name)
                self._ended.put(None)
