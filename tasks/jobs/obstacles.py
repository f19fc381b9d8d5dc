"""Decide which sites can't be asked now and why, from facts about names, own engines, sign-ins and robots.txt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from splitter.catalog.model import Catalog
from splitter.errors import Message

from tasks.domain.reasons import Explanation, Reason, because


class ObstacleKind(StrEnum):
    """Obstacles between a node and a site."""

    NETWORK = "no_network"
    NAME = "no_such_name"
    ENGINE = "engine_down"
    SIGN_IN = "sign_in"
    ROBOTS = "robots"
    BROWSER = "no_browser"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """The reason why a site can't be asked, and the remedy.

    Attributes:
        because: the reason, equal for all sites with the same remedy.
        mend: a command, or a setting; `None` if there is no remedy.
    """

    kind: ObstacleKind
    because: Explanation
    mend: Message | None = None

    @property
    def why(self) -> Message:
        """The sentence of the reason."""
        return Message("{because}", because=self.because)


class NameState(StrEnum):
    """Answers of name servers about a host's name."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachability:
    """Facts found out before the first request.

    Attributes:
        names: results of name look-ups by host.
        engines: engines that can't be asked, with the reason.
        browser: the obstacle to pages made by scripts on this machine; `None` if there is none.
        sign_ins: sites and engines that need a sign-in without credentials, with the variables to set.
    """

    names: Mapping[str, NameState] = field(default_factory=dict)
    engines: Mapping[str, Obstacle] = field(default_factory=dict)
    sign_ins: Mapping[str, str] = field(default_factory=dict)
    browser: Obstacle | None = None

    @property
    def offline(self) -> bool:
        """True if no name could be resolved: then this machine has no network."""
        return bool(self.names) and NameState.KNOWN not in self.names.values()


NO_NETWORK = Obstacle(
    kind=ObstacleKind.NETWORK,
    because=because(Reason.NO_NETWORK),
    mend=Message("connect this machine, or set REVIEWLOOP_PROXY"),
)


_CHECK = Message("reviewloop sites check")


def obstacles(catalog: Catalog, found: Reachability) -> dict[str, tuple[Obstacle, ...]]:
    """Return the sites that can't be asked, in the catalog's order, with all their obstacles."""
    seen = ((site, tuple(_obstacles(catalog, site, found))) for site in catalog.sites)
    return {site: those for site, those in seen if those}


def _obstacles(catalog: Catalog, site: str, found: Reachability) -> Iterator[Obstacle]:
    engine = catalog.sites[site].engine
    unknown = [
        host
        for host in hosts_of(catalog, site)
        if found.names.get(host, NameState.KNOWN) is not NameState.KNOWN
    ]
    if unknown and found.offline:
        yield NO_NETWORK
    elif unknown:
        unanswered = found.names[unknown[0]] is not NameState.UNKNOWN
        kind = Reason.NAME_UNANSWERED if unanswered else Reason.NAME_UNKNOWN
        yield Obstacle(kind=ObstacleKind.NAME, because=because(kind, host=unknown[0]), mend=_CHECK)
    if (down := found.engines.get(engine)) is not None:
        yield down
    if found.browser is not None and catalog.renders(site):
        yield found.browser
    for name in dict.fromkeys((engine, site)):
        if (variables := found.sign_ins.get(name)) is not None:
            mend = Message("set {variables} (docs/sign-in.md)", variables=variables)
            needed = because(Reason.SIGN_IN_NEEDED, name=name)
            yield Obstacle(kind=ObstacleKind.SIGN_IN, because=needed, mend=mend)


def hosts_of(catalog: Catalog, site: str) -> tuple[str, ...]:
    """Return the hosts that a site needs: its engine's, and its own if pages are fetched there."""
    engine = catalog.engine_of(site)
    host = (urlsplit(engine.url).hostname or "").lower()
    return (host,) if engine.inline else (host, site)
