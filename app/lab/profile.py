"""Profiles of the lab: validated files that describe how hosts treat clients.

A profile is a list of ``pairs``. A pair describes how some hosts treat some clients, from a certain second of the lab's
time on. If several pairs match, each key is taken from the last one that has it, as in the scenarios of the simulator.
A limit or block of null removes that of an earlier pair.
"""

from __future__ import annotations

from bisect import bisect_right
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from app.lab.answers import LabAnswer
from splitter.catalog import yamlfile
from splitter.catalog.wrong_values import explain_wrong_value
from splitter.errors import CatalogError, InputError, Message, WrongValue, join_messages, system_reason

_PROFILES = Path(__file__).parent / "profiles"

LONGEST_HANG_S = 60.0


HostRole = Literal["engine", "site"]
"""The role of a host in the catalog. A site with its own search counts as an engine."""


class ProfileError(InputError):
    """A lab profile is wrong or missing. The message names the key of each problem."""


Lost = Literal[LabAnswer.NOT_FOUND, LabAnswer.GONE]
Limiting = Literal[LabAnswer.RATE_LIMITED, LabAnswer.TOO_FREQUENT]
Blocking = Literal[LabAnswer.FORBIDDEN, LabAnswer.CAPTCHA, LabAnswer.LOGIN_PAGE, LabAnswer.LOGIN_REDIRECT]
Broken = Literal[LabAnswer.SERVER_ERROR, LabAnswer.UNAVAILABLE, LabAnswer.CUT_OFF, LabAnswer.HANG]
Fault = Limiting | Blocking | Broken
Share = Annotated[float, Field(ge=0, le=1)]
Milliseconds = Annotated[float, Field(ge=0, le=30_000)]


def _check_shares(shares: dict[LabAnswer, float]) -> dict[LabAnswer, float]:
    if sum(shares.values()) > 1:
        raise WrongValue("the shares add up to {sum:g}; at most 1 would be right", sum=sum(shares.values()))
    return shares


def _check_range(range_ms: tuple[float, float]) -> tuple[float, float]:
    if range_ms[0] > range_ms[1]:
        raise WrongValue("right would be [lowest, highest]")
    return range_ms


class _ProfilePart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RateLimit(_ProfilePart):
    """A limit of ``requests`` per ``window_s`` for one client at one host. Further requests get ``answer``."""

    requests: int = Field(ge=1)
    window_s: float = Field(gt=0)
    retry_after_s: float = Field(default=1, ge=0)
    answer: Limiting = LabAnswer.RATE_LIMITED


class Block(_ProfilePart):
    """A rule for blocking: after ``requests`` to a host within ``window_s``, a client gets ``answer`` for ``for_s``."""

    requests: int = Field(ge=1)
    window_s: float = Field(gt=0)
    for_s: float = Field(gt=0)
    answer: Blocking = LabAnswer.FORBIDDEN


class Conduct(_ProfilePart):
    """How a host treats a client. The defaults describe a perfect host.

    Attributes:
        latency_ms: Lowest and highest time before the answer.
        faults: Share of requests that get each fault.
        fault_tries: If 0, each request has a fault or not, at random. If n, a URL has one fault or none, and its fault
            lasts for the first 1 to n requests for that URL by any client.
        hang_s: Longest duration of a hang.
        lost: Share of URLs that are lost for good.
        moved: Share of URLs (on hosts without www.) that have moved to the host with www.
        dead: True if no request is answered, not even for robots.txt.
    """

    latency_ms: Annotated[tuple[Milliseconds, Milliseconds], AfterValidator(_check_range)] = (0, 0)
    faults: Annotated[dict[Fault, Share], AfterValidator(_check_shares)] = Field(default_factory=dict)
    fault_tries: int = Field(default=0, ge=0, le=10)
    hang_s: float = Field(default=LONGEST_HANG_S, gt=0, le=LONGEST_HANG_S)
    lost: Annotated[dict[Lost, Share], AfterValidator(_check_shares)] = Field(default_factory=dict)
    moved: Share = 0
    rate_limit: RateLimit | None = None
    block: Block | None = None
    dead: bool = False


class PairConduct(Conduct):
    """How some hosts treat some clients from a certain time on.

    Attributes:
        client: Address of a crawl node, or a pattern (127.0.0.*).
        host: Name of a site or host, with or without www., or a pattern (315*).
        role: Limits the pair to engines or to sites.
        from_s: Second of the lab's time when the pair begins to apply.
    """

    client: str = "*"
    host: str = "*"
    role: HostRole | None = None
    from_s: float = Field(default=0, ge=0)

    def matches(self, client: str, host: str, role: HostRole) -> bool:
        """Return True if the pair applies to this client and host, regardless of the time."""
        return (
            self.role in (None, role) and fnmatchcase(client, self.client) and matches_host(self.host, host)
        )


class RobotsProfile(_ProfilePart):
    """The content of the hosts' robots.txt.

    Attributes:
        refuse: Patterns of the hosts that refuse all paths.
        crawl_delay_s: Crawl delay by pattern of host. If several patterns match, the last one applies.
    """

    refuse: tuple[str, ...] = ()
    crawl_delay_s: dict[str, Annotated[float, Field(gt=0, le=60)]] = Field(default_factory=dict)

    def text(self, host: str) -> str:
        """Return the robots.txt of a host (in lower case without port)."""
        is_refused = any(matches_host(pattern, host) for pattern in self.refuse)
        delays = [delay for pattern, delay in self.crawl_delay_s.items() if matches_host(pattern, host)]
        lines = ["User-agent: *", "Disallow: /" if is_refused else "Disallow:"]
        return "\n".join(lines + [f"Crawl-delay: {delay:g}" for delay in delays[-1:]]) + "\n"


class Wall(_ProfilePart):
    """A login wall with a form.

    Attributes:
        user, password: The only account.
        session_s: Duration of a session.
        answer: Answer to requests without a session: a page with status 200, or a redirect to the form.
        hashed: True if the script of the form hashes the password with a salt.
    """

    user: str
    password: str
    session_s: float = Field(default=600, gt=0)
    answer: Literal["page", "redirect"] = "page"
    hashed: bool = False


class Profile(_ProfilePart):
    """The content of a profile file: how hosts treat clients, robots.txt, and login walls.

    Attributes:
        doors: Login walls by host without www.
        hits: Number of different pages for any query, by site. It fixes what a crawl should find.
        time_from: Moment when the lab's time begins: when it listens, or with the first request to a host of its
            catalog. ``from_s`` and the log count from it.
    """

    name: str
    time_from: Literal["start", "first_request"] = "start"
    robots: RobotsProfile = RobotsProfile()
    pairs: tuple[PairConduct, ...] = ()
    doors: dict[str, Wall] = Field(default_factory=dict)
    hits: dict[str, Annotated[int, Field(ge=0, le=65_536)]] = Field(default_factory=dict)


_CONDUCT_KEYS = frozenset(Conduct.model_fields)


class Conducts:
    """Finds how each host treats each client over time. All matching pairs of a profile are merged."""

    def __init__(self, profile: Profile) -> None:
        self._pairs = profile.pairs
        self._moments = sorted({pair.from_s for pair in profile.pairs})
        self._merged = lru_cache(maxsize=65536)(self._merge)

    def find(self, client: str, host: str, role: HostRole, t: float) -> Conduct:
        """Return how a host treats a client at `t` seconds of the lab's time."""
        return self._merged(client, host, role, bisect_right(self._moments, t))

    def _merge(self, client: str, host: str, role: HostRole, n_moments: int) -> Conduct:
        begun = frozenset(self._moments[:n_moments])
        merged: dict[str, Any] = {}
        for pair in self._pairs:
            if pair.from_s in begun and pair.matches(client, host, role):
                merged |= {key: getattr(pair, key) for key in pair.model_fields_set & _CONDUCT_KEYS}
        return Conduct.model_construct(**merged)


def matches_host(pattern: str, host: str) -> bool:
    """Return True if a pattern of a profile matches a host, with or without its leading www."""
    return fnmatchcase(host, pattern) or fnmatchcase(host.removeprefix("www."), pattern)


def list_built_in() -> tuple[str, ...]:
    """Return the names of the built-in profiles."""
    return tuple(sorted(path.stem for path in _PROFILES.glob("*.yaml")))


def load_profile(spec: str) -> Profile:
    """Load a profile, given by the name of a built-in one or by the path of a file.

    Raises:
        ProfileError: The profile is missing, is not YAML, or has a wrong key or value.
    """
    path = _PROFILES / f"{spec}.yaml" if spec in list_built_in() else Path(spec)
    try:
        document = yamlfile.read(path.read_text("utf-8-sig"), str(path))
        yamlfile.raise_problems(document.problems, str(path))
        return Profile.model_validate(document.data)
    except OSError as error:
        raise ProfileError(
            "lab profile {spec!r} cannot be read ({reason}); right would be a file or one of {known}",
            spec=spec,
            reason=system_reason(error),
            known=", ".join(list_built_in()),
        ) from error
    except ValidationError as error:
        problems = (_describe_problem(path, each) for each in error.errors())
        raise ProfileError("{problems}", problems=join_messages(problems)) from error
    except CatalogError as error:
        raise ProfileError("lab profile {error}", error=error.message) from error
    except UnicodeDecodeError as error:
        raise ProfileError("lab profile {path}: not UTF-8; save the file as UTF-8", path=path) from error


def _describe_problem(path: Path, error: ErrorDetails) -> Message:
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).lstrip(".")
    return Message(
        "lab profile {path}: {key}: {wrong} (got {given!r})",
        path=path,
        key=key or Message("top level"),
        wrong=explain_wrong_value(error),
        given=error["input"],
    )
