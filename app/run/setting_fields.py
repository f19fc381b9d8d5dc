"""The settings of a process: fields, defaults and checks.

`app.run.settings` reads them from the environment. This module imports pydantic, so commands import it late.
The descriptions of the fields appear in the file `.env` of `reviewloop init`, in docs/settings.md and in errors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import timedelta
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, IPvAnyNetwork, PositiveFloat
from pydantic.fields import FieldInfo

from app.run.setting_values import (
    PREFIX,
    database,
    lab_address,
    read_kinds,
    read_proxy,
    read_public_address,
    read_redis_url,
    read_root_path,
    read_searxng_url,
)
from app.run.version import DEFAULT_DATABASE, ROOT, VERSION
from app.sending.mail_server import SmtpServer, mail_address, smtp_server
from splitter.catalog.names import BUILTIN, Kind
from splitter.errors import InputError, Message, WrongValue
from splitter.spans import CHINA_NAME, get_zone
from tasks.domain.batches import MOST_AT_ONCE
from tasks.domain.given_address import AddressKind, read_address, shows_host
from tasks.scheduling.alerting import USUAL_RULES, AlertRules
from tasks.scheduling.strategy_names import STRATEGIES
from tasks.worker.settings import REMEMBERED, CrawlSettings

if TYPE_CHECKING:
    from splitter.catalog.model import Catalog
    from tasks.jobs.context import LoopSettings
    from tasks.scheduling.rebalancing import BufferRule
    from tasks.scheduling.recall import RecallSettings

_SEARXNG = "searxng"


def _text_validator(read: Callable[[str], Any]) -> BeforeValidator:
    """Return a validator that reads a text with `read` and leaves every other value as it is."""

    def check(value: Any) -> Any:
        try:
            return read(value) if isinstance(value, str) and value else value
        except InputError as error:
            raise WrongValue("{problem}", problem=error) from None

    return BeforeValidator(check)


def _strategy(text: str) -> str:
    if text not in STRATEGIES:
        raise WrongValue("write one of {known}", known=", ".join(STRATEGIES))
    return text


def _zone(name: str) -> str:
    get_zone(name)
    return name


def _switch(text: str) -> bool:
    if text.lower() not in ("1", "on", "true", "yes", "0", "off", "false", "no"):
        raise WrongValue("write on or off")
    return text.lower() in ("1", "on", "true", "yes")


def _mail_server_url(text: str) -> str:
    smtp_server(text, "anybody@example.cn")
    return text


def _alert_rules(text: str) -> AlertRules:
    right = Message("write {rules}, some of them, or off", rules=USUAL_RULES)
    usual = dict(USUAL_RULES.items())
    given: dict[str, float] = {}
    for word in () if text == "off" else text.split(","):
        name, _, threshold = word.strip().partition(":")
        if name not in usual:
            raise WrongValue("there is no rule {name!r}: {right}", name=name, right=right)
        try:
            given[name] = float(threshold) if threshold else usual[name]
        except ValueError:
            given[name] = 0.0
        if given[name] <= 0:
            raise WrongValue(
                "{given}: the threshold is a number above 0: {right}",
                given=f"{name}:{threshold}",
                right=right,
            )
    return AlertRules(**given)


def _receivers(text: str) -> str:
    """Return the receivers of alerts if their form is right. They are separated by blanks.

    An error repeats none of them.
    """
    for number, word in enumerate(text.split(), 1):
        if word.startswith("mailto:") and not word.startswith("mailto://"):
            for person in word.removeprefix("mailto:").split(","):
                mail_address(person)
        elif word != "log" and "://" not in word:
            raise WrongValue(
                "receiver {number} is neither an address (docs/alerts.md) nor `log`", number=number
            )
        elif shows_host(word.partition("://")[0]):
            try:
                read_address(AddressKind.RECEIVER, word)
            except InputError as error:
                raise WrongValue("receiver {number}: {error}", number=number, error=error) from None
    return " ".join(text.split())


Switch = Annotated[bool, _text_validator(_switch)]
Networks = Annotated[frozenset[IPvAnyNetwork], _text_validator(lambda text: text.replace(",", " ").split())]
Secret = Annotated[str, Field(repr=False)]
FileSecret = Annotated[Secret, Field(json_schema_extra={"in_file": True})]
"""A secret that a file may hold, which the variable's name with _FILE names."""
TokenHash = Annotated[FileSecret, Field(pattern=r"^(sha256:[0-9a-f]{64})?$")]


class Settings(BaseModel):
    """All settings of a process. An empty text stands for "not set"."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    database_url: Annotated[FileSecret, _text_validator(database)] = DEFAULT_DATABASE
    """SQLite file or PostgreSQL."""
    redis_url: Annotated[FileSecret, _text_validator(read_redis_url)] = ""
    """Broker and rate limits of the cluster: redis://, rediss:// or sentinel://HOST:PORT;sentinel://HOST:PORT. The
    embedded runner needs none."""
    redis_master: str = "mymaster"
    """Name of the master that the sentinels watch."""
    timezone: Annotated[str, _text_validator(_zone)] = CHINA_NAME
    """Zone of the clock times that commands, pages and reports show: Europe/Berlin. It never moves the day of a
    review."""
    sites: str | None = None
    """Catalog file or name of a built-in catalog. Default: ./sites.yaml, else the project's own."""
    only_sites: Annotated[frozenset[str], _text_validator(lambda text: text.replace(",", " ").split())] = (
        frozenset()
    )
    """Sites that are crawled, separated by commas; work left at other sites waits. Default: all."""
    themes: str | None = None
    """File of the themes that reviews are read for (docs/themes.md). Default: ./themes.yaml, else the project's own."""
    searxng_url: Annotated[Secret, _text_validator(read_searxng_url)] = ""
    """Address of the SearXNG that engines of that name ask (http://HOST:PORT). Default: the catalog's."""
    lab: Annotated[tuple[str, int] | None, Field(repr=False), _text_validator(lab_address)] = None
    """HOST:PORT of a lab on loopback that every host is sent to. Default: the real web."""
    contact: str = ""
    """Part of the User-Agent: an address or page where the operator of a site reaches you."""
    allocation: Annotated[str, _text_validator(_strategy)] = "feedback"
    """Name of the allocation strategy: feedback, feedback2014, balance, proximity, sed, least_loaded, round_robin,
    hash or random."""
    modification: Switch = True
    """Adapt quota and budget to the results of earlier attempts. Off, to compare: use the site's bounds."""
    recall: Switch = True
    """Give failed work to other nodes, up to 5 times. Off, to compare: a person gets it at once."""
    silent_after_s: PositiveFloat = 60.0
    """Take a subtask back after this silence, in seconds."""
    backoff_s: PositiveFloat = 2.0
    """Delay of a recall after the first failure of a host, in seconds. It doubles with every recall."""
    most_unanswered: int = Field(20, ge=1)
    """Attempts of a subtask in a row without an answer of its host, after which a person is asked."""
    rest_factor: PositiveFloat = 1.0
    """Multiplies the rests of hosts. Below 1 only for the lab."""
    request_timeout_s: PositiveFloat = 30.0
    """Longest time of one request, in seconds; at most half of REVIEWLOOP_SILENT_AFTER_S is used."""
    machine: str = ""
    """Name shared by the processes behind one outgoing address, if none is bound. Default: the host's name."""
    address: str | None = None
    """Source address of this process's node. Default: the system's choice."""
    proxy: Annotated[Secret, _text_validator(read_proxy)] = ""
    """Proxy of this process's nodes: http://HOST:PORT or socks5h://HOST:PORT."""
    slots: int = 4
    """Attempts that a node runs at once."""
    kinds: Annotated[frozenset[Kind] | None, _text_validator(read_kinds)] = None
    """Kinds that this process's node may crawl: meta, microblog, or both. Default: the kinds of its row, else both."""
    report_file: str | None = None
    """File that the sweep `report` writes."""
    batch: int = Field(MOST_AT_ONCE, ge=1)
    """Most leases, results or questions in one round trip. 1: no batching."""
    remembered: int = Field(REMEMBERED, ge=0)
    """Most stored pages that a node remembers in its own memory. 0: none."""
    seed: int | None = None
    """Seed of chance in allocation. Default: another one each time."""
    secret_key: FileSecret = ""
    """Encrypts the file of sign-ins and signs the messages of a cluster."""
    keys_folder: str = "."
    """Folder with the file of sign-ins and, if REVIEWLOOP_PSEUDONYM_KEY is empty, the key of pseudonyms."""
    pseudonymise: Switch = False
    """Store pseudonyms of authors instead of their names."""
    pseudonym_key: FileSecret = ""
    """Key of the pseudonyms, the same on all machines. Default: one made at random in REVIEWLOOP_KEYS_FOLDER."""
    web_viewer: TokenHash = ""
    """Hash of the token for reading the dashboard (`reviewloop web --make-token viewer`)."""
    web_operator: TokenHash = ""
    """Hash of the token for operating the dashboard (`reviewloop web --make-token operator`)."""
    trusted_proxies: Networks = frozenset()
    """Addresses or networks of the proxies in front of the dashboard, separated by commas. It believes the client's
    address (X-Forwarded-For) and scheme that they send."""
    web_address: Annotated[Secret, _text_validator(read_public_address)] = ""
    """Public address of the dashboard behind a proxy, for example https://example.com/reviews/. Changes are taken
    from its pages only (docs/proxy.md)."""
    web_root_path: Annotated[str, _text_validator(read_root_path)] = ""
    """Path below which a proxy shows the dashboard, for example /reviews. Default: that of REVIEWLOOP_WEB_ADDRESS."""
    chromium: str = ""
    """Browser for pages made by script, a path or a name on PATH. Default: the first of chromium, chromium-browser,
    google-chrome and msedge."""
    keep_log_days: float = Field(365.0, ge=0, lt=100_000)
    """Days to keep the event log of an ended subtask (docs/verify.md). 0: for ever."""
    alerts: Annotated[AlertRules, _text_validator(_alert_rules)] = USUAL_RULES
    """Rules with thresholds: completion of a site in percent of its earlier rate, minutes that a node is silent,
    subtasks that wait for a person, minutes without a page, refusals of an engine in a row, complaints in 4 weeks
    about a theme that rises; or off."""
    alert_to: Annotated[FileSecret, _text_validator(_receivers)] = ""
    """Receivers of alerts, separated by blanks: addresses as in docs/alerts.md, mailto:PERSON, `log`. Default: the
    log."""
    log_level: Literal["warning", "info"] = "warning"
    """How much every process logs: warning, or info (as `-v`) with a line for each attempt."""
    log_format: Literal["text", "json"] = "text"
    """Format of these logs: text or json (docs/metrics.md)."""
    request_log: str = ""
    """File that gets one JSON line for each request sent (docs/metrics.md)."""
    smtp_url: Annotated[FileSecret, _text_validator(_mail_server_url)] = ""
    """Mail server of alerts and scheduled reports: smtps://USER:PASSWORD@HOST:465 or smtp://... (docs/schedules.md)."""
    mail_from: Annotated[str, _text_validator(mail_address)] = ""
    """Sender of mail. Default: the user of REVIEWLOOP_SMTP_URL."""
    pulse_file: str = ""
    """File that a worker or beat touches every few seconds while its loop turns."""

    def replace(self, **changes: Any) -> Self:
        """Return these settings with some values replaced. The new values are not checked."""
        return self.model_copy(update=changes)

    def catalog(self) -> Catalog:
        """Return the catalog that the settings name, or the default one. Raises CatalogError."""
        from splitter.catalog.load import builtin, find_catalog  # the models take a while to import

        here = Path("sites.yaml")
        default = here if here.is_file() else ROOT / "sites.yaml"
        if self.sites is None and not default.is_file():
            found = builtin(BUILTIN[0])
        else:
            found = find_catalog(self.sites, default)
        own = found.engines.get(_SEARXNG)
        if not self.searxng_url or own is None:
            return found
        engine = own.model_copy(update={"url": f"{self.searxng_url.rstrip('/')}{urlsplit(own.url).path}"})
        return found.model_copy(update={"engines": {**found.engines, _SEARXNG: engine}})

    def use_themes(self) -> None:
        """Make this process use the themes file of the settings. Raises CatalogError if the file is wrong."""
        from tasks.reading.judge.theme_file import IN_FORCE

        IN_FORCE.use(self.themes_file, is_optional=not self.themes)

    @property
    def themes_file(self) -> Path:
        """The themes file that a person edits. It may be missing if the settings name none."""
        return Path(self.themes or "themes.yaml")

    def mail_server(self) -> SmtpServer | None:
        """Return the mail server, or None if none is set. Raises InputError."""
        return smtp_server(self.smtp_url, self.mail_from) if self.smtp_url else None

    @property
    def sign_in_file(self) -> Path:
        """The path of the encrypted file that stores sign-ins until they expire."""
        return Path(self.keys_folder, "reviewloop.sign-ins")

    @property
    def pseudonym_key_file(self) -> Path:
        """The path of the file with the key for pseudonyms. A random key is stored in it if the settings give none."""
        return Path(self.keys_folder, "reviewloop.pseudonym-key")

    def loop(self) -> LoopSettings:
        """Return the settings of the scheduler's loop."""
        # They bring the allocation strategies (numpy, HiGHS), which most commands do without.
        from tasks.jobs.context import LoopSettings

        return LoopSettings(
            allocation=self.allocation,
            modification=self.modification,
            recall=self._recall(),
            buffer=self.buffer(),
            only_sites=self.only_sites,
            lease_batch=self.batch,
            keep_log=timedelta(days=self.keep_log_days) if self.keep_log_days else None,
        )

    def node_silent_after(self) -> timedelta:
        """Return the time without a heartbeat after which a node counts as silent."""
        return timedelta(seconds=self._recall().node_silent_after_s)

    def buffer(self) -> BufferRule:
        """Return how many leases a node holds, and when it counts as silent."""
        from tasks.scheduling.rebalancing import BufferRule

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
        """Return the settings of crawl nodes: how pages are fetched and read."""
        contact = self.contact or "no contact given"
        return CrawlSettings(
            user_agent=f"reviewloop/{VERSION} ({contact})",
            request_timeout_s=min(self.request_timeout_s, self.silent_after_s / 2),
            longest_wait_s=self._recall().longest_wait_s,
            rest_factor=self.rest_factor,
            lab=self.lab,
        )


def may_be_in_file(field: FieldInfo) -> bool:
    """Return True if the value of the setting may be given as the path of a file that contains it."""
    extra = field.json_schema_extra
    return isinstance(extra, dict) and "in_file" in extra


def as_text(value: object) -> str:
    """Return the value of a setting as it is written in its environment variable; empty if the setting is not set."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return ":".join(str(part) for part in value)
    if isinstance(value, frozenset):
        return ",".join(sorted(map(str, value)))
    return "" if value is None else str(value)


def env_file(without: Collection[str]) -> str:
    """Return the text of a settings file: each setting with its description and default, commented out.

    Args:
        without: names of settings to leave out.
    """

    def lines() -> Iterator[str]:
        for name, field in Settings.model_fields.items():
            if name not in without:
                yield from (f"# {line}" for line in wrap(field.description or "", 110))
                yield f"# {PREFIX}{name.upper()}={as_text(field.default)}"
                yield ""

    return "\n".join(lines())
