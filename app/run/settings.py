"""Settings: the one place that reads the environment, and the file `.env` of the folder a command runs in.

Every variable begins with REVIEWLOOP_; a command's options come before it, the defaults here after it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, time, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from app.run.catalogs import chosen_catalog
from app.run.setting_values import (
    above_zero,
    alert_rules,
    at_least,
    database,
    days,
    in_file,
    kinds,
    lab_address,
    one_of,
    proxy,
    receivers,
    smtp,
    strategy,
    switch,
    token_hash,
    variables,
    web_address,
    written,
)
from app.run.version import ROOT, VERSION
from app.sending.mail_server import SmtpServer, mail_address, smtp_server
from splitter.catalog.names import Kind
from splitter.errors import InputError
from splitter.spans import CHINA
from tasks.domain.batches import MOST_AT_ONCE
from tasks.scheduling.alerting import USUAL_RULES, AlertRules
from tasks.signin.credentials import PREFIX as LOGIN_PREFIX
from tasks.worker.settings import REMEMBERED, CrawlSettings

if TYPE_CHECKING:
    from splitter.catalog.model import Catalog
    from tasks.jobs.context import LoopSettings
    from tasks.scheduling.recall import RecallSettings
    from tasks.store.views import BufferRule

MIGRATIONS = ROOT / "migrations"
_SEARXNG = "searxng"
PREFIX = "REVIEWLOOP_"
_FILE = Path(".env")
DEFAULT_DATABASE = "sqlite:///reviewloop.db"
DEFAULT_DATA = Path(".reviewloop")
"""Folder of the servers that `reviewloop up` starts by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a process.

    Attributes:
        database_url: SQLite file or PostgreSQL.
        redis_url: where the cluster's broker and rate limits are: redis://, rediss:// or
            sentinel://HOST:PORT;sentinel://HOST:PORT; empty when embedded.
        redis_master: name of the master the sentinels watch.
        sites: a catalog file or a built-in catalog's name; None: ./sites.yaml, else the project's own.
        searxng_url: address of the SearXNG that engines of that name ask (http://HOST:PORT); empty: the catalog's.
        lab: host and port every host is sent to; None: the real web.
        contact: part of the User-Agent: an address or page where a site's operator reaches you.
        allocation: name of the allocation strategy.
        modification: quota and budget of attempts follow what was learned of a pair; off, to compare: they are the
            site's bounds.
        recall: failed work goes to other nodes, up to 5 times; off, to compare: a person gets it at once.
        silent_after_s: silence after which a subtask is taken back.
        backoff_s: delay of a recall after the first failure of a host; it doubles with every recall.
        most_unanswered: attempts of a subtask in a row that no host answered, after which a person is asked.
        rest_factor: multiplies the rests of hosts (below 1 only for the lab).
        request_timeout_s: the most one request may last; never more than half of `silent_after_s`, so that a
            request on its way does not look like silence.
        machine: name shared by the processes behind one outgoing address where none is bound; empty: this host's name.
        address: source address of this process's node; None: the system's choice.
        proxy: what this process's nodes go through, http://HOST:PORT or socks5h://HOST:PORT; empty: none.
        slots: attempts a node runs at once.
        kinds: what this process's node may crawl; None: what its row says, else all.
        report_file: where the sweep `report` writes; None: nowhere.
        batch: most items (leases, results, duplicate questions) in one round trip; 1: no batching.
        remembered: most stored pages a node remembers in its own memory; 0: none.
        seed: what chance in allocation begins with; None: another one each time.
        secret_key: encrypts the file of sign-ins, signs the cluster's messages; empty: neither.
        sign_in_file: where sign-ins are kept until they end.
        since: first day of the time ranges that a query with too many hits is partitioned into.
        relax_own_words: a person's own keywords are relaxed, too, where they find nothing.
        pseudonymise: authors are stored by pseudonyms instead of their names.
        pseudonym_key: key of the pseudonyms, the same on all machines; empty: the one kept in `pseudonym_key_file`.
        pseudonym_key_file: where a key made at random is kept.
        web_viewer, web_operator: hashes of the dashboard's tokens, as `reviewloop web --make-token ROLE` gives them.
        chromium: the browser for pages made by script, a path or a name on PATH; empty: the first of chromium,
            chromium-browser, google-chrome and msedge that is there.
        keep_log_days: days for which the event log of a subtask that ended is kept (docs/verify.md); 0: for ever.
        alerts: what is watched, with thresholds: completion of a site in percent of what it was, minutes that a node
            is silent, subtasks that wait for a person, minutes without a page, refusals of an engine in a row; or off.
        alert_to: who is told, with blanks between: addresses as docs/alerts.md has them, mailto:PERSON, `log`; empty:
            the log.
        log_level: how much every process logs: warning, or info (as `-v`): a line for each attempt, too.
        log_format: of these logs: text or json (docs/metrics.md).
        request_log: file that gets one JSON line for each request sent (docs/metrics.md); empty: none.
        smtp_url: mail server of alerts and scheduled reports: smtps://USER:PASSWORD@HOST:465 or smtp://...
            (docs/schedules.md); empty: none.
        mail_from: sender of mail; empty: the user of `smtp_url`.
        pulse_file: where a worker or beat says every few seconds that its loop turns; empty: nowhere.
    """

    database_url: str = field(default=DEFAULT_DATABASE, repr=False)
    redis_url: str = field(default="", repr=False)
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
    proxy: str = field(default="", repr=False)
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
    web_viewer: str = field(default="", repr=False)
    web_operator: str = field(default="", repr=False)
    chromium: str = ""
    keep_log_days: float = 365.0
    alerts: AlertRules = USUAL_RULES
    alert_to: str = field(default="", repr=False)
    log_level: str = "warning"
    log_format: str = "text"
    request_log: str = ""
    smtp_url: str = field(default="", repr=False)
    mail_from: str = ""
    pulse_file: str = ""

    def catalog(self) -> Catalog:
        """The catalog in force. Raises CatalogError."""
        found = chosen_catalog(self.sites)
        own = found.engines.get(_SEARXNG)
        if not self.searxng_url or own is None:
            return found
        engine = own.model_copy(update={"url": f"{self.searxng_url.rstrip('/')}{urlsplit(own.url).path}"})
        return found.model_copy(update={"engines": {**found.engines, _SEARXNG: engine}})

    def mail_server(self) -> SmtpServer | None:
        """Return the mail server, or None if none is set. Raises InputError."""
        return smtp_server(self.smtp_url, self.mail_from) if self.smtp_url else None

    def loop(self) -> LoopSettings:
        """Return the settings of the loop."""
        # They bring the allocation strategies (numpy, scipy), which most commands do without.
        from tasks.jobs.context import LoopSettings
        from tasks.scheduling.query_refinement import RefinementSettings

        return LoopSettings(
            allocation=self.allocation,
            modification=self.modification,
            recall=self._recall(),
            buffer=self.buffer(),
            lease_batch=self.batch,
            keep_log=timedelta(days=self.keep_log_days) if self.keep_log_days else None,
            refinement=RefinementSettings(
                since=datetime.combine(self.since, time.min, CHINA), own_words=self.relax_own_words
            ),
        )

    def node_silent_after(self) -> timedelta:
        """A node without a heartbeat for so long is silent."""
        return timedelta(seconds=self._recall().node_silent_after_s)

    def buffer(self) -> BufferRule:
        """How many leases a node holds, and when it counts as silent."""
        from tasks.store.views import BufferRule

        return BufferRule(silent_after_s=self._recall().node_silent_after_s)

    def _recall(self) -> RecallSettings:
        from tasks.scheduling.recall import RecallSettings

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


def from_environment(environment: Mapping[str, str] | None = None, **options: Any) -> Settings:
    """Settings from REVIEWLOOP_* variables, with a command's options (None = not given) over them.

    Raises:
        InputError: a value cannot be read; the message names the variable.
    """
    given = _environment() if environment is None else environment
    values: dict[str, Any] = {}
    for name, read in _READERS.items():
        variable = f"REVIEWLOOP_{name.upper()}"
        if not given.get(variable, "").strip() and name in _FORMER:
            variable = _FORMER[name]
        text = given.get(variable, "").strip()
        if not text and name in MAY_BE_FILES:
            text = in_file(f"{variable}_FILE", given.get(f"{variable}_FILE", "").strip())
        if text:
            try:
                values[name] = read(text)
            except (ValueError, InputError) as error:
                written = variable if name in _HIDDEN else f"{variable}={text!r}"
                raise InputError(f"{written}: {error}") from None
    values.update({name: value for name, value in options.items() if value is not None})
    return replace(Settings(), **values)


def logging_wanted() -> tuple[str, str]:
    """`log_level` and `log_format` as the environment has them; a wrong one is refused where all settings are read."""
    given = _environment()
    return given.get(f"{PREFIX}LOG_LEVEL", ""), given.get(f"{PREFIX}LOG_FORMAT", "")


def misspelt(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """REVIEWLOOP_ variables that nothing reads, with the one that was probably meant, or an empty text."""
    given = _environment() if environment is None else environment
    known = {name.upper() for name in _READERS} | {name.removeprefix(PREFIX) for name in _FORMER.values()}
    known |= {f"{name.upper()}_FILE" for name in MAY_BE_FILES}
    named = (name.removeprefix(PREFIX) for name in sorted(given) if name.startswith(PREFIX))
    wrong = [name for name in named if name not in known and not name.startswith(("LOGIN_", "TEST_"))]
    near = {name: next(iter(get_close_matches(name, known, 1)), "") for name in wrong}
    return {f"{PREFIX}{name}": f"{PREFIX}{meant}" if meant else "" for name, meant in near.items()}


def as_environment(settings: Settings) -> dict[str, str]:
    """The environment of a child process with these settings: this one's, with its REVIEWLOOP_* replaced."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("REVIEWLOOP_")}
    environment |= logins()
    for name in _READERS:
        value = getattr(settings, name)
        if value is not None and value != "":
            environment[f"REVIEWLOOP_{name.upper()}"] = written(value)
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
    return {name: text for name, text in _environment().items() if name.startswith(LOGIN_PREFIX)}


def _environment() -> dict[str, str]:
    """The REVIEWLOOP_ variables: those of the process before those of the folder's `.env`."""
    own = {name: text for name, text in os.environ.items() if name.startswith(PREFIX)}
    try:
        text = _FILE.read_text("utf-8-sig")
    except FileNotFoundError:
        return own
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{_FILE} can't be read: {error}") from None
    return dict(variables(text, str(_FILE), PREFIX)) | own


_FORMER = {"batch": "REVIEWLOOP_GRAIN"}
"""Variables by the names they had in earlier versions, still read where the new one is not set."""

_HIDDEN = frozenset(setting.name for setting in fields(Settings) if not setting.repr)

MAY_BE_FILES = (
    "database_url", "redis_url", "secret_key", "web_viewer", "web_operator", "alert_to", "smtp_url"
)  # fmt: skip
"""Settings with a secret in them: REVIEWLOOP_<NAME>_FILE names a file with it, where REVIEWLOOP_<NAME> is not set."""

_READERS: dict[str, Callable[[str], Any]] = {setting.name: str for setting in fields(Settings)} | {
    "database_url": database,
    "searxng_url": web_address,
    "lab": lab_address,
    "allocation": strategy,
    "modification": switch,
    "recall": switch,
    "silent_after_s": above_zero,
    "backoff_s": above_zero,
    "keep_log_days": days,
    "most_unanswered": at_least(1),
    "rest_factor": above_zero,
    "request_timeout_s": above_zero,
    "proxy": proxy,
    "smtp_url": smtp,
    "mail_from": mail_address,
    "log_level": one_of("warning", "info"),
    "log_format": one_of("text", "json"),
    "slots": int,
    "kinds": kinds,
    "batch": at_least(1),
    "remembered": at_least(0),
    "seed": int,
    "since": date.fromisoformat,
    "web_viewer": token_hash,
    "web_operator": token_hash,
    "relax_own_words": switch,
    "pseudonymise": switch,
    "alerts": alert_rules,
    "alert_to": receivers,
}
"""The reader of each setting: its text as it is, unless it is named here."""
