"""Find out before a crawl which sites can be asked. Only name servers and own engines get requests, but no site.

The check ends within `LONGEST_S`, even if a name server does not answer.
"""

from __future__ import annotations

import json
import logging
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from ipaddress import ip_address
from threading import Lock, Semaphore, Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin, urlsplit

from app.run.setting_fields import Settings
from app.run.settings import logins
from splitter.catalog.model import Catalog, Engine
from splitter.catalog.sign_in import SignInRules
from splitter.errors import InputError, Message, system_reason
from splitter.urls import search_url
from tasks.domain.failures import FetchError
from tasks.domain.reasons import Explanation, Reason, because
from tasks.fetching.chromium import missing
from tasks.fetching.guard import SessionSettings
from tasks.jobs.obstacles import NameState, Obstacle, ObstacleKind, Reachability, hosts_of, obstacles
from tasks.signin.credentials import Credentials, Part, variable_of
from tasks.worker.settings import CrawlSettings

if TYPE_CHECKING:
    import requests

log = logging.getLogger("reviewloop.preflight")

LONGEST_S = 8.0
_NAMES_S = 4.0
_ONE_ANSWER_S = 3.5
_AT_ONCE = 64
_GOOD_FOR_S = 60.0
_SAMPLE = ("牛奶",)
_REFUSED = 403
_MOST_BYTES = 5_000_000
SEARXNG_MEND = Message(
    "start one (`reviewloop init FOLDER` makes a compose file for it) or set REVIEWLOOP_SEARXNG_URL"
)

_R = TypeVar("_R")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearxngAnswer:
    """The state of a SearXNG, as it reported it.

    Attributes:
        because: the reason why the SearXNG can't be used; `None` if it can.
        mend: advice to the person.
        version: version of the SearXNG; empty if it does not report one.
        engines: enabled engines of its category general.
        silent: engines that did not answer the sample search, with their reasons.
        hits: number of hits of the sample search, if it was made.
    """

    url: str
    because: Explanation | None = None
    mend: Message | None = None
    version: str = ""
    engines: tuple[str, ...] = ()
    silent: Mapping[str, str] = field(default_factory=dict)
    hits: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """The sites that can be asked, and those that can't.

    Attributes:
        asked: sites that can be asked, in the catalog's order.
        unasked: sites that can't be asked, with their obstacles.
        searxng: answers of own engines, by their name in the catalog.
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
    """Find out which sites of the catalog can be asked. In a lab, these are all sites whose pages need no browser.

    Args:
        search: if True, also search each own engine once.
        browser: finds the obstacle to pages made by scripts. By default this machine is checked, as its nodes crawl
            here.
    """
    find_browser = browser or browser_missing
    if settings.lab is not None:
        return _sort_sites(catalog, Reachability(browser=find_browser(settings)))
    own = {
        name: engine
        for name in dict.fromkeys(site.engine for site in catalog.sites.values())
        if (engine := catalog.engines[name]).private
    }
    # Behind a proxy, the proxy resolves names.
    hosts = set() if settings.proxy else {host for site in catalog.sites for host in hosts_of(catalog, site)}
    hosts = {host for host in hosts if not _is_address(host)}
    crawl = replace(settings.crawl(), request_timeout_s=_ONE_ANSWER_S)
    began_s = time.monotonic()
    probes = _start({name: partial(_probe, engine, crawl, search=search) for name, engine in own.items()})
    names = _start({host: partial(_name_state, host) for host in sorted(hosts)})(began_s + _NAMES_S)
    found = probes(began_s + LONGEST_S)
    answers = {
        name: found.get(name) or _unusable(engine.url, _slow(engine.url)) for name, engine in own.items()
    }
    unusable = {
        name: Obstacle(kind=ObstacleKind.ENGINE, because=one.because, mend=one.mend)
        for name, one in answers.items()
        if one.because is not None
    }
    unsupported = {
        name: Obstacle(
            kind=ObstacleKind.UNSUPPORTED,
            because=because(Reason.ENGINE_UNSUPPORTED, engine=name, text=engine.unsupported),
        )
        for name, engine in catalog.engines.items()
        if engine.unsupported
    }
    reachable = Reachability(
        names={host: names.get(host, NameState.UNANSWERED) for host in hosts},
        engines=unusable | unsupported,
        sign_ins=_missing_sign_ins(settings, catalog),
        browser=find_browser(settings),
    )
    return _sort_sites(catalog, reachable, answers)


def browser_missing(settings: Settings) -> Obstacle | None:
    """Return why this machine can't read pages made by scripts; `None` if it can."""
    why, mend = missing(settings.chromium)
    if mend is None:
        return None
    return Obstacle(kind=ObstacleKind.BROWSER, because=because(Reason.BROWSER_NEEDED, lacks=why), mend=mend)


def _sort_sites(
    catalog: Catalog, found: Reachability, searxng: Mapping[str, SearxngAnswer] = MappingProxyType({})
) -> Preflight:
    blocked = obstacles(catalog, found)
    return Preflight(
        asked=tuple(site for site in catalog.sites if site not in blocked), unasked=blocked, searxng=searxng
    )


def check_lab(lab: tuple[str, int]) -> None:
    """Raise InputError if no lab answers."""
    try:
        socket.create_connection(lab, timeout=_ONE_ANSWER_S).close()
    except OSError as error:
        host, port = lab
        raise InputError(
            "no lab answers at {host}:{port} ({reason}): start it with reviewloop lab --port {port}",
            host=host,
            port=port,
            reason=system_reason(error),
        ) from None


class UnaskedSites:
    """Cache of the sites that can't be asked now, found by a preflight. It expires after a while.

    Any thread may use it.

    Args:
        look: runs a preflight, which takes seconds.
        first: the result of an earlier preflight, if there is one.
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
        """True if the cache has expired, so that the next `list_unasked` runs a preflight."""
        return self._clock() >= self._good_until_s

    def list_unasked(self) -> Mapping[str, tuple[Obstacle, ...]]:
        """Return the sites that can't be asked, with their obstacles. Runs a preflight if the cache has expired."""
        with self._lock:
            if self._known is None or self.due:
                self._known = self._look()
                self._good_until_s = self._clock() + _GOOD_FOR_S
            return self._known.unasked


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _name_state(host: str) -> NameState:
    """Return the answer of the name servers about a host. A host without an address is known if www.HOST has one."""
    states = [_look_up(host)]
    if states[0] is NameState.UNKNOWN:
        states.append(_look_up(f"www.{host}"))
    return NameState.KNOWN if NameState.KNOWN in states else states[0]


def _look_up(host: str) -> NameState:
    try:
        socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM)
    except UnicodeError:
        return NameState.UNKNOWN
    except socket.gaierror as error:
        unknown = error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
        return NameState.UNKNOWN if unknown else NameState.UNANSWERED
    return NameState.KNOWN


def _missing_sign_ins(settings: Settings, catalog: Catalog) -> dict[str, str]:
    """Return the sites and engines that need a sign-in and have none, each with the variables that must be set."""
    from tasks.signin.granted import SignInFile  # brings cryptography
    from tasks.signin.signins import signing

    environment, kept = logins(), settings.sign_in_file
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


def _probe(engine: Engine, settings: CrawlSettings, *, search: bool) -> SearxngAnswer:
    """Ask a SearXNG for its configuration. If `search`, also search it once, which asks all engines behind it."""
    origin = "{0.scheme}://{0.netloc}".format(urlsplit(engine.url))
    try:
        config = _document(_ask(urljoin(engine.url, "config"), settings))
        if not isinstance(config.get("engines"), list):
            return _unusable(engine.url, because(Reason.ENGINE_DIFFERS, address=origin))
        engines = tuple(
            str(one.get("name"))
            for one in config["engines"]
            if isinstance(one, Mapping) and one.get("enabled") and "general" in one.get("categories", ())
        )
        known = SearxngAnswer(url=engine.url, version=str(config.get("version", "")), engines=engines)
        if not search:
            return known
        answer = _ask(search_url(engine, _SAMPLE, site=None, page=1), settings)
    except (FetchError, OSError) as error:
        from tasks.fetching.guarded_session import cause_of

        silent_for = because(Reason.ENGINE_SILENT, address=origin, cause=cause_of(error))
        return _unusable(engine.url, silent_for)
    if answer.status_code == _REFUSED:
        refused = because(Reason.ENGINE_GIVES_NO_JSON, address=origin)
        mend = Message("list json under search.formats in its settings.yml, and switch its limiter off")
        return replace(known, because=refused, mend=mend)
    found = _document(answer)
    if answer.status_code != 200 or not isinstance(found.get("results"), list):
        failed = because(Reason.ENGINE_ANSWERS, address=origin, status=answer.status_code)
        return replace(known, because=failed, mend=SEARXNG_MEND)
    silent = {
        str(one[0]): str(one[1])
        for one in found.get("unresponsive_engines", ())
        if isinstance(one, list) and len(one) > 1
    }
    return replace(known, silent=silent, hits=len(found["results"]))


def _slow(url: str) -> Explanation:
    return because(Reason.ENGINE_SLOW, address=url, wait_s=LONGEST_S)


def _unusable(url: str, reason: Explanation) -> SearxngAnswer:
    return SearxngAnswer(url=url, because=reason, mend=SEARXNG_MEND)


def _ask(url: str, settings: CrawlSettings) -> requests.Response:
    """Fetch a page of a SearXNG, which may be at a private address. Raises FetchError, RequestException or OSError."""
    import requests  # few catalogs have an own engine

    from tasks.fetching.guarded_session import GuardedAdapter, guard_session

    limits = SessionSettings(
        user_agent=settings.user_agent,
        lab=settings.lab,
        timeout_s=settings.request_timeout_s,
        body_bytes=_MOST_BYTES,
        trusts=lambda _url: True,
    )
    with closing(GuardedAdapter(limits)) as adapter:
        return guard_session(requests.Session(), adapter, settings.user_agent).get(url)


def _document(answer: requests.Response) -> dict[str, Any]:
    """Return the response as a JSON object; empty if it is not one."""
    try:
        found = json.loads(answer.content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _start(jobs: Mapping[str, Callable[[], _R]]) -> Callable[[float], dict[str, _R]]:
    """Start jobs in daemon threads. A name look-up can't be interrupted, and must not delay the end of the process.

    Returns:
        A function that waits until all jobs have ended, at most until a time of `time.monotonic`, and returns results
        by name, without jobs that failed or did not end.
    """
    done: dict[str, _R] = {}
    free = Semaphore(_AT_ONCE)

    def work(name: str, job: Callable[[], _R]) -> None:
        with free:
            try:
                done[name] = job()
            except Exception:
                log.exception("%s could not be checked", name)

    threads = [Thread(target=work, args=job, daemon=True) for job in jobs.items()]
    for thread in threads:
        thread.start()

    def results(until_s: float) -> dict[str, _R]:
        for thread in threads:
            thread.join(max(0.0, until_s - time.monotonic()))
        return dict(done)

    return results
