"""How badly the lab behaves: profile files, validated.

A profile is a list of ``pairs``: each says how the hosts it matches treat the clients it matches, from a
moment of the lab's time on. Later entries override earlier ones where they match, key by key, as in the
simulation's scenarios; a limit or block set to null takes back what an earlier entry said.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, Field, ValidationError

from app.lab.answers import Answer
from app.lab.login import ProfileModel, Wall
from app.lab.oauth import OAuth
from splitter.errors import InputError

PROFILES = Path(__file__).parent / "profiles"
"""The folder of the built-in profiles."""

LONGEST_HANG_S = 60.0


class Role(StrEnum):
    """The role of a host in the catalog; one that is both (a site's own search) counts as engine."""

    ENGINE = "engine"
    SITE = "site"


class TimeFrom(StrEnum):
    """When a lab's time begins."""

    START = "start"  # when it listens
    FIRST_REQUEST = "first_request"  # with the first request to a host of its catalog


class ProfileError(InputError):
    """A lab profile is wrong or not there; the message carries the key of each problem."""


_LOST = frozenset({Answer.NOT_FOUND, Answer.GONE})
_LIMITING = frozenset({Answer.RATE_LIMITED, Answer.TOO_FREQUENT})
_BLOCKING = frozenset({Answer.FORBIDDEN, Answer.CAPTCHA, Answer.LOGIN_PAGE, Answer.LOGIN_REDIRECT})
_FAULTS = _LIMITING | _BLOCKING | {Answer.SERVER_ERROR, Answer.UNAVAILABLE, Answer.CUT_OFF, Answer.HANG}


def _one_of(allowed: frozenset[Answer]) -> AfterValidator:
    def check(answer: Answer) -> Answer:
        if answer not in allowed:
            raise ValueError(
                f"{answer.value} is not possible here; right would be one of {', '.join(sorted(allowed))}"
            )
        return answer

    return AfterValidator(check)


def _sums_up(shares: dict[Answer, float]) -> dict[Answer, float]:
    if sum(shares.values()) > 1:
        raise ValueError(f"the shares add up to {sum(shares.values()):g}; at most 1 would be right")
    return shares


def _rising(range_ms: tuple[float, float]) -> tuple[float, float]:
    if range_ms[0] > range_ms[1]:
        raise ValueError("right would be [lowest, highest]")
    return range_ms


Share = Annotated[float, Field(ge=0, le=1)]
Milliseconds = Annotated[float, Field(ge=0, le=30_000)]
Fault = Annotated[Answer, _one_of(_FAULTS)]
Lost = Annotated[Answer, _one_of(_LOST)]


class RateLimit(ProfileModel):
    """At most ``requests`` of one client to one host in ``window_s``; those over it get ``answer``."""

    requests: int = Field(ge=1)
    window_s: float = Field(gt=0)
    retry_after_s: float = Field(default=1, ge=0)
    answer: Annotated[Answer, _one_of(_LIMITING)] = Answer.RATE_LIMITED


class Block(ProfileModel):
    """After ``requests`` of one client to one host in ``window_s``, it gets ``answer`` for ``for_s``."""

    requests: int = Field(ge=1)
    window_s: float = Field(gt=0)
    for_s: float = Field(gt=0)
    answer: Annotated[Answer, _one_of(_BLOCKING)] = Answer.FORBIDDEN


class Conduct(ProfileModel):
    """How a host treats a client. All keys may be left out; the defaults are those of a perfect host.

    Attributes:
        latency_ms: lowest and highest time before the answer.
        faults: share of requests that get each fault.
        fault_tries: 0: each request of a URL draws its fault anew; n: a URL has one fault or none, and it
            lasts for the first 1 to n requests of that URL, whoever asks.
        hang_s: how long a hang lasts at most.
        lost: share of URLs that are lost for good.
        moved: share of URLs (of hosts without www.) that have moved to the host with www.
        rate_limit, block: see there; null: none.
        dead: nobody answers, not even for robots.txt.
    """

    latency_ms: Annotated[tuple[Milliseconds, Milliseconds], AfterValidator(_rising)] = (0, 0)
    faults: Annotated[dict[Fault, Share], AfterValidator(_sums_up)] = Field(default_factory=dict)
    fault_tries: int = Field(default=0, ge=0, le=10)
    hang_s: float = Field(default=LONGEST_HANG_S, gt=0, le=LONGEST_HANG_S)
    lost: Annotated[dict[Lost, Share], AfterValidator(_sums_up)] = Field(default_factory=dict)
    moved: Share = 0
    rate_limit: RateLimit | None = None
    block: Block | None = None
    dead: bool = False


class Pair(Conduct):
    """How some hosts treat some clients from a moment on.

    Attributes:
        client: address of a crawl node, or a pattern (127.0.0.*).
        host: name of a site or host, with or without www., or a pattern (315*).
        role: only engines, or only sites.
        from_s: seconds of lab time from which on it holds.
    """

    client: str = "*"
    host: str = "*"
    role: Role | None = None
    from_s: float = Field(default=0, ge=0)

    def matches(self, client: str, host: str, role: Role) -> bool:
        """Whether it speaks of this client and host (lower case, no port), whatever the time."""
        return (
            self.role in (None, role) and fnmatchcase(client, self.client) and matches_host(self.host, host)
        )


class Robots(ProfileModel):
    """The content of robots.txt.

    Attributes:
        refuse: patterns of the hosts that refuse everything.
        crawl_delay_s: by pattern of host; the last one that matches counts.
    """

    refuse: tuple[str, ...] = ()
    crawl_delay_s: dict[str, Annotated[float, Field(gt=0, le=60)]] = Field(default_factory=dict)

    def text(self, host: str) -> str:
        """The robots.txt of a host (lower case, no port)."""
        refused = any(matches_host(pattern, host) for pattern in self.refuse)
        lines = ["User-agent: *", "Disallow: /" if refused else "Disallow:"]
        lines += [
            f"Crawl-delay: {delay:g}"
            for pattern, delay in self.crawl_delay_s.items()
            if matches_host(pattern, host)
        ][-1:]
        return "\n".join(lines) + "\n"


class Profile(ProfileModel):
    """How the whole lab behaves.

    Attributes:
        doors: sites that want to be signed in to, by host without www.
        hits: sites that have so many different pages for every query, to know what a crawl should find.
        time_from: when the lab's time begins, which ``from_s`` and the log count from.
    """

    name: str
    time_from: TimeFrom = TimeFrom.START
    robots: Robots = Robots()
    pairs: tuple[Pair, ...] = ()
    doors: dict[str, Wall | OAuth] = Field(default_factory=dict)
    hits: dict[str, Annotated[int, Field(ge=0, le=65_536)]] = Field(default_factory=dict)


_SELECTORS = frozenset(Pair.model_fields) - frozenset(Conduct.model_fields)


class Conducts:
    """The entries of a profile that hold for a (client, host) at a moment, laid over each other."""

    def __init__(self, profile: Profile) -> None:
        """Prepare a profile for many questions."""
        self._pairs = profile.pairs
        self._moments = sorted({pair.from_s for pair in profile.pairs})
        self._laid = lru_cache(maxsize=65536)(self._lay)

    def at(self, client: str, host: str, role: Role, t: float) -> Conduct:
        """How a host treats a client at ``t`` seconds of lab time."""
        return self._laid(client, host, role, bisect_right(self._moments, t))

    def _lay(self, client: str, host: str, role: Role, epoch: int) -> Conduct:
        moments = self._moments[:epoch]
        laid: dict[str, Any] = {}
        for pair in self._pairs:
            if moments and pair.from_s <= moments[-1] and pair.matches(client, host, role):
                laid |= {key: getattr(pair, key) for key in pair.model_fields_set - _SELECTORS}
        return Conduct.model_construct(**laid)


def matches_host(pattern: str, host: str) -> bool:
    """Whether a pattern of a profile means a host; a leading www. of the host makes no difference."""
    return fnmatchcase(host, pattern) or fnmatchcase(host.removeprefix("www."), pattern)


def built_in() -> tuple[str, ...]:
    """Names of the built-in profiles."""
    return tuple(sorted(path.stem for path in PROFILES.glob("*.yaml")))


def load_profile(spec: str) -> Profile:
    """Load a profile by the name of a built-in one or by a file's path.

    Raises:
        ProfileError: no such profile, no YAML, or a key or value that is not right.
    """
    path = PROFILES / f"{spec}.yaml" if spec in built_in() else Path(spec)
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProfileError(
            f"lab profile {spec!r} cannot be read ({error.strerror}); "
            f"right would be a file or one of {', '.join(built_in())}"
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ProfileError(f"lab profile {path}: not YAML: {error}") from error
    try:
        return Profile.model_validate(data)
    except ValidationError as error:
        raise ProfileError(
            "\n".join(f"lab profile {path}: {_problem(each)}" for each in error.errors())
        ) from error


def _problem(error: Any) -> str:
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).lstrip(".")
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        message = "no such key"
    return f"{key or 'top level'}: {message} (got {error['input']!r})"
