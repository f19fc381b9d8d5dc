"""Settings: the one place that reads the environment.

Every variable begins with REVIEWLOOP_; a command's options come before it, the defaults here after it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, time
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from app.version import ROOT, VERSION
from splitter.catalog.load import BUILTIN, builtin, find_catalog
from splitter.catalog.model import Catalog, Kind
from splitter.errors import InputError
from splitter.spans import CHINA
from tasks.scheduling.query_refinement import RefinementSettings
from tasks.scheduling.recall import RecallSettings
from tasks.signin.credentials import PREFIX as LOGIN_PREFIX
from tasks.store.writer import MOST_AT_ONCE
from tasks.worker.seen import REMEMBERED
from tasks.worker.settings import CrawlSettings

if TYPE_CHECKING:
    from tasks.jobs.context import LoopSettings

MIGRATIONS = ROOT / "migrations"
_SEARXNG = "searxng"
DEFAULT_DATABASE = "sqlite:///reviewloop.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a process.

    Attributes:
        database_url: SQLite file or PostgreSQL.
        redis_url: of the cluster's broker and rate limits: redis://, rediss:// or
            sentinel://HOST:PORT;sentinel://HOST:PORT; empty when embedded.
        redis_master: name of the master the sentinels watch.
        sites: a catalog file or a built-in catalog's name; None: ./sites.yaml, else the project's own.
        searxng_url: address of the SearXNG that engines of that name ask (http://HOST:PORT); empty: the catalog's.
        lab: host and port every host is sent to; None: the real web.
        contact: part of the User-Agent: an address or page where a site's operator reaches you.
        allocation: name of the allocation strategy.
        modification, recall: False switches the strategy off, to compare.
        silent_after_s: silence after which a subtask is taken back.
        backoff_s: delay of a recall after the first failure of a host; it doubles with every recall.
        most_unanswered: attempts of a subtask in a row that no host answered, after which a person is asked.
        rest_factor: multiplies the rests of hosts (below 1 only for the lab).
        request_timeout_s: the most one request may last; never more than half of `silent_after_s`, so that a
            request on its way does not look like silence.
        machine: name shared by the processes behind one outgoing address where none is bound; empty: this host's name.
        address: source address of this process's node; None: the system's choice.
        proxy: http://HOST:PORT or socks5h://HOST:PORT that this process's nodes go through; empty: none.
        slots: attempts a node runs at once.
        kinds: what this process's node may crawl; None: what its row says, else all.
        report_file: where the sweep `report` writes; None: nowhere.
        batch: most items (leases, results, duplicate questions) in one round trip; 1: no batching.
        remembered: most stored pages a node remembers in its own memory; 0: none.
        seed: of chance in allocation; None: another one each time.
        secret_key: encrypts the file of sign-ins; empty: no site is signed in to.
        sign_in_file: where sign-ins are kept until they end.
        since: first day of the time ranges that a query with too many hits is partitioned into.
        relax_own_words: True relaxes a person's own keywords, too, where they find nothing.
        pseudonymise: authors are stored by pseudonyms instead of their names.
        pseudonym_key: key of the pseudonyms, the same on all machines; empty: the one kept in `pseudonym_key_file`.
    """

    database_url: str = DEFAULT_DATABASE
    redis_url: str = ""
    redis_master: str = "mymaster"
    sites: str | None = None
    searxng_url: str = ""
    lab: tuple[str, int] | None = None
    contact: str = ""
    allocation: str = "feedback"
    modification: bool = True
    recall: bool = True
    silent_after_s: float = 60.0
    backoff_s: float = 2.0
    most_unanswered: int = 20
    rest_factor: float = 1.0
    request_timeout_s: float = 30.0
    machine: str = ""
    address: str | None = None
    proxy: str = ""
    slots: int = 4
    kinds: frozenset[Kind] | None = None
    report_file: str | None = None
    batch: int = MOST_AT_ONCE
    remembered: int = REMEMBERED
    seed: int | None = None
    secret_key: str = field(default="", repr=False)
    sign_in_file: str = "reviewloop.sign-ins"
    since: date = date(2000, 1, 1)
    relax_own_words: bool = False
    pseudonymise: bool = False
    pseudonym_key: str = field(default="", repr=False)
    pseudonym_key_file: str = "reviewloop.pseudonym-key"

    def catalog(self) -> Catalog:
        """The catalog in force. Raises CatalogError."""
        found = catalog(self.sites)
        own = found.engines.get(_SEARXNG)
        if not self.searxng_url or own is None:
            return found
        engine = own.model_copy(update={"url": f"{self.searxng_url.rstrip('/')}{urlsplit(own.url).path}"})
        return found.model_copy(update={"engines": {**found.engines, _SEARXNG: engine}})

    def loop(self) -> LoopSettings:
        """Settings of the loop."""
        # They bring the allocation strategies (numpy, scipy), which most commands do without.
        from tasks.jobs.context import LoopSettings
        from tasks.store.views import BufferRule

        return LoopSettings(
            allocation=self.allocation,
            modification=self.modification,
            recall=self._recall(),
            buffer=BufferRule(silent_after_s=self._recall().node_silent_after_s),
            lease_batch=self.batch,
            refinement=RefinementSettings(
                since=datetime.combine(self.since, time.min, CHINA), own_words=self.relax_own_words
            ),
        )

    def _recall(self) -> RecallSettings:
        return RecallSettings(
            enabled=self.recall,
            silent_after_s=self.silent_after_s,
            backoff_s=self.backoff_s,
            most_unanswered=self.most_unanswered,
        )

    def crawl(self) -> CrawlSettings:
        """Settings of the crawl."""
        contact = self.contact or "no contact given"
        return CrawlSettings(
            user_agent=f"reviewloop/{VERSION} ({contact})",
            request_timeout_s=min(self.request_timeout_s, self.silent_after_s / 2),
            longest_wait_s=self._recall().longest_wait_s,
            rest_factor=self.rest_factor,
            lab=self.lab,
        )


def catalog(spec: str | None) -> Catalog:
    """The catalog asked for: a file or a built-in catalog's name; None: ./sites.yaml, else the project's own.

    Raises:
        CatalogError: there is none of that name, or it is wrong.
    """
    here = Path("sites.yaml")
    default = here if here.is_file() else ROOT / "sites.yaml"
    if spec is None and not default.is_file():
        return builtin(BUILTIN[0])
    return find_catalog(spec, default)


def from_environment(environment: Mapping[str, str] | None = None, **options: Any) -> Settings:
    """Settings from REVIEWLOOP_* variables, with a command's options (None = not given) over them.

    Raises:
        InputError: a value cannot be read; the message names the variable.
    """
    given = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    for name, read in _READERS.items():
        variable = f"REVIEWLOOP_{name.upper()}"
        if not given.get(variable, "").strip() and name in _FORMER:
            variable = _FORMER[name]
        text = given.get(variable, "").strip()
        if text:
            try:
                values[name] = read(text)
            except (ValueError, InputError) as error:
                raise InputError(f"{variable}={text!r}: {error}") from None
    values.update({name: value for name, value in options.items() if value is not None})
    return replace(Settings(), **values)


def lab_address(text: str) -> tuple[str, int]:
    """Read HOST:PORT of a lab; only loopback is allowed. Raises InputError."""
    host, _, port = text.rpartition(":")
    try:
        loopback = ip_address(host) in ip_network("127.0.0.0/8")
        number = int(port)
    except ValueError:
        raise InputError(f"lab {text!r}: write HOST:PORT, for example 127.0.0.1:8400") from None
    if not loopback or not 0 < number < 65536:
        raise InputError(f"lab {text!r}: a lab is on loopback (127.0.0.0/8) and a port from 1 to 65535")
    return host, number


def web_address(text: str) -> str:
    """Check an address that is all but a path. Raises ValueError."""
    parsed = urlsplit(text)
    if parsed.scheme not in ("http", "https") or not parsed.hostname or parsed.query or parsed.fragment:
        raise ValueError("write http://HOST:PORT")
    return text


def kinds(text: str) -> frozenset[Kind]:
    """Read what a node may crawl: `meta`, `microblog`, or both with a comma between. Raises ValueError."""
    try:
        return frozenset(Kind(word.strip()) for word in text.split(","))
    except ValueError:
        raise ValueError(f"write {','.join(Kind)}, or one of them") from None


def proxy(text: str) -> str:
    """Check the address of a proxy. Raises ValueError."""
    parsed = urlsplit(text)
    if (
        parsed.scheme not in ("http", "https", "socks5", "socks5h")
        or not parsed.hostname
        or parsed.path not in ("", "/")
    ):
        raise ValueError(
            "write http://HOST:PORT or socks5://HOST:PORT, with USER:PASSWORD@ before HOST if it asks"
        )
    return text


def as_environment(settings: Settings) -> dict[str, str]:
    """The environment of a child process with these settings: this one's, with its REVIEWLOOP_* replaced."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("REVIEWLOOP_")}
    environment |= logins()
    for name in _READERS:
        value = getattr(settings, name)
        if value is not None and value != "":
            environment[f"REVIEWLOOP_{name.upper()}"] = _written(value)
    return environment


def cache_folder() -> Path | None:
    """The user's own folder for what can be made again (XDG base directories); None: the user has no home."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        base = given if given.is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return base / "reviewloop"


def logins() -> dict[str, str]:
    """Names, passwords and clients of sites, by variable (see tasks.signin.credentials)."""
    return {name: text for name, text in os.environ.items() if name.startswith(LOGIN_PREFIX)}


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return ":".join(str(part) for part in value)
    if isinstance(value, frozenset):
        return ",".join(sorted(value))
    return str(value)


def _strategy(text: str) -> str:
    from tasks.scheduling.strategies import ALLOCATION

    if text not in ALLOCATION:
        raise ValueError(f"there is {', '.join(ALLOCATION)}")
    return text


def _switch(text: str) -> bool:
    if text.lower() in ("1", "on", "true", "yes"):
        return True
    if text.lower() in ("0", "off", "false", "no"):
        return False
    raise ValueError("write on or off")


def _above_zero(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise ValueError("must be above 0")
    return value


def _at_least(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if int(text) < least:
            raise ValueError(f"must be at least {least}")
        return int(text)

    return read


_FORMER = {"batch": "REVIEWLOOP_GRAIN"}
"""Variables by the names they had in earlier versions, still read where the new one is not set."""

_READERS: dict[str, Callable[[str], Any]] = {setting.name: str for setting in fields(Settings)} | {
    "searxng_url": web_address,
    "lab": lab_address,
    "allocation": _strategy,
    "modification": _switch,
    "recall": _switch,
    "silent_after_s": _above_zero,
    "backoff_s": _above_zero,
    "most_unanswered": _at_least(1),
    "rest_factor": _above_zero,
    "request_timeout_s": _above_zero,
    "proxy": proxy,
    "slots": int,
    "kinds": kinds,
    "batch": _at_least(1),
    "remembered": _at_least(0),
    "seed": int,
    "since": date.fromisoformat,
    "relax_own_words": _switch,
    "pseudonymise": _switch,
}
"""What reads each setting: its text as it is, unless it is named here."""
